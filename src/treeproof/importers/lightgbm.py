"""LightGBM: ``Booster`` and ``LGBMClassifier`` objects, and the text model file (read without LightGBM).

The rule is ``x <= threshold`` goes left on float64 inputs; leaves are float64. Before any comparison LightGBM
turns inputs of size up to 1e-35 (a float32 constant) into 0; that and its three kinds of missing values are
folded into the thresholds here, exactly. A live object is read through its own text, so that both ways meet
here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._errors import InvalidModelError, TranslationError, must_be
from ..model import TreeEnsemble
from ..model.floats import just_above
from ..model.link import Link
from . import parts
from .parts import Imported, Options, Reference

WHAT = "the LightGBM model"
ZERO = float(np.float32(1e-35))  # LightGBM's kZeroThreshold
ABOVE_ZERO = float(np.nextafter(ZERO, 1.0))
MAX_EXPANDED = 2**22
MAX_SATURATION = 1e-3
# the float64 sigmoid first exceeds 0.5 just above this score: a tie that rounding tips by less is still class 0
LOGISTIC_CUT = 1.5 * 2.0**-53
_ONE_VS_ALL = ("multiclassova", "multiclass_ova", "ova", "ovr")


def from_content(content: bytes, options: Options, labels: Any = None) -> Imported:
    """Translate the text of a model file."""
    header, blocks = _read(content)
    objective, sigmoid = _objective(header)
    outputs = _whole(header, "num_tree_per_iteration", low=1)
    classes = _whole(header, "num_class", low=1)
    if classes != outputs or (objective == "binary") != (outputs == 1):
        raise InvalidModelError(
            f"{WHAT} of objective {objective!r} states {classes} classes and {outputs} trees a round."
        )
    features = _whole(header, "max_feature_idx") + 1
    names = header.get("feature_names", "").split()
    if len(blocks) % outputs:
        raise InvalidModelError(f"{WHAT} has {len(blocks)} trees, not a whole number of rounds of {outputs}.")
    count = len(blocks) // outputs
    kept = parts.rounds(options, count, (0, count), "the model")
    chosen = blocks[kept[0] * outputs : kept[1] * outputs]
    leaves = sum(len(block.get("leaf_value", "").split()) for block in chosen)
    parts.check_size(2 * leaves, outputs, WHAT)
    plain, budget = [], MAX_EXPANDED
    for number, block in enumerate(chosen):
        tree = _tree(block, number + kept[0] * outputs, names, budget)
        budget -= len(tree["feature"])
        tree["value"] = parts.spread(tree["value"], number % outputs, outputs)
        plain.append(tree)
    notes = [f"boosting rounds {kept[0]} to {kept[1] - 1} of {count}"] if kept != (0, count) else []
    rounds = kept[1] - kept[0]
    averaged = "average_output" in header
    if averaged:
        notes.append(f"raw scores are sums over {rounds} rounds; LightGBM divides them by {rounds} before the sigmoid")
    cut, slack = _decision(objective, sigmoid, options, outputs, rounds if averaged else 1)
    model = TreeEnsemble.from_trees(
        plain,
        features,
        base=np.zeros(outputs),
        classes=parts.labels_or(options, labels, max(2, outputs)),
        cut=cut,
        decision_slack=slack,
        link=_link(objective, sigmoid, rounds if averaged else 1),
        accepts_missing=True,
        feature_names=parts.feature_names(names, features, automatic="Column_"),
        source={
            "library": "lightgbm",
            "version": _version(header),
            "objective": objective,
            "averaged": averaged,
            "notes": notes,
        },
    )
    if objective == "multiclassova":
        model = _with_saturation(model, sigmoid, rounds if averaged else 1)
    return Imported(model, rounds=kept)


def from_live(source: Any, options: Options) -> Imported:
    """Translate a ``Booster`` or ``LGBMClassifier``."""
    kinds = {kind.__name__ for kind in type(source).__mro__}
    sklearn = "LGBMModel" in kinds
    if sklearn and "LGBMClassifier" not in kinds:
        raise TranslationError(f"LightGBM's {type(source).__name__} is not a classifier. treeproof loads classifiers.")
    if not sklearn and "Booster" not in kinds:
        raise TranslationError(
            f"LightGBM's {type(source).__name__} is not a model. Pass its Booster or LGBMClassifier."
        )
    if sklearn and not source.__sklearn_is_fitted__():
        raise parts.not_fitted(source)
    if sklearn and len(source.classes_) < 2:
        raise TranslationError("the LGBMClassifier was trained on one class only: nothing can change.")
    booster = source.booster_ if sklearn else source
    for name in ("pred_early_stop", "predict_raw_score", "raw_score", "start_iteration_predict"):
        if (booster.params or {}).get(name) not in (None, False, 0, "false"):
            raise TranslationError(f"the LightGBM model predicts with {name}. Leave that parameter out.")
    if options.iteration_range is None:
        # what predict uses: the best iteration where training stopped early, else all
        text = booster.model_to_string()
        start, end = 0, None
    else:
        text = booster.model_to_string(num_iteration=-1)
        start, end = options.iteration_range
    labels = source.classes_ if sklearn else None
    found = from_content(text.encode("utf-8"), options, labels)
    keywords = {"start_iteration": start, "num_iteration": None if end is None else end - start}
    model = replace(found.model, source={**found.model.source, "version": _package_version()})
    found = Imported(model, rounds=found.rounds)
    return Imported(model, _reference(source, found, options, sklearn, keywords), found.rounds)


def _package_version() -> str:
    import lightgbm

    return lightgbm.__version__


def _reference(source: Any, found: Imported, options: Options, sklearn: bool, keywords: dict) -> Reference:
    model = found.model
    p = options.decision_threshold

    def labels(X: np.ndarray) -> np.ndarray:
        if sklearn and p is None:
            return parts.relabelled(source.predict(X, **keywords), source.classes_, model)
        chance = source.predict_proba(X, **keywords) if sklearn else source.predict(X, **keywords)
        chance = np.asarray(chance).reshape(len(X), -1)
        if chance.shape[1] > 2 or model.n_outputs > 1:
            return model.classes[np.argmax(chance, axis=1)]
        return model.classes[(chance[:, -1] > (0.5 if p is None else p)).astype(int)]

    def margin(X: np.ndarray) -> np.ndarray:
        return np.asarray(source.predict(X, raw_score=True, **keywords), dtype=np.float64).reshape(len(X), -1)

    return Reference(labels, margin)


# ---------------------------------------------------------------- the text


def _read(content: bytes) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The header's and each tree's ``name=value`` lines."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidModelError(f"{WHAT} file is damaged: it is not UTF-8 text.") from None
    header: dict[str, str] = {}
    blocks: list[dict[str, str]] = []
    here = header
    ended = False
    for line in text.splitlines():
        line = line.strip()
        if line == "end of trees":
            ended = True
            break
        name, equals, value = line.partition("=")
        if name == "Tree" and equals:
            if value != str(len(blocks)):
                raise InvalidModelError(must_be(f"{WHAT} file: Tree", f"number {len(blocks)}", value))
            here = {}
            blocks.append(here)
        elif line:
            if name in here:
                raise InvalidModelError(f"{WHAT} file is damaged: {name!r} is stated twice.")
            here[name] = value
    if not ended:
        raise InvalidModelError(f"{WHAT} file is cut short: its line 'end of trees' is missing.")
    stated = len(header.get("tree_sizes", "").split())
    if stated != len(blocks):
        raise InvalidModelError(f"{WHAT} file is damaged: it announces {stated} trees and holds {len(blocks)}.")
    return header, blocks


def _whole(block: dict[str, str], name: str, low: int = 0, what: str = WHAT) -> int:
    return parts.whole(block, name, what, low=low, high=parts.MAX_FEATURES - 1)


def _column(block: dict[str, str], name: str, what: str, size: int, integer: bool = False) -> np.ndarray:
    words = block.get(name, "").split()
    if len(words) != size:
        raise InvalidModelError(must_be(f"{what}: {name}", f"{size} numbers", f"{len(words)} numbers"))
    try:
        return parts.numbers([int(word) if integer else float(word) for word in words], f"{what}: {name}", integer)
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidModelError):
            raise
        raise InvalidModelError(must_be(f"{what}: {name}", "numbers", block[name])) from None


def _version(header: dict[str, str]) -> str:
    return f"model file {header.get('version', 'of unknown version')}"


def _objective(header: dict[str, str]) -> tuple[str, float]:
    words = header.get("objective", "").split()
    name = words[0] if words else "none"
    if name not in ("binary", "multiclass", "softmax", *_ONE_VS_ALL):
        raise TranslationError(
            f"the LightGBM model's objective is {name!r}. treeproof loads classifiers: binary, multiclass, "
            f"multiclassova."
        )
    sigmoid = 1.0
    for word in words[1:]:
        key, _, value = word.partition(":")
        if key == "sigmoid":
            try:
                sigmoid = float(value)
            except ValueError:
                sigmoid = math.nan
    if not 0 < sigmoid < math.inf:
        raise InvalidModelError(must_be(f"{WHAT}: sigmoid", "a positive number", header["objective"]))
    if name in _ONE_VS_ALL:
        return "multiclassova", sigmoid
    return ("multiclass" if name == "softmax" else name), sigmoid


# ---------------------------------------------------------------- trees


def _tree(block: dict[str, str], number: int, names: list[str], budget: int) -> dict[str, np.ndarray]:
    what = f"{WHAT}, tree {number}"
    leaves = _whole(block, "num_leaves", low=1, what=what)
    if block.get("is_linear", "0") != "0":
        raise TranslationError("the LightGBM model has linear leaves (linear_tree=True). Train with linear_tree=False.")
    values = _column(block, "leaf_value", what, leaves)
    if leaves == 1:
        return {
            "feature": np.array([-1]),
            "threshold": np.zeros(1),
            "left": np.array([-1]),
            "right": np.array([-1]),
            "value": values,
            "missing_left": np.zeros(1, dtype=bool),
        }
    inner = leaves - 1
    feature = _column(block, "split_feature", what, inner, integer=True)
    threshold = _column(block, "threshold", what, inner)
    decision = _column(block, "decision_type", what, inner, integer=True)
    children = [_column(block, side, what, inner, integer=True) for side in ("left_child", "right_child")]
    for side in children:
        if np.any((side >= inner) | (side < -leaves)):
            raise InvalidModelError(f"{what}: a child lies outside the tree's {inner} splits and {leaves} leaves.")
    if np.any(feature < 0):
        raise InvalidModelError(f"{what} has a split on a negative feature.")
    categorical = np.flatnonzero(decision & 1)
    if len(categorical):
        parts.refuse_categorical(int(feature[categorical[0]]), names, "LightGBM")
    default_left = (decision & 2) != 0
    missing = (decision >> 2) & 3
    if np.any(missing == 3) or np.any((decision < 0) | (decision > 15)):
        raise InvalidModelError(must_be(f"{what}: decision_type", "known kinds of splits", decision.tolist()))
    left, right = (np.where(side >= 0, side, inner + ~side) for side in children)
    tree = {
        "feature": np.concatenate([feature, np.full(leaves, -1)]),
        "threshold": np.concatenate([_thresholds(threshold, default_left, missing), np.zeros(leaves)]),
        "left": np.concatenate([left, np.full(leaves, -1)]),
        "right": np.concatenate([right, np.full(leaves, -1)]),
        "value": np.concatenate([np.zeros(inner), values]),
        # without missing values in training, LightGBM reads NaN as 0
        "missing_left": np.concatenate(
            [np.where(missing == 0, threshold >= 0, default_left), np.zeros(leaves, dtype=bool)]
        ),
    }
    around_zero = (missing == 1) & (np.abs(threshold) > ZERO) & (default_left != (threshold >= 0))
    tree = parts.reachable(tree, number)
    if np.any(around_zero):
        if len(tree["feature"]) != inner + leaves:
            raise InvalidModelError(f"{what} has nodes that its root does not reach.")
        return _expand(tree, np.flatnonzero(around_zero), budget)
    return tree


def _thresholds(threshold: np.ndarray, default_left: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """``x <= threshold``, after inputs within 1e-35 became 0, as ``x < result``."""
    result = just_above(threshold, "float64")
    inside = np.abs(threshold) <= ZERO
    zero_left = np.where(missing == 1, default_left, threshold >= 0)
    return np.where(inside, np.where(zero_left, ABOVE_ZERO, -ZERO), result)


def _expand(tree: dict[str, np.ndarray], odd: np.ndarray, budget: int) -> dict[str, np.ndarray]:
    """Rebuild a tree whose zeros go against their own comparison (zero_as_missing=True).

    Such a split cuts the line in four pieces, so its subtrees appear twice; what a path has already decided
    is not asked again. A path knows, for each feature, the interval that is left and whether NaN came along.
    """
    odd_nodes = set(odd.tolist())
    grown = _Grown(budget)
    stack: list[_Task] = [_Task(-1, "left", 0, {})]
    while stack:
        task = stack.pop()
        if tree["feature"][task.node] < 0:
            grown.add(task, value=tree["value"][task.node])
            continue
        feature = int(tree["feature"][task.node])
        low, high, missing = task.known.get(feature, (-math.inf, math.inf, True))
        pieces = _pieces(tree, task.node, task.node in odd_nodes, low, high)
        default = int(tree["left" if tree["missing_left"][task.node] else "right"][task.node])
        if missing and default not in [child for _, child in pieces]:
            # no number takes NaN's way here: a split that all numbers pass on one side
            if not pieces:
                stack.append(task._replace(node=default))
                continue
            lonely = (low, low, True), default
            others = [((low, high, False), task.node)]
            edge, first = (low, [lonely, *others]) if low > -math.inf else (high, [*others, lonely])
            place = grown.add(task, feature, edge, missing_left=low > -math.inf)
            for side, (known, node) in zip(("left", "right"), first, strict=True):
                stack.append(_Task(place, side, node, {**task.known, feature: known}))
            continue
        for upper, child in pieces[:-1]:
            place = grown.add(task, feature, upper, missing_left=missing and child == default)
            known = (low, upper, missing and child == default)
            stack.append(_Task(place, "left", child, {**task.known, feature: known}))
            missing, low = missing and child != default, upper
            task = _Task(place, "right", -1, task.known)
        stack.append(task._replace(node=pieces[-1][1], known={**task.known, feature: (low, high, missing)}))
    return grown.arrays()


class _Task(NamedTuple):
    """A node to write: where to link it from, and what its path knows."""

    parent: int
    side: str
    node: int
    known: dict[int, tuple[float, float, bool]]


class _Grown:
    """The columns of a tree that is being written."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.columns: dict[str, list] = {
            name: [] for name in ("feature", "threshold", "left", "right", "value", "missing_left")
        }

    def add(self, task: _Task, feature: int = -1, threshold=0.0, value=0.0, missing_left=False) -> int:
        place = len(self.columns["feature"])
        if place >= self.budget:
            raise TranslationError(
                "the LightGBM model was trained with zero_as_missing=True and grows too large when its "
                "zeros are "
                "translated. Train with zero_as_missing=False, and NaN for what is missing."
            )
        row = (feature, threshold, -1, -1, value, missing_left)
        for column, entry in zip(self.columns.values(), row, strict=True):
            column.append(entry)
        if task.parent >= 0:
            self.columns[task.side][task.parent] = place
        return place

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(column) for name, column in self.columns.items()}


