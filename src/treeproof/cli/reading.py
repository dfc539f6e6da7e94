"""Tables in: CSV (also gzipped, or ``-`` for standard input), Parquet, NPZ, or ``dataset:NAME``.

Columns are matched to the model by name; without names on either side, by position. Everything that
is wrong with a file is said in one line that names the file, the column and the line. CSV is read in
blocks: the text of a large file is never held at once.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np

from .._errors import InvalidInputError
from ..model.names import places
from .labels import match_labels, own_labels

BLOCK = 20_000
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none"))
_NUMBERED = re.compile(r"(|f|x|feature_?|column_?|col_?)(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Rows:
    """Rows as a model wants them.

    Attributes
    ----------
    X : float64 array (n, d)
    y : array (n,) of class labels, or None
    names : tuple of str, one a feature
    source : str, what was read
    numbers : int array (n,), the row's number in the file, from 0
    ignored : list of str, columns that nobody asked for
    """

    X: np.ndarray
    y: np.ndarray | None
    names: tuple[str, ...]
    source: str
    numbers: np.ndarray
    ignored: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def missing(self) -> int:
        """How many rows have a missing value."""
        return int(np.isnan(self.X).any(axis=1).sum())

    def pick(self, chosen: np.ndarray) -> Rows:
        """Only these rows, in this order."""
        y = None if self.y is None else self.y[chosen]
        return Rows(self.X[chosen], y, self.names, self.source, self.numbers[chosen], self.ignored)


@dataclass(frozen=True)
class Raw:
    """A file's numbers and the target's texts, before labels are matched."""

    X: np.ndarray
    labels: np.ndarray | None
    names: list[str]
    ignored: list[str]


@dataclass(frozen=True)
class Want:
    """Which columns to read: by a model's names and count, or (None) all but the target."""

    features: int | None = None
    names: tuple[str, ...] | None = None
    missing: str = "refuse"  # "keep" it, "ask" for --allow-missing (the model takes it), or "refuse" it
    target: str | None = None
    header: bool = True


def rows_for_model(
    path: str,
    model,
    *,
    target=None,
    label_map=None,
    header=True,
    allow_missing=False,
    limit=None,
    sample=None,
    seed=0,
) -> Rows:
    """Read the model's features (and the true classes, with `target`) from a table."""
    missing = ("keep" if allow_missing else "ask") if model.accepts_missing else "refuse"
    want = Want(model.n_features, model.feature_names, missing, target, header)
    raw = _read(path, want, limit if sample is None else None)
    y = None
    if raw.labels is not None:
        y = match_labels(raw.labels, model.classes, label_map, f"{path}: column {target!r}")
    elif target is None and label_map:
        raise InvalidInputError("--label-map needs --target COLUMN: it says what that column's labels mean.")
    names = model.feature_names or tuple(raw.names)
    rows = Rows(raw.X, y, tuple(names), path, np.arange(len(raw.X)), raw.ignored)
    return _some(rows, limit, sample, seed)


def rows_for_training(path: str, *, target: str, label_map=None, header=True, limit=None, sample=None, seed=0):
    """Read every column but the target as a feature, and the target as classes."""
    raw = _read(path, Want(target=target, header=header), limit if sample is None else None)
    if raw.labels is None:
        raise InvalidInputError(f"{path}: training needs a target. Give --target COLUMN.")
    rows = Rows(raw.X, own_labels(raw.labels, label_map), tuple(raw.names), path, np.arange(len(raw.X)))
    return _some(rows, limit, sample, seed)


def _some(rows: Rows, limit: int | None, sample: int | None, seed: int) -> Rows:
    if sample is not None and sample < len(rows):
        chosen = np.sort(np.random.default_rng(seed).choice(len(rows), sample, replace=False))
        rows = rows.pick(chosen)
    return rows.pick(np.arange(limit)) if limit is not None and limit < len(rows) else rows


