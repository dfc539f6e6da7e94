"""What every importer needs: strict reading of untrusted content, labels, and the library as a reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._errors import InvalidInputError, InvalidModelError, TranslationError, must_be
from ..model import TreeEnsemble

# a dense table of leaf values larger than this (1 GB) is not a model that anybody trained
MAX_VALUES = 2**27
MAX_FEATURES = 2**31 - 1


@dataclass(frozen=True)
class Options:
    """What the caller of ``load`` asked for."""

    decision_threshold: float | None = None
    iteration_range: tuple[int, int] | None = None
    classes: Sequence | None = None


class Reference(NamedTuple):
    """The original library, as the equality check calls it: rows in, labels or raw scores out."""

    labels: Callable[[np.ndarray], np.ndarray]
    margin: Callable[[np.ndarray], np.ndarray] | None  # (n, n_outputs), or None where there is no raw score
    scale: float = 1.0  # our scores are the library's raw scores times this
    repair: Callable[[np.ndarray], np.ndarray] | None = None  # replaces numbers that the library refuses


class Imported(NamedTuple):
    model: TreeEnsemble
    reference: Reference | None = None
    rounds: tuple[int, int] | None = None  # the boosting rounds in use, where the library takes a range


# ---------------------------------------------------------------- reading what a stranger wrote


def dig(content: Any, path: str, kind: type | tuple[type, ...], what: str) -> Any:
    """The entry at a dotted path, of the wanted type, or one clear error."""
    here = content
    for name in path.split("."):
        if not isinstance(here, dict) or name not in here:
            raise InvalidModelError(f"{what} lacks {path!r}. The file is damaged, or another kind of file.")
        here = here[name]
    if not isinstance(here, kind) or (isinstance(here, bool) and kind is int):
        raise InvalidModelError(f"{what}: {path!r} has the wrong type, {type(here).__name__}.")
    return here


def whole(content: Any, path: str, what: str, low: int = 0, high: int = MAX_FEATURES) -> int:
    """A whole number at a dotted path; XGBoost writes its numbers as text."""
    value = dig(content, path, (str, int), what)
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit() and len(value) < 20):
            raise InvalidModelError(must_be(f"{what}: {path!r}", "a whole number", value))
        value = int(value)
    if isinstance(value, bool) or not low <= value <= high:
        raise InvalidModelError(must_be(f"{what}: {path!r}", f"a whole number from {low} to {high}", value))
    return value


def numbers(column: Any, what: str, integer: bool = False, size: int | None = None) -> np.ndarray:
    """A flat list (or array) of numbers as float64 or int64; text, nested lists and NaN are refused."""
    if not isinstance(column, (list, tuple, np.ndarray)):
        raise InvalidModelError(must_be(what, "a list of numbers", column))
    try:
        array = np.asarray(column)
    except (ValueError, OverflowError):
        array = np.asarray(None)
    if array.size == 0 and array.ndim == 1:
        array = np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in ("iub" if integer else "iubf"):
        raise InvalidModelError(
            must_be(
                what,
                "a flat list of whole numbers" if integer else "a flat list of numbers",
                f"{type(column).__name__} of shape {array.shape}",
            )
        )
    if size is not None and len(array) != size:
        raise InvalidModelError(must_be(what, f"a list of {size} numbers", f"{len(array)} numbers"))
    if integer:
        # unsigned 64-bit numbers beyond int64 would wrap around
        if array.dtype.kind == "u" and array.size and array.max() > 2**63 - 1:
            raise InvalidModelError(must_be(what, "whole numbers below 2^63", int(array.max())))
        return array.astype(np.int64)
    array = array.astype(np.float64)
    if np.isnan(array).any():
        raise InvalidModelError(must_be(what, "numbers", "NaN"))
    return array


def float32(values: np.ndarray) -> np.ndarray:
    """The float32 numbers nearest to the values, as float64 (beyond the range: infinity)."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(values, dtype=np.float64).astype(np.float32).astype(np.float64)


def check_size(nodes: int, outputs: int, what: str) -> None:
    if nodes * outputs > MAX_VALUES:
        raise InvalidModelError(
            f"{what} states {nodes} nodes and {outputs} classes: more leaf values than treeproof will hold in memory."
        )


