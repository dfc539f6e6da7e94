"""All leaf values of a stump ensemble refitted together under the robust loss ("corrective" boosting).

For fixed thresholds a row's worst margin is a minimum of linear functions of the leaf values (one for each way
to be moved), so the robust loss of any convex decreasing loss is convex in all of them at once, as Theorem 2
says for one stump. The worst way is found by the exact tables of `stump_tables` with back-tracking; its indicator
is a supergradient. Minimised by L-BFGS from the present values; the best point met is kept. Cost: one table a row
and evaluation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from .._jit import kernel
from .losses import Sigmoid
from .stump_costs import Costs
from .stump_tables import MAX_STATES, Room, Stairs, read_row, room_for


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
        self.X, self.y, self.weight = X, y, weight / weight.sum()
        self.stairs, self.costs, self.loss, self.penalty = stairs, costs, loss, penalty
        self.room: Room = room_for(stairs)
        used = len(stairs.feature)
        self.trail = Trail(
            np.zeros((used + 1, MAX_STATES)), np.zeros((used + 1, MAX_STATES)), np.zeros(used + 1, dtype=np.int64)
        )
        self.margin, self.picked = np.zeros(len(y)), np.zeros((len(y), used), dtype=np.int32)
        # which cells begin a feature's staircase: their value is not an unknown (the base takes it)
        self.first = stairs.start[:-1] + np.arange(used)
        self.inner = np.setdiff1d(np.arange(len(stairs.cell)), self.first)
        self.best: tuple[float, np.ndarray] = (np.inf, self.start())

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

    def evaluate(self, unknowns: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean robust loss with its penalty, and a subgradient."""
        stairs = self.stairs_at(unknowns)
        worst_cells(self.X, self.y, stairs, self.costs, self.room, self.trail, self.margin, self.picked)
        total = float(self.weight @ self.loss.value(self.margin)) + 0.5 * self.penalty * float(
            unknowns[1:] @ unknowns[1:]
        )
        push = self.weight * self.y * self.loss.slope(self.margin)
        by_cell = np.zeros(len(stairs.cell))
        add_by_cell(push, self.picked, stairs.start, by_cell)
        # a step counts in all cells of its feature from its own on
        sizes = np.diff(np.append(self.first, len(by_cell)))
        after = np.cumsum(by_cell[::-1])[::-1]
        beyond = np.append(after, 0.0)[self.first + sizes]
        gradient = np.concatenate([[push.sum()], (after - np.repeat(beyond, sizes))[self.inner]])
        gradient[1:] += self.penalty * unknowns[1:]
        if total < self.best[0]:
            self.best = (total, unknowns.copy())
        return total, gradient

    def run(self, steps: int) -> Stairs:
        """Minimise with at most `steps` evaluations or so; the best staircases met."""
        minimize(
            self.evaluate,
            self.start(),
            jac=True,
            method="L-BFGS-B",
            options={"maxfun": steps, "maxiter": steps, "maxcor": 20, "maxls": 12},
        )
        return self.stairs_at(self.best[1])


def polished(X, y, weight, stairs: Stairs, costs: Costs, steps: int) -> Stairs:
    """Staircases with fewer rows whose worst margin is negative, from a convex solution nearby.

    A few local searches on a smooth count of such rows, ever sharper; not convex, so the start is kept
    unless the exact count falls. This trades rows that are lost anyway for rows that can still be won.
    """
    share = weight / weight.sum()
    best = stairs
    joint = Refit(X, y, weight, stairs, costs, Sigmoid(1.0), penalty=0.0)
    joint.evaluate(joint.start())
    least = float(share @ (joint.margin <= 0))
    scale = float(share @ np.abs(joint.margin))
    for width in (0.5 * scale, 0.25 * scale, 0.12 * scale):
        if not width > 0:
            break
        joint = Refit(X, y, weight, stairs, costs, Sigmoid(width), penalty=0.0)
        stairs = joint.run(steps)
        joint.evaluate(joint.best[1])
        lost = float(share @ (joint.margin <= 0))
        if lost < least:
            best, least = stairs, lost
    return best
