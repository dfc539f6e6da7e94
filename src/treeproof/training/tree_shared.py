"""The worst case of a whole ensemble under ONE budget: a bound far above "every tree spends it all".

For a multiplier lam >= 0 and any split of each feature's cost among the trees that read it (shares adding up
to 1), weak duality gives

    min over the ball of y F(x')  >=  y base - lam + sum over trees of min over leaves (y value + lam price)

with the budget as the unit of price. The right side is concave in lam and jointly concave in the leaf values, so
training all leaf values under it is a convex problem. The best lam is found per row by intersecting tangents.
With disjoint trees the bound is the LP relaxation of the exact worst case. Sound for any p; at p = inf nothing
is spent and lam is 0. Cost: rows x leaves x depth once, then rows x reachable leaves x a few tangents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .tree_reach import LIMIT, Ball, Boxes, box_cost, side_cost

_TANGENTS = 40


class Reach(NamedTuple):
    """The leaves that each row can be brought to, tree by tree (CSR over row * n_trees + tree)."""

    start: np.ndarray  # int64 (n_rows * n_trees + 1,)
    leaf: np.ndarray  # int32, numbered through all trees
    price: np.ndarray  # float32, in units of the budget, rounded down


class Leaves(NamedTuple):
    """All leaves of an ensemble."""

    boxes: Boxes
    offsets: np.ndarray  # int64 (n_trees + 1,)
    share: np.ndarray  # float64, one a side of a box: the part of the feature's cost that this tree charges


def join_leaves(parts: list[Boxes]) -> Leaves:
    """The leaves of several trees, each feature's cost shared equally by the trees that read it."""
    sizes = [len(part.offsets) - 1 for part in parts]
    sides = np.concatenate([[0], np.cumsum([len(part.feature) for part in parts])])
    boxes = Boxes(
        offsets=np.concatenate(
            [[0], *[part.offsets[1:] + first for part, first in zip(parts, sides[:-1], strict=True)]]
        ).astype(np.int64),
        feature=np.concatenate([part.feature for part in parts]).astype(np.int64),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
    )
    readers = np.zeros(int(boxes.feature.max()) + 1 if len(boxes.feature) else 1)
    for part in parts:
        readers[np.unique(part.feature)] += 1
    share = 1.0 / readers[boxes.feature] if len(boxes.feature) else np.empty(0)
    return Leaves(boxes, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), share)


@kernel
def _shared_price(columns, row, boxes, share, box, norm, eps):
    """The price of a box when each side is charged its share only; 0 at p = inf."""
    total = 0.0
    if norm == np.inf:
        return total
    for k in range(boxes.offsets[box], boxes.offsets[box + 1]):
        j = boxes.feature[k]
        total += share[k] * side_cost(columns[j, row], boxes.low[k], boxes.high[k], norm, eps)
    return total


@kernel
def _count_reach(columns, leaves, norm, eps):
    """CSR offsets: how many leaves of each tree each row can be brought to."""
    rows, trees = columns.shape[1], len(leaves.offsets) - 1
    start = np.zeros(rows * trees + 1, dtype=np.int64)
    for i in range(rows):
        for t in range(trees):
            count = 0
            for b in range(leaves.offsets[t], leaves.offsets[t + 1]):
                if box_cost(columns, i, leaves.boxes, b, norm, eps) <= LIMIT:
                    count += 1
            start[i * trees + t + 1] = start[i * trees + t] + count
    return start


@kernel
def _fill_reach(columns, leaves, start, norm, eps):
    """The leaves and their prices (the costs are computed again: keeping them would need rows x leaves bytes)."""
    rows, trees = columns.shape[1], len(leaves.offsets) - 1
    leaf = np.empty(start[-1], dtype=np.int32)
    price = np.empty(start[-1], dtype=np.float32)
    for i in range(rows):
        for t in range(trees):
            place = start[i * trees + t]
            for b in range(leaves.offsets[t], leaves.offsets[t + 1]):
                if box_cost(columns, i, leaves.boxes, b, norm, eps) <= LIMIT:
                    leaf[place] = b
                    # rounded down, so that float32 never makes a leaf dearer than it is
                    cost = _shared_price(columns, i, leaves.boxes, leaves.share, b, norm, eps)
                    price[place] = np.float32(cost * (1.0 - 1e-6))
                    place += 1
    return leaf, price


def reach_of(columns: np.ndarray, leaves: Leaves, ball: Ball) -> Reach:
    """Which leaves each row can be brought to, and at what price."""
    norm, eps = float(ball.norm), float(ball.eps)
    start = _count_reach(columns, leaves, norm, eps)
    leaf, price = _fill_reach(columns, leaves, start, norm, eps)
    return Reach(start, leaf, price)


@kernel
def pick_leaves(reach, values, row, side, lam, limit, chosen):
    """Each tree's cheapest leaf at multiplier lam (ties: the lower price); (sum, price spent).

    Leaves dearer than `limit` are out of reach (a smaller radius while training warms up).
    """
    total, spent = 0.0, 0.0
    trees = len(chosen)
    for t in range(trees):
        least, cost, best = np.inf, 0.0, -1
        for k in range(reach.start[row * trees + t], reach.start[row * trees + t + 1]):
            price = reach.price[k]
            if price > limit:
                continue
            gain = side * values[reach.leaf[k]]
            if lam == np.inf:
                # only free leaves; the worst of them
                if price > 0.0:
                    continue
            else:
                gain += lam * price
            if gain < least or (gain == least and price < cost):
                least, cost, best = gain, price, reach.leaf[k]
        chosen[t] = best
        total += least
        spent += cost
    return total, spent


@kernel
def shared_bound(reach, values, row, side, budget, guess, dear, cheap):
    """The best bound of a row: (bound, lam, theta), and the picks on both sides of the best lam.

    The bound's supergradient in the values is theta * (picks `dear`, which overspend) + (1 - theta) * (picks
    `cheap`): together they spend the budget exactly.
    """
    total, spent = pick_leaves(reach, values, row, side, 0.0, budget * LIMIT, dear)
    if spent <= budget:
        cheap[:] = dear
        return total, 0.0, 0.0
    # lines: value at lam = 0 and slope
    high_at, high_slope = total, spent - budget
    total, _ = pick_leaves(reach, values, row, side, np.inf, budget * LIMIT, cheap)
    low_at, low_slope = total, -budget
    picks = np.empty_like(dear)
    lam = guess
    best, best_lam = -np.inf, 0.0
    for step in range(_TANGENTS):
        if step > 0 or lam <= 0.0:
            lam = (low_at - high_at) / (high_slope - low_slope)
        total, spent = pick_leaves(reach, values, row, side, lam, budget * LIMIT, picks)
        found = total - lam * budget
        if found > best:
            best, best_lam = found, lam
        roof = min(high_at + lam * high_slope, low_at + lam * low_slope)
        if step > 0 and found >= roof - 1e-9 * (1.0 + abs(roof)):
            break
        if spent > budget:
            high_at, high_slope = total - lam * spent, spent - budget
            dear[:] = picks
        else:
            low_at, low_slope = total - lam * spent, spent - budget
            cheap[:] = picks
    theta = -low_slope / (high_slope - low_slope)
    return best, best_lam, theta


@kernel
def shared_bounds(reach, values, side, trees, budget):
    """`shared_bound` of every row."""
    out = np.empty(len(side))
    dear, cheap = np.empty(trees, dtype=np.int64), np.empty(trees, dtype=np.int64)
    for i in range(len(side)):
        out[i] = shared_bound(reach, values, i, side[i], budget, 0.0, dear, cheap)[0]
    return out
