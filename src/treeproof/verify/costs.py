"""What each cell of each feature costs a row: the one place where verifiers turn moves into numbers.

Exact where it must be: whether a cell is inside an l_inf budget is decided without rounding. Other costs are
float64 with a relative error that `ResolvedThreat.rounding` bounds. A row costs O(cells).

Cell k of a feature holds the inputs with exactly k of its cuts at or below them. Staying in its own cell is
free; a move lands on the number of the wanted cell that is nearest to x, inside the valid range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._jit import inline, lean

if TYPE_CHECKING:
    from ..threat import ResolvedThreat
    from .problem import Problem

HUGE = 1e300  # a finite cost that overflowed: inf is kept for moves that are not allowed


class Ground(NamedTuple):
    """A model's cells and a threat's rules, as kernels read them."""

    offsets: np.ndarray  # int64 (d + 1,): feature j has the cuts offsets[j]:offsets[j + 1]
    cuts: np.ndarray  # float64
    before: np.ndarray  # float64
    scale: np.ndarray  # float64 (d,)
    inverse: np.ndarray  # float64 (d,): 1 / (scale * unit)
    lower: np.ndarray  # float64 (d,)
    upper: np.ndarray  # float64 (d,)
    down: np.ndarray  # bool (d,)
    up: np.ndarray  # bool (d,)
    p: float
    eps: float  # p = inf: cells beyond it are not allowed; not read at other p


class Row(NamedTuple):
    """One row's cells: those of feature j begin at ``offsets[j] + j``, one more than it has cuts."""

    own: np.ndarray  # int64 (d,): the row's own cell, -1 where x is missing
    price: np.ndarray  # float64 (cells,): 0 at the own cell, inf where no move is allowed
    landing: np.ndarray  # float64 (cells,): the number a move lands on


def ground_of(problem: Problem, threat: ResolvedThreat | None = None, eps: float = np.inf, unit: float = 1.0) -> Ground:
    """The cells of a problem under its (or another) threat; `eps` filters cells at p = inf only."""
    threat = problem.threat if threat is None else threat
    cuts = problem.cuts
    return Ground(
        cuts.offsets,
        cuts.cuts,
        cuts.before,
        np.ascontiguousarray(threat.scale, dtype=np.float64),
        np.ascontiguousarray(threat.inverse_scale(unit), dtype=np.float64),
        np.ascontiguousarray(threat.lower, dtype=np.float64),
        np.ascontiguousarray(threat.upper, dtype=np.float64),
        np.ascontiguousarray(threat.down),
        np.ascontiguousarray(threat.up),
        float(threat.norm),
        float(eps),
    )


def empty_row(ground: Ground) -> Row:
    """Room for one row's cells, for `price_row` to fill."""
    d = len(ground.offsets) - 1
    cells = len(ground.cuts) + d
    return Row(np.zeros(d, dtype=np.int64), np.zeros(cells), np.zeros(cells))


@inline
def cost(distance, inverse_scale, p):
    """(distance / scale)^p; the size itself at p = inf; 1 at p = 0. `distance` is positive."""
    if p == 0.0:
        return 1.0
    size = distance * inverse_scale
    if p == 1.0 or p == np.inf:
        return min(size, HUGE)
    if size > 1.0 and p * np.log2(size) > 990.0:
        return HUGE
    if p == 2.0:
        return size * size
    if p == 0.5:
        return np.sqrt(size)
    return size**p


@inline
def within_inf(x, z, scale, eps):
    """Whether |z - x| <= eps * scale over the reals: both sides as unevaluated sums of two floats."""
    if eps == np.inf:
        return True
    # two-sum: high + low is exactly z - x
    high = z - x
    part = high - z
    low = (z - (high - part)) + (-x - part)
    if high < 0.0:
        high, low = -high, -low
    # two-product (Veltkamp's split: numba has no fused multiply-add); sizes are within 1e-60 .. 1e60
    product = eps * scale
    c = 134217729.0 * eps
    a1 = c - (c - eps)
    a2 = eps - a1
    c = 134217729.0 * scale
    b1 = c - (c - scale)
    b2 = scale - b1
    rest = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return high < product or (high == product and low <= rest)


@inline
def cell_of(cuts, lo, hi, x):
    """How many of cuts[lo:hi] are at or below x."""
    first, last = lo, hi
    while first < last:
        middle = (first + last) // 2
        if cuts[middle] <= x:
            first = middle + 1
        else:
            last = middle
    return first - lo


@inline
def land_right(cuts, before, lo, hi, k, x, lower, upper):
    """The nearest allowed number of cell k, right of x's own cell; NaN if there is none."""
    z = max(cuts[lo + k - 1], lower)
    end = upper
    if lo + k < hi:
        end = min(end, before[lo + k])
    if z <= end and z > x and z < np.inf:
        return z
    return np.nan


@inline
def land_left(cuts, before, lo, hi, k, x, lower, upper):
    """The nearest allowed number of cell k, left of x's own cell; NaN if there is none."""
    z = min(before[lo + k], upper)
    begin = lower
    if k > 0:
        begin = max(begin, cuts[lo + k - 1])
    if z >= begin and z < x and z > -np.inf:
        return z
    return np.nan


@lean
def price_row(ground, x, row):
    """Fill `row` for x. Outward from the own cell prices never fall, except from inf before a valid range."""
    own, price, landing = row
    cuts, before, p = ground.cuts, ground.before, ground.p
    for j in range(len(own)):
        lo, hi = ground.offsets[j], ground.offsets[j + 1]
        start = lo + j
        for k in range(hi - lo + 1):
            price[start + k] = np.inf
            landing[start + k] = x[j]
        if np.isnan(x[j]):
            own[j] = -1
            continue
        k0 = cell_of(cuts, lo, hi, x[j])
        own[j] = k0
        price[start + k0] = 0.0
        if ground.up[j]:
            for k in range(k0 + 1, hi - lo + 1):
                z = land_right(cuts, before, lo, hi, k, x[j], ground.lower[j], ground.upper[j])
                if np.isnan(z):
                    continue
                if p == np.inf and not within_inf(x[j], z, ground.scale[j], ground.eps):
                    break
                price[start + k] = cost(z - x[j], ground.inverse[j], p)
                landing[start + k] = z
        if ground.down[j]:
            for back in range(1, k0 + 1):
                k = k0 - back
                z = land_left(cuts, before, lo, hi, k, x[j], ground.lower[j], ground.upper[j])
                if np.isnan(z):
                    continue
                if p == np.inf and not within_inf(x[j], z, ground.scale[j], ground.eps):
                    break
                price[start + k] = cost(x[j] - z, ground.inverse[j], p)
                landing[start + k] = z


@lean
def price_of_cells(row, start, lo, hi, own):
    """The cheapest cell among lo <= k < hi of the feature whose cells begin at `start`: (price, cell).

    inf and -1 where no cell is allowed. `own` is the row's own cell; prices are scanned outward from it.
    """
    price = row.price
    if lo <= own < hi:
        return 0.0, own
    if lo > own:
        for k in range(lo, hi):
            if price[start + k] < np.inf:
                return price[start + k], k
    else:
        for back in range(hi - lo):
            k = hi - 1 - back
            if price[start + k] < np.inf:
                return price[start + k], k
    return np.inf, -1
