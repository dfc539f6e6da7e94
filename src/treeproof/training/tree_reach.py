"""What an adversary pays to bring a row into a node's box, and each tree's worst case within the budget.

Paper sections 3.1 and 4.2. Costs are exact distances to the box, also where a path reads a feature several
times, in units of the budget: the terms add up to at most 1 (p = inf: their maximum is at most 1). The real
line's infimum is used (moving left across t costs |x - t|), and a relative 1e-9 is granted to the
adversary: the bounds are sound, never above the exact worst case. Cost: rows x leaves x depth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel

# the budget is 1; rounding of costs must never hide a box from the adversary
LIMIT = 1.0 + 1e-9


class Ball(NamedTuple):
    """The perturbations of a threat without scales: norm p and radius eps."""

    norm: float
    eps: float

    @property
    def moves(self) -> bool:
        """Whether anything can move at all."""
        return self.eps >= 1 if self.norm == 0 else self.eps > 0


class Boxes(NamedTuple):
    """Boxes as sides ``low <= x[feature] < high`` on the features that matter (CSR)."""

    offsets: np.ndarray  # int64 (n_boxes + 1,)
    feature: np.ndarray  # int64
    low: np.ndarray  # float64
    high: np.ndarray  # float64


@kernel
def side_cost(x, low, high, norm, eps):
    """Cost of moving one coordinate into [low, high), in units of the budget."""
    if x >= low and x < high:
        return 0.0
    if norm == 0.0:
        return 1.0 / np.floor(eps) if eps >= 1.0 else np.inf
    if eps == 0.0:
        return np.inf
    ratio = (low - x if x < low else x - high) / eps
    if norm == 1.0 or norm == np.inf:
        return ratio
    if norm == 2.0:
        return ratio * ratio
    return ratio**norm


@kernel
def side_costs(values, low, high, norm, eps):
    """`side_cost` of each value."""
    out = np.empty(len(values))
    for i in range(len(values)):
        out[i] = side_cost(values[i], low, high, norm, eps)
    return out


@kernel
def box_cost(columns, row, boxes, box, norm, eps):
    """Cost of moving a row into a box, in units of the budget."""
    total = 0.0
    for k in range(boxes.offsets[box], boxes.offsets[box + 1]):
        cost = side_cost(columns[boxes.feature[k], row], boxes.low[k], boxes.high[k], norm, eps)
        if norm == np.inf:
            total = max(total, cost)
        else:
            total += cost
        if total > LIMIT:
            break
    return total


@kernel
def worst_values(columns, side, boxes, values, norm, eps):
    """Per row the least ``side * value`` over the boxes within the budget (the boxes of one tree)."""
    rows = columns.shape[1]
    out = np.empty(rows)
    for i in range(rows):
        least = np.inf
        for b in range(len(boxes.offsets) - 1):
            gain = side[i] * values[b]
            if gain < least and box_cost(columns, i, boxes, b, norm, eps) <= LIMIT:
                least = gain
        out[i] = least
    return out


@kernel
def reachable(columns, boxes, norm, eps):
    """Which boxes each row can be brought into: (n_rows, n_boxes) bool."""
    rows, count = columns.shape[1], len(boxes.offsets) - 1
    out = np.empty((rows, count), dtype=np.bool_)
    for i in range(rows):
        for b in range(count):
            out[i, b] = box_cost(columns, i, boxes, b, norm, eps) <= LIMIT
    return out


def allowances(rest: np.ndarray, ball: Ball) -> np.ndarray:
    """How far one coordinate may move when the others have spent `rest` of the budget; -1: not at all."""
    norm, eps = ball
    if not ball.moves:
        return np.full(len(rest), -1.0)
    if norm == np.inf:
        return np.full(len(rest), eps * LIMIT)
    if norm == 0:
        return np.where(rest + 1.0 / np.floor(eps) <= LIMIT, np.inf, -1.0)
    left = np.maximum(LIMIT - rest, 0.0)
    return eps * (left if norm == 1 else left ** (1.0 / norm))
