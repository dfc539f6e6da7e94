"""``treeproof train``: a provable model from a table, certified on rows held out."""

from __future__ import annotations

from typing import Any

import click

from .._clock import clock
from .._errors import InvalidInputError
from . import console, options
from .labels import read_label_map
from .options import Share, check_writable
from .reading import Rows, rows_for_training
from .threatfile import read_threat

KINDS = {
    "additive": "AdditiveClassifier",
    "stumps": "StumpBoostingClassifier",
    "trees": "TreeBoostingClassifier",
}
THREAT_PARTS = ("scale", "frozen", "lower", "upper", "direction")


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.argument("data", metavar="DATA")
@click.option("--target", metavar="COLUMN", required=True, help="The column of classes.")
@click.option("--label-map", metavar="A=B,...", help="Rename the file's labels: yes=1,no=0.")
@click.option("--no-header", is_flag=True, help="The CSV has no names; columns are 0, 1, ...; -1 is the last.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N rows.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N rows, drawn at random.")
@options.threat
@click.option("--out", metavar="MODEL.json", required=True, help="Where the model goes.")
@click.option(
    "--holdout",
    type=Share(),
    default=0.2,
    show_default=True,
    help="Share of rows to certify on, not trained on.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Any parameter of the estimator; repeatable.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the split and the training."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks.")
def command(kind: str, data: str, **given: Any) -> None:
    """Train a provable model from a table.

    KIND is additive (one convex problem, usually the most robust), stumps (the paper's boosted stumps)
    or trees (the paper's boosted trees). DATA is CSV, Parquet, NPZ or dataset:NAME.

    \b
      treeproof train additive rows.csv --target label --norm 1 --eps 0.3 --out model.json
      treeproof train trees rows.csv --target label --norm inf --eps 0.1 --set max_depth=4 --out model.json
    """
    check_writable(given["out"], (".json",), (data, given["threat"]))
    rows = rows_for_training(
        data,
        target=given["target"],
        label_map=read_label_map(given["label_map"]),
        header=not given["no_header"],
        limit=given["limit"],
        sample=given["sample"],
        seed=given["seed"],
    )
    threat = read_threat(given["threat"], rows.names, rows.X.shape[1], given["norm"], given["eps"])
    if threat.eps == float("inf"):
        raise InvalidInputError("a finite budget must be given. Give --eps 0.3 (0 trains a plain model).")
    _check_classes(rows, given["target"])
    train, test = split(rows, given["holdout"], given["seed"])
    estimator = build(kind, threat, given["settings"], given["seed"])
    quiet = given["quiet"] or given["as_json"]
    if not quiet:
        console.tell_of_compiling()
    start = clock()
    with console.training_progress(f"training on {len(train):,} rows", quiet):
        estimator.fit(train.X, train.y)
    seconds = clock() - start
    model = named(estimator.ensemble_, rows.names)
    model.save(given["out"])
    _tell(kind, model, train, test, threat, seconds, given)


def _check_classes(rows: Rows, target: str) -> None:
    """A column of measurements is no target: each of its numbers would become a class."""
    import numpy as np

    kinds = len(np.unique(np.asarray(rows.y)))
    if kinds > 100 and kinds > len(rows) / 20:
        raise InvalidInputError(
            f"{rows.source}: the target must hold classes. Got {kinds:,} different labels in {len(rows):,} rows of "
            f"column {target!r}, which looks like a number to predict."
        )


def split(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows | None]:
    """Training rows and held-out rows, class by class."""
    import numpy as np

    if share == 0:
        return rows, None
    if share == 1:
        raise InvalidInputError("--holdout must leave rows to train on. Got 1.")
    rng = np.random.default_rng(seed)
    held = np.zeros(len(rows), dtype=bool)
    labels = np.asarray(rows.y)
    for label in np.unique(labels):
        places = rng.permutation(np.flatnonzero(labels == label))
        held[places[: int(round(share * len(places)))]] = True
    return rows.pick(np.flatnonzero(~held)), (rows.pick(np.flatnonzero(held)) if held.any() else None)


def build(kind: str, threat, settings: tuple[str, ...], seed: int):
    """The estimator with its parameters."""
    import treeproof

    name = KINDS[kind]
    estimator = getattr(treeproof, name)(norm=threat.norm, eps=threat.eps)
    known = estimator.get_params()
    chosen: dict[str, Any] = {"random_state": seed} if "random_state" in known else {}
    for part in THREAT_PARTS:
        value = getattr(threat, part)
        if value is None:
            continue
        if part not in known:
            raise InvalidInputError(
                f"{kind} cannot be trained against a threat with {part}. Train with KIND additive, "
                "or leave it out here and certify with it."
            )
        chosen[part] = value
    for text in settings:
        key, mark, value = text.partition("=")
        if not mark or key.strip() not in known:
            raise InvalidInputError(
                f"--set must be NAME=VALUE with a parameter of {name}. Got {text!r}; it has {', '.join(sorted(known))}."
            )
        chosen[key.strip()] = _value(value.strip())
    return estimator.set_params(**chosen)


def _value(text: str) -> Any:
    """A setting's text as a number, a truth value, None, or itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def named(model, names):
    """The same ensemble with the table's column names."""
    from dataclasses import replace

    if model.feature_names is not None or len(set(names)) != len(names):
        return model
    return replace(model, feature_names=tuple(names))


def _tell(kind, model, train, test, threat, seconds, given) -> None:
    """What came out, on rows that training did not see."""
    from ..reporting.tables import certificates_table
    from ..verify import certify
    from .certify import outcome

    found = None
    if test is not None:
        found = certify(model, test.X, test.y, threat)
    if given["as_json"]:
        content = {
            "kind": kind,
            "model": given["out"],
            "trees": model.n_trees,
            "rows": len(train),
            "seconds": seconds,
        }
        if found is not None:
            content |= {"held_out_rows": len(found), **outcome(found)}
        console.show_json(content)
        return
    console.show(f"trained on {len(train):,} rows in {seconds:.1f} s: {model!r}")
    if found is not None:
        console.show(f"on {len(found):,} rows held out:")
        console.show(certificates_table(found))
    console.show(f"written: {given['out']}")
