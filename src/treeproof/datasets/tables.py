"""Reading the three tables: text to one float64 array whose last column is the class (0 or 1)."""

from __future__ import annotations

import csv
import gzip
from importlib import resources
from pathlib import Path

import numpy as np

from .._errors import InvalidInputError
from .catalogue import FEATURE_NAMES, SOURCES


def embedded(source: str) -> bytes:
    """The file of a table that the package carries."""
    packed = resources.files(__package__).joinpath("tables", SOURCES[source].file + ".gz").read_bytes()
    return gzip.decompress(packed)


def parse(source: str, content: bytes, path: Path | str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the rows and the feature names of table `source`."""
    names: tuple[str, ...]
    try:
        lines = list(csv.reader(content.decode("utf-8-sig").splitlines()))
        if source == "breast-cancer":
            rows = np.array([line for line in lines if line and "?" not in line], dtype=np.float64)
            names = FEATURE_NAMES[source]
            rows[:, -1] = rows[:, -1] == 4
        else:
            rows = np.array([line for line in lines[1:] if line], dtype=np.float64)
            names = tuple(lines[0][:-1])
    except (ValueError, IndexError, csv.Error) as error:
        raise InvalidInputError(
            f"{path} must hold the comma-separated {source} table. Reading it failed: {error}."
        ) from error
    if rows.ndim != 2 or rows.shape[1] != len(names) + 1:
        raise InvalidInputError(
            f"{path} must hold the {source} table with {len(names) + 1} columns. Got the shape {rows.shape} instead."
        )
    return rows, names
