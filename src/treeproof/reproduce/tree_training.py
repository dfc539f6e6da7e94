"""The paper's tables 5 (l1) and 7 (l2): boosted trees trained plainly, against l_inf, and against l_p.

Same number of trees, depth, eps, learning rate and training rows (5,000 and 1,000 of the image sets) as
the paper; verified errors by the exact search.
"""

from __future__ import annotations

import math
from typing import Any

from . import paper, verification
from .settings import SMALL, Settings, Size
from .tasks import NUMBER, PERCENT, SECONDS, Quantity, Row, Table, number
from .trainers import TREES, corrective_trees
from .workshop import ModelSpec

COLUMNS = ("standard", "linf", "lp", "corrective")
SAMPLE = {1: 5000, 2: 1000}


def l1_table(settings: Settings) -> Table:
    """Table 5."""
    return _table("l1-tree-training", "l1 tree training (table 5)", 1, settings)


def l2_table(settings: Settings) -> Table:
    """Table 7."""
    return _table("l2-tree-training", "l2 tree training (table 7)", 2, settings)


def specs(line: dict[str, Any], norm: int, size: Size) -> dict[str, ModelSpec]:
    """The paper's three models of a row, and our own fourth."""
    dataset = line["dataset"]
    rows = None if dataset in SMALL else min(SAMPLE[norm], size.train_rows or SAMPLE[norm])
    options = {"n_estimators": line["n"], "max_depth": line["depth"], **TREES}

    # the eps schedule of section 4.3 over the depth is the estimator's default
    def spec(against: float | None, eps: float, **more: Any) -> ModelSpec:
        return ModelSpec("trees", dataset, against, eps, {**options, **more}, rows)

    return {
        "standard": spec(None, 0.0),
        "linf": spec(math.inf, line["eps_inf"]),
        "lp": spec(norm, line["eps"]),
        "corrective": spec(norm, line["eps"], **corrective_trees(dataset, norm, line["eps"])),
    }


def _table(name: str, title: str, norm: int, settings: Settings) -> Table:
    rows = tuple(_row(name, line, norm, settings) for line in paper.rows(name.replace("-", "_")))
    about = (
        f"Boosted trees of depth 5; verified errors are l{norm:g} at eps, by the exact search. A row that is "
        f"undecided (after {settings.size.row_seconds:g} s, or because its margin is within the float error of "
        "the model's own sum) counts as not verified. The paper trains on "
        f"{SAMPLE[norm]} rows of the image sets. `corrective` is our own: as many trees of the same depth, all "
        f"leaf values refitted together under one shared budget (beside the paper's l{norm} column)."
    )
    return Table(name, title, about, rows)


def _row(name: str, line: dict[str, Any], norm: int, settings: Settings) -> Row:
    size = settings.size
    models = specs(line, norm, size)
    quantities: list[Quantity] = []
    for column in COLUMNS:
        task = verification.certify_task(
            name, models[column], size, norm=norm, eps=line["eps"], method="search",
            usual_rows=SAMPLE[norm], time_limit=size.row_seconds,
        )  # fmt: skip
        words = f"l{norm:g}" if column == "lp" else column
        printed = line["lp" if column == "corrective" else column]
        quantities.append(number(task, "clean", f"{words} clean", PERCENT, printed["error"]))
        quantities.append(number(task, "verified", f"{words} verified", PERCENT, printed["verified"]))
        quantities.append(number(task, "unknown", f"{words} undecided", NUMBER))
        if column in ("lp", "corrective"):
            quantities.append(number(task, "training_seconds", f"{words} training", SECONDS))
    labels = {
        "data set": line["dataset"], "eps inf": f"{line['eps_inf']:g}", f"eps {norm:g}": f"{line['eps']:g}",
        "trees": str(line["n"]), "depth": str(line["depth"]),
    }  # fmt: skip
    return Row(labels, tuple(quantities), line["dataset"])
