"""The exact end of a row's knapsack: merge the few features that the Lagrangian bound leaves open.

An option whose reduced cost exceeds the gap between the bound and what is asked cannot take part. The
features with more than one option left are merged into lists of undominated (cost, gain) states, the most
uncertain first. A state lives while its reduced cost stays below the gap and a coarse table (the paper's
dynamic program over the features still to come, rounded the optimistic way) says that it can still succeed.
Past the state budget a beam goes on, and the dropped states' bounds keep the answer sound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import inline, kernel, lean
from .additive_dual import Picks
from .additive_options import Options

BEAM = 256
STEPS = 128
MANY = 48  # states of a level from which the table pays for itself


class Level(NamedTuple):
    """Room for one level's states, by ascending cost and gain."""

    cost: np.ndarray
    gain: np.ndarray
    reduced: np.ndarray
    parent: np.ndarray  # int64: a state of the level before
    option: np.ndarray  # int64: -1 for staying


class Arena(NamedTuple):
    """Room for states: all levels one after another, and two lists to merge one level in."""

    all: Level
    one: Level
    two: Level
    order: np.ndarray  # int64 (m,): core features, in the order they are merged
    key: np.ndarray  # float64 (m,)
    after: np.ndarray  # float64 (m + 1, 2): gain and cost of the completion of the features not yet merged
    table: np.ndarray  # float64 (m + 1, STEPS + 1): the most that those features gain within so many steps


class Question(NamedTuple):
    """What a merge is asked (see `merge`)."""

    price: float
    bound: float
    budget: float
    target: float
    sure: float
    nearest: bool
    guard: float
    max_states: int


def arena_room(m: int, max_states: int) -> Arena:
    """Room for `max_states` states and a beam after them."""

    def level(size: int) -> Level:
        floats = [np.empty(size) for _ in range(3)]
        ints = [np.empty(size, dtype=np.int64) for _ in range(2)]
        return Level(floats[0], floats[1], floats[2], ints[0], ints[1])

    new = max_states + BEAM + 1
    return Arena(
        all=level(max_states + BEAM * (m + 1) + 1),
        one=level(new),
        two=level(new),
        order=np.empty(m, dtype=np.int64),
        key=np.empty(m),
        after=np.empty((m + 1, 2)),
        table=np.empty((m + 1, STEPS + 1)),
    )


@lean
def merge(options: Options, picks: Picks, arena: Arena, ask: Question):
    """Maximise the gain within the budget (from the target up, until sure), or minimise the cost of the target.

    ``ask.bound`` is the Lagrangian bound at ``ask.price``. The best choice is left in picks.best, its sums in
    picks.sums[4:6]. Returns the bound that the dropped states leave (of the gain, or of the cost): -inf (inf)
    when none was dropped.
    """
    n_core = _core_features(options, picks, arena, ask)
    _completions(options, picks, arena, n_core, ask.nearest)
    fine, step = _suffix_table(options, picks, arena, n_core, ask, 0)
    first, last = 0, 1
    lost = np.inf  # least reduced cost among dropped states
    best_level, best_state = -1, -1
    if _better(arena, picks, 0, 0, ask):
        best_level, best_state = 0, 0
    for level in range(n_core):
        if not ask.nearest and picks.sums[4] >= ask.sure:
            break
        count, in_two, dropped = _extend(options, picks, arena, level, first, last, (fine, step), ask)
        lost = min(lost, dropped)
        new = arena.two if in_two else arena.one
        if last + count > ask.max_states and count > BEAM:
            lost = min(lost, _narrow(new, count))
            count = BEAM
        if fine == 0 and count > MANY:
            fine, step = _suffix_table(options, picks, arena, n_core, ask, STEPS)
        first = last
        for k in range(count):
            arena.all.cost[last] = new.cost[k]
            arena.all.gain[last] = new.gain[k]
            arena.all.reduced[last] = new.reduced[k]
            arena.all.parent[last] = new.parent[k]
            arena.all.option[last] = new.option[k]
            if _better(arena, picks, last, level + 1, ask):
                best_level, best_state = level + 1, last
            last += 1
        if first == last:
            break
    if best_level >= 0:
        _restore(options, picks, arena, best_level, best_state, n_core, ask.nearest)
    if lost == np.inf:
        return np.inf if ask.nearest else -np.inf
    return ask.bound + lost / ask.price if ask.nearest else ask.bound - lost


