"""The optimiser of additive training: averaged steps in cycles, with a rigorous gap as its report.

Each cycle runs minibatch steps with a falling step size and ends at the average of its last part. In the
first cycle eps rises from zero (at zero the objective has a kink that plain methods cannot leave). After
the ramp every pass over the rows also yields a supporting plane of the mean loss, so that the gap to the
optimum of the convex objective is known at the end of each cycle (`additive_gap`). Cycles go on until the
gap is small, a validation error is flat, or the epochs are spent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._errors import InvalidInputError
from .additive_gap import Planes
from .additive_problem import Problem
from .progress import tell_round


@dataclass
class Settings:
    """How to optimise; see `AdditiveClassifier` for the meaning."""

    epochs: int
    max_epochs: int
    batch: int
    rate: float
    ramp: float
    average: float
    tol: float
    patience: int
    report: Callable[[str], None] | None = None
    label: str = ""


@dataclass
class Solution:
    """Trained staircases and what is known about them."""

    values: np.ndarray
    objective: float
    lower_bound: float
    stopped_by: str
    history: dict[str, list] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Relative distance to the optimum, at most."""
        return max(0.0, self.objective - self.lower_bound) / max(abs(self.objective), 1e-12)


def run_cycle(
    problem: Problem, rows, values, settings: Settings, epochs: int, ramp: float, spent: int, planes, rng, pool
):
    """One cycle of steps from `values`; returns the average of its last part and adds planes."""
    from .additive_adam import Adam

    n, adam, values = len(rows.sign), Adam(problem.first), values.copy()
    batches = max(1, int(np.ceil(n / settings.batch)))
    steps, step = epochs * batches, 0
    total, taken = np.zeros(problem.cells), 0
    for epoch in range(epochs):
        order = rng.permutation(n)
        offset, slope, full = 0.0, np.zeros(problem.cells), True
        for batch in np.array_split(order, batches):
            done = step / steps
            share = min(1.0, (step + 1) / (ramp * steps)) if ramp else 1.0
            full &= share == 1.0
            _, base, gradient = problem.mean_loss(batch, rows, values, problem.grid(share), pool)
            if full:
                offset += base * len(batch) / n
                slope += gradient * (len(batch) / n)
            rate = settings.rate * 0.5 * (1.0 + np.cos(np.pi * done))
            adam.move(values, gradient + problem.penalty_slope(values), rate)
            values = problem.project(values)
            step += 1
            if step > steps * (1.0 - settings.average):
                total += values
                taken += 1
        if full:
            planes.add(offset, slope)
        tell_round(settings.label, spent + epoch + 1, settings.max_epochs)
    return total / max(taken, 1)


def judge(problem: Problem, rows, values, planes: Planes, pool):
    """Objective at full eps and the best proved lower bound of its optimum."""
    loss, offset, slope = problem.mean_loss(np.arange(len(rows.sign)), rows, values, problem.grid(), pool)
    planes.add(offset, slope)
    lower, _ = planes.lower_bound()
    return loss + problem.penalty(values), lower


def solve(problem, rows, settings: Settings, rng, start=None, validate: Callable | None = None) -> Solution:
    """Train the staircases.

    Parameters
    ----------
    problem : Problem or BlockProblem
    rows, settings
    rng : numpy.random.Generator
    start : array (cells,), optional
        Where to start; zero by default. A given start skips the rise of eps.
    validate : callable, optional
        From values to a validation error: the best cycle's values are kept and a flat error stops.
    """
    values = np.zeros(problem.cells) if start is None else start.copy()
    planes = Planes(problem.first, problem.tv, problem.l2, problem.monotone)
    history: dict[str, list] = {"epoch": [], "objective": [], "lower_bound": [], "validation_error": []}
    pool = problem.pool()
    best, best_objective, best_key, flat, spent, lower = values, np.inf, np.inf, 0, 0, -np.inf
    epochs, stopped_by = settings.epochs, "max_epochs"
    try:
        while spent < settings.max_epochs:
            epochs = min(epochs, settings.max_epochs - spent)
            ramp = settings.ramp if start is None and spent == 0 else 0.0
            values = run_cycle(problem, rows, values, settings, epochs, ramp, spent, planes, rng, pool)
            spent += epochs
            objective, proved = judge(problem, rows, values, planes, pool)
            if not np.isfinite(objective):
                raise InvalidInputError(
                    f"learning_rate must keep the training objective finite. Got {settings.rate!r}, which does not: "
                    "use a smaller one."
                )
            lower = max(lower, proved)
            error = validate(values) if validate is not None else None
            key = objective if error is None else error
            flat = 0 if key < best_key else flat + 1
            if key < best_key:
                best, best_key, best_objective = values, key, objective
            for name, entry in zip(history, (spent, objective, lower, error), strict=True):
                history[name].append(entry)
            if settings.report is not None:
                settings.report(
                    f"epoch {spent}: objective {objective:.5f}, optimum at least {lower:.5f}"
                    + ("" if error is None else f", verified validation error {error:.4f}")
                )
            if objective - lower <= settings.tol * abs(objective):
                stopped_by = "tol"
                break
            if error is not None and flat >= settings.patience:
                stopped_by = "validation"
                break
    finally:
        if pool is not None:
            pool.shutdown()
    return Solution(best, best_objective, lower, stopped_by, history)
