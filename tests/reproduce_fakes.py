"""A table of six cheap cells that notes every computation, for the tests of `treeproof reproduce`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from treeproof._errors import MethodError
from treeproof.reproduce import report, runner
from treeproof.reproduce.settings import Settings
from treeproof.reproduce.tasks import PERCENT, SECONDS, Row, Table, Task, number

COUNT = 6


def fake_table(
    log: Path,
    pause: float = 0.0,
    stop_at: int | None = None,
    fail_at: int | None = None,
    die_at: int | None = None,
) -> Table:
    """A table of six cells with seeded numbers; every computation is noted in a file."""

    def task(index: int) -> Task:
        def run(shop):
            if index == stop_at:
                raise KeyboardInterrupt
            if index == fail_at:
                raise MethodError("this method cannot do it")
            if index == die_at:
                os._exit(9)
            time.sleep(pause)
            with log.open("a") as stream:
                stream.write(f"{index}\n")
            value = float(np.random.default_rng(index).random() * 100)
            return {"verified": value, "seconds": time.perf_counter(), "curve": [value, value / 3]}

        return Task(f"fake/{index}", {"index": index}, run, "half the rows" if index == 1 else "")

    tasks = [task(index) for index in range(COUNT)]
    rows = tuple(
        Row(
            {"data set": "diabetes", "row": str(index)},
            (
                number(one, "verified", "verified", PERCENT, 50.0),
                number(one, "seconds", "time", SECONDS, 2.0),
            ),
            "diabetes" if index else "mnist-1-5",
        )
        for index, one in enumerate(tasks)
    )
    return Table("fake", "A fake table", "For tests.", rows)


def run_fake(out: Path, log: Path, **how):
    return runner.run([fake_table(log, **how)], out, Settings())


def numbers(made: report.Report) -> list:
    return [cell.ours for cell in made.cells()]


def done(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().split()] if log.exists() else []
