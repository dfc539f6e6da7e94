"""What the tables share: a method on all test rows, and methods beside the MILP on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import measure
from .settings import SMALL, Size
from .tasks import PERCENT, SECONDS, TEXT, TIMES, Quantity, Task, number
from .workshop import ModelSpec, Workshop


def test_note(size: Size, dataset: str) -> str:
    """How the test rows are cut down, in words; empty when they are not (the tables are small anyway)."""
    rows = size.testing(dataset)
    return f"{rows} of the test rows (fixed seed)" if rows else ""


def train_note(spec: ModelSpec, usual: int | None = None) -> str:
    """How the training rows are cut down, in words; `usual` is what the paper's own experiment has."""
    return f"trained on {spec.train_rows} rows (fixed seed)" if spec.train_rows not in (None, usual) else ""


def join(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


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
    return Task(words, settings, run, join(test_note(size, spec.dataset), train_note(spec, usual_rows)))


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
    settings = {
        "model": spec.settings, "norm": str(norm), "eps": eps, "rows": size.milp_rows,
        "methods": {name: dict(options) for name, options in methods.items()}, "seconds": size.milp_seconds,
    }  # fmt: skip

    def run(shop: Workshop) -> dict[str, Any]:
        ensemble = shop.model(spec).ensemble
        X, y = shop.test_rows(spec.dataset, size.milp_rows)
        milp = measure.certified(ensemble, X, y, norm=norm, eps=eps, method="milp", time_limit=size.milp_seconds)
        out = {f"milp_{key}": value for key, value in milp.items()}
        for name, options in methods.items():
            found = measure.certified(ensemble, X, y, norm=norm, eps=eps, method=name, **options)
            out.update({f"{name}_{key}": value for key, value in found.items()})
            out[f"{name}_speedup"] = milp["seconds"] / found["seconds"]
            out[f"{name}_agreement"] = agreement(found["letters"], milp["letters"])
        return out

    words = f"{table}/{spec.name}/l{norm:g} {eps:g}/beside milp"
    # the tables' whole test sets (137 and 154 rows) are within the full run's 200
    whole = spec.dataset in SMALL and size.milp_rows >= 200
    note = "" if whole else f"MILP on {size.milp_rows} test rows (fixed seed)"
    return Task(words, settings, run, join(note, train_note(spec)))


def agreement(mine: str, milp: str) -> str:
    """How the two methods' answers compare: decided by both and equal, and contradictions."""
    one, two = np.array(list(mine)), np.array(list(milp))
    both = (one != "U") & (two != "U")
    words = f"{int(np.sum(both & (one == two)))}/{len(one)} alike"
    against = int(np.sum(both & (one != two)))
    return words + (f", {against} CONTRADICT" if against else "")


def milp_quantities(task: Task, paper: Mapping[str, Any]) -> list[Quantity]:
    """The MILP's own columns."""
    return [
        number(task, "milp_verified", "MILP verified", PERCENT, paper.get("milp_verified")),
        number(task, "milp_seconds", "MILP time", SECONDS, paper.get("milp_time")),
    ]


def speed_quantities(task: Task, method: str, words: str, paper: float | None) -> list[Quantity]:
    """Speed-up over the MILP and agreement with it, on the same rows in the same run."""
    return [
        number(task, f"{method}_speedup", f"{words}, speed-up over MILP", TIMES, paper),
        number(task, f"{method}_agreement", f"{words} and MILP", TEXT),
    ]
