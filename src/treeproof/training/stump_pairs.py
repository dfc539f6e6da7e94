"""D_L and D_R of candidate stumps: a row's worst margin of the model so far, forced left or right of a threshold.

Paper section 4.1, equation for the leave-one-out tables. A feature without stumps needs the full table
only, at the budget left after crossing; a used one needs its leave-one-out table and its own staircase,
which all come from one divide and conquer a row. A side out of reach is +inf. Exact without a grid.
"""

from __future__ import annotations

import numpy as np

from .._jit import kernel
from .stump_costs import cost_of
from .stump_tables import (
    MAX_DEPTH,
    add_features,
    home_cell,
    look_up,
    read_row,
    start_table,
)


@kernel
def unused_pair(x, edge, below, reach, value, size, left, right):
    """D_L and D_R, before the stump's own weights, of one threshold on a feature without stumps."""
    for i in range(len(x)):
        last = size[i] - 1
        home = x[i] < edge
        distance = edge - x[i] if home else x[i] - below
        low, high = 0, size[i]
        while low < high:  # reach falls: count the entries that still allow the move
            middle = (low + high) // 2
            if distance < reach[i, middle]:
                low = middle + 1
            else:
                high = middle
        away = value[i, low - 1] if low > 0 else np.inf
        left[i] = value[i, last] if home else away
        right[i] = away if home else value[i, last]


@kernel
def _cells_within(x, y, u, depth, stairs, costs, room):
    """Least scores over the cells 0..k (lowest[0, k]) and k.. (lowest[1, k]) of feature number u; the cell count."""
    first = stairs.start[u]
    cells = stairs.start[u + 1] - first + 1
    home = home_cell(x, u, stairs)
    low = room.lowest
    for k in range(cells):
        if k == home:
            cost = 0.0
        elif k < home:
            cost = cost_of(x - stairs.below[first + k], costs)
        else:
            cost = cost_of(stairs.edge[first + k - 1] - x, costs)
        rest = look_up(depth, costs.budget - cost, room)
        low[0, k] = rest + y * stairs.cell[first + u + k]
        low[1, k] = low[0, k]
    for k in range(1, cells):
        low[0, k] = min(low[0, k], low[0, k - 1])
        low[1, cells - 1 - k] = min(low[1, cells - 1 - k], low[1, cells - k])
    low[1, cells] = np.inf
    return cells


@kernel
def _emit(x, y, u, depth, shift, stairs, costs, room, thresholds, out):
    """Write (D_L, D_R) of each threshold into out[:, 0] and out[:, 1]."""
    _cells_within(x, y, u, depth, stairs, costs, room)
    first, last = stairs.start[u], stairs.start[u + 1]
    low = room.lowest
    under = 0  # edges below the threshold: the number of the cell just left of it
    for c in range(len(thresholds)):
        edge = thresholds[c]
        while first + under < last and stairs.edge[first + under] < edge:
            under += 1
        over = under
        if first + under < last and stairs.edge[first + under] == edge:
            over += 1
        if x < edge:
            cut = look_up(depth, costs.budget - cost_of(edge - x, costs), room)
            out[c, 0] = low[0, under] + shift
            out[c, 1] = min(cut + y * stairs.cell[first + u + over], low[1, over + 1]) + shift
        else:
            cut = look_up(depth, costs.budget - cost_of(x - np.nextafter(edge, -np.inf), costs), room)
            beyond = low[0, under - 1] if under > 0 else np.inf
            out[c, 0] = min(cut + y * stairs.cell[first + u + under], beyond) + shift
            out[c, 1] = low[1, over] + shift


@kernel
def _push(stack, top, low, high, depth, add):
    stack[top, 0] = low
    stack[top, 1] = high
    stack[top, 2] = depth
    stack[top, 3] = add[0]
    stack[top, 4] = add[1]
    return top + 1


@kernel
def used_pairs(rows, y, stairs, costs, room, thresholds, offset, out):
    """(D_L, D_R) of every threshold of every used feature: out[c, :, i], c as in `thresholds` by `offset`.

    Each node of the divide and conquer holds the table of all features outside its own range.
    """
    pairs = np.empty((len(thresholds) + 1, 2))
    for i in range(len(rows)):
        active, constant = read_row(rows[i], y[i], stairs, costs, room)
        start_table(0, constant, room)
        add_features(0, MAX_DEPTH, 0, active, costs.budget, room)
        for u in range(len(stairs.feature)):
            at = room.option_start[u]
            if room.option_start[u + 1] - at == 1:
                pair = pairs[offset[u] : offset[u + 1]]
                edge = thresholds[offset[u] : offset[u + 1]]
                x = rows[i, stairs.feature[u]]
                _emit(x, y[i], u, MAX_DEPTH, -room.option_value[at], stairs, costs, room, edge, pair)
        stack, top = room.stack, 0
        if active > 0:
            start_table(1, constant, room)
            top = _push(stack, top, 0, active, 1, (0, 0))
        while top > 0:
            top -= 1
            low, high, depth = stack[top, 0], stack[top, 1], stack[top, 2]
            if stack[top, 4] > stack[top, 3]:
                add_features(depth - 1, depth, stack[top, 3], stack[top, 4], costs.budget, room)
            if high - low == 1:
                u = room.active[low]
                pair = pairs[offset[u] : offset[u + 1]]
                edge = thresholds[offset[u] : offset[u + 1]]
                _emit(rows[i, stairs.feature[u]], y[i], u, depth, 0.0, stairs, costs, room, edge, pair)
                continue
            middle = (low + high) // 2
            top = _push(stack, top, low, middle, depth + 1, (middle, high))
            top = _push(stack, top, middle, high, depth + 1, (low, middle))
        for c in range(len(thresholds)):
            out[c, 0, i] = pairs[c, 0]
            out[c, 1, i] = pairs[c, 1]


@kernel
def one_used_pair(rows, y, u, edge, stairs, costs, room, left, right):
    """D_L and D_R of one threshold on used feature number u, with a fresh leave-one-out table a row."""
    pair = np.empty((1, 2))
    thresholds = np.empty(1)
    thresholds[0] = edge
    for i in range(len(rows)):
        active, constant = read_row(rows[i], y[i], stairs, costs, room)
        kept = 0
        for k in range(active):
            if room.active[k] != u:
                room.active[kept] = room.active[k]
                kept += 1
        shift = 0.0 if kept < active else -room.option_value[room.option_start[u]]
        start_table(0, constant, room)
        add_features(0, 1, 0, kept, costs.budget, room)
        _emit(rows[i, stairs.feature[u]], y[i], u, 1, shift, stairs, costs, room, thresholds, pair)
        left[i] = pair[0, 0]
        right[i] = pair[0, 1]
