"""The training bound of additive models: every row's worst-case margin, bounded below, with its slope.

For staircases g_j on fixed cells, a row (x, y) and a budget b, the bound is
``max over lambda >= 0 of sum_j min_k [y g_j(k) + lambda cost_jk] - lambda b``: the linear relaxation of
the adversary's knapsack, after moves dearer than the cap are dropped. It is sound (never above the exact
worst-case margin), concave in g, and positively homogeneous. Each feature's moves form a chain of
ever better cells (next-smaller pointers), its convex hull gives segments, and the best lambda is the
slope at which the segments, steepest first, have spent the budget. At that slope the segments are
taken in part, so that the budget is spent exactly: this mixture is a true supergradient.
Cost: linear in the useful cells of a row. See docs/convex-method.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import inline, kernel

COUNT, POWER_ONE, POWER_TWO, POWER_ANY = 0, 1, 2, 3
LOGISTIC, EXPONENTIAL, HINGE = 0, 1, 2


class Grid(NamedTuple):
    """The cells of all features and the threat, as the kernels read them."""

    first: np.ndarray  # int64 (d + 1,): feature j owns the cells first[j]:first[j + 1]
    up: np.ndarray  # float64 (cells,): where an upward move enters the cell, inf if it may not
    down: np.ndarray  # float64 (cells,): where a downward move enters the cell, -inf if it may not
    inverse_scale: np.ndarray  # float64 (d,)
    kind: int  # how a distance becomes a cost: COUNT, POWER_ONE, ...
    power: float
    cap: float  # dearer moves do not exist
    budget: float  # what all moves may cost together


class Rows(NamedTuple):
    """Training rows. `slope` remembers each row's last lambda."""

    X: np.ndarray  # float64 (n, d)
    code: np.ndarray  # int16 (n, d): the row's own cell, within the feature
    sign: np.ndarray  # float64 (n,): +1 or -1
    weight: np.ndarray  # float64 (n,)
    slope: np.ndarray  # float64 (n,)


class Scratch(NamedTuple):
    """One worker's workspace."""

    step: np.ndarray  # float64 (cells, 2): cost and gain of each hull segment
    cell: np.ndarray  # int32 (cells, 2): from, to
    free: np.ndarray  # int32 (d,): where each feature starts (its own cell, or a better one at cost zero)
    pool: np.ndarray  # float64 (cells, 2): for the selection


def scratch_for(n_features, n_cells):
    """Workspace for grids of this size."""
    return Scratch(
        np.empty((n_cells, 2)),
        np.empty((n_cells, 2), dtype=np.int32),
        np.empty(n_features, dtype=np.int32),
        np.empty((n_cells, 2)),
    )


@kernel
def next_smaller(values, first, sign, right, left):
    """For each cell the next one upwards, and downwards, with a smaller ``sign * value``; -1 if none."""
    for j in range(len(first) - 1):
        begin, end = first[j], first[j + 1]
        for k in range(end - 1, begin - 1, -1):
            after = k + 1 if k + 1 < end else -1
            while after >= 0 and sign * values[after] >= sign * values[k]:
                after = right[after]
            right[k] = after
        for k in range(begin, end):
            before = k - 1 if k > begin else -1
            while before >= 0 and sign * values[before] >= sign * values[k]:
                before = left[before]
            left[k] = before


@inline
def move_cost(distance, kind, p):
    """What moving a feature by `distance` costs in the currency of the budget."""
    if kind == POWER_ONE:
        return distance
    if kind == POWER_TWO:
        return distance * distance
    if np.isinf(distance):
        return np.inf
    if kind == COUNT:
        return 1.0
    return distance**p


@inline
def hull_of_feature(x, own, sign, values, right, left, grid, inverse, work, n):
    """Append one feature's hull segments at position `n`; return (new position, free cell).

    Moves of cost zero are not segments: the best of them is the free cell where the hull starts.
    """
    start = n
    up, down = right[own], left[own]
    up_cost, down_cost = np.inf, np.inf
    if up >= 0:
        up_cost = move_cost((grid.up[up] - x) * inverse, grid.kind, grid.power)
    if down >= 0:
        down_cost = move_cost((x - grid.down[down]) * inverse, grid.kind, grid.power)
    free, best, spent = own, sign * values[own], 0.0
    while True:
        if up_cost <= down_cost:
            cell, cost = up, up_cost
            if not cost <= grid.cap:
                break
            up = right[cell]
            up_cost = np.inf
            if up >= 0:
                up_cost = move_cost((grid.up[up] - x) * inverse, grid.kind, grid.power)
        else:
            cell, cost = down, down_cost
            if not cost <= grid.cap:
                break
            down = left[cell]
            down_cost = np.inf
            if down >= 0:
                down_cost = move_cost((x - grid.down[down]) * inverse, grid.kind, grid.power)
        value = sign * values[cell]
        if value >= best:
            continue
        gain = best - value
        best = value
        if cost <= 0.0:
            free = cell
            continue
        step = cost - spent
        spent = cost
        source = work.cell[n - 1, 1] if n > start else free
        while n > start and gain * work.step[n - 1, 0] >= work.step[n - 1, 1] * step:
            n -= 1
            step += work.step[n, 0]
            gain += work.step[n, 1]
            source = work.cell[n, 0]
        work.step[n, 0], work.step[n, 1] = step, gain
        work.cell[n, 0], work.cell[n, 1] = source, cell
        n += 1
    return n, free