@inline
def _gap(picks: Picks, ask: Question):
    """The reduced cost above which nothing can matter any more."""
    if ask.nearest:
        return ask.price * (picks.sums[5] - ask.bound) + ask.guard
    return ask.bound - max(ask.target, picks.sums[4]) + ask.guard


@inline
def _top(options: Options, a, price):
    top = 0.0
    for o in range(options.start[a], options.start[a + 1]):
        top = max(top, options.gain[o] - price * options.cost[o])
    return top


@lean
def _core_features(options: Options, picks: Picks, arena: Arena, ask: Question):
    """Order the features that have a choice left; fix the others in the first state (their option: picks.trial)."""
    gap = _gap(picks, ask)
    price = ask.price
    n_core = 0
    gain = spent = reduced = 0.0
    for a in range(options.counts[0]):
        top = _top(options, a, price)
        left, only, least, second = 0, -1, np.inf, np.inf
        for o in range(options.start[a] - 1, options.start[a + 1]):
            stay = o < options.start[a]
            loss = top if stay else top - (options.gain[o] - price * options.cost[o])
            if loss <= gap:
                left += 1
                if loss < least:
                    second = least
                    least, only = loss, -1 if stay else o
                else:
                    second = min(second, loss)
        picks.trial[a] = only
        if left > 1:
            at = n_core
            while at > 0 and arena.key[at - 1] > second:
                arena.key[at], arena.order[at] = arena.key[at - 1], arena.order[at - 1]
                at -= 1
            arena.key[at], arena.order[at] = second, a
            n_core += 1
        else:
            reduced += least if left else 0.0
            if only >= 0:
                gain += options.gain[only]
                spent += options.cost[only]
    first = arena.all
    first.gain[0], first.cost[0], first.reduced[0] = gain, spent, reduced
    first.parent[0], first.option[0] = -1, -1
    return n_core


@lean
def _completions(options: Options, picks: Picks, arena: Arena, n_core, nearest):
    """Sums of the bound's own picks over the features not yet merged: how a state is completed."""
    side = picks.rich if nearest else picks.poor
    arena.after[n_core, 0] = arena.after[n_core, 1] = 0.0
    for k in range(n_core - 1, -1, -1):
        o = side[arena.order[k]]
        arena.after[k, 0] = arena.after[k + 1, 0] + (options.gain[o] if o >= 0 else 0.0)
        arena.after[k, 1] = arena.after[k + 1, 1] + (options.cost[o] if o >= 0 else 0.0)


@lean
def _suffix_table(options: Options, picks: Picks, arena: Arena, n_core, ask: Question, fine):
    """Fill arena.table from the last core feature to the first; returns the steps of cost and their length."""
    most = picks.sums[5] if ask.nearest else ask.budget
    step = (most - arena.all.cost[0]) / max(fine, 1)
    if not (step > 0.0 and step < np.inf):
        fine = 0  # only the sum of the largest gains is known
    gap = _gap(picks, ask)
    table = arena.table
    for s in range(fine + 1):
        table[n_core, s] = 0.0
    for k in range(n_core - 1, -1, -1):
        a = arena.order[k]
        top = _top(options, a, ask.price)
        for s in range(fine + 1):
            table[k, s] = table[k + 1, s]
        for o in range(options.start[a], options.start[a + 1]):
            if top - (options.gain[o] - ask.price * options.cost[o]) > gap:
                continue
            taken = 0
            if fine > 0:
                steps = options.cost[o] * (1.0 - 1e-12) / step
                if steps > fine:
                    break
                taken = int(steps)
            gain = options.gain[o]
            for s in range(taken, fine + 1):
                value = table[k + 1, s - taken] + gain
                if value > table[k, s]:
                    table[k, s] = value
    return fine, step


