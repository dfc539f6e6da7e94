"""Method `search`: exact and anytime branch and bound for any tree ensemble, every p in [0, inf].

`decide` asks whether any flip fits the budget; `nearest` for the cheapest flip. Costs add up over features, so
p = 0 counts moves and 0 < p < inf adds powers; p = inf only filters cells, and the nearest flip is found by
bisection over the distances that cells have. Stopped by a limit, every row still has sound bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._clock import clock
from .._errors import InvalidInputError, must_be
from .costs import Row, cost, empty_row, ground_of, price_row
from .problem import Changes, Found, Pair, Problem
from .reach import moved, own_leaves, price_leaves
from .search_batch import Asked, Batch, Model, decide_rows, nearest_rows
from .search_bound import COST, GOAL, HOLD, LOST, LOWEST, MU, NODES, PATIENT, carry, narrow, new_state
from .search_greedy import flip, total_value, walk_of
from .search_instance import build, cells_of, open_domain, shrink
from .search_tree import FINISHED, FOUND, HELD, PAUSED, lower_bound, run, start

if TYPE_CHECKING:
    from ..threat import ResolvedThreat
    from .search_instance import Instance

SLICE = 300_000.0  # operations between two looks at the clock: about a millisecond
BRIEF = 50_000.0  # operations before a smaller instance is worth its making
DEPTHS = 400
TURNS = 40  # caps tried for a radius, the last of them the flip in hand
FIRST_STEP = 0.03  # how far above its bound a radius is looked for first; doubled where there is none
HAIR = 1e-10  # leaves and cells this much beyond a cap are kept: their costs are sums of floats


class _Rowed(NamedTuple):
    """One row, priced."""

    x: np.ndarray
    row: Row
    reach: np.ndarray  # (leaves,): the cost of each leaf's box on its own
    gain: np.ndarray  # (leaves,): what each leaf takes from the margin
    margin: float
    value: np.ndarray  # (nodes,): each leaf's value for the pair
    whole: float  # their sum at the row


class _Answer(NamedTuple):
    """What one question came to."""

    done: bool  # answered, not stopped by a limit
    cost: float  # of the best flip found; inf without
    cells: np.ndarray | None  # its cells, one a feature (-1: stay)
    least: float  # a sound lower bound of the cost of any flip (inf: there is none within the goal)
    spare: float  # first flip wanted, none there: every loss is at least this far below the target


class Search:
    """The `Solver` of method ``search``.

    Parameters
    ----------
    time_limit : float, optional
        Seconds a row.
    max_nodes : int, optional
        Nodes a question, about: they are counted every millisecond.
    memory : float
        Megabytes that the open nodes of one row may take; beyond it nodes are given up and bounds returned.
    """

    batch_rows = 16
    gap = 5e-10  # radii whose bounds agree to this part are exact: below it floats do not tell flips apart

    def __init__(
        self,
        problem: Problem,
        *,
        time_limit: float | None = None,
        max_nodes: int | None = None,
        memory: float = 256.0,
    ) -> None:
        if isinstance(memory, bool) or not isinstance(memory, (int, float)) or not memory > 0:
            raise InvalidInputError(must_be("memory", "a positive number of megabytes", memory))
        if max_nodes is not None and (isinstance(max_nodes, bool) or not isinstance(max_nodes, int) or max_nodes < 1):
            raise InvalidInputError(must_be("max_nodes", "a whole number of at least 1, or None", max_nodes))
        self.problem, self.time_limit, self.max_nodes, self.memory = problem, time_limit, max_nodes, memory
        self._walk = walk_of(problem)
        self._values: dict[tuple[int, int], np.ndarray] = {}
        self._tree = np.repeat(np.arange(problem.model.n_trees), np.diff(problem.boxes.tree_offsets))

    @staticmethod
    def refuses(problem: Problem) -> str | None:
        """Why this method cannot serve a problem, if so: it serves all."""
        return None

    # ------------------------------------------------------------------ the two questions

    def decide(self, pair: Pair, X: np.ndarray, limit: float) -> Found:
        """See `Solver.decide`."""
        threat = self.problem.threat
        p = threat.norm
        spends = 0 < p < np.inf and 0 < threat.eps < np.inf
        ground = ground_of(self.problem, eps=threat.eps, unit=threat.eps if spends else 1.0)
        priced = p == 0 or spends
        budget = float(threat.count) if p == 0 else (limit if spends else np.inf)
        lower, complete, changes = np.zeros(len(X)), np.ones(len(X), dtype=bool), Changes(len(X))
        left = np.arange(len(X))
        if threat.moves and self._quick:
            asked = self._asked(pair, budget, priced, p)
            easy = decide_rows(self._model(ground), asked, np.ascontiguousarray(X))
            lower[:] = easy.lower
            _put(changes, easy)
            left = np.flatnonzero(~easy.settled)
        for i in left.tolist():
            x = X[i]
            rowed = self._price(pair, ground, x, budget)
            if not threat.moves:
                lower[i] = rowed.margin - pair.solver
                continue
            end = self._deadline()
            may, sure = pair.target(rowed.margin)
            answer = self._ask(rowed, ground, may, budget, priced, True, end)
            if answer.done and answer.cells is None:
                lower[i] = min(_above_doubt(rowed, pair, may, answer.spare), rowed.margin - pair.solver)
                continue
            lower[i] = self._all_trees(rowed, pair)
            complete[i] = answer.done
            if answer.cells is not None and self._loss(rowed, answer.cells) < sure:
                more = self._ask(rowed, ground, sure, budget, priced, True, end)
                complete[i] &= more.done
                answer = more if more.cells is not None else answer
            if answer.cells is not None:
                changes.put(i, *moved(self.problem, rowed.row, rowed.x, answer.cells))
        return changes.found(lower, complete)

    def nearest(self, pair: Pair, X: np.ndarray, cap: np.ndarray) -> Found:
        """See `Solver.nearest`."""
        p, rounding = self.problem.threat.norm, self.problem.threat.rounding
        lower, complete, changes = np.zeros(len(X)), np.ones(len(X), dtype=bool), Changes(len(X))
        left = np.arange(len(X))
        if self._quick and (p in (0, np.inf) or np.all(np.isinf(cap))):
            asked = self._asked(pair, np.inf, p < np.inf, p)
            easy = nearest_rows(self._model(ground_of(self.problem)), asked, np.ascontiguousarray(X), cap)
            for i in np.flatnonzero(easy.settled).tolist():
                lower[i] = _size(float(easy.lower[i]), self.problem.threat, 1.0)
            _put(changes, easy)
            left = np.flatnonzero(~easy.settled)
        for i in left.tolist():
            x, end = X[i], self._deadline()
            unit = float(cap[i]) if 1e-60 <= cap[i] <= 1e60 and 0 < p < np.inf else 1.0
            ground = ground_of(self.problem, unit=unit)
            top = np.inf
            if cap[i] < np.inf:
                top = (
                    np.floor(cap[i])
                    if p == 0
                    else float(cost(max(cap[i] / unit, 1e-300), 1.0, p)) * (1 + 1e-12 + rounding)
                )
            rowed = self._price(pair, ground, x, top)
            may, sure = pair.target(rowed.margin)
            find = self._nearest_inf if p == np.inf else self._nearest_sum
            answer = find(rowed, ground, may, top, end)
            lower[i], complete[i] = _size(answer.least, self.problem.threat, unit), answer.done
            if answer.cells is not None and self._loss(rowed, answer.cells) < sure:
                answer = find(rowed, ground, sure, top, end)
                complete[i] &= answer.done
            if answer.cells is not None:
                changes.put(i, *moved(self.problem, rowed.row, rowed.x, answer.cells))
        return changes.found(lower, complete)

    # ------------------------------------------------------------------ parts

    @property
    def _quick(self) -> bool:
        """Whether rows may have an allowance of some ten milliseconds before limits count."""
        return (self.time_limit is None or self.time_limit >= 0.05) and self.max_nodes is None and self.memory > 1

    def _asked(self, pair: Pair, budget: float, priced: bool, p: float) -> Asked:
        exact = (pair.base, pair.slack, pair.solver, pair.tie_flips)
        return Asked(self._values_of(pair), *exact, float(budget), bool(priced), _closer(p))

    def _model(self, ground) -> Model:
        return Model(self.problem.boxes, ground, self._walk)

    def _values_of(self, pair: Pair) -> np.ndarray:
        if (pair.y, pair.c) not in self._values:
            self._values[pair.y, pair.c] = self.problem.leaf_values(pair)
        return self._values[pair.y, pair.c]

    def _deadline(self) -> float:
        return np.inf if self.time_limit is None else clock() + self.time_limit

    def _over(self, state, end: float) -> bool:
        """Whether a limit is reached."""
        return clock() >= end or (self.max_nodes is not None and state.number[NODES] >= self.max_nodes)

    def _price(self, pair: Pair, ground, x: np.ndarray, cap: float) -> _Rowed:
        """Price a row's cells and leaves."""
        boxes = self.problem.boxes
        nodes = self._values_of(pair)
        value = nodes[boxes.node]
        row = empty_row(ground)
        price_row(ground, x, row)
        reach = np.empty(len(value))
        price_leaves(boxes, ground.offsets, row, ground.p, cap * (1 + HAIR), reach)
        own = np.empty(self.problem.model.n_trees, dtype=np.int64)
        own_leaves(boxes, row, own)
        at = value[own]
        whole = float(at.sum())
        return _Rowed(x, row, reach, at[self._tree] - value, pair.base + whole, nodes, whole)

    def _ask(self, rowed: _Rowed, ground, target, goal, priced: bool, first: bool, end: float) -> _Answer:
        """The least cost <= goal of a loss >= target (the first one found, if `first`)."""
        opened = self._open(rowed, ground, target, goal, priced, first)
        if isinstance(opened, _Answer):
            return opened
        domain, instance, state = opened
        status = self._run(instance, state, end)
        number = state.number
        cells = _cells(rowed, ground.offsets, domain, instance, state.best) if number[COST] < np.inf else None
        done = status in (FINISHED, FOUND) and number[LOST] == 0.0
        least = lower_bound(state) if cells is not None or not done else np.inf
        return _Answer(done, float(number[COST]), cells, float(least), float(min(number[LOWEST], domain.total[2])))

    def _open(self, rowed: _Rowed, ground, target, goal, priced: bool, first: bool, carried=None):
        """The shrunken instance and its state; or the answer, where that is clear at once."""
        if target <= 0:
            return _Answer(True, 0.0, np.full(len(rowed.x), -1), 0.0, 0.0)
        boxes, cap = self.problem.boxes, goal * (1 + HAIR)
        domain = open_domain(ground.offsets, rowed.row, np.where(rowed.reach <= cap, rowed.reach, np.inf), cap)
        if not shrink(boxes, ground.offsets, rowed.row, rowed.gain, domain, target, cap if priced else np.inf, False):
            spare = target - self._best_losses(rowed)
            return _Answer(True, np.inf, None, np.inf, max(spare, 0.0))
        instance = build(boxes, ground.offsets, rowed.row, rowed.gain, domain, priced)
        state = self._state(instance)
        question = (target, domain.total[0], goal if priced else 0.0, domain.total[1])
        mu = 0.0 if carried is None else carried[2]
        start(instance, state, (*question, float(priced), float(first), _closer(ground.p), mu))
        state.number[PATIENT] = 1.0
        if carried is not None:
            carry(carried[0], carried[1], instance, state)
        return domain, instance, state

    def _state(self, instance: Instance):
        depth_bytes = len(instance.price) + 4 * len(instance.tree_start) + 40
        depths = int(np.clip(self.memory * 1e6 / depth_bytes, 2, DEPTHS))
        return new_state(instance, depths)

    def _run(self, instance: Instance, state, end: float) -> int:
        while True:
            status = run(instance, state, SLICE)
            if status in (FINISHED, FOUND) or self._over(state, end):
                return status

    def _nearest_sum(self, rowed: _Rowed, ground, target: float, top: float, end: float) -> _Answer:
        """p < inf: some flip, a bound without branching, then caps from the bound upward until they meet."""
        best = self._greedy(rowed, ground, target, rowed.row.own)
        if best is None and top == np.inf:
            best = self._ask(rowed, ground, target, top, False, True, end)
            if best.cells is None:
                return best._replace(least=np.inf if best.done else 0.0)
            best = best._replace(cost=self._cost(rowed, ground, best.cells))
        if best is None or best.cost > top:
            best = _Answer(True, top, None, 0.0, 0.0)
        least, step, cap, carried = 0.0, FIRST_STEP, np.inf, None
        for turn in range(TURNS):
            if best.cost == 0.0:
                return best
            goal = min(cap, _better(best, ground.p))
            opened = self._open(rowed, ground, target, goal, True, False, carried)
            status, bound = FINISHED, goal
            if not isinstance(opened, _Answer):
                status, best, bound, carried = self._explore(rowed, ground, target, opened, best, end, turn == 0)
            least = max(least, bound)
            if status == FINISHED and least >= _better(best, ground.p):
                return best._replace(done=True, least=least if best.cells is not None else np.inf)
            if status == PAUSED or clock() >= end:
                break
            cap = _next_cap(least, step, best.cost, ground.p) if turn < TURNS - 2 else np.inf
            step *= 2.0 if status == FINISHED else 1.0
        return best._replace(done=False, least=min(least, best.cost))

    def _explore(self, rowed: _Rowed, ground, target: float, opened, best: _Answer, end: float, root: bool):
        """Search one instance: how it ended, the best flip, a bound of all others, and the shares at its root.

        Ends HELD before the first branching where the flip in hand is still far from the bound (if `root`).
        """
        domain, instance, state = opened
        number, carried, budget, least, bold = state.number, None, SLICE, 0.0, False
        number[HOLD] = 1.0
        while True:
            status = run(instance, state, budget)
            least = max(least, float(lower_bound(state)))
            if number[COST] < best.cost or (best.cells is None and number[COST] <= best.cost):
                cells = _cells(rowed, ground.offsets, domain, instance, state.best)
                best = _Answer(True, float(number[COST]), cells, 0.0, 0.0)
            if carried is None and (number[HOLD] == 0.0 or status == FINISHED):
                carried = (instance, state.delta.copy(), float(number[MU]))
            if status == HELD:
                trial = self._greedy(
                    rowed, ground, target, _cells(rowed, ground.offsets, domain, instance, state.choice)
                )
                if trial is not None and trial.cost < best.cost:
                    best = trial
                    number[GOAL] = min(number[GOAL], _under(trial.cost, ground.p))
                if root and best.cost > _next_cap(least, FIRST_STEP, best.cost, ground.p):
                    return HELD, best, least, carried
                budget, bold = BRIEF, True
            elif status == FINISHED or self._over(state, end):
                done = status == FINISHED and not number[LOST]
                return (FINISHED, best, float(number[GOAL]), carried) if done else (PAUSED, best, least, carried)
            elif bold:
                bold, budget = False, SLICE
                opened = self._reopen(rowed, ground, target, domain, instance, state)
                if opened is None:
                    return FINISHED, best, float(number[GOAL]), carried
                domain, instance, state = opened
                number = state.number

    def _reopen(self, rowed: _Rowed, ground, target: float, domain, instance: Instance, state):
        """The same question without what the root's bound has ruled out; None: nothing is left."""
        goal = float(state.number[GOAL])
        boxes, cap = self.problem.boxes, goal * (1 + HAIR)
        narrow(instance, state, domain)
        if not shrink(boxes, ground.offsets, rowed.row, rowed.gain, domain, target, cap, True):
            return None
        new = build(boxes, ground.offsets, rowed.row, rowed.gain, domain, True)
        again = self._state(new)
        question = (target, domain.total[0], goal, domain.total[1])
        start(new, again, (*question, 1.0, 0.0, _closer(ground.p), state.number[MU]))
        again.number[PATIENT] = 1.0
        carry(instance, state.delta, new, again)
        return domain, new, again

    def _greedy(self, rowed: _Rowed, ground, target: float, cells: np.ndarray) -> _Answer | None:
        """A cheap flip, if one is found step by step from the given cells."""
        if target <= 0:
            return _Answer(True, 0.0, np.full(len(rowed.x), -1), 0.0, 0.0)
        cells = cells.copy()
        if not flip(self._walk, rowed.value, ground.offsets, rowed.row, cells, rowed.whole, target):
            return None
        if rowed.whole - total_value(self._walk, rowed.value, cells) < target:
            return None
        return _Answer(True, self._cost(rowed, ground, cells), cells, 0.0, 0.0)

    def _nearest_inf(self, rowed: _Rowed, ground, target: float, top: float, end: float) -> _Answer:
        """p = inf: bisect over the sizes of moves."""
        sizes = np.unique(rowed.row.price[np.isfinite(rowed.row.price) & (rowed.row.price <= top)])
        sizes = sizes if len(sizes) else np.zeros(1)
        best = self._ask(rowed, ground, target, float(sizes[-1]), False, True, end)
        if best.cells is None:
            return best._replace(least=np.inf if best.done else 0.0)
        low, high = 0, int(np.searchsorted(sizes, self._cost(rowed, ground, best.cells)))
        done = best.done
        while low < high and clock() < end:
            middle = (low + high) // 2
            answer = self._ask(rowed, ground, target, float(sizes[middle]), False, True, end)
            if answer.cells is not None:
                here = int(np.searchsorted(sizes, self._cost(rowed, ground, answer.cells)))
                best, high = answer, min(middle, here)
            elif answer.done:
                low = middle + 1
            else:
                done = False
                break
        return best._replace(done=done and low >= high, least=float(sizes[low]))

    def _cost(self, rowed: _Rowed, ground, cells: np.ndarray) -> float:
        """The cost of moving to the given cells."""
        feature = np.flatnonzero((cells >= 0) & (cells != rowed.row.own))
        price = rowed.row.price[ground.offsets[feature] + feature + cells[feature]]
        return float(price.max(initial=0.0)) if ground.p == np.inf else float(price.sum())

    def _loss(self, rowed: _Rowed, cells: np.ndarray) -> float:
        """What moving to the given cells takes from the margin."""
        feature, value = moved(self.problem, rowed.row, rowed.x, cells)
        z = rowed.x.copy()
        z[feature] = value
        ground = ground_of(self.problem)
        row = empty_row(ground)
        price_row(ground, z, row)
        own = np.empty(self.problem.model.n_trees, dtype=np.int64)
        own_leaves(self.problem.boxes, row, own)
        return float(rowed.gain[own].sum())

    def _best_losses(self, rowed: _Rowed) -> float:
        """What all trees could lose, each on its own, within reach."""
        within = np.where(rowed.reach < np.inf, rowed.gain, -np.inf)
        return float(np.maximum.reduceat(within, self.problem.boxes.tree_offsets[:-1]).sum())

    def _all_trees(self, rowed: _Rowed, pair: Pair) -> float:
        return rowed.margin - self._best_losses(rowed) - pair.solver


