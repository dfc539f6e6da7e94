"""Results as tables for a terminal (rich)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import words

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


def _grid() -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def facts_table(facts: dict[str, str]) -> Table:
    """Names and texts in two columns."""
    table = _grid()
    for name, text in facts.items():
        table.add_row(name, text)
    return table


def certificates_table(found) -> Group:
    """The errors with their meaning, how many rows have each verdict, and the method."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    counts = words.split_counts(found)
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(style="dim")
    if found.clean_error is not None:
        table.add_row(
            "clean error",
            words.percent(found.clean_error),
            f"{words.rows_of(counts['wrong'])} misclassified as they stand",
        )
    flips = f"{words.rows_of(counts['broken'])} flipped by a counterexample"
    table.add_row("attack error", Text(words.percent(found.attack_error), "dark_orange3"), flips)
    robust = f"{words.rows_of(counts['robust'])} proved robust, {counts['unknown']} undecided"
    table.add_row("verified error", Text(words.percent(found.verified_error), "blue"), robust)
    lines: list[Any] = [table, "", Text(words.headline(found))]
    lines.append(Text(_method_line(found), "dim"))
    return Group(*lines)


def radii_table(found) -> Group:
    """Quantiles of the radii, how many are exact, and the method."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    right = np.ones(len(found), bool) if found.correct is None else found.correct
    lower = found.lower[right]
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(style="dim")
    if found.clean_error is not None:
        table.add_row("clean error", words.percent(found.clean_error), "misclassified rows have radius 0")
    counted = "of the finite radii" + ("" if right.all() else ", misclassified rows as 0")
    table.add_row("median", words.figure(found.median), counted)
    table.add_row("mean", words.figure(found.mean), counted)
    if len(lower):
        for name, share in (("least", 0.0), ("10% below", 0.1), ("largest", 1.0)):
            of = "" if right.all() else "of the rows classified correctly"
            table.add_row(name, words.figure(float(np.quantile(lower, share, method="lower"))), of)
    table.add_row("exact", f"{int(np.sum(found.exact)):,}", f"of {words.rows_of(len(found))}")
    if found.n_infinite:
        table.add_row("never flip", f"{found.n_infinite:,}", "within what the threat allows")
    return Group(table, Text(_method_line(found), "dim"))


def _method_line(found) -> str:
    text = f"{found.method_reason}; {float(np.sum(found.seconds)):.3g} s"
    if found.cast_rows:
        text += f"; {words.rows_of(found.cast_rows)} rounded to the model's {found.dtype} inputs"
    if found.interrupted:
        text += "; interrupted, the rows not reached are undecided"
    return text


def summary_table(results: dict[str, Any], title: str = "", radii: dict[str, Any] | None = None) -> Table:
    """Several certificates side by side, a line each.

    Parameters
    ----------
    results : dict of str to Certificates
    title : str
    radii : dict of str to Radii, optional
        Adds the median radius.
    """
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", header_style="bold", title_style="bold")
    table.add_column("model")
    columns = ["rows", "clean error", "attack error", "verified error"]
    for name in (*columns, *(["median radius"] if radii else []), "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, found in results.items():
        table.add_row(
            name,
            f"{len(found):,}",
            words.percent(found.clean_error),
            words.percent(found.attack_error),
            words.percent(found.verified_error),
            *([words.figure(radii[name].median)] if radii else []),
            f"{float(np.sum(found.seconds)):.3g}",
        )
    return table
