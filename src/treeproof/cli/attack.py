"""``treeproof attack``: counterexamples as rows, to look at, to test with, or to train on. Proves nothing."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import click

from .._errors import InvalidInputError
from . import console, options
from .options import Budget, check_writable
from .work import Job, distances, following, prepare, solver_options


@click.command()
@options.model_and_data
@options.loading
@options.table
@options.threat
@click.option("--method", metavar="NAME", default="auto", show_default=True, help="What looks for them.")
@click.option("--time-limit", type=Budget(), metavar="SECONDS", default=0.2, show_default=True, help="Seconds a row.")
@click.option("--n-jobs", type=int, metavar="N", help="Threads; -1 for all cores.")
@click.option("--nearest", is_flag=True, help="The nearest counterexamples, instead of any within eps.")
@click.option("--out", metavar="FILE.csv", help="The counterexamples as whole rows, in the table's columns.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks.")
def command(model: str, data: str, **settings: Any) -> int:
    """Look for counterexamples only, and write them as rows.

    What is not found may still exist: `treeproof certify` proves. Rows that are misclassified anyway are left out.

    \b
      treeproof attack model.json rows.csv --target label --norm 1 --eps 0.3 --out counterexamples.csv
    """
    check_writable(settings["out"], (".csv",), (model, data, settings["threat"]))
    job = prepare(model, data, settings, eps_needed=not settings["nearest"])
    found = _look(job, settings)
    from ..reporting.analysis import feature_uses, moved_rows

    flipped = moved_rows(found)
    far = distances(job, found)[flipped]
    if settings["out"]:
        write_rows(settings["out"], job, found, flipped, far)
    tried = len(found) if found.correct is None else int(found.correct.sum())
    uses = feature_uses(found)[:5]
    if settings["as_json"]:
        console.show_json(
            {
                **job.facts(),
                "tried": tried,
                "found": len(flipped),
                "median_distance": _median(far),
                "features": {job.rows.names[use.feature]: use.count for use in uses},
                "method": found.method_reason,
                "interrupted": found.interrupted,
            }
        )
    else:
        _tell(job, tried, far, uses, settings["out"])
    return 130 if found.interrupted else 0


def _look(job: Job, settings: dict[str, Any]):
    """Certificates, or radii for the nearest, of which only the witnesses are used."""
    from ..verify import certify, radius

    given = solver_options(settings)
    with following("attacking", len(job.rows), settings["quiet"] or settings["as_json"]) as progress:
        rows = job.rows
        if settings["nearest"]:
            cap = job.threat.eps
            return radius(job.model, rows.X, rows.y, job.threat, max_radius=cap, progress=progress, **given)
        return certify(job.model, rows.X, rows.y, job.threat, progress=progress, **given)


def write_rows(path: str, job: Job, found, flipped, far) -> None:
    """One whole row a counterexample, with what it came from; floats read back as the same bits."""
    names = job.rows.names
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as text:
            writer = csv.writer(text)
            label = [] if found.y is None else ["label"]
            writer.writerow(["row", *label, "predicted", "becomes", "distance", *names])
            for row, distance in zip(flipped.tolist(), far.tolist(), strict=True):
                x = job.model.cast(found.X[row : row + 1])[0]
                columns, values = found.witnesses.changes(row)
                x[columns] = values
                truth = [] if found.y is None else [found.y[row]]
                becomes = job.model.predict(x[None])[0]
                numbers = [job.rows.numbers[row], *truth, found.predicted[row], becomes, distance]
                writer.writerow([*numbers, *x.tolist()])
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be written: {error.strerror or error}.") from None


def _median(far) -> float | None:
    import numpy as np

    return float(np.median(far)) if len(far) else None


def _tell(job: Job, tried: int, far, uses, out: str | None) -> None:
    from ..reporting import words
    from ..reporting.tables import facts_table

    lines = {
        "adversary": "; ".join([words.move_words(job.threat), *words.limit_words(job.threat, job.model.n_features)]),
        "tried": f"{words.rows_of(tried)} that are not misclassified anyway"
        if job.rows.y is not None
        else words.rows_of(tried),
        "found": f"{words.rows_of(len(far), 'counterexample')} ({words.percent(len(far) / tried if tried else 0.0)})",
    }
    if len(far):
        lines["distance"] = f"median {words.figure(_median(far) or 0.0)}, least {words.figure(float(far.min()))}"
        lines["moved most"] = ", ".join(f"{job.rows.names[use.feature]} ({use.count})" for use in uses)
    console.show(facts_table(lines))
    if out:
        console.show(f"written: {out}")
