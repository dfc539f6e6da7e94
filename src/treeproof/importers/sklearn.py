"""scikit-learn: decision trees, forests, extra trees, gradient boosting, AdaBoost and bagging of trees.

Trees receive float32 inputs and go left on ``x <= threshold`` (a float64 number); histogram gradient boosting
receives float64. Forests are kept as sums of leaf probabilities (the library divides by the number of trees),
so that votes that tie exactly tie here too. A ``Pipeline`` is handed on to `pipeline`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._errors import TranslationError
from ..model import TreeEnsemble
from ..model.floats import just_above
from ..model.link import Link
from . import parts
from .parts import Imported, Options, Reference

_WRAPPERS = {
    "GridSearchCV": "Pass its best_estimator_.",
    "RandomizedSearchCV": "Pass its best_estimator_.",
    "HalvingGridSearchCV": "Pass its best_estimator_.",
    "HalvingRandomSearchCV": "Pass its best_estimator_.",
    "FrozenEstimator": "Pass its estimator.",
    "FixedThresholdClassifier": "Pass its estimator_ with decision_threshold=.",
    "TunedThresholdClassifierCV": "Pass its estimator_ with decision_threshold=best_threshold_.",
    "CalibratedClassifierCV": "Pass the uncalibrated classifier, with decision_threshold= where you cut.",
    "IsolationForest": "treeproof loads classifiers.",
    "VotingClassifier": "Load its estimators one by one.",
    "StackingClassifier": "Load its estimators one by one.",
    "OneVsRestClassifier": "Load its estimators_ one by one.",
}


def from_live(source: Any, options: Options) -> Imported:
    """Translate a fitted scikit-learn classifier (or `Pipeline`)."""
    if _is(source, "Pipeline"):
        from . import pipeline

        return pipeline.from_live(source, options)
    for name, translate in _KINDS.items():
        if _is(source, name):
            _check_fitted(source)
            return translate(source, options)
    name = type(source).__name__
    hint = next((hint for kind, hint in _WRAPPERS.items() if _is(source, kind)), "")
    raise TranslationError(
        f"scikit-learn's {name} is not supported. {hint or 'treeproof loads ' + ', '.join(_KINDS) + '.'}"
    )


def _is(source: Any, name: str) -> bool:
    return any(kind.__name__ == name and kind.__module__.startswith("sklearn.") for kind in type(source).__mro__)


def _check_fitted(source: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(source)
    except NotFittedError:
        raise parts.not_fitted(source) from None
    if getattr(source, "n_outputs_", 1) != 1:
        raise TranslationError(f"the {type(source).__name__} predicts several outputs. Train one model for each.")
    if len(source.classes_) < 2:
        raise TranslationError(f"the {type(source).__name__} was trained on one class only: nothing can change.")


# ---------------------------------------------------------------- pieces


def _columns(tree: Any, values: np.ndarray, features: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """A scikit-learn ``Tree`` as plain columns, with the given value of each node."""
    left = tree.children_left.astype(np.int64)
    leaf = left < 0
    feature = np.where(leaf, -1, tree.feature)
    if features is not None:
        feature = np.where(leaf, -1, np.asarray(features)[np.maximum(feature, 0)])
    return {
        "feature": feature,
        "threshold": np.where(leaf, 0.0, just_above(np.where(leaf, 0.0, tree.threshold), "float32")),
        "left": np.where(leaf, -1, left),
        "right": np.where(leaf, -1, tree.children_right.astype(np.int64)),
        "value": values,
        "missing_left": np.asarray(tree.missing_go_to_left, dtype=bool) & ~leaf,
    }


def _takes_missing(source: Any) -> bool:
    """Whether the library itself predicts a row of NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers without column names
        try:
            source.predict(np.full((1, source.n_features_in_), np.nan))
        except ValueError:
            return False
    return True


def _fields(source: Any, options: Options, **extra: Any) -> dict[str, Any]:
    """What all scikit-learn models share."""
    import sklearn

    names = getattr(source, "feature_names_in_", None)
    notes = extra.pop("notes", [])
    return {
        "classes": parts.labels_or(options, source.classes_, len(source.classes_)),
        "accepts_missing": _takes_missing(source),
        "feature_names": parts.feature_names(names, source.n_features_in_),
        "source": {
            "library": "scikit-learn",
            "version": sklearn.__version__,
            "estimator": type(source).__name__,
            "notes": notes,
        },
        **extra,
    }


