"""What certify, radius, attack and compare have in common: model, rows and threat, read and checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import InvalidInputError, InvalidModelError, InvalidThreatError, TreeproofError
from ..reporting import words
from . import console
from .labels import read_label_map
from .reading import Rows, rows_for_model
from .threatfile import read_threat

if TYPE_CHECKING:
    from ..model import TreeEnsemble
    from ..threat import Threat


@dataclass(frozen=True)
class Job:
    """Checked input of a command."""

    path: str
    model: TreeEnsemble
    rows: Rows
    threat: Threat

    def facts(self) -> dict[str, Any]:
        """Where everything came from, as plain data."""
        return {
            "model": self.path,
            "data": self.rows.source,
            "rows": len(self.rows),
            **({"rows_with_missing_values": self.rows.missing} if self.rows.missing else {}),
            "threat": named_threat(self.threat, self.rows.names),
        }

    def lines(self) -> dict[str, str]:
        """Model and rows in words."""
        summary = self.model.summary()
        rows = f"{self.rows.source}: {words.rows_of(len(self.rows))}"
        if self.rows.missing:
            rows += f", {self.rows.missing:,} with missing values (what is missing does not move)"
        return {"model": f"{self.path}: {summary.source}, {words.rows_of(summary.trees, 'tree')}", "rows": rows}


def load_model(path: str, classes: str | None = None, decision_threshold: float | None = None) -> TreeEnsemble:
    """Any model file that treeproof reads."""
    if not Path(path).exists():
        raise InvalidModelError(f"{path}: there is no such file.")
    if Path(path).is_dir():
        raise InvalidModelError(f"{path}: must be a model file. Got a folder.")
    from ..importers import load

    labels = None if classes is None else _class_labels(classes)
    try:
        return load(path, classes=labels, decision_threshold=decision_threshold)
    except TreeproofError as error:
        raise type(error)(str(error) if path in str(error) else f"{path}: {error}") from None


def _class_labels(text: str) -> list:
    """``"0,1"`` as numbers, ``"ham,spam"`` as texts."""
    parts = [part.strip() for part in text.split(",")]
    return [int(part) for part in parts] if all(part.lstrip("-").isdigit() for part in parts) else parts


def prepare(model: str, data: str, options: dict[str, Any], *, eps_needed: bool = True) -> Job:
    """Read the model, the rows and the threat that a command line names."""
    ensemble = load_model(model, options.get("classes"), options.get("decision_threshold"))
    rows = rows_for_model(
        data,
        ensemble,
        target=options["target"],
        label_map=read_label_map(options["label_map"]),
        header=not options["no_header"],
        allow_missing=options["allow_missing"],
        limit=options["limit"],
        sample=options["sample"],
        seed=options["seed"],
    )
    threat = read_threat(options["threat"], rows.names, ensemble.n_features, options["norm"], options.get("eps"))
    if eps_needed and threat.eps == np.inf:
        raise InvalidInputError("a finite budget must be given. Give --eps 0.3, or eps = 0.3 in --threat FILE.")
    _check_threat(threat, ensemble, rows, options["threat"])
    if rows.ignored and not options["quiet"]:
        console.note(f"{len(rows.ignored)} columns that the model does not know are left out: {rows.ignored[0]}, ...")
    return Job(model, ensemble, rows, threat)


def _check_threat(threat: Threat, model: TreeEnsemble, rows: Rows, path: str | None) -> None:
    """A threat that does not fit the model is said with the file's and the feature's name."""
    try:
        threat.resolve(replace(model, feature_names=rows.names))
    except InvalidThreatError as error:
        raise InvalidThreatError(f"{path}: {error}" if path else str(error)) from None


def solver_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that go to the verifier as they are."""
    given = {"method": options["method"], "n_jobs": options["n_jobs"]}
    if options["time_limit"] < np.inf:
        given["time_limit"] = options["time_limit"]
    return given


@contextmanager
def following(label: str, total: int, quiet: bool) -> Iterator[Any]:
    """A progress bar as the function ``(rows done, rows)`` that the verifiers call; False in a pipe."""
    if quiet or not console.watched():
        yield False
        return
    console.tell_of_compiling()
    with console.progress(label, total) as put:
        yield put


def distances(job: Job, results) -> np.ndarray:
    """How far each witness is from its row, in the threat's norm; NaN where there is none."""
    resolved = job.threat.resolve(job.model)
    X = job.model.cast(results.X)
    out = np.full(len(results), np.nan)
    for row in np.flatnonzero(results.witnesses.present):
        columns, values = results.witnesses.changes(row)
        out[row] = resolved.distance(columns, X[row, columns], values)
    return out


def named_threat(threat: Threat, names) -> dict[str, Any]:
    """The threat as plain data with feature names instead of column numbers."""
    out = threat.to_dict()
    for key, given in out.items():
        if isinstance(given, dict):
            out[key] = {(names[j] if isinstance(j, int) else j): value for j, value in given.items()}
        elif key == "frozen" and isinstance(given, list) and not all(isinstance(one, bool) for one in given):
            out[key] = [names[j] if isinstance(j, int) else j for j in given]
    return out
