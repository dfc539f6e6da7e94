"""The paper's table 3: linf-trained boosted trees under l1 by the multi-level bound, search and MILP.

Twenty trees each, trained against l_inf; ours, and the authors' published ten trees for MNIST 1 vs 5
where the models folder has them (the paper's own twenty were not published).
"""

from __future__ import annotations

import math
from typing import Any

from . import paper, verification
from .settings import Settings
from .tasks import NUMBER, Row, Table, number
from .trainers import TREES
from .workshop import ModelSpec, authors_spec

NAME = "tree-verification"
DEPTH = 4


def table(settings: Settings) -> Table:
    """The table for a run of this size."""
    rows = []
    for line in paper.rows("tree_verification"):
        dataset, size = line["dataset"], settings.size
        published = authors_spec(settings.models, "trees", dataset)
        if published is not None:
            rows.append(_row("the authors' (10 trees)", published, line, settings))
        options = {"n_estimators": 20, "max_depth": DEPTH, **TREES}
        spec = ModelSpec("trees", dataset, math.inf, line["eps"], options, size.training(dataset))
        rows.append(_row("ours (20 trees)", spec, line, settings))
    return Table(
        NAME,
        "Tree verification (table 3)",
        f"Boosted trees (depth {DEPTH}) trained against l_inf, verified against l1: the MILP, the "
        "paper's multi-level bound (`multilevel`, K = 3, L = 2) and our exact search, each on all the rows. The "
        "paper's own trees were not published.",
        tuple(rows),
    )


def _row(whose: str, spec: ModelSpec, line: dict[str, Any], settings: Settings) -> Row:
    size, eps = settings.size, line["eps"]
    limits: dict[str, Any] = {"time_limit": size.row_seconds}
    methods = {"multilevel": {"K": line["K"], "L": line["L"], **limits}, "search": limits}
    task = verification.beside_milp(NAME, spec, size, norm=1, eps=eps, methods=methods)
    levels, exact = verification.printed(line, "multilevel"), verification.Printed(line["milp_verified"])
    return Row(
        {"data set": line["dataset"], "model": whose, "eps": f"{eps:g}"},
        (
            *verification.milp_quantities(task, line),
            *verification.method_quantities(task, "multilevel", "multi-level", levels),
            *verification.method_quantities(task, "search", "search", exact),
            number(task, "search_unknown", "search undecided", NUMBER),
        ),
        line["dataset"],
    )