@kernel
def critical_slope(step, n, budget, guess, pool):
    """The slope at which the steepest segments have spent the budget, and the part taken of those at it.

    Selection by partition, starting from a guess. Returns (0, 0) when all segments together fit.
    """
    total = 0.0
    for s in range(n):
        total += step[s, 0]
        pool[s, 0] = step[s, 0]
        pool[s, 1] = step[s, 1] / step[s, 0]
    if total <= budget:
        return 0.0, 0.0
    left, pivot = budget, guess
    while True:
        above, at = 0.0, 0.0
        for s in range(n):
            if pool[s, 1] > pivot:
                above += pool[s, 0]
            elif pool[s, 1] == pivot:
                at += pool[s, 0]
        if above <= left < above + at:
            return pivot, (left - above) / at
        kept = 0
        if above > left:
            for s in range(n):
                if pool[s, 1] > pivot:
                    pool[kept, 0], pool[kept, 1] = pool[s, 0], pool[s, 1]
                    kept += 1
        else:
            left -= above + at
            for s in range(n):
                if pool[s, 1] < pivot:
                    pool[kept, 0], pool[kept, 1] = pool[s, 0], pool[s, 1]
                    kept += 1
        if kept == 0:  # rounding: the budget ends exactly here
            return pivot, 1.0
        n = kept
        pivot = pool[n // 2, 1]


@inline
def loss_of(margin, loss):
    """A decreasing loss and its derivative at a margin."""
    if loss == LOGISTIC:
        if margin > 0:
            small = np.exp(-margin)
            return np.log1p(small), -small / (1.0 + small)
        small = np.exp(margin)
        return np.log1p(small) - margin, -1.0 / (1.0 + small)
    if loss == EXPONENTIAL:
        value = np.exp(min(-margin, 500.0))
        return value, -value
    return max(0.0, 1.0 - margin), (-1.0 if margin < 1.0 else 0.0)


@kernel
def bound_of_row(i, rows, values, right, left, grid, work):
    """One row's bound; leaves its segments in `work`. Returns (bound, number of segments, slope, part)."""
    sign = rows.sign[i]
    side = 0 if sign > 0 else 1
    total, n = 0.0, 0
    for j in range(rows.X.shape[1]):
        own = np.int32(grid.first[j] + rows.code[i, j])
        n, free = hull_of_feature(
            rows.X[i, j], own, sign, values, right[side], left[side], grid, grid.inverse_scale[j], work, n
        )
        work.free[j] = free
        total += sign * values[free]
    slope, part = critical_slope(work.step, n, grid.budget, rows.slope[i], work.pool)
    for s in range(n):
        steep = work.step[s, 1] / work.step[s, 0]
        if steep > slope:
            total -= work.step[s, 1]
        elif steep == slope:
            total -= part * work.step[s, 1]
    return total, n, slope, part


@kernel
def bounds(which, rows, values, right, left, grid, work, margin):
    """The bound of each row in `which`."""
    for at in range(len(which)):
        i = which[at]
        margin[at], _, rows.slope[i], _ = bound_of_row(i, rows, values, right, left, grid, work)


@kernel
def loss_and_slope(which, rows, values, right, left, grid, work, loss, gradient):
    """Sum of the weighted losses of the bounds of rows `which`; adds a subgradient to `gradient`.

    Returns (sum of losses, sum of the losses' supporting planes at zero): each row's loss is at least
    its plane ``loss - slope margin + slope <supergradient, g>`` for every g.
    """
    total, offset = 0.0, 0.0
    for at in range(len(which)):
        i = which[at]
        margin, n, slope, part = bound_of_row(i, rows, values, right, left, grid, work)
        rows.slope[i] = slope
        value, change = loss_of(margin, loss)
        total += rows.weight[i] * value
        offset += rows.weight[i] * (value - change * margin)
        push = rows.weight[i] * change * rows.sign[i]
        if push == 0.0:
            continue
        for j in range(rows.X.shape[1]):
            gradient[work.free[j]] += push
        for s in range(n):
            steep = work.step[s, 1] / work.step[s, 0]
            if steep >= slope:
                share = push if steep > slope else push * part
                gradient[work.cell[s, 1]] += share
                gradient[work.cell[s, 0]] -= share
    return total, offset
