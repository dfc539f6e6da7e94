"""Going through the tasks of the chosen tables: skip what is finished, keep what finishes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._errors import InvalidInputError, TreeproofError, must_be
from ..datasets import DataUnavailableError
from . import report
from .settings import Settings
from .store import CellStore
from .tasks import Result, Row, Table, Task
from .workshop import Workshop


@dataclass
class Event:
    """One step of the run, for whoever shows progress.

    Attributes
    ----------
    kind : {"start", "kept", "done", "failed"}
    number, total : int
        Of the tasks, in order.
    task : Task
    seconds : float
    message : str
    """

    kind: str
    number: int
    total: int
    task: Task
    seconds: float = 0.0
    message: str = ""


@dataclass
class Outcome:
    """Results by task name, and why others are missing."""

    results: dict[str, Result] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def result(self, task: Task) -> Result | None:
        return self.results.get(task.name)


def run(
    tables: Iterable[Table],
    out: Path,
    settings: Settings,
    *,
    resume: bool = True,
    progress: Callable[[Event], None] | None = None,
    workshop: Workshop | None = None,
) -> report.Report:
    """Compute every cell of `tables` that `out` does not hold yet, and write the report there.

    The report is written after every task, so `out` always shows what is finished.
    Run again with the same arguments to go on.

    Parameters
    ----------
    tables : of Table
    out : Path
        Folder for cells, models and the report.
    settings : Settings
    resume : bool
        False forgets the cells that `out` holds (models too).
    progress : callable, optional
        Called with an `Event`.
    workshop : Workshop, optional
        For tests.

    Returns
    -------
    Report
    """
    tables = [_wanted(table, settings) for table in tables]
    out = _folder(out)
    store = CellStore(out)
    if not resume:
        store.clear()
        for path in (out / "models").glob("*.json"):
            path.unlink(missing_ok=True)
    shop = workshop or Workshop(out, settings)
    tasks = {task.name: task for table in tables for row in table.rows for task in row.tasks}
    outcome = Outcome()
    _collect(tasks.values(), store, outcome)
    made = report.make(tables, outcome, settings)
    try:
        for number, task in enumerate(tasks.values(), 1):
            _do(task, store, shop, outcome, _teller(progress, number, len(tasks), task))
            made = report.make(tables, outcome, settings)
            report.write(made, out)
    finally:
        report.write(made, out)
    return made


def _teller(progress: Callable[[Event], None] | None, number: int, total: int, task: Task) -> Callable[..., None]:
    def tell(kind: str, **more: Any) -> None:
        if progress is not None:
            progress(Event(kind, number, total, task, **more))

    return tell


def _do(task: Task, store: CellStore, shop: Workshop, outcome: Outcome, tell: Callable[..., None]) -> None:
    if task.name in outcome.results:
        tell("kept")
        return
    tell("start")
    start, work = time.perf_counter(), time.process_time()
    try:
        result = task.run(shop)
    except (TreeproofError, DataUnavailableError, ImportError, MemoryError, FloatingPointError) as error:
        outcome.failures[task.name] = f"{type(error).__name__}: {error}"
        tell("failed", message=str(error), seconds=time.perf_counter() - start)
        return
    seconds = time.perf_counter() - start
    kept = {**result, "task_seconds": time.process_time() - work, "finished": report.now()}
    store.put(task.name, task.settings, kept)
    # read back, so that a fresh run and a resumed one report the very same numbers
    outcome.results[task.name] = store.get(task.name, task.settings) or result
    tell("done", seconds=seconds)


def _collect(tasks: Iterable[Task], store: CellStore, outcome: Outcome) -> None:
    """What is there already shows in every report, also after an early interruption."""
    for task in tasks:
        found = store.get(task.name, task.settings)
        if found is not None:
            outcome.results[task.name] = found


def _wanted(table: Table, settings: Settings) -> Table:
    rows: tuple[Row, ...] = tuple(row for row in table.rows if settings.wants(row.dataset))
    return Table(table.name, table.title, table.about, rows, table.curves)


def _folder(out: Any) -> Path:
    path = Path(out)
    if path.exists() and not path.is_dir():
        raise InvalidInputError(must_be("out", "a folder", str(path)))
    path.mkdir(parents=True, exist_ok=True)
    return path
