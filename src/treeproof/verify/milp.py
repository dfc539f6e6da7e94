"""`milp`: Kantchelian et al.'s mixed-integer program, through scipy's HiGHS, for every p in [0, inf].

Complete up to the solver's tolerance, and independent of the other methods: the referee. Every cell of a
feature has a constant cost, so the program is linear for each p. The solver's numbers are never claims: a bound
is moved by the tolerance against the claim, and a candidate is replayed. Seconds a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_array

from .costs import cost, empty_row, ground_of, price_row
from .problem import Changes, Found, Pair, Problem
from .reach import moved, own_leaves, price_leaves

if TYPE_CHECKING:
    from ..threat import ResolvedThreat

TOLERANCE = 1e-6  # HiGHS: feasibility and integrality
ROOM = 10.0  # tolerances add up over a tree's variables


class _Program(NamedTuple):
    """One row's program: variables are leaves, then cells, then (nearest, p = inf) the radius."""

    leaf: np.ndarray  # the kept leaves
    tree: np.ndarray  # their trees
    loss: np.ndarray  # what each takes from the margin
    feature: np.ndarray  # of each cell variable
    cell: np.ndarray
    price: np.ndarray
    matrix: coo_array
    low: np.ndarray
    high: np.ndarray


class Milp:
    """The `Solver` of method ``milp``."""

    batch_rows = 8

    @staticmethod
    def refuses(problem: Problem) -> str | None:
        """Why this method cannot serve a problem, if so: it serves all."""
        return None

    def __init__(self, problem: Problem, *, time_limit: float | None = None) -> None:
        self.problem = problem
        self.time_limit = time_limit

    def decide(self, pair: Pair, X: np.ndarray, limit: float) -> Found:
        """See `Solver.decide`."""
        threat = self.problem.threat
        ground = ground_of(self.problem, eps=threat.eps, unit=max(threat.eps, 1e-60))
        budget = np.inf
        if threat.norm == 0:
            budget = threat.count + 0.5
        elif threat.norm < np.inf:
            budget = limit if threat.eps > 0 else 0.0
        lower, complete, changes = np.zeros(len(X)), np.zeros(len(X), dtype=bool), Changes(len(X))
        for i, x in enumerate(X):
            task = _Task(self.problem, pair, ground, x, budget if threat.norm < np.inf else np.inf)
            loss, complete[i], witness = task.largest_loss(budget, self.time_limit)
            lower[i] = task.margin - loss - pair.solver
            if witness is not None and loss >= pair.target(task.margin)[0]:
                changes.put(i, *witness)
        return changes.found(lower, complete)

    def nearest(self, pair: Pair, X: np.ndarray, cap: np.ndarray) -> Found:
        """See `Solver.nearest`."""
        threat = self.problem.threat
        p = threat.norm
        lower, complete, changes = np.zeros(len(X)), np.zeros(len(X), dtype=bool), Changes(len(X))
        for i, x in enumerate(X):
            unit = float(cap[i]) if 1e-60 <= cap[i] <= 1e60 and p > 0 else 1.0
            ground = ground_of(self.problem, unit=unit)
            top = np.inf
            if cap[i] < np.inf:
                top = float(np.floor(cap[i])) if p == 0 else _cost_of(cap[i] / unit, p) * (1 + threat.rounding)
            task = _Task(self.problem, pair, ground, x, top)
            least, complete[i], witness = task.least_cost(top, self.time_limit)
            lower[i] = _radius(least, threat, unit) if least < np.inf else np.inf
            if witness is not None:
                changes.put(i, *witness)
        return changes.found(lower, complete)


def _cost_of(size: float, p: float) -> float:
    """The p-th power, the size itself at p = inf."""
    return float(cost(size, 1.0, p)) if size > 0 else 0.0


def _radius(total: float, threat: ResolvedThreat, unit: float) -> float:
    """The norm of a move of this cost, rounded down."""
    if threat.norm == 0:
        return float(np.ceil(total - 1e-3))
    if total <= 0:
        return 0.0
    size = unit * float(threat.root_below(total)) * (1 - 2.0**-52)
    return float(np.nextafter(size, 0.0))


