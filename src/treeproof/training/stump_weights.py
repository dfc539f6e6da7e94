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

from .losses import Exponential, Logistic

GOLDEN = (5**0.5 - 1) / 2


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
        from .stump_logistic import logistic_leaves

        return Leaves(*logistic_leaves(left, right, y, sample_weight, float(limit)))
    return _general_leaves(left, right, y, sample_weight, loss, limit)


def _exponential_leaves(left, right, y, sample_weight, limit: float) -> Leaves:
    """Closed form in l, golden section in delta; sums over sorted rows make each step O(log n)."""
    shift = float(np.minimum(left, right).min())
    sides = []
    for sign in (1.0, -1.0):
        mine = y == sign
        a = sample_weight[mine] * np.exp(shift - left[mine])
        b = sample_weight[mine] * np.exp(shift - right[mine])
        # y = +1 picks the left side from delta >= D_L - D_R on, y = -1 up to delta <= D_R - D_L
        turn = sign * (left[mine] - right[mine])
        order = np.argsort(turn)
        turn = turn[order]
        a_below, b_below = (np.concatenate([[0.0], np.cumsum(part[order])]) for part in (a, b))
        sides.append((turn, a_below, b_below))

    def sums(delta: float) -> tuple[float, float]:
        turn, a, b = sides[0]
        k = np.searchsorted(turn, delta, side="right")
        P = a[k] + (b[-1] - b[k]) * np.exp(-delta)
        turn, a, b = sides[1]
        k = np.searchsorted(turn, delta, side="left")
        Q = (a[-1] - a[k]) + b[k] * np.exp(delta)
        return P, Q

    def solve(delta: float) -> tuple[float, float]:
        P, Q = sums(delta)
        low, high = max(-limit, -limit - delta), min(limit, limit - delta)
        if P <= 0 or Q <= 0:
            l_value = low if P <= 0 else high
        else:
            l_value = min(high, max(low, 0.5 * float(np.log(P / Q))))
        return float(P * np.exp(-l_value) + Q * np.exp(l_value)), l_value

    delta, value, l_value = _golden(solve, -2 * limit, 2 * limit)
    return Leaves(value * float(np.exp(-shift)), l_value, l_value + delta)


def _golden(solve, low: float, high: float, steps: int = 70):
    """Minimise a convex function of delta; the best point met, with 0 and the ends among them."""
    best = min(((solve(at), at) for at in (0.0, low, high)), key=lambda pair: pair[0][0])
    ratio = GOLDEN
    inner = [high - ratio * (high - low), low + ratio * (high - low)]
    values = [solve(at) for at in inner]
    for _ in range(steps):
        if values[0][0] <= values[1][0]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - ratio * (high - low)
            values[0] = solve(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + ratio * (high - low)
            values[1] = solve(inner[1])
        for value, at in zip(values, inner, strict=True):
            if value[0] < best[0][0]:
                best = (value, at)
    (value, l_value), delta = best
    return delta, value, l_value


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
