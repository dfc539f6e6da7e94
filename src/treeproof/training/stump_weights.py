"""The two leaf values of a stump under the robust loss, for one candidate threshold (paper section 4.1, appendix).

For rows with worst margins D_L (forced left) and D_R (forced right) minimise
sum_i s_i loss(min(D_L + y l, D_R + y r)) over -max_weight <= l, r <= max_weight: jointly convex (Theorem 2).
With delta = r - l fixed, each row's worst side is fixed too, and l is a smooth problem in one unknown (closed
form for the exponential loss, safeguarded Newton otherwise); the outer problem in delta is convex, so
bisection on its slope (or a golden section) ends at the optimum, where coordinate descent can stall at a kink.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .losses import Exponential, Logistic
from .stump_logistic import logistic_leaves

GOLDEN, GOLDEN_STEPS = (5**0.5 - 1) / 2, 70


class Leaves(NamedTuple):
    """Robust loss and the two leaf values."""

    loss: float
    left: float
    right: float


def best_leaves(left, right, y, sample_weight, loss, limit: float) -> Leaves:
    """The optimal leaf values for given D_L and D_R (n,), each within [-limit, limit]."""
    if isinstance(loss, Exponential):
        return _exponential_leaves(left, right, y, sample_weight, limit)
    if isinstance(loss, Logistic):
        return Leaves(*logistic_leaves(left, right, y, sample_weight, float(limit)))
    return _general_leaves(left, right, y, sample_weight, loss, limit)


class Turns(NamedTuple):
    """Rows of one label by the delta at which their worst side turns, with running sums of the weights of each side."""

    at: np.ndarray
    left: np.ndarray
    right: np.ndarray


def _turns(left, right, sample_weight, sign: float, shift: float) -> Turns:
    # y = +1 picks the left side from delta >= D_L - D_R on, y = -1 up to delta <= D_R - D_L
    turn = sign * (left - right)
    order = np.argsort(turn)
    sums = np.zeros((2, len(order) + 1))
    for side, margin in zip(sums, (left, right), strict=True):
        np.cumsum((sample_weight * np.exp(shift - margin))[order], out=side[1:])
    return Turns(turn[order], sums[0], sums[1])


def _exponential_leaves(left, right, y, sample_weight, limit: float) -> Leaves:
    """Closed form in l, golden section in delta; sums over sorted rows make each step O(log n)."""
    shift = float(np.minimum(left, right).min())
    up, down = y > 0, y < 0
    plus = _turns(left[up], right[up], sample_weight[up], 1.0, shift)
    minus = _turns(left[down], right[down], sample_weight[down], -1.0, shift)
    loss, l_value, delta = _golden(plus, minus, float(limit))
    return Leaves(loss * float(np.exp(-shift)), l_value, l_value + delta)


@kernel
def _count_within(turn, delta, equal):
    """How many of the ascending `turn` are below delta, or (if `equal`) at it."""
    low, high = 0, len(turn)
    while low < high:
        middle = (low + high) // 2
        if turn[middle] < delta or (equal and turn[middle] == delta):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _best_base(plus, minus, limit, delta):
    """(loss, l) at the best l for this delta."""
    k = _count_within(plus.at, delta, True)
    P = plus.left[k] + (plus.right[-1] - plus.right[k]) * np.exp(-delta)
    k = _count_within(minus.at, delta, False)
    Q = (minus.left[-1] - minus.left[k]) + minus.right[k] * np.exp(delta)
    low, high = max(-limit, -limit - delta), min(limit, limit - delta)
    if P <= 0.0:
        best = low
    elif Q <= 0.0:
        best = high
    else:
        best = min(high, max(low, 0.5 * np.log(P / Q)))
    return P * np.exp(-best) + Q * np.exp(best), best


@kernel
def _golden(plus, minus, limit):
    """Least (loss, l, delta) of a loss convex in delta; the best point met, with 0 and the ends among them."""
    low, high = -2.0 * limit, 2.0 * limit
    loss, base = _best_base(plus, minus, limit, 0.0)
    delta = 0.0
    for end in (low, high):
        value, at = _best_base(plus, minus, limit, end)
        if value < loss:
            loss, base, delta = value, at, end
    first, second = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_first, at_second = _best_base(plus, minus, limit, first), _best_base(plus, minus, limit, second)
    for _ in range(GOLDEN_STEPS):
        if at_first[0] < loss:
            loss, base, delta = at_first[0], at_first[1], first
        if at_second[0] < loss:
            loss, base, delta = at_second[0], at_second[1], second
        if at_first[0] <= at_second[0]:
            high, second, at_second = second, first, at_first
            first = high - GOLDEN * (high - low)
            at_first = _best_base(plus, minus, limit, first)
        else:
            low, first, at_first = first, second, at_second
            second = low + GOLDEN * (high - low)
            at_second = _best_base(plus, minus, limit, second)
    return loss, base, delta


def _general_leaves(left, right, y, sample_weight, loss, limit: float, steps: int = 34) -> Leaves:
    """Any convex decreasing loss: Newton in l, bisection on the slope in delta, the best point met."""
    l_value = 0.0
    best = Leaves(np.inf, 0.0, 0.0)
    low, high = -2 * limit, 2 * limit
    delta = 0.0
    for step in range(steps + 2):
        margin = np.minimum(left, right + y * delta)
        bounds = max(-limit, -limit - delta), min(limit, limit - delta)
        l_value = _best_shift(margin, y, sample_weight, loss, bounds, l_value)
        value = float(np.sum(sample_weight * loss.value(margin + y * l_value)))
        if value < best.loss:
            best = Leaves(value, l_value, l_value + delta)
        # d/d delta at the best l: by the envelope theorem over right picks, minus the pull of the box
        slope = sample_weight * y * loss.slope(margin + y * l_value)
        picks = right + y * delta < left
        push = float(np.sum(slope[picks]))
        if abs(l_value + delta) >= limit * (1 - 1e-12):
            # the box fixes r: moving delta moves l the other way, so only left picks change
            push = -float(np.sum(slope[~picks])) if l_value not in (-limit, limit) else push
        if push > 0:
            high = delta
        else:
            low = delta
        if high - low < 1e-12 or step == steps:
            break
        delta = 0.5 * (low + high)
    return best


def _best_shift(margin, y, sample_weight, loss, bounds, start: float, steps: int = 40) -> float:
    """The l within bounds that minimises sum s loss(margin + y l): safeguarded Newton on the slope."""
    low, high = bounds
    if low >= high:
        return 0.5 * (low + high)

    def slope(at: float) -> float:
        return float(np.sum(sample_weight * y * loss.slope(margin + y * at)))

    if slope(low) >= 0:
        return low
    if slope(high) <= 0:
        return high
    at = min(high, max(low, start))
    for _ in range(steps):
        push = slope(at)
        if push > 0:
            high = at
        else:
            low = at
        step = None
        if hasattr(loss, "curvature"):
            bend = float(np.sum(sample_weight * loss.curvature(margin + y * at)))
            step = push / bend if bend > 0 else None
        after = at - step if step is not None else 0.5 * (low + high)
        if not low < after < high:
            after = 0.5 * (low + high)
        if abs(after - at) <= 1e-12 * max(1.0, abs(at)) or high - low < 1e-13:
            break
        at = after
    return at
