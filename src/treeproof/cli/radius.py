"""``treeproof radius``: how far each row is from another prediction."""

from __future__ import annotations

from typing import Any

import click

from . import console, options
from .options import Budget, check_writable
from .work import distances, following, prepare, solver_options
from .writing import KINDS, result_columns, write_results


@click.command()
@options.model_and_data
@options.loading
@options.table
@click.option("--norm", type=options.Norm(), help="p of the l_p norm that measures a move: 0, 1, 2, inf, ...")
@click.option("--threat", metavar="FILE.toml", help="Scales, frozen features, ranges and directions.")
@click.option("--max-radius", type=Budget(), default=float("inf"), help="Look no further than this.")
@options.solver
@options.output
def command(model: str, data: str, **settings: Any) -> int:
    """Find how far each row is from another prediction.

    The smallest allowed move that changes the prediction, in units of the norm. Misclassified rows
    have radius 0.

    \b
      treeproof radius model.json rows.csv --target label --norm 2 --out radii.csv
    """
    from ..reporting import words
    from ..reporting.tables import facts_table, radii_table
    from ..verify import radius

    check_writable(settings["out"], KINDS, (model, data, settings["threat"]))
    job = prepare(model, data, settings, eps_needed=False)
    quiet = settings["quiet"] or settings["as_json"]
    with following("measuring", len(job.rows), quiet) as progress:
        found = radius(
            job.model,
            job.rows.X,
            job.rows.y,
            job.threat,
            max_radius=settings["max_radius"],
            progress=progress,
            **solver_options(settings),
        )
    facts = {
        **job.facts(),
        "clean_error": found.clean_error,
        "mean": found.mean,
        "median": found.median,
        "infinite": found.n_infinite,
        "exact": int(found.exact.sum()),
        "method": found.method_reason,
        "interrupted": found.interrupted,
    }
    facts["threat"].pop("eps", None)
    if settings["out"]:
        write_results(settings["out"], result_columns(found, job.rows, distances(job, found)), facts)
    if settings["as_json"]:
        console.show_json({**facts, "seconds": float(found.seconds.sum())})
    else:
        limits = words.limit_words(job.threat, job.model.n_features)
        console.show(facts_table({**job.lines(), "moves": "; ".join([words.norm_name(job.threat.norm), *limits])}))
        console.show("")
        console.show(radii_table(found))
        if settings["out"]:
            console.show(f"written: {settings['out']}")
    return 130 if found.interrupted else 0
