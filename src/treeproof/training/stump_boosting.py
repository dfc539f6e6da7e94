"""`StumpBoostingClassifier`: boosted decision stumps trained against any l_p ball (paper section 4.1).

The training loss is a sound upper bound of the robust loss (bound="grid") or the robust loss itself
(bound="exact"); what the fitted model is worth is said by `treeproof.certify`, which is independent of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from .._errors import InvalidInputError, must_be
from . import params
from .base import BinaryFit, BinaryTask, ProvableClassifier, join_outputs
from .losses import loss_of
from .schedule import schedule_of
from .stump_bins import KINDS
from .stump_rounds import Boosting, Settings

if TYPE_CHECKING:
    from ..model import TreeEnsemble
    from ..results import Certificates

BOUNDS = ("exact", "grid")


class StumpBoostingClassifier(ProvableClassifier):
    """Boosted decision stumps whose training counts what an l_p adversary can do to every row.

    Each round adds the stump of least robust loss: the sum over rows of the loss at the worst point of the
    row's l_p ball of radius eps. More than two classes are trained one against all others.

    Parameters
    ----------
    norm : float in [0, inf], default 1
        p of the l_p norm; p = inf is Andriushchenko and Hein's exact robust boosting.
    eps : float, default 0.3
        Radius; 0 is plain boosting. In units of the columns (for p = 0: features that may change).
    n_estimators : int, default 20
    learning_rate : float, default 0.4
        Shrinks each stump (not used when `corrective`).
    loss : {"logistic", "exponential"} or object
        The logistic loss gives less weight to rows that cannot be saved; the paper's is the exponential.
        An object needs vectorised ``value(margin)`` and ``slope(margin)``, convex and decreasing.
    bound : {"exact", "grid"}
        "grid" is the paper's dynamic program with costs floored to `precision`; "exact" needs no grid.
        They are the same for p = 0 and p = inf.
    precision : float, optional
        The grid's step in units of distance**p; a hundredth of eps**p by default.
    train_norm : "same", None or float
        Train in another norm than the one certified; None trains without an adversary, for comparison.
    train_eps : float, optional
        Train at another radius than the one certified.
    thresholds : {"uniform", "midpoints", "shifted"}
        Candidates: equal steps of a feature's range, mid-points of its values, or values and values +- eps.
    max_bins : int or None, default 40
        Most bins a feature; None (not with "uniform") keeps all candidates.
    max_weight : float, default 1
        Leaf values of a new stump, before shrinking, are at most this in size.
    eps_schedule : "auto", int, float in (0, 1) or None
        Rounds over which the training radius grows to eps (a fraction is of `n_estimators`). A large eps
        needs it, a small one does better without: "auto" takes all rounds (half of them with
        `early_stopping`) if the best single stump keeps less than a tenth of its gain at the full eps,
        and none otherwise. ``history_`` tells the radius of each round.
    schedule_shape : {"linear", "quadratic", "root", "cosine"} or callable
    corrective : bool, default False
        After each stump refit all leaf values together under the robust loss, and use no threshold twice.
    refit_penalty : float, default 1e-4
        Ridge penalty on the steps in that refit.
    exchanges : int or None
        With `corrective`: attempts, at the end, to put a better stump in the place of one; as many as
        stumps by default.
    polish : bool, default True
        With `corrective`: end with a local search on the count of training rows not verified.
    subsample : float in (0, 1], default 1
        Share of the rows that each round looks at to choose its stump.
    early_stopping : bool, default False
        Stop when the validation rows' verified error has not improved for `n_iter_no_change` rounds, and
        go back to the best round. Validation rows are those given to ``fit``, or a held-out share.
    validation_fraction : float, default 0.1
    n_iter_no_change : int, default 10
    warm_start : bool, default False
        Continue the last fit up to `n_estimators` stumps.
    random_state : int, RandomState or None
        Used with `subsample`, held-out rows, and `corrective` on more than 2,048 rows (refits look at parts).
    n_jobs : int or None
        Threads, over classes or (two classes) over features.
    verbose : int, default 0
        Show every so many rounds' clean and verified training error on standard error.

    Attributes
    ----------
    ensemble_ : TreeEnsemble
    classes_ : array (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array (n_features_in_,), when X has string column names
    feature_importances_ : array (n_features_in_,)
        Sum of each feature's step sizes, as shares.
    history_ : list of dict of lists, one dict a trained score
        eps, loss (mean robust loss), clean_error and verified_error (training rows) after each round.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.min(0)) / (X.max(0) - X.min(0))
    >>> model = StumpBoostingClassifier(norm=1, eps=0.05).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    # equal rows are merged, so that a weight of 2 is exactly a repeated row whatever the order
    _merge_repeated_rows = True

    def __init__(
        self,
        norm=1,
        eps=0.3,
        n_estimators=20,
        learning_rate=0.4,
        *,
        loss="logistic",
        bound="exact",
        precision=None,
        train_norm="same",
        train_eps=None,
        thresholds="uniform",
        max_bins=40,
        max_weight=1.0,
        eps_schedule="auto",
        schedule_shape="root",
        corrective=False,
        refit_penalty=1e-4,
        exchanges=None,
        polish=True,
        subsample=1.0,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.norm = norm
        self.eps = eps
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.loss = loss
        self.bound = bound
        self.precision = precision
        self.train_norm = train_norm
        self.train_eps = train_eps
        self.thresholds = thresholds
        self.max_bins = max_bins
        self.max_weight = max_weight
        self.eps_schedule = eps_schedule
        self.schedule_shape = schedule_shape
        self.corrective = corrective
        self.refit_penalty = refit_penalty
        self.exchanges = exchanges
        self.polish = polish
        self.subsample = subsample
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ parameters

    def _check_parameters(self) -> None:
        super()._check_parameters()
        settings = self._settings(1)
        fitted = getattr(self, "_fits", None)
        if self.warm_start and fitted and settings.rounds < len(fitted[0].state.stages):
            raise InvalidInputError(
                must_be("n_estimators", f"at least the {len(fitted[0].state.stages)} fitted before", settings.rounds)
            )

    def _settings(self, threads: int) -> Settings:
        """Every parameter, checked."""
        rounds = params.whole("n_estimators", self.n_estimators, 1)
        norm, eps = self._training_ball()
        if self.max_bins is None and self.thresholds == "uniform":
            raise InvalidInputError(must_be("max_bins", "a whole number with thresholds='uniform'", None))
        fraction = params.number("validation_fraction", self.validation_fraction, 0.0, 1.0, open_low=True)
        patience = params.whole("n_iter_no_change", self.n_iter_no_change, 1)
        return Settings(
            norm=norm,
            eps=eps,
            bound=params.choice("bound", self.bound, BOUNDS),
            precision=self._grid_step(norm, eps),
            loss=loss_of(self.loss),
            rounds=rounds,
            learning_rate=params.finite("learning_rate", self.learning_rate, 0.0, open_low=True),
            max_weight=params.finite("max_weight", self.max_weight, 0.0, open_low=True),
            thresholds=params.choice("thresholds", self.thresholds, KINDS),
            max_bins=None if self.max_bins is None else params.whole("max_bins", self.max_bins, 2),
            share=self._share(rounds),
            shape=self.schedule_shape,
            corrective=bool(self.corrective),
            penalty=params.finite("refit_penalty", self.refit_penalty, 0.0),
            exchanges=rounds if self.exchanges is None else params.whole("exchanges", self.exchanges, 0),
            polish=bool(self.polish),
            subsample=params.number("subsample", self.subsample, 0.0, 1.0, open_low=True),
            patience=patience if self.early_stopping else None,
            validation_fraction=fraction,
            threads=threads,
            verbose=params.whole("verbose", int(self.verbose), 0),
        )

    def _training_ball(self) -> tuple[float, float]:
        """Norm and radius of the training adversary."""
        eps = self.eps if self.train_eps is None else self.train_eps
        eps = params.finite("eps" if self.train_eps is None else "train_eps", eps, 0.0)
        if self.train_norm is None:
            return params.norm_of(self.norm), 0.0
        if isinstance(self.train_norm, str):
            params.choice("train_norm", self.train_norm, ("same",))
            return params.norm_of(self.norm), eps
        return params.number("train_norm", self.train_norm, 0.0), eps

    def _share(self, rounds: int) -> Callable[[int], float] | None:
        """The schedule, checked; None leaves it to the data."""
        automatic = isinstance(self.eps_schedule, str) and self.eps_schedule == "auto"
        share = schedule_of(None if automatic else self.eps_schedule, self.schedule_shape, rounds)
        return None if automatic else share

    def _grid_step(self, norm: float, eps: float) -> float | None:
        """The precision of bound="grid", at most the budget."""
        if self.bound != "grid":
            return None
        budget = eps**norm if 0 < norm < np.inf else np.inf
        if self.precision is None:
            return budget / 100 if 0 < budget < np.inf else None
        step = params.finite("precision", self.precision, 0.0, open_low=True)
        if budget > 0 and step > budget:
            raise InvalidInputError(must_be("precision", f"at most eps**p = {budget:g}", step))
        return step

    @property
    def _link_scale(self) -> float:  # type: ignore[override]
        return getattr(loss_of(self.loss), "link_scale", 1.0)

    # ------------------------------------------------------------------ fit

    def _fit_binary(self, task: BinaryTask) -> BinaryFit:
        threads = effective_n_jobs(self.n_jobs) if len(self.classes_) == 2 else 1
        return Boosting(self._settings(threads), task).run()

    @property
    def history_(self) -> list[dict[str, list]]:
        check_is_fitted(self, "ensemble_")
        return [fit.history for fit in self._fits]

    @property
    def n_estimators_(self) -> int:
        """Rounds kept (the most over the trained scores)."""
        check_is_fitted(self, "ensemble_")
        return max(len(fit.state.stages) for fit in self._fits)

    @property
    def feature_importances_(self) -> np.ndarray:
        check_is_fitted(self, "ensemble_")
        total = np.zeros(self.n_features_in_)
        for fit in self._fits:
            steps = np.abs(np.array(fit.state.right) - np.array(fit.state.left))
            np.add.at(total, np.array(fit.state.feature, dtype=np.int64), steps)
        return total / total.sum() if total.sum() > 0 else total

    # ------------------------------------------------------------------ stages and words

    def staged_ensembles(self) -> Iterator[TreeEnsemble]:
        """The model after each round, as `TreeEnsemble`s."""
        for count in range(1, self.n_estimators_ + 1):
            parts = [
                fit.state.at_stage(min(count, len(fit.state.stages))).ensemble(self.n_features_in_)
                for fit in self._fits
            ]
            yield join_outputs(parts, self.classes_, self.ensemble_.feature_names, dict(self.ensemble_.source))

    def staged_decision_function(self, X) -> Iterator[np.ndarray]:
        """Scores after each round."""
        X = self._rows(X)
        for ensemble in self.staged_ensembles():
            yield ensemble.decision_function(X)

    def staged_predict(self, X) -> Iterator[np.ndarray]:
        """Predictions after each round."""
        X = self._rows(X)
        for ensemble in self.staged_ensembles():
            yield ensemble.predict(X)

    def staged_certify(self, X, y=None, threat=None, *, norm=None, eps=None, **options) -> Iterator[Certificates]:
        """Certificates after each round (as `certify`)."""
        from ..verify import certify

        X = self._rows(X)
        threat = self._default_threat(norm, eps) if threat is None else threat
        for ensemble in self.staged_ensembles():
            yield certify(ensemble, X, y, threat, **options)

    def rules(self) -> str:
        """The stumps as text, one a line, the constant first."""
        check_is_fitted(self, "ensemble_")
        names = getattr(self, "feature_names_in_", None)
        lines = []
        for number, fit in enumerate(self._fits):
            positive = self.classes_[1] if len(self._fits) == 1 else self.classes_[number]
            lines.append(f"score for {positive!s}: {fit.state.base:+.4g}")
            stumps = zip(fit.state.feature, fit.state.threshold, fit.state.left, fit.state.right, strict=True)
            for feature, threshold, left, right in stumps:
                name = f"x[{feature}]" if names is None else str(names[feature])
                lines.append(f"  {left:+.4g} if {name} < {threshold:.6g} else {right:+.4g}")
        return "\n".join(lines)
