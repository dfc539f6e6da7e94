"""Batches of rows of an additive model: decide within a budget, or find the nearest flip (0 < p < inf)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel, lean
from .additive_core import Arena, Question, merge
from .additive_dual import STEPS, Picks, best_gain, fill_up, least_cost, trim
from .additive_options import Margin, Options, gather, shrink
from .costs import Ground

_EPS = 2.0**-52


class Asked(NamedTuple):
    """What is asked of a pair: see `Pair.target`."""

    slack: float  # the model's own error
    solver: float  # ours
    tie_flips: bool
    optimise: bool  # find the very worst margin, not just its side of 0
    max_states: int


class Answers(NamedTuple):
    """Room for a batch's answers; chosen moves are appended to feature and value."""

    lower: np.ndarray
    complete: np.ndarray
    offsets: np.ndarray
    feature: np.ndarray  # int32
    value: np.ndarray


@lean
def least_proved(asked: Asked):
    """The smallest lower bound that proves the row: what a strict inequality is worth as a number."""
    if asked.slack > 0.0:
        return np.nextafter(asked.slack, np.inf)
    return 5e-324 if asked.tie_flips else 0.0


@lean
def targets(asked: Asked, margin):
    """Gains that may flip a row, and that surely do."""
    doubt = asked.slack + asked.solver
    if doubt > 0.0:
        return margin - doubt, np.nextafter(margin + doubt, np.inf)
    least = margin if asked.tie_flips else np.nextafter(margin, np.inf)
    return least, least


@kernel
def put(options: Options, choice, feature, value, at):
    """Append a choice's moves; the arrays grow as needed."""
    n = options.counts[0]
    if at + n > len(feature):
        size = 2 * len(feature) + n
        longer, longer_value = np.empty(size, dtype=np.int32), np.empty(size)
        longer[:at], longer_value[:at] = feature[:at], value[:at]
        feature, value = longer, longer_value
    for a in range(n):
        if choice[a] >= 0:
            feature[at] = options.feature[a]
            value[at] = options.landing[choice[a]]
            at += 1
    return feature, value, at


@lean
def _error(options: Options):
    """What float rounding may add to a Lagrangian bound of a row's gain."""
    return 8.0 * _EPS * (options.counts[0] + 8.0) * (options.sums[1] + abs(options.sums[0]))


@lean
def _worst(options: Options, picks: Picks, arena: Arena, limit, enough, sure, guess, max_states):
    """The largest gain within a budget, as far as it matters: an upper bound, whether it is complete, the price.

    Stops when the bound is below `enough` or a choice gains `sure`; the best choice is in picks.best.
    """
    if options.sums[1] < enough or options.counts[0] == 0:
        picks.sums[4] = 0.0
        return options.sums[1], True, guess
    guard = _error(options)
    bound, price = best_gain(options, picks, limit, enough - guard, sure, guess)
    if picks.sums[1] <= limit:  # everything fits
        return picks.sums[4], True, guess
    most = min(bound + guard, options.sums[1])
    if most < enough:
        return most, True, price
    if picks.sums[4] < sure:
        fill_up(options, picks, limit)
    if picks.sums[4] >= sure or picks.sums[4] >= bound + guard:
        return most, True, price
    left = merge(options, picks, arena, Question(price, bound, limit, enough, sure, False, guard, max_states))
    if picks.sums[4] >= sure:
        return most, True, price
    best = picks.sums[4] if picks.sums[4] >= enough else np.nextafter(enough, -np.inf)
    if left == -np.inf:
        return min(most, best), True, price
    return min(most, max(left + guard, best)), False, price


