"""The paper's tree training tables (l1: table 5, l2: table 7) and Andriushchenko & Hein's l_inf targets.

    python benchmarks/tree_training.py                      # every row and recipe
    python benchmarks/tree_training.py --rows 26-l1 15-l1   # some rows
    python benchmarks/tree_training.py --test-rows 200      # certify fewer test rows
    python benchmarks/tree_training.py --milp-rows 50       # a second opinion on the first 50 test rows

Each row reports, in per cent of the test rows: the clean error, the error of the training bound (sound, so at or
above the verified one), what an attack broke, the verified error by ``treeproof.certify`` (rows undecided in the
time limit count as unverified), and the CPU seconds of training. Recipes:

- paper: section 4.2 as published, each feature once a path, radius rising over the levels;
- ours: the paper's number of trees, depth and training rows; leaf values refitted at once under one shared budget
  (images: trees that share no feature) and polished;
- large: what the estimator gives when the number of trees is free, on all training rows;
- additive: the additive frontier, `AdditiveClassifier` with its defaults on all training rows, in the same run.

No option was chosen on test rows: they come from validation splits of the training rows (docs/training-trees.md).
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np

from treeproof import AdditiveClassifier, MethodError, Status, TreeBoostingClassifier, datasets
from treeproof.reproduce.trainers import corrective_trees
from treeproof.training.tree_reach import Ball
from treeproof.training.tree_rounds import Bounded

INF = float("inf")


@dataclass(frozen=True)
class Row:
    """One row of the tables: what is trained, and the published (clean, verified)."""

    dataset: str
    norm: float
    eps: float
    trees: int
    sample: int | None
    published: tuple[float | None, float]


ROWS = {
    "shoes-l1": Row("fashion-shoes", 1, 0.5, 5, 5000, (18.71, 65.18)),
    "bc-l1": Row("breast-cancer", 1, 1.0, 5, None, (9.56, 47.05)),
    "15-l1": Row("mnist-1-5", 1, 0.8, 5, 5000, (4.59, 36.23)),
    "26-l1": Row("mnist-2-6", 1, 0.6, 5, 5000, (7.64, 39.67)),
    "shoes-l2": Row("fashion-shoes", 2, 0.4, 3, 1000, (17.36, 68.23)),
    "bc-l2": Row("breast-cancer", 2, 0.8, 5, None, (12.50, 55.88)),
    "15-l2": Row("mnist-1-5", 2, 0.8, 3, 1000, (23.25, 50.54)),
    "26-l2": Row("mnist-2-6", 2, 0.8, 3, 1000, (19.80, 93.56)),
    "bc-linf": Row("breast-cancer", INF, 0.3, 20, None, (None, 6.6)),
    "15-linf": Row("mnist-1-5", INF, 0.3, 60, None, (None, 1.3)),
    "26-linf": Row("mnist-2-6", INF, 0.3, 120, None, (None, 3.8)),
}

RECIPES = ("paper", "ours", "large", "additive")
CORRECTED = {"loss": "logistic", "max_weight": 3.0, "corrective": True, "corrective_every": 10**6}


def recipe(kind: str, name: str) -> dict | None:
    """The estimator's options. Chosen on validation splits of the training rows."""
    row = ROWS[name]
    images = row.dataset != "breast-cancer"
    bins = {"max_bins": 16 if images else None, "random_state": 0}
    if kind == "additive":
        return {"random_state": 0}
    if row.norm == INF:
        boosting = {"n_estimators": row.trees, "learning_rate": 0.2, "max_features": 0.2 if images else 1.0} | bins
        boosting |= {} if images else {"cuts_per_gap": 3}
        corrected = CORRECTED | {"max_depth": 6, "max_weight": 1.0, "refit_rate": 0.005}
        return {"paper": boosting | {"max_depth": 4}, "ours": boosting | corrected, "large": None}[kind]
    same_size = {"n_estimators": row.trees, "max_depth": 5} | bins
    if kind == "paper":
        return same_size | {"eps_schedule": 3, "reuse_features": False}
    if kind == "large":
        wide = {"n_estimators": 100, "max_depth": 3, "learning_rate": 0.3, "max_readers": 1}
        return wide | CORRECTED | bins | {"growth_eps": row.eps / 3} if images else None
    return same_size | corrective_trees(row.dataset, row.norm, row.eps)


