"""``treeproof inspect``: what a model file holds."""

from __future__ import annotations

import click

from . import console, options
from .work import load_model


@click.command()
@click.argument("model", metavar="MODEL")
@options.loading
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--features", is_flag=True, help="List the features with the number of splits that read them.")
def command(model: str, classes: str | None, decision_threshold: float | None, as_json: bool, features: bool) -> None:
    """Say what a model file holds: trees, features, classes, decision rule, arithmetic.

    \b
      treeproof inspect model.json
    """
    import numpy as np

    ensemble = load_model(model, classes, decision_threshold)
    summary = ensemble.summary()
    # only what is read: a file may state two billion features
    used, splits = np.unique(ensemble.feature[ensemble.feature >= 0], return_counts=True)
    names = [ensemble.feature_names[j] if ensemble.feature_names else str(j) for j in used]
    if as_json:
        content = summary.to_dict()
        if features:
            content["splits"] = dict(zip(names, splits.tolist(), strict=True))
        console.show_json(content)
        return
    click.echo(str(summary))
    if features:
        for j in np.argsort(-splits, kind="stable"):
            click.echo(f"{splits[j]:>7} splits  {names[j]}")