@kernel
def decide_rows(ground: Ground, margin: Margin, X, asked: Asked, limit, options: Options, picks: Picks, arena: Arena):
    """Bound the worst-case margin of each row within a budget of `limit`."""
    n = len(X)
    lower, complete = np.empty(n), np.ones(n, dtype=np.bool_)
    offsets = np.zeros(n + 1, dtype=np.int64)
    feature, value = np.empty(4 * n + 16, dtype=np.int32), np.empty(4 * n + 16)
    at = 0
    price = 0.0
    for i in range(n):
        gather(ground, margin, X[i], limit, options)
        here = options.sums[0]
        enough, sure = targets(asked, here)
        if asked.optimise:
            most, complete[i], price = _worst(options, picks, arena, limit, 0.0, np.inf, price, asked.max_states)
        else:
            most, complete[i], price = _worst(options, picks, arena, limit, enough, sure, price, asked.max_states)
        lower[i] = here - most - asked.solver
        if most < enough:
            lower[i] = max(lower[i], least_proved(asked))
        if picks.sums[4] > 0.0 and (most >= enough or asked.optimise):
            feature, value, at = put(options, picks.best, feature, value, at)
        offsets[i + 1] = at
    return Answers(lower, complete, offsets, feature[:at], value[:at])


@lean
def _least(ground: Ground, margin: Margin, x, which, asked: Asked, cap, guess, options, picks, arena):
    """The least cost of a move that may (which = 0) or surely does (1) flip row x, up to `cap`.

    Returns (lower bound of the cost, complete, price); inf where nothing within cap does. The best choice is in
    picks.best, its cost in picks.sums[5] (inf: none).
    """
    gather(ground, margin, x, cap, options)
    target = targets(asked, options.sums[0])[which]
    picks.sums[4], picks.sums[5] = 0.0, np.inf
    if target <= 0.0:
        picks.sums[5] = 0.0
        for a in range(options.counts[0]):
            picks.best[a] = -1
        return 0.0, True, guess
    if options.sums[1] < target:
        return np.inf, True, guess
    price, bound = guess, 0.0
    for again in range(2):
        bound, price = least_cost(options, picks, target, price, STEPS if again else 4)
        trim(options, picks, target)
        # options dearer than a known choice cannot take part; without them the bound is tighter
        if again == 1 or picks.sums[5] <= bound * (1.0 + 1e-14):
            break
        shrink(options, picks.sums[5] * (1.0 + 1e-12))
    if not price < np.inf:
        return 0.0, False, 0.0
    if picks.sums[5] <= bound * (1.0 + 1e-15):
        lower, complete = min(bound, picks.sums[5]), True
    else:
        guard = _error(options)
        left = merge(
            options, picks, arena, Question(price, bound, np.inf, target, np.inf, True, guard, asked.max_states)
        )
        complete = left == np.inf
        lower = picks.sums[5] if complete else min(picks.sums[5], max(left, bound) - guard / price)
    if picks.sums[5] > cap:  # options between the two were not looked at
        picks.sums[5] = np.inf
        if complete:
            lower = np.inf
    return lower, complete, price


@kernel
def nearest_rows(ground: Ground, margin: Margin, X, asked: Asked, caps, options: Options, picks: Picks, arena: Arena):
    """Bound the least cost of a flip of each row, up to caps (costs); `lower` is a cost."""
    n = len(X)
    lower, complete = np.empty(n), np.ones(n, dtype=np.bool_)
    offsets = np.zeros(n + 1, dtype=np.int64)
    feature, value = np.empty(4 * n + 16, dtype=np.int32), np.empty(4 * n + 16)
    at = 0
    price = 0.0
    for i in range(n):
        lower[i], complete[i], price = _least(ground, margin, X[i], 0, asked, caps[i], price, options, picks, arena)
        if picks.sums[5] < np.inf and picks.sums[4] < targets(asked, options.sums[0])[1]:
            # the nearest doubtful point is not a sure flip: look for one, for the upper bound
            _least(ground, margin, X[i], 1, asked, caps[i], price, options, picks, arena)
        if picks.sums[5] < np.inf:
            feature, value, at = put(options, picks.best, feature, value, at)
        offsets[i + 1] = at
    return Answers(lower, complete, offsets, feature[:at], value[:at])
