"""Run a command in a process of its own and measure its CPU time, which a busy machine does not distort."""

from __future__ import annotations

import subprocess

import pytest


def measured(words: list[str], times: int = 2) -> tuple[subprocess.CompletedProcess, float]:
    """The last run, and the least CPU seconds (user and system) of `times` runs."""
    resource = pytest.importorskip("resource", reason="CPU times of other processes need POSIX")
    best = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(words, capture_output=True, text=True, timeout=200)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return done, best
