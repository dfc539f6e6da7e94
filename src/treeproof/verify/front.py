"""The two public functions, `certify` and `radius`: checks, batches, results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._clock import clock
from .._errors import InvalidInputError, InvalidThreatError, must_be
from ..model import TreeEnsemble
from ..results import Certificates, Radii, Status, Witnesses
from ..threat import Threat, check_eps, check_norm
from .batches import check_jobs, run_batches
from .methods import solver_for
from .nearest import radius_batch
from .problem import Problem
from .within import certify_batch


class _Task(NamedTuple):
    """Checked arguments."""

    model: TreeEnsemble
    X: np.ndarray
    y: np.ndarray | None  # positions in classes
    threat: Threat
    problem: Problem
    solver: Any
    method: str
    reason: str


def certify(
    model,
    X,
    y=None,
    threat: Threat | None = None,
    *,
    norm: float | None = None,
    eps: float | None = None,
    method: str = "auto",
    time_limit: float | None = None,
    n_jobs: int | None = None,
    progress=False,
    exact_margin: bool = False,
    **options,
) -> Certificates:
    """Prove, row by row, that nothing the threat allows changes the prediction; or show what does.

    Parameters
    ----------
    model : TreeEnsemble, estimator, booster or path
        Anything that ``treeproof.load`` reads.
    X : array or DataFrame (n, n_features)
        NaN only where the model accepts missing values; a missing feature does not move.
    y : array (n,), optional
        Labels. A misclassified row is broken as it stands. Without labels, the stability of the
        prediction is certified.
    threat : Threat, optional
        Or give `norm` and `eps` alone.
    norm, eps : float, optional
        p in [0, inf] and the budget.
    method : {"auto", "additive", "tree", "grid", "search", "milp", "multilevel"}
        "auto" picks an exact one and says why.
    time_limit : float, optional
        Seconds a row, for methods that may need long; several classes share them.
    n_jobs : int, optional
        Threads; -1 for all cores. Results do not depend on it.
    progress : bool or callable
        A bar on stderr, or a function called with (rows done, rows).
    exact_margin : bool
        Add leaves as real numbers: for models whose own arithmetic is exact, and for tests. Then margins
        inside the float summation error are decided too, and `lower` and `upper` enclose the worst-case
        margin as tightly as two floats can.
    **options
        Of the method, e.g. ``precision`` for "grid".

    Returns
    -------
    Certificates

    Examples
    --------
    >>> import treeproof
    >>> model = treeproof.TreeEnsemble.from_stumps([0, 1], [0.5, 0.5], [-1.0, -1.0], [2.0, 2.0])
    >>> proof = treeproof.certify(model, [[0.9, 0.9], [0.6, 0.1]], norm=1, eps=0.3)
    >>> [treeproof.Status(code).name for code in proof.status]
    ['ROBUST', 'BROKEN']
    >>> proof.changes(1)
    {0: (0.6, 0.49999999999999994)}
    """
    if threat is None:
        if norm is None or eps is None:
            raise InvalidThreatError(
                f"certify must have a threat, or norm and eps. Got norm {norm!r} and eps {eps!r} instead."
            )
        threat = Threat(norm=norm, eps=eps)
    else:
        _check_threat(threat, norm=norm, eps=eps)
    task = _prepare(model, X, y, threat, method, time_limit, exact_margin, options)
    jobs = check_jobs(n_jobs)

    def work(part: slice):
        start = clock()
        out = certify_batch(task.problem, task.solver, task.X[part], None if task.y is None else task.y[part])
        return out, _shares(part, clock() - start)

    n = len(task.X)
    done, interrupted = run_batches(work, n, _batch_size(task), jobs, progress)
    status = np.full(n, Status.UNKNOWN, dtype=np.int8)
    columns = _Columns(n, lower=-np.inf, upper=np.inf)
    for start, (out, seconds) in done.items():
        status[start : start + len(seconds)] = out.status
        columns.put(start, out, seconds)
    return Certificates(**columns.fields(task, interrupted), status=status)


def radius(
    model,
    X,
    y=None,
    threat: Threat | None = None,
    *,
    norm: float | None = None,
    max_radius: float = np.inf,
    method: str = "auto",
    time_limit: float | None = None,
    n_jobs: int | None = None,
    progress=False,
    exact_margin: bool = False,
    **options,
) -> Radii:
    """Find, row by row, the smallest allowed move that changes the prediction, in units of the norm.

    Parameters
    ----------
    model, X, y, method, time_limit, n_jobs, progress, exact_margin, **options
        As for `certify`. A misclassified row has radius 0.
    threat : Threat, optional
        Its norm, scale, frozen features, ranges and directions count; its eps does not.
    norm : float, optional
        p in [0, inf], instead of a threat.
    max_radius : float
        Look no further; rows that do not flip within it have an infinite radius.

    Returns
    -------
    Radii

    Examples
    --------
    >>> import treeproof
    >>> model = treeproof.TreeEnsemble.from_stumps([0, 1], [0.5, 0.5], [-1.0, -1.0], [2.0, 2.0])
    >>> treeproof.radius(model, [[0.9, 0.9]], norm=1).upper.round(6)
    array([0.8])
    """
    if threat is None:
        if norm is None:
            raise InvalidThreatError("radius must have a threat, or a norm. Got neither. Add norm=1, for example.")
        threat = Threat(norm=norm)
    else:
        _check_threat(threat, norm=norm)
    max_radius = check_eps(max_radius, "max_radius")
    threat = Threat(**(threat.to_dict() | {"eps": np.inf}))
    task = _prepare(model, X, y, threat, method, time_limit, exact_margin, options)
    jobs = check_jobs(n_jobs)

    def work(part: slice):
        start = clock()
        labels = None if task.y is None else task.y[part]
        out = radius_batch(task.problem, task.solver, task.X[part], labels, max_radius)
        return out, _shares(part, clock() - start)

    n = len(task.X)
    done, interrupted = run_batches(work, n, _batch_size(task), jobs, progress)
    exact = np.zeros(n, dtype=bool)
    columns = _Columns(n, lower=0.0, upper=np.inf)
    for start, (out, seconds) in done.items():
        exact[start : start + len(seconds)] = out.exact
        columns.put(start, out, seconds)
    return Radii(**columns.fields(task, interrupted), exact=exact, max_radius=max_radius)


def _prepare(model, X, y, threat, method, time_limit, exact_margin, options) -> _Task:
    """Check the arguments and prepare the method."""
    model = _ensemble(model)
    rows = model.check_rows(X)
    labels = None if y is None else label_positions(model, y, len(rows))
    if time_limit is not None:
        if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not time_limit > 0:
            raise InvalidInputError(must_be("time_limit", "a positive number of seconds a row, or None", time_limit))
        # a row is asked once for every other class
        options = {**options, "time_limit": float(time_limit) / max(1, model.n_classes - 1)}
    if not isinstance(exact_margin, (bool, np.bool_)):
        raise InvalidInputError(must_be("exact_margin", "True or False", exact_margin))
    problem = Problem(model, threat.resolve(model), bool(exact_margin))
    solver, name, reason = solver_for(method, problem, options)
    return _Task(model, rows, labels, threat, problem, solver, name, reason)


def _ensemble(model) -> TreeEnsemble:
    if isinstance(model, TreeEnsemble):
        return model
    if isinstance(getattr(model, "ensemble_", None), TreeEnsemble):
        return model.ensemble_
    from ..importers import load

    return load(model)


def _check_threat(threat, **given) -> None:
    if not isinstance(threat, Threat):
        raise InvalidThreatError(must_be("threat", "a treeproof.Threat", threat))
    for name, value in given.items():
        check = check_norm if name == "norm" else check_eps
        if value is not None and check(value) != getattr(threat, name):
            raise InvalidThreatError(
                f"{name} must be given once. Got {name}={value!r} beside a threat with {getattr(threat, name)!r}."
            )


def label_positions(model: TreeEnsemble, y, n: int) -> np.ndarray:
    """Labels as positions in the model's classes."""
    try:
        labels = np.asarray(y)
    except Exception as error:  # whatever a stranger's array-like raises
        raise InvalidInputError(must_be("y", f"of shape ({n},), a label a row of X", error)) from None
    if labels.ndim != 1 or len(labels) != n:
        raise InvalidInputError(must_be("y", f"of shape ({n},), a label a row of X", labels.shape))
    same_kind = (labels.dtype.kind in "US") == (model.classes.dtype.kind in "US")
    order = np.argsort(model.classes)
    if labels.dtype.kind != "V" and (same_kind or labels.dtype.kind == "O"):
        try:
            place = np.searchsorted(model.classes, labels, sorter=order)
        except TypeError:
            place = np.full(n, len(order))
        place = order[np.minimum(place, len(order) - 1)]
        wrong = np.asarray(model.classes[place] != labels, dtype=bool)
    else:
        place, wrong = np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
    if np.any(wrong):
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(
            must_be(
                f"y (row {row})",
                f"one of the model's classes {model.classes.tolist()}",
                labels[row].tolist() if hasattr(labels[row], "tolist") else labels[row],
            )
        )
    return place.astype(np.int64)


