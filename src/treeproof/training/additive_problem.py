"""The training problem of an additive model as arrays: cells, rows, threat, penalties, and its exact pieces.

Features without thresholds are left out; one more feature, with a single cell, holds the intercept, so that
the whole objective is strongly convex and has a rigorous dual (`additive_gap`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from ..threat import ResolvedThreat
from .additive_bins import codes_of

LOSSES = {"logistic": 0, "exponential": 1, "hinge": 2}
PARTS = 4  # a batch is always cut into the same parts, whatever the number of threads


def spread(run, which, pool):
    """Run `run(part, rows of that part)` over the fixed parts of `which`."""
    if len(which) < 32 * PARTS:
        return [run(0, which)]
    parts = np.array_split(which, PARTS)
    if pool is None:
        return [run(k, part) for k, part in enumerate(parts)]
    return list(pool.map(run, range(PARTS), parts))


@dataclass
class Problem:
    """Cells and rows of one binary problem. `values` everywhere is one flat array over all cells."""

    features: np.ndarray  # the input's column of each feature here, without the intercept's
    thresholds: list[np.ndarray]
    threat: ResolvedThreat
    first: np.ndarray
    up: np.ndarray
    down: np.ndarray
    monotone: np.ndarray
    loss: int
    tv: float
    l2: float
    n_jobs: int = 1
    _work: list = field(default_factory=list)

    @property
    def cells(self) -> int:
        return int(self.first[-1])

    def grid(self, share: float = 1.0):
        """The kernels' view of the cells, with the budget's eps multiplied by `share`."""
        from .additive_bound import COUNT, POWER_ANY, POWER_ONE, POWER_TWO, Grid

        p, threat = self.threat.norm, self.threat
        kind = {0.0: COUNT, 1.0: POWER_ONE, 2.0: POWER_TWO, np.inf: POWER_ONE}.get(p, POWER_ANY)
        slack = 1.0 + 2.0 * threat.rounding
        up, down, scale = self.up, self.down, np.ones(len(self.first) - 1)
        budget = {0.0: threat.count * share, np.inf: np.inf}.get(p, slack)
        moves = threat.moves and share > 0
        if moves and p > 0:
            unit = min(threat.eps, 1e60) * share
            scale[:-1] = threat.inverse_scale(unit)[self.features]
        if not moves:
            up, down = np.full(self.cells, np.inf), np.full(self.cells, -np.inf)
        return Grid(self.first, up, down, scale, kind, p, slack, budget)

    def rows(self, X, sign, weight):
        """Rows as the kernels read them; weights are scaled to an average of one."""
        from .additive_bound import Rows

        compact = np.zeros((len(X), len(self.first) - 1))
        compact[:, :-1] = X[:, self.features]
        code = np.zeros(compact.shape, dtype=np.int16)
        code[:, :-1] = codes_of(compact[:, :-1], self.thresholds)
        weight = weight / weight.mean()
        return Rows(compact, code, np.ascontiguousarray(sign), weight, np.zeros(len(X)))

    def chains(self, values):
        """For each sign the next better cell upwards and downwards of every cell."""
        from .additive_bound import next_smaller

        right = np.empty((2, self.cells), dtype=np.int32)
        left = np.empty((2, self.cells), dtype=np.int32)
        for side, sign in enumerate((1.0, -1.0)):
            next_smaller(values, self.first, sign, right[side], left[side])
        return right, left

    def forget_workspaces(self) -> None:
        """Free what only a run of training needs."""
        self._work.clear()

    def _workspaces(self):
        from .additive_bound import scratch_for

        if not self._work:
            self._work.extend(scratch_for(len(self.first) - 1, self.cells) for _ in range(PARTS))
        return self._work

    def bounds(self, rows, values, share: float = 1.0, pool=None) -> np.ndarray:
        """The lower bound of each row's worst-case margin."""
        from .additive_bound import bounds

        right, left = self.chains(values)
        grid, work = self.grid(share), self._workspaces()
        out = np.empty(len(rows.sign))

        def run(k, part):
            margin = np.empty(len(part))
            bounds(part, rows, values, right, left, grid, work[k], margin)
            out[part] = margin

        spread(run, np.arange(len(out)), pool)
        return out

    def mean_loss(self, which, rows, values, grid, pool=None):
        """Mean loss over rows `which`, its plane's offset at zero, and a subgradient: a supporting plane."""
        from .additive_bound import loss_and_slope

        right, left = self.chains(values)
        work = self._workspaces()

        def run(k, part):
            slope = np.zeros(self.cells)
            total, offset = loss_and_slope(part, rows, values, right, left, grid, work[k], self.loss, slope)
            return total, offset, slope

        found = spread(run, which, pool)
        count = len(which)
        slope = found[0][2]
        for _, _, more in found[1:]:
            slope += more
        return sum(one[0] for one in found) / count, sum(one[1] for one in found) / count, slope / count

    def penalty(self, values) -> float:
        """tv * total variation + l2 / 2 * squared norm."""
        from .additive_gap import total_variation

        return self.tv * total_variation(values, self.first) + 0.5 * self.l2 * float(values @ values)

    def penalty_slope(self, values) -> np.ndarray:
        """A subgradient of the penalty."""
        slope = self.l2 * values
        if self.tv:
            steps = self.tv * np.sign(np.diff(values))
            steps[self.first[1:-1] - 1] = 0.0
            slope[1:] += steps
            slope[:-1] -= steps
        return slope

    def project(self, values) -> np.ndarray:
        """The nearest staircases that keep the monotone constraints."""
        from .additive_gap import proximal

        if not self.monotone.any():
            return values
        out = values.copy()
        for j in np.flatnonzero(self.monotone):
            begin, end = self.first[j], self.first[j + 1]
            ends = np.array([0, end - begin])
            proximal(values[begin:end], ends, 0.0, self.monotone[j : j + 1], out[begin:end])
        return out

    def pool(self):
        """Threads for the parts of a batch, or None."""
        return ThreadPoolExecutor(min(PARTS, self.n_jobs)) if self.n_jobs > 1 else None


