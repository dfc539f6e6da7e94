"""The best robust split of one node: all candidates of all features, weights (w_l, w_r) solved jointly.

Paper section 4.2, objective (tree_object). At a candidate each row of the node can be brought to the left
side only, to the right side only, or to both, where the adversary takes the worse. With sums of statistics
over the three groups the loss of a candidate is a closed form:

- exponential loss: sums P, N of the weights of positive and negative rows; a side's loss P exp(-v) + N exp(v)
  has its minimum at v = log(P / N) / 2, exactly;
- logistic loss: sums of gradients and curvatures, a side's quadratic model has its minimum at -G / H.

For w_l <= w_r the rows that reach both sides are worst off left (positive rows) and right (negative rows), so
the two sides separate; likewise for w_l >= w_r; where the two solutions cross, the constant is optimal (joint
convexity, the paper's Theorem 2). Histograms of the first and last candidate at which a row reaches both
sides make it exact for any p. Cost: rows x features x log(candidates).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel

EXPONENTIAL, LOGISTIC = 0, 1


class Rules(NamedTuple):
    """What a split must respect."""

    loss: int
    cap: float  # largest absolute leaf value
    l2: float
    min_weight: float  # least weight of the rows that reach each side


class Node(NamedTuple):
    """The rows that can reach a node."""

    members: np.ndarray  # int64 (m,)
    stats: np.ndarray  # (m, 3) exponential: P, N, weight; (m, 5) logistic: G+, H+, G-, H-, weight
    allowance: np.ndarray  # (m,): how far an unread feature may still move


@kernel
def side_value(stats, loss, cap, l2):
    """The best value of a side with summed statistics."""
    if loss == EXPONENTIAL:
        up, down = stats[0] + 0.5 * l2, stats[1] + 0.5 * l2
        if up <= 0.0 and down <= 0.0:
            return 0.0
        if down <= 0.0:
            return cap
        if up <= 0.0:
            return -cap
        value = 0.5 * np.log(up / down)
    else:
        slope, bend = stats[0] + stats[2], stats[1] + stats[3] + l2
        if bend <= 0.0:
            return 0.0
        value = -slope / bend
    return min(max(value, -cap), cap)


@kernel
def side_loss(stats, value, loss, l2):
    """The loss of a side at a value (logistic: its quadratic model, relative to the value 0)."""
    if loss == EXPONENTIAL:
        return (stats[0] + 0.5 * l2) * np.exp(-value) + (stats[1] + 0.5 * l2) * np.exp(value)
    slope, bend = stats[0] + stats[2], stats[1] + stats[3] + l2
    return (slope + 0.5 * bend * value) * value


@kernel
def pair_values(left, both, right, loss, cap, l2):
    """The best (loss, w_l, w_r) for summed statistics of rows that reach left only, both, right only.

    The last column of the statistics is the weight; the columns before are half positive, half negative rows.
    """
    columns = len(left) - 1
    half = columns // 2
    near, far = np.empty(columns), np.empty(columns)
    best, best_left, best_right = np.inf, 0.0, 0.0
    for rising in (True, False):
        for k in range(columns):
            on_left = (k < half) == rising
            near[k] = left[k] + (both[k] if on_left else 0.0)
            far[k] = right[k] + (0.0 if on_left else both[k])
        value_left, value_right = side_value(near, loss, cap, l2), side_value(far, loss, cap, l2)
        if (value_left <= value_right) == rising or value_left == value_right:
            found = side_loss(near, value_left, loss, l2) + side_loss(far, value_right, loss, l2)
            if found < best:
                best, best_left, best_right = found, value_left, value_right
    if best == np.inf:
        for k in range(columns):
            near[k] = left[k] + both[k] + right[k]
        # each side carries its own penalty: twice for the constant
        value = side_value(near, loss, cap, 2.0 * l2)
        best, best_left, best_right = side_loss(near, value, loss, 2.0 * l2), value, value
    return best, best_left, best_right


@kernel
def first_above(cuts, start, stop, bound, strict):
    """First position in cuts[start:stop] whose cut is >= bound (> bound if strict)."""
    if start == stop or cuts[start] > bound or (cuts[start] == bound and not strict):
        return start
    if cuts[stop - 1] < bound or (cuts[stop - 1] == bound and strict):
        return stop
    low, high = start, stop - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if cuts[middle] > bound or (cuts[middle] == bound and not strict):
            high = middle
        else:
            low = middle
    return high


@kernel
def fill_histograms(values, node, allowance, cuts, start, stop, enter, leave):
    """Add each row at the first cut where it reaches left, and after the last where it reaches right."""
    enter[: stop - start + 1] = 0.0
    leave[: stop - start + 1] = 0.0
    width = node.stats.shape[1]
    for i in range(len(node.members)):
        x, d = values[node.members[i]], allowance[i]
        if d < 0.0:
            a = first_above(cuts, start, stop, x, True) - start
            c = a
        else:
            a = first_above(cuts, start, stop, x - d, False) - start
            c = first_above(cuts, start, stop, x + d, True) - start
        for k in range(width):
            enter[a, k] += node.stats[i, k]
            leave[c, k] += node.stats[i, k]


@kernel
def best_cut(values, node, allowance, cuts, start, stop, rules):
    """The best candidate among cuts[start:stop] of one feature: (loss, position or -1)."""
    width = node.stats.shape[1]
    count = stop - start
    best, chosen = np.inf, -1
    if count == 0:
        return best, chosen
    enter, leave = np.empty((count + 1, width)), np.empty((count + 1, width))
    fill_histograms(values, node, allowance, cuts, start, stop, enter, leave)
    total = np.zeros(width)
    for k in range(count + 1):
        total += enter[k]
    reach_left, gone_right = np.zeros(width), np.zeros(width)
    left, both, right = np.empty(width), np.empty(width), np.empty(width)
    for position in range(count):
        # left reaches this cut: entered so far; right is lost: left behind so far
        for k in range(width):
            reach_left[k] += enter[position, k]
            gone_right[k] += leave[position, k]
            left[k] = gone_right[k]
            right[k] = total[k] - reach_left[k]
            both[k] = reach_left[k] - gone_right[k]
            if rules.loss == EXPONENTIAL:
                # sums of positive weights: what falls below zero is rounding
                right[k], both[k] = max(right[k], 0.0), max(both[k], 0.0)
        weight = width - 1
        if left[weight] + both[weight] < rules.min_weight or right[weight] + both[weight] < rules.min_weight:
            continue
        found = pair_values(left, both, right, rules.loss, rules.cap, rules.l2)[0]
        if found < best:
            best, chosen = found, start + position
    return best, chosen


@kernel
def scan_features(columns, node, candidates, features, rules):
    """`best_cut` of each feature that the path has not read yet: (losses, positions)."""
    losses = np.full(len(features), np.inf)
    positions = np.full(len(features), -1)
    for k in range(len(features)):
        j = features[k]
        start, stop = candidates.offsets[j], candidates.offsets[j + 1]
        if stop > start:
            losses[k], positions[k] = best_cut(columns[j], node, node.allowance, candidates.cuts, start, stop, rules)
    return losses, positions