def sample(X, y, count: int | None, seed: int = 0):
    """The training rows of a table's row."""
    if count is None or count >= len(X):
        return X, y
    kept = np.random.default_rng(seed).permutation(len(X))[:count]
    return X[kept], y[kept]


def bound_error(model, X, side, row: Row) -> float:
    """The share of rows that the training bound of one shared budget does not prove."""
    state = model._fits[0].state
    bounded = Bounded.of(X, side, Ball(float(row.norm), float(row.eps)))
    bounded.restart(state.base, state.trees, shared=True)
    return 100 * bounded.unproved()


def second_opinion(model, found, X, y, seconds: float) -> dict[str, str]:
    """How many rows a MILP decides as `found` did; a contradiction stops the benchmark."""
    asked = model.certify(X, y, method="milp", time_limit=seconds)
    ours = found.status[: len(X)]
    both = (asked.status != Status.UNKNOWN) & (ours != Status.UNKNOWN)
    if np.any(asked.status[both] != ours[both]):
        raise SystemExit(f"milp contradicts the verifier on rows {np.flatnonzero(both & (asked.status != ours))}")
    return {"milp agrees": f"{both.sum()} of {len(X)}, {np.sum(asked.status == Status.UNKNOWN)} undecided by milp"}


def train(kind: str, name: str, data):
    """The fitted model of a recipe and its training seconds, or None where the row has no such recipe."""
    row, options = ROWS[name], recipe(kind, name)
    if options is None:
        return None
    X, y = sample(data.X_train, data.y_train, None if kind in ("large", "additive") else row.sample)
    estimator = AdditiveClassifier if kind == "additive" else TreeBoostingClassifier
    start = time.process_time()
    model = estimator(row.norm, row.eps, **options).fit(X, y)
    return model, time.process_time() - start


def measure(kind: str, name: str, limits: argparse.Namespace) -> dict[str, float | str] | None:
    """Train, then count on the test rows."""
    data = datasets.load(ROWS[name].dataset)
    fitted = train(kind, name, data)
    if fitted is None:
        return None
    model, seconds = fitted
    X, y = data.X_test, data.y_test
    side = np.where(y == model.classes_[1], 1.0, -1.0)
    out: dict[str, float | str] = {
        "trees": str(model.ensemble_.n_trees),
        "leaves": str(model.ensemble_.n_leaves),
        "clean": 100 * float(np.mean(model.predict(X) != y)),
    }
    if kind != "additive":
        out["bound"] = bound_error(model, X, side, ROWS[name])
    out["fit CPU s"] = seconds
    X, y = X[: limits.test_rows], y[: limits.test_rows]
    if not len(X):
        return out
    start = time.process_time()
    try:
        found = model.certify(X, y, time_limit=limits.time_limit)
    except MethodError as error:
        sys.stderr.write(f"not certified: {error}\n")
        return out
    out |= {"attack": 100 * found.attack_error, "verified": 100 * found.verified_error}
    out["certify CPU s"] = time.process_time() - start
    if limits.milp_rows and kind != "additive":
        out |= second_opinion(model, found, X[: limits.milp_rows], y[: limits.milp_rows], limits.milp_time_limit)
    return out


def main() -> None:
    """Print one line a row and recipe as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--recipes", nargs="*", default=list(RECIPES), choices=RECIPES)
    parser.add_argument("--test-rows", type=int, default=None, help="certify only the first so many (0: none)")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds a row for the verifier")
    parser.add_argument("--milp-rows", type=int, default=0, help="rows that a MILP decides again")
    parser.add_argument("--milp-time-limit", type=float, default=60.0, help="seconds a row for the MILP")
    limits = parser.parse_args()
    for name in limits.rows:
        clean, verified = ROWS[name].published
        shown = "-" if clean is None else f"{clean:.2f}"
        sys.stdout.write(f"{name}: published clean {shown} verified {verified:.2f}\n")
        for kind in limits.recipes:
            figures = measure(kind, name, limits)
            if figures is None:
                continue
            line = "  ".join(f"{key} {it if isinstance(it, str) else f'{it:.2f}'}" for key, it in figures.items())
            sys.stdout.write(f"  {kind:8s} {line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
