"""Which candidate stumps can have the least robust loss: sums over all rows, for every threshold at once.

Fix delta = (right leaf) - (left leaf). A row's worst side is the left one exactly where
y * delta >= D_L - D_R, so the robust exponential loss of a candidate is exp(-l) P(delta) + exp(l) Q(delta) with
sums P, Q over rows. One pass over a feature's rows fills histograms over D_R - D_L (as differences along
the thresholds: a row adds a number of terms that grows with its table, not with the thresholds), which
give P and Q exactly on a grid of deltas. The loss is convex in delta, so chords give a lower bound for each
candidate: those that cannot win are never looked at again. Cost: O(rows x features) and a small table each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel


class Profiles(NamedTuple):
    """Each row's table in distances, nearest first: ``start[i]:start[i + 1]`` of the flat arrays.

    A move of less than `reach` (and not less than the one before) leaves a score of weight `weight`;
    `up` and `down` are the histogram buckets of that gain, for moves to the right and to the left.
    """

    start: np.ndarray
    reach: np.ndarray
    weight: np.ndarray
    up: np.ndarray
    down: np.ndarray
    home: np.ndarray
    side: np.ndarray


class Columns(NamedTuple):
    """The training rows by feature, and the candidate thresholds ``edge[start[j]:start[j + 1]]`` of feature j.

    ``codes[j, i]`` counts the thresholds at most ``values[j, i]``; `below` is the float64 under each threshold.
    """

    values: np.ndarray
    codes: np.ndarray
    start: np.ndarray
    edge: np.ndarray
    below: np.ndarray


class Deltas(NamedTuple):
    """The grid of deltas (symmetric, ascending), exp of it, and the largest leaf."""

    at: np.ndarray
    grow: np.ndarray
    limit: float


def deltas_of(max_weight: float) -> Deltas:
    """A grid on [-2 max_weight, 2 max_weight], finer near 0 when it is wide."""
    count = 33 if max_weight <= 2 else 49
    share = np.linspace(-1.0, 1.0, count)
    bend = max(1e-3, np.log(max(2 * max_weight, 2.0)))
    at = 2 * max_weight * np.sinh(bend * share) / np.sinh(bend)
    at = 0.5 * (at - at[::-1])
    return Deltas(at, np.exp(at), float(max_weight))


@kernel
def thin_tables(reach, value, size, step, most, start, out_reach, out_value):
    """Flat tables, nearest moves first, whose values within `step` are joined to the higher (weaker) one.

    Raising a value only lowers the loss, so what is computed from them stays a lower bound.
    """
    at = 0
    group = 0.0
    for i in range(len(reach)):
        start[i] = at
        kept = 0
        for k in range(size[i]):
            m = size[i] - 1 - k
            if reach[i, m] <= 0.0:
                continue
            # entries come from the lowest value up; a group keeps its farthest reach with its highest value
            if kept > 0 and (value[i, m] - group < step or kept == most):
                out_reach[at - 1] = reach[i, m]
                out_value[at - 1] = value[i, m]
            else:
                group = value[i, m]
                out_reach[at] = reach[i, m]
                out_value[at] = group
                at += 1
                kept += 1
    start[len(reach)] = at
    return at


@kernel
def fill_histogram(x, code, edge, below, rows, hist):
    """Add all rows of one feature: hist[0 or 1 for left or right picks, side, threshold, bucket], as differences."""
    count, last = len(edge), hist.shape[3] - 1
    for i in range(len(x)):
        c = rows.side[i]
        home = rows.home[i]
        first, end = rows.start[i], rows.start[i + 1]
        k, m = code[i], first
        while m < end and k < count:
            stop = k
            while stop < count and edge[stop] - x[i] < rows.reach[m]:
                stop += 1
            if stop > k:
                t = rows.up[m]
                hist[0, c, k, t] += home
                hist[0, c, stop, t] -= home
                hist[1, c, k, t] += rows.weight[m]
                hist[1, c, stop, t] -= rows.weight[m]
                k = stop
            m += 1
        if k < count:
            hist[0, c, k, last] += home
        k, m = code[i], first
        while m < end and k > 0:
            stop = k
            while stop > 0 and x[i] - below[stop - 1] < rows.reach[m]:
                stop -= 1
            if stop < k:
                t = rows.down[m]
                hist[0, c, stop, t] += rows.weight[m]
                hist[0, c, k, t] -= rows.weight[m]
                hist[1, c, stop, t] += home
                hist[1, c, k, t] -= home
                k = stop
            m += 1
        if k > 0:
            hist[1, c, 0, 0] += home
            hist[1, c, k, 0] -= home


@kernel
def add_pairs(pairs, weights, side, scale, deltas, hist):
    """Add rows with given (D_L, D_R) ``pairs[c, :, i]`` to hist[c, 0 or 1, side, bucket]: weights times `scale`."""
    for c in range(len(pairs)):
        for i in range(pairs.shape[2]):
            gap = pairs[c, 1, i] - pairs[c, 0, i]
            low, high = 0, len(deltas.at)
            while low < high:
                middle = (low + high) // 2
                if deltas.at[middle] <= gap:
                    low = middle + 1
                else:
                    high = middle
            hist[c, 0, side[i], low] += scale[i] * weights[c, 0, i]
            hist[c, 1, side[i], low] += scale[i] * weights[c, 1, i]


@kernel
def sums_on_grid(hist, deltas, sums):
    """sums[k] = (left picks of +1, right picks of +1, left picks of -1, right picks of -1) at each delta."""
    count = len(deltas.at)
    for c in range(2):
        right = 0.0
        left = 0.0
        for t in range(1, count + 1):
            left += hist[0, c, t]
        right += hist[1, c, 0]
        for k in range(count):
            # buckets 0..k are right picks; they belong to the k-th delta, mirrored for y = +1
            place = count - 1 - k if c == 0 else k
            sums[place, 2 * c] = left
            sums[place, 2 * c + 1] = right
            left -= hist[0, c, k + 1]
            right += hist[1, c, k + 1]


@kernel
def best_base(P, Q, delta, limit):
    """min over l of exp(-l) P + exp(l) Q with l and l + delta in [-limit, limit]; returns (value, l)."""
    low, high = max(-limit, -limit - delta), min(limit, limit - delta)
    P, Q = max(P, 0.0), max(Q, 0.0)
    if low > high:
        low = high = 0.5 * (low + high)
    if P <= 0.0:
        best = low
    elif Q <= 0.0:
        best = high
    else:
        best = min(high, max(low, 0.5 * np.log(P / Q)))
    return np.exp(-best) * P + np.exp(best) * Q, best


@kernel
def _chord_bound(loss, at):
    """A lower bound of a convex function from its values: chords, extended into the cells beside the least."""
    count = len(at)
    k = 0
    for j in range(1, count):
        if loss[j] < loss[k]:
            k = j
    bound = loss[k]
    for cell in range(max(0, k - 1), min(count - 1, k + 1)):
        width = at[cell + 1] - at[cell]
        here, there = loss[cell], loss[cell + 1]
        low = -np.inf
        has_left, has_right = cell > 0, cell + 2 < count
        fall = (here - loss[cell - 1]) / (at[cell] - at[cell - 1]) if has_left else 0.0
        rise = (loss[cell + 2] - there) / (at[cell + 2] - at[cell + 1]) if has_right else 0.0
        if has_left and has_right:
            meet = (there - here - rise * width) / (fall - rise) if fall < rise else 0.0
            meet = min(width, max(0.0, meet))
            low = max(here + fall * meet, there + rise * (meet - width))
        elif has_left:
            low = min(here, here + fall * width)
        elif has_right:
            low = min(there, there - rise * width)
        bound = min(bound, low)
    return bound


@kernel
def bound_of(sums, constants, deltas, loss):
    """Lower bound of a candidate's robust loss from its sums on the grid."""
    for k in range(len(deltas.at)):
        P = sums[k, 0] + sums[k, 1] / deltas.grow[k]
        Q = sums[k, 2] + sums[k, 3] * deltas.grow[k]
        loss[k] = best_base(P, Q, deltas.at[k], deltas.limit)[0]
        loss[k] += constants[k, 0] + constants[k, 1] + constants[k, 2] + constants[k, 3]
    return _chord_bound(loss, deltas.at)


