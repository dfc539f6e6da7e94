"""``treeproof data``: what data sets there are, where they come from, and their rows as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import click


@click.group("data")
def command() -> None:
    """Data sets of the paper's experiments: list, describe, fetch, write as CSV."""


@command.command("list")
def list_sets() -> None:
    """Name the data sets and say where each would come from."""
    from .. import datasets
    from ..datasets import catalogue, raw

    folder = raw.prepared_folder(None)
    for name in datasets.names():
        entry = catalogue.ENTRIES[name]
        source, path = raw.locate(entry.sources, folder)
        elsewhere = "in the package" if catalogue.SOURCES[source].embedded else "to be downloaded from OpenML"
        where = str(path or elsewhere)
        click.echo(f"{name:15} {entry.title} [{where}]")


@command.command("show")
@click.argument("name")
@click.option("--drop-id", is_flag=True, help="breast-cancer without the patient id.")
def show(name: str, drop_id: bool) -> None:
    """Describe data set NAME (it is loaded, and downloaded if need be)."""
    from .. import datasets

    data = datasets.load(name, drop_id=drop_id)
    click.echo(f"{data.title}")
    click.echo(f"rows:      {len(data.X_train)} train, {len(data.X_test)} test")
    shape = f" ({data.image_shape[0]} x {data.image_shape[1]} pixels)" if data.image_shape else ""
    click.echo(f"features:  {data.n_features}{shape}")
    click.echo(f"classes:   {', '.join(f'{i} = {label}' for i, label in enumerate(data.class_names))}")
    click.echo(f"constant:  {100 * data.constant_error:.2f}% test error by always saying the same")
    click.echo(f"split:     {data.split}")
    click.echo(f"read from: {data.where}")
    click.echo(f"origin:    {data.origin}")
    click.echo(f"licence:   {data.licence}")


@command.command("fetch")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def fetch(names: tuple[str, ...]) -> None:
    """Load data sets once (all by default), so that later commands need no network."""
    from .. import datasets

    missing = []
    for name in names or datasets.names():
        try:
            data = datasets.load(name, dtype="float32")
        except datasets.DataUnavailableError as error:  # the others may be had
            missing.append(str(error))
        else:
            click.echo(f"{name}: {len(data.X_train)} + {len(data.X_test)} rows from {data.where}")
    if missing:
        raise datasets.DataUnavailableError(" ".join(dict.fromkeys(missing)))


@command.command("export")
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("."), show_default=True,
              help="Folder for NAME-train.csv and NAME-test.csv.")  # fmt: skip
@click.option("--raw", is_flag=True, help="In the units of the data instead of scaled to [0, 1].")
@click.option("--drop-id", is_flag=True, help="breast-cancer without the patient id.")
def export(name: str, out: Path, raw: bool, drop_id: bool) -> None:
    """Write data set NAME as two CSV files; the last column, label, is the class (0, 1, ...)."""
    from .. import datasets

    data = datasets.load(name, drop_id=drop_id)
    out.mkdir(parents=True, exist_ok=True)
    for part, X, y in (("train", data.X_train, data.y_train), ("test", data.X_test, data.y_test)):
        path = out / f"{name}-{part}.csv"
        rows = data.scaling.to_data_units(X) if raw else X
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow([*data.feature_names, "label"])
            writer.writerows([*row, label] for row, label in zip(rows.tolist(), y.tolist(), strict=True))
        click.echo(str(path))
