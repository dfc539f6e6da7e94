"""The additive view: an ensemble whose trees each read one feature is a sum of staircases, one a feature."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .cells import Cuts, cut_of_node

if TYPE_CHECKING:
    from .ensemble import TreeEnsemble


class Staircases(NamedTuple):
    """Scores (less the cut) as ``base + sum over used features j of value[cell of x_j]``."""

    feature: np.ndarray  # int64 (m,): the used features
    offsets: np.ndarray  # int64 (m + 1,): cuts of the i-th used feature; its cells begin at offsets[i] + i
    cuts: np.ndarray  # float64: the first number of the cell to the right
    before: np.ndarray  # float64: the last number of the cell to the left
    value: np.ndarray  # float64 (cells, n_outputs)
    missing: np.ndarray  # float64 (m, n_outputs): the value of a missing x_j
    base: np.ndarray  # float64 (n_outputs,)


def staircases_of(model: TreeEnsemble, cuts: Cuts, exact: bool = False) -> Staircases:
    """Add up the trees of each feature, cell by cell; `exact`: as Fractions, in object arrays."""
    used = model.used_features.astype(np.int64)
    counts = np.diff(cuts.offsets)[used]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    leaf, base, cut = model.value, model.base, np.float64(model.cut)
    if exact:
        leaf, base, cut = (np.vectorize(Fraction, otypes=[object])(numbers) for numbers in (leaf, base, cut))
    value = np.zeros((len(cuts.cuts) + len(used), model.n_outputs), dtype=leaf.dtype)
    missing = np.zeros((len(used), model.n_outputs), dtype=leaf.dtype)
    base = base - cut
    rank = cut_of_node(model, cuts)
    place = np.full(model.n_features, -1)
    place[used] = np.arange(len(used))
    for root in model.tree_offsets[:-1]:
        j = model.feature[root]
        if j < 0:
            base += leaf[root]
            continue
        i = place[j]
        first = offsets[i] + i
        _add_tree(model, leaf, rank, root, value[first : first + counts[i] + 1])
        node = root
        while model.feature[node] >= 0:
            node = model.left[node] if model.missing_left[node] else model.right[node]
        missing[i] += leaf[node]
    return Staircases(used, offsets, cuts.cuts, cuts.before, value, missing, base)


def _add_tree(model: TreeEnsemble, leaf: np.ndarray, rank: np.ndarray, root: int, cells: np.ndarray) -> None:
    """Add a one-feature tree's leaves to the cells that reach them."""
    stack = [(root, 0, len(cells))]
    while stack:
        node, lo, hi = stack.pop()
        if lo >= hi:
            continue
        if model.feature[node] < 0:
            cells[lo:hi] += leaf[node]
            continue
        middle = int(rank[node]) + 1
        stack.append((model.left[node], lo, min(hi, middle)))
        stack.append((model.right[node], max(lo, middle), hi))