def _labels(source: Any, model: TreeEnsemble, options: Options):
    """The library's decision, as labels of our model."""
    p = options.decision_threshold

    def labels(X: np.ndarray) -> np.ndarray:
        if p is not None:
            return model.classes[(source.predict_proba(X)[:, 1] > p).astype(int)]
        return parts.relabelled(source.predict(X), source.classes_, model)

    return labels


def _averaged(source: Any, members: list[tuple[Any, np.ndarray | None]], options: Options) -> Imported:
    """A mean of trees' probabilities, kept as a sum: one output a class, or class 1 against a threshold."""
    count, classes = len(members), len(source.classes_)
    p = parts.probability(options, 1 if classes == 2 else classes)
    outputs = classes if p is None else 1
    trees = []
    whole = True
    for tree, features in members:
        chance = tree.tree_.value[:, 0, :]
        values = np.zeros((len(chance), classes))
        # a bag may have missed a class; bagging hands its trees the classes as positions
        own = np.arange(classes) if chance.shape[1] == classes else np.asarray(tree.classes_, dtype=np.int64)
        values[:, own] = chance[:, : len(own)]
        votes = values[tree.tree_.children_left < 0]
        whole = whole and bool(np.all(votes == np.floor(votes)))
        trees.append(_columns(tree.tree_, values if p is None else values[:, 1], features))
    # the division by the number of trees rounds; sums of whole votes keep their order through it
    slack = 0.0 if whole or count == 1 else 4 * 2.0**-52 * count
    notes = [f"scores are sums over {count} trees; scikit-learn divides them by {count}"] if count > 1 else []
    fields = _fields(source, options, notes=notes, decision_slack=slack)
    if p is None:
        fields["link"] = Link(divisor=count)
    else:
        fields.update(cut=p * count, decision_slack=4 * 2.0**-52 * count)
    model = TreeEnsemble.from_trees(trees, source.n_features_in_, base=np.zeros(outputs), dtype="float32", **fields)

    def margin(X: np.ndarray) -> np.ndarray:
        chance = source.predict_proba(X)
        return chance if p is None else chance[:, 1:]

    return Imported(model, Reference(_labels(source, model, options), margin, float(count)))


# ---------------------------------------------------------------- one function an estimator


def _decision_tree(source: Any, options: Options) -> Imported:
    return _averaged(source, [(source, None)], options)


def _forest(source: Any, options: Options) -> Imported:
    return _averaged(source, [(tree, None) for tree in source.estimators_], options)


def _bagging(source: Any, options: Options) -> Imported:
    for tree in source.estimators_:
        _check_base(tree, "BaggingClassifier")
    return _averaged(source, list(zip(source.estimators_, source.estimators_features_, strict=True)), options)


def _check_base(tree: Any, name: str) -> None:
    if not (_is(tree, "DecisionTreeClassifier")):
        raise TranslationError(
            f"the {name} is built on {type(tree).__name__}. treeproof translates it over DecisionTreeClassifier only."
        )


def _adaboost(source: Any, options: Options) -> Imported:
    parts.no_threshold(options, "AdaBoostClassifier, which votes")
    classes = len(source.classes_)
    trees = []
    for tree, weight in zip(source.estimators_, source.estimator_weights_, strict=False):
        _check_base(tree, "AdaBoostClassifier")
        # a tree votes for the first largest class of its leaf, among the classes that it knows
        vote = np.searchsorted(source.classes_, np.asarray(tree.classes_)[tree.tree_.value[:, 0, :].argmax(axis=1)])
        mine = np.arange(classes) == vote[:, None]
        values = np.where(mine, weight, -1 / (classes - 1) * weight)
        trees.append(_columns(tree.tree_, values[:, 1] if classes == 2 else values))
    total = float(source.estimator_weights_.sum())
    outputs = 1 if classes == 2 else classes
    notes = ["scores are sums of votes; scikit-learn divides them by the sum of the weights"]
    slack = 0.0 if classes == 2 else 4 * 2.0**-52 * total
    fields = _fields(source, options, notes=notes, decision_slack=slack)
    if outputs > 1:
        fields["link"] = Link(divisor=total)
    model = TreeEnsemble.from_trees(trees, source.n_features_in_, base=np.zeros(outputs), dtype="float32", **fields)
    scale = total / 2 if classes == 2 else total
    return Imported(model, Reference(_labels(source, model, options), _decision_function(source), scale))


