"""treeproof's own model file: versioned JSON, data only. The format is described in docs/model-format.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import InvalidModelError, must_be
from .link import Link

if TYPE_CHECKING:
    from .ensemble import TreeEnsemble

FORMAT = "treeproof-ensemble"
VERSION = 1
_COLUMNS = ("feature", "threshold", "left", "right", "value", "missing_left", "tree_offsets", "base")
_PLAIN = (
    "n_features",
    "zero_class",
    "cut",
    "dtype",
    "sum_dtype",
    "decision_slack",
    "link",
    "accepts_missing",
    "feature_names",
    "source",
)


def to_json(model: TreeEnsemble) -> str:
    """The model as JSON text; floats are written so that they read back as the same bits."""
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for name in _PLAIN:
        content[name] = getattr(model, name)
    content["classes"] = model.classes.tolist()
    for name in _COLUMNS:
        content[name] = getattr(model, name).tolist()
    # JSON has no infinity; a split at infinity sends every number one way
    content["threshold"] = [number if np.isfinite(number) else str(number) for number in content["threshold"]]
    try:
        return json.dumps(content, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidModelError(f"the model cannot be written as JSON: {error}.") from None


def from_json(text: str | bytes) -> TreeEnsemble:
    """Read `to_json`'s text."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidModelError(f"a treeproof model must be JSON text. Got something else instead: {error}.") from None
    return from_content(content)


def from_content(content) -> TreeEnsemble:
    """Build the ensemble from a file's parsed content."""
    from .ensemble import TreeEnsemble

    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidModelError(f"a treeproof model file must have format {FORMAT!r}. Got another kind of file.")
    version = content.get("version")
    if version != VERSION or isinstance(version, bool):
        hint = "Update treeproof, or save the model again with this version."
        raise InvalidModelError(must_be("the model file's version", str(VERSION), version, hint))
    content = {"link": Link(), **content}  # files older than the field have none
    lost = [name for name in (*_COLUMNS, *_PLAIN, "classes") if name not in content]
    if lost:
        raise InvalidModelError(f"the model file lacks {lost[0]!r}.")
    try:
        columns: dict[str, Any] = {
            name: np.asarray(content[name], dtype=np.float64 if name in ("threshold", "value", "base") else None)
            for name in _COLUMNS
        }
        for name in ("feature", "left", "right", "tree_offsets"):
            columns[name] = _whole(columns[name], name)
        if columns["value"].size == 0:
            columns["value"] = np.zeros((0, len(columns["base"])))
        if columns["missing_left"].size and columns["missing_left"].dtype != bool:
            raise InvalidModelError("the model file's missing_left must be a list of true and false.")
        plain = {name: content[name] for name in _PLAIN}
        _check_plain(plain)
        return TreeEnsemble(**columns, **plain, classes=content["classes"])
    except InvalidModelError:
        raise
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InvalidModelError(f"the model file has a field of the wrong form: {error}.") from None


def _whole(column: np.ndarray, name: str) -> np.ndarray:
    if column.size == 0:
        return np.zeros(0, dtype=np.int64)
    if column.dtype.kind not in "iu" or np.any(np.abs(column) > 2**31 - 1):
        raise InvalidModelError(f"the model file's {name} must be a list of whole numbers below 2^31.")
    return column.astype(np.int64)


def _check_plain(plain: dict) -> None:
    kinds: dict[str, Any] = {
        "n_features": int,
        "zero_class": int,
        "cut": (int, float),
        "dtype": str,
        "sum_dtype": str,
        "decision_slack": (int, float),
        "accepts_missing": bool,
        "source": dict,
        "feature_names": (list, type(None)),
    }
    for name, kind in kinds.items():
        # a bool is an int to Python, not to this format
        if not isinstance(plain[name], kind) or (kind is not bool and isinstance(plain[name], bool)):
            raise InvalidModelError(f"the model file's {name} has the wrong type: {type(plain[name]).__name__}.")
    notes = plain["source"].get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise InvalidModelError("the model file's source has notes that are not a list of texts.")


def save(model: TreeEnsemble, path: str | Path) -> None:
    Path(path).write_text(to_json(model), encoding="utf-8")


def load(path: str | Path) -> TreeEnsemble:
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InvalidModelError(f"the model file {str(path)!r} cannot be read: {error.strerror}.") from None
    return from_json(text)