def _above_doubt(rowed: _Rowed, pair: Pair, may: float, spare: float) -> float:
    """The margin that is left when every loss is below `may` by at least `spare`."""
    # losses below `may` leave a margin beyond the doubt; without doubt sums are exact, and ties are real
    proved = np.nextafter(pair.slack, np.inf) if pair.doubt > 0 or pair.tie_flips else 0.0
    if spare < np.inf:
        proved = max(proved, rowed.margin - may + spare * (1 - 1e-9) - pair.solver)
    else:
        proved = rowed.margin
    return float(proved)


def _cells(rowed: _Rowed, offsets, domain, instance: Instance, groups) -> np.ndarray:
    """The cell of each feature: the instance's group, the cheapest that is left, or the row's own."""
    cells = np.empty(len(rowed.x), dtype=np.int64)
    cells_of(rowed.row, offsets, domain, instance, groups, cells)
    return cells


def _put(changes: Changes, batch: Batch) -> None:
    """Take a batch's candidates."""
    for i in np.flatnonzero(batch.moves).tolist():
        changes.put(i, batch.feature[i, : batch.moves[i]], batch.value[i, : batch.moves[i]])


def _closer(p: float) -> float:
    """How much cheaper, as a factor, a better flip must be: below it floats cannot tell. Zero: a whole less (p = 0)."""
    return 0.0 if p == 0 else 1.0 - 1e-10 * min(p, 1.0)


def _under(cost: float, p: float) -> float:
    """Only flips at most this dear are better than one of this cost."""
    return cost - 0.5 if p == 0 else cost * _closer(p)


def _better(best: _Answer, p: float) -> float:
    """The cost up to which a flip is better than the one in hand (which may be none, and its cost a cap)."""
    return best.cost if best.cells is None else _under(best.cost, p)


def _next_cap(least: float, step: float, most: float, p: float) -> float:
    """Where to look next when there is no flip below `least`, and the flip in hand costs `most`."""
    return float(np.floor(least + 1e-6) + 1.0) if p == 0 else max(least, 0.1 * most) * (1 + step)


def _size(least: float, threat: ResolvedThreat, unit: float) -> float:
    """A distance from a cost, rounded down."""
    if least == np.inf or threat.norm == 0:
        return float(np.ceil(least - 1e-6)) if least < np.inf else np.inf
    if least <= 0:
        return 0.0
    size = unit * float(threat.root_below(least)) * (1 - 2.0**-52)
    if not size < 1e300:
        return 1e300  # beyond the floats
    return float(np.nextafter(size, 0.0))
