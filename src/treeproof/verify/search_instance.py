"""`search`, step 1: shrink a row's question to the leaves, cells and trees that can matter.

A leaf is dropped when its box costs more than the cap, or when no flip can contain it because all other
trees together cannot lose the rest. A tree with one leaf left forces its box on the cells of its features; this
is repeated to a fixpoint. Cells that no kept leaf tells apart are merged. Exact (nothing within the cap is lost);
O(leaves x depth) a pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel


class Instance(NamedTuple):
    """A shrunken question. An edge is a pair (tree, feature) where some kept leaf of the tree reads the feature."""

    tree: np.ndarray  # (trees,): the model's tree
    tree_start: np.ndarray  # (trees + 1,): leaves of each tree
    leaf: np.ndarray  # (leaves,): its number among the boxes
    gain: np.ndarray  # (leaves,): what the leaf takes from the margin
    entry_start: np.ndarray  # (leaves + 1,)
    entry_edge: np.ndarray
    entry_lo: np.ndarray  # groups lo <= k < hi of the edge's feature
    entry_hi: np.ndarray
    feature: np.ndarray  # (features,): the model's feature
    edge_start: np.ndarray  # (features + 1,): edges of each feature
    edge_tree: np.ndarray
    edge_feature: np.ndarray
    tree_edge_start: np.ndarray  # (trees + 1,)
    tree_edges: np.ndarray
    group_start: np.ndarray  # (features + 1,): merged cells of each feature
    price: np.ndarray  # (groups,)
    first: np.ndarray  # (groups,): the first of the merged cells
    cell: np.ndarray  # (groups,): the cheapest of them
    delta_start: np.ndarray  # (edges + 1,): each edge's share of its feature's prices
    link_start: np.ndarray  # (edges + 1,): for each leaf of the edge's tree, its entry on the edge or -1
    link: np.ndarray


class Domain(NamedTuple):
    """What is still possible: leaves, and for each feature the cells lo <= c < hi."""

    alive: np.ndarray  # bool (leaves,)
    lo: np.ndarray  # int64 (d,)
    hi: np.ndarray  # int64 (d,)
    # loss of the trees with one leaf left; cost of the cells that are forced; by how much loss drops missed
    total: np.ndarray  # float64 (3,)


@kernel
def open_domain(offsets, row, reach, cap):
    """The domain of all leaves and cells within the cap."""
    d = len(row.own)
    lo, hi = np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.int64)
    for j in range(d):
        start = offsets[j] + j
        own = row.own[j]
        if own < 0:
            continue
        lo[j], hi[j] = own, own + 1
        for k in range(own):
            if row.price[start + k] <= cap and row.price[start + k] < np.inf:
                lo[j] = k
                break
        last = offsets[j + 1] - offsets[j]
        for back in range(last - own):
            k = last - back
            if row.price[start + k] <= cap and row.price[start + k] < np.inf:
                hi[j] = k + 1
                break
    return Domain(reach < np.inf, lo, hi, np.array([0.0, 0.0, np.inf]))


@kernel
def _cheapest(row, start, lo, hi):
    """The lowest price among cells lo <= k < hi."""
    least = np.inf
    for k in range(lo, hi):
        least = min(least, row.price[start + k])
    return least


@kernel
def _leaf_cost(boxes, offsets, row, domain, leaf):
    """What the leaf costs on top of the forced cells; inf if it misses the domain."""
    extra = 0.0
    for e in range(boxes.entry_offsets[leaf], boxes.entry_offsets[leaf + 1]):
        j = boxes.feature[e]
        own = row.own[j]
        if own < 0:
            continue
        lo, hi = max(boxes.lo[e], domain.lo[j]), min(boxes.hi[e], domain.hi[j])
        if lo >= hi:
            return np.inf
        if lo <= own < hi:
            continue
        start = offsets[j] + j
        extra += _cheapest(row, start, lo, hi)
        if not (domain.lo[j] <= own < domain.hi[j]):
            extra -= _cheapest(row, start, domain.lo[j], domain.hi[j])
    return extra


@kernel
def _force(boxes, row, domain, leaf):
    """Restrict the domain to a leaf's box; whether it shrank."""
    shrank = False
    for e in range(boxes.entry_offsets[leaf], boxes.entry_offsets[leaf + 1]):
        j = boxes.feature[e]
        if row.own[j] < 0:
            continue
        if boxes.lo[e] > domain.lo[j]:
            domain.lo[j] = boxes.lo[e]
            shrank = True
        if boxes.hi[e] < domain.hi[j]:
            domain.hi[j] = boxes.hi[e]
            shrank = True
    return shrank


