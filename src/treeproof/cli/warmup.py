"""``treeproof warmup``: compile the fast loops once (they are cached on disk)."""

from __future__ import annotations

from time import perf_counter

import click

from . import console


@click.command()
@click.option("--quiet", "-q", is_flag=True, help="Say nothing.")
def command(quiet: bool) -> None:
    """Compile the fast loops once, so that later calls are quick."""
    from ..verify import warmup

    console.note("compiling (once; the result is cached on disk)...", quiet)
    start = perf_counter()
    warmup()
    if not quiet:
        console.show(f"ready: compiled and cached in {perf_counter() - start:.1f} s")