def _read(path: str, want: Want, limit: int | None) -> Raw:
    if path.startswith("dataset:"):
        raw = _read_dataset(path, want)
    elif path.endswith((".parquet", ".pq")):
        raw = _read_parquet(path, want)
    elif path.endswith(".npz"):
        raw = _read_npz(path, want)
    else:
        raw = _read_csv(path, want, limit)
    if len(raw.X) == 0:
        raise InvalidInputError(f"{path}: there must be at least one row. Got a table without rows.")
    return raw


# ---------------------------------------------------------------------- which columns


def choose_columns(path: str, columns: list[str], want: Want) -> tuple[list[int], int | None, list[str]]:
    """Positions of the features and of the target, and the columns left out."""
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise InvalidInputError(f"{path}: every column must have a name of its own. Got {twice[0]!r} twice.")
    target = None if want.target is None else _find_target(path, columns, want)
    others = [j for j in range(len(columns)) if j != target]
    if want.features is None:
        return others, target, []
    if want.names is not None:
        known = places(columns, want.names)
        absent = [name for name in want.names if name not in known]
        if not absent:
            chosen = [known[name] for name in want.names]
            if target in chosen:
                raise InvalidInputError(f"{path}: the target {want.target!r} is one of the model's features.")
            return chosen, target, [columns[j] for j in others if j not in set(chosen)]
        if len(absent) < len(want.names) or not _nameless(want, [columns[j] for j in others]):
            raise InvalidInputError(
                f"{path}: the model's features must be among its columns. Got no column {absent[0]!r}"
                f"{f' (and {len(absent) - 1} more are absent)' if len(absent) > 1 else ''}; "
                f"the file has {_few(columns)}."
            )
    if len(others) != want.features:
        aside = "" if target is None else f" beside the target {columns[target]!r}"
        hint = "" if target is not None else " Give --target COLUMN if one of them is the label."
        if len(others) == want.features + 1 and columns[0] in ("", "Unnamed: 0"):
            hint = " The first has no name: if it only numbers the rows, write the table without it (index=False)."
        raise InvalidInputError(
            f"{path}: there must be {want.features} feature columns, as the model has no names to match. "
            f"Got {len(others)} columns{aside}.{hint}"
        )
    return others, target, []


def _nameless(want: Want, columns: list[str]) -> bool:
    """Whether the model's names or the file's only number the columns in order, so that positions must do."""
    return not want.header or _only_numbered(want.names or ()) or _only_numbered(columns)


def _only_numbered(names) -> bool:
    """f0, f1, ..., or 1, 2, ...: one prefix, counted up from 0 or 1."""
    found = [match for match in map(_NUMBERED.fullmatch, names) if match]
    numbers = [int(match[2]) for match in found]
    counted = [list(range(first, first + len(names))) for first in (0, 1)]
    return len({match[1] for match in found}) == 1 and numbers in counted


def _find_target(path: str, columns: list[str], want: Want) -> int:
    if want.target in columns:
        return columns.index(want.target)
    if not want.header and re.fullmatch(r"-?\d+", want.target or ""):
        place = int(want.target)  # type: ignore[arg-type]
        if -len(columns) <= place < len(columns):
            return place % len(columns)
    raise InvalidInputError(
        f"{path}: the target must be one of its columns. Got {want.target!r}; the file has {_few(columns)}."
    )


def _few(names, most: int = 8) -> str:
    names = [str(name) for name in names]
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


# ---------------------------------------------------------------------- CSV


