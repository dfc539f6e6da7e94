"""What a move costs an adversary during stump training, for each norm and bound, in one small record.

Four kinds share all later code: p = 0 (a moved feature costs 1, budget floor(eps)), p = inf (a move within
eps costs 0, any other is impossible), and 0 < p < inf exactly (|d|^p against eps^p) or on the paper's grid
(both floored to multiples of `precision`). Exact up to rounding, which always favours the adversary here;
proofs about the trained model come from `treeproof.certify`, not from these tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._errors import InvalidInputError, must_be
from .._jit import kernel

COUNTED, FILTERED, EXACT, GRID = 0, 1, 2, 3
# a sum of n floors of (c / nu + LEVEL_SLACK) is at most (sum c) / nu + n * LEVEL_SLACK: for n up to 10,000
# moved features the budget's slack keeps the grid sound although exact multiples stay exact multiples
LEVEL_SLACK, BUDGET_SLACK = 1e-10, 1e-6


class Costs(NamedTuple):
    """Kind of cost, the norm's p, the scale (precision or eps), and the budget in cost units."""

    kind: int
    p: float
    scale: float
    budget: float


def costs_of(norm: float, eps: float, bound: str, precision: float | None) -> Costs:
    """The cost record of a norm, radius and bound ("grid" or "exact")."""
    if norm == 0:
        return Costs(COUNTED, 0.0, 1.0, float(np.floor(eps)))
    if np.isinf(norm):
        return Costs(FILTERED, float(norm), float(eps), 0.0)
    whole = float(eps) ** norm
    if bound == "exact" or precision is None:
        return Costs(EXACT, float(norm), 1.0, whole * (1 + 1e-12))
    if whole > 0 and precision > whole:
        raise InvalidInputError(must_be("precision", f"at most the budget eps**p = {whole:g}", precision))
    return Costs(GRID, float(norm), float(precision), float(np.floor(whole / precision + BUDGET_SLACK)))


@kernel
def cost_of(distance, costs):
    """Cost of moving one feature by a positive distance."""
    if costs.kind == COUNTED:
        return 1.0
    if costs.kind == FILTERED:
        return 0.0 if distance <= costs.scale else np.inf
    if costs.p == 1.0:
        cost = distance
    elif costs.p == 2.0:
        cost = distance * distance
    else:
        cost = distance**costs.p
    if costs.kind == GRID:
        return np.floor(cost / costs.scale + LEVEL_SLACK)
    return cost


@kernel
def reach_of(remaining, costs):
    """The distance R such that moves of less than R, and no others, cost at most `remaining` (R = 0: none)."""
    if remaining < 0:
        return 0.0
    if costs.kind == COUNTED:
        return np.inf if remaining >= 1.0 else 0.0
    if costs.kind == FILTERED:
        return np.nextafter(costs.scale, np.inf)
    if costs.kind == GRID:
        return ((remaining + 1.0 - LEVEL_SLACK) * costs.scale) ** (1.0 / costs.p)
    return np.nextafter(remaining ** (1.0 / costs.p), np.inf)
