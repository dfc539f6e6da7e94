"""Grow one robust tree: node after node, each the best split of the rows that can be brought to it.

Paper section 4.2. Each row carries what its crossings down the path have cost (the exact distance to the
node's box); a node sees every row that can reach it within eps, and splits by the robust loss of
`tree_split`. The radius may rise with the depth (the paper's eps schedule); leaf values are fitted at the full
radius. At p = inf nothing is spent: Andriushchenko & Hein's robust trees. Cost a node: rows x features x log(bins).
"""

from __future__ import annotations

import heapq
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .tree_candidates import Candidates
from .tree_losses import best_constant, best_pair, statistics
from .tree_reach import LIMIT, Ball, Boxes, allowances, side_costs, worst_values
from .tree_split import Node, Rules, best_cut, pair_values, scan_features


@dataclass(frozen=True)
class GrowthOptions:
    """How far a tree may grow."""

    max_depth: int | None
    max_leaf_nodes: int | None
    min_gain: float
    schedule: int  # levels over which the radius rises to its full size
    reuse: bool  # whether a path may read a feature twice
    rules: Rules


class Rows(NamedTuple):
    """The training rows of one tree."""

    columns: np.ndarray  # float64 (n_features, n)
    side: np.ndarray  # -1.0 or +1.0
    weight: np.ndarray
    margins: np.ndarray  # lower bounds of side * score over the trees so far
    candidates: Candidates
    features: np.ndarray  # int64: the features that this tree may read
    pool: Executor | None = None  # threads that share the features of large nodes


@dataclass
class GrownTree:
    """One tree as plain arrays, and its leaves as boxes."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    leaves: np.ndarray  # int64: the leaves' nodes
    boxes: Boxes  # of the leaves, in the same order

    def worst(self, columns: np.ndarray, side: np.ndarray, ball: Ball) -> np.ndarray:
        """Per row the least ``side * value`` that the ball allows."""
        values = np.ascontiguousarray(self.value[self.leaves])
        return worst_values(columns, side, self.boxes, values, float(ball.norm), float(ball.eps))

    def as_dict(self) -> dict:
        """The form that `TreeEnsemble.from_trees` takes."""
        return {name: getattr(self, name).tolist() for name in ("feature", "threshold", "left", "right", "value")}


@dataclass
class Place:
    """A node while the tree grows."""

    number: int
    path: dict[int, tuple[float, float]]
    depth: int


@dataclass
class Split:
    """The best split of a node."""

    feature: int
    threshold: float
    gain: float


@dataclass
class Draft:
    """The tree while it grows."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def add(self, path: dict[int, tuple[float, float]], depth: int, value: float) -> Place:
        place = Place(len(self.feature), path, depth)
        self.feature.append(-1)
        self.threshold.append(0.0)
        self.left.append(-1)
        self.right.append(-1)
        self.value.append(value)
        self.places.append(place)
        return place


def path_costs(columns: np.ndarray, path: dict[int, tuple[float, float]], ball: Ball):
    """Costs (k, n) of the k sides of a box, and what they cost together (n,)."""
    if not path:
        return np.zeros((0, columns.shape[1])), np.zeros(columns.shape[1])
    costs = np.array([side_costs(columns[j], low, high, *map(float, ball)) for j, (low, high) in path.items()])
    return costs, (costs.max(axis=0) if ball.norm == np.inf else costs.sum(axis=0))


def spent_elsewhere(costs: np.ndarray, k: int, ball: Ball) -> np.ndarray:
    """What a box costs without its side k."""
    rest = np.delete(costs, k, axis=0)
    if not len(rest):
        return np.zeros(costs.shape[1])
    return rest.max(axis=0) if ball.norm == np.inf else rest.sum(axis=0)


def radius_at(ball: Ball, depth: int, schedule: int) -> Ball:
    """The ball of a level while the radius rises."""
    share = min(1.0, (depth + 1) / schedule)
    return Ball(ball.norm, ball.eps * share)


def node_statistics(rows: Rows, place_path, ball: Ball, rules: Rules):
    """The rows that reach a box: (Node, their side costs)."""
    costs, total = path_costs(rows.columns, place_path, ball)
    members = np.flatnonzero(total <= LIMIT)
    stats = statistics(rows.margins[members], rows.side[members], rows.weight[members], rules.loss)
    return Node(members, stats, allowances(total[members], ball)), costs[:, members]


# below so many values a node is scanned sooner than threads are woken
_SHARED_WORK = 200_000
_PARTS = 16


def scan(rows: Rows, node: Node, features: np.ndarray, rules: Rules):
    """`scan_features`, in parts where there are threads to share them: each feature's result stands alone."""
    if rows.pool is None or len(node.members) * len(features) < _SHARED_WORK:
        return scan_features(rows.columns, node, rows.candidates, features, rules)
    parts = np.array_split(features, _PARTS)
    found = rows.pool.map(lambda part: scan_features(rows.columns, node, rows.candidates, part, rules), parts)
    losses, positions = zip(*found, strict=True)
    return np.concatenate(losses), np.concatenate(positions)


