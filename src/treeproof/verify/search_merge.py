"""`search`, a node's end: merge its trees, one after the other, into lists of states that nothing better covers.

A state is a choice of one live leaf in each tree so far, with the groups that this leaves to the features that
later trees read as well. It is dropped when the bound says that no flip within the goal can begin with it, when
later trees cannot make up the loss, or when another state leaves the same groups to later trees, costs no more and
loses no less. Exact: it ends a node as branching would, and is quicker where few choices are left; when that takes
too much work it gives up and the node is branched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .search_bound import AIM, BOUND, GOAL, LOSS, LOWEST, OUTSIDE, ROOM, TAKEN, WORK, tell_beyond

NEW_STATE = 30.0  # operations of making one


class Plan(NamedTuple):
    """The order of the trees, and what each has to do with the features that are not decided."""

    order: np.ndarray  # (trees,)
    rest_low: np.ndarray  # (trees + 1,): the least theta of the trees still to come
    rest_gain: np.ndarray  # (trees + 1,): the most that they lose
    slot: np.ndarray  # (features,): its place in a state while some trees have read it and others have not
    first: np.ndarray  # (features,): the position of the first tree that reads it (-1: decided)
    last: np.ndarray  # (features,)
    width: int


class States(NamedTuple):
    """Some states: sums and, slot by slot, the groups left (lo, hi) and the shares of their price counted so far."""

    value: np.ndarray  # thetas, with true prices where every reader has chosen
    cost: np.ndarray  # true prices of those features
    gain: np.ndarray
    parent: np.ndarray
    leaf: np.ndarray
    lo: np.ndarray  # (states, width)
    hi: np.ndarray
    share: np.ndarray


@kernel
def _room(most, width):
    return States(
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.int32),
        np.zeros((most, width), dtype=np.int32),
        np.zeros((most, width), dtype=np.int32),
        np.zeros((most, width)),
    )


@kernel
def plan_of(instance, state, depth):
    """Trees with one leaf first, then those that close features rather than open new ones."""
    n_trees, n_features = len(instance.tree_start) - 1, len(instance.feature)
    left = np.zeros(n_features, dtype=np.int64)  # readers to come; 0: decided
    for f in range(n_features):
        undecided = 0
        for g in range(instance.group_start[f], instance.group_start[f + 1]):
            undecided += state.open[depth, g]
        if undecided > 1:
            left[f] = instance.edge_start[f + 1] - instance.edge_start[f]
    order = np.empty(n_trees, dtype=np.int64)
    taken = np.zeros(n_trees, dtype=np.bool_)
    first, last = np.full(n_features, -1, dtype=np.int64), np.full(n_features, -1, dtype=np.int64)
    slot = np.full(n_features, -1, dtype=np.int64)
    used = np.zeros(n_features + 1, dtype=np.bool_)
    width = 1
    for n in range(n_trees):
        best, best_score = -1, np.inf
        for t in range(n_trees):
            if taken[t]:
                continue
            score = 0.0 if state.live[depth, t] > 1 else -1e6
            for i in range(instance.tree_edge_start[t], instance.tree_edge_start[t + 1]):
                f = instance.edge_feature[instance.tree_edges[i]]
                if left[f] > 0:
                    score += -1.0 if left[f] == 1 else (1.0 if first[f] < 0 else 0.0)
            score += 1e-3 * state.live[depth, t]
            if score < best_score:
                best, best_score = t, score
        taken[best] = True
        order[n] = best
        for i in range(instance.tree_edge_start[best], instance.tree_edge_start[best + 1]):
            f = instance.edge_feature[instance.tree_edges[i]]
            if left[f] == 0:
                continue
            if first[f] < 0:
                first[f] = n
                k = 0
                while used[k]:
                    k += 1
                used[k], slot[f] = True, k
                width = max(width, k + 1)
            left[f] -= 1
            last[f] = n
        for i in range(instance.tree_edge_start[best], instance.tree_edge_start[best + 1]):
            f = instance.edge_feature[instance.tree_edges[i]]
            if last[f] == n and left[f] == 0:
                used[slot[f]] = False
    return _with_rests(instance, state, depth, order, slot, first, last, width)


@kernel
def _with_rests(instance, state, depth, order, slot, first, last, width):
    n_trees = len(order)
    rest_low, rest_gain = np.zeros(n_trees + 1), np.zeros(n_trees + 1)
    for n in range(n_trees - 1, -1, -1):
        t = order[n]
        start, most = instance.tree_start[t], -np.inf
        for at in range(start, start + state.live[depth, t]):
            most = max(most, instance.gain[state.order[at]])
        rest_low[n] = rest_low[n + 1] + state.low[t]
        rest_gain[n] = rest_gain[n + 1] + most
    return Plan(order, rest_low, rest_gain, slot, first, last, width)


@kernel
def merge(instance, state, depth, until, most):
    """End the node at `depth`: 0 too much work, 1 no flip within the goal, 2 `pick` is one.

    Too much: WORK beyond `until`, or more than `most` states at a time.
    """
    number = state.number
    plan = plan_of(instance, state, depth)
    n_trees = len(plan.order)
    number[WORK] += 2.0 * n_trees * n_trees
    most = int(max(1.0, min(most, (until - number[WORK]) / NEW_STATE)))
    base = number[BOUND] - plan.rest_low[0] - 4.0 * number[ROOM]
    fixed = _decided_price(instance, state, depth, plan)
    now, then = _room(most, plan.width), _room(most, plan.width)
    parents, leaves = np.empty(n_trees * 16 + 4 * most, np.int32), np.empty(n_trees * 16 + 4 * most, np.int32)
    begin = np.zeros(n_trees + 1, dtype=np.int64)
    now.value[0], now.cost[0], now.gain[0], count = 0.0, 0.0, 0.0, 1
    for n in range(n_trees):
        made = _extend(instance, state, depth, plan, n, now, count, then, base, until)
        if made < 0:
            return 0
        count = _keep_best(instance, plan, n, then, made, now)
        if begin[n] + count > len(parents):
            return 0
        parents[begin[n] : begin[n] + count] = now.parent[:count]
        leaves[begin[n] : begin[n] + count] = now.leaf[:count]
        begin[n + 1] = begin[n] + count
        if count == 0:
            return 1
    return _finish(instance, state, depth, plan, now, count, fixed, parents, leaves, begin)


@kernel
def _decided_price(instance, state, depth, plan):
    """What the features cost that have one group left."""
    total = state.number[OUTSIDE]
    for f in range(len(instance.feature)):
        if plan.first[f] < 0:
            for g in range(instance.group_start[f], instance.group_start[f + 1]):
                if state.open[depth, g]:
                    total += instance.price[g]
    return total


@kernel
def _extend(instance, state, depth, plan, n, now, count, then, base, until):
    """Every state with every live leaf of the n-th tree that may still lead to a flip; how many, -1: too many."""
    number = state.number
    t = plan.order[n]
    start = instance.tree_start[t]
    goal = number[GOAL]
    made = 0
    for s in range(count):
        for at in range(start, start + state.live[depth, t]):
            leaf = state.order[at]
            number[WORK] += 4.0
            value = now.value[s] + state.theta[leaf]
            beyond = base + value + plan.rest_low[n + 1] - goal
            if beyond > 0.0:
                tell_beyond(state, beyond)
                continue
            gain = now.gain[s] + instance.gain[leaf]
            short = number[AIM] - (number[TAKEN] + gain + plan.rest_gain[n + 1])
            if short > 0.0:
                number[LOWEST] = min(number[LOWEST], short)
                continue
            number[WORK] += NEW_STATE
            if made == len(then.value) or number[WORK] > until:
                return -1
            then.gain[made], then.parent[made], then.leaf[made] = gain, s, leaf
            then.value[made], then.cost[made] = value, now.cost[s]
            then.lo[made], then.hi[made], then.share[made] = now.lo[s], now.hi[s], now.share[s]
            if not _restrict(instance, state, depth, plan, n, t, leaf, then, made):
                continue
            beyond = base + then.value[made] + plan.rest_low[n + 1] - goal
            if beyond > 0.0:
                tell_beyond(state, beyond)
                continue
            made += 1
    return made


@kernel
def _restrict(instance, state, depth, plan, n, t, leaf, states, s):
    """Take the leaf's intervals into a state; features read for the last time are priced. False: nothing is left."""
    for i in range(instance.tree_edge_start[t], instance.tree_edge_start[t + 1]):
        e = instance.tree_edges[i]
        f = instance.edge_feature[e]
        if plan.first[f] < 0:
            continue
        k = plan.slot[f]
        group = instance.group_start[f]
        if plan.first[f] == n:
            states.lo[s, k], states.hi[s, k], states.share[s, k] = 0, instance.group_start[f + 1] - group, 0.0
        entry = instance.link[instance.link_start[e] + leaf - instance.tree_start[t]]
        if entry < 0:
            states.share[s, k] += state.free[e]
        else:
            states.share[s, k] += state.contribution[entry]
            states.lo[s, k] = max(states.lo[s, k], instance.entry_lo[entry])
            states.hi[s, k] = min(states.hi[s, k], instance.entry_hi[entry])
        if plan.last[f] == n or entry >= 0:
            price = _cheapest(instance, state, depth, group, states.lo[s, k], states.hi[s, k])
            if price == np.inf:
                return False
            if plan.last[f] == n:
                states.value[s] += price - states.share[s, k]
                states.cost[s] += price
                states.lo[s, k], states.hi[s, k], states.share[s, k] = 0, 0, 0.0
    return True


