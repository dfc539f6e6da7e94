"""A clock that stands still while loops are compiled.

Compiling takes longer than most answers. Time limits and the seconds of a result are those of the work itself,
on the first call too; `_jit` says when numba starts and ends.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter


class Compiling:
    """Adds up the time spent compiling (loading from the cache is no compiling)."""

    def __init__(self) -> None:
        self.depth, self.since, self.spent = 0, 0.0, 0.0
        self.announce: Callable[[], None] | None = None

    def start(self) -> None:
        self.depth += 1
        if self.depth == 1:
            self.since = perf_counter()
            tell, self.announce = self.announce, None
            if tell is not None:
                tell()

    def end(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.spent += perf_counter() - self.since


compiling = Compiling()


def clock() -> float:
    """Seconds, of which compiling takes none."""
    now = compiling.since if compiling.depth else perf_counter()
    return now - compiling.spent


def announce_compiling(tell: Callable[[], None] | None) -> None:
    """Have `tell` called when something is compiled next, once; None to say nothing."""
    compiling.announce = tell
