"""What the tables share: a method on all test rows, and methods beside the MILP on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import datasets
from . import measure
from .settings import Size
from .tasks import NUMBER, PERCENT, SECONDS, TEXT, TIMES, Quantity, Task, number
from .workshop import ModelSpec, Workshop

OTHER_SPLIT = ("fashion-shoes",)  # prepared files whose rows are not divided as in the paper


def reductions(spec: ModelSpec, rows: int | None, *, usual_rows: int | None = None) -> str:
    """How a task on `rows` test rows falls short of the paper's experiment, in words; empty when it does not.

    `usual_rows` are the training rows of the paper's own experiment, if not all.
    """
    notes = []
    if rows:
        notes.append(f"{rows} of the test rows (fixed seed)")
    if spec.train_rows not in (None, usual_rows):
        notes.append(f"trained on {spec.train_rows} rows (fixed seed)")
    if "max_epochs" in spec.options:
        notes.append(f"at most {spec.options['max_epochs']} epochs")
    if datasets.source(spec.dataset) in OTHER_SPLIT:
        notes.append(f"{spec.dataset} in another division than the original")
    return "; ".join(notes)


def certify_task(
    table: str,
    spec: ModelSpec,
    size: Size,
    *,
    norm: float,
    eps: float,
    method: str,
    usual_rows: int | None = None,
    **options: Any,
) -> Task:
    """Certify all test rows (of this run's size) by one method, with the model's size and training time.

    `usual_rows` are the training rows of the paper's own experiment, if not all: no reduction then.
    """
    limit = size.testing(spec.dataset)
    settings = {
        "model": spec.settings, "norm": str(norm), "eps": eps, "method": method, "options": options,
        "rows": limit,
    }  # fmt: skip

    def run(shop: Workshop) -> dict[str, Any]:
        built = shop.model(spec)
        X, y = shop.test_rows(spec.dataset, limit)
        found = measure.certified(built.ensemble, X, y, norm=norm, eps=eps, method=method, **options)
        return {**found, **measure.size(built.ensemble), "training_seconds": built.seconds}

    words = f"{table}/{spec.name}/l{norm:g} {eps:g}/{method}"
    return Task(words, settings, run, reductions(spec, limit, usual_rows=usual_rows))


def beside_milp(
    table: str,
    spec: ModelSpec,
    size: Size,
    *,
    norm: float,
    eps: float,
    methods: Mapping[str, Mapping[str, Any]],
) -> Task:
    """The MILP and other methods on the same rows, one after the other; `methods` are names with options."""
    limit = size.testing(spec.dataset)
    settings = {
        "model": spec.settings, "norm": str(norm), "eps": eps, "rows": limit,
        "methods": {name: dict(options) for name, options in methods.items()}, "seconds": size.milp_seconds,
    }  # fmt: skip

    def run(shop: Workshop) -> dict[str, Any]:
        ensemble = shop.model(spec).ensemble
        X, y = shop.test_rows(spec.dataset, limit)
        milp = measure.certified(ensemble, X, y, norm=norm, eps=eps, method="milp", time_limit=size.milp_seconds)
        out = {f"milp_{key}": value for key, value in milp.items()}
        for name, options in methods.items():
            found = measure.certified(ensemble, X, y, norm=norm, eps=eps, method=name, **options)
            out.update({f"{name}_{key}": value for key, value in found.items()})
            out[f"{name}_speedup"] = milp["seconds"] / found["seconds"]
            out[f"{name}_ratio"] = milp["verified"] / found["verified"] if found["verified"] else None
            out[f"{name}_agreement"] = agreement(found["letters"], milp["letters"])
        return out

    return Task(f"{table}/{spec.name}/l{norm:g} {eps:g}", settings, run, reductions(spec, limit))


def agreement(mine: str, milp: str) -> str:
    """How the two methods' answers compare: decided by both and equal, left open by one, contradictions."""
    one, two = np.array(list(mine)), np.array(list(milp))
    both = (one != "U") & (two != "U")
    words = f"{int(np.sum(both & (one == two)))}/{len(one)} alike"
    words += f", {int(np.sum(~both))} open" if not both.all() else ""
    against = int(np.sum(both & (one != two)))
    return words + (f", {against} CONTRADICT" if against else "")


def milp_quantities(task: Task, paper: Mapping[str, Any]) -> list[Quantity]:
    """The MILP's own columns."""
    return [
        number(task, "milp_clean", "clean", PERCENT),
        number(task, "milp_verified", "MILP verified", PERCENT, paper["milp_verified"]),
        number(task, "milp_unknown", "MILP undecided", NUMBER),
        number(task, "milp_seconds", "MILP time", SECONDS, paper["milp_time"]),
    ]


class Printed(NamedTuple):
    """The paper's figures of one method; its speed-up and the quotient of errors follow from its MILP's."""

    verified: float
    seconds: float | None = None
    speedup: float | None = None
    ratio: float | None = None


def printed(line: Mapping[str, Any], method: str) -> Printed:
    """What a row of the paper's tables says about a method ("dp", "multilevel") beside the MILP."""
    verified, seconds = line[f"{method}_verified"], line[f"{method}_time"]
    return Printed(verified, seconds, line["milp_time"] / seconds, line["milp_verified"] / verified)


def method_quantities(task: Task, method: str, words: str, paper: Printed) -> list[Quantity]:
    """One method's error and time, and how it compares with the MILP."""
    return [
        number(task, f"{method}_verified", f"{words} verified", PERCENT, paper.verified),
        number(task, f"{method}_seconds", f"{words} time", SECONDS, paper.seconds),
        number(task, f"{method}_speedup", f"{words}, speed-up over MILP", TIMES, paper.speedup),
        number(task, f"{method}_ratio", f"MILP's error over {words}'s", NUMBER, paper.ratio),
        number(task, f"{method}_agreement", f"{words} and MILP, rows", TEXT),
    ]
