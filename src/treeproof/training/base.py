"""What every provable classifier of treeproof shares: scikit-learn's contract around a `TreeEnsemble`.

A trainer only learns one scalar score for labels -1 and +1 (`ProvableClassifier._fit_binary`). This base
checks the input, encodes the classes, drops rows of weight zero, runs one such problem (two classes) or
one-vs-all (more), joins the scores into one ensemble, and offers predictions and certificates.
One-vs-all training does not itself bound f_y - f_c; the certificate of the joined ensemble does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._errors import InvalidInputError, must_be
from ..model import TreeEnsemble
from . import params

if TYPE_CHECKING:
    from ..results import Certificates, Radii


@dataclass
class BinaryTask:
    """One problem with two classes, as the base hands it to a trainer.

    Attributes
    ----------
    X : float64 array (n, d), C-contiguous
    y : float64 array (n,) of -1.0 and +1.0
    sample_weight : float64 array (n,), all positive
    rng : numpy.random.Generator
        This problem's own generator, derived from `random_state`.
    X_val, y_val : the validation rows given to ``fit``, in the same form, or None
    previous : BinaryFit or None
        With ``warm_start``: what the last ``fit`` returned for this problem.
    label : str
        Name of the problem for progress lines.
    """

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray
    rng: np.random.Generator
    X_val: np.ndarray | None = None
    y_val: np.ndarray | None = None
    previous: BinaryFit | None = None
    label: str = ""


@dataclass
class BinaryFit:
    """What a trainer returns for a `BinaryTask`.

    Attributes
    ----------
    ensemble : TreeEnsemble
        One output, dtype "float64"; a positive score means y = +1.
    history : dict of lists, one entry a round or epoch
    state : anything that ``warm_start`` needs to go on
    """

    ensemble: TreeEnsemble
    history: dict[str, list] = field(default_factory=dict)
    state: Any = None


class ProvableClassifier(ClassifierMixin, BaseEstimator):
    """Base of the estimators: subclasses have `norm` and `eps` parameters and write `_fit_binary`.

    They may use `random_state`, `n_jobs` (classes in parallel threads) and `warm_start`; they document
    ``classes_``, ``n_features_in_``, ``feature_names_in_`` and ``ensemble_`` among their attributes.
    """

    # how many times the score is the log-odds: 2 for the exponential loss
    _link_scale = 1.0
    # merge rows that are equal in X and y (weights add up, rows come sorted), for trainers that depend
    # on the order or the number of rows: then a weight of 2 is exactly a repeated row
    _merge_repeated_rows = False

    # ------------------------------------------------------------------ what a trainer writes

    def _check_parameters(self) -> None:
        """Raise InvalidInputError for a bad parameter. Subclasses extend this."""
        params.norm_of(self.norm)  # type: ignore[attr-defined]
        params.eps_of(self.eps)  # type: ignore[attr-defined]
        params.jobs("n_jobs", getattr(self, "n_jobs", None))

    def _fit_binary(self, task: BinaryTask) -> BinaryFit:
        """Learn one scalar score."""
        raise NotImplementedError

    def _default_threat(self, norm=None, eps=None):
        """The threat that certificates use when none is given: the estimator's own."""
        from ..threat import Threat

        return Threat(
            norm=self.norm if norm is None else norm,  # type: ignore[attr-defined]
            eps=self.eps if eps is None else eps,  # type: ignore[attr-defined]
        )

    # ------------------------------------------------------------------ fit

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
            Validation rows, for trainers that can stop early or report on them.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(y)
        X, y, weight = self._weighted_rows(X, y, sample_weight)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise InvalidInputError(
                f"y must have at least two classes, each with a row of positive weight. Got one class, "
                f"{classes.tolist()}, instead."
            )
        if self._merge_repeated_rows:
            X, codes, weight = merge_repeated_rows(X, codes, weight)
        validation = self._validation_rows(X_val, y_val, classes)
        kept = self._kept_fits(classes)
        self.classes_ = classes
        tasks = self._binary_tasks(X, codes, weight, validation, kept)
        workers = min(len(tasks), getattr(self, "n_jobs", None) or 1)
        if getattr(self, "n_jobs", None) == -1 or workers > 1:
            run = Parallel(n_jobs=self.n_jobs, prefer="threads")  # type: ignore[attr-defined]
            self._fits = run(delayed(self._fit_binary)(task) for task in tasks)
        else:
            self._fits = [self._fit_binary(task) for task in tasks]
        names = getattr(self, "feature_names_in_", None)
        self.ensemble_ = join_outputs(
            [fit.ensemble for fit in self._fits],
            classes,
            tuple(map(str, names)) if names is not None and len(set(names)) == len(names) else None,
            {"library": "treeproof", "estimator": type(self).__name__},
        )
        return self

    def _weighted_rows(self, X, y, sample_weight):
        """Rows of positive weight, and their weights."""
        if sample_weight is None:
            return X, y, np.ones(len(X))
        try:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        except ValueError as error:
            raise InvalidInputError(
                f"sample_weight must be {len(X)} numbers of at least 0, not all 0. {error}"
            ) from None
        keep = weight > 0
        if not keep.any():
            raise InvalidInputError("sample_weight must be positive in some rows. Got only zeros instead.")
        return (X, y, weight) if keep.all() else (X[keep], y[keep], weight[keep])

    def _validation_rows(self, X_val, y_val, classes):
        """Validation rows in the training form, with their class codes; None where not given."""
        if (X_val is None) != (y_val is None):
            raise InvalidInputError("X_val and y_val must be given together. Got one of them.")
        if X_val is None:
            return None
        X_val, y_val = validate_data(self, X_val, y_val, reset=False, dtype=np.float64, order="C")
        codes = np.searchsorted(classes, y_val)
        known = classes[np.minimum(codes, len(classes) - 1)] == y_val
        if not np.all(known):
            raise InvalidInputError(
                must_be("y_val", f"made of the training classes {classes.tolist()}", y_val[~known][0])
            )
        return X_val, codes

    def _kept_fits(self, classes):
        """The fits to continue under ``warm_start``, or None."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "_fits"):
            return None
        if not np.array_equal(self.classes_, classes):
            raise InvalidInputError(
                f"y must have the classes of the first fit, {self.classes_.tolist()}, to continue it. "
                f"Got {classes.tolist()} instead. Set warm_start=False to start afresh."
            )
        wanted = self._fits[0].ensemble.n_features
        if wanted != self.n_features_in_:
            raise InvalidInputError(must_be("X", f"of {wanted} features to continue", self.n_features_in_))
        return self._fits

    def _binary_tasks(self, X, codes, weight, validation, kept) -> list[BinaryTask]:
        """One problem for two classes, else one a class."""
        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        state = check_random_state(getattr(self, "random_state", None))
        tasks = []
        for number, positive in enumerate(positives):
            X_val = y_val = None
            if validation is not None:
                X_val, y_val = validation[0], np.where(validation[1] == positive, 1.0, -1.0)
            tasks.append(
                BinaryTask(
                    X=X,
                    y=np.where(codes == positive, 1.0, -1.0),
                    sample_weight=weight,
                    rng=np.random.default_rng(state.randint(2**31)),
                    X_val=X_val,
                    y_val=y_val,
                    previous=None if kept is None else kept[number],
                    label=f"class {self.classes_[positive]!s}",
                )
            )
        return tasks

    # ------------------------------------------------------------------ predictions

    def _rows(self, X) -> np.ndarray:
        """Checked rows for a fitted estimator."""
        check_is_fitted(self, "ensemble_")
        return validate_data(self, X, reset=False, dtype=np.float64, order="C")

    def decision_function(self, X) -> np.ndarray:
        """Scores: (n,) for two classes (positive means ``classes_[1]``), else (n, n_classes)."""
        X = self._rows(X)
        return self.ensemble_.decision_function(X)

    def predict(self, X) -> np.ndarray:
        """Predicted labels."""
        X = self._rows(X)
        return self.ensemble_.predict(X)

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities (n, n_classes) by the logistic link; one-vs-all probabilities are normalised."""
        return self._probabilities(self.decision_function(X))

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        odds = self._link_scale * scores
        if odds.ndim == 1:
            return np.column_stack([expit(-odds), expit(odds)])
        logs = log_expit(odds)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    # ------------------------------------------------------------------ certificates

    def certify(self, X, y=None, threat=None, *, norm=None, eps=None, **options) -> Certificates:
        """Certificates of rows, by `treeproof.certify`; norm and eps are the estimator's own by default.

        Parameters
        ----------
        X : array-like (n, n_features)
        y : array-like (n,), optional
            True labels; misclassified rows count as broken.
        threat : Threat, optional
            Replaces norm and eps.
        norm, eps : float, optional
        **options
            Any other option of `treeproof.certify`.

        Returns
        -------
        Certificates
        """
        from ..verify import certify

        X = self._rows(X)
        if threat is None:
            threat = self._default_threat(norm, eps)
            norm = eps = None
        return certify(self.ensemble_, X, y, threat, norm=norm, eps=eps, **options)

    def radius(self, X, y=None, threat=None, *, norm=None, **options) -> Radii:
        """Least distances to another prediction, by `treeproof.radius`; by default in the estimator's norm.

        Parameters
        ----------
        X : array-like (n, n_features)
        y : array-like (n,), optional
        threat : Threat, optional
        norm : float, optional
        **options
            Any other option of `treeproof.radius`.

        Returns
        -------
        Radii
        """
        from ..verify import radius

        X = self._rows(X)
        if threat is None:
            threat = self._default_threat(norm)
            norm = None
        return radius(self.ensemble_, X, y, threat, norm=norm, **options)

    def verified_score(self, X, y, threat=None, *, norm=None, eps=None, **options) -> float:
        """The share of rows that are proved both right and robust: one minus the verified error."""
        return 1.0 - float(self.certify(X, y, threat, norm=norm, eps=eps, **options).verified_error)


