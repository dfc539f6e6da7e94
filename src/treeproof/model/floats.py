"""Float grids: the neighbours of a number among the floats that a model really receives.

A model sees float32 or float64 inputs, so "x < t" is a statement about a finite grid of numbers:
"x is at most the last grid number below t". Everything in treeproof is said about that grid.
"""

from __future__ import annotations

import numpy as np


def ceil_to(values, dtype) -> np.ndarray:
    """Smallest number of ``dtype``'s grid at or above each value, as float64 (overflow gives inf)."""
    values = np.asarray(values, dtype=np.float64)
    if np.dtype(dtype) == np.float64:
        return values + 0.0  # turns -0.0 into 0.0
    with np.errstate(over="ignore", under="ignore"):
        near = values.astype(dtype)
        up = np.nextafter(near, np.array(np.inf, dtype=dtype))
    return np.where(near.astype(np.float64) < values, up, near).astype(np.float64) + 0.0


def floor_to(values, dtype) -> np.ndarray:
    """Largest number of ``dtype``'s grid at or below each value, as float64."""
    return -ceil_to(-np.asarray(values, dtype=np.float64), dtype) + 0.0


def previous(values, dtype) -> np.ndarray:
    """The grid number just below each grid number, as float64."""
    values = np.asarray(values, dtype=np.float64).astype(dtype)
    with np.errstate(over="ignore", under="ignore"):  # beyond the largest number lies infinity
        return np.nextafter(values, np.array(-np.inf, dtype=dtype)).astype(np.float64)


def following(values, dtype) -> np.ndarray:
    """The grid number just above each grid number, as float64."""
    values = np.asarray(values, dtype=np.float64).astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        return np.nextafter(values, np.array(np.inf, dtype=dtype)).astype(np.float64)


def just_above(values, dtype) -> np.ndarray:
    """Smallest grid number strictly above each (float64) value: turns ``x <= v`` into ``x < result``."""
    floor = floor_to(values, dtype)
    return following(floor, dtype)
