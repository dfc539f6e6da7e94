"""All leaf values of a stump ensemble refitted together under the robust loss ("corrective" boosting).

For fixed thresholds a row's worst margin is a minimum of linear functions of the leaf values (one for each way
to be moved), so the robust loss of any convex decreasing loss is convex in all of them at once, as Theorem 2
says for one stump. The worst way is found by the exact tables of `stump_tables` with back-tracking; its indicator
is a subgradient. The loss has a kink wherever two ways tie, and boosting starts on such kinks: line searches (L-BFGS)
stop there at once, so that it is Adam's averaged iterate that is compared with the start. Cost: one table a row and
step, and at most BATCH rows a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .losses import Sigmoid
from .stump_costs import Costs
from .stump_tables import MAX_STATES, Room, Stairs, read_row, room_for

BATCH = 1024  # rows of one step; up to twice as many rows are taken at once
RATE = 0.05  # the first steps' size, in units of leaf values; it falls to 0


class Trail(NamedTuple):
    """Tables after 0, 1, 2, ... active features of one row, for back-tracking."""

    cost: np.ndarray
    value: np.ndarray
    size: np.ndarray


@kernel
def _extend(trail, depth, budget, room):
    """Table depth + 1 of the trail = table depth with active feature number `depth` added."""
    u = room.active[depth]
    first, count = room.option_start[u], room.option_start[u + 1] - room.option_start[u]
    size, head = trail.size[depth], room.head
    for o in range(count):
        head[o] = 0
    kept = 0
    while True:
        best, pick = np.inf, -1
        for o in range(count):
            if head[o] < size:
                total = trail.cost[depth, head[o]] + room.option_cost[first + o]
                if total < best:
                    best, pick = total, o
        if pick < 0 or best > budget:
            break
        low = trail.value[depth, head[pick]] + room.option_value[first + pick]
        head[pick] += 1
        if kept == 0 or low < trail.value[depth + 1, kept - 1]:
            if kept > 0 and trail.cost[depth + 1, kept - 1] == best:
                kept -= 1
            elif kept == trail.cost.shape[1]:
                kept -= 1  # a full table forgets its dearest entry but one: only the choice made here suffers
            trail.cost[depth + 1, kept] = best
            trail.value[depth + 1, kept] = low
            kept += 1
    trail.size[depth + 1] = kept


@kernel
def _value_within(trail, depth, remaining):
    """Least value of one table of the trail within a remaining budget."""
    low, high = 0, trail.size[depth]
    while low < high:
        middle = (low + high) // 2
        if trail.cost[depth, middle] <= remaining:
            low = middle + 1
        else:
            high = middle
    return trail.value[depth, low - 1] if low > 0 else np.inf


@kernel
def worst_cells(rows, y, stairs, costs, room, trail, margin, picked):
    """Worst margin of each row, and the cell of each used feature that the adversary moves it to."""
    for i in range(len(rows)):
        active, constant = read_row(rows[i], y[i], stairs, costs, room)
        for u in range(len(stairs.feature)):
            picked[i, u] = room.option_cell[room.option_start[u]]
        trail.size[0], trail.cost[0, 0], trail.value[0, 0] = 1, 0.0, constant
        for depth in range(active):
            _extend(trail, depth, costs.budget, room)
        margin[i] = trail.value[active, trail.size[active] - 1]
        remaining = costs.budget
        for back in range(active):
            depth = active - 1 - back
            u = room.active[depth]
            best, pick = np.inf, 0
            for o in range(room.option_start[u + 1] - room.option_start[u]):
                at = room.option_start[u] + o
                if room.option_cost[at] > remaining:
                    break
                value = _value_within(trail, depth, remaining - room.option_cost[at]) + room.option_value[at]
                if value < best:
                    best, pick = value, at
            picked[i, u] = room.option_cell[pick]
            remaining -= room.option_cost[pick]


@kernel
def add_by_cell(push, picked, start, out):
    """out[cell] += push[i] over the rows that stand in a cell."""
    for i in range(len(push)):
        for u in range(picked.shape[1]):
            out[start[u] + u + picked[i, u]] += push[i]


class Refit:
    """The joint problem for fixed thresholds: unknowns are the base and one step a threshold.

    Parameters
    ----------
    X, y, weight : rows, labels -1 and +1, weights
    stairs : Stairs
        The thresholds; its values are the starting point.
    costs, loss
    penalty : float
        Half of it times the sum of squared steps is added to the mean loss.
    """

    def __init__(self, X, y, weight, stairs: Stairs, costs: Costs, loss, penalty: float = 1e-4):
        self.X, self.y, self.weight = np.ascontiguousarray(X[:, stairs.feature]), y, weight / weight.sum()
        self.stairs, self.costs, self.loss, self.penalty = stairs, costs, loss, penalty
        self.room: Room = room_for(stairs)
        used = len(stairs.feature)
        self.trail = Trail(
            np.zeros((used + 1, MAX_STATES)), np.zeros((used + 1, MAX_STATES)), np.zeros(used + 1, dtype=np.int64)
        )
        # which cells begin a feature's staircase: their value is not an unknown (the base takes it)
        self.first = stairs.start[:-1] + np.arange(used)
        self.inner = np.setdiff1d(np.arange(len(stairs.cell)), self.first)

    def start(self) -> np.ndarray:
        """The present values as unknowns."""
        cell = self.stairs.cell
        return np.concatenate([[self.stairs.base + cell[self.first].sum()], np.diff(cell, prepend=0.0)[self.inner]])

    def stairs_at(self, unknowns: np.ndarray) -> Stairs:
        """The staircases of these unknowns."""
        steps = np.zeros(len(self.stairs.cell))
        steps[self.inner] = unknowns[1:]
        cell = np.cumsum(steps)
        sizes = np.diff(np.append(self.first, len(cell)))
        return self.stairs._replace(cell=cell - np.repeat(cell[self.first], sizes), base=float(unknowns[0]))

    def evaluate(self, unknowns: np.ndarray, rows=slice(None)) -> tuple[float, np.ndarray, np.ndarray]:
        """Mean robust loss of some rows with its penalty, a subgradient, and those rows' worst margins."""
        # the columns of self.X are the used features only
        stairs = self.stairs_at(unknowns)._replace(feature=np.arange(len(self.stairs.feature)))
        X, y = self.X[rows], self.y[rows]
        weight = self.weight[rows] / self.weight[rows].sum()
        margin, picked = np.zeros(len(y)), np.zeros((len(y), X.shape[1]), dtype=np.int32)
        worst_cells(X, y, stairs, self.costs, self.room, self.trail, margin, picked)
        total = float(weight @ self.loss.value(margin)) + 0.5 * self.penalty * float(unknowns[1:] @ unknowns[1:])
        push = weight * y * self.loss.slope(margin)
        by_cell = np.zeros(len(stairs.cell))
        add_by_cell(push, picked, stairs.start, by_cell)
        # a step counts in all cells of its feature from its own on
        sizes = np.diff(np.append(self.first, len(by_cell)))
        after = np.cumsum(by_cell[::-1])[::-1]
        beyond = np.append(after, 0.0)[self.first + sizes]
        gradient = np.concatenate([[push.sum()], (after - np.repeat(beyond, sizes))[self.inner]])
        gradient[1:] += self.penalty * unknowns[1:]
        return total, gradient, margin

    def run(self, steps: int, rng: np.random.Generator, rate: float = RATE) -> tuple[float, Stairs, np.ndarray]:
        """After `steps` steps of Adam: the loss on all rows, the staircases and worst margins; or the start's."""
        start = unknowns = self.start()
        mean, square, average = np.zeros((3, len(start)))
        batches = _batches(len(self.y), rng)
        kept = max(1, int(0.4 * steps))
        for step in range(steps):
            gradient = self.evaluate(unknowns, next(batches))[1]
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.98 * square + 0.02 * gradient * gradient
            stride = 0.5 * rate * (1.0 + np.cos(np.pi * step / steps))
            pull = mean / (1 - 0.9 ** (step + 1)) / (np.sqrt(square / (1 - 0.98 ** (step + 1))) + 1e-12)
            unknowns = unknowns - stride * pull
            if step >= steps - kept:
                average = average + unknowns / kept
        ends = [(*self.evaluate(point)[::2], point) for point in (start, average)]
        loss, margin, point = min(ends, key=lambda end: end[0])
        return loss, self.stairs_at(point), margin


