"""The paper's figure 2: l1 verified error after each of the first 20 stumps, l1 against l_inf training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import measure, verification
from .settings import Settings
from .tasks import PERCENT, Result, Row, Table, Task, number
from .trainers import FIGURE_2, STUMPS
from .workshop import ModelSpec, Workshop

NAME = "figure-2"
DATASET, EPS_INF, EPS_1, STUMP_COUNT = "fashion-shoes", 0.2, 0.5, 20


def table(settings: Settings) -> Table:
    """One row, with the curves."""
    size = settings.size
    options = {"n_estimators": STUMP_COUNT, **STUMPS}
    specs = {
        "linf-trained": ModelSpec("stumps", DATASET, math.inf, EPS_INF, options, size.train_rows),
        "l1-trained": ModelSpec("stumps", DATASET, 1, EPS_1, {**options, **FIGURE_2}, size.train_rows),
    }
    tasks = {name: _rounds(name, spec, settings) for name, spec in specs.items()}
    quantities = tuple(
        number(task, f"{key}_{when}", f"{name} {key} after {stumps}", PERCENT)
        for name, task in tasks.items()
        for key in ("clean", "verified")
        for when, stumps in (("first", 1), ("last", STUMP_COUNT))
    )
    row = Row({"data set": DATASET, "eps inf": f"{EPS_INF:g}", "eps 1": f"{EPS_1:g}"}, quantities, DATASET)

    def curves(_: Row, result: Callable[[Task], Result | None]) -> dict[str, list[float]]:
        found = {name: result(task) for name, task in tasks.items()}
        return {
            f"{name}, {key}": values[f"{key}_curve"]
            for key in ("verified", "clean")
            for name, values in found.items()
            if values is not None
        }

    return Table(
        NAME,
        "Verified error round by round (figure 2)",
        f"{DATASET}, l1 verified error at eps {EPS_1:g} (exact) and clean error after each of "
        f"{STUMP_COUNT} stumps; "
        f"l_inf training at {EPS_INF:g} and l1 training at {EPS_1:g} with an eps schedule of 5 "
        "rounds. The paper "
        "shows curves without figures.",
        (row,),
        curves,
    )


def _rounds(name: str, spec: ModelSpec, settings: Settings) -> Task:
    limit = settings.size.test_rows

    def run(shop: Workshop) -> dict[str, Any]:
        ensemble = shop.model(spec).ensemble
        X, y = shop.test_rows(DATASET, limit)
        found = [
            measure.certified(measure.prefix(ensemble, count), X, y, norm=1, eps=EPS_1, method="additive")
            for count in range(1, ensemble.n_trees + 1)
        ]
        out: dict[str, Any] = {}
        for key in ("clean", "verified"):
            curve = [one[key] for one in found]
            out.update({f"{key}_curve": curve, f"{key}_first": curve[0], f"{key}_last": curve[-1]})
        return out

    reduced = verification.reductions(spec, limit)
    return Task(f"{NAME}/{name}", {"model": spec.settings, "rows": limit, "eps": EPS_1}, run, reduced)
