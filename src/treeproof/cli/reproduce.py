"""``treeproof reproduce``: the paper's tables, measured again; goes on where it was interrupted."""

from __future__ import annotations

from pathlib import Path

import click

from ..reproduce import DATASETS, TABLES


@click.command("reproduce")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--datasets", metavar="NAME,...", help="Rows of these data sets only: " + ", ".join(DATASETS) + ".")
@click.option("--quick", is_flag=True, help="Reduced rows (marked in the report): every table in minutes.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("reproduction"),
              show_default=True, help="Folder for finished cells, models and the report.")  # fmt: skip
@click.option("--resume/--fresh", default=True, show_default=True,
              help="Keep the cells that the folder already holds, or start again.")  # fmt: skip
@click.option("--models", type=click.Path(path_type=Path, file_okay=False, exists=True),
              help="Folder with the models that the paper's authors published.")  # fmt: skip
@click.option("--train-rows", type=click.IntRange(min=100), help="Train on at most so many image rows (marked).")
@click.option("--jobs", type=click.IntRange(min=1), show_default="the cores, at most 4",
              help="Processes that work at once, each on one thread.")  # fmt: skip
@click.option("--list", "list_tables", is_flag=True, help="Name the tables and stop.")
def command(tables, datasets, quick, out, resume, models, train_rows, jobs, list_tables) -> None:
    """Measure the paper's tables again: paper / ours / difference.

    TABLE is one of the names that --list shows; all by default. Finished cells are kept in the folder, so
    after an interruption (Ctrl-C, a kill, a power cut) the same command goes on and gives the same
    numbers. The report is there at any time: reproduction.md, .html, .csv and .json.

    The image data sets come from the folder that TREEPROOF_DATA names, or from OpenML.
    """
    from .. import reproduce
    from ..reproduce.report import cores

    if list_tables:
        for name in TABLES:
            click.echo(name)
        return
    for name in tables:
        if name not in TABLES:
            raise click.BadParameter(f"{name!r} is not a table. Choose among {', '.join(TABLES)}.")
    asked = None if datasets is None else [part.strip() for part in datasets.split(",") if part.strip()]
    try:
        report = reproduce.run(
            list(tables) or None, datasets=asked, quick=quick, out=out, resume=resume, models=models,
            train_rows=train_rows, n_jobs=jobs or min(4, cores()), progress=_tell,
        )  # fmt: skip
    except KeyboardInterrupt:
        click.echo(f"Interrupted. Finished cells are in {out}; the same command goes on from there.", err=True)
        click.get_current_context().exit(130)
    click.echo((out / "reproduction.md").read_text(encoding="utf-8"))
    click.echo(f"Report: {out / 'reproduction.html'} (also .md, .csv, .json)", err=True)
    if report.failures:
        for message in report.failures:
            click.echo(f"failed: {message}", err=True)
        click.get_current_context().exit(1)


def _tell(event) -> None:
    """One line a task on standard error."""
    place = f"[{event.number}/{event.total} done]"
    name = event.task.name
    if event.kind == "start":
        click.echo(f"{place} {name} ...", err=True)
    elif event.kind == "kept":
        click.echo(f"{place} {name}: kept", err=True)
    elif event.kind == "done":
        click.echo(f"{place} {name}: done in {event.seconds:.1f} s", err=True)
    else:
        click.echo(f"{place} {name}: FAILED, {event.message}", err=True)
