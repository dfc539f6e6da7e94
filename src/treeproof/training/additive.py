"""``AdditiveClassifier``: certified training of a whole additive model as one convex problem.

For fixed thresholds the linear relaxation of the worst-case margin is concave in the staircases, so a convex
decreasing loss of it is convex in the model. All staircases are trained at once against every move that the
threat allows; any p in [0, inf]. The certificate of the fitted model comes from the exact additive verifier.
The derivation is in docs/convex-method.md; it goes beyond the paper's section 4.1.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np

from .._errors import InvalidInputError, must_be
from ..threat import Threat
from . import params
from .additive_bins import BINNINGS, thresholds_for
from .additive_groups import (
    JOINT_CELLS,
    BlockProblem,
    blocks_ensemble,
    build_blocks,
    check_interactions,
    group_size,
    groups_of,
)
from .additive_optimiser import Settings, Solution, solve
from .additive_problem import LOSSES, Problem, build
from .additive_sparse import prune
from .additive_staircases import as_text, ensemble_of, plot, staircases_of
from .base import BinaryFit, BinaryTask, ProvableClassifier, merge_repeated_rows

MERGE_BELOW = 50_000  # rows


class AdditiveClassifier(ProvableClassifier):
    """Additive model (a sum of one-feature staircases) trained as one convex problem to be provably robust.

    Parameters
    ----------
    norm : float, default=1
        p of the l_p norm, in [0, inf].
    eps : float, default=0.1
        The radius to be robust against, in the units of X (of `scale`, where given). 0 trains a plain
        additive model.
    max_bins : int or "auto", default="auto"
        At most this many cells a feature. More bins give better certificates for finite p, at a
        proportional cost: "auto" divides 20,000 cells among the features, 16 to 128 each. For p = inf,
        where a move costs nothing, it divides 2,000, but at least as many as make cells of 0.6 eps (2 to
        16). With `max_stumps` it divides 1,200, or 4 a stump where that is more, 2 to 128 each.
    binning : {"uniform", "quantile", "mixed"}, default="uniform"
        Where thresholds go; they always lie inside gaps between data values.
    thresholds : list of arrays, optional
        Thresholds of each feature, instead of `max_bins` and `binning`.
    loss : {"logistic", "hinge", "exponential"}, default="logistic"
    total_variation : float or "auto", default="auto"
        Penalty on the sum of the absolute steps; "auto" is 1 / n rows, within [1e-4, 1e-3].
    l2 : float, default=1e-4
        Penalty on half the squared values; positive (it makes the optimum unique and its gap provable).
    eps_factor : float, default=1.0
        Training uses `eps_factor * eps` (p > 0); above 1 it is a margin of safety against unseen rows.
    monotone : array (n_features,) or dict, optional
        +1 (never falling), -1 (never rising) or 0 for each feature, seen from ``classes_[1]``.
    interactions : int or list of groups, optional
        Tables over the joint cells of a few features instead of staircases alone: a group is a list of column
        numbers or names, and may overlap others; an int chooses groups of that many features from the rows
        (disjoint for finite p; one led by each feature at p = inf). Features in no group keep a staircase. The
        problem stays convex; tables have the `l2` penalty only, and the fitted model is one of trees. For p = inf;
        for finite p staircases on many bins do as well (docs/convex-method.md).
    max_stumps : int, optional
        At most this many thresholds in the whole model (for each class, with several).
    scale, frozen, lower, upper, direction : optional
        The threat's other parts, as in `treeproof.Threat`.
    learning_rate : float, default=0.02
    batch_size : int or "auto", default="auto"
    epochs : int or "auto", default="auto"
        Passes over the rows in the first cycle; "auto" makes about 500 steps (1,500 for p = inf), and at
        least 3 passes.
    max_epochs : int, optional
        All cycles together; by default one cycle on large data and as many as `tol` needs, up to 8 cycles,
        below 5,000 rows.
    tol : float, default=0.02
        Stop when the objective is proved to be within this share of its optimum.
    warmup : float, default=0.35
        The part of the first cycle in which eps rises.
    early_stopping : bool, default=False
        Hold out rows (or use the validation rows given to ``fit``), keep the cycle with the least verified
        validation error, and stop when it has not fallen for `patience` cycles.
    validation_fraction : float, default=0.1
    patience : int, default=2
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : bool, default=False
        A line a cycle on standard error.

    Attributes
    ----------
    ensemble_ : TreeEnsemble
        The fitted stumps.
    classes_ : array (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str
    gap_ : float
        Proved relative distance of the training objective to its optimum (the worst over the classes).
    objective_, lower_bound_ : list of float
        The training objective and the proved lower bound of its optimum, one a binary problem.
    stopped_by_ : list of {"tol", "validation", "max_epochs"}
    history_ : list of dict
        For each binary problem the objective, its bound and the validation error after each cycle.

    Notes
    -----
    One-vs-all for several classes: training does not bound f_y - f_c itself; the certificate does.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((200, 3))
    >>> model = AdditiveClassifier(norm=1, eps=0.05, random_state=0).fit(X, X[:, 0] + X[:, 1] > 1)
    >>> model.ensemble_.is_additive
    True
    """

    def __init__(
        self,
        norm=1,
        eps=0.1,
        *,
        max_bins="auto",
        binning="uniform",
        thresholds=None,
        loss="logistic",
        total_variation="auto",
        l2=1e-4,
        eps_factor=1.0,
        monotone=None,
        interactions=None,
        max_stumps=None,
        scale=None,
        frozen=None,
        lower=None,
        upper=None,
        direction=None,
        learning_rate=0.02,
        batch_size="auto",
        epochs="auto",
        max_epochs=None,
        tol=0.02,
        warmup=0.35,
        early_stopping=False,
        validation_fraction=0.1,
        patience=2,
        random_state=None,
        n_jobs=None,
        verbose=False,
    ):
        self.norm = norm
        self.eps = eps
        self.max_bins = max_bins
        self.binning = binning
        self.thresholds = thresholds
        self.loss = loss
        self.total_variation = total_variation
        self.l2 = l2
        self.eps_factor = eps_factor
        self.monotone = monotone
        self.interactions = interactions
        self.max_stumps = max_stumps
        self.scale = scale
        self.frozen = frozen
        self.lower = lower
        self.upper = upper
        self.direction = direction
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.max_epochs = max_epochs
        self.tol = tol
        self.warmup = warmup
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ parameters

    def _check_parameters(self) -> None:
        super()._check_parameters()
        params.choice("binning", self.binning, BINNINGS)
        params.choice("loss", self.loss, tuple(LOSSES))
        for name, least in (("max_bins", 1), ("batch_size", 1), ("epochs", 1)):
            if getattr(self, name) != "auto":
                params.whole(name, getattr(self, name), least, 32_000 if name == "max_bins" else None)
        if self.total_variation != "auto":
            params.finite("total_variation", self.total_variation, 0.0)
        params.finite("l2", self.l2, 0.0, open_low=True)
        params.finite("eps_factor", self.eps_factor, 0.0, open_low=True)
        params.finite("learning_rate", self.learning_rate, 0.0, open_low=True)
        params.finite("tol", self.tol, 0.0)
        params.number("warmup", self.warmup, 0.0, 0.9)
        params.number("validation_fraction", self.validation_fraction, 0.0, 0.9, open_low=True)
        params.whole("patience", self.patience, 1)
        for name in ("max_epochs", "max_stumps"):
            if getattr(self, name) is not None:
                params.whole(name, getattr(self, name), 1)
        if self.interactions is not None:
            check_interactions(self)

    def _default_threat(self, norm=None, eps=None) -> Threat:
        return Threat(
            norm=self.norm if norm is None else norm,
            eps=self.eps if eps is None else eps,
            scale=self.scale,
            frozen=self.frozen,
            lower=self.lower,
            upper=self.upper,
            direction=self.direction,
        )

    def _column(self, name: str, key) -> int:
        """The column that a number or name in parameter `name` means."""
        names = list(getattr(self, "feature_names_in_", []))
        j = names.index(key) if key in names else key
        if not isinstance(j, (int, np.integer)) or isinstance(j, bool) or not 0 <= j < self.n_features_in_:
            raise InvalidInputError(
                must_be(f"{name}'s feature", f"a column number, 0 to {self.n_features_in_ - 1}, or a name", key)
            )
        return int(j)

    def _monotone_signs(self, n_features: int) -> np.ndarray:
        """One of -1, 0, +1 a feature."""
        if self.monotone is None:
            return np.zeros(n_features, dtype=np.int64)
        if isinstance(self.monotone, dict):
            signs = np.zeros(n_features)
            for key, sign in self.monotone.items():
                signs[self._column("monotone", key)] = sign
        else:
            signs = np.asarray(self.monotone, dtype=np.float64)
        if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
            raise InvalidInputError(must_be("monotone", f"{n_features} numbers among -1, 0 and +1", self.monotone))
        return signs.astype(np.int64)

    def _settings(self, n_rows: int, label: str) -> Settings:
        """The optimiser's settings, with "auto" resolved for this many rows."""
        batch = self.batch_size
        if batch == "auto":
            batch = 64 if n_rows < 4_000 else 256 if n_rows < 100_000 else 2_048
        batch = min(batch, n_rows)
        epochs = self.epochs
        if epochs == "auto":
            # at p = inf a pass is cheap, and a row pulls at one cell a feature only
            steps = 1_500 if self.norm == np.inf else 500
            epochs = max(3, int(np.ceil(steps * batch / n_rows)))
        max_epochs = self.max_epochs
        if max_epochs is None:
            max_epochs = 8 * epochs if n_rows < 5_000 or self.early_stopping else epochs
        report = None
        if self.verbose:

            def report(line):
                sys.stderr.write(f"AdditiveClassifier, {label}, {line}\n")

        return Settings(
            epochs=epochs,
            max_epochs=max(max_epochs, epochs) if self.max_epochs is None else max_epochs,
            batch=batch,
            rate=self.learning_rate,
            ramp=self.warmup,
            average=0.3,
            tol=self.tol,
            patience=self.patience,
            report=report,
            label=label,
        )

    # ------------------------------------------------------------------ training

    def fit(self, X, y, sample_weight=None, *, X_val=None, y_val=None):
        """Train on rows `X` with labels `y`.

        Parameters
        ----------
        X : array-like (n, n_features)
        y : array-like (n,)
            Labels of two or more classes.
        sample_weight : array-like (n,), optional
            Rows of weight 0 are left out altogether.
        X_val, y_val : array-like, optional
            Validation rows for `early_stopping`.

        Returns
        -------
        self
        """
        super().fit(X, y, sample_weight, X_val=X_val, y_val=y_val)
        for fit in self._fits:
            fit.state[0].forget_workspaces()
        solutions: list[Solution] = [fit.state[1] for fit in self._fits]
        self.objective_ = [one.objective for one in solutions]
        self.lower_bound_ = [one.lower_bound for one in solutions]
        self.gap_ = max(one.gap for one in solutions)
        self.stopped_by_ = [one.stopped_by for one in solutions]
        self.history_ = [one.history for one in solutions]
        self.n_iter_ = max(one.history["epoch"][-1] for one in solutions)
        return self

    def _fit_binary(self, task: BinaryTask) -> BinaryFit:
        task = self._prepared(task)
        problem: Problem | BlockProblem = self._problem(task.X, task.sample_weight)
        rows = problem.rows(task.X, task.y, task.sample_weight)
        settings = self._settings(len(task.y), task.label)
        if isinstance(problem, Problem) and self.interactions is not None:
            groups = groups_of(self.interactions, problem, rows, settings, task.rng, self._column)
            problem = build_blocks(problem, groups)
        validate = None
        if self.early_stopping and task.X_val is not None and task.y_val is not None:
            held = problem.rows(task.X_val, task.y_val, np.ones(len(task.y_val)))
            share = 1.0 / self.eps_factor if self.norm > 0 else 1.0

            def validate(values):
                return float(np.mean(problem.bounds(held, values, share) <= 0))

        solution = solve(problem, rows, settings, task.rng, validate=validate)
        width = task.X.shape[1]
        if isinstance(problem, BlockProblem):
            ensemble = blocks_ensemble(problem, solution.values, width)
        else:
            if self.max_stumps is not None:
                problem, rows, solution = prune(problem, rows, solution, self.max_stumps, settings, task.rng)
            ensemble = ensemble_of(problem.features, problem.thresholds, solution.values, problem.first, width)
        return BinaryFit(ensemble, solution.history, (problem, solution))

    def _prepared(self, task: BinaryTask) -> BinaryTask:
        """Repeated rows merged (a weight of 2 is then exactly a repeated row), validation rows held out."""
        X, y, weight = task.X, task.y, task.sample_weight
        if len(X) <= MERGE_BELOW:
            X, sides, weight = merge_repeated_rows(X, (y > 0).astype(np.int64), weight)
            y = np.where(sides == 1, 1.0, -1.0)
        X_val, y_val = task.X_val, task.y_val
        if self.early_stopping and X_val is None:
            held = np.zeros(len(y), dtype=bool)
            for sign in (-1.0, 1.0):
                own = np.flatnonzero(y == sign)
                count = min(int(round(self.validation_fraction * len(own))), len(own) - 1)
                held[task.rng.permutation(own)[:count]] = True
            if held.any():
                X_val, y_val = X[held], y[held]
                X, y, weight = np.ascontiguousarray(X[~held]), y[~held], weight[~held]
        return BinaryTask(X, y, weight, task.rng, X_val, y_val, task.previous, task.label)

    def _problem(self, X, weight) -> Problem:
        """Thresholds, threat and penalties for these rows."""
        d = X.shape[1]
        tv = self.total_variation
        if tv == "auto":
            tv = float(np.clip(1.0 / len(X), 1e-4, 1e-3))
        names = getattr(self, "feature_names_in_", None)
        shape = SimpleNamespace(
            n_features=d, feature_names=None if names is None else tuple(map(str, names)), dtype="float64"
        )
        factor = self.eps_factor if self.norm > 0 else 1.0
        threat = self._default_threat(eps=self.eps * factor).resolve(shape)
        max_bins = self._auto_bins(X, threat) if self.max_bins == "auto" else self.max_bins
        thresholds = thresholds_for(X, weight, max_bins, self.binning, self.thresholds)
        jobs = self.n_jobs if len(self.classes_) == 2 else 1
        return build(thresholds, threat, self._monotone_signs(d), self.loss, tv, float(self.l2), _threads(jobs))

    def _auto_bins(self, X, threat) -> int:
        """The number of cells a feature that ``max_bins="auto"`` means."""
        spans = np.ptp(X, axis=0) / threat.scale
        spans = spans[spans > 0]
        cells, least = 20_000, 16
        if self.norm == np.inf:  # cells of about 0.6 eps, where there cannot be very many
            count = 1.6 * float(np.median(spans)) / threat.eps if len(spans) and threat.eps > 0 else 16
            cells, least = 2_000, int(np.clip(count, 2, 16))
        if self.max_stumps is not None:
            # few thresholds are better chosen among few, far apart; and among the same ones whatever their number
            cells, least = min(cells, max(1_200, 4 * self.max_stumps)), 2
        if self.interactions is not None:  # few enough that a table of joint cells stays small
            size = group_size(self.interactions)
            return int(np.clip(cells // max(1, len(spans)), least, max(2, int(JOINT_CELLS ** (1.0 / size) + 1e-9))))
        return int(np.clip(cells // max(1, len(spans)), least, 128))

    def training_bound(self, X, y) -> np.ndarray:
        """The training's own lower bound of each row's worst-case margin, at `eps` (`eps_factor` left out).

        Sound and quick, a little below what `certify` finds exactly. With several classes it is that of the
        one-against-the-rest score of the row's own class, which proves nothing about f_y - f_c.

        Parameters
        ----------
        X : array-like (n, n_features)
        y : array-like (n,)
            True labels.

        Returns
        -------
        array (n,)
        """
        X = self._rows(X)
        y = np.asarray(y)
        if y.shape != (len(X),) or not np.isin(y, self.classes_).all():
            raise InvalidInputError(must_be("y", f"{len(X)} labels among {self.classes_.tolist()}", y))
        share = 1.0 / self.eps_factor if self.norm > 0 else 1.0
        out = np.empty(len(X))
        for number, (problem, solution) in enumerate(fit.state for fit in self._fits):
            own = np.ones(len(X), dtype=bool) if len(self.classes_) == 2 else y == self.classes_[number]
            sign = np.where(y[own] == self.classes_[1], 1.0, -1.0) if len(self.classes_) == 2 else np.ones(own.sum())
            if own.any():
                out[own] = problem.bounds(problem.rows(X[own], sign, np.ones(len(sign))), solution.values, share)
        return out

    # ------------------------------------------------------------------ reading the model

    def staircases(self, label=None):
        """The constant and the staircases of a class's score, widest swing first.

        Parameters
        ----------
        label : optional
            Which class's score, with several classes; the only score by default.

        Returns
        -------
        constant : float
        staircases : list of Staircase (feature, thresholds, values)
        """
        return staircases_of(self.ensemble_, self._output(label))

    def explain(self, label=None, max_features: int | None = 20) -> str:
        """The staircases as text, for printing."""
        return as_text(self.ensemble_, self._output(label), max_features)

    def plot(self, label=None, features=None, max_features: int = 9, axes=None):
        """Plot the staircases (needs matplotlib); returns the axes."""
        return plot(self.ensemble_, self._output(label), features, max_features, axes)

    def _output(self, label) -> int:
        if label is None or len(self.classes_) == 2:
            return 0
        places = np.flatnonzero(self.classes_ == label)
        if not len(places):
            raise InvalidInputError(must_be("label", f"one of {self.classes_.tolist()}", label))
        return int(places[0])


def _threads(n_jobs) -> int:
    """The number of threads that `n_jobs` means."""
    if n_jobs is None:
        return 1
    from joblib import effective_n_jobs

    return effective_n_jobs(n_jobs)
