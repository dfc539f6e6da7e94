"""The Lagrangian bound of a row's knapsack, and feasible picks from both its sides.

For a price w >= 0 of cost, every feature picks the option with the largest gain - w * cost. Whatever w is,
no choice within a budget B gains more than G + w (B - C), and no choice gaining t costs less than
C + (t - G) / w, where G and C are the picks' sums. The best w comes by intersecting tangents; a handful
of linear passes, no sorting. This is the linear relaxation's value (the convex hulls are implicit).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import inline, lean
from .additive_options import Options

STEPS = 40


class Picks(NamedTuple):
    """Room for choices: an option of each active feature, -1 for staying."""

    rich: np.ndarray  # int64 (m,): gains at least what is asked, costs too much (or just enough)
    poor: np.ndarray  # int64 (m,): the other side
    trial: np.ndarray  # int64 (m,)
    best: np.ndarray  # int64 (m,): the best feasible choice so far
    sums: np.ndarray  # float64 (6,): rich gain, cost; poor gain, cost; best gain, cost


def picks_room(m: int) -> Picks:
    """Room for the choices of m features."""
    rich, poor, trial, best = (np.full(m, -1, dtype=np.int64) for _ in range(4))
    return Picks(rich, poor, trial, best, np.zeros(6))


@lean
def pick(options: Options, price, out):
    """Every feature's best option at a price of cost; returns the sums (gain, cost)."""
    gain = spent = 0.0
    for a in range(options.counts[0]):
        top, choice = 0.0, -1
        for o in range(options.start[a], options.start[a + 1]):
            worth = options.gain[o] - price * options.cost[o]
            if worth > top:
                top, choice = worth, o
        out[a] = choice
        if choice >= 0:
            gain += options.gain[choice]
            spent += options.cost[choice]
    return gain, spent


@inline
def _keep(picks: Picks, side, gain, spent, n):
    """Remember the trial picks as a side: 0 rich, 2 poor, 4 best."""
    target = picks.rich if side == 0 else (picks.poor if side == 2 else picks.best)
    for a in range(n):
        target[a] = picks.trial[a]
    picks.sums[side] = gain
    picks.sums[side + 1] = spent


@lean
def start_sides(options: Options, picks: Picks):
    """Everything (rich) and nothing (poor)."""
    n = options.counts[0]
    gain = spent = 0.0
    for a in range(n):
        picks.rich[a] = options.start[a + 1] - 1
        picks.poor[a] = -1
        gain += options.gain[picks.rich[a]]
        spent += options.cost[picks.rich[a]]
    picks.sums[0], picks.sums[1] = gain, spent
    picks.sums[2] = picks.sums[3] = 0.0


@lean
def best_gain(options: Options, picks: Picks, budget, enough, sure, guess):
    """Bound the largest gain within a budget.

    Stops as soon as the bound is below `enough`, or a choice within the budget gains `sure`.
    Returns (bound, price); the best feasible choice is in picks.best.
    """
    n = options.counts[0]
    start_sides(options, picks)
    for a in range(n):
        picks.best[a] = -1
    picks.sums[4] = picks.sums[5] = 0.0
    if picks.sums[1] <= budget:
        for a in range(n):
            picks.best[a] = picks.rich[a]
        picks.sums[4], picks.sums[5] = picks.sums[0], picks.sums[1]
        return picks.sums[0], 0.0
    bound, at = picks.sums[0], 0.0
    price = guess
    for step in range(STEPS):
        meet = (picks.sums[0] - picks.sums[2]) / (picks.sums[1] - picks.sums[3])
        if step > 0 or not (price > 0.0 and price < np.inf):
            price = meet
        gain, spent = pick(options, price, picks.trial)
        value = gain + price * (budget - spent)
        if value < bound:
            bound, at = value, price
        rich = spent > budget
        if not rich and gain > picks.sums[4]:
            _keep(picks, 4, gain, spent, n)
        if bound < enough or picks.sums[4] >= sure:
            break
        known = picks.sums[2] + price * (budget - picks.sums[3])
        other = picks.sums[0] + price * (budget - picks.sums[1])
        flat = value <= max(known, other) * (1.0 + 1e-13) and (step > 0 or price == meet)
        if rich and spent < picks.sums[1]:
            _keep(picks, 0, gain, spent, n)
        elif not rich and spent > picks.sums[3]:
            _keep(picks, 2, gain, spent, n)
        elif step > 0:
            break
        if flat:
            break
    return bound, at


@lean
def fill_up(options: Options, picks: Picks, budget):
    """Spend what the best choice leaves over on upgrades that fit, features where the two sides differ first."""
    n = options.counts[0]
    for again in range(2):
        for a in range(n):
            if again == 0 and picks.rich[a] == picks.poor[a]:
                continue
            now = picks.best[a]
            gain = 0.0 if now < 0 else options.gain[now]
            spent = 0.0 if now < 0 else options.cost[now]
            left = budget - (picks.sums[5] - spent)
            choice = now
            for o in range(max(now, options.start[a] - 1) + 1, options.start[a + 1]):
                if options.cost[o] <= left:
                    choice = o
                else:
                    break
            if choice != now:
                picks.best[a] = choice
                picks.sums[4] += options.gain[choice] - gain
                picks.sums[5] += options.cost[choice] - spent
    resum(options, picks)


@lean
def resum(options: Options, picks: Picks):
    """The best choice's sums, added afresh."""
    gain = spent = 0.0
    for a in range(options.counts[0]):
        o = picks.best[a]
        if o >= 0:
            gain += options.gain[o]
            spent += options.cost[o]
    picks.sums[4], picks.sums[5] = gain, spent


