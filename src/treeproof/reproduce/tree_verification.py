"""The paper's table 3: linf-trained boosted trees under l1 by the multi-level bound, search and MILP.

Twenty trees each, trained against l_inf; ours, and the authors' published ten trees for MNIST 1 vs 5
where the models folder has them (the paper's own twenty were not published).
"""

from __future__ import annotations

import math
from typing import Any

from . import paper, verification
from .settings import Settings
from .tasks import NUMBER, PERCENT, SECONDS, Row, Table, number
from .trainers import TREES
from .workshop import ModelSpec, authors_file

NAME = "tree-verification"
AUTHORS = {"mnist-1-5": "trees_mnist_1_5_linf.json"}
DEPTH = 4


def table(settings: Settings) -> Table:
    """The table for a run of this size."""
    rows = []
    for line in paper.rows("tree_verification"):
        dataset, size = line["dataset"], settings.size
        file = AUTHORS.get(dataset)
        if file and authors_file(settings.models, file):
            spec = ModelSpec("authors", dataset, options={"file": file})
            rows.append(_row("the authors' (10 trees)", spec, line, settings))
        options = {"n_estimators": 20, "max_depth": DEPTH, **TREES}
        spec = ModelSpec("trees", dataset, math.inf, line["eps"], options, size.training(dataset))
        rows.append(_row("ours (20 trees)", spec, line, settings))
    return Table(
        NAME,
        "Tree verification (table 3)",
        f"Boosted trees (depth {DEPTH}) trained against l_inf, verified against l1: the paper's "
        "multi-level bound "
        "(`multilevel`, K = 3, L = 2), our exact search, and the MILP. The paper's own trees were "
        "not published.",
        tuple(rows),
    )


def _row(whose: str, spec: ModelSpec, line: dict[str, Any], settings: Settings) -> Row:
    size, eps = settings.size, line["eps"]
    levels: dict[str, Any] = {"K": line["K"], "L": line["L"]}
    limits: dict[str, Any] = {"time_limit": size.row_seconds}
    bound = verification.certify_task(NAME, spec, size, norm=1, eps=eps, method="multilevel", **levels, **limits)
    search = verification.certify_task(NAME, spec, size, norm=1, eps=eps, method="search", **limits)
    milp = verification.beside_milp(
        NAME, spec, size, norm=1, eps=eps, methods={"multilevel": {**levels, **limits}, "search": limits}
    )
    speed = line["milp_time"] / line["multilevel_time"]
    return Row(
        {"data set": line["dataset"], "model": whose, "eps": f"{eps:g}"},
        (
            number(search, "clean", "clean", PERCENT),
            *verification.milp_quantities(milp, line),
            number(bound, "verified", "multi-level verified", PERCENT, line["multilevel_verified"]),
            number(bound, "seconds", "multi-level time", SECONDS, line["multilevel_time"]),
            number(search, "verified", "search verified", PERCENT, line["milp_verified"]),
            number(search, "seconds", "search time", SECONDS),
            number(search, "unknown", "search undecided", NUMBER),
            *verification.speed_quantities(milp, "multilevel", "multi-level", speed),
            *verification.speed_quantities(milp, "search", "search", None),
        ),
        line["dataset"],
    )
