"""The paper's tables 4 (l1) and 6 (l2): stumps trained plainly, against l_inf, and against l_p.

Clean and exactly verified l_p errors of three models a row; same number of stumps, learning rate and
eps as the paper. The paper does not say how many stumps its l2 table has: 20 for the tables, 40 for images.
"""

from __future__ import annotations

import math
from typing import Any

from . import paper, verification
from .settings import SMALL, Settings, Size
from .tasks import PERCENT, SECONDS, Quantity, Row, Table, number
from .trainers import ROBUST_STUMPS, STUMPS
from .workshop import ModelSpec

COLUMNS = ("standard", "linf", "lp", "corrective")


def l1_table(settings: Settings) -> Table:
    """Table 4."""
    return _table("l1-stump-training", "l1 stump training (table 4)", 1, settings)


def l2_table(settings: Settings) -> Table:
    """Table 6."""
    return _table("l2-stump-training", "l2 stump training (table 6)", 2, settings)


def specs(line: dict[str, Any], norm: float, size: Size) -> dict[str, ModelSpec]:
    """The paper's three models of a row, and our own fourth; other tables verify the same ones."""
    dataset = line["dataset"]
    count = line["n"] or (20 if dataset in SMALL else 40)
    rows = size.training(dataset)

    def spec(against: float | None, eps: float, **options: Any) -> ModelSpec:
        return ModelSpec("stumps", dataset, against, eps, {"n_estimators": count, **options}, rows)

    eps = line["eps"]
    return {
        "standard": spec(None, 0.0, **STUMPS),
        "linf": spec(math.inf, line["eps_inf"], **STUMPS),
        "lp": spec(norm, eps, **ROBUST_STUMPS),
        "corrective": spec(norm, eps, **ROBUST_STUMPS, corrective=True),
    }


def _table(name: str, title: str, norm: float, settings: Settings) -> Table:
    rows = tuple(_row(name, line, norm, settings) for line in paper.rows(name.replace("-", "_")))
    about = (
        f"Boosted stumps; verified errors are l{norm:g} at eps, by the exact method. `standard` and `linf` are trained "
        f"with the paper's exponential loss, l{norm:g} with the logistic one. `corrective` is our own: the "
        "same training with all leaf values refitted together after each stump (beside the paper's "
        f"l{norm:g} column). fashion-shoes is compared fairly only where its original split is used."
    )
    return Table(name, title, about, rows)


def _row(name: str, line: dict[str, Any], norm: float, settings: Settings) -> Row:
    models = specs(line, norm, settings.size)
    quantities: list[Quantity] = []
    for column in COLUMNS:
        task = verification.certify_task(
            name, models[column], settings.size, norm=norm, eps=line["eps"], method="additive"
        )
        words = f"l{norm:g}" if column == "lp" else column
        printed = line["lp" if column == "corrective" else column]
        quantities.append(number(task, "clean", f"{words} clean", PERCENT, printed["error"]))
        quantities.append(number(task, "verified", f"{words} verified", PERCENT, printed["verified"]))
        if column in ("lp", "corrective"):
            quantities.append(number(task, "training_seconds", f"{words} training", SECONDS))
    labels = {
        "data set": line["dataset"],
        "eps inf": f"{line['eps_inf']:g}",
        f"eps {norm:g}": f"{line['eps']:g}",
        "stumps": str(models["lp"].options["n_estimators"]),
    }
    return Row(labels, tuple(quantities), line["dataset"])
