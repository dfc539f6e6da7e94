"""XGBoost: ``Booster`` and ``XGBClassifier``, and the native JSON and UBJ files (read without XGBoost).

The rule is ``x < threshold`` goes left on float32 inputs; leaves are float32 and are added in float32, tree
after tree, from the base score. A live object is read through its own UBJ bytes, so that both ways meet here.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from .._errors import InvalidModelError, TranslationError, must_be
from ..model import TreeEnsemble
from ..model.link import Link
from . import parts, ubj
from .parts import Imported, Options, Reference

WHAT = "the XGBoost model"

# XGBoost's float32 sigmoid, 1 / (1 + exp(-s)), first exceeds 0.5 just above this score: a tiny positive score
# is
# still class 0. The slack allows for another C library's expf (a few units in the last place).
LOGISTIC_CUT = 1.5 * 2.0**-24
LOGISTIC_SLACK = 2.0**-22
# softmax in float32 can round two nearly equal scores to one probability, and then the first class wins
SOFTMAX_SLACK = 2.0**-21

_BINARY = ("binary:logistic", "binary:logitraw", "binary:hinge")
_MULTI = ("multi:softprob", "multi:softmax")

BOOSTER_FIELDS = ("name", "model", "gbtree", "weight_drop")
MODEL_FIELDS = ("trees", "tree_info", "iteration_indptr", "gbtree_model_param", "cats", "weight_drop")


def from_content(content: Any, options: Options, sklearn: bool | None = None) -> Imported:
    """Translate the parsed JSON or UBJ document.

    Parameters
    ----------
    content : dict
    options : Options
    sklearn : bool, optional
        Whether the model predicts as an ``XGBClassifier`` does (best iteration only); by default as the file
        says.
    """
    objective = parts.dig(content, "learner.objective.name", str, WHAT)
    booster, drop = _booster(content)
    outputs = _outputs(content, objective)
    attributes = content["learner"].get("attributes")
    attributes = attributes if isinstance(attributes, dict) else {}
    if sklearn is None:
        sklearn = "scikit_learn" in attributes
    features = parts.whole(content, "learner.learner_model_param.num_feature", WHAT, low=1)
    names = content["learner"].get("feature_names")
    trees = parts.dig(booster, "model.trees", list, WHAT)
    if not trees:
        raise TranslationError("the XGBoost model has no trees. Train it for a round at least.")
    info = parts.numbers(
        parts.dig(booster, "model.tree_info", (list, np.ndarray), WHAT),
        f"{WHAT}: tree_info",
        integer=True,
        size=len(trees),
    )
    if len(info) and not 0 <= info.min() <= info.max() < outputs:
        raise InvalidModelError(must_be(f"{WHAT}: tree_info", f"classes 0 to {outputs - 1}", int(info.max())))
    _check_size(trees, outputs)
    (first, last), kept, notes = _kept(booster, attributes, options, sklearn, outputs)
    plain = []
    for number in range(first, last):
        weight = 1.0 if drop is None else drop[number]
        tree = _tree(trees[number], number, names)
        tree["value"] = parts.spread(parts.float32(tree["value"] * weight), int(info[number]), outputs)
        plain.append(tree)
    base = _base(content, objective, outputs)
    cut, slack = _decision(objective, options, outputs, sklearn)
    if drop is not None:
        slack += _dart_slack(plain, base, len(trees))
    version = content.get("version")
    version = ".".join(map(str, version)) if isinstance(version, (list, np.ndarray)) else "unknown"
    model = TreeEnsemble.from_trees(
        plain,
        features,
        base=base,
        classes=parts.labels_or(options, None, max(2, outputs)),
        dtype="float32",
        sum_dtype="float32",
        cut=cut,
        decision_slack=slack,
        link=Link("softmax") if objective == "multi:softprob" else Link(),
        accepts_missing=True,
        feature_names=parts.feature_names(names, features),
        source={"library": "xgboost", "version": version, "objective": objective, "notes": notes},
    )
    return Imported(model, rounds=kept)


def from_live(source: Any, options: Options) -> Imported:
    """Translate a ``Booster`` or ``XGBClassifier``."""
    kinds = {kind.__name__ for kind in type(source).__mro__}
    sklearn = "XGBModel" in kinds
    if not sklearn and "Booster" not in kinds:
        raise TranslationError(f"XGBoost's {type(source).__name__} is not a model. Pass its Booster or XGBClassifier.")
    if sklearn and "XGBClassifier" not in kinds:
        raise TranslationError(f"XGBoost's {type(source).__name__} is not a classifier. treeproof loads classifiers.")
    if sklearn:
        missing = getattr(source, "missing", math.nan)
        if not (isinstance(missing, (float, np.floating)) and math.isnan(missing)):
            raise TranslationError(
                f"the XGBClassifier treats {missing!r} as missing, which treeproof does not translate. "
                f"Replace {missing!r} by NaN in the data and leave the parameter 'missing' at its default."
            )
        if not source.__sklearn_is_fitted__():
            raise parts.not_fitted(source)
        booster = source.get_booster()
    else:
        booster = source
    found = from_content(ubj.loads(_saved(booster)), options, sklearn=sklearn)
    return Imported(found.model, _reference(source, booster, found, options, sklearn), found.rounds)


def _saved(booster: Any) -> bytes:
    """The booster's own UBJ bytes."""
    from xgboost.core import XGBoostError

    try:
        return bytes(booster.save_raw(raw_format="ubj"))
    except XGBoostError as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise TranslationError(f"XGBoost cannot save the Booster; is it trained? It says: {reason}") from None


