"""CatBoost: ``CatBoostClassifier`` objects and the JSON model file (read without CatBoost).

The rule is ``x > border`` goes right on float32 inputs; leaves are float64, times a scale, plus a bias. An
oblivious tree asks one split a level, the first split being the lowest bit of the leaf's number. Trees of the
other growing policies are nested splits. A live object is read through its own JSON, so that both ways meet
here.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

import numpy as np

from .._errors import InvalidModelError, TranslationError, must_be
from ..model import TreeEnsemble
from ..model.floats import just_above
from . import parts
from .parts import Imported, Options, Reference

WHAT = "the CatBoost model"
MAX_DEPTH = 20
MAX_NESTED = 400
_BINARY = ("Logloss", "CrossEntropy")
_MULTI = ("MultiClass", "MultiClassOneVsAll")


def from_content(content: Any, options: Options) -> Imported:
    """Translate the parsed JSON document."""
    floats, features, names = _features(content)
    loss = _loss(content)
    scale, bias = _scale_and_bias(content)
    outputs = len(bias)
    if (loss in _BINARY) != (outputs == 1):
        raise InvalidModelError(f"{WHAT} of loss {loss!r} states {outputs} outputs.")
    if "oblivious_trees" in content:
        trees = parts.dig(content, "oblivious_trees", list, WHAT)
        plain = [_oblivious(tree, number, floats, outputs) for number, tree in enumerate(trees)]
    else:
        trees = parts.dig(content, "trees", list, WHAT)
        plain = [_nested(tree, number, floats, outputs) for number, tree in enumerate(trees)]
    parts.check_size(sum(len(tree["feature"]) for tree in plain), outputs, WHAT)
    for tree in plain:
        tree["value"] = tree["value"] * scale
    info = content["model_info"]
    cut, slack = _decision(info, options, outputs)
    model = TreeEnsemble.from_trees(
        plain,
        features,
        base=bias,
        classes=_classes(info, options, max(2, outputs)),
        dtype="float32",
        cut=cut,
        decision_slack=slack,
        accepts_missing=True,
        feature_names=names,
        source={"library": "catboost", "version": _version(info), "objective": loss, "notes": []},
    )
    return Imported(model)


def from_live(source: Any, options: Options) -> Imported:
    """Translate a ``CatBoostClassifier`` (or a ``CatBoost`` object trained with a classifier's loss)."""
    kinds = {kind.__name__ for kind in type(source).__mro__}
    if "CatBoost" not in kinds or "CatBoostRegressor" in kinds or "CatBoostRanker" in kinds:
        raise TranslationError(f"CatBoost's {type(source).__name__} is not a classifier. treeproof loads classifiers.")
    if not source.is_fitted():
        raise parts.not_fitted(source)
    folder = tempfile.mkdtemp(prefix="treeproof-")
    path = os.path.join(folder, "model.json")
    try:
        _save(source, path)
        with open(path, "rb") as file:
            content = json.load(file)
    finally:
        if os.path.exists(path):
            os.remove(path)
        os.rmdir(folder)
    model = from_content(content, options).model
    p = options.decision_threshold

    def labels(X: np.ndarray) -> np.ndarray:
        if p is None:
            found = np.asarray(source.predict(X, prediction_type="Class")).reshape(-1)
            own = source.classes_  # none after training on probabilities
            return parts.relabelled(found, own if len(own) else np.arange(len(model.classes)), model)
        return model.classes[(source.predict(X, prediction_type="Probability")[:, 1] > p).astype(int)]

    def margin(X: np.ndarray) -> np.ndarray:
        return np.asarray(source.predict(X, prediction_type="RawFormulaVal"), dtype=np.float64).reshape(len(X), -1)

    return Imported(model, Reference(labels, margin))


def _save(source: Any, path: str) -> None:
    from catboost import CatBoostError

    try:
        source.save_model(path, format="json")
    except CatBoostError as error:
        reason = str(error).strip().split(": ", 1)[-1][:200]
        raise TranslationError(
            f"CatBoost cannot save the model as JSON: {reason}. treeproof translates numeric features only: train on "
            f"numbers instead of text and embeddings."
        ) from None


# ---------------------------------------------------------------- the document's parts


def _features(content: Any) -> tuple[list[tuple[int, bool]], int, tuple[str, ...] | None]:
    """For each float feature its column and whether NaN goes left; the number of columns; their names."""
    info = parts.dig(content, "features_info", dict, WHAT)
    for kind in ("categorical", "text", "embedding"):
        others = info.get(f"{kind}_features") or []
        if others:
            first = others[0] if isinstance(others, list) and isinstance(others[0], dict) else {}
            name = first.get("feature_id") or f"in column {first.get('flat_feature_index')}"
            raise TranslationError(
                f"the CatBoost model has the {kind} feature {name!r}, which treeproof does not translate. "
                f"Train on numbers for it (one-hot columns, for example) and load that model."
            )
    if content.get("ctrs") or content.get("ctr_data"):
        raise TranslationError("the CatBoost model uses statistics of categorical features (CTRs). Train on numbers.")
    floats: list[tuple[int, bool]] = []
    words = []
    for position, feature in enumerate(parts.dig(info, "float_features", list, WHAT)):
        what = f"{WHAT}: float feature {position}"
        if parts.whole(feature, "feature_index", what) != position:
            raise InvalidModelError(f"{what} is out of order.")
        treatment = parts.dig(feature, "nan_value_treatment", str, what)
        if treatment not in ("AsIs", "AsFalse", "AsTrue"):
            raise InvalidModelError(must_be(f"{what}: nan_value_treatment", "AsIs, AsFalse or AsTrue", treatment))
        floats.append((parts.whole(feature, "flat_feature_index", what, high=2**31 - 2), treatment != "AsTrue"))
        words.append(feature.get("feature_id"))
    columns = [column for column, _ in floats]
    if not floats or len(set(columns)) != len(columns):
        raise InvalidModelError(f"{WHAT} must state its columns, each once.")
    count = max(columns) + 1
    named = count == len(words) and all(isinstance(word, str) for word in words)
    names = [word for _, word in sorted(zip(columns, words, strict=True))] if named else None
    return floats, count, parts.feature_names(names, count)


def _loss(content: Any) -> str:
    params = parts.dig(content, "model_info", dict, WHAT).get("params")
    if not isinstance(params, dict) or "loss_function" not in params:
        raise TranslationError(
            "the CatBoost model does not state its loss (a sum of models, for example). Train one classifier instead."
        )
    loss = parts.dig(content, "model_info.params.loss_function.type", str, WHAT)
    if loss not in _BINARY + _MULTI:
        raise TranslationError(
            f"the CatBoost model's loss is {loss!r}. treeproof loads classifiers: {', '.join(_BINARY + _MULTI)}."
        )
    return loss


def _scale_and_bias(content: Any) -> tuple[float, np.ndarray]:
    pair = parts.dig(content, "scale_and_bias", list, WHAT)
    if len(pair) != 2:
        raise InvalidModelError(must_be(f"{WHAT}: scale_and_bias", "a scale and a bias", pair))
    scale = parts.numbers([pair[0]], f"{WHAT}: scale")[0]
    bias = parts.numbers(pair[1] if isinstance(pair[1], list) else [pair[1]], f"{WHAT}: bias")
    if not np.isfinite(scale) or len(bias) < 1:
        raise InvalidModelError(must_be(f"{WHAT}: scale_and_bias", "a finite scale and a bias", pair))
    return float(scale), bias


def _split(content: Any, floats: list[tuple[int, bool]], what: str) -> tuple[int, float, bool]:
    """Column, border and NaN's direction of a split."""
    kind = parts.dig(content, "split_type", str, what)
    if kind != "FloatFeature":
        raise TranslationError(
            f"the CatBoost model has a split of type {kind!r}. treeproof translates splits on numeric features."
        )
    index = parts.whole(content, "float_feature_index", what, high=len(floats) - 1)
    border = parts.numbers([content.get("border")], f"{what}: border")[0]
    return (floats[index][0], float(parts.float32(border)), floats[index][1])


def _oblivious(content: Any, number: int, floats, outputs: int) -> dict[str, np.ndarray]:
    """A full binary tree: the last split at the root, so that leaf numbers read from left to right."""
    what = f"{WHAT}, tree {number}"
    splits = parts.dig(content, "splits", (list, type(None)), what) or []
    values = parts.numbers(parts.dig(content, "leaf_values", list, what), f"{what}: leaf_values")
    depth = len(splits)
    if depth > MAX_DEPTH or len(values) != outputs << depth:
        raise InvalidModelError(
            f"{what} has {depth} splits and {len(values)} leaf values; {outputs} for each of 2^depth leaves are needed."
        )
    inner = (1 << depth) - 1
    rules = [_split(split, floats, what) for split in reversed(splits)]
    level = np.repeat(np.arange(depth), 1 << np.arange(depth)) if depth else np.zeros(0, dtype=np.int64)
    columns = np.array([rule[0] for rule in rules] or [0])
    borders = np.array([rule[1] for rule in rules] or [0.0])
    missing = np.array([rule[2] for rule in rules] or [False])
    leaves = 1 << depth
    ends = np.full(leaves, -1)
    return {
        "feature": np.concatenate([columns[level], ends]),
        "threshold": np.concatenate([just_above(borders, "float32")[level], np.zeros(leaves)]),
        "left": np.concatenate([2 * np.arange(inner) + 1, ends]),
        "right": np.concatenate([2 * np.arange(inner) + 2, ends]),
        "value": np.concatenate([np.zeros((inner, outputs)), values.reshape(leaves, outputs)]),
        "missing_left": np.concatenate([missing[level], np.zeros(leaves, dtype=bool)]),
    }


def _nested(content: Any, number: int, floats, outputs: int) -> dict[str, np.ndarray]:
    """A tree of nested splits (grow_policy Depthwise or Lossguide)."""
    what = f"{WHAT}, tree {number}"
    rows: list[tuple[int, float, bool, np.ndarray]] = []
    links: list[list[int]] = []
    stack: list[tuple[Any, int, int, int]] = [(content, -1, 0, 0)]
    while stack:
        node, parent, side, depth = stack.pop()
        place = len(rows)
        if parent >= 0:
            links[parent][side] = place
        links.append([-1, -1])
        if not isinstance(node, dict) or depth > MAX_NESTED:
            raise InvalidModelError(f"{what} is damaged: a node is not a table, or nested too deeply.")
        if "split" in node:
            column, border, missing = _split(node["split"], floats, what)
            rows.append((column, float(just_above(border, "float32")), missing, np.zeros(outputs)))
            for index, name in ((1, "right"), (0, "left")):
                stack.append((parts.dig(node, name, dict, what), place, index, depth + 1))
        else:
            value = parts.dig(node, "value", (int, float, list), what)
            value = parts.numbers(value if isinstance(value, list) else [value], f"{what}: value", size=outputs)
            rows.append((-1, 0.0, False, value))
    feature, threshold, missing, values = zip(*rows, strict=True)
    children = np.array(links)
    return {
        "feature": np.array(feature),
        "threshold": np.array(threshold),
        "left": children[:, 0],
        "right": children[:, 1],
        "value": np.array(values),
        "missing_left": np.array(missing),
    }


def _classes(info: dict, options: Options, count: int) -> np.ndarray:
    stated = info.get("class_params")
    names = stated.get("class_names") if isinstance(stated, dict) else None
    if stated is None or not isinstance(names, list) or len(names) != count:
        return parts.labels_or(options, None, count)
    if any(isinstance(name, (dict, list)) or name is None for name in names):
        raise InvalidModelError(must_be(f"{WHAT}: class_names", "a list of labels", names))
    if stated.get("class_label_type") == "Float":
        names = parts.numbers(names, f"{WHAT}: class_names")
    return parts.labels_or(options, names, count)


def _decision(info: dict, options: Options, outputs: int) -> tuple[float, float]:
    p = parts.probability(options, outputs)
    if p is None and outputs == 1 and info.get("binclass_probability_threshold") is not None:
        stated = info["binclass_probability_threshold"]  # CatBoost writes it as text
        try:
            p = float(stated) if isinstance(stated, (str, int, float)) else np.nan
        except (ValueError, OverflowError):
            p = np.nan
        if not 0 < p < 1:
            raise InvalidModelError(must_be(f"{WHAT}: probability threshold", "strictly between 0 and 1", stated))
    if p is None:
        return 0.0, 0.0
    return (0.0 if p == 0.5 else parts.logit(p)), parts.sigmoid_slack(p, 52)


def _version(info: dict) -> str:
    for line in str(info.get("catboost_version_info", "")).splitlines():
        name, _, value = line.strip().partition(": ")
        if name == "Branch" and value:
            return value.rsplit("/", 1)[-1].removeprefix("v")
    return "unknown"
