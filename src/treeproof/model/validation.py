"""What must hold of an ensemble and of its rows, checked once at the border."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .._errors import InvalidInputError, InvalidModelError, must_be
from .link import KINDS, Link
from .names import places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .ensemble import TreeEnsemble


NOT_A_NUMBER = (TypeError, ValueError, OverflowError)  # what float() and numpy raise


def array_of(name: str, given, dtype) -> np.ndarray:
    """An array of this type that says what was given, or an error: whole numbers are neither cut nor wrapped."""
    try:
        exact = np.asarray(given)
        with np.errstate(invalid="ignore", over="ignore"):
            array = np.array(exact, dtype=dtype, order="C")  # a copy: the model freezes its arrays
        whole = not np.issubdtype(array.dtype, np.integer) or np.array_equal(array, exact)
    except NOT_A_NUMBER:
        whole = False
    if not whole:
        kind = "a list of whole numbers below 2^31" if np.issubdtype(dtype, np.integer) else "a list of numbers"
        raise InvalidModelError(must_be(name, kind, given))
    return array


def labels(given) -> np.ndarray:
    """The classes as an array of labels that can be sorted."""
    try:
        array = np.asarray(given)
        np.unique(array)
        alike = array.dtype.kind != "U" or all(isinstance(label, str) for label in given)
        if not alike or (array.dtype.kind == "f" and not np.all(np.isfinite(array))):
            raise ValueError
    except NOT_A_NUMBER:
        raise InvalidModelError(must_be("classes", "a list of labels of one kind", given)) from None
    return array


def names(given) -> tuple[str, ...]:
    """The features' names."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidModelError(must_be("feature_names", "a list of names, one a feature", given))
    return tuple(str(name) for name in given)


def _number(given) -> bool:
    """Whether this is one number, within the floats."""
    try:
        return (
            isinstance(given, (int, float, np.integer, np.floating))
            and not isinstance(given, bool)
            and float(given) == given
        )
    except OverflowError:
        return False


def join_trees(trees: Sequence[dict], base) -> dict[str, np.ndarray]:
    """Concatenate plain trees into the ensemble's arrays."""
    base = np.atleast_1d(array_of("base", base, np.float64))
    if base.ndim != 1:
        raise InvalidModelError(must_be("base", "a number, or one a class", base.tolist()))
    if not isinstance(trees, (list, tuple)):
        raise InvalidModelError(must_be("trees", "a list of trees, each a dict of lists", trees))
    columns: dict[str, list[np.ndarray]] = {
        name: [] for name in ("feature", "threshold", "left", "right", "value", "missing_left")
    }
    sizes = []
    offset = 0
    for number, tree in enumerate(trees):
        parts = _plain_tree(tree, number)
        size = len(parts["feature"])
        for side in ("left", "right"):
            child = parts[side]
            if np.any((child >= size) | (child < -1)):
                node = int(np.flatnonzero((child >= size) | (child < -1))[0])
                raise InvalidModelError(
                    f"tree {number}: {side}[{node}] must be a node of the tree, 0 to {size - 1}, or -1 at a leaf. "
                    f"Got {child[node]} instead."
                )
            parts[side] = np.where(child >= 0, child + offset, -1)
        for name, part in parts.items():
            columns[name].append(part)
        sizes.append(size)
        offset += size
    widths = {part.shape[1] for part in columns["value"]}
    outputs = max(widths | {len(base)}) if widths else len(base)
    if not widths <= {outputs} or len(base) not in (1, outputs):
        raise InvalidModelError(
            f"every value, and base, must have the same number of classes. Got values of {sorted(widths)} "
            f"and a base of {len(base)} instead."
        )
    empty = {"value": np.zeros((0, outputs)), "threshold": np.zeros(0)}
    joined = {
        name: np.concatenate(parts) if parts else empty.get(name, np.zeros(0, dtype=np.int64))
        for name, parts in columns.items()
    }
    joined["tree_offsets"] = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    joined["base"] = np.broadcast_to(base, (outputs,)).copy()
    return joined