@kernel
def screen_features(columns, rows, constant_rows, deltas, span, out):
    """Lower bounds ``out[start[j]:start[j + 1]]`` for the features span[0] to span[1] - 1, none of them used yet.

    `constant_rows` (empty for the exponential loss) has in place of weights what the loss adds besides them.
    """
    buckets = len(deltas.at) + 1
    sums, constants = np.zeros((buckets - 1, 4)), np.zeros((buckets - 1, 4))
    loss = np.zeros(buckets - 1)
    extra = len(constant_rows.home) > 0
    for j in range(span[0], span[1]):
        first, last = columns.start[j], columns.start[j + 1]
        count = last - first
        if count == 0:
            continue
        edge, below = columns.edge[first:last], columns.below[first:last]
        x, code = columns.values[j], columns.codes[j]
        hist = np.zeros((2, 2, count + 1, buckets))
        fill_histogram(x, code, edge, below, rows, hist)
        other = np.zeros((2, 2, count + 1 if extra else 1, buckets))
        if extra:
            fill_histogram(x, code, edge, below, constant_rows, other)
        for k in range(count):
            if k > 0:
                hist[:, :, k] += hist[:, :, k - 1]
            sums_on_grid(hist[:, :, k], deltas, sums)
            if extra:
                if k > 0:
                    other[:, :, k] += other[:, :, k - 1]
                sums_on_grid(other[:, :, k], deltas, constants)
            out[first + k] = bound_of(sums, constants, deltas, loss)