def _decision_function(source: Any):
    def margin(X: np.ndarray) -> np.ndarray:
        return np.asarray(source.decision_function(X), dtype=np.float64).reshape(len(X), -1)

    return margin


def _gradient_boosting(source: Any, options: Options) -> Imported:
    init = source.init_
    if not (isinstance(init, str) and init == "zero") and not _is(init, "DummyClassifier"):
        raise TranslationError(
            f"the GradientBoostingClassifier starts from init={type(init).__name__}, which is no constant. "
            f"Train with init=None or init='zero'."
        )
    stages = source.estimators_
    outputs = stages.shape[1]
    constant = not isinstance(init, str) and init.strategy not in ("prior", "most_frequent", "constant")
    if constant:
        raise TranslationError(
            f"the GradientBoostingClassifier starts from a DummyClassifier of strategy {init.strategy!r}, "
            f"which is "
            f"no constant. Train with init=None or init='zero'."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers without column names
        base = source._raw_predict_init(np.zeros((1, source.n_features_in_)))[0]
    trees = [
        _columns(tree.tree_, parts.spread(source.learning_rate * tree.tree_.value[:, 0, 0], k, outputs))
        for stage in stages
        for k, tree in enumerate(stage)
    ]
    fields = _fields(source, options)
    p = parts.probability(options, outputs)
    if p is not None:
        half = 2.0 if source.loss == "exponential" else 1.0
        fields.update(cut=parts.logit(p) / half, decision_slack=parts.sigmoid_slack(p, 52))
    model = TreeEnsemble.from_trees(
        trees, source.n_features_in_, base=base, zero_class=1 if p is None else 0, dtype="float32", **fields
    )
    return Imported(model, Reference(_labels(source, model, options), _decision_function(source)))


def _hist_gradient_boosting(source: Any, options: Options) -> Imported:
    names = getattr(source, "feature_names_in_", None)
    declared = source.is_categorical_
    if declared is not None and np.any(declared):
        feature = int(np.flatnonzero(declared)[0])
        raise TranslationError(
            f"the HistGradientBoostingClassifier has the categorical feature "
            f"{parts.name_of(feature, names)}, which "
            f"treeproof does not translate. Train on numbers for it (one-hot columns, for example)."
        )
    outputs = source._baseline_prediction.reshape(-1).shape[0]
    trees = []
    for stage in source._predictors:
        for k, predictor in enumerate(stage):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"] != 0
            if np.any(nodes["is_categorical"][~leaf]):
                parts.refuse_categorical(int(nodes["feature_idx"][~leaf][0]), names, "scikit-learn")
            trees.append(
                {
                    "feature": np.where(leaf, -1, nodes["feature_idx"].astype(np.int64)),
                    "threshold": np.where(
                        leaf, 0.0, just_above(np.where(leaf, 0.0, nodes["num_threshold"]), "float64")
                    ),
                    "left": np.where(leaf, -1, nodes["left"].astype(np.int64)),
                    "right": np.where(leaf, -1, nodes["right"].astype(np.int64)),
                    "value": parts.spread(nodes["value"].astype(np.float64), k, outputs),
                    "missing_left": (nodes["missing_go_to_left"] != 0) & ~leaf,
                }
            )
    fields = _fields(source, options)
    p = parts.probability(options, outputs)
    if p is not None:
        fields.update(cut=parts.logit(p), decision_slack=parts.sigmoid_slack(p, 52))
    base = source._baseline_prediction.reshape(-1)
    model = TreeEnsemble.from_trees(trees, source.n_features_in_, base=base, **fields)
    return Imported(model, Reference(_labels(source, model, options), _decision_function(source)))


_KINDS = {
    "DecisionTreeClassifier": _decision_tree,
    "RandomForestClassifier": _forest,
    "ExtraTreesClassifier": _forest,
    "GradientBoostingClassifier": _gradient_boosting,
    "HistGradientBoostingClassifier": _hist_gradient_boosting,
    "AdaBoostClassifier": _adaboost,
    "BaggingClassifier": _bagging,
}
