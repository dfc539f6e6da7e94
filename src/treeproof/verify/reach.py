"""Which leaves a row can reach within a cost, and what cells give it: shared by the general verifiers.

The distance of a leaf's box is Proposition 1 of the paper on the model's own cells. Exact up to float64
rounding of sums (`ResolvedThreat.rounding`). O(leaves x depth) a row, most leaves rejected by their first entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._jit import lean
from .costs import price_of_cells

if TYPE_CHECKING:
    from .problem import Problem


@lean
def price_leaves(boxes, offsets, row, p, cap, out):
    """Cost of each leaf's box on its own (sum over features; the largest at p = inf), inf above `cap`."""
    for leaf in range(len(boxes.node)):
        total = 0.0
        for e in range(boxes.entry_offsets[leaf], boxes.entry_offsets[leaf + 1]):
            j = boxes.feature[e]
            if row.own[j] < 0:
                if not boxes.missing[e]:
                    total = np.inf
                    break
                continue
            price, _ = price_of_cells(row, offsets[j] + j, boxes.lo[e], boxes.hi[e], row.own[j])
            total = max(total, price) if p == np.inf else total + price
            if total > cap:
                total = np.inf
                break
        out[leaf] = total


@lean
def own_leaves(boxes, row, out):
    """The leaf of each tree that the row itself reaches (position among the boxes' leaves)."""
    for t in range(len(boxes.tree_offsets) - 1):
        out[t] = -1
        for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
            inside = True
            for e in range(boxes.entry_offsets[leaf], boxes.entry_offsets[leaf + 1]):
                own = row.own[boxes.feature[e]]
                if own < 0:
                    inside = boxes.missing[e]
                else:
                    inside = boxes.lo[e] <= own < boxes.hi[e]
                if not inside:
                    break
            if inside:
                out[t] = leaf
                break


def moved(problem: Problem, row, x: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The changes (features, values) that bring x into the given cell of each feature (-1: wherever it is)."""
    feature = np.flatnonzero((cells >= 0) & (cells != row.own)).astype(np.int32)
    value = row.landing[problem.cuts.offsets[feature] + feature + cells[feature]]
    return feature, value
