"""The model's cells: per feature, the intervals between thresholds on which nothing changes.

Cell c of a feature holds the inputs with exactly c of its cuts at or below them: cell 0 ends just
before the first cut, cell c begins at cut c - 1. On the float grid every cell is closed: its first number
is the cut, its last the grid number before the next cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._jit import kernel
from .floats import previous

if TYPE_CHECKING:
    from .ensemble import TreeEnsemble


class Cuts(NamedTuple):
    """The distinct thresholds of every feature (CSR over all features)."""

    offsets: np.ndarray  # int64 (n_features + 1,)
    cuts: np.ndarray  # float64, ascending within a feature: the first number of the cell to the right
    before: np.ndarray  # float64: the last grid number of the cell to the left


class LeafBoxes(NamedTuple):
    """Each leaf's box as intervals of cells ``lo <= c < hi`` on the features that its path reads.

    A leaf may be reached with feature j missing iff its entry for j says so, or it has no entry for j.
    Leaves that nothing reaches are left out.
    """

    tree_offsets: np.ndarray  # int64 (n_trees + 1,): leaves of each tree
    node: np.ndarray  # int32: the leaf's node in the ensemble
    entry_offsets: np.ndarray  # int64 (n_leaves + 1,)
    feature: np.ndarray  # int32
    lo: np.ndarray  # int32
    hi: np.ndarray  # int32
    missing: np.ndarray  # bool: reached when this feature is missing


def cuts_of(model: TreeEnsemble) -> Cuts:
    """The distinct thresholds of every feature."""
    inner = model.feature >= 0
    pairs = np.unique(np.stack([model.feature[inner].astype(np.float64), model.threshold[inner]], axis=1), axis=0)
    counts = np.bincount(pairs[:, 0].astype(np.int64), minlength=model.n_features)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    cuts = np.ascontiguousarray(pairs[:, 1])
    return Cuts(offsets, cuts, previous(cuts, model.dtype))


def cut_of_node(model: TreeEnsemble, cuts: Cuts) -> np.ndarray:
    """The rank of each inner node's threshold among its feature's cuts (0 at leaves): cells up to it go left."""
    return _rank_nodes(model.feature, model.threshold, cuts.offsets, cuts.cuts)


@kernel
def _rank_nodes(feature, threshold, offsets, cuts):
    rank = np.zeros(len(feature), dtype=np.int32)
    for node in range(len(feature)):
        j = feature[node]
        if j >= 0:
            rank[node] = np.searchsorted(cuts[offsets[j] : offsets[j + 1]], threshold[node])
    return rank


def boxes_of(model: TreeEnsemble, cuts: Cuts) -> LeafBoxes:
    """Every reachable leaf's box."""
    parent = np.full(len(model.feature), -1, dtype=np.int32)
    inner = np.flatnonzero(model.feature >= 0)
    parent[model.left[inner]] = inner
    parent[model.right[inner]] = inner
    leaf_nodes = np.flatnonzero(model.feature < 0).astype(np.int32)
    rank = cut_of_node(model, cuts)
    size = np.diff(cuts.offsets).astype(np.int32) + 1
    keep, entry_offsets, feature, lo, hi, missing = _climb(
        leaf_nodes, parent, model.feature, model.left, model.missing_left, rank, size
    )
    if not model.accepts_missing:
        missing = np.zeros(len(missing), dtype=bool)
    return _kept(model, leaf_nodes, keep, entry_offsets, feature, lo, hi, missing)


def _kept(model, leaf_nodes, keep, entry_offsets, feature, lo, hi, missing) -> LeafBoxes:
    """Drop the leaves that no row reaches: an empty interval on a feature that is not missing there."""
    counts = np.diff(entry_offsets)
    if model.accepts_missing:
        empty = np.repeat(np.arange(len(leaf_nodes)), counts)[(lo >= hi) & ~missing]
        keep = np.ones(len(leaf_nodes), dtype=bool)
        keep[empty] = False
    entries = np.repeat(keep, counts)
    nodes = leaf_nodes[keep]
    per_tree = np.bincount(model.tree_of_node[nodes], minlength=model.n_trees)
    return LeafBoxes(
        np.concatenate([[0], np.cumsum(per_tree)]).astype(np.int64),
        nodes,
        np.concatenate([[0], np.cumsum(counts[keep])]).astype(np.int64),
        feature[entries],
        lo[entries],
        hi[entries],
        missing[entries],
    )


@kernel
def _climb(leaf_nodes, parent, node_feature, node_left, missing_left, rank, size):
    """Walk from each leaf to its root, intersecting the splits feature by feature."""
    n = len(leaf_nodes)
    offsets = np.zeros(n + 1, dtype=np.int64)
    keep = np.ones(n, dtype=np.bool_)
    total = 0
    for i in range(n):  # an upper bound of the entries: the depths
        node = leaf_nodes[i]
        while parent[node] >= 0:
            node = parent[node]
            total += 1
    feature = np.empty(total, dtype=np.int32)
    lo = np.empty(total, dtype=np.int32)
    hi = np.empty(total, dtype=np.int32)
    missing = np.empty(total, dtype=np.bool_)
    end = 0
    for i in range(n):
        start = end
        node = leaf_nodes[i]
        while parent[node] >= 0:
            up = parent[node]
            j = node_feature[up]
            e = start
            while e < end and feature[e] != j:
                e += 1
            if e == end:
                feature[e] = j
                lo[e] = 0
                hi[e] = size[j]
                missing[e] = True
                end += 1
            is_left = node_left[up] == node
            if is_left:
                hi[e] = min(hi[e], rank[up] + 1)
            else:
                lo[e] = max(lo[e], rank[up] + 1)
            missing[e] = missing[e] and (missing_left[up] == is_left)
            node = up
        for e in range(start, end):
            if lo[e] >= hi[e]:
                keep[i] = False
        offsets[i + 1] = end
    return keep, offsets, feature[:end], lo[:end], hi[:end], missing[:end]