def reachable(tree: dict[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    """The tree without the nodes that its root does not reach (XGBoost's pruning leaves them behind)."""
    left, right = tree["left"], tree["right"]
    size = len(left)
    seen = np.zeros(size, dtype=bool)
    level = np.zeros(1, dtype=np.int64)
    while len(level):
        if np.any((level < 0) | (level >= size)):
            raise InvalidModelError(f"tree {number}: a child lies outside the tree's {size} nodes.")
        if seen[level].any() or len(np.unique(level)) < len(level):
            raise InvalidModelError(f"tree {number}: the nodes form a cycle or share a child.")
        seen[level] = True
        inner = level[left[level] >= 0]
        level = np.concatenate([left[inner], right[inner]])
    if seen.all():
        return tree
    place = np.cumsum(seen) - 1
    kept = {name: column[seen] for name, column in tree.items()}
    for side in ("left", "right"):
        kept[side] = np.where(kept[side] >= 0, place[np.maximum(kept[side], 0)], -1)
    return kept


def spread(values: np.ndarray, output: int, outputs: int) -> np.ndarray:
    """Leaf values of one class among several, as (n, outputs)."""
    if outputs == 1:
        return values[:, None]
    wide = np.zeros((len(values), outputs))
    wide[:, output] = values
    return wide


# ---------------------------------------------------------------- names, labels, decisions


def feature_names(names: Any, count: int, automatic: str | None = None) -> tuple[str, ...] | None:
    """The names, or None where there are none, they do not fit, or the library made them up."""
    if not isinstance(names, (list, tuple, np.ndarray)) or len(names) != count or count == 0:
        return None
    words = tuple(str(name) for name in names)
    if len(set(words)) != count or any(not word for word in words):
        return None
    if automatic is not None and all(word == f"{automatic}{i}" for i, word in enumerate(words)):
        return None
    return words


def labels_or(options: Options, found: Sequence | np.ndarray | None, count: int) -> np.ndarray:
    """The class labels: the caller's, else the model's own, else 0, 1, ..."""
    given = options.classes if options.classes is not None else found
    if given is None:
        return np.arange(count)
    array = np.asarray(given)
    if array.dtype == object:
        array = np.asarray(array.tolist())
    if array.shape != (count,):
        raise InvalidInputError(must_be("classes", f"{count} labels, one for each class of the model", list(given)))
    return array


def relabelled(found: np.ndarray, own: Any, model: TreeEnsemble) -> np.ndarray:
    """The library's labels, as the model's (the caller may have renamed them)."""
    place = {str(label): position for position, label in enumerate(own)}
    return model.classes[[place[str(label)] for label in np.asarray(found).reshape(-1)]]


def not_fitted(source: Any) -> TranslationError:
    return TranslationError(f"the {type(source).__name__} is not fitted. Call fit first.")


def name_of(feature: int, names: Any) -> str:
    """A feature in words."""
    if isinstance(names, (list, tuple, np.ndarray)) and 0 <= feature < len(names):
        return f"{str(names[feature])!r} (column {feature})"
    return f"in column {feature}"


def refuse_categorical(feature: int, names: Any, library: str) -> None:
    raise TranslationError(
        f"the {library} model splits on the categorical feature {name_of(feature, names)}, which treeproof "
        f"does not "
        f"translate. Train on numbers for it (one-hot columns, for example) and load that model."
    )


def probability(options: Options, outputs: int) -> float | None:
    """The caller's decision threshold, checked: a probability strictly inside (0, 1), two classes only."""
    p = options.decision_threshold
    if p is None:
        return None
    if isinstance(p, bool) or not isinstance(p, (int, float, np.number)) or not 0 < p < 1:
        raise InvalidInputError(must_be("decision_threshold", "a probability strictly between 0 and 1", p))
    if outputs > 1:
        raise InvalidInputError(
            "decision_threshold must be left out for a model of several classes: it predicts the largest score."
        )
    return float(p)


def no_threshold(options: Options, what: str) -> None:
    if options.decision_threshold is not None:
        raise InvalidInputError(f"decision_threshold cannot be used with {what}. Leave it out.")


def no_range(options: Options, what: str) -> None:
    if options.iteration_range is not None:
        raise InvalidInputError(f"iteration_range cannot be used with {what}. Leave it out.")


def rounds(options: Options, count: int, default: tuple[int, int], what: str) -> tuple[int, int]:
    """The boosting rounds [first, end) to keep."""
    wanted = options.iteration_range
    if wanted is None:
        return default
    if (
        not isinstance(wanted, (tuple, list))
        or len(wanted) != 2
        or not all(isinstance(end, (int, np.integer)) and not isinstance(end, bool) for end in wanted)
        or not 0 <= wanted[0] < wanted[1] <= count
    ):
        raise InvalidInputError(must_be("iteration_range", f"(first, end) within the {count} rounds of {what}", wanted))
    return int(wanted[0]), int(wanted[1])


def logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)


def sigmoid_slack(p: float, digits: int) -> float:
    """How far from logit(p) a float sigmoid may switch: a few units of its last place, carried back to the
    score.
    """
    return 8 * 2.0**-digits / (p * (1 - p))
