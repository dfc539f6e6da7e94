"""Which library a source comes from: an object by its class, a file by its content (never by its name)."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from .._errors import InvalidModelError, TranslationError
from ..model import files as own

MAX_BYTES = 2**31

_XGB = "Save the model with booster.save_model('model.json') (or .ubj) and load that file."
# content that is recognised in order to say what to do instead: first bytes, what it is, the way out
_REFUSED = (
    (b"binf", "XGBoost's old binary format", _XGB),
    (b"bs64", "XGBoost's old binary format", _XGB),
    (b"booster[", "a text dump of XGBoost, which loses digits", _XGB),
    (b"0:[", "a text dump of XGBoost, which loses digits", _XGB),
    (
        b"CBM1",
        "CatBoost's binary format",
        "Save it with model.save_model('model.json', format='json') and load that.",
    ),
    (
        b"\x80",
        "a pickle, which can run code when it is read",
        "Read it yourself and pass the live estimator.",
    ),
    (b"PK\x03\x04", "a zip archive", "Unpack it, or pass the live estimator."),
    (b"\x1f\x8b", "a gzip file", "Unpack it, or (if it is a joblib pickle) pass the live estimator."),
    (b"x\x9c", "a zlib file (a compressed joblib pickle?)", "Pass the live estimator."),
    (b"x\x01", "a zlib file (a compressed joblib pickle?)", "Pass the live estimator."),
    (b"BZh", "a bzip2 file (a compressed joblib pickle?)", "Pass the live estimator."),
    (b"\xfd7zXZ", "an xz file (a compressed joblib pickle?)", "Pass the live estimator."),
    (b"<?xml", "an XML file (PMML?)", "Export from the training library instead; see docs/guide/importing.md."),
    (b"<PMML", "a PMML file", "Export from the training library instead; see docs/guide/importing.md."),
)
_KNOWN = (
    "treeproof reads XGBoost JSON and UBJ, LightGBM text models, CatBoost JSON and its own JSON. If this "
    "is XGBoost's "
    "old binary format, load it with an XGBoost before 3.1 and save it as JSON."
)


def read_file(path: str | os.PathLike) -> bytes:
    """A model file's bytes."""
    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise InvalidModelError(f"the model file {str(path)!r} must be a regular file.")
        if facts.st_size > MAX_BYTES:
            raise InvalidModelError(
                f"the model file {str(path)!r} must be below {MAX_BYTES} bytes. Got {facts.st_size} instead."
            )
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidModelError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidModelError(f"the model file {str(path)!r} cannot be read: {reason}.") from None


def content_of(data: bytes) -> tuple[str, Any]:
    """The kind of a file ("treeproof", "xgboost", "catboost" or "lightgbm") and its parsed content."""
    if not data.strip():
        raise InvalidModelError("the model file is empty.")
    for first, what, way_out in _REFUSED:
        if data.startswith(first):
            raise TranslationError(f"the model file is {what}. {way_out}")
    if data[:4] == b"tree" and data[4:5] in (b"\n", b"\r"):
        return "lightgbm", data
    if data[:1] == b"{" and data[1:2] in (b"i", b"U", b"I", b"l", b"L", b"#", b"$", b"N"):
        from . import ubj

        return kind_of(ubj.loads(data))
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        try:
            return kind_of(json.loads(data))
        except (ValueError, RecursionError) as error:
            if isinstance(error, (InvalidModelError, TranslationError)):
                raise
            reason = str(error)[:200] or "it is nested too deeply"
            raise InvalidModelError(f"the model file looks like JSON but is damaged: {reason}.") from None
    raise TranslationError(f"the model file is of no known kind. {_KNOWN}")


def kind_of(content: Any) -> tuple[str, Any]:
    """The kind of a parsed JSON document."""
    if isinstance(content, list):
        raise TranslationError(f"the model file is a list: a JSON dump of XGBoost, which loses digits. {_XGB}")
    if isinstance(content, dict):
        if content.get("format") == own.FORMAT:
            return "treeproof", content
        if "learner" in content:
            return "xgboost", content
        if "oblivious_trees" in content or ("trees" in content and "features_info" in content):
            return "catboost", content
        if "tree_info" in content:
            raise TranslationError(
                "the model file is LightGBM's JSON dump, which cannot be read back exactly. "
                "Save the model with booster.save_model('model.txt') and load that file."
            )
    raise TranslationError(f"the model file is JSON of no known kind. {_KNOWN}")


def library_of(source: Any) -> str | None:
    """The library of a live object, by the classes that it is made of; nothing is imported."""
    for kind in type(source).__mro__:
        root = (kind.__module__ or "").split(".")[0]
        if root in ("xgboost", "lightgbm", "catboost", "sklearn"):
            return root
    return None