def merge_repeated_rows(X, codes, weight):
    """Rows that are equal in X and class become one, their weights added; rows come in sorted order."""
    keyed = np.ascontiguousarray(np.column_stack([X + 0.0, codes]))  # + 0.0: -0.0 and 0.0 are one number
    rows = keyed.view(np.dtype((np.void, keyed.dtype.itemsize * keyed.shape[1]))).ravel()
    _, first, group = np.unique(rows, return_index=True, return_inverse=True)
    return X[first], codes[first], np.bincount(group.ravel(), weights=weight)


def join_outputs(parts: list[TreeEnsemble], classes, feature_names=None, source=None) -> TreeEnsemble:
    """One ensemble from one-output ensembles: a single part stays one output, K parts become K outputs.

    The score of class k of the result is, to the last bit, the score of part k: the other parts' trees add
    zeros only.
    """
    outputs = len(parts)
    sizes = [len(part.feature) for part in parts]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def shifted(name: str) -> np.ndarray:
        columns = []
        for part, start in zip(parts, starts[:-1], strict=True):
            column = getattr(part, name).astype(np.int64)
            columns.append(np.where(column >= 0, column + start, -1))
        return np.concatenate(columns)

    value = np.zeros((starts[-1], outputs))
    for k, part in enumerate(parts):
        value[starts[k] : starts[k + 1], k] = part.value[:, 0]
    offsets = [part.tree_offsets[1:] + start for part, start in zip(parts, starts[:-1], strict=True)]
    return TreeEnsemble(
        feature=np.concatenate([part.feature for part in parts]),
        threshold=np.concatenate([part.threshold for part in parts]),
        left=shifted("left"),
        right=shifted("right"),
        value=value,
        missing_left=np.concatenate([part.missing_left for part in parts]),
        tree_offsets=np.concatenate([[0], *offsets]).astype(np.int64),
        base=np.concatenate([part.base for part in parts]),
        n_features=parts[0].n_features,
        classes=classes,
        feature_names=feature_names,
        source=dict(source or {}),
    )
