"""Results out, a row each, without loss: CSV, JSON or Parquet.

Floats are written so that they read back as the same bits. A witness is its changes only, as
``{"feature": [from, to]}``.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import InvalidInputError
from .console import plain
from .reading import Rows

KINDS = (".csv", ".json", ".parquet")


def result_columns(results, rows: Rows, distance: np.ndarray) -> dict[str, list]:
    """One list a column: the row's number in the file, label, prediction, verdict, bounds, witness."""
    columns: dict[str, list] = {"row": rows.numbers.tolist()}
    if results.y is not None:
        columns["label"] = results.y.tolist()
    columns["predicted"] = results.predicted.tolist()
    if hasattr(results, "status"):
        from ..results import Status

        columns["status"] = [Status(code).name for code in results.status]
        columns["margin_lower"] = results.lower.tolist()
        columns["margin_upper"] = results.upper.tolist()
    else:
        columns["radius_lower"] = results.lower.tolist()
        columns["radius_upper"] = results.upper.tolist()
        columns["exact"] = results.exact.tolist()
    columns["distance"] = distance.tolist()
    columns["method"] = results.method.tolist()
    columns["seconds"] = [round(float(number), 9) for number in results.seconds]
    columns["changes"] = [changes(results, row, rows.names) for row in range(len(results))]
    return columns


def changes(results, row: int, names) -> dict[str, list[float]] | None:
    """What a row's witness changes, ``{name: [from, to]}``; None where there is no witness."""
    if not results.witnesses.present[row]:
        return None
    columns, values = results.witnesses.changes(row)
    before = results.X[row].astype(results.dtype)
    return {
        names[j]: [float(before[j]), float(value)] for j, value in zip(columns.tolist(), values.tolist(), strict=True)
    }


def write_results(path: str, columns: dict[str, list], facts: dict[str, Any]) -> None:
    """Write the rows; `facts` (errors, threat, model) go into the JSON file and the Parquet metadata."""
    kind = Path(path).suffix.lower()
    try:
        if kind == ".csv":
            _write_csv(path, columns)
        elif kind == ".json":
            Path(path).write_text(json.dumps(plain({**facts, "rows": columns}), allow_nan=False), encoding="utf-8")
        elif kind == ".parquet":
            _write_parquet(path, columns, facts)
        else:
            raise InvalidInputError(f"{path}: the file's name must end in {', '.join(KINDS)}. Got {kind!r}.")
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be written: {error.strerror or error}.") from None


def _texts(changed: list) -> list[str | None]:
    return [None if one is None else json.dumps(one) for one in changed]


def _write_csv(path: str, columns: dict[str, list]) -> None:
    flat = {**columns, "changes": _texts(columns["changes"])}
    with open(path, "w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(flat)
        writer.writerows(zip(*flat.values(), strict=True))


def _write_parquet(path: str, columns: dict[str, list], facts: dict[str, Any]) -> None:
    import pyarrow
    from pyarrow import parquet

    flat = {**columns, "changes": _texts(columns["changes"])}
    table = pyarrow.table({name: pyarrow.array(column) for name, column in flat.items()})
    table = table.replace_schema_metadata({"treeproof": json.dumps(plain(facts), allow_nan=False)})
    parquet.write_table(table, path)
