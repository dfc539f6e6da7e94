"""AdditiveClassifierCV: settings chosen by verified error on the same seeded splits, test rows untouched."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from treeproof import InvalidInputError, Status
from treeproof.training import additive_cv
from treeproof.training.additive import AdditiveClassifier
from treeproof.training.additive_cv import AdditiveClassifierCV

QUICK = AdditiveClassifier(epochs=10, max_epochs=10)


@parametrize_with_checks(
    [AdditiveClassifierCV(estimator=QUICK, search={"max_bins": [32]}, n_splits=1)],
)
def test_scikit_learn_contract(estimator, check):
    """scikit-learn's own checks, with no expected failures."""
    check(estimator)


def table(n=300):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    return X, (X[:, 0] + X[:, 1] + 0.05 * rng.normal(size=n) > 1.0).astype(int)


def test_the_clearly_better_setting_wins():
    """The choice is no worse than the start, and the fitted model is the chosen setting's."""
    X, y = table()
    search = {"max_bins": [2, 24], "eps_factor": [1.0, 1.2]}
    model = AdditiveClassifierCV(1, 0.05, search=search, n_splits=2, random_state=0).fit(X, y)
    assert len(model.results_) == 3  # start, the other max_bins, the other eps_factor
    assert model.best_error_ <= model.results_[0]["mean"]
    assert model.best_params_["max_bins"] == 24  # two cells are clearly worse
    assert all(len(one["errors"]) == 2 for one in model.results_)
    assert model.best_estimator_.get_params()["max_bins"] == model.best_params_["max_bins"]
    assert np.array_equal(model.predict(X), model.best_estimator_.predict(X))
    assert model.certify(X, y).verified_error == model.best_estimator_.certify(X, y).verified_error
    grid = AdditiveClassifierCV(1, 0.05, search=search, strategy="grid", n_splits=2, random_state=0).fit(X, y)
    assert len(grid.results_) == 4
    assert grid.best_error_ == min(one["mean"] for one in grid.results_)


def test_the_start_stays_without_a_clear_win():
    """A gain within one standard error of the paired differences, or one given up early, does not move the choice."""

    def result(*errors):
        return {"errors": list(errors), "mean": float(np.mean(errors))}

    start = result(0.10, 0.12, 0.11)
    assert additive_cv._better(start, start, result(0.12, 0.10, 0.10)) is start
    clear = result(0.08, 0.11, 0.09)
    assert additive_cv._better(start, start, clear) is clear
    assert additive_cv._better(start, start, result(0.01, 0.01)) is start
    clearer = result(0.07, 0.10, 0.08)
    assert additive_cv._better(start, clear, clearer) is clearer
    assert additive_cv._better(start, clearer, clear) is clearer


def test_a_setting_behind_after_two_splits_is_given_up():
    """It is judged on two splits, the start on all; the choice never falls on it."""
    X, y = table()
    search = {"max_bins": [24, 2]}
    model = AdditiveClassifierCV(1, 0.05, search=search, n_splits=4, random_state=0).fit(X, y)
    assert [len(one["errors"]) for one in model.results_] == [4, 2]
    assert model.best_params_ == {"max_bins": 24}


def test_trial_parameters_serve_the_choice_only():
    """Few epochs while settings are judged, all of them for the fitted model."""
    X, y = table(150)
    trial = {"epochs": 2, "max_epochs": 2}
    model = AdditiveClassifierCV(1, 0.05, estimator=QUICK, search={"l2": [1e-4]}, trial=trial, n_splits=2)
    assert model.fit(X, y).best_estimator_.n_iter_ == QUICK.max_epochs
    assert model.best_params_ == {"l2": 1e-4}


def test_interactions_are_judged_by_their_training_bound():
    """Exclusive or: pairs win, and no row counts as proved that the exact search refutes."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)
    search = {"interactions": [None, 2]}
    model = AdditiveClassifierCV(np.inf, 0.02, search=search, n_splits=2, random_state=0).fit(X, y)
    assert model.best_params_ == {"interactions": 2}
    proved = additive_cv._proved(model.best_estimator_, X, y)
    assert proved.mean() > 0.5
    assert np.all(model.certify(X, y).status[proved] == Status.ROBUST)


def test_same_seed_same_choice():
    """Two runs with one seed agree in every error."""
    X, y = table(150)
    runs = [
        AdditiveClassifierCV(2, 0.05, estimator=QUICK, search={"l2": [1e-4, 1e-2]}, n_splits=2, random_state=3)
        for _ in range(2)
    ]
    first, second = (run.fit(X, y).results_ for run in runs)
    assert [one["errors"] for one in first] == [one["errors"] for one in second]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"search": {"no_such": [1]}}, "search must be a dict"),
        ({"search": {"l2": []}}, "search must be a dict"),
        ({"strategy": "random"}, "strategy must be one of"),
        ({"n_splits": 0}, "n_splits must be"),
        ({"trial": {"no_such": 1}}, "trial must be a dict"),
        ({"estimator": "mlp"}, "estimator must be an AdditiveClassifier"),
    ],
)
def test_bad_parameters_are_one_clear_line(given, message):
    """Each bad parameter is named."""
    X, y = table(50)
    with pytest.raises(InvalidInputError, match=message):
        AdditiveClassifierCV(**given).fit(X, y)
