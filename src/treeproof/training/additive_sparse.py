"""Few thresholds: from the dense solution down a nested path, all remaining heights refitted at each stage.

A stage keeps the thresholds whose steps matter most (step squared, times the share of rows on either side),
about three quarters of them, and solves the same convex problem on what is left, from where it stood. The sets
are nested, so that the optimal training objective can only fall as more thresholds are allowed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .additive_optimiser import Settings, Solution, solve
from .additive_problem import Problem, restricted

KEEP = 0.75


def step_weights(problem: Problem, rows, values) -> list[np.ndarray]:
    """How much each threshold matters: squared step times the variance of the side a row is on."""
    out = []
    weight = rows.weight / rows.weight.sum()
    for at in range(len(problem.features)):
        own = values[problem.first[at] : problem.first[at + 1]]
        mass = np.bincount(rows.code[:, at], weights=weight, minlength=len(own))
        below = np.cumsum(mass)[:-1]
        out.append(np.diff(own) ** 2 * np.clip(below * (1.0 - below), 1e-6, None))
    return out


def merged(problem: Problem, rows, values, kept: list[np.ndarray]) -> np.ndarray:
    """Values of the problem restricted to thresholds `kept` (masks): means over the rows of the joined cells."""
    parts = []
    for at, mask in enumerate(kept):
        own = values[problem.first[at] : problem.first[at + 1]]
        mass = np.bincount(rows.code[:, at], weights=rows.weight, minlength=len(own)) + 1e-3
        group = np.concatenate([[0], np.cumsum(mask)])
        parts.append((mask.any(), np.bincount(group, own * mass) / np.bincount(group, mass)))
    constant = values[-1] + sum(float(one[0]) for steps, one in parts if not steps)
    return np.concatenate([*(one for steps, one in parts if steps), [constant]])


def prune(
    problem: Problem, rows, solution: Solution, most: int, settings: Settings, rng, validate=None
) -> tuple[Problem, object, Solution]:
    """Go down the path to at most `most` thresholds; returns the small problem, its rows and its solution."""
    values = solution.values
    stage = replace(settings, epochs=max(1, settings.epochs // 3), max_epochs=max(1, settings.epochs // 3))
    stage = replace(stage, rate=settings.rate, report=None)
    while True:
        weights = step_weights(problem, rows, values)
        flat = np.concatenate(weights) if weights else np.zeros(0)
        count = int(np.count_nonzero(flat))
        if count <= most and count == len(flat):
            return problem, rows, solution
        target = max(most, int(KEEP * count)) if count > most else count
        order = np.argsort(-flat, kind="stable")[:target]
        mask = np.zeros(len(flat), dtype=bool)
        mask[order] = True
        kept = np.split(mask, np.cumsum([len(one) for one in weights])[:-1]) if weights else []
        start = merged(problem, rows, values, kept)
        problem, rows = restricted(problem, rows, kept)
        last = target <= most
        use = replace(settings, ramp=0.0) if last else stage
        solution = solve(problem, rows, use, rng, start=start, validate=validate if last else None)
        values = solution.values
        if last:
            return problem, rows, solution
