"""Batches of rows of an additive model: decide within a budget, or find the nearest flip (0 < p < inf)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel, lean
from .additive_core import Arena, Question, merge
from .additive_dual import Picks, best_gain, fill_up, least_cost, no_bound, shrink, start_cheap, step_down, upgrade
from .additive_options import Margin, Options, gather
from .costs import Ground

FEW = 24  # options left that are merged at once: quicker than another pass over them
NEAR = 1.1  # a first bound this near the best choice is enough to tell which options can still take part
_EPS = 2.0**-52


class Asked(NamedTuple):
    """What is asked of a pair: see `Pair.target`."""

    slack: float  # the model's own error
    solver: float  # ours
    tie_flips: bool
    optimise: bool  # find the very worst margin, not just its side of 0
    max_states: int


class Answers(NamedTuple):
    """Room for a batch's answers; the chosen moves of row i are ``offsets[i]:offsets[i + 1]``."""

    lower: np.ndarray
    complete: np.ndarray
    offsets: np.ndarray
    feature: np.ndarray  # int32
    value: np.ndarray


class Room(NamedTuple):
    """Room to work in, for any row."""

    options: Options
    picks: Picks
    arena: Arena


@kernel
def empty_answers(n):
    """Room for n rows' answers; the moves' grows on the way."""
    return Answers(
        np.empty(n),
        np.ones(n, dtype=np.bool_),
        np.zeros(n + 1, dtype=np.int64),
        np.empty(4 * n + 16, dtype=np.int32),
        np.empty(4 * n + 16),
    )


@kernel
def longer(out: Answers, more):
    """The same answers, with room for at least `more` moves."""
    size = len(out.feature)
    feature, value = np.empty(2 * size + more, dtype=np.int32), np.empty(2 * size + more)
    feature[:size], value[:size] = out.feature, out.value
    return Answers(out.lower, out.complete, out.offsets, feature, value)


@kernel
def closed(out: Answers):
    """The answers without the room that is left."""
    used = out.offsets[-1]
    return Answers(out.lower, out.complete, out.offsets, out.feature[:used], out.value[:used])


@lean
def fits(out: Answers, options: Options, i):
    """Whether there is room for one more row's moves after those of row i - 1."""
    return out.offsets[i] + len(options.feature) <= len(out.feature)


@lean
def put(options: Options, choice, out: Answers, i):
    """Row i's moves (`offsets[i + 1]` says how many there are; call it once a row, see `fits`)."""
    at = out.offsets[i]
    for a in range(options.counts[0]):
        if choice[a] >= 0:
            out.feature[at] = options.feature[a]
            out.value[at] = options.landing[choice[a]]
            at += 1
    out.offsets[i + 1] = at


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


@lean
def _decide_from(first, price, ground: Ground, margin: Margin, X, asked: Asked, limit, room: Room, out: Answers):
    """Answer rows from `first` on, as long as their moves fit; returns the next row and the last price."""
    options, picks, arena = room
    for i in range(first, len(X)):
        if not fits(out, options, i):
            return i, price
        gather(ground, margin, X[i], limit, options)
        here = options.sums[0]
        enough, sure = targets(asked, here)
        low, high = (0.0, np.inf) if asked.optimise else (enough, sure)
        most, out.complete[i], price = _worst(options, picks, arena, limit, low, high, price, asked.max_states)
        out.lower[i] = here - most - asked.solver
        if most < enough:
            out.lower[i] = max(out.lower[i], least_proved(asked))
        out.offsets[i + 1] = out.offsets[i]
        if picks.sums[4] > 0.0 and (most >= enough or asked.optimise):
            put(options, picks.best, out, i)
    return len(X), price


@kernel
def decide_rows(ground: Ground, margin: Margin, X, asked: Asked, limit, room: Room):
    """Bound the worst-case margin of each row within a budget of `limit`."""
    out = empty_answers(len(X))
    done, price = 0, 0.0
    while True:
        done, price = _decide_from(done, price, ground, margin, X, asked, limit, room, out)
        if done == len(X):
            return closed(out)
        out = longer(out, len(margin.feature))


@lean
def _gather_reaching(ground: Ground, margin: Margin, x, which, asked: Asked, cap, limit, options: Options):
    """Gather options up to `limit`, or further where they do not reach the target; returns the target and the limit."""
    target = 0.0
    for wider in (8.0, np.inf, np.inf):
        gather(ground, margin, x, limit, options)
        target = targets(asked, options.sums[0])[which]
        if options.sums[1] >= target or options.counts[1] == 0 or limit >= cap:
            break
        limit = min(cap, wider * limit if limit > 0.0 else np.inf)
    return target, limit


