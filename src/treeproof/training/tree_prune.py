"""Prune leaves that only help the adversary.

Growth fits each split alone, and counts a row at every leaf that it can be brought to. The whole tree's robust
loss counts each row once, at its worst leaf. Merging a pair of sibling leaves takes a choice from the adversary
(and some fit from the model): pairs are merged, best first, while the tree's robust loss does not rise. At eps = 0
nothing that gains is merged. Cost a merge: rows x leaves x pairs.
"""

from __future__ import annotations

import numpy as np

from .tree_growth import GrownTree, Rows, boxes_of
from .tree_losses import best_constant, loss_values
from .tree_reach import Ball, reachable
from .tree_split import Rules


def prune(tree: GrownTree, rows: Rows, ball: Ball, rules: Rules) -> GrownTree:
    """The tree with sibling leaves merged while the robust loss of the rows does not rise."""
    reach = reachable(rows.columns, tree.boxes, float(ball.norm), float(ball.eps))
    columns = {int(leaf): reach[:, k] for k, leaf in enumerate(tree.leaves)}
    values = {int(leaf): float(tree.value[leaf]) for leaf in tree.leaves}
    parents = np.flatnonzero(tree.feature >= 0)
    current = _robust_loss(rows, columns, values, rules)
    while True:
        best = None
        for node in parents:
            pair = int(tree.left[node]), int(tree.right[node])
            if pair[0] not in values or pair[1] not in values:
                continue
            merged, value = _merged(rows, columns, pair, rules)
            trial_columns = {k: column for k, column in columns.items() if k not in pair} | {int(node): merged}
            trial_values = {k: old for k, old in values.items() if k not in pair} | {int(node): value}
            loss = _robust_loss(rows, trial_columns, trial_values, rules)
            if best is None or loss < best[0]:
                best = (loss, trial_columns, trial_values)
        if best is None or best[0] > current:
            return _rebuilt(tree, values)
        current, columns, values = best


def _merged(rows: Rows, columns, pair, rules: Rules):
    """The rows that reach a merged leaf, and its best value for them."""
    reach = columns[pair[0]] | columns[pair[1]]
    value = best_constant(rows.margins[reach], rows.side[reach], rows.weight[reach], rules.loss, rules.cap, rules.l2)
    return reach, value


def _robust_loss(rows: Rows, columns, values, rules: Rules) -> float:
    """The tree's robust loss, each row at its worst leaf."""
    worst = np.full(len(rows.side), np.inf)
    for leaf, reach in columns.items():
        worst = np.minimum(worst, np.where(reach, rows.side * values[leaf], np.inf))
    penalty = 0.5 * rules.l2 * sum(value * value for value in values.values())
    return float(rows.weight @ loss_values(rows.margins + worst, rules.loss)) + penalty


def _rebuilt(tree: GrownTree, values: dict[int, float]) -> GrownTree:
    """The tree whose leaves are the nodes of `values`."""
    columns: dict[str, list] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    leaves, paths = [], []
    todo: list[tuple[int, int, str, dict[int, tuple[float, float]]]] = [(0, -1, "", {})]
    while todo:
        node, parent, child, path = todo.pop()
        number = len(columns["feature"])
        if parent >= 0:
            columns[child][parent] = number
        is_leaf = node in values
        j, cut = (-1, 0.0) if is_leaf else (int(tree.feature[node]), float(tree.threshold[node]))
        for name, entry in (("feature", j), ("threshold", cut), ("left", -1), ("right", -1)):
            columns[name].append(entry)
        columns["value"].append(values.get(node, 0.0))
        if is_leaf:
            leaves.append(number)
            paths.append(path)
            continue
        low, high = path.get(j, (-np.inf, np.inf))
        todo.append((int(tree.right[node]), number, "right", {**path, j: (cut, high)}))
        todo.append((int(tree.left[node]), number, "left", {**path, j: (low, cut)}))
    return GrownTree(
        **{name: np.array(column) for name, column in columns.items()},
        leaves=np.array(leaves),
        boxes=boxes_of(paths),
    )