def _batch_size(task: _Task) -> int:
    """Rows a batch: few enough for progress and memory, many enough to pay for a call."""
    widest = max(1, 2**22 // max(1, task.model.n_features * task.model.n_outputs))
    return int(min(task.solver.batch_rows, widest, 4096))


def _shares(part: slice, seconds: float) -> np.ndarray:
    """A batch's time, shared by its rows."""
    count = part.stop - part.start
    return np.full(count, seconds / count, dtype=np.float32)


class _Columns:
    """Collects batches into the columns that both results have; rows never reached keep their start values."""

    def __init__(self, n: int, lower: float, upper: float) -> None:
        self.lower = np.full(n, lower)
        self.upper = np.full(n, upper)
        self.seconds = np.zeros(n, dtype=np.float32)
        self.predicted = np.full(n, -1, dtype=np.int64)
        self.reached = np.zeros(n, dtype=np.int8)
        self.witnesses: dict[int, Witnesses] = {}
        self.cast = 0

    def put(self, start: int, out, seconds: np.ndarray) -> None:
        part = slice(start, start + len(seconds))
        self.lower[part], self.upper[part] = out.lower, out.upper
        self.predicted[part], self.seconds[part] = out.predicted, seconds
        self.reached[part] = 1
        self.witnesses[start] = out.witnesses
        self.cast += out.cast_rows

    def fields(self, task: _Task, interrupted: bool) -> dict[str, Any]:
        lost = np.flatnonzero(self.predicted < 0)
        if len(lost):
            self.predicted[lost] = task.model.predict_index(task.X[lost])
        parts, at = [], 0
        for start in sorted(self.witnesses):
            if start > at:
                parts.append(Witnesses.empty(start - at))
            parts.append(self.witnesses[start])
            at = start + len(self.witnesses[start].present)
        if at < len(self.lower):
            parts.append(Witnesses.empty(len(self.lower) - at))
        classes = task.model.classes
        return {
            "X": task.X,
            "y": None if task.y is None else classes[task.y],
            "predicted": classes[self.predicted],
            "classes": classes,
            "threat": task.threat,
            "lower": self.lower,
            "upper": self.upper,
            "witnesses": Witnesses.join(parts),
            "seconds": self.seconds,
            "method_code": self.reached,
            "method_names": ("not reached", task.method),
            "method_reason": task.reason,
            "dtype": task.model.dtype,
            "cast_rows": self.cast,
            "interrupted": interrupted,
            "feature_names": task.model.feature_names,
        }