def _plain_tree(tree: dict, number: int) -> dict[str, np.ndarray]:
    """One plain tree as arrays of one length."""
    parts = {}
    for name in ("feature", "threshold", "left", "right", "value"):
        if not isinstance(tree, dict) or name not in tree:
            raise InvalidModelError(f"tree {number} must have {name!r}. Got {_keys(tree)} instead.")
        try:
            column = np.asarray(tree[name], dtype=np.float64)
        except NOT_A_NUMBER:
            raise InvalidModelError(
                f"tree {number}: {name} must be a list of numbers, one a node. Got {tree[name]!r:.80} instead."
            ) from None
        parts[name] = column
    size = len(parts["feature"]) if parts["feature"].ndim == 1 else -1
    parts["value"] = parts["value"][:, None] if parts["value"].ndim == 1 else parts["value"]
    for name, column in parts.items():
        if size < 1 or len(column) != size or column.ndim != (2 if name == "value" else 1):
            raise InvalidModelError(
                f"tree {number}: {name} must have one entry for each of its nodes. "
                f"Got the shape {column.shape} where feature has {parts['feature'].shape} instead."
            )
    for name in ("feature", "left", "right"):
        column = parts[name]
        if not np.all(np.isfinite(column)) or np.any(column != np.floor(column)) or np.any(np.abs(column) > 2**31 - 1):
            raise InvalidModelError(
                f"tree {number}: {name} must be whole numbers. Got {column.tolist()!r:.80} instead."
            )
        parts[name] = column.astype(np.int64)
    missing = array_of(f"tree {number}: missing_left", tree.get("missing_left", np.zeros(size)), np.float64) != 0
    if missing.shape != (size,):
        raise InvalidModelError(f"tree {number}: missing_left must have one entry for each of its {size} nodes.")
    parts["missing_left"] = missing
    return parts


def _keys(tree) -> str:
    return f"the keys {sorted(map(str, tree))}" if isinstance(tree, dict) else f"a {type(tree).__name__}"


def check(model: TreeEnsemble) -> None:
    """Raise InvalidModelError unless the arrays form an ensemble of trees."""
    size = len(model.feature)
    for name in ("threshold", "left", "right", "missing_left"):
        if getattr(model, name).shape != (size,):
            raise InvalidModelError(must_be(name, f"of shape ({size},), as feature", getattr(model, name).shape))
    if model.value.ndim != 2 or len(model.value) != size or model.value.shape[1] < 1:
        raise InvalidModelError(must_be("value", f"of shape ({size}, n_outputs)", model.value.shape))
    if model.base.shape != (model.n_outputs,) or not np.all(np.isfinite(model.base)):
        raise InvalidModelError(must_be("base", f"{model.n_outputs} finite number(s)", model.base.tolist()))
    if not _number(model.n_features) or not 1 <= model.n_features < 2**31 or model.n_features % 1:
        raise InvalidModelError(must_be("n_features", "a whole number, 1 to 2^31 - 1", model.n_features))
    object.__setattr__(model, "n_features", int(model.n_features))
    _check_decision(model)
    names = model.feature_names
    if names is not None and (len(names) != model.n_features or len(set(names)) != len(names)):
        raise InvalidModelError(must_be("feature_names", f"{model.n_features} different names", list(names)))
    offsets = model.tree_offsets
    if offsets.ndim != 1 or len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != size or np.any(np.diff(offsets) < 1):
        raise InvalidModelError(must_be("tree_offsets", f"rising from 0 to {size}", offsets.tolist()))
    _check_nodes(model)
    _check_shape(model)
    _check_size(model)


def link(given) -> Link:
    """The link, from a `Link` or (in files) its three entries."""
    try:
        kind, divisor, steepness = given
    except (TypeError, ValueError):
        kind = divisor = steepness = None
    plain = all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in (divisor, steepness))
    if kind not in KINDS or not plain or not all(0 < number < np.inf for number in (divisor, steepness)):
        raise InvalidModelError(must_be("link", f"one of {', '.join(KINDS)} and two positive numbers", given))
    return Link(kind, float(divisor), float(steepness))


