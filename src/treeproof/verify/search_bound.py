"""`search`, step 2: lower bounds by decomposition into trees, raised by message passing.

Each feature's prices are split among the trees that read it (an edge's `delta`, for each group of cells, of
either sign; the shares of a group sum to its price). Then the trees are independent: with a multiplier mu on
the loss, sum over trees of min over leaves (shares - mu * gain) + mu * target is a lower bound of the cost of any
flip. `star` re-splits one feature so that its trees' min-marginals become equal (block coordinate ascent, which
never lowers the bound and nears the linear relaxation's); `steer` moves mu. Sound: every number is compared with
room for rounding (`TOL`). A sweep costs O(edges x leaves of a tree).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel

# positions in State.number: FIRST 1 = any flip within the goal will do; CLOSER: see `_closer` in search.py;
# AIM: the loss wanted of the whole model, TAKEN: what trees with one leaf lose, TARGET: about AIM - TAKEN;
# SCALE: the size of losses, 0 = mu stays; LOST 1 = a node was given up, GIVEN_UP its bound;
# OUTSIDE: cost of features not in the instance; HOLD 1: return once before the first branching;
# DONE: operations of sweeps so far, MERGED: of mergers, VAIN: of those that were given up; PATIENT 1: a long search,
# mergers may try hard
MU, GOAL, TARGET, BOUND, ROOM, STEP, LAST, COST, LOWEST, WORK, DEPTH, ROUND, BEFORE, FIRST, CLOSER, SCALE = range(16)
LOST, LOSS, OUTSIDE, GIVEN_UP, NODES, ROUNDS, AIM, TAKEN, HOLD, DONE, VAIN, MERGED, PATIENT = range(16, 29)
NUMBERS = 29
UNIT = 2.0**-52


class State(NamedTuple):
    """What a search carries: shares of prices, live leaves and open groups of each depth, the trail."""

    order: np.ndarray  # leaves of each tree, the live ones first
    live: np.ndarray  # (depths, trees): how many are live
    open: np.ndarray  # bool (depths, groups)
    delta: np.ndarray
    contribution: np.ndarray  # (entries,): the cheapest share in the entry's interval
    free: np.ndarray  # (edges,): the cheapest share of all
    theta: np.ndarray  # (leaves,): shares - mu * gain
    low: np.ndarray  # (trees,): the least theta
    arg: np.ndarray  # (trees,): its leaf
    q: np.ndarray  # (most edges of a feature, most groups): min-marginals, scratch
    total: np.ndarray  # (most groups,): scratch
    choice: np.ndarray  # (features,): the best group by the last star
    gap: np.ndarray  # (features,): how far the second best is behind
    best: np.ndarray  # (features,): groups of the best flip found
    pick: np.ndarray  # (features,): scratch
    cut: np.ndarray  # (depths, 3): branched feature, cut, side (0 none, 1 first done)
    bound: np.ndarray  # (depths,): the bound when the node was branched
    number: np.ndarray


@kernel
def new_state(instance, depths):
    """The state at the root, prices shared equally."""
    n_features = len(instance.feature)
    n_trees, n_edges = len(instance.tree_start) - 1, len(instance.edge_tree)
    most_edges, most_groups = 1, 1
    for f in range(n_features):
        most_edges = max(most_edges, instance.edge_start[f + 1] - instance.edge_start[f])
        most_groups = max(most_groups, instance.group_start[f + 1] - instance.group_start[f])
    state = State(
        np.arange(len(instance.gain)),
        np.empty((depths, n_trees), dtype=np.int32),  # (rows are filled as the search gets there)
        np.empty((depths, len(instance.price)), dtype=np.bool_),
        np.zeros(instance.delta_start[n_edges]),
        np.zeros(len(instance.entry_edge)),
        np.zeros(n_edges),
        np.zeros(len(instance.gain)),
        np.zeros(n_trees),
        np.zeros(n_trees, dtype=np.int64),
        np.zeros((most_edges, most_groups)),
        np.zeros(most_groups),
        np.zeros(n_features, dtype=np.int64),
        np.zeros(n_features),
        np.full(n_features, -1, dtype=np.int64),
        np.zeros(n_features, dtype=np.int64),
        np.zeros((depths, 3), dtype=np.int64),
        np.zeros(depths),
        np.zeros(NUMBERS),
    )
    for t in range(n_trees):
        state.live[0, t] = instance.tree_start[t + 1] - instance.tree_start[t]
    for f in range(n_features):
        first, last = instance.group_start[f], instance.group_start[f + 1]
        share = 1.0 / (instance.edge_start[f + 1] - instance.edge_start[f])
        for e in range(instance.edge_start[f], instance.edge_start[f + 1]):
            for k in range(last - first):
                price = instance.price[first + k]
                state.delta[instance.delta_start[e] + k] = price * share if price < np.inf else 0.0
        for g in range(first, last):
            state.open[0, g] = instance.price[g] < np.inf
    return state


@kernel
def narrow(instance, state, domain):
    """Restrict a domain to the leaves and groups that the root's bound left."""
    for t in range(len(instance.tree_start) - 1):
        for at in range(instance.tree_start[t] + state.live[0, t], instance.tree_start[t + 1]):
            domain.alive[instance.leaf[state.order[at]]] = False
    for f in range(len(instance.feature)):
        j, group, end = instance.feature[f], instance.group_start[f], instance.group_start[f + 1]
        low, high = group, end
        while low < end and not state.open[0, low]:
            low += 1
        while high > low and not state.open[0, high - 1]:
            high -= 1
        domain.lo[j] = max(domain.lo[j], instance.first[low] if low < end else domain.hi[j])
        if high < end:
            domain.hi[j] = min(domain.hi[j], instance.first[high])


