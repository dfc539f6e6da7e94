"""Boosting rounds of robust trees: grow, bound, stop.

Each round grows a tree on the rows' margin bounds (paper section 4.2: the sum over the earlier trees of each
one's worst case, kept up to date tree by tree), scales it by the learning rate and lowers the bounds by its
worst case. Validation rows carry the same bounds: where the bound is positive, the row is proved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .tree_candidates import Candidates
from .tree_growth import GrownTree, GrowthOptions, Rows, grow_tree
from .tree_losses import best_constant, loss_values
from .tree_reach import Ball


@dataclass(frozen=True)
class RoundOptions:
    """How trees follow one another."""

    ball: Ball
    growth: GrowthOptions
    learning_rate: float
    subsample: float
    max_features: float
    patience: int | None  # rounds without a better validation error before stopping


@dataclass
class Bounded:
    """Rows, and lower bounds of ``side * score`` over the ball."""

    columns: np.ndarray  # float64 (n_features, n)
    side: np.ndarray
    weight: np.ndarray
    margins: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, side: np.ndarray, weight: np.ndarray | None = None) -> Bounded:
        weight = np.ones(len(side)) if weight is None else weight
        return cls(np.ascontiguousarray(X.T), side, weight, np.zeros(len(side)))

    def restart(self, base: float, trees: list[GrownTree], ball: Ball) -> None:
        """The bounds of an ensemble, from scratch."""
        self.margins = self.side * base
        for tree in trees:
            self.add(tree, ball)

    def add(self, tree: GrownTree, ball: Ball) -> None:
        """Lower the bounds by a further tree's worst case."""
        self.margins = self.margins + tree.worst(self.columns, self.side, ball)

    def unproved(self) -> float:
        """The share of rows (by weight) whose bound does not prove them."""
        return float(np.average(self.margins <= 0, weights=self.weight))


@dataclass
class Boosted:
    """An ensemble as it grows."""

    base: float
    trees: list[GrownTree] = field(default_factory=list)
    history: dict[str, list] = field(default_factory=dict)

    def copy(self) -> Boosted:
        """A copy that may grow without changing this one."""
        return Boosted(self.base, list(self.trees), {name: list(rounds) for name, rounds in self.history.items()})

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


def chosen_rows(train: Bounded, candidates: Candidates, options: RoundOptions, rng) -> Rows:
    """The rows and features of one tree."""
    features = np.flatnonzero(np.diff(candidates.offsets))
    if options.max_features < 1.0 and len(features):
        count = max(1, round(options.max_features * len(features)))
        features = np.sort(rng.choice(features, count, replace=False))
    if options.subsample >= 1.0:
        return Rows(train.columns, train.side, train.weight, train.margins, candidates, features)
    count = max(1, round(options.subsample * len(train.side)))
    rows = np.sort(rng.choice(len(train.side), count, replace=False))
    return Rows(
        np.ascontiguousarray(train.columns[:, rows]),
        train.side[rows],
        train.weight[rows],
        train.margins[rows],
        candidates,
        features,
    )


def one_round(model: Boosted, train: Bounded, candidates: Candidates, options: RoundOptions, rng) -> GrownTree:
    """Grow one more tree, scaled; the caller's bounds are brought up to date."""
    tree = grow_tree(chosen_rows(train, candidates, options, rng), options.ball, options.growth)
    tree.value = tree.value * options.learning_rate
    model.trees.append(tree)
    train.add(tree, options.ball)
    return tree


def boost(
    model: Boosted,
    rounds: int,
    train: Bounded,
    valid: Bounded | None,
    candidates: Candidates,
    options: RoundOptions,
    rng,
    tell,
) -> Boosted:
    """Run `rounds` rounds from where `model` stands; `tell(done, rounds)` hears of each."""
    best_error, best_count = np.inf, len(model.trees)
    for done in range(1, rounds + 1):
        tree = one_round(model, train, candidates, options, rng)
        if valid is not None:
            valid.add(tree, options.ball)
        model.record(train, valid, options.growth.rules.loss)
        tell(done, rounds)
        if valid is None or options.patience is None:
            continue
        error = model.history["val_bound_error"][-1]
        if error < best_error:
            best_error, best_count = error, len(model.trees)
        elif len(model.trees) - best_count >= options.patience:
            break
    if valid is not None and options.patience is not None:
        del model.trees[best_count:]
    return model
