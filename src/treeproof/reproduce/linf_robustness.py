"""The paper's appendix table of l_inf verified errors: the models of the l1 stump table under l_inf."""

from __future__ import annotations

import math

from . import paper, stump_training, verification
from .settings import Settings
from .tasks import PERCENT, Quantity, Row, Table, number

NAME = "linf-robustness"


def table(settings: Settings) -> Table:
    """The table for a run of this size."""
    training = {(line["dataset"], line["eps"]): line for line in paper.rows("l1_stump_training")}
    rows = []
    for line in paper.rows("linf_of_stump_models"):
        models = stump_training.specs(training[line["dataset"], line["eps_1"]], 1, settings.size)
        quantities: list[Quantity] = []
        for column, words, key in (("standard",) * 3, ("linf",) * 3, ("lp", "l1", "l1")):
            task = verification.certify_task(
                NAME, models[column], settings.size, norm=math.inf, eps=line["eps_inf"], method="additive"
            )
            quantities.append(number(task, "verified", f"{words} model", PERCENT, line[key]))
        labels = {
            "data set": line["dataset"], "eps inf": f"{line['eps_inf']:g}", "eps 1": f"{line['eps_1']:g}",
        }  # fmt: skip
        rows.append(Row(labels, tuple(quantities), line["dataset"]))
    return Table(
        NAME,
        "l_inf robustness of the stump models (appendix)",
        "The models of the l1 stump table, verified against l_inf at the eps they were (or would be) trained with.",
        tuple(rows),
    )