def _reference(source: Any, booster: Any, found: Imported, options: Options, sklearn: bool) -> Reference:
    import xgboost

    model, kept = found.model, found.rounds
    threshold = 0.5 if options.decision_threshold is None else np.float32(options.decision_threshold)
    objective = model.source["objective"]

    def raw(X: np.ndarray, margin: bool) -> np.ndarray:
        if sklearn:
            return source.predict(X, output_margin=margin, validate_features=False, iteration_range=kept)
        data = xgboost.DMatrix(X, feature_names=booster.feature_names, feature_types=booster.feature_types)
        return booster.predict(data, output_margin=margin, iteration_range=kept)

    def labels(X: np.ndarray) -> np.ndarray:
        if sklearn and options.decision_threshold is None:
            found = raw(X, False)
        elif sklearn:
            found = source.predict_proba(X, validate_features=False, iteration_range=kept)[:, 1] > threshold
        else:
            found = raw(X, False)
            if objective == "multi:softprob":
                found = np.argmax(found.reshape(len(X), -1), axis=1)
            elif objective in _BINARY:
                found = found > (0.0 if objective == "binary:logitraw" else threshold)
        return model.classes[np.asarray(found).reshape(-1).astype(np.int64)]

    return Reference(labels, lambda X: np.asarray(raw(X, True), dtype=np.float64).reshape(len(X), -1))


# ---------------------------------------------------------------- the document's parts


def _booster(content: Any) -> tuple[dict, np.ndarray | None]:
    """The tree booster, and dart's weight of each tree (which XGBoost 3.4 keeps beside the trees of any booster)."""
    booster = parts.dig(content, "learner.gradient_booster", dict, WHAT)
    name = parts.dig(booster, "name", str, WHAT)
    if name not in ("gbtree", "dart"):
        raise TranslationError(f"the XGBoost model's booster is {name!r}. treeproof loads 'gbtree' and 'dart'.")
    inner = parts.dig(booster, "gbtree", dict, WHAT) if name == "dart" and "gbtree" in booster else booster
    model = parts.dig(inner, "model", dict, WHAT)
    for found, known in ((booster, BOOSTER_FIELDS), (inner, BOOSTER_FIELDS), (model, MODEL_FIELDS)):
        for field in found:
            if field not in known:  # it may change what the trees mean, as weight_drop did
                raise TranslationError(
                    f"the XGBoost model has a field {field!r} that treeproof does not know: it comes from a newer "
                    "XGBoost. Train it with an older one, or report this."
                )
    holder = booster if "weight_drop" in booster else model
    if "weight_drop" not in holder and name == "gbtree":
        return inner, None
    size = len(parts.dig(inner, "model.trees", list, WHAT))
    drop = parts.float32(parts.numbers(holder.get("weight_drop"), f"{WHAT}: weight_drop", size=size))
    return inner, drop


