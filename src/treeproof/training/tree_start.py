"""What the first tree is added to: the trees of a fitted ensemble, one staircase a feature where it is additive.

An additive model comes as many stumps; each of them alone would meet the whole budget, and under one shared budget
each would be charged its part of a feature's cost. As one tree a feature, every step of a staircase is paid for by
the one distance that it is away.
"""

from __future__ import annotations

import numpy as np

from ..model import TreeEnsemble
from .additive_staircases import staircases_of
from .tree_growth import Draft, GrownTree, Split, finish, halves


def initial_trees(model: TreeEnsemble) -> tuple[float, list[GrownTree]]:
    """The base and the trees of a fitted one-output ensemble."""
    if model.is_additive:
        base, stairs = staircases_of(model)
        return base, [_staircase(stair.feature, stair.thresholds, stair.values) for stair in stairs]
    return float(model.base[0]), [_copied(model, t) for t in range(model.n_trees)]


def _split(draft: Draft, number: int, feature: int, threshold: float, values=(0.0, 0.0)) -> tuple[int, int]:
    """Make a leaf of the draft a split; its two children."""
    place = draft.places[number]
    paths = halves(place.path, Split(feature, threshold, 0.0))
    left, right = (draft.add(path, place.depth + 1, value).number for path, value in zip(paths, values, strict=True))
    draft.feature[number], draft.threshold[number], draft.value[number] = feature, threshold, 0.0
    draft.left[number], draft.right[number] = left, right
    return left, right


def _staircase(feature: int, thresholds: np.ndarray, values: np.ndarray) -> GrownTree:
    """A balanced tree over the steps of one feature."""
    draft = Draft()
    todo = [(draft.add({}, 0, float(values[0])).number, 0, len(values))]
    while todo:
        number, low, high = todo.pop()
        if high - low == 1:
            draft.value[number] = float(values[low])
            continue
        middle = (low + high) // 2
        left, right = _split(draft, number, int(feature), float(thresholds[middle - 1]))
        todo += [(right, middle, high), (left, low, middle)]
    return finish(draft)


def _copied(model: TreeEnsemble, t: int) -> GrownTree:
    """A tree of an ensemble."""
    draft = Draft()
    root = int(model.tree_offsets[t])
    todo = [(draft.add({}, 0, float(model.value[root, 0])).number, root)]
    while todo:
        number, node = todo.pop()
        if model.feature[node] < 0:
            continue
        children = int(model.left[node]), int(model.right[node])
        values = tuple(float(model.value[child, 0]) for child in children)
        pair = _split(draft, number, int(model.feature[node]), float(model.threshold[node]), values)
        todo += zip(pair, children, strict=True)
    return finish(draft)
