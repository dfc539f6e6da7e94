"""`search`, step 3: depth-first branch and bound on the cells of one feature at a time.

Each node raises its bound by a few sweeps (shares of prices are inherited, so a child starts where its parent
stopped), drops leaves and closes groups by reduced cost, and tries the cells that the bound likes best. What is
left is split at a cut that separates two trees' favourite leaves. Exact when it finishes; when stopped, the
least bound among the open nodes is a sound lower bound. Resumable: the whole search is in `State`.
"""

from __future__ import annotations

import numpy as np

from .._jit import kernel
from .search_bound import (
    AIM,
    BEFORE,
    BOUND,
    CLOSER,
    COST,
    DEPTH,
    DONE,
    FIRST,
    GIVEN_UP,
    GOAL,
    HOLD,
    LOSS,
    LOST,
    LOWEST,
    MERGED,
    MU,
    NODES,
    OUTSIDE,
    PATIENT,
    ROOM,
    ROUND,
    ROUNDS,
    SCALE,
    STEP,
    TAKEN,
    TARGET,
    VAIN,
    WORK,
    drop_leaves,
    refresh,
    steer,
    sweep,
    tell_beyond,
)
from .search_merge import meet, merge, pick_cheapest

FINISHED, PAUSED, FOUND, HELD = 0, 1, 2, 3
_ON, _PRUNED, _SPLIT, _HIT = 0, 1, 2, 3
ROOT_ROUNDS, NODE_ROUNDS = 80, 6
MERGE = 2.0  # what mergers may take in vain, as a part of the sweeps' work, while the search is short
FEW, MOST = 256, 4096  # states of a merger in a long search: at first, and after millions of operations


@kernel
def start(instance, state, question):
    """Ask for the least cost <= goal of a loss >= aim: (aim, taken, goal, outside, priced, first, closer, mu)."""
    number = state.number
    aim, taken, goal, outside, priced, first, closer, mu = question
    target = aim - taken
    number[:] = 0.0
    number[OUTSIDE], number[AIM], number[TAKEN] = outside, aim, taken
    number[TARGET], number[GOAL] = target, goal
    number[FIRST], number[CLOSER] = first, closer
    number[COST], number[LOWEST], number[BEFORE], number[GIVEN_UP] = np.inf, np.inf, -np.inf, np.inf
    largest = 0.0
    for t in range(len(instance.tree_start) - 1):
        gain = 0.0
        for leaf in range(instance.tree_start[t], instance.tree_start[t + 1]):
            gain = max(gain, abs(instance.gain[leaf]))
        largest += gain
    number[SCALE] = max(abs(target), 1e-3 * largest) if priced == 1.0 else 0.0
    number[MU] = 1.5 * goal / number[SCALE] if priced == 1.0 and number[SCALE] > 0.0 else 1.0
    if mu > 0.0:
        number[MU] = mu
    number[STEP] = 0.3
    state.bound[0] = -np.inf


@kernel
def run(instance, state, budget):
    """Search on until finished, a flip is found (when the first will do) or about `budget` operations are spent."""
    number = state.number
    number[WORK] = 0.0
    while number[DEPTH] >= 0.0:
        if number[WORK] > budget:
            return PAUSED
        depth = int(number[DEPTH])
        verdict = _round(instance, state, depth)
        if verdict == _HIT and number[FIRST] == 1.0:
            return FOUND
        if verdict == _SPLIT and number[HOLD] == 1.0:
            number[HOLD] = 0.0
            return HELD
        if verdict == _SPLIT and _may_merge(number):
            verdict = _merge(instance, state, depth)
            if verdict == _HIT and number[FIRST] == 1.0:
                return FOUND
        if verdict == _SPLIT:
            verdict = _split(instance, state, depth)
        if verdict in (_PRUNED, _HIT):
            _back(instance, state)
    return FINISHED


@kernel
def _may_merge(number):
    """Whether mergers given up so far are little work beside the rest."""
    if number[PATIENT] == 1.0:
        return number[VAIN] <= 0.5 * (number[DONE] + number[MERGED])
    return number[VAIN] < MERGE * number[DONE]


@kernel
def _merge(instance, state, depth):
    """End the node by merging its trees, if that is little work beside the sweeps."""
    number = state.number
    before = number[WORK]
    if number[PATIENT] == 1.0:
        until, most = np.inf, max(FEW, min(MOST, (number[DONE] + number[MERGED]) * 1e-3))
    else:
        until, most = before + MERGE * number[DONE] - number[VAIN], MOST
    ended = merge(instance, state, depth, until, most)
    number[MERGED] += number[WORK] - before
    if ended == 0:
        number[VAIN] += number[WORK] - before
        return _SPLIT
    if ended == 2:
        accept(instance, state)
        return _HIT
    return _PRUNED