def _outputs(content: Any, objective: str) -> int:
    path = "learner.learner_model_param."
    classes = parts.whole(content, path + "num_class", WHAT)
    if (
        "num_target" in content["learner"]["learner_model_param"]
        and parts.whole(content, path + "num_target", WHAT) > 1
    ):
        raise TranslationError("the XGBoost model predicts several targets at once. Train one model for each target.")
    if objective in _BINARY and classes <= 1:
        return 1
    if objective in _MULTI and classes >= 2:
        return classes
    if objective in _BINARY + _MULTI:
        raise InvalidModelError(f"{WHAT} is of objective {objective!r} but states {classes} classes.")
    raise TranslationError(
        f"the XGBoost model's objective is {objective!r}. treeproof loads classifiers: {', '.join(_BINARY + _MULTI)}."
    )


def _check_size(trees: list, outputs: int) -> None:
    nodes = 0
    for tree in trees:
        column = tree.get("left_children") if isinstance(tree, dict) else None
        nodes += len(column) if isinstance(column, (list, np.ndarray)) else 0
    parts.check_size(nodes, outputs, WHAT)


def _kept(booster: dict, attributes: dict, options: Options, sklearn: bool, outputs: int):
    """The trees [first, last) in use, their boosting rounds, and what is worth a note."""
    trees = len(booster["model"]["trees"])
    bounds = booster["model"].get("iteration_indptr")
    if bounds is None:  # before XGBoost 2.0: so many trees a round
        parallel = parts.whole(booster, "model.gbtree_model_param.num_parallel_tree", WHAT)
        bounds = np.arange(0, trees + 1, outputs * max(1, parallel))
        if bounds[-1] != trees:
            raise InvalidModelError(f"{WHAT} has {trees} trees, not a whole number of boosting rounds.")
    bounds = parts.numbers(bounds, f"{WHAT}: iteration_indptr", integer=True)
    if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != trees or np.any(np.diff(bounds) < 0):
        raise InvalidModelError(must_be(f"{WHAT}: iteration_indptr", f"rising from 0 to {trees}", bounds.tolist()))
    count = len(bounds) - 1
    best = attributes.get("best_iteration")
    notes = []
    default = (0, count)
    if best is not None:
        best = parts.whole(attributes, "best_iteration", WHAT, high=max(0, count - 1)) + 1
        if best < count and sklearn:
            default = (0, best)
            notes.append(f"the best {best} of {count} rounds, as XGBClassifier.predict uses them")
        elif best < count:
            notes.append(
                f"all {count} rounds, as Booster.predict uses them; iteration_range=(0, {best}) keeps the best"
            )
    start, end = parts.rounds(options, count, default, "the model")
    if options.iteration_range is not None:
        notes = [f"boosting rounds {start} to {end - 1} of {count}"]
    return (int(bounds[start]), int(bounds[end])), (start, end), notes


