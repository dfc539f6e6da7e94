"""Our own table: `AdditiveClassifier` with its defaults, beside the paper and the best figures in print.

Published, for l1 and l2: DRS boosted stumps (Horvath et al., NeurIPS 2022, who certify a smoothed
classifier); for l_inf: Andriushchenko and Hein's boosted stumps and trees. The paper's figures are those
of its stump tables, and of its tree tables where these have an eps of their own. Nothing is tuned: one
set of defaults, the test set read once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import verification
from .settings import SMALL, Settings
from .tasks import NUMBER, PERCENT, SECONDS, Row, Table, number
from .trainers import ADDITIVE
from .workshop import ModelSpec

NAME = "frontier"


@dataclass(frozen=True)
class Known:
    """What is in print for one row, in percent."""

    norm: float
    dataset: str
    eps: float
    paper: float | None
    paper_clean: float | None
    published: float | None
    model: str = "stumps"  # what the paper trained there


ROWS = (
    Known(1, "breast-cancer", 1.0, 35.77, 1.46, 16.1),
    Known(1, "diabetes", 0.05, 31.82, 27.27, 27.9),
    Known(1, "fashion-shoes", 0.1, 10.35, 7.10, None),
    Known(1, "fashion-shoes", 0.5, 32.20, 12.40, 16.3),
    Known(1, "mnist-1-5", 0.3, 2.81, 1.28, 0.74),
    Known(1, "mnist-1-5", 1.0, 16.23, 4.49, 1.9),
    Known(1, "mnist-2-6", 0.3, 8.24, 3.71, 3.92),
    Known(1, "mnist-2-6", 1.0, 33.46, 7.73, 5.9),
    Known(2, "breast-cancer", 0.7, 39.42, 8.76, 17.5),
    Known(2, "diabetes", 0.05, None, None, 28.6),
    Known(2, "fashion-shoes", 0.4, 49.55, 14.55, 15.5),
    Known(2, "mnist-1-5", 0.8, 36.56, 4.44, 3.7),
    Known(2, "mnist-2-6", 0.8, 76.98, 13.67, 10.3),
    Known(1, "mnist-1-5", 0.8, 36.23, 4.59, None, "trees"),
    Known(1, "mnist-2-6", 0.6, 39.67, 7.64, None, "trees"),
    Known(2, "breast-cancer", 0.8, 55.88, 12.50, None, "trees"),
    Known(math.inf, "breast-cancer", 0.3, 10.94, None, 6.6),
    Known(math.inf, "diabetes", 0.05, 31.81, None, 30.5),
    Known(math.inf, "fashion-shoes", 0.1, 11.35, None, 8.0),
    Known(math.inf, "mnist-1-5", 0.3, 3.6, None, 1.3),
    Known(math.inf, "mnist-2-6", 0.3, 8.63, None, 3.8),
)


def table(settings: Settings) -> Table:
    """The table for a run of this size."""
    return Table(
        NAME,
        "The frontier (our own table)",
        "One convex training problem instead of greedy boosting, then exact verification of the test set. "
        "`verified` stands beside the paper's own model, then beside the best published figure of any method "
        "(l1, l2: DRS, a smoothed classifier; l_inf: boosted trees). fashion-shoes figures of others are for the "
        "original split.",
        tuple(_row(known, settings) for known in ROWS),
    )


def _row(known: Known, settings: Settings) -> Row:
    size = settings.size
    options = dict(ADDITIVE)
    if size.epochs and known.dataset not in SMALL:
        options["max_epochs"] = size.epochs
    spec = ModelSpec("additive", known.dataset, known.norm, known.eps, options, size.training(known.dataset))
    task = verification.certify_task(NAME, spec, size, norm=known.norm, eps=known.eps, method="additive")
    labels = {
        "norm": f"l{known.norm:g}", "data set": known.dataset, "eps": f"{known.eps:g}", "paper's model": known.model,
    }  # fmt: skip
    return Row(
        labels,
        (
            number(task, "clean", "clean (paper)", PERCENT, known.paper_clean),
            number(task, "verified", "verified (paper)", PERCENT, known.paper),
            number(task, "verified", "verified (best published)", PERCENT, known.published),
            number(task, "unknown", "undecided", NUMBER),
            number(task, "thresholds", "thresholds", NUMBER),
            number(task, "training_seconds", "training", SECONDS),
        ),
        known.dataset,
    )