@kernel
def lower_bound(state):
    """A sound lower bound of the cost of every flip that is not `best`, wherever the search stopped."""
    depth = int(state.number[DEPTH])
    least = min(state.number[GIVEN_UP], state.number[GOAL])
    for d in range(depth + 1):
        if d == depth or state.cut[d, 2] == 0:
            least = min(least, state.bound[d])
    return least


@kernel
def _round(instance, state, depth):
    """One round of bounding in the node at `depth`."""
    number = state.number
    number[ROUNDS] += 1.0
    if not refresh(instance, state, depth) - number[ROOM] <= number[GOAL]:
        return _prune(state)
    drop_leaves(instance, state, depth)
    if not sweep(instance, state, depth):
        return _PRUNED
    bound = number[BOUND] - 2.0 * number[ROOM]
    if not bound <= number[GOAL]:
        return _prune(state)
    state.bound[depth] = max(state.bound[depth], bound)
    before_goal = number[GOAL]
    tried = _try_choice(instance, state, depth)
    if tried == 2 and number[FIRST] == 1.0:
        return _HIT
    if not bound <= number[GOAL]:
        return _PRUNED
    if tried > 0 and _decided(instance, state, depth):
        _tell_loss(state)
        if _try_box(instance, state, depth) == 2 and number[FIRST] == 1.0:
            return _HIT
        return _PRUNED
    number[ROUND] += 1.0
    rise = bound - number[BEFORE]
    number[BEFORE] = bound
    left = before_goal - bound
    most, enough = (ROOT_ROUNDS, 0.02) if depth == 0 else (NODE_ROUNDS, 0.1)
    if number[ROUND] > 1.0 and (number[ROUND] >= most or rise < enough * left):
        return _SPLIT
    if number[SCALE] > 0.0:
        steer(instance, state, depth)
    return _ON


@kernel
def _prune(state):
    """Close a node by its bound; keep how far beyond the goal it was (in loss when the first flip will do)."""
    number = state.number
    tell_beyond(state, number[BOUND] - 2.0 * number[ROOM] - number[GOAL])
    return _PRUNED


@kernel
def _tell_loss(state):
    """A point was tried and is no flip: keep by how much loss it missed (when the first flip will do)."""
    number = state.number
    number[LOWEST] = min(number[LOWEST], max(0.0, number[AIM] - number[LOSS]))


@kernel
def _decided(instance, state, depth):
    undecided = 0
    for t in range(len(instance.tree_start) - 1):
        undecided += state.live[depth, t] != 1
    return undecided == 0


@kernel
def _try_choice(instance, state, depth):
    """Try the bound's favourite cells: 0 some tree has no live leaf there, 1 no better flip, 2 a better flip."""
    for f in range(len(instance.feature)):
        k = state.choice[f]
        if not state.open[depth, instance.group_start[f] + k]:
            k = _cheapest_open(instance, state, depth, f)
        state.pick[f] = k
    return _try_pick(instance, state, depth)


@kernel
def _try_box(instance, state, depth):
    """Every tree has one leaf left: try the cheapest cells in their common box (sums of shares may not tell prices)."""
    lo, hi = np.zeros(len(instance.feature), dtype=np.int64), np.diff(instance.group_start)
    for t in range(len(instance.tree_start) - 1):
        meet(instance, state.order[instance.tree_start[t]], lo, hi)
    pick_cheapest(instance, state, depth, lo, hi)
    return _try_pick(instance, state, depth)


@kernel
def _try_pick(instance, state, depth):
    """Try the picked cells; see `_try_choice`."""
    number = state.number
    number[LOSS] = np.inf
    loss = number[TAKEN]
    for t in range(len(instance.tree_start) - 1):
        leaf = _leaf_at(instance, state, depth, t)
        if leaf < 0:
            return 0
        loss += instance.gain[leaf]
    number[LOSS] = loss
    if loss < number[AIM] or price_of_pick(instance, state) > number[GOAL]:
        return 1
    accept(instance, state)
    return 2


@kernel
def price_of_pick(instance, state):
    """The cost of the picked groups."""
    cost = state.number[OUTSIDE]
    for f in range(len(instance.feature)):
        cost += instance.price[instance.group_start[f] + state.pick[f]]
    return cost