def build(thresholds, threat: ResolvedThreat, monotone, loss: str, tv: float, l2: float, n_jobs: int = 1) -> Problem:
    """The problem for one array of thresholds a feature (columns of the input)."""
    features = np.flatnonzero([len(steps) > 0 for steps in thresholds])
    kept = [thresholds[j] for j in features]
    first = np.concatenate([[0], np.cumsum([len(steps) + 1 for steps in kept] + [1])]).astype(np.int64)
    up, down = np.full(first[-1], np.inf), np.full(first[-1], -np.inf)
    for at, (j, steps) in enumerate(zip(features, kept, strict=True)):
        low = np.concatenate([[-np.inf], steps])
        high = np.concatenate([steps, [np.inf]])
        cells = slice(first[at], first[at + 1])
        # where a move lands: inside the cell and inside the valid range (a row that starts outside the range
        # may be credited with a cell that it only passes: sound, and its chain of cells stays whole)
        enter_up, enter_down = np.maximum(low, threat.lower[j]), np.minimum(high, threat.upper[j])
        if threat.up[j]:
            up[cells] = np.where(enter_up <= threat.upper[j], enter_up, np.inf)
        if threat.down[j]:
            down[cells] = np.where(enter_down >= threat.lower[j], enter_down, -np.inf)
    signs = np.zeros(len(first) - 1, dtype=np.int64)
    signs[:-1] = monotone[features]
    return Problem(features, kept, threat, first, up, down, signs, LOSSES[loss], tv, l2, n_jobs)


def restricted(problem: Problem, rows, kept: list[np.ndarray]):
    """The problem and rows with only the thresholds of the masks `kept`; features without any leave."""
    stay = np.flatnonzero([mask.any() for mask in kept])
    d = int(problem.features.max(initial=-1)) + 1
    thresholds = [np.zeros(0)] * d
    signs = np.zeros(d, dtype=np.int64)
    for at in stay:
        thresholds[problem.features[at]] = problem.thresholds[at][kept[at]]
        signs[problem.features[at]] = problem.monotone[at]
    loss = next(name for name, code in LOSSES.items() if code == problem.loss)
    smaller = build(thresholds, problem.threat, signs, loss, problem.tv, problem.l2, problem.n_jobs)
    places = [np.concatenate([[0], np.cumsum(kept[at])]).astype(np.int16) for at in stay]
    code = np.zeros((len(rows.sign), len(stay) + 1), dtype=np.int16)
    for new, (at, place) in enumerate(zip(stay, places, strict=True)):
        code[:, new] = place[rows.code[:, at]]
    columns = np.concatenate([stay, [rows.X.shape[1] - 1]])
    X = np.ascontiguousarray(rows.X[:, columns])
    return smaller, rows._replace(X=X, code=code, slope=np.zeros(len(rows.sign)))
