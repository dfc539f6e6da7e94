"""From a `ModelSpec` to an estimator: the settings of the paper's experiments, in one place.

Appendix A.1 of the paper: stumps with learning rate 0.4, trees with 1.0, 5,000 (l1) or 1,000 (l2)
training rows for trees on images, an eps schedule where eps_p is large.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import treeproof

from .._errors import InvalidInputError
from ..model import TreeEnsemble

if TYPE_CHECKING:
    from .workshop import ModelSpec

ESTIMATORS = {
    "stumps": "StumpBoostingClassifier",
    "trees": "TreeBoostingClassifier",
    "additive": "AdditiveClassifier",
}

# the paper's other stump models: its loss, and no schedule. Its l_p column takes the estimator's own loss and eps
# schedule, one rule for all rows, which benchmarks/stump_settings.py chose on splits of the training rows
STUMPS: dict = {"learning_rate": 0.4, "loss": "exponential", "eps_schedule": None}
ROBUST_STUMPS: dict = {"learning_rate": 0.4, "random_state": 0}
TREES: dict = {"learning_rate": 1.0}
ADDITIVE: dict = {"random_state": 0}
FIGURE_2: dict = {"eps_schedule": 5}


# the share of the clean loss where few rows can be proved: (norm, data set)
CLEAN_SHARE: dict[tuple[float, str], float] = {(2, "mnist-1-5"): 0.3, (2, "mnist-2-6"): 0.5, (2, "fashion-shoes"): 0.5}


def corrective_trees(dataset: str, norm: float, eps: float) -> dict:
    """Trees with all leaf values refitted at once, under one budget shared by the trees, and polished.

    Chosen on validation splits of the training rows (docs/training-trees.md): on images trees that share no
    feature, grown at a radius that rises over all levels; on the small table several thresholds in each gap.
    """
    shared = {"loss": "logistic", "max_weight": 3.0, "corrective": True, "corrective_every": 10**6, "polish": True}
    if dataset == "breast-cancer":
        own = {
            "max_bins": None, "cuts_per_gap": 3, "growth_eps": 0.05, "max_features": 0.3, "max_readers": 2,
            "refit_epochs": 100, "refit_clean": 0.6,
        }  # fmt: skip
    else:
        own = {
            "max_bins": 16, "max_readers": 1, "eps_schedule": 8, "growth_eps": 1.25 * eps, "refit_rate": 0.05,
            "refit_clean": CLEAN_SHARE.get((norm, dataset), 0.0),
        }  # fmt: skip
    return {**shared, **own, "random_state": 0}


def words(norm: float | None, eps: float) -> str:
    """How a model was trained, in a few letters: "standard", "linf 0.3", "l1 1.0"."""
    if norm is None:
        return "standard"
    return f"l{'inf' if math.isinf(norm) else format(norm, 'g')} {eps:g}"


def make(spec: ModelSpec, *, brief: bool = False):
    """An unfitted estimator for `spec`; standard training is eps = 0. `brief` gives one of two rounds or one epoch.

    On one thread: the run's processes share the cores, and CPU seconds then compare.
    """
    norm, eps = (1.0, 0.0) if spec.norm is None else (spec.norm, spec.eps)
    options = dict(spec.options)
    if brief:
        options |= {"epochs": 1, "max_epochs": 1} if spec.kind == "additive" else {"n_estimators": 2}
    estimator = getattr(treeproof, ESTIMATORS[spec.kind])
    return estimator(norm=norm, eps=eps, n_jobs=1, **options)


def read_authors(path: Path, n_features: int) -> TreeEnsemble:
    """A model that the paper's authors published, as converted in ``models/authors``."""
    source = {"library": "the paper's authors", "file": path.name}
    try:
        trees = json.loads(path.read_text(encoding="utf-8"))["trees"]
        return TreeEnsemble.from_trees(trees, n_features=n_features, source=source)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"{path} must be a model of the paper's authors. Reading it failed: {error}."
        ) from error
