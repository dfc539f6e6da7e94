"""Worst-case margins of a stump ensemble as tables "budget left -> least score", for every row.

Paper section 3.2 and 4.1. A table is a staircase of undominated (cost, value) pairs: at most the paper's P
entries on a grid, and exact without one. Leave-one-feature-out tables come by divide and conquer, which
costs log(features) tables instead of one a feature, and only used features need one. Beyond MAX_STATES
pairs neighbours are joined (cheaper cost, lower value), which stays a sound lower bound of the margin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .stump_costs import cost_of, reach_of

MAX_STATES = 2048
MAX_DEPTH = 24  # of the divide and conquer: 2**24 features


class Stairs(NamedTuple):
    """A stump ensemble as one staircase a used feature.

    Feature ``feature[u]`` has the thresholds ``edge[start[u]:start[u + 1]]`` (ascending; `below` holds the
    largest float64 under each) and the cells ``cell[start[u] + u : start[u + 1] + u + 1]``.
    """

    feature: np.ndarray
    start: np.ndarray
    edge: np.ndarray
    below: np.ndarray
    cell: np.ndarray
    base: float


class Room(NamedTuple):
    """Working memory for one row: option lists of each feature, and tables of each depth."""

    option_cost: np.ndarray
    option_value: np.ndarray
    option_cell: np.ndarray
    option_start: np.ndarray
    cost: np.ndarray
    value: np.ndarray
    size: np.ndarray
    head: np.ndarray
    active: np.ndarray
    stack: np.ndarray
    lowest: np.ndarray


def stairs_of(feature, threshold, left, right, base: float = 0.0) -> Stairs:
    """Group stumps by feature into staircases."""
    feature, threshold = np.asarray(feature, dtype=np.int64), np.asarray(threshold, dtype=np.float64)
    left, right = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    used = np.unique(feature)
    edges, cells, start = [], [], [0]
    for j in used:
        mine = feature == j
        edge, place = np.unique(threshold[mine], return_inverse=True)
        steps = np.bincount(place, weights=right[mine] - left[mine], minlength=len(edge))
        cells.append(left[mine].sum() + np.concatenate([[0.0], np.cumsum(steps)]))
        edges.append(edge)
        start.append(start[-1] + len(edge))
    edge = np.concatenate(edges) if edges else np.zeros(0)
    return Stairs(
        used,
        np.array(start, dtype=np.int64),
        edge,
        np.nextafter(edge, -np.inf),
        np.concatenate(cells) if cells else np.zeros(0),
        float(base),
    )


def room_for(stairs: Stairs) -> Room:
    """Working memory for rows of these staircases."""
    used, cells = len(stairs.feature), len(stairs.cell)
    return Room(
        np.zeros(cells + 1),
        np.zeros(cells + 1),
        np.zeros(cells + 1, dtype=np.int64),
        np.zeros(used + 1, dtype=np.int64),
        np.zeros((MAX_DEPTH + 2, MAX_STATES)),
        np.zeros((MAX_DEPTH + 2, MAX_STATES)),
        np.zeros(MAX_DEPTH + 2, dtype=np.int64),
        np.zeros(cells + 1, dtype=np.int64),
        np.zeros(used + 1, dtype=np.int64),
        np.zeros((2 * MAX_DEPTH + 4, 5), dtype=np.int64),
        np.zeros((2, cells + 2)),
    )


@kernel
def home_cell(x, u, stairs):
    """The cell of feature number u that x lies in."""
    low, high = stairs.start[u], stairs.start[u + 1]
    while low < high:
        middle = (low + high) // 2
        if stairs.edge[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low - stairs.start[u]


@kernel
def list_options(x, y, u, stairs, costs, room):
    """Undominated (cost, value) options of feature number u, cheapest first; returns how many."""
    first, last = stairs.start[u], stairs.start[u + 1]
    home = home_cell(x, u, stairs)
    at = room.option_start[u]
    room.option_cost[at] = 0.0
    room.option_value[at] = y * stairs.cell[first + u + home]
    room.option_cell[at] = home
    count = 1
    left, right = home - 1, home + 1
    while True:
        to_left = x - stairs.below[first + left] if left >= 0 else np.inf
        to_right = stairs.edge[first + right - 1] - x if right <= last - first else np.inf
        if to_left == np.inf and to_right == np.inf:
            break
        if to_left <= to_right:
            cell, distance = left, to_left
            left -= 1
        else:
            cell, distance = right, to_right
            right += 1
        cost = cost_of(distance, costs)
        if cost > costs.budget:
            break
        value = y * stairs.cell[first + u + cell]
        if value < room.option_value[at + count - 1]:
            if cost > room.option_cost[at + count - 1]:
                count += 1
            room.option_cost[at + count - 1] = cost
            room.option_value[at + count - 1] = value
            room.option_cell[at + count - 1] = cell
    return count


@kernel
def read_row(row, y, stairs, costs, room):
    """Fill the option lists of a row; returns (active features, the others' summed values with the base)."""
    constant = y * stairs.base
    active = 0
    room.option_start[0] = 0
    for u in range(len(stairs.feature)):
        count = list_options(row[stairs.feature[u]], y, u, stairs, costs, room)
        room.option_start[u + 1] = room.option_start[u] + count
        if count > 1:
            room.active[active] = u
            active += 1
        else:
            constant += room.option_value[room.option_start[u]]
    return active, constant


@kernel
def _halve(cost, value, size):
    """Join neighbours into (cheaper cost, lower value): a sound table of half the size."""
    kept = 0
    for k in range(0, size, 2):
        cost[kept] = cost[k]
        value[kept] = value[min(k + 1, size - 1)]
        kept += 1
    return kept


@kernel
def add_feature(source, target, u, budget, room):
    """Table `target` = table `source` with the choice of feature number u added."""
    first, count = room.option_start[u], room.option_start[u + 1] - room.option_start[u]
    cost, value, size = room.cost[source], room.value[source], room.size[source]
    out_cost, out_value = room.cost[target], room.value[target]
    head = room.head
    for o in range(count):
        head[o] = 0
    kept = 0
    while True:
        best, pick = np.inf, -1
        for o in range(count):
            if head[o] < size:
                total = cost[head[o]] + room.option_cost[first + o]
                if total < best:
                    best, pick = total, o
        if pick < 0 or best > budget:
            break
        low = value[head[pick]] + room.option_value[first + pick]
        head[pick] += 1
        if kept == 0 or low < out_value[kept - 1]:
            if kept > 0 and out_cost[kept - 1] == best:
                kept -= 1
            elif kept == MAX_STATES:
                kept = _halve(out_cost, out_value, kept)
            out_cost[kept] = best
            out_value[kept] = low
            kept += 1
    room.size[target] = kept


@kernel
def add_features(source, target, low, high, budget, room):
    """Table `target` = table `source` with the active features low to high - 1 added."""
    spare = MAX_DEPTH + 1
    if (high - low) % 2 == 1:
        add_feature(source, target, room.active[low], budget, room)
        low += 1
    else:
        room.size[target] = room.size[source]
        for k in range(room.size[source]):
            room.cost[target, k] = room.cost[source, k]
            room.value[target, k] = room.value[source, k]
    while low < high:
        add_feature(target, spare, room.active[low], budget, room)
        add_feature(spare, target, room.active[low + 1], budget, room)
        low += 2


@kernel
def start_table(depth, constant, room):
    """A table of no choices."""
    room.size[depth] = 1
    room.cost[depth, 0] = 0.0
    room.value[depth, 0] = constant


@kernel
def look_up(depth, remaining, room):
    """Least value of a table within a remaining budget; inf when it is negative."""
    if remaining < 0:
        return np.inf
    low, high = 0, room.size[depth]
    while low < high:
        middle = (low + high) // 2
        if room.cost[depth, middle] <= remaining:
            low = middle + 1
        else:
            high = middle
    return room.value[depth, low - 1]


@kernel
def fill_full_tables(rows, y, stairs, costs, room, reach, value, size):
    """Tables of all features, per row, as "a move of less than reach leaves at least value".

    Entries come with falling reach; ``value[i, size[i] - 1]`` is the worst margin of row i. A row that needs
    more columns than there are returns its need; 0 means done.
    """
    for i in range(len(rows)):
        active, constant = read_row(rows[i], y[i], stairs, costs, room)
        start_table(0, constant, room)
        add_features(0, 1, 0, active, costs.budget, room)
        if room.size[1] > reach.shape[1]:
            return room.size[1]
        for k in range(room.size[1]):
            reach[i, k] = reach_of(costs.budget - room.cost[1, k], costs)
            value[i, k] = room.value[1, k]
        size[i] = room.size[1]
    return 0


def full_tables(rows, y, stairs: Stairs, costs, room: Room):
    """Arrays (reach, value, size) of `fill_full_tables`, as narrow as the rows allow."""
    columns = 16
    while True:
        reach, value = np.zeros((len(rows), columns)), np.full((len(rows), columns), np.inf)
        size = np.zeros(len(rows), dtype=np.int64)
        need = fill_full_tables(rows, y, stairs, costs, room, reach, value, size)
        if need == 0:
            widest = int(size.max(initial=1))
            return reach[:, :widest].copy(), value[:, :widest].copy(), size
        columns = max(2 * columns, int(need))


@kernel
def worst_margins(rows, y, stairs, costs, room, out):
    """The worst margin of each row within the budget (a lower bound of it on the grid)."""
    for i in range(len(rows)):
        active, constant = read_row(rows[i], y[i], stairs, costs, room)
        start_table(0, constant, room)
        add_features(0, 1, 0, active, costs.budget, room)
        out[i] = room.value[1, room.size[1] - 1]