def _batches(count: int, rng: np.random.Generator):
    """Rows for one step after the other: all of them, or parts of random orders."""
    if count <= 2 * BATCH:
        while True:
            yield slice(None)
    while True:
        order = rng.permutation(count)
        for first in range(0, count - BATCH + 1, BATCH):
            yield order[first : first + BATCH]


def polished(X, y, weight, stairs: Stairs, costs: Costs, steps: int, rng: np.random.Generator) -> Stairs:
    """Staircases with fewer rows whose worst margin is negative, from a convex solution nearby.

    A few local searches on a smooth count of such rows, ever sharper; not convex, so the start is kept
    unless the exact count falls. This trades rows that are lost anyway for rows that can still be won.
    """
    share = weight / weight.sum()
    joint = Refit(X, y, weight, stairs, costs, Sigmoid(1.0), penalty=0.0)
    margin = joint.evaluate(joint.start())[2]
    best, least, scale = stairs, float(share @ (margin <= 0)), float(share @ np.abs(margin))
    for width in (0.5 * scale, 0.25 * scale):
        if not width > 0:
            break
        joint = Refit(X, y, weight, stairs, costs, Sigmoid(width), penalty=0.0)
        _, stairs, margin = joint.run(steps, rng, 0.015 * scale)
        lost = float(share @ (margin <= 0))
        if lost < least:
            best, least = stairs, lost
    return best
