"""Going through the tasks of the chosen tables: skip what is finished, keep what finishes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .._errors import InvalidInputError, must_be
from . import pool, report
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
        How many tasks are finished, this one included, of how many.
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
    processes: int = 1,
    build: pool.Build | None = None,
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
    processes : int
        How many tasks are worked on at once, where `build` is given.
    build : callable, optional
        What gives `tables` in another process; it must be picklable.

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
    tasks = {task.name: task for table in tables for row in table.rows for task in row.tasks}
    if not tasks:
        raise InvalidInputError(
            "None of the tables that were asked for has a row for the data sets that were asked for."
        )
    outcome = Outcome()
    told: set[str] = set()

    def hear(kind: str, name: str, **more: Any) -> None:
        task = tasks[name]
        if kind == "done":
            # read back, so that a fresh run and a resumed one report the very same numbers
            found = store.get(name, task.settings)
            if found is None:
                kind, more = "failed", {"message": f"its result is missing from {store.folder}", **more}
            else:
                outcome.results[name] = found
        if kind == "failed":
            outcome.failures[name] = more["message"]
        if kind != "start":
            told.add(name)
        if progress is not None:
            progress(Event(kind, len(told), len(tasks), task, **more))
        if kind in ("done", "failed"):
            report.write(report.make(tables, outcome, settings), out)

    _collect(tasks.values(), store, outcome)
    for name in outcome.results:
        hear("kept", name)
    todo = [task for task in tasks.values() if task.name not in outcome.results]
    grouped = pool.groups(todo)
    try:
        if build is not None and min(processes, len(grouped)) > 1:
            pool.work(build, grouped, out, settings, processes, hear)
        else:
            shop = Workshop(out, settings)
            for task in todo:
                do(task, store, shop, partial(hear, name=task.name))
    finally:
        made = report.make(tables, outcome, settings)
        report.write(made, out)
    return made


def do(task: Task, store: CellStore, shop: Workshop, tell: Callable[..., None]) -> None:
    """Compute one task and keep its result; `tell` gets the kind of event and what there is to say."""
    tell("start")
    start, work = time.perf_counter(), time.process_time()
    try:
        result = task.run(shop)
    except Exception as error:  # whatever it is, hours of other cells do not depend on it
        tell("failed", message=f"{type(error).__name__}: {error}", seconds=time.perf_counter() - start)
        return
    kept = {**result, "task_seconds": time.process_time() - work, "finished": report.now()}
    store.put(task.name, task.settings, kept)
    tell("done", seconds=time.perf_counter() - start)


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