def _pieces(tree: dict[str, np.ndarray], node: int, odd: bool, low: float, high: float) -> list[tuple[float, int]]:
    """(upper end, child) of the pieces into which a split cuts the interval [low, high)."""
    left, right = int(tree["left"][node]), int(tree["right"][node])
    threshold = float(tree["threshold"][node])
    if not odd:
        ends = [(threshold, left), (math.inf, right)]
    elif threshold <= -ZERO:
        ends = [(threshold, left), (-ZERO, right), (ABOVE_ZERO, left), (math.inf, right)]
    else:
        ends = [(-ZERO, left), (ABOVE_ZERO, right), (threshold, left), (math.inf, right)]
    pieces: list[tuple[float, int]] = []
    for end, child in ends:
        if end > low and low < high:
            pieces.append((min(end, high), child))
            low = end
    return pieces


# ---------------------------------------------------------------- decisions


def _decision(objective: str, sigmoid: float, options: Options, outputs: int, rounds: int) -> tuple[float, float]:
    """The score above which class 1 is predicted, and the slack of that decision."""
    p = parts.probability(options, outputs)
    if objective == "binary":
        p = 0.5 if p is None else p
        cut = (LOGISTIC_CUT if p == 0.5 else parts.logit(p)) / sigmoid * rounds
        return cut, parts.sigmoid_slack(p, 52) / sigmoid * rounds
    return 0.0, (2.0**-49 * rounds if objective == "multiclass" else 0.0)


def _link(objective: str, sigmoid: float, rounds: int) -> Link:
    if objective == "binary":
        return Link()
    if objective == "multiclass":
        return Link("softmax", rounds)
    return Link("sigmoid", rounds, sigmoid)


def _with_saturation(model: TreeEnsemble, sigmoid: float, rounds: int) -> TreeEnsemble:
    """One-vs-all compares sigmoids, which run together near 1: that much of a score stays undecided."""
    largest = _largest_score(model) * sigmoid / rounds
    slack = 2.0**-49 * math.exp(min(largest, 700.0)) / sigmoid * rounds
    if slack > MAX_SATURATION:
        raise TranslationError(
            f"the LightGBM model's multiclassova scores reach {largest:.3g}, where float64 sigmoids round to 1 and "
            f"LightGBM predicts the first of such classes. Train with objective='multiclass', or fewer rounds."
        )
    return replace(model, decision_slack=slack)


def _largest_score(model: TreeEnsemble) -> float:
    """The largest size that any class's score can reach."""
    sizes = np.abs(model.value)
    return (
        float(np.maximum.reduceat(sizes, model.tree_offsets[:-1], axis=0).sum(axis=0).max()) if model.n_trees else 0.0
    )
