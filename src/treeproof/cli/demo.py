"""``treeproof demo``: the main job end to end, on data inside the package, in one go and offline.

Three spam filters against a spammer who adds words: a plain additive model, scikit-learn's gradient boosting
(100 trees of depth 3), and a model trained to be provable. All are certified by exact methods, and a report is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from .._clock import clock
from .._errors import InvalidInputError
from . import console

EPS = 0.05
PLAIN, BOOSTED, PROVABLE = "plain additive model", "scikit-learn gradient boosting", "provable additive model"

THREAT = """# a spammer adds words: every frequency can only grow; the sum of what is added,
# each in shares of its feature's range, is at most eps
norm = 1
eps = {eps}

[features."*"]
direction = 1
"""


@click.command()
@click.option("--out", metavar="FOLDER", default="treeproof-demo", show_default=True, help="Where the files go.")
@click.option("--quiet", "-q", is_flag=True, help="Only the table.")
def command(out: str, quiet: bool) -> int:
    """Train, certify, compare and report on embedded data.

    Three spam filters against a spammer who adds words. Needs no files and no network.
    """
    from .. import Threat, datasets

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"{out}: the folder cannot be made: {error.strerror}.") from None
    start = perf_counter()
    data = datasets.load("spambase")
    threat = Threat(norm=1, eps=EPS, direction=1)
    if not quiet:
        console.show(
            f"{len(data.X_train):,} mails to train on, {len(data.X_test):,} to certify, {data.n_features} word "
            f"frequencies.\nThe adversary adds words: l₁ moves of at most {EPS} of a feature's range, upwards only.\n"
        )
    models = train(data, quiet)
    proofs, radii = measure(models, data, threat, quiet)
    write_files(folder, models, data)
    write_pages(folder, models, proofs, radii, data)
    show(proofs, radii, folder, quiet, perf_counter() - start)
    return 130 if any(found.interrupted for found in proofs.values()) else 0


@contextmanager
def step(label: str, quiet: bool) -> Iterator[None]:
    """One line when something that takes time is done."""
    console.note(f"{label}...", quiet)
    start, working = perf_counter(), clock()
    yield
    if not quiet:
        working = clock() - working
        compiling = perf_counter() - start - working
        more = f", and {compiling:.0f} s compiling the fast loops, once on this machine" if compiling > 1 else ""
        console.show(f"{label}: {working:.1f} s{more}")


def train(data, quiet: bool) -> dict[str, Any]:
    """The three models, as ensembles."""
    from sklearn.ensemble import GradientBoostingClassifier

    from .. import AdditiveClassifier, load

    with step("training the plain model", quiet):
        plain = AdditiveClassifier(norm=1, eps=0.0, direction=1, random_state=0).fit(data.X_train, data.y_train)
    with step("training scikit-learn's model and reading it", quiet):
        boosted = GradientBoostingClassifier(random_state=0)
        boosted.fit(data.X_train, data.y_train)
        read = load(boosted)
    with step("training the provable model", quiet):
        provable = AdditiveClassifier(norm=1, eps=EPS, direction=1, random_state=0).fit(data.X_train, data.y_train)
    return {PLAIN: plain.ensemble_, BOOSTED: read, PROVABLE: provable.ensemble_}


def measure(models: dict[str, Any], data, threat, quiet: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Certificates and radii of the test mails."""
    from ..verify import certify, radius

    proofs, radii = {}, {}
    for name, model in models.items():
        with step(f"certifying the {name}", quiet):
            proofs[name] = certify(model, data.X_test, data.y_test, threat)
            radii[name] = radius(model, data.X_test, data.y_test, threat)
    return proofs, radii


def write_files(folder: Path, models: dict[str, Any], data) -> None:
    """The models, the rows and the threat, to go on with from the command line."""
    import csv
    from dataclasses import replace

    for name, file in ((PLAIN, "plain.json"), (BOOSTED, "scikit-learn.json"), (PROVABLE, "provable.json")):
        replace(models[name], feature_names=data.feature_names).save(folder / file)
    (folder / "threat.toml").write_text(THREAT.format(eps=EPS), encoding="utf-8")
    with open(folder / "mails.csv", "w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow([*data.feature_names, "spam"])
        writer.writerows([*row, label] for row, label in zip(data.X_test.tolist(), data.y_test.tolist(), strict=True))


def write_pages(folder: Path, models, proofs, radii, data) -> None:
    """A report of the provable model, with the others' curves, and one of the plain model."""
    from ..reporting import write_report

    labels = {str(place): name for place, name in enumerate(data.class_names)}
    for name, file in ((PROVABLE, "report.html"), (PLAIN, "report-plain.html"), (BOOSTED, "report-scikit-learn.html")):
        write_report(
            folder / file,
            proofs[name],
            models[name],
            radii=radii[name],
            names=data.feature_names,
            scaling=data.scaling,
            title=f"Spam filter: {name}",
            command="treeproof demo",
            class_names=labels,
            facts={"data": f"{data.title}; {data.origin}", "units": "budget in shares of each feature's range"},
            others={other: radii[other] for other in models if other != name},
        )


def show(proofs, radii, folder: Path, quiet: bool, seconds: float) -> None:
    """The table, a sentence, and what to do next."""
    from ..reporting.tables import summary_table
    from ..reporting.words import percent

    if not quiet:
        console.show("")
    console.show(summary_table(proofs, radii=radii))
    if quiet:
        return
    plain, provable = percent(proofs[PLAIN].attack_error), percent(proofs[PROVABLE].verified_error)
    console.show(
        f"\nThe plain filter is wrong, or can be made wrong by adding words, on {plain} of the mails.\n"
        f"For the provable one it is proved that no way of adding them gets beyond {provable}."
    )
    console.show(f"\nreport:  {folder / 'report.html'} (and two more beside it), after {seconds:.0f} s in all")
    console.show(
        f"next:    treeproof certify {folder / 'plain.json'} {folder / 'mails.csv'} --target spam "
        f"--threat {folder / 'threat.toml'}"
    )
