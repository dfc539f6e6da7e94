"""The exact end of a row's knapsack: merge the few features that the Lagrangian bound leaves open.

An option whose reduced cost exceeds the gap between the bound and what is asked cannot take part. The
features with more than one option left are merged into lists of undominated (cost, gain) states, the most
uncertain first, pruned by the same bound. Past the state budget a beam goes on, and the dropped states'
bounds keep the answer sound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .additive_dual import Picks
from .additive_options import Options

BEAM = 256


class Arena(NamedTuple):
    """Room for states; the first five hold all levels, the last five one level's candidates."""

    cost: np.ndarray
    gain: np.ndarray
    reduced: np.ndarray
    parent: np.ndarray  # int64
    option: np.ndarray  # int64: -1 for staying
    new_cost: np.ndarray
    new_gain: np.ndarray
    new_reduced: np.ndarray
    new_parent: np.ndarray
    new_option: np.ndarray
    order: np.ndarray  # int64 (m,): core features, in the order they are merged
    key: np.ndarray  # float64 (m,)
    after: np.ndarray  # float64 (m + 1, 2): gain and cost of the completion of the features not yet merged


def arena_room(m: int, max_states: int) -> Arena:
    """Room for `max_states` states and a beam after them."""
    size, new = max_states + BEAM * (m + 1) + 1, max_states + 1
    return Arena(
        cost=np.empty(size),
        gain=np.empty(size),
        reduced=np.empty(size),
        parent=np.empty(size, dtype=np.int64),
        option=np.empty(size, dtype=np.int64),
        new_cost=np.empty(new),
        new_gain=np.empty(new),
        new_reduced=np.empty(new),
        new_parent=np.empty(new, dtype=np.int64),
        new_option=np.empty(new, dtype=np.int64),
        order=np.empty(m, dtype=np.int64),
        key=np.empty(m),
        after=np.empty((m + 1, 2)),
    )


@kernel
def merge(
    options: Options,
    picks: Picks,
    arena: Arena,
    price,
    bound,
    budget,
    target,
    sure,
    nearest,
    guard,
    max_states,
):
    """Maximise the gain within `budget` (from `target` up, until `sure`), or minimise the cost of gaining `target`.

    `bound` is the Lagrangian bound at `price`. The best choice is left in picks.best, its sums in
    picks.sums[4:6]. Returns the bound that the dropped states leave (of the gain, or of the cost): -inf (inf)
    when none was dropped.
    """
    n_core = _core_features(options, picks, arena, price, _gap(picks, price, bound, target, nearest, guard))
    _completions(options, picks, arena, n_core, nearest)
    first, last = 0, 1
    used = 1
    lost = np.inf  # least reduced cost among dropped states
    best_level, best_state = -1, -1
    done = _better(arena, picks, 0, 0, budget, target, nearest)
    if done:
        best_level, best_state = 0, 0
    for level in range(n_core):
        if not nearest and picks.sums[4] >= sure:
            break
        a = arena.order[level]
        gap = _gap(picks, price, bound, target, nearest, guard)
        most = picks.sums[5] if nearest else budget
        count, dropped = _extend(options, arena, a, first, last, price, gap, most, max_states)
        lost = min(lost, dropped)
        count, dropped = _narrow(arena, count, used, max_states)
        lost = min(lost, dropped)
        first = used
        used = _undominated(arena, count, used)
        last = used
        for s in range(first, last):
            if _better(arena, picks, s, level + 1, budget, target, nearest):
                best_level, best_state = level + 1, s
        if first == last:
            break
    if best_level >= 0:
        _restore(options, picks, arena, best_level, best_state, n_core, nearest)
    if lost == np.inf:
        return np.inf if nearest else -np.inf
    return bound + lost / price if nearest else bound - lost


@kernel
def _gap(picks: Picks, price, bound, target, nearest, guard):
    """The reduced cost above which nothing can matter any more."""
    if nearest:
        return price * (picks.sums[5] - bound) + guard
    return bound - max(target, picks.sums[4]) + guard


@kernel
def _top(options: Options, a, price):
    top = 0.0
    for o in range(options.start[a], options.start[a + 1]):
        top = max(top, options.gain[o] - price * options.cost[o])
    return top