@kernel
def _cheapest(instance, state, depth, group, lo, hi):
    least = np.inf
    for g in range(group + lo, group + hi):
        if state.open[depth, g] and instance.price[g] < least:
            least = instance.price[g]
    return least


@kernel
def _keep_best(instance, plan, n, made, count, kept):
    """Copy the states that no other covers, cheapest first; how many."""
    size = 16
    while size < 2 * count:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)  # for each set of groups left: the kept state with the most gain
    width = plan.width
    total = 0
    for s in np.argsort(made.cost[:count]):
        key = 0
        for k in range(width):
            key = (key * 61 + int(made.lo[s, k]) * 7 + int(made.hi[s, k])) & 0xFFFFFFF
        at = (key * 40503 >> 8) & (size - 1)
        covered = False
        while table[at] >= 0:
            other = table[at]
            same = True
            for k in range(width):
                if made.lo[s, k] != kept.lo[other, k] or made.hi[s, k] != kept.hi[other, k]:
                    same = False
                    break
            if same:
                covered = made.gain[s] <= kept.gain[other]
                break
            at = (at + 1) & (size - 1)
        if covered:
            continue
        table[at] = total
        kept.value[total], kept.cost[total], kept.gain[total] = made.value[s], made.cost[s], made.gain[s]
        kept.parent[total], kept.leaf[total] = made.parent[s], made.leaf[s]
        kept.lo[total], kept.hi[total], kept.share[total] = made.lo[s], made.hi[s], made.share[s]
        total += 1
    return total