@kernel
def carry(old, shares, new, state):
    """Start from the shares of an earlier instance of the same row; what is left of a price is shared equally."""
    f_old = 0
    for f in range(len(new.feature)):
        while f_old < len(old.feature) and old.feature[f_old] < new.feature[f]:
            f_old += 1
        known = f_old < len(old.feature) and old.feature[f_old] == new.feature[f]
        group, end = new.group_start[f], new.group_start[f + 1]
        first, last = new.edge_start[f], new.edge_start[f + 1]
        at_old = old.group_start[f_old] if known else 0
        for g in range(group, end):
            if not new.price[g] < np.inf:
                continue
            if known:
                while at_old + 1 < old.group_start[f_old + 1] and old.first[at_old + 1] <= new.cell[g]:
                    at_old += 1
            rest = new.price[g]
            e_old = old.edge_start[f_old] if known else 0
            for e in range(first, last):
                share = 0.0
                if known:
                    tree = new.tree[new.edge_tree[e]]
                    while e_old < old.edge_start[f_old + 1] and old.tree[old.edge_tree[e_old]] < tree:
                        e_old += 1
                    if e_old < old.edge_start[f_old + 1] and old.tree[old.edge_tree[e_old]] == tree:
                        share = shares[old.delta_start[e_old] + at_old - old.group_start[f_old]]
                state.delta[new.delta_start[e] + g - group] = share
                rest -= share
            for e in range(first, last):
                state.delta[new.delta_start[e] + g - group] += rest / (last - first)


@kernel
def _least_open(state, depth, group, delta, lo, hi):
    """The least share among open groups lo <= k < hi (group, delta: where the feature's and edge's begin)."""
    least = np.inf
    for k in range(lo, hi):
        if state.open[depth, group + k] and state.delta[delta + k] < least:
            least = state.delta[delta + k]
    return least


