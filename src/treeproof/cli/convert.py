"""``treeproof convert``: any model file into treeproof's own, which every version reads alike."""

from __future__ import annotations

import click

from . import console, options
from .options import check_writable
from .work import load_model


@click.command()
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="OUT.json")
@options.loading
@click.option("--force", is_flag=True, help="Overwrite OUT.")
def command(model: str, out: str, classes: str | None, decision_threshold: float | None, force: bool) -> None:
    """Write a model in treeproof's own format (JSON, data only).

    \b
      treeproof convert booster.ubj model.json
    """
    from pathlib import Path

    from .._errors import InvalidInputError

    check_writable(out, (".json",), (model,))
    if Path(out).exists() and not force:
        raise InvalidInputError(f"{out}: exists already. Give --force to overwrite it.")
    ensemble = load_model(model, classes, decision_threshold)
    ensemble.save(out)
    console.show(f"written: {out} ({ensemble!r})")
