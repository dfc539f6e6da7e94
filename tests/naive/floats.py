"""The float grid of a model's inputs, one number at a time: rounding, neighbours, closed cells."""

from __future__ import annotations

import math

import numpy as np


def cast(value: float, dtype: str) -> float:
    """The grid number nearest to `value`."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.dtype(dtype).type(value))


def largest(dtype: str) -> float:
    return float(np.finfo(dtype).max)


def following(value: float, dtype: str) -> float:
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(kind(value), kind(np.inf)))


def previous(value: float, dtype: str) -> float:
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(kind(value), kind(-np.inf)))


def at_or_above(value: float, dtype: str) -> float:
    """Smallest grid number >= value (inf if there is none)."""
    with np.errstate(over="ignore", under="ignore"):
        near = cast(value, dtype)
    return following(near, dtype) if near < value else near


def at_or_below(value: float, dtype: str) -> float:
    """Largest grid number <= value (-inf if there is none)."""
    return -at_or_above(-value, dtype)


def cells(thresholds, dtype: str) -> list[tuple[float, float]]:
    """Ascending closed cells [low, high] of finite grid numbers that no ``x < t`` tells apart; none empty."""
    cuts = sorted(set(thresholds))
    top = largest(dtype)
    found = []
    for start, stop in zip([-math.inf, *cuts], [*cuts, None], strict=True):
        low = max(at_or_above(start, dtype), -top)
        high = top if stop is None else min(previous(at_or_above(stop, dtype), dtype), top)
        if low <= high:
            found.append((low, high))
    return found
