"""Few thresholds: from the dense solution down a nested path, all remaining heights refitted at each stage.

A stage keeps the thresholds that matter most and solves the same convex problem on what is left, from where it
stood. While many remain, a threshold matters by its step squared times the share of rows on either side; near
the end by the loss that its removal really costs. From the same bins and seed a smaller T goes down the same path
and keeps a subset: the optimal training objective can only fall as more thresholds are allowed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .additive_optimiser import Settings, Solution, solve
from .additive_problem import Problem, restricted

KEEP, KEEP_CAREFULLY = 0.75, 0.9
CAREFUL_BELOW = 240  # thresholds: from here on removals are tried out
TRIAL_ROWS = 3_000


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


def removal_costs(problem: Problem, rows, values, rng) -> list[np.ndarray]:
    """What removing each threshold costs in mean loss, before any refit (on at most `TRIAL_ROWS` rows)."""
    which = np.sort(rng.permutation(len(rows.sign))[:TRIAL_ROWS])
    grid, pool = problem.grid(), None
    now = problem.mean_loss(which, rows, values, grid, pool)[0]
    out = []
    for at in range(len(problem.features)):
        begin, end = problem.first[at], problem.first[at + 1]
        mass = np.bincount(rows.code[:, at], weights=rows.weight, minlength=end - begin) + 1e-3
        costs = np.empty(end - begin - 1)
        for k in range(len(costs)):
            trial = values.copy()
            pair = slice(begin + k, begin + k + 2)
            trial[pair] = np.average(values[pair], weights=mass[k : k + 2])
            costs[k] = problem.mean_loss(which, rows, trial, grid, pool)[0] - now
        out.append(costs)
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
    problem: Problem, rows, solution: Solution, most: int, settings: Settings, rng
) -> tuple[Problem, object, Solution]:
    """Go down the path to at most `most` thresholds; returns the small problem, its rows and its solution."""
    epochs = max(1, settings.epochs // 3)
    stage = replace(settings, epochs=epochs, max_epochs=epochs, ramp=0.0, report=None)
    while True:
        values = solution.values
        weights = step_weights(problem, rows, values)
        count = int(sum(np.count_nonzero(one) for one in weights))
        if count <= most and count == sum(map(len, weights)):
            return problem, rows, solution
        careful = count <= CAREFUL_BELOW
        if careful:
            costs = removal_costs(problem, rows, values, rng)
            # flat steps go first
            weights = [np.where(one > 0, cost, -np.inf) for one, cost in zip(weights, costs, strict=True)]
        flat = np.concatenate(weights)
        target = min(count, max(most, int((KEEP_CAREFULLY if careful else KEEP) * count)))
        mask = np.zeros(len(flat), dtype=bool)
        mask[np.argsort(-flat, kind="stable")[:target]] = True
        kept = np.split(mask, np.cumsum([len(one) for one in weights])[:-1])
        start = merged(problem, rows, values, kept)
        problem, rows = restricted(problem, rows, kept)
        last = target <= most
        solution = solve(problem, rows, replace(settings, ramp=0.0) if last else stage, rng, start=start)
        if last:
            return problem, rows, solution
