"""Method `tree`: one tree, exact for every p, by the distance to each leaf's box (the paper's Proposition 1).

Cost of a row: the leaves times the features on their paths. Boxes are closed intervals of the float grid,
so the nearest point of each is attained, and at p = 0 a moved feature costs 1 wherever it lands.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .._jit import kernel, lean
from .costs import Ground, cell_of, cost, ground_of, within_inf
from .problem import Found, Pair, Problem
from .replay import float_below


@lean
def land_in_box(ground: Ground, j, lo, hi, x):
    """The nearest allowed number in cells lo <= c < hi of feature j to an x outside them; NaN if none."""
    first, size = ground.offsets[j], ground.offsets[j + 1] - ground.offsets[j]
    own = cell_of(ground.cuts, first, first + size, x)
    begin, end = ground.lower[j], ground.upper[j]
    if lo > 0:
        begin = max(begin, ground.cuts[first + lo - 1])
    if hi <= size:
        end = min(end, ground.before[first + hi - 1])
    if begin > end or lo >= hi:
        return np.nan
    z = begin if own < lo else end
    if z > x and ground.up[j] and z < np.inf:
        return z
    if z < x and ground.down[j] and z > -np.inf:
        return z
    return np.nan


@lean
def _leaf_costs(ground: Ground, entry_offsets, feature, lo, hi, missing, x, out):
    """The cost of reaching each leaf: a sum, a count at p = 0, the largest at p = inf; inf if out of reach."""
    p = ground.p
    for leaf in range(len(entry_offsets) - 1):
        total = 0.0
        for e in range(entry_offsets[leaf], entry_offsets[leaf + 1]):
            j = feature[e]
            xj = x[j]
            if np.isnan(xj):
                if missing[e]:
                    continue
                total = np.inf
                break
            first, last = ground.offsets[j], ground.offsets[j + 1]
            own = cell_of(ground.cuts, first, last, xj)
            if lo[e] <= own < hi[e]:
                continue
            z = land_in_box(ground, j, lo[e], hi[e], xj)
            if np.isnan(z) or (p == np.inf and not within_inf(xj, z, ground.scale[j], ground.eps)):
                total = np.inf
                break
            price = cost(abs(z - xj), ground.inverse[j], p)
            total = max(total, price) if p == np.inf else total + price
        out[leaf] = total


@kernel
def _costs(ground: Ground, entry_offsets, feature, lo, hi, missing, X):
    out = np.empty((len(X), len(entry_offsets) - 1))
    for i in range(len(X)):
        _leaf_costs(ground, entry_offsets, feature, lo, hi, missing, X[i], out[i])
    return out


class SingleTree:
    """Exact verification of one tree."""

    batch_rows = 512

    def __init__(self, problem: Problem, time_limit: float | None = None) -> None:
        self.problem = problem
        threat = problem.threat
        spends = 0 < threat.norm < np.inf and 0 < threat.eps < np.inf
        self.ground = ground_of(problem, eps=threat.eps, unit=threat.eps if spends else 1.0)

    @staticmethod
    def refuses(problem: Problem) -> str | None:
        """Why this method cannot serve a problem, if so."""
        if problem.model.n_trees == 1:
            return None
        return f"'tree' needs a model of one tree, and this one has {problem.model.n_trees}."

    def decide(self, pair: Pair, X: np.ndarray, limit: float) -> Found:
        """See `Solver.decide`."""
        threat = self.problem.threat
        if threat.norm == 0:
            limit = threat.count
        elif not threat.moves:
            limit = 0.0
        elif threat.norm == np.inf or threat.eps == np.inf:
            limit = np.finfo(float).max
        costs = self._costs(X)
        margin, low, _, _ = self._leaves(pair)
        reached = costs <= limit
        if not threat.moves:
            reached = self._own(X, costs)
        lower = np.where(reached, low, np.inf).min(axis=1)
        return self._found(X, lower, np.where(reached, margin, np.inf), costs)

    def nearest(self, pair: Pair, X: np.ndarray, cap: np.ndarray) -> Found:
        """See `Solver.nearest`."""
        costs = self._costs(X)
        _, _, may, sure = self._leaves(pair)
        least = np.where(may, costs, np.inf).min(axis=1)
        lower = self.problem.threat.root_below(least)
        lower[lower > cap] = np.inf
        return self._found(X, lower, np.where(sure, costs, np.inf), costs)

    def _costs(self, X: np.ndarray) -> np.ndarray:
        boxes = self.problem.boxes
        return _costs(self.ground, boxes.entry_offsets, boxes.feature, boxes.lo, boxes.hi, boxes.missing, X)

    def _own(self, X: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """The leaf that each row is in: no budget, no move (a move's cost may underflow to 0)."""
        from ..model.predict import leaves

        return leaves(self.problem.model, X) == self.problem.boxes.node

    def _leaves(self, pair: Pair):
        """Each leaf's margin, a sound lower bound of it, and whether it may flip and surely flips."""
        model = self.problem.model
        values = model.value[self.problem.boxes.node]
        margin = pair.base + values @ pair.weights
        if not self.problem.exact_margin:
            low = margin - pair.solver
            if pair.doubt > 0:
                return margin, low, margin <= pair.doubt, margin < -pair.doubt
            flips = margin <= 0 if pair.tie_flips else margin < 0
            return margin, low, flips, flips
        start = Fraction(model.base[pair.y]) - Fraction(model.base[pair.c]) if model.n_outputs > 1 else Fraction(0)
        if model.n_outputs == 1:
            sign = int(pair.weights[0])
            start = sign * (Fraction(model.base[0]) - Fraction(model.cut))
            exact = [start + sign * Fraction(row[0]) for row in values]
        else:
            exact = [start + Fraction(row[pair.y]) - Fraction(row[pair.c]) for row in values]
        low = np.array([float_below(number) for number in exact])
        flips = np.array([number < 0 or (number == 0 and pair.tie_flips) for number in exact])
        return margin, low, flips, flips

    def _found(self, X: np.ndarray, lower: np.ndarray, rank: np.ndarray, costs: np.ndarray) -> Found:
        """Move each row into the leaf of least rank, the nearest of equals."""
        boxes = self.problem.boxes
        n = len(X)
        least = rank.min(axis=1, keepdims=True)
        best = np.argmin(np.where(rank == least, costs, np.inf), axis=1)  # the cheapest of equals
        features, values = [], []
        offsets = np.zeros(n + 1, dtype=np.int64)
        for i in range(n):
            leaf = best[i]
            if np.isfinite(rank[i, leaf]) and costs[i, leaf] < np.inf:
                for e in range(boxes.entry_offsets[leaf], boxes.entry_offsets[leaf + 1]):
                    j = boxes.feature[e]
                    x = X[i, j]
                    first, last = self.ground.offsets[j], self.ground.offsets[j + 1]
                    own = int(np.searchsorted(self.ground.cuts[first:last], x, side="right"))
                    if np.isnan(x) or boxes.lo[e] <= own < boxes.hi[e]:
                        continue
                    features.append(j)
                    values.append(land_in_box(self.ground, j, boxes.lo[e], boxes.hi[e], x))
            offsets[i + 1] = len(features)
        feature = np.array(features, dtype=np.int32)
        return Found(lower, offsets, feature, np.array(values, dtype=np.float64), np.ones(n, dtype=bool))
