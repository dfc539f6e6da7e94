"""``AdditiveClassifierCV``: settings of an additive model chosen by verified error on several seeded splits.

Single validation splits are noisy, so settings are judged on the same several splits of the training rows, by the
exact verifier, and the spread is reported. A setting that does not lead after two splits is given up there. The
test set plays no part.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from .._errors import InvalidInputError, must_be
from . import params
from .additive import MERGE_BELOW, AdditiveClassifier
from .base import ProvableClassifier, merge_repeated_rows

DEFAULT_SEARCH: dict[str, list] = {
    "loss": ["logistic", "hinge"],
    "max_bins": ["auto", 256, 16],
    "eps_factor": [1.0, 1.2],
    "total_variation": ["auto", 3e-3],
}


class AdditiveClassifierCV(ProvableClassifier):
    """An `AdditiveClassifier` with settings chosen by their verified error on validation rows.

    Parameters
    ----------
    norm : float, default=1
    eps : float, default=0.1
    estimator : AdditiveClassifier, optional
        Holds every other setting; its norm and eps are replaced.
    search : dict of lists, optional
        Values to try for each of the estimator's parameters; `DEFAULT_SEARCH` by default.
    strategy : {"coordinate", "grid"}, default="coordinate"
        One parameter after the other, each from the best setting so far (the first values are the start), which
        gives way only to a gain of more than one standard error over the splits, and not to a setting that is
        behind after two splits; or the least mean error of all combinations.
    n_splits : int, default=5
        Seeded, stratified splits; every setting is judged on the same ones.
    validation_fraction : float, default=0.2
    trial : dict, optional
        Parameters of the estimator that differ while settings are judged, such as fewer epochs; the final fit
        on all rows goes without them.
    random_state : int, RandomState or None
    verbose : bool, default=False
        A line a setting on standard error.

    Attributes
    ----------
    ensemble_ : TreeEnsemble
        Of the best setting, trained on all rows.
    best_estimator_ : AdditiveClassifier
    best_params_ : dict
    best_error_ : float
        Mean verified validation error of the chosen setting (optimistic: it was chosen by it).
    results_ : list of dict
        For each setting tried: ``params``, ``errors`` (one a split; two where it was given up), ``mean``, ``std``,
        ``clean`` (mean).
    classes_, n_features_in_, feature_names_in_

    Notes
    -----
    The verifier is exact, except for interactions: there a row counts as verified where the training bound proves
    it, which is quick and never too many.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> search = {"max_bins": [8, 32]}
    >>> model = AdditiveClassifierCV(1, 0.05, search=search, n_splits=2, random_state=0)
    >>> len(model.fit(X, X[:, 0] > 0.5).results_)
    2
    """

    def __init__(
        self,
        norm=1,
        eps=0.1,
        *,
        estimator=None,
        search=None,
        strategy="coordinate",
        n_splits=5,
        validation_fraction=0.2,
        trial=None,
        random_state=None,
        verbose=False,
    ):
        self.norm = norm
        self.eps = eps
        self.estimator = estimator
        self.search = search
        self.strategy = strategy
        self.n_splits = n_splits
        self.validation_fraction = validation_fraction
        self.trial = trial
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        params.choice("strategy", self.strategy, ("coordinate", "grid"))
        params.whole("n_splits", self.n_splits, 1)
        params.number("validation_fraction", self.validation_fraction, 0.0, 0.9, open_low=True)
        if self.estimator is not None and not isinstance(self.estimator, AdditiveClassifier):
            raise InvalidInputError(must_be("estimator", "an AdditiveClassifier or None", self.estimator))
        search = DEFAULT_SEARCH if self.search is None else self.search
        known = AdditiveClassifier().get_params()
        if not isinstance(search, dict) or not all(
            name in known and isinstance(values, (list, tuple)) and len(values) for name, values in search.items()
        ):
            raise InvalidInputError(
                must_be("search", "a dict from AdditiveClassifier's parameters to lists of values", search)
            )
        if self.trial is not None and not (isinstance(self.trial, dict) and set(self.trial) <= set(known)):
            raise InvalidInputError(must_be("trial", "a dict of AdditiveClassifier's parameters or None", self.trial))

    def _default_threat(self, norm=None, eps=None):
        return self.best_estimator_._default_threat(norm, eps)

    def fit(self, X, y, sample_weight=None):  # type: ignore[override]
        """Choose the settings on splits of the rows, then train on all rows.

        Parameters
        ----------
        X : array-like (n, n_features)
        y : array-like (n,)
        sample_weight : array-like (n,), optional
            Weighs the rows in training and in the validation error.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(y)
        weight = np.ones(len(X))
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        X, y, weight = self._distinct_rows(X, y, weight)
        seed = int(check_random_state(self.random_state).randint(2**31))
        splits = self._splits(y, seed)
        self.results_: list[dict] = []
        best = self._best_setting(X, y, weight, splits, seed)
        self.best_params_, self.best_error_ = best["params"], best["mean"]
        self.best_estimator_ = self._candidate(self.best_params_, seed)
        self.best_estimator_.fit(X, y, weight)
        self.ensemble_ = self._named(self.best_estimator_.ensemble_)
        self.classes_ = self.best_estimator_.classes_
        return self

    def _distinct_rows(self, X, y, weight):
        """Rows of positive weight; repeated ones merged, so that a weight of 2 is exactly a repeated row."""
        keep = weight > 0
        classes, codes = np.unique(y[keep], return_inverse=True)
        if len(classes) < 2:
            raise InvalidInputError(
                f"y must have at least two classes, each with a row of positive weight. Got one class, "
                f"{classes.tolist()}, instead."
            )
        X, weight = X[keep], weight[keep]
        if len(X) <= MERGE_BELOW:
            X, codes, weight = merge_repeated_rows(X, codes, weight)
        return X, classes[codes], weight

    def _named(self, ensemble):
        """The ensemble with this estimator's feature names."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or len(set(names)) < len(names):
            return ensemble
        from dataclasses import replace

        return replace(ensemble, feature_names=tuple(map(str, names)))

    def _candidate(self, setting: dict, seed: int) -> AdditiveClassifier:
        base = AdditiveClassifier() if self.estimator is None else clone(self.estimator)
        return base.set_params(norm=self.norm, eps=self.eps, random_state=seed, **setting)

    def _splits(self, y, seed: int):
        """The same seeded splits for every setting, class by class; a class's only row always trains."""
        splits = []
        for number in range(self.n_splits):
            rng = np.random.default_rng([seed, number])
            held = np.zeros(len(y), dtype=bool)
            for label in np.unique(y):
                own = rng.permutation(np.flatnonzero(y == label))
                count = max(1, round(self.validation_fraction * len(own)))
                held[own[: min(count, len(own) - 1)]] = True
            everything = np.arange(len(y))
            splits.append((np.flatnonzero(~held), np.flatnonzero(held) if held.any() else everything))
        return splits

    def _best_setting(self, X, y, weight, splits, seed: int) -> dict:
        search = DEFAULT_SEARCH if self.search is None else self.search

        def judged(setting, rival=None):
            return self._judged(setting, X, y, weight, splits, seed, rival)

        if self.strategy == "grid":
            settings = [dict(zip(search, values, strict=True)) for values in product(*search.values())]
            return min((judged(one) for one in settings), key=_mean)
        best = judged({name: values[0] for name, values in search.items()})
        for name, values in search.items():
            start = best
            for value in values[1:]:
                best = _better(start, best, judged(start["params"] | {name: value}, start))
        return best

    def _judged(self, setting, X, y, weight, splits, seed: int, rival=None) -> dict:
        """Verified validation errors of one setting; given up after two splits without a lead over `rival`."""
        errors, cleans = [], []
        for number, (train, held) in enumerate(splits):
            model = self._candidate((self.trial or {}) | setting, (seed + number) % 2**31)
            model.fit(X[train], y[train], weight[train])
            errors.append(float(np.average(~_proved(model, X[held], y[held]), weights=weight[held])))
            cleans.append(float(np.average(model.predict(X[held]) != y[held], weights=weight[held])))
            if rival is not None and number == 1 and sum(errors) >= sum(rival["errors"][:2]):
                break
        result = {
            "params": setting,
            "errors": errors,
            "mean": float(np.mean(errors)),
            "std": float(np.std(errors)),
            "clean": float(np.mean(cleans)),
        }
        self.results_.append(result)
        if self.verbose:
            sys.stderr.write(
                f"{setting}: verified error {result['mean']:.4f} (std {result['std']:.4f}), "
                f"clean {result['clean']:.4f} on {len(errors)} splits\n"
            )
        return result


def _proved(model: AdditiveClassifier, X, y) -> np.ndarray:
    """Which rows are right and proved: exactly, or with interactions by the training bound."""
    from ..results import Status

    if model.ensemble_.is_additive or len(model.classes_) > 2:
        return model.certify(X, y).status == Status.ROBUST
    return model.training_bound(X, y) > 1e-9


def _mean(result: dict) -> float:
    return result["mean"]


def _better(start: dict, best: dict, other: dict) -> dict:
    """The better of two settings that rival `start`.

    A rival must win by more than one standard error of the splits' differences: the least of several noisy
    means is often luck, and without a clear win the simpler start stays.
    """
    if len(other["errors"]) < len(start["errors"]):
        return best
    gain = np.array(start["errors"]) - np.array(other["errors"])
    error = float(gain.std(ddof=1)) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
    return other if gain.mean() > error and other["mean"] < best["mean"] else best