@lean
def _bracket(ground: Ground, margin: Margin, x, which, asked: Asked, cap, warm, options: Options, picks: Picks):
    """Bound the least cost of a move that may (which = 0) or surely does (1) flip row x, up to `cap`.

    Returns (target, bound, price) with the best choice in picks.best, its cost in picks.sums[5] (inf: none). `warm` is
    the price of an earlier row, and a cost that is likely to be enough.
    """
    target, limit = _gather_reaching(ground, margin, x, which, asked, cap, min(cap, warm[1]), options)
    picks.sums[4], picks.sums[5] = 0.0, np.inf
    if target <= 0.0:
        picks.sums[5] = 0.0
        for a in range(options.counts[0]):
            picks.best[a] = -1
        return target, 0.0, warm[0]
    if options.sums[1] < target:
        return target, np.inf, warm[0]
    start_cheap(options, picks)
    bound, price = least_cost(options, picks, target, warm[0], no_bound(), NEAR)
    step_down(options, picks, target)
    upgrade(options, picks, target)
    # options dearer than a known choice cannot take part; without them the bound is tighter
    most = picks.sums[5] * (1.0 + 1e-12)
    known = bound, price
    if most > limit and limit < cap and options.counts[1] == 1:  # but those between the two can
        gather(ground, margin, x, min(cap, most), options)
        start_cheap(options, picks)
        known = no_bound()
    elif picks.sums[5] <= bound * (1.0 + 1e-15):
        return target, bound, price
    else:
        shrink(options, picks, most)
        if options.start[options.counts[0]] <= FEW:  # to merge them is quicker than to tighten the bound
            return target, bound, price
        price = np.inf
    so_far = picks.sums[5]
    bound, price = least_cost(options, picks, target, price, known, 1.0)
    if picks.sums[5] != so_far:
        step_down(options, picks, target)
    upgrade(options, picks, target)
    return target, bound, price


@lean
def _least(ground: Ground, margin: Margin, x, which, asked: Asked, cap, warm, room: Room):
    """As `_bracket`, with what it leaves open merged: (lower bound of the cost, complete, price)."""
    options, picks, arena = room
    target, bound, price = _bracket(ground, margin, x, which, asked, cap, warm, options, picks)
    if not price < np.inf:
        return 0.0, False, 0.0
    lower, complete = min(bound, picks.sums[5]), True
    if picks.sums[5] > bound * (1.0 + 1e-15) and bound < np.inf:
        guard = _error(options)
        ask = Question(price, bound, np.inf, target, np.inf, True, guard, asked.max_states)
        left = merge(options, picks, arena, ask)
        complete = left == np.inf
        lower = picks.sums[5] if complete else min(picks.sums[5], max(left, bound) - guard / price)
    if picks.sums[5] > cap:  # options between the two were not looked at
        picks.sums[5] = np.inf
        if complete:
            lower = np.inf
    return lower, complete, price


@lean
def _nearest_from(first, warm, ground: Ground, margin: Margin, X, asked: Asked, caps, room: Room, out: Answers):
    """Answer rows from `first` on, as long as their moves fit; returns the next row and what warms it."""
    options, picks, _ = room
    price, likely = warm
    for i in range(first, len(X)):
        if not fits(out, options, i):
            return i, (price, likely)
        warm = (price, likely)
        out.lower[i], out.complete[i], price = _least(ground, margin, X[i], 0, asked, caps[i], warm, room)
        if 0.0 < picks.sums[5] < np.inf:
            likely = 2.0 * picks.sums[5]
        if picks.sums[5] < np.inf and picks.sums[4] < targets(asked, options.sums[0])[1]:
            # the nearest doubtful point is not a sure flip: look for one, for the upper bound
            _least(ground, margin, X[i], 1, asked, caps[i], (price, likely), room)
        out.offsets[i + 1] = out.offsets[i]
        if picks.sums[5] < np.inf:
            put(options, picks.best, out, i)
    return len(X), (price, likely)


@kernel
def nearest_rows(ground: Ground, margin: Margin, X, asked: Asked, caps, room: Room):
    """Bound the least cost of a flip of each row, up to caps (costs); `lower` is a cost."""
    out = empty_answers(len(X))
    done, warm = 0, (0.0, np.inf)
    while True:
        done, warm = _nearest_from(done, warm, ground, margin, X, asked, caps, room, out)
        if done == len(X):
            return closed(out)
        out = longer(out, len(margin.feature))
