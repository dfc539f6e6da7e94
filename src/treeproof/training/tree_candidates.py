"""Candidate thresholds of a tree trainer: inside the gaps between neighbouring training values.

One threshold in the middle of each gap (or several, evenly spaced). Where that makes more than `max_bins` a
feature, half of those kept are spread evenly over the gaps, and half over the feature's range: the wide gaps,
which are worth most to a robust split, hold most of the range and so are kept. The rule looks at distinct
values only, so that a row's weight and a repeated row are the same thing. Cost: one sort a feature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Candidates(NamedTuple):
    """Thresholds to try, feature after feature, ascending within each."""

    offsets: np.ndarray  # int64 (n_features + 1,)
    cuts: np.ndarray  # float64


def between(values: np.ndarray, per_gap: int, max_bins: int | None) -> np.ndarray:
    """Thresholds inside the gaps of sorted distinct `values`."""
    if len(values) < 2:
        return np.empty(0)
    low, high = values[:-1, None], values[1:, None]
    share = (np.arange(per_gap) + 1.0) / (per_gap + 1.0)
    # halves before the difference: the gap itself may overflow
    cuts = np.clip(low * (1.0 - share) + high * share, low, high)
    # x < cut goes left, so a cut must be above the lower value (neighbouring floats have no middle)
    cuts = np.unique(np.where(cuts > low, cuts, high))
    if max_bins is None or len(cuts) <= max_bins:
        return cuts
    by_rank = max_bins // 2
    ranks = ((np.arange(by_rank) + 0.5) / by_rank * len(cuts)).astype(np.int64) if by_rank else np.empty(0, np.int64)
    share = (np.arange(max_bins - by_rank) + 0.5) / (max_bins - by_rank)
    places = values[0] * (1.0 - share) + values[-1] * share
    gaps = np.clip(np.searchsorted(values, places, "right") - 1, 0, len(values) - 2)
    # the middle cut of the gap that holds each place
    first = np.searchsorted(cuts, values[gaps], "right")
    middle = np.minimum(first + (per_gap - 1) // 2, len(cuts) - 1)
    return cuts[np.unique(np.concatenate([ranks, middle]))]


def candidates(columns: np.ndarray, max_bins: int | None, per_gap: int = 1) -> Candidates:
    """Candidate thresholds for rows given as `columns` (n_features, n_rows)."""
    found = [between(np.unique(column), per_gap, max_bins) for column in columns]
    offsets = np.concatenate([[0], np.cumsum([len(cuts) for cuts in found])]).astype(np.int64)
    return Candidates(offsets, np.ascontiguousarray(np.concatenate(found)) if found else np.empty(0))