def _check_decision(model: TreeEnsemble) -> None:
    wanted = 2 if model.n_outputs == 1 else model.n_outputs
    if model.classes.shape != (wanted,) or len(np.unique(model.classes)) != wanted:
        raise InvalidModelError(
            must_be(
                "classes",
                f"{wanted} different labels for {model.n_outputs} output(s)",
                model.classes.tolist(),
            )
        )
    if model.n_outputs == 1 and model.link != Link():
        raise InvalidModelError(must_be("link", "left out for a single output", tuple(model.link)))
    if not _number(model.zero_class) or model.zero_class not in (0, 1):
        raise InvalidModelError(must_be("zero_class", "0 or 1", model.zero_class))
    if not _number(model.cut) or not np.isfinite(model.cut) or (model.n_outputs > 1 and model.cut != 0):
        raise InvalidModelError(must_be("cut", "a finite number, and 0 for several outputs", model.cut))
    if not _number(model.decision_slack) or not 0 <= model.decision_slack < np.inf:
        raise InvalidModelError(must_be("decision_slack", "a finite number of at least 0", model.decision_slack))
    if not isinstance(model.accepts_missing, (bool, np.bool_)):
        raise InvalidModelError(must_be("accepts_missing", "True or False", model.accepts_missing))
    if not isinstance(model.source, dict):
        raise InvalidModelError(must_be("source", "a dict (library, version, notes)", model.source))


def _check_nodes(model: TreeEnsemble) -> None:
    """Features, thresholds and values are what they must be."""
    inner = model.feature >= 0
    tree = model.tree_of_node

    def refuse(bad: np.ndarray, name: str, rule: str) -> None:
        if np.any(bad):
            node = int(np.flatnonzero(bad)[0])
            where = f"tree {tree[node]}, node {node - model.tree_offsets[tree[node]]}: {name}"
            raise InvalidModelError(must_be(where, rule, getattr(model, name)[node].tolist()))

    refuse(model.feature < -1, "feature", "-1 at a leaf, else a column of X")
    refuse(model.feature >= model.n_features, "feature", f"below n_features, {model.n_features}")
    refuse(inner & np.isnan(model.threshold), "threshold", "a number, not NaN")
    refuse(~inner & ~np.all(np.isfinite(model.value), axis=1), "value", "finite at a leaf")
    first, last = model.tree_offsets[:-1][tree], model.tree_offsets[1:][tree]
    for side in ("left", "right"):
        child = getattr(model, side)
        refuse(inner & ((child < first) | (child >= last)), side, "another node of the same tree")
        refuse(~inner & (child != -1), side, "-1 at a leaf")


def _check_shape(model: TreeEnsemble) -> None:
    """Each node but the roots has exactly one parent, and all are reached from their root."""
    inner = np.flatnonzero(model.feature >= 0)
    parents = np.bincount(
        np.concatenate([model.left[inner], model.right[inner]]).astype(np.int64), minlength=len(model.feature)
    )
    roots = model.tree_offsets[:-1]
    tree = model.tree_of_node
    wanted = np.ones(len(model.feature), dtype=np.int64)
    wanted[roots] = 0
    twice = np.flatnonzero(parents > wanted)
    if len(twice):
        node = int(twice[0])
        raise InvalidModelError(
            f"tree {tree[node]}: node {node - model.tree_offsets[tree[node]]} must have one parent (the root none). "
            f"Got {parents[node]} parents instead: the nodes form a cycle or share a child."
        )
    reached = np.zeros(len(model.feature), dtype=bool)
    nodes = roots
    while len(nodes):
        reached[nodes] = True
        nodes = nodes[model.feature[nodes] >= 0]
        nodes = np.concatenate([model.left[nodes], model.right[nodes]])
    if not np.all(reached):
        node = int(np.flatnonzero(~reached)[0])
        raise InvalidModelError(
            f"tree {tree[node]}: node {node - model.tree_offsets[tree[node]]} is never reached from the root. "
            f"Remove orphan nodes and cycles."
        )


