"""The paper's appendix on l_inf against l_p training at the same eps.

The l_inf ball contains the l_1 ball of the same radius, so l_inf training bounds the l_1 loss too; the
appendix remarks that the results are then close, at the cost of clean error. The rows of the l1 stump
table with eps_inf = eps_1 show it.
"""

from __future__ import annotations

import math

from . import paper, stump_training, verification
from .settings import Settings
from .tasks import PERCENT, Quantity, Row, Table, number

NAME = "equal-eps"


def table(settings: Settings) -> Table:
    """The table for a run of this size."""
    linf = {(line["dataset"], line["eps_1"]): line for line in paper.rows("linf_of_stump_models")}
    rows = []
    for line in paper.rows("l1_stump_training"):
        if line["eps"] != line["eps_inf"]:
            continue
        models = stump_training.specs(line, 1, settings.size)
        other = linf[line["dataset"], line["eps"]]
        quantities: list[Quantity] = []
        for column, words, key in (("linf", "linf-trained", "linf"), ("lp", "l1-trained", "l1")):
            under = {
                norm: verification.certify_task(
                    NAME, models[column], settings.size, norm=norm, eps=line["eps"], method="additive"
                )
                for norm in (1, math.inf)
            }
            quantities += [
                number(under[1], "clean", f"{words} clean", PERCENT, line[column]["error"]),
                number(under[1], "verified", f"{words} l1 verified", PERCENT, line[column]["verified"]),
                number(under[math.inf], "verified", f"{words} linf verified", PERCENT, other[key]),
            ]
        labels = {"data set": line["dataset"], "eps": f"{line['eps']:g}"}
        rows.append(Row(labels, tuple(quantities), line["dataset"]))
    return Table(
        NAME,
        "l_inf against l1 training at equal eps (appendix)",
        "Both models under both norms. The l_inf-trained model is bound to be safe under l1 as well "
        "(its ball is "
        "larger) and pays with clean error.",
        tuple(rows),
    )
