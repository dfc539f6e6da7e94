"""Refit all leaf values of an ensemble at once: a convex problem under the shared-budget bound.

Minimises the mean loss of the rows' bounds (`tree_shared`), or a mixture with their loss unmoved, plus an L2
penalty, by Adam on minibatches with the bound's true supergradient, a cosine rate and the average of the last
third. The budget rises over the first third of the epochs: zero is a kink of the full-budget problem.

A convex loss spends itself on rows that nothing can prove, until the constant looks best. The polish goes on from
the convex optimum with the smoothed count of unproved rows, 1 / (1 + exp(margin)), which gives such rows up: not
convex, so its budget rises again from nothing. Cost an epoch: rows x reachable leaves x tangents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .tree_losses import LOSSES
from .tree_shared import Reach, pick_leaves, shared_bound, shared_bounds
from .tree_split import EXPONENTIAL

# the polish's loss, beside the two convex ones
COUNT = 2


@dataclass(frozen=True)
class RefitOptions:
    """How leaf values are refitted."""

    loss: int = LOSSES["logistic"]
    epochs: int = 20
    batch: int | None = None  # rows a step; None: a twentieth of the rows, 16 to 256
    rate: float = 0.02
    l2: float = 1e-4
    clean: float = 0.0  # share of the unmoved rows' loss in the objective
    polish: bool = False  # whether the smoothed count of unproved rows is lowered afterwards
    warm_up: float = 0.3  # share of the epochs over which the budget rises from nothing
    average: float = 0.3  # share of the epochs whose values are averaged


class Memory(NamedTuple):
    """What Adam remembers; the base score is the last value."""

    values: np.ndarray
    first: np.ndarray
    second: np.ndarray
    total: np.ndarray
    steps: np.ndarray  # int64: steps taken, steps averaged
    lam: np.ndarray  # per row, the last best multiplier


@kernel
def _adam_step(memory, gradient, rate):
    memory.steps[0] += 1
    fade_first = 1.0 - 0.9 ** memory.steps[0]
    fade_second = 1.0 - 0.999 ** memory.steps[0]
    for k in range(len(gradient)):
        memory.first[k] += 0.1 * (gradient[k] - memory.first[k])
        memory.second[k] += 0.001 * (gradient[k] * gradient[k] - memory.second[k])
        scale = np.sqrt(memory.second[k] / fade_second) + 1e-8
        memory.values[k] -= rate * memory.first[k] / fade_first / scale


@kernel
def _pull(margin, loss):
    """Minus the slope of the loss."""
    if loss == EXPONENTIAL:
        return np.exp(-max(margin, -20.0))
    slope = 1.0 / (1.0 + np.exp(max(min(margin, 500.0), -500.0)))
    return slope * (1.0 - slope) if loss == COUNT else slope


@kernel
def _epoch(reach, rows, order, memory, trees, settings):
    """One pass over `order`; rows: (side, weight); settings: (loss, batch, l2, clean, budget, rates, keep)."""
    side, weight = rows
    loss, batch, l2, clean, budget, rates, keep = settings
    last = len(memory.values) - 1
    dear, cheap = np.empty(trees, dtype=np.int64), np.empty(trees, dtype=np.int64)
    gradient = np.empty(last + 1)
    for step in range(len(rates)):
        part = order[step * batch : (step + 1) * batch]
        gradient[:] = 0.0
        mass = 0.0
        for i in part:
            bound, lam, theta = shared_bound(reach, memory.values, i, side[i], budget, memory.lam[i], dear, cheap)
            memory.lam[i] = lam
            pull = (1.0 - clean) * weight[i] * _pull(bound + side[i] * memory.values[last], loss)
            mass += weight[i]
            gradient[last] -= side[i] * pull
            for t in range(trees):
                gradient[dear[t]] -= theta * side[i] * pull
                gradient[cheap[t]] -= (1.0 - theta) * side[i] * pull
            if clean > 0.0:
                # free leaves only: where the row is (or would be, an ulp away)
                score, _ = pick_leaves(reach, memory.values, i, side[i], np.inf, np.inf, cheap)
                pull = clean * weight[i] * _pull(score + side[i] * memory.values[last], loss)
                gradient[last] -= side[i] * pull
                for t in range(trees):
                    gradient[cheap[t]] -= side[i] * pull
        for k in range(last + 1):
            gradient[k] = gradient[k] / mass + (l2 * memory.values[k] if k < last else 0.0)
        _adam_step(memory, gradient, rates[step])
        if keep:
            memory.total[:] += memory.values
            memory.steps[1] += 1


def refit(reach: Reach, rows, start, options: RefitOptions, power: float, rng) -> tuple[np.ndarray, float]:
    """Fit all leaf values and the base, (values, base), from where they stand in `start`.

    `rows` is (side, weight); `power` is how the budget grows with the radius: p for a finite norm, 0 where
    nothing is spent.
    """
    fitted = _descend(reach, rows, np.append(*start), options, power, rng)
    if options.polish:
        count = replace(options, loss=COUNT, warm_up=0.5)
        fitted = _descend(reach, rows, fitted, count, power, rng)
    return fitted[:-1], float(fitted[-1])


def _descend(reach: Reach, rows, start: np.ndarray, options: RefitOptions, power: float, rng) -> np.ndarray:
    """All epochs with one loss; `start` and the result end with the base."""
    side = rows[0]
    trees = (len(reach.start) - 1) // len(side)
    memory = Memory(
        values=start.copy(),
        first=np.zeros(len(start)),
        second=np.zeros(len(start)),
        total=np.zeros(len(start)),
        steps=np.zeros(2, dtype=np.int64),
        lam=np.zeros(len(side)),
    )
    batch = options.batch or min(256, max(16, len(side) // 20))
    batches = -(-len(side) // batch)
    for epoch in range(options.epochs):
        done = (epoch + np.arange(batches) / batches) / options.epochs
        rates = options.rate * 0.5 * (1 + np.cos(np.pi * done))
        radius = min(1.0, (epoch + 1) / max(1.0, options.warm_up * options.epochs))
        keep = epoch >= (1.0 - options.average) * options.epochs
        settings = (options.loss, batch, options.l2, options.clean, radius**power, rates, keep)
        _epoch(reach, rows, rng.permutation(len(side)), memory, trees, settings)
    return memory.total / memory.steps[1] if memory.steps[1] else memory.values


def bounds(reach: Reach, side: np.ndarray, values: np.ndarray, base: float) -> np.ndarray:
    """Lower bounds of side * score over the ball, under one shared budget."""
    trees = (len(reach.start) - 1) // len(side)
    return side * base + shared_bounds(reach, values, side, trees, 1.0)