@kernel
def shrink(boxes, offsets, row, gain, domain, target, cap, reshaped):
    """Drop what no flip (loss >= target, cost <= cap) can contain; whether a flip is still possible.

    `target` and `cap` must already have the room for rounding that the caller wants; `reshaped`: the domain is
    smaller than the cap alone makes it.
    """
    n_trees = len(boxes.tree_offsets) - 1
    least_cap = min(cap, 1.7e308)  # a cap of inf does not allow what is never allowed
    best = np.zeros(n_trees)
    count = np.zeros(n_trees, dtype=np.int64)
    alive = domain.alive
    again = True
    while again:
        again = False
        total = 0.0
        for t in range(n_trees):
            best[t] = -np.inf
            count[t] = 0
            for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
                if alive[leaf]:
                    best[t] = max(best[t], gain[leaf])
                    count[t] += 1
            total += best[t]
        if not total >= target:
            return False
        for t in range(n_trees):
            if count[t] < 2:
                continue
            for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
                if not alive[leaf]:
                    continue
                short = target - (total - best[t] + gain[leaf])
                if short > 0.0:
                    domain.total[2] = min(domain.total[2], short)
                if short > 0.0 or (
                    reshaped and not _leaf_cost(boxes, offsets, row, domain, leaf) + domain.total[1] <= least_cap
                ):
                    alive[leaf] = False
                    again = True
        for t in range(n_trees):
            only = -1
            for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
                if alive[leaf]:
                    only = leaf if only == -1 else -2
            if only >= 0 and _force(boxes, row, domain, only):
                again = True
                reshaped = True
        if reshaped and not _forced_cost(offsets, row, domain, least_cap):
            return False
    return _settle(boxes, gain, domain)


@kernel
def _forced_cost(offsets, row, domain, cap):
    """Sum the cost of the features that must move; whether it is within the cap."""
    cost = 0.0
    for j in range(len(row.own)):
        own = row.own[j]
        if own >= 0 and not (domain.lo[j] <= own < domain.hi[j]):
            if domain.lo[j] >= domain.hi[j]:
                return False
            cost += _cheapest(row, offsets[j] + j, domain.lo[j], domain.hi[j])
    domain.total[1] = cost
    return cost <= cap


@kernel
def _settle(boxes, gain, domain):
    """Sum the loss of the trees that have one leaf left."""
    domain.total[0] = 0.0
    for t in range(len(boxes.tree_offsets) - 1):
        count, loss = 0, 0.0
        for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
            if domain.alive[leaf]:
                count += 1
                loss = gain[leaf]
        if count == 0:
            return False
        if count == 1:
            domain.total[0] += loss
    return True


@kernel
def _mark_cuts(boxes, offsets, row, domain, kept, mark):
    """Mark the first cell of each interval that a kept leaf tells apart, inside the domain."""
    for t in kept:
        for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
            if not domain.alive[leaf]:
                continue
            for e in range(boxes.entry_offsets[leaf], boxes.entry_offsets[leaf + 1]):
                j = boxes.feature[e]
                if row.own[j] < 0:
                    continue
                start = offsets[j] + j
                if domain.lo[j] < boxes.lo[e] < domain.hi[j]:
                    mark[start + boxes.lo[e]] = True
                if domain.lo[j] < boxes.hi[e] < domain.hi[j]:
                    mark[start + boxes.hi[e]] = True


