"""``TreeEnsemble``: the one model inside treeproof, as flat arrays.

One split rule: ``x < threshold`` goes left. Thresholds are kept on the grid of the model's input
dtype (a threshold between two grid numbers is the same rule as the upper one). The score of class k
is ``base[k]`` plus the k-th value of the leaf that x reaches in each tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import InvalidInputError, InvalidModelError, must_be
from . import validation
from .floats import ceil_to
from .link import Link
from .summary import Summary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DTYPES = ("float32", "float64")
COLUMNS: dict[str, type] = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "value": np.float64,
    "missing_left": np.bool_,
    "tree_offsets": np.int64,
    "base": np.float64,
}


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A frozen ensemble of binary trees. Build it with `from_trees`, `from_stumps` or ``treeproof.load``.

    Attributes
    ----------
    feature : int32 array (n_nodes,)
        The feature each node reads, -1 at leaves. The trees' nodes follow one another.
    threshold : float64 array (n_nodes,)
        ``x[feature] < threshold`` goes left; on the grid of `dtype`.
    left, right : int32 array (n_nodes,)
        Children as positions in these arrays, -1 at leaves.
    value : float64 array (n_nodes, n_outputs)
        Leaf values (zero at inner nodes).
    missing_left : bool array (n_nodes,)
        Where a NaN goes; meaningful when `accepts_missing`.
    tree_offsets : int64 array (n_trees + 1,)
        Tree t owns the nodes ``tree_offsets[t]:tree_offsets[t + 1]``; the first is its root.
    base : float64 array (n_outputs,)
        What every score starts from.
    n_features : int
    classes : array (n_classes,)
        Labels; two for a single output.
    zero_class : int
        Single output: the class (0 or 1) of a score of exactly `cut`. More outputs: first maximum.
    cut : float
        Single output: class 1 is predicted above it.
    dtype : {"float32", "float64"}
        The float type in which the model receives its inputs.
    sum_dtype : {"float32", "float64"}
        The float type in which the model adds its leaves.
    decision_slack : float
        A bound on what else the model's own arithmetic may do to a score before it decides
        (a sigmoid in float32, for example).
    link : Link
        More outputs: the float arithmetic between scores and the comparison of classes.
    accepts_missing : bool
    feature_names : tuple of str or None
    source : dict
        Where the model came from (library, version, ...), for `summary`.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    missing_left: np.ndarray
    tree_offsets: np.ndarray
    base: np.ndarray
    n_features: int
    classes: np.ndarray
    zero_class: int = 0
    cut: float = 0.0
    dtype: str = "float64"
    sum_dtype: str = "float64"
    decision_slack: float = 0.0
    link: Link = Link()
    accepts_missing: bool = False
    feature_names: tuple[str, ...] | None = None
    source: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("dtype", "sum_dtype"):
            if getattr(self, name) not in DTYPES:
                raise InvalidModelError(must_be(name, "'float32' or 'float64'", getattr(self, name)))
        put = object.__setattr__
        for name, kind in COLUMNS.items():
            put(self, name, validation.array_of(name, getattr(self, name), kind))
        put(self, "value", self.value[:, None] if self.value.ndim == 1 else self.value)
        put(self, "base", np.atleast_1d(self.base))
        put(self, "classes", validation.labels(self.classes))
        if self.feature_names is not None:
            put(self, "feature_names", validation.names(self.feature_names))
        put(self, "link", validation.link(self.link))
        validation.check(self)
        inner = self.feature >= 0
        put(self, "threshold", np.where(inner, ceil_to(self.threshold, self.dtype), 0.0))
        put(self, "value", np.where(inner[:, None], 0.0, self.value))
        for name in COLUMNS:
            getattr(self, name).flags.writeable = False

    # ------------------------------------------------------------------ construction

    @classmethod
    def from_trees(
        cls,
        trees: Sequence[dict],
        n_features: int,
        base=0.0,
        classes=None,
        zero_class: int = 0,
        dtype: str = "float64",
        **fields,
    ) -> TreeEnsemble:
        """Build an ensemble from plain trees.

        Parameters
        ----------
        trees : list of dict
            Each with lists ``feature`` (-1 at leaves), ``threshold``, ``left``, ``right`` (positions in
            that tree; node 0 is the root) and ``value`` (a number, or one a class, for each node).
            ``missing_left`` (bools) is optional.
        n_features : int
        base : float or array (n_outputs,)
        classes : array, optional
            Labels; 0, 1, ... by default.
        zero_class : {0, 1}
            For one output: the class of a score of exactly 0.
        dtype : {"float32", "float64"}
            The float type in which the model receives its inputs.
        **fields
            Any other attribute of `TreeEnsemble`.

        Examples
        --------
        >>> stump = {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1],
        ...          "right": [2, -1, -1], "value": [0, -1.0, 1.0]}
        >>> TreeEnsemble.from_trees([stump], n_features=1).predict([[0.2], [0.5]])
        array([0, 1])
        """
        arrays: dict[str, Any] = dict(validation.join_trees(trees, base))
        if classes is None:
            classes = np.arange(max(2, arrays["value"].shape[1]))
        return cls(**arrays, n_features=n_features, classes=classes, zero_class=zero_class, dtype=dtype, **fields)

    @classmethod
    def from_stumps(
        cls, feature, threshold, left, right, *, n_features: int | None = None, base=0.0, **fields
    ) -> TreeEnsemble:
        """Build an ensemble of stumps from arrays of length T.

        Parameters
        ----------
        feature, threshold : array (T,)
        left, right : array (T,) or (T, n_outputs)
            The leaf values for ``x[feature] < threshold`` and the rest.
        n_features : int, optional
            The largest feature used, plus one, by default.
        base : float or array (n_outputs,)
        **fields
            Any other attribute of `TreeEnsemble`, and ``classes``.
        """
        feature = np.atleast_1d(np.asarray(feature))
        count = len(feature)
        if not np.issubdtype(feature.dtype, np.integer) and count:
            raise InvalidModelError(must_be("feature", "an array of integers", feature.dtype))
        sides = [validation.array_of(name, side, np.float64) for name, side in (("left", left), ("right", right))]
        sides = [side[:, None] if side.ndim == 1 else side for side in sides]
        threshold = validation.array_of("threshold", threshold, np.float64)
        base = np.atleast_1d(validation.array_of("base", base, np.float64))
        shapes = {feature.shape, threshold.shape, *(side.shape[:1] for side in sides)}
        if shapes != {(count,)} or sides[0].shape != sides[1].shape or sides[0].ndim != 2:
            raise InvalidModelError(
                f"feature, threshold, left and right must have one entry a stump. Got the shapes "
                f"{feature.shape}, {threshold.shape}, {np.shape(left)} and {np.shape(right)} instead."
            )
        if np.any(feature < 0):
            raise InvalidModelError(must_be("feature", "non-negative for every stump", int(feature.min())))
        outputs = sides[0].shape[1] if count else len(base)
        if base.shape not in ((1,), (outputs,)):
            raise InvalidModelError(must_be("base", f"a number, or {outputs} of them", base.tolist()))
        nodes = 3 * np.arange(count)
        columns: dict[str, Any] = {
            "feature": np.full(3 * count, -1, dtype=np.int64),
            "threshold": np.zeros(3 * count),
            "left": np.full(3 * count, -1),
            "right": np.full(3 * count, -1),
            "value": np.zeros((3 * count, outputs)),
        }
        columns["feature"][nodes] = feature
        columns["threshold"][nodes] = threshold
        columns["left"][nodes], columns["right"][nodes] = nodes + 1, nodes + 2
        columns["value"][nodes + 1], columns["value"][nodes + 2] = sides
        if n_features is None:
            n_features = int(feature.max()) + 1 if count else 1
        fields.setdefault("classes", np.arange(max(2, outputs)))
        return cls(
            **columns,
            missing_left=np.zeros(3 * count, dtype=bool),
            tree_offsets=np.arange(0, 3 * count + 1, 3),
            base=np.broadcast_to(base, (outputs,)).copy(),
            n_features=n_features,
            **fields,
        )

    # ------------------------------------------------------------------ facts

    @property
    def n_trees(self) -> int:
        return len(self.tree_offsets) - 1

    @property
    def n_outputs(self) -> int:
        return self.value.shape[1]

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_leaves(self) -> int:
        return int(np.sum(self.feature < 0))

    @cached_property
    def tree_of_node(self) -> np.ndarray:
        """The tree that each node belongs to."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.tree_offsets))

    @cached_property
    def used_features(self) -> np.ndarray:
        """The features that some split reads, ascending."""
        return np.unique(self.feature[self.feature >= 0])

    @cached_property
    def is_additive(self) -> bool:
        """Whether each tree reads at most one feature, so that the score is a sum of staircases."""
        inner = np.flatnonzero(self.feature >= 0)
        tree, read = self.tree_of_node[inner], self.feature[inner]
        first = np.full(self.n_trees, -1)
        first[tree[::-1]] = read[::-1]
        return bool(np.all(first[tree] == read))

    # ------------------------------------------------------------------ prediction

    def check_rows(self, X) -> np.ndarray:
        """Return `X` as a 2-d float array of the right width, or raise one clear error.

        A float32 or float64 array comes back uncopied; anything else as float64.
        """
        return validation.check_rows(self, X)

    def cast(self, X: np.ndarray) -> np.ndarray:
        """Return rows as the model receives them: rounded to `dtype`, held as float64."""
        if self.dtype == "float32" and X.dtype != np.float32:
            with np.errstate(over="ignore", under="ignore"):
                X = X.astype(np.float32)
            if np.isinf(X).any():
                row, column = np.argwhere(np.isinf(X))[0]
                raise InvalidInputError(
                    f"X must fit the model's float32 inputs. Got a number beyond their range in row {row}, "
                    f"column {column} instead."
                )
        return X.astype(np.float64)

    def decision_function(self, X) -> np.ndarray:
        """Scores, added in `sum_dtype` tree after tree from `base`; (n,) for one output, else (n, n_outputs)."""
        from .predict import scores

        out = scores(self, self.check_rows(X))
        return out[:, 0] if self.n_outputs == 1 else out

    def predict_index(self, X) -> np.ndarray:
        """Position in `classes` of each row's prediction."""
        return self.decide(self.decision_function(X))

    def decide(self, scores: np.ndarray) -> np.ndarray:
        """The decision rule: from scores to positions in `classes`."""
        if self.n_outputs > 1:
            return np.argmax(self.link(scores, self.sum_dtype), axis=1)
        scores = np.asarray(scores).reshape(-1)
        return np.where(scores == self.cut, self.zero_class, scores > self.cut).astype(np.int64)

    def predict(self, X) -> np.ndarray:
        """Predicted labels."""
        return self.classes[self.predict_index(X)]

    # ------------------------------------------------------------------ words and files

    def summary(self) -> Summary:
        """What the model is, as an object that prints as a small table."""
        return Summary.of(self)

    def __repr__(self) -> str:
        kind = "additive " if self.is_additive else ""
        return (
            f"<TreeEnsemble: {self.n_trees} {kind}trees, {self.n_leaves} leaves, {self.n_features} features, "
            f"{self.n_classes} classes, {self.dtype}>"
        )

    def to_json(self) -> str:
        """The model as text in treeproof's own format (``docs/model-format.md``)."""
        from .files import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> TreeEnsemble:
        """Read `to_json`'s text. It is data only: safe to read from strangers."""
        from .files import from_json

        return from_json(text)

    def save(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        from .files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> TreeEnsemble:
        """Read a file written by `save`."""
        from .files import load

        return load(path)