class _Task:
    """One row's question."""

    def __init__(self, problem: Problem, pair: Pair, ground, x: np.ndarray, cap: float) -> None:
        self.problem, self.pair, self.x, self.p = problem, pair, x, ground.p
        boxes = problem.boxes
        self.row = empty_row(ground)
        price_row(ground, x, self.row)
        reach = np.zeros(len(boxes.node))
        price_leaves(boxes, ground.offsets, self.row, ground.p, cap * (1 + 1e-9) if cap else cap, reach)
        own = np.zeros(problem.model.n_trees, dtype=np.int64)
        own_leaves(boxes, self.row, own)
        value = problem.leaf_values(pair)[boxes.node]
        self.margin = pair.base + float(value[own].sum())
        tree = np.repeat(np.arange(len(own)), np.diff(boxes.tree_offsets))
        kept = np.flatnonzero(np.isfinite(reach))
        several = np.bincount(tree[kept], minlength=len(own)) > 1
        self.leaf = kept[several[tree[kept]]]
        self.tree = tree[self.leaf]
        self.loss = value[own][self.tree] - value[self.leaf]
        self.program = self._build(ground, cap)

    @property
    def _slack(self) -> float:
        """How much loss the solver's tolerances may invent or hide."""
        reach = np.zeros(self.problem.model.n_trees)
        np.maximum.at(reach, self.tree, np.abs(self.loss))
        return ROOM * TOLERANCE * float(reach.sum())

    def _entries(self):
        """(leaf variable, feature, lo, hi) of every entry of the kept leaves on present features."""
        boxes = self.problem.boxes
        start, stop = boxes.entry_offsets[self.leaf], boxes.entry_offsets[self.leaf + 1]
        which = np.repeat(np.arange(len(self.leaf)), stop - start)
        entry = np.concatenate([np.arange(a, b) for a, b in zip(start, stop, strict=True)] or [np.zeros(0, int)])
        present = self.row.own[boxes.feature[entry]] >= 0
        which, entry = which[present], entry[present]
        return which, boxes.feature[entry].astype(np.int64), boxes.lo[entry], boxes.hi[entry]

    def _build(self, ground, cap: float) -> _Program:
        """Each tree takes one leaf, each feature one cell, and they agree at every cut of every tree."""
        which, feature, lo, hi = self._entries()
        cells = [(int(j), k) for j in np.unique(feature) for k in self._cells_of(ground, int(j), cap)]
        own_of = {j: n for n, (j, k) in enumerate(cells) if k == self.row.own[j]}
        variables: dict[int, list[tuple[int, int]]] = {j: [] for j in own_of}
        for n, (j, k) in enumerate(cells):
            variables[j].append((k, n))
        n_leaves = len(self.leaf)
        rows: list[tuple[list[int], list[float], float, float]] = []
        for t in np.unique(self.tree):
            rows.append(([*np.flatnonzero(self.tree == t)], [1.0] * int(np.sum(self.tree == t)), 1.0, 1.0))
        for members in variables.values():
            rows.append(([n_leaves + n for _, n in members], [1.0] * len(members), 1.0, 1.0))
        group = self.tree[which] * np.int64(self.problem.model.n_features) + feature
        for key in np.unique(group):
            at = np.flatnonzero(group == key)
            rows.extend(self._agree(which[at], lo[at], hi[at], variables[int(feature[at[0]])], n_leaves))
        columns = np.concatenate([np.asarray(r[0]) for r in rows] or [np.zeros(0)]).astype(np.int64)
        data = np.concatenate([np.asarray(r[1]) for r in rows] or [np.zeros(0)])
        index = np.repeat(np.arange(len(rows)), [len(r[0]) for r in rows])
        matrix = coo_array((data, (index, columns)), shape=(len(rows), n_leaves + len(cells)))
        features, numbers = (np.array(c, dtype=np.int64) for c in (zip(*cells, strict=True) if cells else ([], [])))
        price = self.row.price[ground.offsets[features] + features + numbers]
        low, high = np.array([r[2] for r in rows]), np.array([r[3] for r in rows])
        return _Program(self.leaf, self.tree, self.loss, features, numbers, price, matrix, low, high)

    def _cells_of(self, ground, j: int, cap: float) -> np.ndarray:
        start, count = ground.offsets[j] + j, ground.offsets[j + 1] - ground.offsets[j] + 1
        price = self.row.price[start : start + count]
        return np.flatnonzero((price < np.inf) & (price <= cap * (1 + 1e-9)))

    @staticmethod
    def _agree(leaf, lo, hi, members, n_leaves):
        """At a cut: leaves that lie below it need a cell below it, leaves above it a cell above."""
        cells = np.array([k for k, _ in members])
        numbers = np.array([n for _, n in members])
        for cut in np.unique(np.concatenate([lo[lo > 0], hi])):
            for leaves, allowed in ((leaf[hi <= cut], cells < cut), (leaf[lo >= cut], cells >= cut)):
                if len(leaves) and not allowed.all():
                    columns = [*leaves, *(n_leaves + numbers[allowed])]
                    yield columns, [1.0] * len(leaves) + [-1.0] * int(allowed.sum()), -np.inf, 0.0

    def _solve(self, objective, extra, time_limit):
        """Run HiGHS with extra rows (coefficients, low, high); extra columns only through `objective`'s length."""
        program = self.program
        width = len(objective)
        matrix = coo_array(
            (program.matrix.data, (program.matrix.row, program.matrix.col)), shape=(len(program.low), width)
        )
        constraints = [LinearConstraint(matrix.tocsr(), program.low, program.high)] if len(program.low) else []
        constraints += [LinearConstraint(row.reshape(1, -1), low, high) for row, low, high in extra]
        n_leaves, n_cells = len(program.leaf), len(program.cell)
        kind = np.zeros(width)
        kind[n_leaves : n_leaves + n_cells] = 1
        upper = np.ones(width)
        upper[n_leaves + n_cells :] = np.inf
        # presolve is off: with it HiGHS 1.12 returned a wrong "optimal" on small programs (tests/test_milp.py)
        options = {"mip_rel_gap": 0.0, "presolve": False}
        if time_limit is not None:
            options["time_limit"] = max(float(time_limit), 1e-3)
        return milp(objective, integrality=kind, bounds=(0, upper), constraints=constraints, options=options)

    def _columns(self, on_leaves, on_cells, more: int = 0) -> np.ndarray:
        return np.concatenate([on_leaves, on_cells, np.zeros(more)])

    def largest_loss(self, budget: float, time_limit):
        """Upper bound of the loss within the budget, whether it was solved, and the moves that were chosen."""
        program = self.program
        zeros = np.zeros(len(program.cell))
        if not len(program.leaf):
            return 0.0, True, None
        extra = []
        if budget < np.inf:
            row = self._columns(np.zeros(len(program.leaf)), program.price)
            extra.append((row, -np.inf, budget))
        size = float(np.abs(program.loss).max()) or 1.0
        result = self._solve(self._columns(-program.loss / size, zeros), extra, time_limit)
        bound = self._all_losses()
        solved = result.status == 0
        if result.mip_dual_bound is not None and np.isfinite(result.mip_dual_bound):
            bound = min(bound, -result.mip_dual_bound * size + self._slack)
        return bound, solved, self._witness(result, budget)

    def _all_losses(self) -> float:
        """What all trees together could lose, each on its own."""
        best = np.zeros(self.problem.model.n_trees)
        np.maximum.at(best, self.tree, self.loss)
        return float(best.sum())

    def least_cost(self, cap: float, time_limit):
        """Lower bound of the cost of a flip, whether it was solved, and the moves that were chosen."""
        program = self.program
        may = self.pair.target(self.margin)[0]
        if may <= 0:
            return 0.0, True, (np.zeros(0, dtype=np.int32), np.zeros(0))
        if self._all_losses() < may:
            return np.inf if cap == np.inf else self._beyond(cap), True, None
        n_leaves = len(program.leaf)
        more = 1 if self.p == np.inf else 0
        size = float(np.abs(program.loss).max())
        loss = self._columns(program.loss / size, np.zeros(len(program.cell)), more)
        extra = [(loss, (may - self._slack) / size, np.inf)]
        top = max(float(program.price.max(initial=0.0)), 1e-300)
        price = self._columns(np.zeros(n_leaves), program.price / top, more)
        objective = price
        if more:  # the radius is at least the size of each feature's move
            objective = np.zeros(len(price))
            objective[-1] = 1.0
            for j in np.unique(program.feature):
                row = np.where(np.arange(len(price)) < n_leaves, 0.0, price)
                row[n_leaves:-1][program.feature != j] = 0.0
                row[-1] = -1.0
                extra.append((row, -np.inf, 0.0))
        result = self._solve(objective, extra, time_limit)
        if result.status == 2:
            return np.inf if cap == np.inf else self._beyond(cap), True, None
        bound = 0.0
        if result.mip_dual_bound is not None and np.isfinite(result.mip_dual_bound):
            bound = max(0.0, (result.mip_dual_bound - ROOM * TOLERANCE) * top)
        solved = result.status == 0
        return min(bound, self._beyond(cap)), solved, self._witness(result, cap, may)

    def _beyond(self, cap: float) -> float:
        """No flip within the cap: the next count at p = 0, else the cap itself."""
        return cap + 1.0 if self.p == 0 else cap

    def _witness(self, result, budget: float, least: float = -np.inf):
        """The moves of the chosen cells, if they really cost and lose what the program says."""
        if result.x is None:
            return None
        program = self.program
        chosen = result.x[len(program.leaf) : len(program.leaf) + len(program.cell)] > 0.5
        cells = np.full(self.problem.model.n_features, -1, dtype=np.int64)
        cells[program.feature[chosen]] = program.cell[chosen]
        price = program.price[chosen]
        total = float(price.max(initial=0.0)) if self.p == np.inf else float(price.sum())
        if total > budget * (1 + 1e-9):
            return None
        feature, value = moved(self.problem, self.row, self.x, cells)
        z = self.x.copy()
        z[feature] = value
        if self.margin - self._margin_at(z) < least:
            return None
        return feature, value

    def _margin_at(self, z: np.ndarray) -> float:
        from ..model.predict import leaves

        nodes = leaves(self.problem.model, z[None, :])[0]
        return self.pair.base + float(self.problem.leaf_values(self.pair)[nodes].sum())