def _tree(content: Any, number: int, names: Any) -> dict[str, np.ndarray]:
    what = f"{WHAT}, tree {number}"
    left = parts.numbers(
        parts.dig(content, "left_children", (list, np.ndarray), what), f"{what}: left_children", integer=True
    )
    size = len(left)
    if size == 0:
        raise InvalidModelError(f"{what} has no nodes.")
    if parts.whole(content, "tree_param.size_leaf_vector", what) > 1:
        raise TranslationError(
            "the XGBoost model's leaves hold one value a class (multi_strategy='multi_output_tree'). "
            "Train with multi_strategy='one_output_per_tree'."
        )

    def column(name: str, integer: bool = True) -> np.ndarray:
        return parts.numbers(content.get(name), f"{what}: {name}", integer=integer, size=size)

    values = parts.float32(column("split_conditions", integer=False))
    tree = {
        "feature": column("split_indices"),
        "threshold": values,
        "left": left,
        "right": column("right_children"),
        "value": values,
        "missing_left": column("default_left") != 0,
        "kind": column("split_type") if "split_type" in content else np.zeros(size, dtype=np.int64),
    }
    if np.any((tree["left"] < 0) != (tree["right"] < 0)):
        raise InvalidModelError(f"{what} has a node with a single child.")
    tree = parts.reachable(tree, number)
    leaf = tree["left"] < 0
    categorical = np.flatnonzero((tree.pop("kind") != 0) & ~leaf)
    if len(categorical):
        parts.refuse_categorical(int(tree["feature"][categorical[0]]), names, "XGBoost")
    if np.any(tree["feature"][~leaf] < 0):
        raise InvalidModelError(f"{what} has a split on a negative feature.")
    for side in ("left", "right"):
        tree[side] = np.where(leaf, -1, tree[side])
    tree["feature"] = np.where(leaf, -1, tree["feature"])
    tree["value"] = np.where(leaf, tree["value"], 0.0)
    return tree


def _base(content: Any, objective: str, outputs: int) -> np.ndarray:
    """The score that every row starts from: one number, or (from 3.1 on) a list of one a class, as text."""
    text = parts.dig(content, "learner.learner_model_param.base_score", (str, int, float), WHAT)
    try:
        stated = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        raise InvalidModelError(must_be(f"{WHAT}: base_score", "a number or a list of numbers", text)) from None
    base = parts.float32(parts.numbers(stated if isinstance(stated, list) else [stated], f"{WHAT}: base_score"))
    if len(base) not in (1, outputs):
        raise InvalidModelError(must_be(f"{WHAT}: base_score", f"1 or {outputs} numbers", text))
    if objective == "binary:logistic":
        # stored as a probability; XGBoost takes the logit in float32, with a correctly rounded logarithm
        if base[0] in (0, 1):
            raise TranslationError(
                f"the XGBoost model starts from a probability of {base[0]:g}: it was trained on rows of one class "
                f"only, and nothing can change its prediction. Train it on rows of both."
            )
        if not 0 < base[0] < 1:
            raise InvalidModelError(must_be(f"{WHAT}: base_score", "strictly between 0 and 1", text))
        with np.errstate(all="ignore"):
            odds = np.float32(1) / base.astype(np.float32) - np.float32(1)
            base = parts.float32(-np.log(odds.astype(np.float64)))
    return np.broadcast_to(base, (outputs,)).copy()


def _decision(objective: str, options: Options, outputs: int, sklearn: bool) -> tuple[float, float]:
    """The score above which class 1 is predicted, and the slack of that decision."""
    p = parts.probability(options, outputs)
    if objective == "multi:softprob":
        return 0.0, SOFTMAX_SLACK
    if objective == "multi:softmax":
        return 0.0, 0.0
    if objective == "binary:logistic":
        if p is None:
            return LOGISTIC_CUT, LOGISTIC_SLACK
        p = float(np.float32(p))
        return parts.logit(p), parts.sigmoid_slack(p, 24)
    if p is not None:
        parts.no_threshold(options, f"XGBoost's objective {objective!r}, which gives no probabilities")
    # XGBClassifier compares whatever the objective returns with 0.5, and logitraw returns the score itself
    return (0.5 if objective == "binary:logitraw" and sklearn else 0.0), 0.0


def _dart_slack(trees: list[dict], base: np.ndarray, count: int) -> float:
    """Dart's in-place prediction subtracts the base again from base + leaf before it weighs the leaf."""
    largest = [float(np.abs(tree["value"]).max()) for tree in trees]
    return 4 * 2.0**-24 * (len(largest) * float(np.abs(base).max()) + sum(largest)) + 2.0**-126 * count
