"""Batches of rows over threads, with progress and Ctrl-C between batches.

Rows are independent, kernels release the GIL, and each batch is a pure function of its rows: results do
not depend on `n_jobs`, and a cluster engine may call the same function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._errors import InvalidInputError, must_be


def check_jobs(n_jobs) -> int:
    """How many threads `n_jobs` asks for (None: 1; -1: all cores)."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise InvalidInputError(must_be("n_jobs", "a whole number other than 0 (-1: all cores), or None", n_jobs))
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def run_batches(work: Callable[[slice], Any], n: int, size: int, n_jobs: int, progress) -> tuple[dict[int, Any], bool]:
    """Call ``work`` on slices of at most ``size`` of n rows; results by first row, and whether interrupted."""
    slices = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    done: dict[int, Any] = {}
    with _reporter(progress, n) as report:
        try:
            if n_jobs == 1 or len(slices) == 1:
                for part in slices:
                    done[part.start] = work(part)
                    report(part.stop - part.start)
            else:
                _run_threads(work, slices, n_jobs, report, done)
        except KeyboardInterrupt:
            return done, True
    return done, False


def _run_threads(work, slices, n_jobs, report, done) -> None:
    with ThreadPoolExecutor(n_jobs) as pool:
        waiting = {pool.submit(work, part): part for part in slices}
        try:
            for future in as_completed(waiting):
                part = waiting[future]
                done[part.start] = future.result()
                report(part.stop - part.start)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise


@contextmanager
def _reporter(progress, n: int) -> Iterator[Callable[[int], None]]:
    """A function to call with the rows just finished: nothing, the caller's own, or a rich bar."""
    if not isinstance(progress, (bool, np.bool_)) and progress is not None and not callable(progress):
        raise InvalidInputError(must_be("progress", "True, False or a function of (rows done, rows)", progress))
    if not progress:
        yield lambda rows: None
        return
    finished = 0
    if callable(progress):

        def tell(rows: int) -> None:
            nonlocal finished
            finished += rows
            progress(finished, n)

        yield tell
        return
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:-1], TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"proving {n} rows (the first batch may compile)", total=n)
        yield lambda rows: bar.advance(task, rows)