@inline
def _better(arena: Arena, picks: Picks, s, level, ask: Question):
    """Whether a state, completed, beats the best choice; if so its sums are kept."""
    gain = arena.all.gain[s] + arena.after[level, 0]
    spent = arena.all.cost[s] + arena.after[level, 1]
    if ask.nearest:
        good = gain >= ask.target and spent < picks.sums[5]
    else:
        good = spent <= ask.budget and gain > picks.sums[4]
    if good:
        picks.sums[4], picks.sums[5] = gain, spent
    return good


@lean
def _extend(options: Options, picks: Picks, arena: Arena, level, first, last, grid, ask: Question):
    """Merge every live state with every option of the next feature, dropping what is dominated or hopeless.

    Returns how many states are left, whether they are in arena.two, and the least reduced cost left out for
    want of room.
    """
    a = arena.order[level]
    fine, step = grid
    gap = _gap(picks, ask)
    top = _top(options, a, ask.price)
    most = picks.sums[5] if ask.nearest else ask.budget
    need = ask.target if ask.nearest else max(ask.target, picks.sums[4])
    need -= ask.guard
    count, in_two, dropped = 0, False, np.inf
    old = arena.all
    for o in range(options.start[a] - 1, options.start[a + 1]):
        stay = o < options.start[a]
        gain = 0.0 if stay else options.gain[o]
        spent = 0.0 if stay else options.cost[o]
        loss = max(0.0, top - (gain - ask.price * spent))
        if loss > gap:
            continue
        source = arena.two if in_two else arena.one
        out = arena.one if in_two else arena.two
        size = 0
        i = 0
        best = -np.inf
        for s in range(first, last + 1):
            cost = np.inf
            if s < last:
                cost = old.cost[s] + spent
            while i < count and source.cost[i] <= cost:  # what is merged already and no dearer
                if source.gain[i] > best:
                    best = source.gain[i]
                    _copy_state(source, i, out, size)
                    size += 1
                i += 1
            if s == last or cost > most:
                continue
            total = old.gain[s] + gain
            reduced = old.reduced[s] + loss
            if total <= best or reduced > gap:
                continue
            ahead = fine
            if fine > 0:
                ahead = min(fine, int((most - cost) / step * (1.0 + 1e-12)))
            if total + arena.table[level + 1, ahead] < need:
                continue
            if size + (count - i) >= ask.max_states:
                dropped = min(dropped, reduced)
                continue
            best = total
            out.cost[size], out.gain[size], out.reduced[size] = cost, total, reduced
            out.parent[size], out.option[size] = s, -1 if stay else o
            size += 1
        count = size
        in_two = not in_two
    return count, in_two, dropped


@inline
def _copy_state(source: Level, i, out: Level, k):
    out.cost[k] = source.cost[i]
    out.gain[k] = source.gain[i]
    out.reduced[k] = source.reduced[i]
    out.parent[k] = source.parent[i]
    out.option[k] = source.option[i]


@kernel
def _narrow(new: Level, count):
    """Past the state budget, keep the beam of least reduced costs (still by ascending cost)."""
    rank = np.argsort(new.reduced[:count])
    dropped = new.reduced[rank[BEAM]]
    keep = np.sort(rank[:BEAM])
    for k in range(BEAM):
        _copy_state(new, keep[k], new, k)
    return dropped


@lean
def _restore(options: Options, picks: Picks, arena: Arena, level, state, n_core, nearest):
    """Write the best state's choices, and its completion, into picks.best."""
    side = picks.rich if nearest else picks.poor
    for a in range(options.counts[0]):
        picks.best[a] = picks.trial[a]
    for k in range(level, n_core):
        picks.best[arena.order[k]] = side[arena.order[k]]
    for k in range(level - 1, -1, -1):
        picks.best[arena.order[k]] = arena.all.option[state]
        state = arena.all.parent[state]