@lean
def start_cheap(options: Options, picks: Picks):
    """Both sides as `start_sides` leaves them; everything is the cheapest choice so far."""
    start_sides(options, picks)
    for a in range(options.counts[0]):
        picks.best[a] = picks.rich[a]
    picks.sums[4], picks.sums[5] = picks.sums[0], picks.sums[1]


@lean
def least_cost(options: Options, picks: Picks, target, guess, known, near):
    """Bound the least cost of gaining `target` (which all options together reach).

    Stops once the best choice costs at most `near` times the bound.

    Goes on from the sides and the best choice in `picks`, and from `known`, a bound and its price (see `no_bound`).
    Returns (bound, price); the cheapest choice found is in picks.best.
    """
    n = options.counts[0]
    bound, at = known
    price = guess
    for step in range(STEPS):
        if picks.sums[5] <= near * bound:
            break
        if picks.sums[1] <= picks.sums[3]:  # costs that underflowed: nothing to gain from a price
            break
        meet = (picks.sums[0] - picks.sums[2]) / (picks.sums[1] - picks.sums[3])
        if step > 0 or not (price > 0.0 and price < np.inf):
            price = meet
        if not (price > 0.0 and price < np.inf):
            break
        gain, spent = pick(options, price, picks.trial)
        value = spent + (target - gain) / price
        if value > bound:
            bound, at = value, price
        rich = gain >= target
        if rich and spent < picks.sums[5]:
            _keep(picks, 4, gain, spent, n)
        if rich and spent < picks.sums[1]:
            _keep(picks, 0, gain, spent, n)
        elif not rich and gain > picks.sums[2]:
            _keep(picks, 2, gain, spent, n)
        elif step > 0:
            break
    return bound, at


@inline
def no_bound():
    """What `least_cost` knows at first; a bound below 0 belongs to its price all the same."""
    return -np.inf, np.inf


@inline
def _place(options: Options, choice, sums, side, lost, everything):
    """A choice's sums after `shrink`; where it lost an option, everything or nothing instead."""
    gain = spent = 0.0
    for a in range(options.counts[0]):
        if lost:
            choice[a] = options.start[a + 1] - 1 if everything else -1
        if choice[a] >= 0:
            gain += options.gain[choice[a]]
            spent += options.cost[choice[a]]
    sums[side], sums[side + 1] = gain, spent


@lean
def shrink(options: Options, picks: Picks, limit):
    """Leave out the options that cost more than `limit`; the sides and the best choice stay what they are."""
    rich, poor, best = picks.rich, picks.poor, picks.best
    n = active = 0
    gains = 0.0
    begin = 0
    no_rich = no_poor = no_best = False
    for a in range(options.counts[0]):
        first, last = begin, options.start[a + 1]
        begin = last
        kept = n
        old_rich, old_poor, old_best = rich[a], poor[a], best[a]
        o = first
        while o < last and options.cost[o] <= limit:
            options.cost[n], options.gain[n], options.landing[n] = options.cost[o], options.gain[o], options.landing[o]
            n += 1
            o += 1
        no_rich = no_rich or old_rich >= o
        no_poor = no_poor or old_poor >= o
        no_best = no_best or old_best >= o
        if n > kept:
            back = first - kept
            rich[active] = old_rich - back if old_rich >= 0 else -1
            poor[active] = old_poor - back if old_poor >= 0 else -1
            best[active] = old_best - back if old_best >= 0 else -1
            options.feature[active] = options.feature[a]
            active += 1
            options.start[active] = n
            gains += options.gain[n - 1]
    options.counts[0], options.counts[1] = active, 1
    options.sums[1] = gains
    _place(options, rich, picks.sums, 0, no_rich, True)
    _place(options, poor, picks.sums, 2, no_poor, False)
    _place(options, best, picks.sums, 4, no_best, True)


@lean
def step_down(options: Options, picks: Picks, target):
    """Make the cheapest choice cheaper: smaller moves wherever the target still holds."""
    for a in range(options.counts[0]):
        now = picks.best[a]
        if now < 0:
            continue
        choice = now
        for o in range(now - 1, options.start[a] - 2, -1):
            step_gain = options.gain[now] - (options.gain[o] if o >= options.start[a] else 0.0)
            if picks.sums[4] - step_gain >= target:  # (not step_gain <= gain - target: a tiny target is lost)
                choice = o if o >= options.start[a] else -1
            else:
                break
        if choice != now:
            picks.best[a] = choice
            picks.sums[4] -= options.gain[now] - (options.gain[choice] if choice >= 0 else 0.0)
            picks.sums[5] -= options.cost[now] - (options.cost[choice] if choice >= 0 else 0.0)
    resum(options, picks)


@lean
def upgrade(options: Options, picks: Picks, target):
    """The poor side with its cheapest single upgrade that reaches the target, where that is the cheapest choice."""
    n = options.counts[0]
    lack = target - picks.sums[2]
    cheapest, where, which = np.inf, -1, -1
    for a in range(n):
        now = picks.poor[a]
        gain = 0.0 if now < 0 else options.gain[now]
        spent = 0.0 if now < 0 else options.cost[now]
        for o in range(max(now, options.start[a] - 1) + 1, options.start[a + 1]):
            if options.gain[o] - gain >= lack:
                if options.cost[o] - spent < cheapest:
                    cheapest, where, which = options.cost[o] - spent, a, o
                break
    if where >= 0 and picks.sums[3] + cheapest < picks.sums[5]:
        for a in range(n):
            picks.trial[a] = picks.poor[a]
        picks.trial[where] = which
        gain = spent = 0.0
        for a in range(n):
            o = picks.trial[a]
            if o >= 0:
                gain += options.gain[o]
                spent += options.cost[o]
        if gain >= target and spent < picks.sums[5]:
            _keep(picks, 4, gain, spent, n)
