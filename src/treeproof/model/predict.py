"""Scores of rows, added as the model's own library adds them: base first, then tree after tree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .._jit import kernel, lean

if TYPE_CHECKING:
    from .ensemble import TreeEnsemble

BATCH = 8192


@lean
def leaf_of(feature, threshold, left, right, missing_left, root, row):
    """The leaf that a row reaches from a root."""
    node = root
    while feature[node] >= 0:
        x = row[feature[node]]
        if np.isnan(x):
            go_left = missing_left[node]
        else:
            go_left = x < threshold[node]
        node = left[node] if go_left else right[node]
    return node


@lean
def _scores64(feature, threshold, left, right, missing_left, value, offsets, base, X, out):
    for i in range(X.shape[0]):
        for k in range(value.shape[1]):
            out[i, k] = base[k]
        for t in range(len(offsets) - 1):
            node = leaf_of(feature, threshold, left, right, missing_left, offsets[t], X[i])
            for k in range(value.shape[1]):
                out[i, k] += value[node, k]


@lean
def _scores32(feature, threshold, left, right, missing_left, value, offsets, base, X, out):
    for i in range(X.shape[0]):
        for k in range(value.shape[1]):
            out[i, k] = base[k]
        for t in range(len(offsets) - 1):
            node = leaf_of(feature, threshold, left, right, missing_left, offsets[t], X[i])
            for k in range(value.shape[1]):
                out[i, k] = np.float32(out[i, k] + value[node, k])


@lean
def _leaves(feature, threshold, left, right, missing_left, offsets, X, out):
    for i in range(X.shape[0]):
        for t in range(len(offsets) - 1):
            out[i, t] = leaf_of(feature, threshold, left, right, missing_left, offsets[t], X[i])


@kernel
def softmax(scores, _steepness):
    """In place: exp in the scores' own type, added up in float64, divided in the own type, as the libraries do."""
    for i in range(scores.shape[0]):
        largest = scores[i].max()
        total = 0.0
        for k in range(scores.shape[1]):
            scores[i, k] = math.exp(scores[i, k] - largest)
            total += np.float64(scores[i, k])
        for k in range(scores.shape[1]):
            scores[i, k] /= scores.dtype.type(total)


@kernel
def sigmoid(scores, steepness):
    """In place."""
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            size = -steepness * scores[i, k]
            scores[i, k] = 1.0 / (1.0 + math.exp(size)) if size < 700.0 else 0.0


def _arrays(model: TreeEnsemble) -> tuple:
    return model.feature, model.threshold, model.left, model.right, model.missing_left


def scores(model: TreeEnsemble, X: np.ndarray) -> np.ndarray:
    """Scores (n, n_outputs) of checked rows."""
    out = np.empty((len(X), model.n_outputs))
    base, value = model.base, model.value
    run = _scores64
    if model.sum_dtype == "float32":
        # a float64 sum of two float32 numbers, rounded to float32, is their float32 sum
        run = _scores32
        base, value = (array.astype(np.float32).astype(np.float64) for array in (base, value))
    for start in range(0, len(X), BATCH):
        rows = model.cast(X[start : start + BATCH])
        run(*_arrays(model), value, model.tree_offsets, base, rows, out[start : start + BATCH])
    return out


def leaves(model: TreeEnsemble, X: np.ndarray) -> np.ndarray:
    """The node (in the ensemble's arrays) that each row reaches in each tree, (n, n_trees)."""
    out = np.empty((len(X), model.n_trees), dtype=np.int32)
    for start in range(0, len(X), BATCH):
        rows = model.cast(X[start : start + BATCH])
        _leaves(*_arrays(model), model.tree_offsets, rows, out[start : start + BATCH])
    return out
