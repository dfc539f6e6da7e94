"""A row of an additive model as a knapsack: for each feature, the moves that are worth their cost.

From x, each feature is walked outward cell by cell; a move is an option if it lowers the margin more than
every cheaper move of that feature. Cost of a row: the cells within the budget.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .costs import Ground, cell_of, cost, land_left, land_right, within_inf


class Margin(NamedTuple):
    """The scalar staircases of a class pair (see `Staircases`)."""

    feature: np.ndarray  # int64 (m,)
    value: np.ndarray  # float64 (cells,)
    missing: np.ndarray  # float64 (m,)
    base: float


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
def gather(ground: Ground, margin: Margin, x, limit, room: Options):
    """Fill `room` with the options of row x that cost at most `limit` (p = inf: within ground.eps, exactly)."""
    p = ground.p
    total, gains = margin.base, 0.0
    n = 0  # options so far
    active = 0
    cut_short = 0
    reach = limit
    if limit > 0.0 and p != 0.0 and p != np.inf:
        reach = limit ** (1.0 / p) * (1.0 + 1e-12)
    for i in range(len(margin.feature)):
        j = margin.feature[i]
        lo, hi = ground.offsets[j], ground.offsets[j + 1]
        first = lo + i
        xj = x[j]
        if np.isnan(xj):
            total += margin.missing[i]
            continue
        own = cell_of(ground.cuts, lo, hi, xj)
        here = margin.value[first + own]
        total += here
        inverse = ground.inverse[j]
        # a row's nearest cuts first: most features end here
        right, left = own + 1, own - 1
        if not ground.up[j]:
            right = hi - lo + 1
        if not ground.down[j]:
            left = -1
        best = 0.0
        begin = n
        zr = zl = 0.0
        sr = sl = np.inf  # sizes of the next moves; inf: none left
        need_right = need_left = True
        while True:
            if need_right:
                need_right = False
                sr = np.inf
                while right <= hi - lo:
                    zr = land_right(ground.cuts, ground.before, lo, hi, right, xj, ground.lower[j], ground.upper[j])
                    if zr == zr:
                        sr = cost(zr - xj, inverse, 1.0)
                        break
                    right += 1
            if need_left:
                need_left = False
                sl = np.inf
                while left >= 0:
                    zl = land_left(ground.cuts, ground.before, lo, hi, left, xj, ground.lower[j], ground.upper[j])
                    if zl == zl:
                        sl = cost(xj - zl, inverse, 1.0)
                        break
                    left -= 1
            if sr == np.inf and sl == np.inf:
                break
            if sr <= sl:
                size, z, cell = sr, zr, right
                right += 1
                need_right = True
            else:
                size, z, cell = sl, zl, left
                left -= 1
                need_left = True
            if p == np.inf:
                if not within_inf(xj, z, ground.scale[j], ground.eps) or size > reach:
                    cut_short = 1
                    # the other side may still be inside by an ulp: only stop this side
                    if cell > own:
                        right = hi - lo + 1
                    else:
                        left = -1
                    continue
            elif p != 0.0 and size > reach:
                cut_short = 1
                break
            gain = here - margin.value[first + cell]
            if gain > best:
                price = cost(size, 1.0, p)
                if p != 0.0 and price > limit:
                    cut_short = 1
                    break
                best = gain
                if p == 0.0:
                    n = begin  # every move costs 1: only the best counts
                room.cost[n] = price
                room.gain[n] = gain
                room.landing[n] = z
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


@kernel
def shrink(room: Options, limit):
    """Leave out the options that cost more than `limit`."""
    n = active = 0
    gains = 0.0
    begin = 0
    for a in range(room.counts[0]):
        first, last = begin, room.start[a + 1]
        begin = last
        kept = n
        for o in range(first, last):
            if room.cost[o] > limit:
                break
            room.cost[n], room.gain[n], room.landing[n] = room.cost[o], room.gain[o], room.landing[o]
            n += 1
        if n > kept:
            room.feature[active] = room.feature[a]
            active += 1
            room.start[active] = n
            gains += room.gain[n - 1]
    room.counts[0], room.counts[1] = active, 1
    room.sums[1] = gains
