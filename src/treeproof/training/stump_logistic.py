"""The two leaf values of a stump under the robust logistic loss, compiled (see `stump_weights` for the method).

Exact up to the bisection's last step; about a hundred passes over the rows.
"""

from __future__ import annotations

import numpy as np

from .._jit import kernel

OUTER, INNER = 30, 30


@kernel
def _slopes(margin, y, weight, at):
    """First and second derivative in l of sum weight * log(1 + exp(-(margin + y l)))."""
    first, second = 0.0, 0.0
    for i in range(len(margin)):
        m = margin[i] + y[i] * at
        e = np.exp(-abs(m))
        chance = e / (1.0 + e) if m >= 0 else 1.0 / (1.0 + e)
        first -= weight[i] * y[i] * chance
        second += weight[i] * chance * (1.0 - chance)
    return first, second


@kernel
def _best_shift(margin, y, weight, low, high, start):
    """The l in [low, high] of least loss: Newton's steps, kept inside a shrinking bracket."""
    if low >= high:
        return 0.5 * (low + high)
    if _slopes(margin, y, weight, low)[0] >= 0:
        return low
    if _slopes(margin, y, weight, high)[0] <= 0:
        return high
    at = min(high, max(low, start))
    for _ in range(INNER):
        first, second = _slopes(margin, y, weight, at)
        if first > 0:
            high = at
        else:
            low = at
        after = at - first / second if second > 0 else high + 1.0
        if not low < after < high:
            after = 0.5 * (low + high)
        if abs(after - at) < 1e-10:
            return after
        at = after
    return at


@kernel
def logistic_parts(margin):
    """-loss' and loss + loss' of the logistic loss at each margin; 0 at infinite margins."""
    weights, constants = np.zeros_like(margin), np.zeros_like(margin)
    flat, weight, constant = margin.reshape(-1), weights.reshape(-1), constants.reshape(-1)
    for i in range(len(flat)):
        m = flat[i]
        if np.isfinite(m):
            e = np.exp(-abs(m))
            weight[i] = e / (1.0 + e) if m >= 0 else 1.0 / (1.0 + e)
            constant[i] = np.log1p(e) + max(0.0, -m) - weight[i]
    return weights, constants


@kernel
def logistic_leaves(left, right, y, weight, limit):
    """(loss, left leaf, right leaf), each leaf within [-limit, limit]; bisection on the slope in delta."""
    count = len(y)
    margin = np.empty(count)
    best, best_left, best_right = np.inf, 0.0, 0.0
    low, high, delta, at = -2 * limit, 2 * limit, 0.0, 0.0
    for _ in range(OUTER):
        for i in range(count):
            margin[i] = min(left[i], right[i] + y[i] * delta)
        floor, ceiling = max(-limit, -limit - delta), min(limit, limit - delta)
        at = _best_shift(margin, y, weight, floor, ceiling, at)
        total, push_left, push_right = 0.0, 0.0, 0.0
        for i in range(count):
            m = margin[i] + y[i] * at
            e = np.exp(-abs(m))
            total += weight[i] * (np.log1p(e) + max(0.0, -m))
            chance = e / (1.0 + e) if m >= 0 else 1.0 / (1.0 + e)
            if right[i] + y[i] * delta < left[i]:
                push_right -= weight[i] * y[i] * chance
            else:
                push_left -= weight[i] * y[i] * chance
        if total < best:
            best, best_left, best_right = total, at, at + delta
        # where the box holds r and not l, a change of delta moves l the other way: only left picks feel it
        push = push_right
        if abs(at + delta) >= limit * (1 - 1e-12) and abs(at) < limit * (1 - 1e-12):
            push = -push_left
        if push > 0:
            high = delta
        else:
            low = delta
        delta = 0.5 * (low + high)
    return best, best_left, best_right
