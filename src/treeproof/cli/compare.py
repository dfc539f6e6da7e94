"""``treeproof compare``: two models on the same rows, and the rows where they differ."""

from __future__ import annotations

from typing import Any

import click

from . import console, options
from .certify import certify_job, outcome
from .work import prepare


@click.command()
@click.argument("model_a", metavar="MODEL_A")
@click.argument("model_b", metavar="MODEL_B")
@click.argument("data", metavar="DATA")
@options.loading
@options.table
@options.threat
@options.solver
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks.")
def command(model_a: str, model_b: str, data: str, **settings: Any) -> int:
    """Put two models' errors on the same rows side by side.

    \b
      treeproof compare old.json new.json rows.csv --target label --norm 1 --eps 0.3
    """
    import numpy as np

    from ..reporting.tables import summary_table
    from ..results import Status

    found = {}
    for path in (model_a, model_b):
        job = prepare(path, data, settings)
        found[path if path not in found else f"{path} (again)"] = certify_job(job, settings, f"proving {path}")
    first, second = found.values()
    robust = [results.status == Status.ROBUST for results in (first, second)]
    gained, lost = int(np.sum(robust[1] & ~robust[0])), int(np.sum(robust[0] & ~robust[1]))
    if settings["as_json"]:
        models = {path: outcome(results) for path, results in found.items()}
        console.show_json({**job.facts(), "models": models, "gained": gained, "lost": lost})
    else:
        console.show(summary_table(found))
        both = int(np.sum(robust[0] & robust[1]))
        console.show(
            f"proved robust: {both} rows by both, {gained} only by {model_b}, {lost} only by {model_a}, "
            f"{len(first) - both - gained - lost} by neither"
        )
    return 130 if any(results.interrupted for results in found.values()) else 0
