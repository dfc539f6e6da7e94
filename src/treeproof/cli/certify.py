"""``treeproof certify``: prove rows robust, show what breaks the others, and gate on the verified error."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, options
from .labels import read_label_map
from .options import ImageShape, Share, check_writable
from .work import Job, distances, following, prepare, solver_options
from .writing import KINDS, result_columns, write_results

if TYPE_CHECKING:
    from ..results import Certificates


@click.command()
@options.model_and_data
@options.loading
@options.table
@options.threat
@options.solver
@options.output
@click.option("--report", metavar="FILE.html", help="A page that explains the result: one file, no network.")
@click.option(
    "--report-rows",
    type=click.IntRange(1),
    metavar="N",
    default=200,
    show_default=True,
    help="Rows of the report's radii.",
)
@click.option("--image-shape", type=ImageShape(), help="Draw rows as images in the report: 28x28.")
@click.option("--fail-above", type=Share(), help="Exit code 1 if the verified error is above this: 0.1 or 10%.")
def command(model: str, data: str, **settings: Any) -> int:
    """Prove, row by row, that no allowed move changes the prediction.

    MODEL is a file of XGBoost, LightGBM, CatBoost or treeproof; DATA is CSV, Parquet, NPZ or dataset:NAME.

    \b
      treeproof certify model.json rows.csv --target label --norm 1 --eps 0.3
      treeproof certify model.json rows.csv --threat threat.toml --report report.html --fail-above 10%
    """
    inputs = (model, data, settings["threat"])
    check_writable(settings["out"], KINDS, inputs)
    check_writable(settings["report"], (".html", ".htm"), inputs)
    job = prepare(model, data, settings)
    if settings["image_shape"]:
        from ..reporting.html import check_image_shape

        check_image_shape(settings["image_shape"], job.model)
    found = certify_job(job, settings)
    gate = settings["fail_above"]
    failed = gate is not None and found.verified_error > gate
    if settings["out"]:
        facts = {**job.facts(), **outcome(found, gate)}
        write_results(settings["out"], result_columns(found, job.rows, distances(job, found)), facts)
    if settings["report"]:
        write_job_report(job, found, settings)
    if settings["as_json"]:
        console.show_json({**job.facts(), **outcome(found, gate), "seconds": float(found.seconds.sum())})
    else:
        show(job, found, gate, settings)
    if found.interrupted:
        return 130
    return 1 if failed else 0


def certify_job(job: Job, settings: dict[str, Any], label: str = "proving") -> Certificates:
    """Certify a job's rows, with a bar where a person looks."""
    from ..verify import certify

    with following(label, len(job.rows), settings["quiet"] or settings["as_json"]) as progress:
        return certify(job.model, job.rows.X, job.rows.y, job.threat, progress=progress, **solver_options(settings))


def outcome(found: Certificates, gate: float | None = None) -> dict[str, Any]:
    """The aggregates as plain data."""
    out = {
        "clean_error": found.clean_error,
        "attack_error": found.attack_error,
        "verified_error": found.verified_error,
        "counts": found.counts(),
        "method": found.method_reason,
        "cast_rows": found.cast_rows,
        "interrupted": found.interrupted,
    }
    if gate is not None:
        out |= {"fail_above": gate, "passed": not found.verified_error > gate}
    return out


def show(job: Job, found: Certificates, gate: float | None, settings: dict[str, Any]) -> None:
    """The result for a person."""
    from ..reporting import words
    from ..reporting.tables import certificates_table, facts_table

    limits = words.limit_words(job.threat, job.model.n_features)
    console.show(facts_table({**job.lines(), "adversary": "; ".join([words.move_words(job.threat), *limits])}))
    console.show("")
    console.show(certificates_table(found))
    for name in ("out", "report"):
        if settings.get(name):
            console.show(f"written: {settings[name]}")
    if gate is not None:
        passed = found.verified_error <= gate
        word = "passed" if passed else "failed"
        relation = "is at most" if passed else "is above"
        error, most = words.percent(found.verified_error), words.percent(gate)
        console.show(f"gate {word}: the verified error {error} {relation} {most}")


def write_job_report(job: Job, found: Certificates, settings: dict[str, Any]) -> None:
    """Radii of some rows, and the page."""
    import numpy as np

    from ..reporting import write_report
    from ..verify import radius

    count = min(len(job.rows), settings["report_rows"])
    rows = job.rows.pick(np.arange(count) if count == len(job.rows) else _spread(len(job.rows), count))
    radii = None
    if not found.interrupted:
        with following("radii for the report", len(rows), settings["quiet"] or settings["as_json"]) as progress:
            radii = radius(job.model, rows.X, rows.y, job.threat, progress=progress, **solver_options(settings))
    write_report(
        settings["report"],
        found,
        job.model,
        radii=radii,
        names=job.rows.names,
        image_shape=settings["image_shape"],
        title=f"Robustness of {Path(job.path).name}",
        class_names={value: key for key, value in read_label_map(settings["label_map"]).items()},
        command=command_line(),
        facts={"model file": _described(job.path), "data": _described(job.rows.source)},
        gate=settings["fail_above"],
        row_numbers=job.rows.numbers if radii is None else rows.numbers,
    )


def _spread(n: int, count: int):
    """`count` rows drawn with a fixed seed, in order."""
    import numpy as np

    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))


def _described(path: str) -> str:
    """A file with the start of its SHA-256, so that a report can be matched with what it is about."""
    import hashlib

    if not Path(path).is_file():
        return path
    return f"{path} (sha256 {hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]}...)"


def command_line() -> str:
    """What was typed."""
    return "treeproof " + " ".join(shlex.quote(part) for part in sys.argv[1:])
