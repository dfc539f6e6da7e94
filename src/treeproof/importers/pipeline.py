"""A scikit-learn ``Pipeline`` of per-column scalers and a classifier, as one ensemble on the raw columns.

The scaling goes into the thresholds. Not by algebra: each new threshold is the first float64 number that the
pipeline's own float arithmetic carries to the old threshold or beyond, found by bisection over the floats.
Every step is a rising function of the number (also in floats), so this is exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._errors import TranslationError
from ..model import TreeEnsemble
from . import parts
from .parts import Imported, Options, Reference

SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


def from_live(source: Any, options: Options) -> Imported:
    """Translate a fitted pipeline."""
    from .front import live

    *steps, (last_name, last) = _flat(source)
    steps = [(name, step) for name, step in steps if step is not None and step != "passthrough"]
    if last is None or isinstance(last, str):
        raise TranslationError(f"the pipeline's last step {last_name!r} must be a classifier of trees. Got none.")
    for name, step in steps:
        if type(step).__name__ not in SCALERS or not type(step).__module__.startswith("sklearn."):
            raise TranslationError(
                f"the pipeline's step {name!r} is a {type(step).__name__}, which treeproof cannot pull "
                f"into the "
                f"thresholds (it can: {', '.join(SCALERS)}). Load the last step alone and pass transformed "
                f"rows."
            )
    inner = live(last, options)
    if not steps:
        return inner
    actions = [action for name, step in steps for action in _actions(name, step, inner.model.n_features)]
    model = _pulled(inner.model, actions)
    names = parts.feature_names(getattr(source, "feature_names_in_", None), model.n_features)
    facts = dict(inner.model.source)
    facts["notes"] = [
        *facts["notes"],
        f"on the raw columns: {', '.join(type(step).__name__ for _, step in steps)} pulled into the "
        f"thresholds "
        f"(for float64 rows; the pipeline computes otherwise on float32 rows)",
    ]
    model = replace(model, feature_names=names, source=facts)
    return Imported(model, _reference([step for _, step in steps], actions, inner), inner.rounds)


def _flat(source: Any) -> list[tuple[str, Any]]:
    """The steps, those of pipelines inside the pipeline in their place."""
    steps: list[tuple[str, Any]] = []
    for name, step in source.steps:
        steps += _flat(step) if type(step).__name__ == "Pipeline" else [(name, step)]
    return steps


def _reference(scalers: list, actions: list, inner: Imported) -> Reference | None:
    if inner.reference is None:
        return None

    def scaled(X: np.ndarray) -> np.ndarray:
        for scaler in scalers:
            X = scaler.transform(X)
        return X

    margin, labels = inner.reference.margin, inner.reference.labels
    return Reference(
        lambda X: labels(scaled(X)),
        None if margin is None else (lambda X: margin(scaled(X))),
        inner.reference.scale,
        lambda X: _repaired(X, actions, inner.model.dtype),
    )


def _repaired(X: np.ndarray, actions: list, dtype: str) -> np.ndarray:
    """Rows without the numbers that scaling carries beyond the classifier's float type: the library refuses them."""
    feature = np.arange(X.shape[1])
    beyond = np.isinf(_apply(actions, X, feature, dtype))
    if not beyond.any():
        return X
    middle = _first_reaching(actions, feature, np.zeros(len(feature)), dtype)
    return np.where(beyond, np.where(np.isfinite(middle), middle, 0.0), X)


def _pulled(model: TreeEnsemble, actions: list) -> TreeEnsemble:
    """The model with thresholds on the raw float64 columns."""
    inner = np.flatnonzero((model.feature >= 0) & np.isfinite(model.threshold))
    threshold = np.array(model.threshold)
    threshold[inner] = _first_reaching(actions, model.feature[inner], model.threshold[inner], model.dtype)
    return replace(model, threshold=threshold, dtype="float64")


def _actions(name: str, step: Any, features: int) -> list[tuple[str, np.ndarray]]:
    """A scaler's own float operations, in its own order, with one parameter a column."""
    kind = type(step).__name__
    found: list[tuple[str, Any]] = []
    if kind == "StandardScaler":
        found = [
            ("subtract", step.mean_ if step.with_mean else None),
            ("divide", step.scale_ if step.with_std else None),
        ]
    elif kind == "MinMaxScaler":
        found = [("multiply", step.scale_), ("add", step.min_)]
    elif kind == "MaxAbsScaler":
        found = [("divide", step.scale_)]
    elif kind == "RobustScaler":
        found = [
            ("subtract", step.center_ if step.with_centering else None),
            ("divide", step.scale_ if step.with_scaling else None),
        ]
    actions = []
    for action, parameter in found:
        if parameter is None:
            continue
        parameter = np.asarray(parameter)
        good = np.isfinite(parameter) & (parameter > 0 if action in ("divide", "multiply") else True)
        if parameter.shape != (features,) or not np.all(good):
            column = int(np.flatnonzero(~good)[0]) if parameter.shape == (features,) else 0
            raise TranslationError(
                f"the pipeline's step {name!r} has no finite (and, as a scale, positive) parameter for column "
                f"{column}. Train without that column; it may have been missing in every row."
            )
        actions.append((action, parameter))
    if getattr(step, "clip", False):
        low, high = step.feature_range if kind == "MinMaxScaler" else (-1.0, 1.0)
        actions.append(("clip", np.array([low, high], dtype=np.float64)))
    return actions


def _apply(actions: list[tuple[str, np.ndarray]], x: np.ndarray, feature: np.ndarray, dtype: str) -> np.ndarray:
    """The pipeline's arithmetic on single numbers of given columns, up to what the model compares."""
    with np.errstate(all="ignore"):
        for action, parameter in actions:
            if action == "clip":
                x = np.clip(x, parameter[0], parameter[1])
            else:
                x = getattr(np, action)(x, parameter[feature])
        return x.astype(dtype).astype(np.float64)


def _first_reaching(actions, feature: np.ndarray, target: np.ndarray, dtype: str) -> np.ndarray:
    """The smallest float64 of each column that comes out at or above its target; infinity where none does."""
    top = np.finfo(np.float64).max
    low = np.full(len(feature), _rank(np.array([-top]))[0])
    high = np.full(len(feature), _rank(np.array([top]))[0])

    def reaches(rank: np.ndarray) -> np.ndarray:
        return _apply(actions, _number(rank), feature, dtype) >= target

    always, never = reaches(low), ~reaches(high)
    for _ in range(64):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = reaches(middle)
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + 1, high))
    found = _number(high)
    return np.where(never, np.inf, np.where(always, -np.inf, found))


def _rank(x: np.ndarray) -> np.ndarray:
    """Floats as integers in the same order."""
    bits = (x + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _number(rank: np.ndarray) -> np.ndarray:
    """The floats of `_rank`."""
    return np.where(rank >= 0, rank, np.int64(-(2**63)) - rank).view(np.float64) + 0.0
