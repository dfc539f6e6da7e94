"""Exact answers for additive models too large for brute force, where all costs are small whole numbers.

Rows lie on a grid, features may only grow, and thresholds lie on the grid: a move right lands exactly on a
threshold, so every cost is a whole number of units and a textbook knapsack over whole budgets is exact. Gains
are whole numbers too (leaves are multiples of 1/64). Pseudo-polynomial, for tests only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .plain import PlainModel, stump

STEP = 64  # grid points of a feature and of a leaf value lie on multiples of 1 / STEP


@dataclass
class Instance:
    """Stumps on a whole grid: `cuts[t]` and `features[t]`, and the whole gains (of STEP-ths) of going right."""

    model: PlainModel
    features: np.ndarray
    cuts: np.ndarray
    right: np.ndarray  # (stumps, outputs) whole STEP-ths added by going right
    base: np.ndarray


def make(seed: int, n_features: int, n_stumps: int, norm: float, n_outputs: int = 1, hard: str = "none") -> Instance:
    """Random stumps; `hard` makes each stump's gain follow its cost, the way hard knapsacks are made."""
    rng = np.random.default_rng(seed)
    features = rng.integers(n_features, size=n_stumps)
    steps = rng.integers(1, 20, size=n_stumps)
    cuts = steps**2 if norm == 0.5 else steps  # whole costs at p = 1/2 need square distances
    right = rng.integers(-20, 21, size=(n_stumps, n_outputs))
    if hard != "none":
        cost = step_cost(cuts, norm)
        noise = {"subset-sum": 0, "weak": rng.integers(-2, 3, size=n_stumps), "strong": 5}[hard]
        right[:, 0] = -(cost + noise)
    base = rng.integers(-30, 31, size=n_outputs)
    if n_outputs == 1:
        base = np.array([-right[:, 0][right[:, 0] < 0].sum() // 3])
    zero = [0.0] * n_outputs
    trees = []
    for feature, cut, gain in zip(features, cuts, right, strict=True):
        gains = [float(g) / STEP for g in gain]
        trees.append(stump(int(feature), float(cut) / STEP, *((zero, gains) if n_outputs > 1 else (0.0, gains[0]))))
    model = PlainModel(trees, n_features, n_outputs, [float(b) / STEP for b in base])
    return Instance(model, features, cuts, right, base)


def step_cost(steps, norm: float):
    """Whole cost of moving a feature by whole steps: 1 at p = 0, k^p for whole p, sqrt(k) at p = 1/2."""
    steps = np.asarray(steps)
    if norm == 0:
        return (steps > 0).astype(np.int64)
    if norm == 0.5:
        return np.sqrt(steps).round().astype(np.int64)
    return steps.astype(np.int64) ** int(norm)


def curve(instance: Instance, norm: float, weights: np.ndarray, most: int) -> np.ndarray:
    """Least whole margin (STEP-ths of sum of outputs @ weights) for each whole budget 0..most, from the row 0."""
    best = np.full(most + 1, int(instance.base @ weights), dtype=np.int64)
    for feature in np.unique(instance.features):
        mine = instance.features == feature
        after = best.copy()
        for place in np.unique(instance.cuts[mine]):
            cost = int(step_cost(place, norm))
            gain = int(instance.right[mine & (instance.cuts <= place)].sum(axis=0) @ weights)
            if cost <= most:
                moved = best[: most + 1 - cost] + gain
                after[cost:] = np.minimum(after[cost:], moved)
        best = after
    return np.minimum.accumulate(best)


def eps_of(units: float, norm: float) -> float:
    """The eps whose budget is `units` whole costs (exact where `units` is whole, for p = 0, 1, 1/2)."""
    if norm == 0:
        return float(units)
    if norm == 0.5:
        return float(units) ** 2 / STEP
    return float(units) ** (1.0 / norm) / STEP
