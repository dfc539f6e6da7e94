"""Who hears of the rounds: the log, a bar on standard error, or the user's function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .progress import tell_round


@contextmanager
def teller(progress: Any, label: str) -> Iterator[Any]:
    """The function ``(done, rounds)`` that training calls after each round."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda done, rounds: tell_round(label, done, rounds)
    else:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label or "training", total=None)
            yield lambda done, rounds: bar.update(task, completed=done, total=rounds)