@kernel
def refresh(instance, state, depth):
    """Compute every leaf's theta anew, drop leaves without open groups; the bound (inf: no flip is left)."""
    mu = state.number[MU]
    size = abs(mu * state.number[TARGET]) + state.number[OUTSIDE]
    for e in range(len(instance.edge_tree)):
        f = instance.edge_feature[e]
        group, delta = instance.group_start[f], instance.delta_start[e]
        state.free[e] = _least_open(state, depth, group, delta, 0, instance.group_start[f + 1] - group)
        largest = 0.0
        for i in range(delta, instance.delta_start[e + 1]):
            largest = max(largest, abs(state.delta[i]))
        size += largest
    bound = mu * state.number[TARGET] + state.number[OUTSIDE]
    for t in range(len(instance.tree_start) - 1):
        start, whole = instance.tree_start[t], 0.0
        for i in range(instance.tree_edge_start[t], instance.tree_edge_start[t + 1]):
            whole += state.free[instance.tree_edges[i]]
        low, largest, at = np.inf, 0.0, start
        while at < start + state.live[depth, t]:
            leaf = state.order[at]
            theta = whole - mu * instance.gain[leaf]
            for i in range(instance.entry_start[leaf], instance.entry_start[leaf + 1]):
                e = instance.entry_edge[i]
                group, delta = instance.group_start[instance.edge_feature[e]], instance.delta_start[e]
                share = _least_open(state, depth, group, delta, instance.entry_lo[i], instance.entry_hi[i])
                state.contribution[i] = share
                theta += share - state.free[e]
            if not theta < np.inf:
                drop_leaf(state, depth, start, t, at)
                continue
            state.theta[leaf] = theta
            largest = max(largest, abs(mu * instance.gain[leaf]))
            if theta < low:
                low = theta
                state.arg[t] = leaf
            at += 1
        if low == np.inf:
            state.number[BOUND] = np.inf
            return np.inf
        state.low[t] = low
        bound += low
        size += largest
    # every number above is a sum of fewer than trees + edges terms of at most `size` together
    state.number[ROOM] = 4.0 * UNIT * (len(instance.tree_start) + len(instance.tree_edges) / 4 + 64.0) * size
    state.number[BOUND] = bound
    return bound


@kernel
def drop_leaf(state, depth, start, t, at):
    """Take the leaf at position `at` out of tree t's live ones."""
    state.live[depth, t] -= 1
    last = start + state.live[depth, t]
    state.order[at], state.order[last] = state.order[last], state.order[at]


@kernel
def tell_beyond(state, beyond):
    """Something was left out that costs `beyond` more than the goal: keep what that says of the loss."""
    number = state.number
    if number[FIRST] == 1.0 and beyond < np.inf:
        number[LOWEST] = min(number[LOWEST], max(0.0, beyond) / max(number[MU], 1e-300))


@kernel
def drop_leaves(instance, state, depth):
    """Drop leaves that no flip within the goal can contain, by their reduced cost; how many."""
    allowance = state.number[GOAL] + 2 * state.number[ROOM] - state.number[BOUND]
    dropped = 0
    for t in range(len(instance.tree_start) - 1):
        start = at = instance.tree_start[t]
        while at < start + state.live[depth, t]:
            beyond = state.theta[state.order[at]] - state.low[t] - allowance
            if beyond > 0.0 and state.order[at] != state.arg[t]:
                tell_beyond(state, beyond)
                drop_leaf(state, depth, start, t, at)
                dropped += 1
            else:
                at += 1
    return dropped


@kernel
def star(instance, state, depth, f):
    """Re-split feature f's prices; closes groups beyond the goal. False: no group is left."""
    first, last = instance.edge_start[f], instance.edge_start[f + 1]
    group = instance.group_start[f]
    groups = instance.group_start[f + 1] - group
    total, q, number = state.total, state.q, state.number
    for k in range(groups):
        total[k] = instance.price[group + k]
    before = 0.0
    for e in range(first, last):
        _min_marginals(instance, state, depth, e, groups)
        before += state.low[instance.edge_tree[e]]
        for k in range(groups):
            total[k] += q[e - first, k]
    least, second, best = np.inf, np.inf, -1
    for k in range(groups):
        if not state.open[depth, group + k]:
            continue
        if total[k] < least:
            least, second, best = total[k], least, k
        elif total[k] < second:
            second = total[k]
    if best < 0 or not least < np.inf:
        number[BOUND] = np.inf
        return False
    state.choice[f], state.gap[f] = best, second - least
    number[BOUND] += least - before
    allowance = number[GOAL] + 2 * number[ROOM] - number[BOUND]
    for k in range(groups):
        if not state.open[depth, group + k] or k == best:
            continue
        if total[k] == np.inf or total[k] - least > allowance:
            state.open[depth, group + k] = False
            tell_beyond(state, total[k] - least - allowance)
    for e in range(first, last):
        _take_share(instance, state, depth, e, groups, 1.0 / (last - first))
        state.low[instance.edge_tree[e]] = least / (last - first)
    return True


