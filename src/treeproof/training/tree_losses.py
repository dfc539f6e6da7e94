"""The two losses of a tree trainer, on margin bounds, and their statistics for split finding.

Exponential exp(-m) (the paper's) and logistic log(1 + exp(-m)). Both are convex and decreasing, so the worst
loss of a row is the loss of its worst margin.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from .tree_split import EXPONENTIAL, LOGISTIC

LOSSES = {"exponential": EXPONENTIAL, "logistic": LOGISTIC}

# beyond this exp() leaves float64's range; such rows weigh "as much as can be"
_STEEPEST = 600.0


def loss_values(margins: np.ndarray, loss: int) -> np.ndarray:
    """The loss of each margin."""
    if loss == EXPONENTIAL:
        return np.exp(-np.maximum(margins, -_STEEPEST))
    return np.logaddexp(0.0, -margins)


def slopes(margins: np.ndarray, loss: int) -> np.ndarray:
    """Minus the derivative of the loss: how much each row pulls."""
    if loss == EXPONENTIAL:
        return np.exp(-np.maximum(margins, -_STEEPEST))
    return expit(-margins)


def statistics(margins: np.ndarray, side: np.ndarray, weight: np.ndarray, loss: int) -> np.ndarray:
    """Rows of the statistics that `tree_split` sums: positives' columns, negatives' columns, weight."""
    pull = weight * slopes(margins, loss)
    positive = side > 0
    if loss == EXPONENTIAL:
        columns = [np.where(positive, pull, 0.0), np.where(positive, 0.0, pull), weight]
    else:
        bend = weight * expit(margins) * expit(-margins)
        columns = [
            np.where(positive, -pull, 0.0),
            np.where(positive, bend, 0.0),
            np.where(positive, 0.0, pull),
            np.where(positive, 0.0, bend),
            weight,
        ]
    return np.ascontiguousarray(np.column_stack(columns))


def best_constant(margins, side, weight, loss: int, cap: float, l2: float) -> float:
    """The v in [-cap, cap] that minimises sum w loss(m + side v) + penalty(v), to the last bit."""
    if loss == EXPONENTIAL:
        pull = weight * slopes(margins, loss)
        up, down = pull[side > 0].sum() + 0.5 * l2, pull[side < 0].sum() + 0.5 * l2
        if up <= 0 or down <= 0:
            return 0.0 if up == down else (cap if up > down else -cap)
        return float(np.clip(0.5 * np.log(up / down), -cap, cap))

    def slope(value: float) -> float:
        return float(l2 * value - np.sum(weight * side * expit(-(margins + side * value))))

    low, high = -cap, cap
    if slope(low) >= 0:
        return low
    if slope(high) <= 0:
        return high
    for _ in range(60):
        middle = 0.5 * (low + high)
        if slope(middle) > 0:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def best_pair(margins, side, weight, reach, loss: int, cap: float, l2: float) -> tuple[float, float]:
    """The exact (w_l, w_r) for rows whose `reach` (m, 2) says which sides they can be brought to."""
    left, right = reach[:, 0], reach[:, 1]
    both = left & right
    for rising in (True, False):
        # where w_l <= w_r a positive row that reaches both sides is worst off left, a negative one right
        worst_left = (side > 0) == rising
        on_left, on_right = (left & ~both) | (both & worst_left), (right & ~both) | (both & ~worst_left)
        pair = [best_constant(margins[rows], side[rows], weight[rows], loss, cap, l2) for rows in (on_left, on_right)]
        if pair[0] == pair[1] or (pair[0] < pair[1]) == rising:
            return pair[0], pair[1]
    value = best_constant(margins, side, weight, loss, cap, 2.0 * l2)
    return value, value
