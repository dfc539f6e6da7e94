"""Preprocessing exactly as in the paper's experiments (which take it from Andriushchenko & Hein).

Tables: the first 80% of the rows train, min-max scaling by the training rows. Images: k / 255 in
float64. Two classes are cut from many keeping the order of the rows.
"""

from __future__ import annotations

import numpy as np

from .dataset import Scaling

SPAMBASE_SEED = 0


def split_table(rows: np.ndarray, shuffle: bool) -> tuple[np.ndarray, ...]:
    """Divide a table into ``X_train, y_train, X_test, y_test``: the first 80% and the rest."""
    if shuffle:
        rows = rows[np.random.default_rng(SPAMBASE_SEED).permutation(len(rows))]
    cut = int(0.8 * len(rows))
    X, y = rows[:, :-1], rows[:, -1].astype(np.int64)
    return X[:cut], y[:cut], X[cut:], y[cut:]


def min_max(X_train: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray, Scaling]:
    """Scale columns so that the training rows fill [0, 1]; a constant column becomes 0."""
    low, high = X_train.min(axis=0), X_train.max(axis=0)
    scaling = Scaling(low, np.where(high > low, high - low, 1.0))
    return scaling.from_data_units(X_train), scaling.from_data_units(X_test), scaling


def choose_pair(X: np.ndarray, y: np.ndarray, pair: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Keep the rows of two classes, in their order; the first of the pair becomes class 1."""
    keep = np.isin(y, pair)
    return X[keep], (y[keep] == pair[0]).astype(np.int64)


def pixels(X: np.ndarray, dtype: str) -> np.ndarray:
    """Bytes to [0, 1], computed in float64 and rounded once."""
    if dtype == "float64":
        return X / 255.0
    return (np.arange(256) / 255.0).astype(dtype)[X]
