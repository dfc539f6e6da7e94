"""What the commands say: results on standard output, progress and notes on standard error.

Notes and progress appear only where a person is looking (a terminal), never in a pipe.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


def watched() -> bool:
    """Whether a person sees standard error."""
    return sys.stderr.isatty()


def note(text: str, quiet: bool = False) -> None:
    """A remark for a person; nothing in a pipe or with ``--quiet``."""
    if watched() and not quiet:
        click.secho(text, err=True, dim=True)


def tell_of_compiling() -> None:
    """Have a remark said if something must be compiled: the first call on a machine waits for it."""
    from .._clock import announce_compiling

    announce_compiling(lambda: note("compiling the fast loops, once on this machine..."))


def show(renderable) -> None:
    """Print a rich table or text on standard output: plain and unwrapped in a pipe."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console(highlight=False).print(renderable)
        return
    text = io.StringIO()
    Console(file=text, width=500, highlight=False).print(renderable)
    for line in text.getvalue().splitlines():
        click.echo(line.rstrip())


def show_json(content: dict[str, Any]) -> None:
    """Print one JSON object; numbers that JSON has no word for become null."""
    click.echo(json.dumps(plain(content), indent=2, allow_nan=False))


def plain(thing: Any) -> Any:
    """Plain JSON data: numpy numbers unwrapped; infinities as the text "inf", NaN as null."""
    if isinstance(thing, dict):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [plain(value) for value in thing]
    if hasattr(thing, "tolist"):
        return plain(thing.tolist())
    if isinstance(thing, float):
        if thing != thing:
            return None
        return thing if abs(thing) != float("inf") else ("inf" if thing > 0 else "-inf")
    return thing if isinstance(thing, (str, int, bool, type(None))) else str(thing)


@contextmanager
def progress(label: str, total: int | None, quiet: bool = False) -> Iterator[Any]:
    """A bar with the time left; yields a function ``set(done, total)`` (which does nothing in a pipe)."""
    if quiet or not watched():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def training_progress(label: str, quiet: bool = False) -> Iterator[None]:
    """A bar that follows the rounds which training logs."""
    if quiet or not watched():
        yield
        return
    log = logging.getLogger("treeproof.training")
    with progress(label, None) as put:
        handler = _Rounds(put)
        level, passed_on = log.level, log.propagate
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(level)
            log.propagate = passed_on


class _Rounds(logging.Handler):
    """Passes the rounds of log records on."""

    def __init__(self, put) -> None:
        super().__init__(logging.DEBUG)
        self.put = put

    def emit(self, record: logging.LogRecord) -> None:
        told = vars(record)
        if "rounds" in told:
            self.put(told["done"], told["rounds"])
