"""The options that several commands share, and their types."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from .._errors import InvalidInputError


class Norm(click.ParamType):
    """p of an l_p norm: a number, ``inf``, or written as l0, l1, l2, linf."""

    name = "p"

    def convert(self, value, param, ctx):
        from .._errors import InvalidThreatError
        from ..threat import check_norm

        if isinstance(value, float):
            return value
        try:
            return check_norm(str(value).lower().removeprefix("l").removeprefix("_"))
        except InvalidThreatError:
            self.fail(f"{value!r} is not a norm: give 0, 1, 2, inf, or any p from 1/1024 to 1024.", param, ctx)


class Budget(click.ParamType):
    """A number of at least 0."""

    name = "number"

    def convert(self, value, param, ctx):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not number >= 0:
            self.fail(f"{value!r} is not a number of at least 0.", param, ctx)
        return number


class Share(click.ParamType):
    """A share of rows between 0 and 1; ``10%`` is 0.1."""

    name = "share"

    def convert(self, value, param, ctx):
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = float("nan")
        if not 0 <= number <= 1:
            self.fail(f"{value!r} is not a share of rows: give 0.1 or 10%.", param, ctx)
        return number


class ImageShape(click.ParamType):
    """Height and width, such as ``28x28``."""

    name = "HxW"

    def convert(self, value, param, ctx):
        if isinstance(value, tuple):
            return value
        parts = str(value).lower().split("x")
        if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is not an image shape: give 28x28, for example.", param, ctx)
        return int(parts[0]), int(parts[1])


def together(*decorators: Callable) -> Callable:
    """One decorator from several; the first comes first in the help."""

    def wrap(command):
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return wrap


model_and_data = together(
    click.argument("model", metavar="MODEL"),
    click.argument("data", metavar="DATA"),
)

loading = together(
    click.option(
        "--classes", metavar="A,B,...", help="Labels of the model's classes, for files that do not hold them."
    ),
    click.option("--decision-threshold", type=float, metavar="P", help="Two classes: predict the second above this."),
)

table = together(
    click.option("--target", metavar="COLUMN", help="The column of true labels (misclassified rows count as errors)."),
    click.option("--label-map", metavar="A=B,...", help="What the file's labels mean: yes=1,no=0."),
    click.option("--no-header", is_flag=True, help="The CSV has no names; columns are 0, 1, ...; -1 is the last."),
    click.option("--allow-missing", is_flag=True, help="Keep rows with missing values; what is missing cannot move."),
    click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N rows."),
    click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N rows, drawn at random."),
    click.option("--seed", type=click.IntRange(0), metavar="N", default=0, show_default=True, help="Seed of --sample."),
)

threat = together(
    click.option("--norm", type=Norm(), help="p of the l_p norm that measures a move: 0, 1, 2, inf, ..."),
    click.option("--eps", type=Budget(), help="The budget: how far a row may move."),
    click.option("--threat", metavar="FILE.toml", help="Scales, frozen features, ranges and directions."),
)

solver = together(
    click.option(
        "--method", metavar="NAME", default="auto", show_default=True, help="How to decide; auto picks and says."
    ),
    click.option(
        "--time-limit",
        type=Budget(),
        metavar="SECONDS",
        default=10.0,
        show_default=True,
        help="For each row; rows out of time are UNKNOWN; inf for none.",
    ),
    click.option("--n-jobs", type=int, metavar="N", help="Threads; -1 for all cores."),
)

output = together(
    click.option("--out", metavar="FILE", help="Results, a row each: .csv, .json or .parquet."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table."),
    click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks."),
)


def check_writable(path: str | None, kinds: tuple[str, ...] = (), inputs: tuple[str | None, ...] = ()) -> None:
    """Refuse an output that cannot be written, or that is an input, before the work starts and not after it."""
    if path is None:
        return
    where = Path(path)
    if where.exists() and any(one and Path(one).exists() and where.samefile(one) for one in inputs):
        raise InvalidInputError(f"{path}: must not be one of the files that are read. Name another file.")
    if kinds and where.suffix.lower() not in kinds:
        raise InvalidInputError(f"{path}: the file's name must end in {', '.join(kinds)}. Got {where.suffix!r}.")
    if where.suffix.lower() == ".parquet":
        need_pyarrow(path)
    if where.is_dir():
        raise InvalidInputError(f"{path}: must be a file to write. Got a folder.")
    if not where.parent.exists():
        raise InvalidInputError(f"{path}: the folder {str(where.parent)!r} must exist. Make it first.")
    if not os.access(where if where.exists() else where.parent, os.W_OK):
        raise InvalidInputError(f"{path}: cannot be written: permission denied.")


def need_pyarrow(path: str) -> None:
    """One line where Parquet was asked for without pyarrow."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise InvalidInputError(
            f"{path}: writing Parquet needs pyarrow. Install it with: pip install pyarrow, or write .csv or .json."
        )