def find_split(rows: Rows, place: Place, ball: Ball, options: GrowthOptions) -> Split | None:
    """The candidate of least robust loss at a node, or None where none gains enough."""
    rules = options.rules
    node, costs = node_statistics(rows, place.path, ball, rules)
    if len(node.members) == 0:
        return None
    fresh = rows.features[~np.isin(rows.features, list(place.path))]
    losses, positions = scan(rows, node, fresh, rules)
    found = [(losses[k], int(fresh[k]), int(positions[k])) for k in np.argsort(losses, kind="stable")[:1]]
    if options.reuse:
        for k, (j, (low, high)) in enumerate(place.path.items()):
            if j not in rows.features:
                continue
            begin, end = rows.candidates.offsets[j], rows.candidates.offsets[j + 1]
            cuts = rows.candidates.cuts[begin:end]
            start, stop = np.searchsorted(cuts, low, "right"), np.searchsorted(cuts, high, "left")
            free = allowances(spent_elsewhere(costs, k, ball), ball)
            loss, position = best_cut(
                rows.columns[j], node, free, rows.candidates.cuts, begin + start, begin + stop, rules
            )
            found.append((loss, j, position))
    loss, j, position = min(found, default=(np.inf, -1, -1))
    if position < 0:
        return None
    nothing = np.zeros(node.stats.shape[1])
    constant = pair_values(node.stats.sum(axis=0), nothing, nothing, rules.loss, rules.cap, rules.l2)[0]
    gain = constant - loss
    if not gain > options.min_gain + 1e-12 * abs(constant):
        return None
    return Split(j, float(rows.candidates.cuts[position]), float(gain))


def split_values(rows: Rows, path, split: Split, ball: Ball, rules: Rules) -> tuple[float, float]:
    """(w_l, w_r) of a split at the full radius, exact for either loss."""
    _, total = path_costs(rows.columns, path, ball)
    members = np.flatnonzero(total <= LIMIT)
    if not len(members):
        return 0.0, 0.0
    reach = np.column_stack(
        [path_costs(rows.columns[:, members], half, ball)[1] <= LIMIT for half in halves(path, split)]
    )
    return best_pair(
        rows.margins[members],
        rows.side[members],
        rows.weight[members],
        reach,
        rules.loss,
        rules.cap,
        rules.l2,
    )


def halves(path, split: Split):
    """The two boxes of a split."""
    low, high = path.get(split.feature, (-np.inf, np.inf))
    return {**path, split.feature: (low, split.threshold)}, {**path, split.feature: (split.threshold, high)}


def grow_tree(rows: Rows, ball: Ball, options: GrowthOptions) -> GrownTree:
    """Grow one tree on rows whose margins the earlier trees leave at `rows.margins`."""
    rules = options.rules
    draft = Draft()
    start = best_constant(rows.margins, rows.side, rows.weight, rules.loss, rules.cap, rules.l2)
    queue: list[tuple[float, int, Split]] = []

    def consider(place: Place) -> None:
        if options.max_depth is not None and place.depth >= options.max_depth:
            return
        split = find_split(rows, place, radius_at(ball, place.depth, options.schedule), options)
        if split is not None:
            heapq.heappush(queue, (-split.gain, place.number, split))

    consider(draft.add({}, 0, start))
    leaves = 1
    while queue and (options.max_leaf_nodes is None or leaves < options.max_leaf_nodes):
        _, number, split = heapq.heappop(queue)
        place = draft.places[number]
        values = split_values(rows, place.path, split, ball, rules)
        children = [
            draft.add(path, place.depth + 1, value)
            for path, value in zip(halves(place.path, split), values, strict=True)
        ]
        draft.feature[number], draft.threshold[number] = split.feature, split.threshold
        draft.left[number], draft.right[number] = children[0].number, children[1].number
        draft.value[number] = 0.0
        leaves += 1
        for child in children:
            consider(child)
    return finish(draft)


def finish(draft: Draft) -> GrownTree:
    """The arrays of a finished tree."""
    feature = np.array(draft.feature)
    leaves = np.flatnonzero(feature < 0)
    paths = [draft.places[number].path for number in leaves]
    return GrownTree(
        feature=feature,
        threshold=np.array(draft.threshold),
        left=np.array(draft.left),
        right=np.array(draft.right),
        value=np.array(draft.value),
        leaves=leaves,
        boxes=boxes_of(paths),
    )


def boxes_of(paths: list[dict[int, tuple[float, float]]]) -> Boxes:
    """Boxes from paths."""
    sizes = [len(path) for path in paths]
    sides = [(j, low, high) for path in paths for j, (low, high) in path.items()]
    return Boxes(
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        feature=np.array([side[0] for side in sides], dtype=np.int64),
        low=np.array([side[1] for side in sides], dtype=np.float64),
        high=np.array([side[2] for side in sides], dtype=np.float64),
    )