@kernel
def _merge_cells(offsets, row, domain, mark, priced):
    """Merge cells between marks: (features, group_start, price, first, cell), and each cell's group in `row` order."""
    d = len(row.own)
    group = np.zeros(len(row.price), dtype=np.int64)
    slot = np.full(d, -1, dtype=np.int64)
    feature = np.empty(d, dtype=np.int64)
    group_start = np.zeros(d + 1, dtype=np.int64)
    price = np.empty(len(row.price))
    first = np.empty(len(row.price), dtype=np.int64)
    cell = np.empty(len(row.price), dtype=np.int64)
    n, total = 0, 0
    for j in range(d):
        start = offsets[j] + j
        several = False
        for k in range(domain.lo[j] + 1, domain.hi[j]):
            several = several or mark[start + k]
        if not several:
            continue
        slot[j] = n
        feature[n] = j
        local = -1
        for k in range(domain.lo[j], domain.hi[j]):
            if local < 0 or mark[start + k]:
                local += 1
                price[total + local] = np.inf
                first[total + local] = cell[total + local] = k
            group[start + k] = local
            if row.price[start + k] < price[total + local]:
                price[total + local] = row.price[start + k]
                cell[total + local] = k
        total += local + 1
        n += 1
        group_start[n] = total
    if not priced:
        for g in range(total):
            price[g] = 0.0 if price[g] < np.inf else np.inf
    return slot, group, feature[:n], group_start[: n + 1], price[:total], first[:total], cell[:total]


@kernel
def _cost_outside(offsets, row, domain, slot):
    """What the features cost that must move and have no choice left."""
    cost = 0.0
    for j in range(len(slot)):
        if slot[j] < 0 and row.own[j] >= 0 and not (domain.lo[j] <= row.own[j] < domain.hi[j]):
            cost += _cheapest(row, offsets[j] + j, domain.lo[j], domain.hi[j])
    return cost


@kernel
def _span(boxes, offsets, domain, group, group_start, e, slot):
    """An entry's groups (lo, hi), and whether it leaves any group out."""
    j = boxes.feature[e]
    start = offsets[j] + j
    lo = group[start + max(boxes.lo[e], domain.lo[j])]
    hi = group[start + min(boxes.hi[e], domain.hi[j]) - 1] + 1
    return lo, hi, lo > 0 or hi < group_start[slot + 1] - group_start[slot]


@kernel
def build(boxes, offsets, row, gain, domain, priced):
    """The instance of a shrunken domain. `priced` False: every allowed move is free (p = inf)."""
    # (at the end domain.total[1] is the cost of the features outside the instance)
    alive = domain.alive
    kept = _trees_with_choice(boxes, alive)
    mark = np.zeros(len(row.price), dtype=np.bool_)
    _mark_cuts(boxes, offsets, row, domain, kept, mark)
    slot, group, feature, group_start, price, first, cell = _merge_cells(offsets, row, domain, mark, priced)
    domain.total[1] = _cost_outside(offsets, row, domain, slot) if priced else 0.0
    n_leaves, n_entries = 0, 0
    for t in kept:
        for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
            if alive[leaf]:
                n_leaves += 1
                n_entries += boxes.entry_offsets[leaf + 1] - boxes.entry_offsets[leaf]
    tree_start = np.zeros(len(kept) + 1, dtype=np.int64)
    leaves, gains = np.empty(n_leaves, dtype=np.int64), np.empty(n_leaves)
    entry_start = np.zeros(n_leaves + 1, dtype=np.int64)
    entry_slot = np.empty(n_entries, dtype=np.int64)
    entry_lo = np.empty(n_entries, dtype=np.int64)
    entry_hi = np.empty(n_entries, dtype=np.int64)
    leaf_number, n = 0, 0
    for i in range(len(kept)):
        t = kept[i]
        for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
            if not alive[leaf]:
                continue
            leaves[leaf_number], gains[leaf_number] = leaf, gain[leaf]
            for e in range(boxes.entry_offsets[leaf], boxes.entry_offsets[leaf + 1]):
                f = slot[boxes.feature[e]]
                if f < 0 or row.own[boxes.feature[e]] < 0:
                    continue
                lo, hi, cuts = _span(boxes, offsets, domain, group, group_start, e, f)
                if cuts:
                    entry_slot[n], entry_lo[n], entry_hi[n] = f, lo, hi
                    n += 1
            leaf_number += 1
            entry_start[leaf_number] = n
        tree_start[i + 1] = leaf_number
    edges = _edges(tree_start, entry_start, entry_slot[:n], len(feature), group_start)
    entry_edge, edge_start, edge_tree, edge_feature, tree_edge_start, tree_edges, delta_start = edges
    link_start, link = _links(tree_start, entry_start, entry_edge, edge_tree)
    return Instance(
        kept, tree_start, leaves, gains, entry_start, entry_edge, entry_lo[:n], entry_hi[:n],
        feature, edge_start, edge_tree, edge_feature, tree_edge_start, tree_edges,
        group_start, price, first, cell, delta_start, link_start, link,
    )  # fmt: skip