@kernel
def _core_features(options: Options, picks: Picks, arena: Arena, price, gap):
    """Order the features that have a choice left; fix the others in the first state."""
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
            arena.order[n_core] = a
            arena.key[n_core] = second
            n_core += 1
        else:
            reduced += least if left else 0.0
            if only >= 0:
                gain += options.gain[only]
                spent += options.cost[only]
    rank = np.argsort(arena.key[:n_core])
    copy = arena.order[:n_core].copy()
    for k in range(n_core):
        arena.order[k] = copy[rank[k]]
    arena.gain[0], arena.cost[0], arena.reduced[0] = gain, spent, reduced
    arena.parent[0], arena.option[0] = -1, -1
    return n_core


@kernel
def _completions(options: Options, picks: Picks, arena: Arena, n_core, nearest):
    """Sums of the bound's own picks over the features not yet merged: how a state is completed."""
    side = picks.rich if nearest else picks.poor
    arena.after[n_core, 0] = arena.after[n_core, 1] = 0.0
    for k in range(n_core - 1, -1, -1):
        o = side[arena.order[k]]
        arena.after[k, 0] = arena.after[k + 1, 0] + (options.gain[o] if o >= 0 else 0.0)
        arena.after[k, 1] = arena.after[k + 1, 1] + (options.cost[o] if o >= 0 else 0.0)


@kernel
def _better(arena: Arena, picks: Picks, s, level, budget, target, nearest):
    """Whether a state, completed, beats the best choice; if so its sums are kept."""
    gain = arena.gain[s] + arena.after[level, 0]
    spent = arena.cost[s] + arena.after[level, 1]
    if nearest:
        good = gain >= target and spent < picks.sums[5]
    else:
        good = spent <= budget and gain > picks.sums[4]
    if good:
        picks.sums[4], picks.sums[5] = gain, spent
    return good


@kernel
def _extend(options: Options, arena: Arena, a, first, last, price, gap, most, max_states):
    """Every live state with every option of feature a; returns how many, and the least reduced cost left out."""
    top = _top(options, a, price)
    count = 0
    dropped = np.inf
    for o in range(options.start[a] - 1, options.start[a + 1]):
        stay = o < options.start[a]
        gain = 0.0 if stay else options.gain[o]
        spent = 0.0 if stay else options.cost[o]
        loss = top - (gain - price * spent)
        if loss > gap:
            continue
        for s in range(first, last):
            reduced = arena.reduced[s] + loss
            if reduced > gap or arena.cost[s] + spent > most:
                continue
            if count == max_states:
                dropped = min(dropped, reduced)
                continue
            arena.new_cost[count] = arena.cost[s] + spent
            arena.new_gain[count] = arena.gain[s] + gain
            arena.new_reduced[count] = reduced
            arena.new_parent[count] = s
            arena.new_option[count] = -1 if stay else o
            count += 1
    return count, dropped


@kernel
def _narrow(arena: Arena, count, used, max_states):
    """Past the state budget, keep the beam of least reduced costs."""
    if used + count <= max_states or count <= BEAM:
        return count, np.inf
    rank = np.argsort(arena.new_reduced[:count])
    dropped = arena.new_reduced[rank[BEAM]]
    keep = np.sort(rank[:BEAM])
    for k in range(BEAM):
        i = keep[k]
        arena.new_cost[k] = arena.new_cost[i]
        arena.new_gain[k] = arena.new_gain[i]
        arena.new_reduced[k] = arena.new_reduced[i]
        arena.new_parent[k] = arena.new_parent[i]
        arena.new_option[k] = arena.new_option[i]
    return BEAM, dropped


@kernel
def _undominated(arena: Arena, count, used):
    """Append the candidates that no cheaper one matches in gain; returns the new end of the arena."""
    rank = np.argsort(arena.new_cost[:count])
    best = -np.inf
    for k in range(count):
        i = rank[k]
        if arena.new_gain[i] > best:
            best = arena.new_gain[i]
            arena.cost[used] = arena.new_cost[i]
            arena.gain[used] = best
            arena.reduced[used] = arena.new_reduced[i]
            arena.parent[used] = arena.new_parent[i]
            arena.option[used] = arena.new_option[i]
            used += 1
    return used


@kernel
def _restore(options: Options, picks: Picks, arena: Arena, level, state, n_core, nearest):
    """Write the best state's choices, and its completion, into picks.best."""
    side = picks.rich if nearest else picks.poor
    for a in range(options.counts[0]):
        picks.best[a] = picks.trial[a]
    for k in range(level, n_core):
        picks.best[arena.order[k]] = side[arena.order[k]]
    for k in range(level - 1, -1, -1):
        picks.best[arena.order[k]] = arena.option[state]
        state = arena.parent[state]