@kernel
def _min_marginals(instance, state, depth, e, groups):
    """For each group, the tree's least theta without this edge's share."""
    q = state.q[e - instance.edge_start[instance.edge_feature[e]]]
    t = instance.edge_tree[e]
    start = instance.tree_start[t]
    link = instance.link_start[e] - start
    q[:groups] = np.inf
    anywhere = np.inf
    for at in range(start, start + state.live[depth, t]):
        leaf = state.order[at]
        theta = state.theta[leaf]
        if theta == np.inf:
            continue
        i = instance.link[link + leaf]
        if i < 0:
            anywhere = min(anywhere, theta - state.free[e])
            continue
        theta -= state.contribution[i]
        for k in range(instance.entry_lo[i], instance.entry_hi[i]):
            if theta < q[k]:
                q[k] = theta
    for k in range(groups):
        if anywhere < q[k]:
            q[k] = anywhere


@kernel
def _take_share(instance, state, depth, e, groups, share):
    """Give the edge its part of the feature's min-marginals, and its tree's leaves the new thetas."""
    f = instance.edge_feature[e]
    q = state.q[e - instance.edge_start[f]]
    t = instance.edge_tree[e]
    start = instance.tree_start[t]
    group, delta, link = instance.group_start[f], instance.delta_start[e], instance.link_start[e] - start
    least = np.inf
    for k in range(groups):
        if state.open[depth, group + k]:
            state.delta[delta + k] = state.total[k] * share - q[k]
            least = min(least, state.delta[delta + k])
    change = least - state.free[e]
    state.free[e] = least
    for at in range(start, start + state.live[depth, t]):
        leaf = state.order[at]
        if state.theta[leaf] == np.inf:
            continue
        i = instance.link[link + leaf]
        if i < 0:
            state.theta[leaf] += change
            continue
        new = _least_open(state, depth, group, delta, instance.entry_lo[i], instance.entry_hi[i])
        state.theta[leaf] = state.theta[leaf] + (new - state.contribution[i]) if new < np.inf else np.inf
        state.contribution[i] = new


@kernel
def sweep(instance, state, depth):
    """One star for every feature that is not decided, forth or back. False: no flip is left."""
    n = len(instance.feature)
    forth = state.number[ROUND] % 2 == 0
    work = 0
    for i in range(n):
        f = i if forth else n - 1 - i
        undecided = 0
        for g in range(instance.group_start[f], instance.group_start[f + 1]):
            undecided += state.open[depth, g]
        if undecided == 0:
            return False
        if undecided == 1:
            continue
        for e in range(instance.edge_start[f], instance.edge_start[f + 1]):
            work += 4 + state.live[depth, instance.edge_tree[e]]
        if not star(instance, state, depth, f):
            return False
    state.number[WORK] += work + len(instance.entry_edge)
    state.number[DONE] += work + len(instance.entry_edge)
    return True


@kernel
def steer(instance, state, depth):
    """Move mu by the slope of the bound, softened over leaves that are nearly the least of their tree."""
    number = state.number
    n_trees = len(instance.tree_start) - 1
    spread = number[GOAL] if number[GOAL] < np.inf else 2.0 * abs(number[BOUND])
    soft = max(0.3 * (spread - number[BOUND]), 0.01 * spread) / n_trees
    if not soft > 0.0:
        return
    taken = 0.0
    for t in range(n_trees):
        weight, gain = 0.0, 0.0
        start = instance.tree_start[t]
        for at in range(start, start + state.live[depth, t]):
            leaf = state.order[at]
            z = (state.theta[leaf] - state.low[t]) / soft
            if z < 20.0:
                part = np.exp(-z)
                weight += part
                gain += part * instance.gain[leaf]
        if weight == 0.0:  # rounding hid even the least leaf: prices far beyond the goal
            return
        taken += gain / weight
    slope = (number[TARGET] - taken) / number[SCALE]
    if slope * number[LAST] < 0.0:
        number[STEP] *= 0.6
    else:
        number[STEP] = min(number[STEP] * 1.2, 1.0)
    number[LAST] = slope
    number[MU] *= np.exp(number[STEP] * max(-1.0, min(1.0, slope)))
