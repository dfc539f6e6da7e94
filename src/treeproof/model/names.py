"""Columns by their names: as they are, or as LightGBM writes them, which turns spaces into underscores."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence


def places(columns: Sequence[str], names: Collection[str]) -> dict[str, int]:
    """The position of each column, under its own name and (where no other column bears it) as LightGBM writes it."""
    found = {name: j for j, name in enumerate(columns)}
    written = [as_written(name) for name in columns]
    for j, name in enumerate(written):
        if name in names and name not in columns and written.count(name) == 1:
            found[name] = j
    return found


def as_written(name: str) -> str:
    """A name as LightGBM writes it."""
    return re.sub(r"\s", "_", name)
