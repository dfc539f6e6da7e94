"""``treeproof.load``: from the models that people have to a `TreeEnsemble` that is the same function.

A live object is translated and then compared with its own library (`check`); a file is read without the
library, and the result says that nothing could be compared.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from .._errors import InvalidInputError, InvalidModelError, TranslationError
from ..model import TreeEnsemble
from ..model import files as own
from . import detect, parts
from .parts import Imported, Options


def load(
    source: Any,
    *,
    decision_threshold: float | None = None,
    classes: Sequence | None = None,
    iteration_range: tuple[int, int] | None = None,
    check: bool = True,
) -> TreeEnsemble:
    """Read a tree model as a `TreeEnsemble` that is exactly the same function.

    Parameters
    ----------
    source : estimator, booster, path, bytes or TreeEnsemble
        A live classifier of XGBoost, LightGBM, CatBoost or scikit-learn (also a ``Pipeline`` of scalers and
        one of these); or a model file (its path, or its bytes), read without its library: XGBoost JSON or
        UBJ, LightGBM text, CatBoost JSON, treeproof JSON. A treeproof estimator gives its ``ensemble_``, and
        a `TreeEnsemble` comes back as it is.
    decision_threshold : float, optional
        Two classes: predict class 1 where its probability exceeds this, instead of the library's own rule.
    classes : sequence, optional
        Labels of the classes, for files, which often do not hold them.
    iteration_range : (int, int), optional
        XGBoost and LightGBM: the boosting rounds ``[first, end)`` to keep, instead of those that the
        library's own ``predict`` uses.
    check : bool
        Compare a live model with its library before returning: raw scores and classes at every threshold with
        its float neighbours, at random rows and at missing values.

    Returns
    -------
    TreeEnsemble
        ``print(model.summary())`` says what was read.

    Raises
    ------
    TranslationError
        The model is of a kind that cannot be translated exactly, or differs from its library (the point is
        shown).
    InvalidModelError
        The file is damaged.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> import treeproof
    >>> forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(*load_iris(return_X_y=True))
    >>> treeproof.load(forest).n_trees
    5
    """
    options = Options(decision_threshold, iteration_range, classes)
    if isinstance(source, (str, os.PathLike)):
        found = _from_bytes(detect.read_file(source), options, Path(source).name)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        found = _from_bytes(bytes(source), options, "bytes")
    elif isinstance(source, TreeEnsemble):
        _no_options(options, "a TreeEnsemble")
        return source
    elif isinstance(getattr(source, "ensemble_", None), TreeEnsemble):
        _no_options(options, "a treeproof estimator")
        return source.ensemble_
    else:
        found = live(source, options)
    return _compared(found, check)


def live(source: Any, options: Options) -> Imported:
    """Translate a live object, not yet compared with its library."""
    library = detect.library_of(source)
    if library is None:
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise TranslationError(
            f"source must be a model of XGBoost, LightGBM, CatBoost or scikit-learn, a model file or a "
            f"TreeEnsemble. "
            f"Got a {kind} instead."
        )
    if options.iteration_range is not None and library not in ("xgboost", "lightgbm"):
        parts.no_range(options, f"a model of {library}")
    return import_module(f".{library}", __package__).from_live(source, options)


def _from_bytes(data: bytes, options: Options, name: str) -> Imported:
    kind, content = detect.content_of(data)
    if kind == "treeproof":
        _no_options(options, "a treeproof model file")
        return Imported(own.from_content(content))
    if options.iteration_range is not None and kind not in ("xgboost", "lightgbm"):
        parts.no_range(options, f"a model file of {kind}")
    try:
        found = import_module(f".{kind}", __package__).from_content(content, options)
    except (RecursionError, MemoryError, OverflowError) as error:
        raise InvalidModelError(f"the {kind} model file is damaged: {type(error).__name__}.") from None
    source = found.model.source
    notes = [*source["notes"], "read from a file: not compared with the library's own predictions"]
    return Imported(replace(found.model, source={**source, "file": name, "notes": notes}))


def _compared(found: Imported, check: bool) -> TreeEnsemble:
    """The model, once it agrees with its library."""
    model, reference = found.model, found.reference
    if reference is None:
        return model
    notes = list(model.source.get("notes", []))
    if not check:
        return replace(model, source={**model.source, "notes": [*notes, "check=False: not compared with the library"]})
    from .check import verify

    try:
        result = verify(model, reference)
    except TranslationError:
        raise
    except Exception as error:
        raise TranslationError(
            f"the comparison with the library's own predictions failed, {type(error).__name__}: {str(error)[:300]}. "
            f"Nothing was loaded; please report this model, or load it uncompared with check=False."
        ) from error
    where = "all thresholds"
    if result["splits_compared"] < result["splits"]:
        where = f"{result['splits_compared']} of {result['splits']} splits (a random choice)"
    notes.append(f"equal to the library's own predictions on {result['rows']} rows around {where}")
    if result["within_float_error"]:
        notes.append(f"on {result['within_float_error']} of them the class hangs on the rounding of the sum alone")
    return replace(model, source={**model.source, "check": result, "notes": notes})


def _no_options(options: Options, what: str) -> None:
    for name in ("decision_threshold", "classes", "iteration_range"):
        if getattr(options, name) is not None:
            raise InvalidInputError(f"{name} cannot be used with {what}. Leave it out.")
