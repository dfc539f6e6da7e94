"""Candidate thresholds of a tree trainer: inside the gaps between neighbouring training values.

One threshold in the middle of each gap (or several, evenly spaced), thinned evenly to at most `max_bins`
a feature. The rule looks at distinct values only, so that a row's weight and a repeated row are the same
thing. Cost: one sort a feature.
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
    if max_bins is not None and len(cuts) > max_bins:
        cuts = cuts[np.round(np.linspace(0, len(cuts) - 1, max_bins)).astype(np.int64)]
    return cuts


def candidates(columns: np.ndarray, max_bins: int | None, per_gap: int = 1) -> Candidates:
    """Candidate thresholds for rows given as `columns` (n_features, n_rows)."""
    found = [between(np.unique(column), per_gap, max_bins) for column in columns]
    offsets = np.concatenate([[0], np.cumsum([len(cuts) for cuts in found])]).astype(np.int64)
    return Candidates(offsets, np.ascontiguousarray(np.concatenate(found)) if found else np.empty(0))
