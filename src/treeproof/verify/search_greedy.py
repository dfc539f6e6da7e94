"""`search`, fast flips: move one feature at a time, the most loss for its cost first; then take back.

Not exact and proves nothing: it gives the search a first upper bound, and `attack` its witnesses. Each step
re-scores only the features of the trees that the last move touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._jit import kernel
from ..model.cells import cut_of_node

if TYPE_CHECKING:
    from .problem import Problem


class Walk(NamedTuple):
    """The trees, read by cells instead of numbers."""

    feature: np.ndarray  # (nodes,), -1 at leaves
    rank: np.ndarray  # (nodes,): cells up to it go left
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    roots: np.ndarray
    reader_start: np.ndarray  # (d + 1,): the trees that read each feature
    readers: np.ndarray
    read_start: np.ndarray  # (trees + 1,): the features that each tree reads
    reads: np.ndarray


def walk_of(problem: Problem) -> Walk:
    """The model as `flip` reads it."""
    model = problem.model
    inner = np.flatnonzero(model.feature >= 0)
    pairs = np.unique(np.stack([model.feature[inner].astype(np.int64), model.tree_of_node[inner]]), axis=1)
    by_tree = pairs[:, np.lexsort((pairs[0], pairs[1]))]
    return Walk(
        model.feature,
        cut_of_node(model, problem.cuts),
        model.left,
        model.right,
        model.missing_left,
        np.ascontiguousarray(model.tree_offsets[:-1]),
        np.searchsorted(pairs[0], np.arange(model.n_features + 1)).astype(np.int64),
        np.ascontiguousarray(pairs[1]),
        np.searchsorted(by_tree[1], np.arange(model.n_trees + 1)).astype(np.int64),
        np.ascontiguousarray(by_tree[0]),
    )


@kernel
def value_of(walk, value, cells, t):
    """Tree t's value at the given cells (-1: missing)."""
    node = walk.roots[t]
    while walk.feature[node] >= 0:
        cell = cells[walk.feature[node]]
        left = walk.missing_left[node] if cell < 0 else cell <= walk.rank[node]
        node = walk.left[node] if left else walk.right[node]
    return value[node]


@kernel
def total_value(walk, value, cells):
    """The sum of all trees at the given cells."""
    total = 0.0
    for t in range(len(walk.roots)):
        total += value_of(walk, value, cells, t)
    return total


@kernel
def _score(walk, value, offsets, row, cells, lost, wanted, j):
    """Feature j's best step: (loss for its cost, cell)."""
    best, best_cell = 0.0, -1
    start, now = offsets[j] + j, cells[j]
    if now < 0:
        return best, best_cell
    for k in range(offsets[j + 1] - offsets[j] + 1):
        price = row.price[start + k]
        if k == now or not price < np.inf:
            continue
        more = price - row.price[start + now]
        cells[j] = k
        loss = 0.0
        for i in range(walk.reader_start[j], walk.reader_start[j + 1]):
            t = walk.readers[i]
            loss += lost[t] - value_of(walk, value, cells, t)
        cells[j] = now
        if loss <= 0.0:
            continue
        loss = min(loss, wanted)
        score = loss / more if more > 1e-300 else 1e300
        if score > best:
            best, best_cell = score, k
    return best, best_cell


@kernel
def flip(walk, value, offsets, row, cells, whole, target):
    """Move `cells` until the trees lose `target` of their sum `whole`, then take back; whether it got there."""
    n_trees, d = len(walk.roots), len(cells)
    lost = np.empty(n_trees)
    total = 0.0
    for t in range(n_trees):
        lost[t] = value_of(walk, value, cells, t)
        total += lost[t]
    score, step = np.zeros(d), np.full(d, -1, dtype=np.int64)
    stale = np.ones(d, dtype=np.bool_)
    for _ in range(4 * d + 16):
        if whole - total >= target:
            break
        best = -1
        for j in range(d):
            if stale[j] and walk.reader_start[j + 1] > walk.reader_start[j]:
                score[j], step[j] = _score(walk, value, offsets, row, cells, lost, target - (whole - total), j)
                stale[j] = False
            if step[j] >= 0 and (best < 0 or score[j] > score[best]):
                best = j
        if best < 0:
            return False
        cells[best] = step[best]
        step[best] = -1
        for i in range(walk.reader_start[best], walk.reader_start[best + 1]):
            t = walk.readers[i]
            new = value_of(walk, value, cells, t)
            total += new - lost[t]
            lost[t] = new
            for r in range(walk.read_start[t], walk.read_start[t + 1]):
                stale[walk.reads[r]] = True
    if whole - total < target:
        return False
    take_back(walk, value, offsets, row, cells, whole, target)
    return whole - total_value(walk, value, cells) >= target


@kernel
def take_back(walk, value, offsets, row, cells, whole, target):
    """Bring each moved feature to its cheapest cell that keeps the flip, dearest first, until nothing changes."""
    d = len(cells)
    total = total_value(walk, value, cells)
    again = True
    while again:
        again = False
        price = np.full(d, -1.0)
        for j in range(d):
            if cells[j] >= 0 and cells[j] != row.own[j]:
                price[j] = row.price[offsets[j] + j + cells[j]]
        for j in np.argsort(-price):
            if price[j] < 0.0:
                break
            old, cheapest, best, best_total = cells[j], price[j], cells[j], total
            start = offsets[j] + j
            here = 0.0
            for i in range(walk.reader_start[j], walk.reader_start[j + 1]):
                here += value_of(walk, value, cells, walk.readers[i])
            for k in range(offsets[j + 1] - offsets[j] + 1):
                if row.price[start + k] >= cheapest:
                    continue
                cells[j] = k
                there = total - here
                for i in range(walk.reader_start[j], walk.reader_start[j + 1]):
                    there += value_of(walk, value, cells, walk.readers[i])
                if whole - there >= target:
                    cheapest, best, best_total = row.price[start + k], k, there
            cells[j] = best
            if best != old:
                total = best_total
                again = True
