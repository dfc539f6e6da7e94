"""The report: every cell as paper / ours / difference, as data; written as JSON, CSV, Markdown and HTML."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._version import __version__
from .settings import Settings
from .store import write_atomically
from .tasks import PERCENT, SECONDS, TEXT, TIMES, Quantity, Row, Table

if TYPE_CHECKING:
    from .runner import Outcome

ROUNDING = 0.0101  # points: the paper prints (and cuts off) two digits


@dataclass(frozen=True)
class Cell:
    """One number: the paper's, ours, and ours minus the paper's (errors) or ours over the paper's (times).

    `state` is "done", "open" (not computed yet) or "failed"; `reduced` says how the experiment was cut down.
    """

    header: str
    unit: str
    paper: float | None
    ours: float | str | None
    difference: float | None
    state: str
    reduced: str = ""
    message: str = ""


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    labels: dict[str, str]
    cells: list[Cell]


@dataclass(frozen=True)
class Section:
    """One table of the report, with the curves of its rows where it has any (name -> values a round).

    `seconds` is the CPU time of its finished tasks (a model that several tables use counts where it was trained).
    """

    name: str
    title: str
    about: str
    lines: list[Line]
    seconds: float = 0.0
    curves: list[dict[str, list[float]]] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """All tables, with the command's settings and the versions it ran with."""

    sections: list[Section]
    environment: dict[str, str]
    quick: bool

    @property
    def open_cells(self) -> int:
        return sum(cell.state == "open" for cell in self.cells())

    @property
    def failures(self) -> list[str]:
        return sorted({cell.message for cell in self.cells() if cell.state == "failed"})

    def cells(self) -> list[Cell]:
        return [cell for section in self.sections for line in section.lines for cell in line.cells]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1)

    def to_csv(self) -> str:
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(
            ["table", "row", "quantity", "unit", "paper", "ours", "difference", "state", "reduced", "message"]
        )
        for section in self.sections:
            for line in section.lines:
                row = " | ".join(f"{key}={value}" for key, value in line.labels.items())
                for cell in line.cells:
                    values = [cell.paper, cell.ours, cell.difference]
                    shown = ["" if value is None else value for value in values]
                    writer.writerow(
                        [
                            section.name,
                            row,
                            cell.header,
                            cell.unit,
                            *shown,
                            cell.state,
                            cell.reduced,
                            cell.message,
                        ]
                    )
        return stream.getvalue()


def make(tables: Sequence[Table], outcome: Outcome, settings: Settings) -> Report:
    """The report of what is finished so far."""
    sections = []
    for table in tables:
        lines = [Line(dict(row.labels), [_cell(q, outcome) for q in row.quantities]) for row in table.rows]
        curves: list[dict[str, list[float]]] = []
        if table.curves is not None:
            drawn = [table.curves(row, outcome.result) for row in table.rows]
            curves = [curve for curve in drawn if curve]
        tasks = {task.name for row in table.rows for task in row.tasks} & outcome.results.keys()
        seconds = sum(outcome.results[name].get("task_seconds", 0.0) for name in tasks)
        sections.append(Section(table.name, table.title, table.about, lines, seconds, curves))
    return Report(sections, environment(settings, outcome), settings.size.quick)


def _cell(quantity: Quantity, outcome: Outcome) -> Cell:
    results = [outcome.result(task) for task in quantity.tasks]
    reduced = "; ".join(dict.fromkeys(task.reduced for task in quantity.tasks if task.reduced))
    plain = (quantity.header, quantity.unit, quantity.paper)
    for task in quantity.tasks:
        if task.name in outcome.failures:
            return Cell(*plain, None, None, "failed", reduced, outcome.failures[task.name])
    if any(result is None for result in results):
        return Cell(*plain, None, None, "open", reduced)
    ours = quantity.value(*results)
    return Cell(*plain, ours, difference(quantity.unit, quantity.paper, ours), "done", reduced)


def difference(unit: str, paper: float | None, ours: Any) -> float | None:
    """Ours minus the paper's; for times and speed-ups ours over the paper's."""
    if paper is None or not isinstance(ours, (int, float)) or unit == TEXT:
        return None
    if unit in (SECONDS, TIMES):
        return ours / paper if paper else None
    return ours - paper


def show(cell: Cell, marks: Mapping[str, str]) -> tuple[str, str, str]:
    """The cell's three numbers as text; `marks` has the sign of each way of being reduced."""
    mark = f" {marks[cell.reduced]}" if cell.reduced and cell.state == "done" else ""
    if cell.state == "open":
        return _number(cell.paper, cell.unit), "not run", ""
    if cell.state == "failed":
        return _number(cell.paper, cell.unit), "failed", ""
    if cell.difference is None:
        change = ""
    elif cell.unit in (SECONDS, TIMES):
        change = f"x{cell.difference:.2g}"
    else:
        change = f"{cell.difference:+.2f}"
    return _number(cell.paper, cell.unit), _number(cell.ours, cell.unit) + mark, change


def _number(value: Any, unit: str) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if unit == PERCENT:
        return f"{value:.2f}"
    if unit == SECONDS:
        return f"{value:.2g} s" if value < 100 else f"{value:.0f} s"
    if unit == TIMES:
        return f"{value:.3g}x" if value < 1000 else f"{value:.0f}x"
    return f"{value:g}" if isinstance(value, int) or float(value).is_integer() else f"{value:.2f}"


def now() -> str:
    """The date and time that cells and reports carry."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def environment(settings: Settings, outcome: Outcome) -> dict[str, str]:
    """What a figure depends on besides the code: dates, versions, machine."""
    finished = sorted(result["finished"] for result in outcome.results.values() if "finished" in result)
    span = f"{finished[0]} to {finished[-1]}" if finished else "none yet"
    return {
        "date": now(),
        "cells_finished": span,
        "versions": _versions(),
        "machine": f"{platform.machine()}, {platform.system()}, {cores()} cores",
        "command": settings.command,
        "size": _size(settings),
        "authors_models": str(settings.models) if settings.models else "none given",
    }


@cache
def _versions() -> str:
    """Looked up once: it is slow, and a Ctrl-C inside the look-up's zip files would be lost."""
    found = {"treeproof": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _size(settings: Settings) -> str:
    if settings.size.quick:
        return "quick: reduced rows"
    rows = settings.size.train_rows
    return f"image sets trained on {rows} rows" if rows else "full"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write(made: Report, out: Path) -> None:
    """Write reproduction.json, .csv, .md and .html, and plots/*.svg, each at once or not at all."""
    from . import html, markdown, plots

    for section in made.sections:
        for name, drawing in plots.of(section).items():
            write_atomically(out / plots.FOLDER / name, drawing)
    write_atomically(out / "reproduction.json", made.to_json())
    write_atomically(out / "reproduction.csv", made.to_csv())
    write_atomically(out / "reproduction.md", markdown.render(made))
    write_atomically(out / "reproduction.html", html.render(made))


__all__ = ["Cell", "Line", "Report", "Row", "Section", "difference", "make", "show", "write"]
