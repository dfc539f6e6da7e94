"""A row of an additive model as a knapsack: for each feature, the moves that are worth their cost.

From x, each feature is walked outward, from cell to lower cell; a move is an option if it lowers the margin more
than every cheaper move of that feature. Cost of a row: a search for each feature's cell, and the options.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import inline, kernel, lean
from .costs import Ground, cell_of, cost, land_left, land_right, within_inf


class Margin(NamedTuple):
    """The scalar staircases of a class pair (see `Staircases`)."""

    feature: np.ndarray  # int64 (m,)
    value: np.ndarray  # float64 (cells,)
    missing: np.ndarray  # float64 (m,)
    base: float
    right: np.ndarray  # int64 (cells,): the nearest cell to the right that is lower, -1: none (see `lower_cells`)
    left: np.ndarray  # int64 (cells,)


class Options(NamedTuple):
    """Room for one row's options; those of the a-th active feature are ``start[a]:start[a + 1]``."""

    start: np.ndarray  # int64 (m + 1,)
    feature: np.ndarray  # int64 (m,): the column of each active feature
    cost: np.ndarray  # float64: ascending within a feature
    gain: np.ndarray  # float64: ascending within a feature, positive
    landing: np.ndarray  # float64: the new value of x_j
    counts: np.ndarray  # int64 (2,): active features; 1 if the limit left any option out
    sums: np.ndarray  # float64 (2,): the row's margin; the sum of every active feature's largest gain


def options_room(margin: Margin) -> Options:
    """Room for any row's options."""
    m, cells = len(margin.feature), len(margin.value)
    return Options(
        np.zeros(m + 1, dtype=np.int64),
        np.zeros(m, dtype=np.int64),
        np.zeros(cells),
        np.zeros(cells),
        np.zeros(cells),
        np.zeros(2, dtype=np.int64),
        np.zeros(2),
    )


@kernel
def lower_cells(offsets, feature, value):
    """The next cell on each side of every cell that has a lower value (-1: none), counted within its feature."""
    right = np.empty(len(value), dtype=np.int64)
    left = np.empty(len(value), dtype=np.int64)
    for i in range(len(feature)):
        first = offsets[feature[i]] + i
        size = offsets[feature[i] + 1] + i + 1 - first
        for k in range(size):
            at = k - 1
            while at >= 0 and value[first + at] >= value[first + k]:
                at = left[first + at]
            left[first + k] = at
        for k in range(size - 1, -1, -1):
            at = k + 1 if k + 1 < size else -1
            while at >= 0 and value[first + at] >= value[first + k]:
                at = right[first + at]
            right[first + k] = at
    return right, left


@inline
def _start(following, value, cuts, lo, hi, own, edge):
    """The first cell below the own one, when moves on this side must land at `edge` or beyond it."""
    first = cell_of(cuts, lo, hi, edge)
    if first == own:
        return following[own]
    while first >= 0 and value[first] >= value[own]:
        first = following[first]
    return first


@lean
def gather(ground: Ground, margin: Margin, x, limit, room: Options):
    """Fill `room` with the options of row x that cost at most `limit` (p = inf: within ground.eps, exactly)."""
    p = ground.p
    offsets, cuts, before, inverse = ground.offsets, ground.cuts, ground.before, ground.inverse
    lower, upper, up, down = ground.lower, ground.upper, ground.up, ground.down
    feature, value, next_right, next_left = margin.feature, margin.value, margin.right, margin.left
    room_cost, room_gain, room_landing = room.cost, room.gain, room.landing
    total, gains = margin.base, 0.0
    n = 0  # options so far
    active = 0
    cut_short = 0
    reach = limit
    if limit > 0.0 and p != 0.0 and p != np.inf:
        reach = limit ** (1.0 / p) * (1.0 + 1e-12)
    for i in range(len(feature)):
        j = feature[i]
        lo, hi = offsets[j], offsets[j + 1]
        first = lo + i
        xj = x[j]
        if np.isnan(xj):
            total += margin.missing[i]
            continue
        own = cell_of(cuts, lo, hi, xj)
        here = value[first + own]
        total += here
        right = next_right[first + own] if up[j] else -1
        left = next_left[first + own] if down[j] else -1
        if right < 0 and left < 0:
            continue
        if right >= 0 and lower[j] > xj:
            right = _start(next_right[first:], value[first:], cuts, lo, hi, own, lower[j])
        if left >= 0 and upper[j] < xj:
            left = _start(next_left[first:], value[first:], cuts, lo, hi, own, upper[j])
        best = 0.0
        begin = n
        zr = zl = 0.0
        sr = sl = np.inf  # sizes of the next moves; inf: none left
        need_right = need_left = True
        while True:
            # where one cell cannot be landed in, nor can those beyond it
            if need_right:
                need_right, sr = False, np.inf
                if right >= 0:
                    zr = land_right(cuts, before, lo, hi, right, xj, lower[j], upper[j])
                    if zr == zr:
                        sr = cost(zr - xj, inverse[j], 1.0)
            if need_left:
                need_left, sl = False, np.inf
                if left >= 0:
                    zl = land_left(cuts, before, lo, hi, left, xj, lower[j], upper[j])
                    if zl == zl:
                        sl = cost(xj - zl, inverse[j], 1.0)
            if sr == np.inf and sl == np.inf:
                break
            if sr <= sl:
                size, z, cell = sr, zr, right
                right = next_right[first + right]
                need_right = True
            else:
                size, z, cell = sl, zl, left
                left = next_left[first + left]
                need_left = True
            if p == np.inf:
                if not within_inf(xj, z, ground.scale[j], ground.eps) or size > reach:
                    cut_short = 1
                    # the other side may still be inside by an ulp: only stop this side
                    if cell > own:
                        right = -1
                    else:
                        left = -1
                    continue
            elif p != 0.0 and size > reach:
                cut_short = 1
                break
            gain = here - value[first + cell]
            if gain > best:
                price = cost(size, 1.0, p)
                if p != 0.0 and price > limit:
                    cut_short = 1
                    break
                best = gain
                if p == 0.0:
                    n = begin  # every move costs 1: only the best counts
                room_cost[n] = price
                room_gain[n] = gain
                room_landing[n] = z
                n += 1
        if n > begin:
            room.feature[active] = j
            active += 1
            room.start[active] = n
            gains += best
    room.counts[0] = active
    room.counts[1] = cut_short
    room.sums[0] = total
    room.sums[1] = gains
