"""Where the staircases may step: candidate thresholds of each feature.

The certificate of an additive model improves with many small steps, since the adversary pays for each.
So thresholds are spread over a feature's range (or its quantiles), never lie on a data value, and where
several fall into one gap between neighbouring values they divide that gap evenly.
"""

from __future__ import annotations

import numpy as np

from .._errors import InvalidInputError, must_be

BINNINGS = ("uniform", "quantile", "mixed")


def thresholds_of(column, weight, max_bins: int, binning: str) -> np.ndarray:
    """Thresholds (at most ``max_bins - 1``, ascending) of one column; empty when it is constant."""
    values, inverse = np.unique(column + 0.0, return_inverse=True)
    if len(values) < 2 or max_bins < 2:
        return np.zeros(0)
    wanted = []
    if binning in ("uniform", "mixed"):
        steps = max_bins if binning == "uniform" else max(2, (max_bins + 1) // 2)
        fractions = np.arange(1, steps) / steps
        wanted.append(values[0] * (1.0 - fractions) + values[-1] * fractions)
    if binning in ("quantile", "mixed"):
        steps = max_bins if binning == "quantile" else max(2, max_bins // 2 + 1)
        mass = np.cumsum(np.bincount(inverse.ravel(), weights=weight))
        places = np.searchsorted(mass / mass[-1], np.arange(1, steps) / steps)
        wanted.append(
            (values[np.minimum(places, len(values) - 2)] + values[1:][np.minimum(places, len(values) - 2)]) / 2
        )
    return _inside_gaps(np.sort(np.concatenate(wanted)), values)


def _inside_gaps(positions, values) -> np.ndarray:
    """Move the positions inside the gaps that they fall in, evenly spaced there."""
    gap = np.clip(np.searchsorted(values, positions, side="right") - 1, 0, len(values) - 2)
    used, starts, counts = np.unique(gap, return_index=True, return_counts=True)
    rank = np.arange(len(gap)) - np.repeat(starts, counts)
    share = (rank + 1.0) / np.repeat(counts + 1.0, counts)
    low, high = values[np.repeat(used, counts)], values[np.repeat(used, counts) + 1]
    placed = np.unique(low * (1.0 - share) + high * share)
    # neighbouring floats leave no room between them: then the threshold is the upper value
    return placed[placed > values[0]]


def thresholds_for(X, weight, max_bins: int, binning: str, given=None) -> list[np.ndarray]:
    """One array of thresholds a feature; `given` replaces the search."""
    if given is not None:
        return _given_thresholds(given, X.shape[1])
    return [thresholds_of(X[:, j], weight, max_bins, binning) for j in range(X.shape[1])]


def _given_thresholds(given, n_features: int) -> list[np.ndarray]:
    """Checked thresholds that the user states."""
    try:
        arrays = [np.unique(np.asarray(one, dtype=np.float64).ravel()) for one in given]
    except (TypeError, ValueError):
        arrays = []
    if len(arrays) != n_features or not all(np.all(np.isfinite(one)) for one in arrays):
        raise InvalidInputError(
            must_be("thresholds", f"a list of {n_features} arrays of finite numbers, one a feature", given)
        )
    return [one + 0.0 for one in arrays]


def codes_of(X, thresholds) -> np.ndarray:
    """Each row's own cell in each feature, int16: the number of thresholds at or below the value."""
    code = np.empty((len(X), len(thresholds)), dtype=np.int16)
    for j, steps in enumerate(thresholds):
        code[:, j] = np.searchsorted(steps, X[:, j], side="right")
    return code