@kernel
def _finish(instance, state, depth, plan, now, count, fixed, parents, leaves, begin):
    """Write the cheapest complete state that is a flip within the goal to `state.pick`: 2, or 1 if there is none."""
    number = state.number
    for s in range(count):  # cheapest first
        loss = number[TAKEN] + now.gain[s]
        if loss < number[AIM]:
            number[LOWEST] = min(number[LOWEST], max(0.0, number[AIM] - loss))
            continue
        if fixed + now.cost[s] > number[GOAL]:
            tell_beyond(state, fixed + now.cost[s] - number[GOAL])
            continue
        _recover(instance, state, depth, plan, s, parents, leaves, begin)
        number[LOSS] = loss
        return 2
    return 1


@kernel
def _recover(instance, state, depth, plan, s, parents, leaves, begin):
    """Write the cheapest groups inside a complete state's leaves to `state.pick`."""
    n_features = len(instance.feature)
    lo, hi = np.zeros(n_features, dtype=np.int64), np.diff(instance.group_start)
    for n in range(len(plan.order) - 1, -1, -1):
        meet(instance, leaves[begin[n] + s], lo, hi)
        s = parents[begin[n] + s]
    pick_cheapest(instance, state, depth, lo, hi)


@kernel
def meet(instance, leaf, lo, hi):
    """Intersect a box (groups lo <= k < hi of each feature) with a leaf's."""
    for i in range(instance.entry_start[leaf], instance.entry_start[leaf + 1]):
        f = instance.edge_feature[instance.entry_edge[i]]
        lo[f], hi[f] = max(lo[f], instance.entry_lo[i]), min(hi[f], instance.entry_hi[i])


@kernel
def pick_cheapest(instance, state, depth, lo, hi):
    """Pick the cheapest open group of each feature in a box."""
    for f in range(len(instance.feature)):
        least = np.inf
        for k in range(lo[f], hi[f]):
            g = instance.group_start[f] + k
            if state.open[depth, g] and instance.price[g] < least:
                least = instance.price[g]
                state.pick[f] = k