def _open_text(path: str):
    if path == "-":
        return io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
    if not Path(path).exists():
        raise InvalidInputError(f"{path}: there is no such file.")
    if Path(path).is_dir():
        raise InvalidInputError(f"{path}: must be a table (CSV, Parquet or NPZ). Got a folder.")
    if path.endswith(".gz"):
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _read_csv(path: str, want: Want, limit: int | None) -> Raw:
    try:
        with _open_text(path) as text:
            return _CsvReader(path, text, want).read(limit)
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path}: must be CSV text in UTF-8. Got the byte {error.object[error.start]:#04x}, which is not. "
            "From a spreadsheet, save it as 'CSV UTF-8'."
        ) from None
    except (csv.Error, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InvalidInputError(f"{path}: must be CSV text. Got something else: {error}.") from None


class _CsvReader:
    """One pass over a CSV file."""

    def __init__(self, path: str, text, want: Want):
        self.path, self.want = path, want
        first = text.readline()
        lines = chain([first], text)
        self.reader = csv.reader(lines, delimiter=self._delimiter(first), strict=True, skipinitialspace=True)
        cells = next(self.reader, [])
        if not any(cell.strip() for cell in cells):
            raise InvalidInputError(f"{path}: the first line must name the columns. Got an empty line.")
        self.first_row: list[str] | None = None
        if want.header:
            self.columns = [cell.strip() for cell in cells]
            if all(_number(cell) is not None for cell in cells):
                raise InvalidInputError(
                    f"{path}: the first line must name the columns. Got numbers ({_few(cells, 3)}). "
                    "Give --no-header if the file has no names."
                )
        else:
            self.columns, self.first_row = [str(j) for j in range(len(cells))], cells
        self.features, self.target, self.ignored = choose_columns(path, self.columns, want)

    def _delimiter(self, first: str) -> str:
        return max(",;\t|", key=first.count) if any(mark in first for mark in ",;\t|") else ","

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        width = len(self.columns)
        if self.first_row is not None:
            yield 1, self.first_row
        for row in self.reader:
            if not row:
                continue
            line = self.reader.line_num
            if len(row) != width:
                raise InvalidInputError(f"{self.path}: line {line} must have {width} cells. Got {len(row)}.")
            yield line, row

    def read(self, limit: int | None) -> Raw:
        blocks, labels = [], []
        lines = islice(self._lines(), limit)
        while block := list(islice(lines, BLOCK)):
            numbers, rows = zip(*block, strict=True)
            columns = list(zip(*rows, strict=True))
            out = np.empty((len(rows), len(self.features)))
            for place, j in enumerate(self.features):
                out[:, place] = self._column(j, columns[j], numbers)
            blocks.append(out)
            if self.target is not None:
                labels.append(self._labels(columns[self.target], numbers))
        X = np.concatenate(blocks) if blocks else np.zeros((0, len(self.features)))
        known = np.concatenate(labels) if labels else (np.zeros(0, dtype=str) if self.target is not None else None)
        return Raw(X, known, [self.columns[j] for j in self.features], self.ignored)

    def _labels(self, cells, numbers) -> np.ndarray:
        stripped = [cell.strip() for cell in cells]
        if "" in stripped:
            line = numbers[stripped.index("")]
            raise InvalidInputError(f"{self.path}: every row must have a label. Got none in line {line}.")
        return np.array(stripped)

    def _column(self, j: int, cells, numbers) -> np.ndarray:
        try:
            if "_" in "".join(cells):
                raise ValueError  # "1_000" is a number to Python only
            column = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            column = np.array([self._cell(j, cell, line) for cell, line in zip(cells, numbers, strict=True)])
        if not np.isfinite(column).all():
            self._refuse_odd(j, column, cells, numbers)
        return column

    def _cell(self, j: int, cell: str, line: int) -> float:
        number = _number(cell)
        if number is not None:
            return number
        if cell.strip().lower() in MISSING:
            return np.nan
        comma = " Numbers are written with a point." if _number(cell.replace(",", ".")) is not None else ""
        raise InvalidInputError(
            f"{self.path}: column {self.columns[j]!r} must hold numbers. "
            f"Got {cell.strip()[:40]!r} in line {line}.{comma}"
        )

    def _refuse_odd(self, j: int, column: np.ndarray, cells, numbers) -> None:
        """Infinities are never numbers of a row; missing values only where the model knows them."""
        endless = np.isinf(column)
        bad = endless if self.want.missing == "keep" else ~np.isfinite(column)
        if not bad.any():
            return
        at = int(np.flatnonzero(bad)[0])
        if endless[at]:
            raise InvalidInputError(
                f"{self.path}: column {self.columns[j]!r} must hold finite numbers. "
                f"Got {cells[at].strip()[:40]!r} in line {numbers[at]}."
            )
        raise InvalidInputError(missing_message(self.path, self.columns[j], f"line {numbers[at]}", self.want))


def missing_message(path: str, column: str, where: str, want: Want) -> str:
    """A missing value where there must be none."""
    if want.missing == "ask":
        return (
            f"{path}: every cell must hold a number. Got a missing value in column {column!r}, {where}. Fill it, drop "
            "the row, or give --allow-missing: the model takes missing values, and a missing feature will not move."
        )
    who = "training" if want.features is None else "the model"
    return (
        f"{path}: {who} does not take missing values (NaN). Got one in column {column!r}, {where}. "
        "Fill it or drop the row."
    )


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


# ---------------------------------------------------------------------- other tables


def _pick_arrays(path: str, columns: list[str], get: Callable, want: Want) -> Raw:
    """Take whole columns from a table in memory."""
    features, target, ignored = choose_columns(path, columns, want)
    parts = []
    for j in features:
        try:
            column = np.asarray(get(j), dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInputError(f"{path}: column {columns[j]!r} must hold numbers. Got something else.") from None
        bad = np.isinf(column) if want.missing == "keep" else ~np.isfinite(column)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            if np.isinf(column[row]):
                raise InvalidInputError(
                    f"{path}: column {columns[j]!r} must hold finite numbers. Got an infinity in row {row}."
                )
            raise InvalidInputError(missing_message(path, columns[j], f"row {row}", want))
        parts.append(column)
    labels = None if target is None else np.array([str(label) for label in np.asarray(get(target)).tolist()])
    X = np.column_stack(parts) if parts else np.zeros((0, 0))
    return Raw(np.ascontiguousarray(X), labels, [columns[j] for j in features], ignored)


def _read_parquet(path: str, want: Want) -> Raw:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InvalidInputError(
            f"{path}: reading Parquet needs pyarrow. Install it with: pip install pyarrow."
        ) from None
    if not Path(path).exists():
        raise InvalidInputError(f"{path}: there is no such file.")
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as error:
        raise InvalidInputError(f"{path}: must be a Parquet file. Got something else: {error}.") from None
    return _pick_arrays(path, list(table.column_names), lambda j: table.column(j).to_numpy(), want)


def _read_npz(path: str, want: Want) -> Raw:
    if not Path(path).exists():
        raise InvalidInputError(f"{path}: there is no such file.")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInputError(f"{path}: must be an NPZ file of plain arrays. Got something else: {error}.") from None
    if "X" not in content or content["X"].ndim < 2:
        raise InvalidInputError(f"{path}: must hold an array X of rows (and y of labels). Got {_few(content)}.")
    X = content["X"].reshape(len(content["X"]), -1)
    if want.target is None:
        return _pick_matrix(path, X, None, want)
    if want.target not in content or content[want.target].shape != (len(X),):
        raise InvalidInputError(
            f"{path}: the target must be one of its arrays, of {len(X)} labels. Got {want.target!r}; "
            f"the file has {_few(content)}."
        )
    return _pick_matrix(path, X, content[want.target], want)


def _pick_matrix(path: str, X: np.ndarray, y, want: Want, names: list[str] | None = None) -> Raw:
    if want.features is not None and X.shape[1] != want.features:
        raise InvalidInputError(f"{path}: there must be {want.features} features, as in the model. Got {X.shape[1]}.")
    columns = names or [str(j) for j in range(X.shape[1])]
    bare = Want(want.features, None, want.missing, None, want.header)
    raw = _pick_arrays(path, columns, lambda j: X[:, j], bare)
    labels = None if y is None else np.array([str(label) for label in np.asarray(y).tolist()])
    return Raw(raw.X, labels, raw.names, [])


def _read_dataset(path: str, want: Want) -> Raw:
    """``dataset:NAME`` is the test rows (to certify) or the training rows (to train) of a data set."""
    from ..datasets import load

    data = load(path.removeprefix("dataset:"))
    X, y = (data.X_train, data.y_train) if want.features is None else (data.X_test, data.y_test)
    names = getattr(data, "feature_names", None)
    return _pick_matrix(path, X, y if want.target is not None else None, want, list(names) if names else None)
