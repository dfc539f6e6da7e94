"""A batch of rows, each with bounds of its minimal radius: every class pair asked, every witness replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..model.predict import scores
from ..results import Witnesses
from .replay import TINY, replay
from .within import RowStates, count_cast, here_flips

if TYPE_CHECKING:
    from .problem import Problem, Solver


class RadiusBatch(NamedTuple):
    lower: np.ndarray
    upper: np.ndarray
    exact: np.ndarray
    predicted: np.ndarray
    witnesses: Witnesses
    cast_rows: int


def radius_batch(
    problem: Problem, solver: Solver, X: np.ndarray, y: np.ndarray | None, max_radius: float
) -> RadiusBatch:
    """Radii of checked rows; `y` are positions in the model's classes."""
    model = problem.model
    rows = model.cast(X)
    raw = scores(model, rows)
    predicted = model.decide(raw)
    target = predicted if y is None else y
    out = RowStates(rows, raw)
    wrong = predicted != target
    out.lower[wrong], out.upper[wrong], out.present[wrong] = 0.0, 0.0, True
    for c in np.unique(target[~wrong]):
        mine = np.flatnonzero((target == c) & ~wrong)
        for pair in problem.pairs(int(c)):
            cap = np.minimum(out.upper[mine], max_radius)
            found = solver.nearest(pair, rows[mine], cap)
            seen = replay(problem, pair, rows[mine], found, None)
            out.lower[mine] = np.minimum(out.lower[mine], found.lower)
            nearer = seen.flips & (seen.distance < out.upper[mine])
            out.upper[mine[nearer]] = seen.distance[nearer]
            out.take(mine, found, nearer)
        if problem.exact_margin:
            here = mine[here_flips(problem, rows[mine], int(c))]
            out.forget(np.isin(np.arange(len(rows)), here))  # such a row is its own witness, unmoved
            out.upper[here], out.present[here] = 0.0, True
    beyond = out.lower > max_radius
    out.forget(beyond)
    out.lower[beyond], out.upper[beyond] = np.inf, np.inf
    out.lower[out.lower < TINY] = 0.0  # relative errors mean nothing among denormal numbers
    exact = np.isinf(out.lower)
    known = np.isfinite(out.upper)
    gap = out.upper[known] - out.lower[known]
    with np.errstate(divide="ignore", invalid="ignore"):
        # the p-th root's own rounding grows with the logarithm (see `root_below`)
        loose = np.where(out.upper[known] > 0, np.abs(np.log(out.upper[known])) * 2.0**-50, 0.0)
    close = max(_rounding(problem), getattr(solver, "gap", 0.0))
    exact[known] = gap <= np.maximum((close + loose) * out.upper[known], TINY)
    return RadiusBatch(out.lower, out.upper, exact, predicted, out.witnesses(), count_cast(X, rows))


def _rounding(problem: Problem) -> float:
    """The relative gap that float rounding alone leaves between the two bounds."""
    p = problem.threat.norm
    if p == 0:
        return 0.0
    return 2.0**-47 if np.isinf(p) else 8 * problem.threat.rounding / min(p, 1.0)