@kernel
def _trees_with_choice(boxes, alive):
    kept = np.empty(len(boxes.tree_offsets) - 1, dtype=np.int64)
    n = 0
    for t in range(len(kept)):
        count = 0
        for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
            count += alive[leaf]
        if count > 1:
            kept[n] = t
            n += 1
    return kept[:n]


@kernel
def _edges(tree_start, entry_start, entry_slot, n_features, group_start):
    """Number the (tree, feature) pairs, feature by feature."""
    n_trees = len(tree_start) - 1
    seen = np.full(n_features, -1, dtype=np.int64)
    edge_start = np.zeros(n_features + 1, dtype=np.int64)
    tree_edge_start = np.zeros(n_trees + 1, dtype=np.int64)
    for t in range(n_trees):
        tree_edge_start[t + 1] = tree_edge_start[t]
        for e in range(entry_start[tree_start[t]], entry_start[tree_start[t + 1]]):
            f = entry_slot[e]
            if seen[f] != t:
                seen[f] = t
                edge_start[f + 1] += 1
                tree_edge_start[t + 1] += 1
    for f in range(n_features):
        edge_start[f + 1] += edge_start[f]
    n_edges = edge_start[n_features]
    edge_tree = np.empty(n_edges, dtype=np.int64)
    edge_feature = np.empty(n_edges, dtype=np.int64)
    tree_edges = np.empty(n_edges, dtype=np.int64)
    entry_edge = np.empty(len(entry_slot), dtype=np.int64)
    fill = edge_start[:-1].copy()
    current = np.zeros(n_features, dtype=np.int64)
    seen[:] = -1
    n = 0
    for t in range(n_trees):
        for e in range(entry_start[tree_start[t]], entry_start[tree_start[t + 1]]):
            f = entry_slot[e]
            if seen[f] != t:
                seen[f] = t
                current[f] = fill[f]
                edge_tree[fill[f]] = t
                edge_feature[fill[f]] = f
                tree_edges[n] = fill[f]
                fill[f] += 1
                n += 1
            entry_edge[e] = current[f]
    delta_start = np.zeros(n_edges + 1, dtype=np.int64)
    for e in range(n_edges):
        f = edge_feature[e]
        delta_start[e + 1] = delta_start[e] + group_start[f + 1] - group_start[f]
    return entry_edge, edge_start, edge_tree, edge_feature, tree_edge_start, tree_edges, delta_start


@kernel
def _links(tree_start, entry_start, entry_edge, edge_tree):
    """For each edge and each leaf of its tree: the leaf's entry on that edge, or -1."""
    n_edges = len(edge_tree)
    link_start = np.zeros(n_edges + 1, dtype=np.int64)
    for e in range(n_edges):
        t = edge_tree[e]
        link_start[e + 1] = link_start[e] + tree_start[t + 1] - tree_start[t]
    link = np.full(link_start[n_edges], -1, dtype=np.int64)
    for t in range(len(tree_start) - 1):
        for leaf in range(tree_start[t], tree_start[t + 1]):
            for i in range(entry_start[leaf], entry_start[leaf + 1]):
                link[link_start[entry_edge[i]] + leaf - tree_start[t]] = i
    return link_start, link


@kernel
def cells_of(row, offsets, domain, instance, groups, cells):
    """Each feature's cell: the instance's group, the cheapest that is left where a move is forced, else the own."""
    for j in range(len(cells)):
        cells[j] = row.own[j]
        if row.own[j] >= 0 and not domain.lo[j] <= row.own[j] < domain.hi[j]:
            start = offsets[j] + j
            cells[j] = domain.lo[j]
            for k in range(domain.lo[j] + 1, domain.hi[j]):
                if row.price[start + k] < row.price[start + cells[j]]:
                    cells[j] = k
    for f in range(len(instance.feature)):
        cells[instance.feature[f]] = instance.cell[instance.group_start[f] + groups[f]]