@kernel
def accept(instance, state):
    """Make the picked groups the best flip."""
    number = state.number
    cost = price_of_pick(instance, state)
    state.best[:] = state.pick
    number[COST] = cost
    number[GOAL] = min(number[GOAL], cost - 0.5 if number[CLOSER] == 0.0 else cost * number[CLOSER])


@kernel
def _cheapest_open(instance, state, depth, f):
    best, least = 0, np.inf
    for k in range(instance.group_start[f + 1] - instance.group_start[f]):
        g = instance.group_start[f] + k
        if state.open[depth, g] and instance.price[g] < least:
            best, least = k, instance.price[g]
    return best


@kernel
def _leaf_at(instance, state, depth, t):
    """Tree t's live leaf whose box holds the picked groups, or -1."""
    first = instance.tree_start[t]
    for at in range(first, first + state.live[depth, t]):
        leaf = state.order[at]
        inside = True
        for i in range(instance.entry_start[leaf], instance.entry_start[leaf + 1]):
            k = state.pick[instance.edge_feature[instance.entry_edge[i]]]
            if not (instance.entry_lo[i] <= k < instance.entry_hi[i]):
                inside = False
                break
        if inside:
            return leaf
    return -1


@kernel
def _split(instance, state, depth):
    """Branch at a cut; the side of the bound's favourite cell comes first."""
    if depth + 1 >= len(state.bound):
        state.number[LOST] = 1.0
        state.number[GIVEN_UP] = min(state.number[GIVEN_UP], state.bound[depth])
        return _PRUNED
    f, cut = _choose_cut(instance, state, depth)
    if f < 0:
        _tell_loss(state)
        return _PRUNED  # every feature is decided, and that point was tried
    below = state.choice[f] < cut
    # the side that comes second is remembered by the cut's sign
    state.cut[depth, 0], state.cut[depth, 1], state.cut[depth, 2] = f, cut if below else -cut, 0
    _descend(instance, state, depth, below)
    return _SPLIT


@kernel
def _descend(instance, state, depth, below):
    """Open the child of `depth` on one side of its cut."""
    number = state.number
    state.open[depth + 1] = state.open[depth]
    state.live[depth + 1] = state.live[depth]
    f, cut = state.cut[depth, 0], abs(state.cut[depth, 1])
    for k in range(instance.group_start[f + 1] - instance.group_start[f]):
        if (k < cut) != below:
            state.open[depth + 1, instance.group_start[f] + k] = False
    state.bound[depth + 1] = state.bound[depth]
    state.cut[depth + 1, 2] = 0
    number[DEPTH], number[ROUND], number[BEFORE] = depth + 1, 0.0, state.bound[depth]
    number[NODES] += 1.0


@kernel
def _choose_cut(instance, state, depth):
    """The feature and cut on which favourite leaves disagree most; else the feature with the closest call."""
    best, best_cut, best_score = -1, 0, -1.0
    calm, calm_cut, calm_gap = -1, 0, np.inf
    for f in range(len(instance.feature)):
        group = instance.group_start[f]
        groups = instance.group_start[f + 1] - group
        undecided = 0
        for k in range(groups):
            undecided += state.open[depth, group + k]
        if undecided < 2:
            continue
        lo, hi, weight = 0, groups, 0.0
        for e in range(instance.edge_start[f], instance.edge_start[f + 1]):
            t = instance.edge_tree[e]
            i = instance.link[instance.link_start[e] + state.arg[t] - instance.tree_start[t]]
            weight += state.live[depth, t] > 1
            if i >= 0:
                lo, hi = max(lo, instance.entry_lo[i]), min(hi, instance.entry_hi[i])
        if lo >= hi and weight > best_score:
            best, best_cut, best_score = f, lo, weight
        if state.gap[f] < calm_gap or calm < 0:
            k = state.choice[f]
            after = False
            for other in range(k + 1, groups):
                after = after or state.open[depth, group + other]
            calm, calm_cut, calm_gap = f, (k + 1 if after else k), state.gap[f]
    if best >= 0:
        return best, best_cut
    return calm, calm_cut


@kernel
def _back(instance, state):
    """Leave a finished node: to the other side of the deepest cut that has one."""
    number = state.number
    depth = int(number[DEPTH]) - 1
    while depth >= 0:
        if state.cut[depth, 2] == 0:
            state.cut[depth, 2] = 1
            if state.bound[depth] <= number[GOAL]:
                _descend(instance, state, depth, state.cut[depth, 1] < 0)
                return
        depth -= 1
    number[DEPTH] = -1.0