def _check_size(model: TreeEnsemble) -> None:
    """No sum of leaves, and no difference of two, overflows: beyond it scores are inf or NaN and decide nothing."""
    with np.errstate(over="ignore"):
        sizes = np.abs(model.base) + abs(model.cut)
        if model.n_trees:
            sizes = sizes + np.maximum.reduceat(np.abs(model.value), model.tree_offsets[:-1], axis=0).sum(axis=0)
        bad = ~(sizes <= np.finfo(model.sum_dtype).max / 8)
    if np.any(bad):
        raise InvalidModelError(
            must_be("the leaf values", f"small enough to be added in {model.sum_dtype}", float(sizes[bad][0]))
        )


def check_rows(model: TreeEnsemble, X) -> np.ndarray:
    """Return X as a 2-d float32 or float64 array that the model accepts."""
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        X = _frame_rows(model, X)
    if hasattr(X, "toarray"):
        raise InvalidInputError("X must be a dense array. Got a sparse matrix instead. Pass X.toarray().")
    if np.ma.isMaskedArray(X):  # what is masked is missing, whatever number lies under the mask
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        array = np.asarray(X)
    except Exception:  # whatever a stranger's array-like raises
        raise InvalidInputError(must_be("X", "an array of numbers, each row of the same length", type(X))) from None
    if array.dtype not in (np.float32, np.float64):
        if array.dtype.kind not in "biufO":
            raise InvalidInputError(must_be("X", "an array of numbers", array.dtype))
        try:
            with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused below
                array = array.astype(np.float64)
        except NOT_A_NUMBER:
            raise InvalidInputError(must_be("X", "an array of numbers", array.dtype)) from None
    if array.ndim != 2 or array.shape[1] != model.n_features:
        raise InvalidInputError(must_be("X", f"of shape (rows, {model.n_features}), the model's features", array.shape))
    if len(array) == 0:
        raise InvalidInputError("X must have at least one row. Got an empty array instead.")
    check_finite(array, model.accepts_missing)
    return array


def check_finite(array: np.ndarray, accepts_missing: bool) -> None:
    """Refuse infinities, and NaN where the model does not accept missing values (in blocks: X may be large)."""
    step = max(1, 2**22 // max(1, array.shape[1]))
    for start in range(0, len(array), step):
        block = array[start : start + step]
        bad = np.isinf(block) if accepts_missing else ~np.isfinite(block)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            got = block[row, column]
            hint = "This model does not accept missing values." if np.isnan(got) else ""
            raise InvalidInputError(
                must_be(f"X (row {start + row}, column {column})", "a finite number", float(got), hint)
            )


def _frame_rows(model: TreeEnsemble, X):
    """A data frame's numbers, its columns taken by the model's names where it has them."""
    names, columns = model.feature_names, [str(name) for name in X.columns]
    if names is not None and columns != list(names):
        known = places(columns, names)
        lost = [name for name in names if name not in known]
        if lost:
            raise InvalidInputError(
                f"X must have the model's columns. Got none named {lost[0]!r} ({len(lost)} missing) instead."
            )
        twice = [name for name in names if columns.count(name) > 1]
        if twice:
            raise InvalidInputError(f"X must have each of the model's columns once. Got {twice[0]!r} twice instead.")
        chosen = [known[name] for name in names]
        X = X.iloc[:, chosen] if hasattr(X, "iloc") else X[:, chosen]
    array = X.to_numpy()
    if array.dtype != object:
        return array
    try:  # columns that pandas holds as objects: nullable integers, for example
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        _refuse_entry(array, list(X.columns))
        raise


def _refuse_entry(array: np.ndarray, columns: list) -> None:
    """Name the first entry of a table that is no number."""
    for j, column in enumerate(columns):
        for row, entry in enumerate(array[:, j]):
            try:
                np.asarray(entry, dtype=np.float64)
            except (TypeError, ValueError):
                where = f"X (row {row}, column {str(column)!r})"
                hint = "Encode it as the model was trained on it."
                raise InvalidInputError(must_be(where, "a number", entry, hint)) from None
