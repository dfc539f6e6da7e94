"""Boosting rounds of robust trees: grow, bound, correct, stop.

Each round grows a tree on the rows' margin bounds (paper section 4.2: the sum over the earlier trees of each
one's worst case, kept up to date tree by tree), scales it by the learning rate and lowers the bounds by its
worst case. Validation rows carry the same bounds: where the bound is positive, the row is proved. With
correction, all leaf values are refitted every few rounds under the bound of one shared budget (`tree_shared`).
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from .tree_candidates import Candidates
from .tree_growth import GrownTree, GrowthOptions, Rows, grow_tree
from .tree_losses import best_constant, loss_values
from .tree_prune import prune
from .tree_reach import Ball
from .tree_refit import RefitOptions, bounds, refit
from .tree_shared import join_leaves, reach_of


@dataclass(frozen=True)
class RoundOptions:
    """How trees follow one another."""

    ball: Ball
    growth_ball: Ball  # the ball in which trees are grown
    growth: GrowthOptions
    learning_rate: float
    subsample: float
    max_features: float
    prune: bool
    max_readers: int | None  # how many trees may read a feature
    patience: int | None  # rounds without a better validation error before stopping
    correct_every: int | None  # rounds between refits of all leaf values
    refit: RefitOptions
    pool: Executor | None = None  # threads that share the features of a node


@dataclass
class Bounded:
    """Rows, and lower bounds of ``side * score`` over a ball."""

    columns: np.ndarray  # float64 (n_features, n)
    side: np.ndarray
    weight: np.ndarray
    ball: Ball
    margins: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, side: np.ndarray, ball: Ball, weight: np.ndarray | None = None) -> Bounded:
        weight = np.ones(len(side)) if weight is None else weight
        return cls(np.ascontiguousarray(X.T), side, weight, ball, np.zeros(len(side)))

    def restart(self, base: float, trees: list[GrownTree], shared: bool = False) -> None:
        """The bounds of an ensemble, from scratch: tree by tree, or under one shared budget."""
        self.margins = self.side * base
        if shared and trees:
            reach = reach_of(self.columns, join_leaves([tree.boxes for tree in trees]), self.ball)
            self.margins = bounds(reach, self.side, leaf_values(trees), base)
            return
        for tree in trees:
            self.add(tree)

    def add(self, tree: GrownTree) -> None:
        """Lower the bounds by a further tree's worst case."""
        self.margins = self.margins + tree.worst(self.columns, self.side, self.ball)

    def unproved(self) -> float:
        """The share of rows (by weight) whose bound does not prove them."""
        return float(np.average(self.margins <= 0, weights=self.weight))


def leaf_values(trees: list[GrownTree]) -> np.ndarray:
    """The values of all leaves, tree after tree."""
    return np.concatenate([tree.value[tree.leaves] for tree in trees])


@dataclass
class Boosted:
    """An ensemble as it grows."""

    base: float
    trees: list[GrownTree] = field(default_factory=list)
    given: int = 0  # how many of the trees are the initial model's
    history: dict[str, list] = field(default_factory=dict)

    def copy(self) -> Boosted:
        """A copy that may grow without changing this one."""
        history = {name: list(rounds) for name, rounds in self.history.items()}
        return Boosted(self.base, list(self.trees), self.given, history)

    def record(self, train: Bounded, valid: Bounded | None, loss: int) -> None:
        """Add one round's figures to the history."""
        figures = {
            "loss": float(np.average(loss_values(train.margins, loss), weights=train.weight)),
            "train_bound_error": train.unproved(),
        }
        if valid is not None:
            figures["val_bound_error"] = valid.unproved()
        for name, figure in figures.items():
            self.history.setdefault(name, []).append(figure)


def start_base(side: np.ndarray, weight: np.ndarray, options: RoundOptions) -> float:
    """The best constant score."""
    rules = options.growth.rules
    return best_constant(np.zeros(len(side)), side, weight, rules.loss, rules.cap, 0.0)


def chosen_rows(model: Boosted, train: Bounded, candidates: Candidates, options: RoundOptions, rng) -> Rows:
    """The rows and features of one tree."""
    open_to_read = np.diff(candidates.offsets) > 0
    if options.max_readers is not None:
        readers = np.zeros(len(open_to_read), dtype=np.int64)
        for tree in model.trees:
            readers[np.unique(tree.boxes.feature)] += 1
        open_to_read &= readers < options.max_readers
    features = np.flatnonzero(open_to_read)
    if options.max_features < 1.0 and len(features):
        count = max(1, round(options.max_features * len(features)))
        features = np.sort(rng.choice(features, count, replace=False))
    if options.subsample >= 1.0:
        return Rows(train.columns, train.side, train.weight, train.margins, candidates, features, options.pool)
    count = max(1, round(options.subsample * len(train.side)))
    rows = np.sort(rng.choice(len(train.side), count, replace=False))
    return Rows(
        np.ascontiguousarray(train.columns[:, rows]),
        train.side[rows],
        train.weight[rows],
        train.margins[rows],
        candidates,
        features,
        options.pool,
    )


def one_round(model: Boosted, rows: list[Bounded], candidates: Candidates, options: RoundOptions, rng) -> None:
    """Grow one more tree on the first of `rows`, scaled; all bounds are brought up to date."""
    given = chosen_rows(model, rows[0], candidates, options, rng)
    tree = grow_tree(given, options.growth_ball, options.growth)
    if options.prune:
        tree = prune(tree, given, options.growth_ball, options.growth.rules)
    tree.value = tree.value * options.learning_rate
    model.trees.append(tree)
    for each in rows:
        each.add(tree)


def correct(model: Boosted, full: Bounded, rows: list[Bounded], options: RoundOptions, rng) -> None:
    """Refit all leaf values and the base on the rows `full`; all bounds become those of a shared budget."""
    leaves = join_leaves([tree.boxes for tree in model.trees])
    reach = reach_of(full.columns, leaves, full.ball)
    power = full.ball.norm if 0 < full.ball.norm < np.inf else 0.0
    values, model.base = refit(
        reach, (full.side, full.weight), (leaf_values(model.trees), model.base), options.refit, power, rng
    )
    for t, tree in enumerate(model.trees):
        # a new tree: earlier copies of the model keep theirs
        value = tree.value.copy()
        value[tree.leaves] = values[leaves.offsets[t] : leaves.offsets[t + 1]]
        model.trees[t] = replace(tree, value=value)
    for each in rows:
        each.restart(model.base, model.trees, shared=True)


def boost(
    model: Boosted,
    rounds: int,
    train: list[Bounded],
    valid: Bounded | None,
    candidates: Candidates,
    options: RoundOptions,
    rng,
    tell,
) -> Boosted:
    """Run `rounds` rounds from where `model` stands; `tell(done, rounds)` hears of each.

    The first of `train` carries the bounds that trees are grown on, the last those of the full ball.
    """
    rows = train + ([] if valid is None else [valid])
    best_error, best = np.inf, model.copy()
    for done in range(1, rounds + 1):
        one_round(model, rows, candidates, options, rng)
        if options.correct_every is not None and (done % options.correct_every == 0 or done == rounds):
            correct(model, train[-1], rows, options, rng)
        model.record(train[-1], valid, options.growth.rules.loss)
        tell(done, rounds)
        if valid is None or options.patience is None:
            continue
        error = model.history["val_bound_error"][-1]
        if error < best_error:
            best_error, best = error, model.copy()
        elif len(model.trees) - len(best.trees) >= options.patience:
            break
    if valid is not None and options.patience is not None:
        best.history = model.history
        return best
    return model
