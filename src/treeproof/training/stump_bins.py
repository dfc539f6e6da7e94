"""Candidate thresholds of each feature, from the training rows.

"uniform" cuts a feature's range into equal steps (the paper's bins); "midpoints" takes points between
neighbouring values; "shifted" takes x - eps and x + eps just out of an adversary's reach, where the robust
loss of linf stumps has its kinks (Andriushchenko & Hein). Thresholds depend on the set of values only, so
repeating a row changes nothing. Constant features have none.
"""

from __future__ import annotations

import numpy as np

from .stump_screen import Columns

KINDS = ("uniform", "midpoints", "shifted")


def thresholds_of(values: np.ndarray, kind: str, max_bins: int | None, eps: float) -> np.ndarray:
    """Ascending thresholds of one feature; at most ``max_bins - 1``; each leaves rows on both sides."""
    seen = np.unique(values)
    if len(seen) < 2:
        return np.zeros(0)
    low, high = seen[0], seen[-1]
    if kind == "uniform" and max_bins is not None:
        share = np.arange(1, max_bins) / max_bins
        found = low + share * (high - low)
    elif kind == "shifted":
        found = np.unique(np.concatenate([np.nextafter(seen - eps, -np.inf), np.nextafter(seen + eps, np.inf), seen]))
        # an eps beyond the range leaves only the thresholds at the values themselves
        found = _thinned(found[(found > low) & (found <= high)], max_bins)
    else:
        found = _thinned(0.5 * seen[:-1] + 0.5 * seen[1:], max_bins)
    found = np.unique(found[np.isfinite(found)])
    return found[(found > low) & (found <= high)]


def _thinned(found: np.ndarray, max_bins: int | None) -> np.ndarray:
    """At most ``max_bins - 1`` of the thresholds, evenly by rank."""
    if max_bins is None or len(found) < max_bins:
        return found
    places = np.round(np.linspace(0, len(found) - 1, max_bins + 1)[1:-1]).astype(np.int64)
    return found[places]


def columns_of(X: np.ndarray, kind: str, max_bins: int | None, eps: float) -> Columns:
    """Rows by feature with their candidate thresholds."""
    values = np.ascontiguousarray(X.T)
    found = [thresholds_of(column, kind, max_bins, eps) for column in values]
    start = np.concatenate([[0], np.cumsum([len(edge) for edge in found])]).astype(np.int64)
    edge = np.concatenate(found) if found else np.zeros(0)
    codes = np.empty(values.shape, dtype=np.int32)
    for j, column in enumerate(values):
        codes[j] = np.searchsorted(found[j], column, side="right")
    return Columns(values, codes, start, edge, np.nextafter(edge, -np.inf))


def rows_of(columns: Columns, chosen: np.ndarray) -> Columns:
    """The same candidates with some of the rows."""
    return columns._replace(
        values=np.ascontiguousarray(columns.values[:, chosen]), codes=np.ascontiguousarray(columns.codes[:, chosen])
    )
