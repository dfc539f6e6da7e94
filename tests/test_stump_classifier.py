"""StumpBoostingClassifier as an estimator: scikit-learn's contract, parameters, stages, stopping, odd data."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from treeproof import InvalidInputError, StumpBoostingClassifier, datasets, make_verified_scorer

SHARED = Path(os.environ.get("TREEPROOF_SHARED", Path(__file__).parents[2] / "shared"))


@parametrize_with_checks([StumpBoostingClassifier(), StumpBoostingClassifier(n_estimators=8, corrective=True)])
def test_sklearn_contract(estimator, check):
    """scikit-learn's own checks pass, with no expected failures."""
    check(estimator)


def blobs(rows=160, features=3, classes=2, seed=0):
    """Rows in [0, 1] whose classes differ in every feature."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rows)
    return np.clip(0.5 + 0.3 * (y[:, None] / (classes - 1) - 0.5) + 0.1 * rng.normal(size=(rows, features)), 0, 1), y


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"norm": -0.5}, "norm must be"),
        ({"eps": -1}, "eps must be"),
        ({"train_eps": np.nan}, "train_eps must be"),
        ({"train_norm": "linf"}, "train_norm must be"),
        ({"n_estimators": 0}, "n_estimators must be"),
        ({"n_estimators": 2.5}, "n_estimators must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"loss": "hinge"}, "loss must be"),
        ({"loss": object()}, "loss must be"),
        ({"bound": "dp"}, "bound must be"),
        ({"bound": "grid", "precision": 0.31}, "precision must be at most"),
        ({"bound": "grid", "precision": 0}, "precision must be"),
        ({"thresholds": "exact"}, "thresholds must be"),
        ({"max_bins": 1}, "max_bins must be"),
        ({"max_bins": None}, "max_bins must be"),
        ({"max_weight": np.inf}, "max_weight must be"),
        ({"eps_schedule": -1}, "eps_schedule must be"),
        ({"eps_schedule": 2.5}, "eps_schedule must be"),
        ({"schedule_shape": "steep"}, "schedule_shape must be"),
        ({"eps_schedule": 5, "schedule_shape": lambda share: 2.0}, "schedule_shape must be"),
        ({"subsample": 0}, "subsample must be"),
        ({"subsample": 1.2}, "subsample must be"),
        ({"refit_penalty": -1}, "refit_penalty must be"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be"),
        ({"validation_fraction": 0}, "validation_fraction must be"),
        ({"verbose": -1}, "verbose must be"),
    ],
)
def test_bad_parameters_have_one_clear_line(params, words):
    """Each bad parameter is refused at fit with its name and rule, in one line."""
    X, y = blobs()
    with pytest.raises(InvalidInputError, match=words) as caught:
        StumpBoostingClassifier(**params).fit(X, y)
    assert "\n" not in str(caught.value)


class Squared:
    """A custom convex decreasing loss: the squared hinge."""

    def value(self, margin):
        return np.maximum(0.0, 1.0 - margin) ** 2

    def slope(self, margin):
        return -2.0 * np.maximum(0.0, 1.0 - margin)


@pytest.mark.parametrize("loss", ["exponential", "logistic", Squared()])
@pytest.mark.parametrize("corrective", [False, True])
def test_losses_train_robust_models(loss, corrective):
    """All losses, plain and corrective, prove most rows, which the plain model does not."""
    X, y = blobs(100)
    model = StumpBoostingClassifier(
        1, 0.08, 8, loss=loss, max_bins=12, corrective=corrective, eps_schedule=None, refit_penalty=0
    ).fit(X, y)
    plain = StumpBoostingClassifier(1, 0.08, 8, train_norm=None).fit(X, y)
    assert model.verified_score(X, y) > max(0.75, plain.verified_score(X, y))
    assert np.all(np.diff(model.history_[0]["loss"]) <= 1e-9)  # each round can only help at a fixed eps


def test_polish_proves_more_training_rows():
    """On noisy data the polish leaves fewer training rows unproved; the history tells what certify proves."""
    data = datasets.load("diabetes")
    X, y = data.X_train[:300], data.y_train[:300]
    model = StumpBoostingClassifier(1, 0.05, 6, max_bins=12, corrective=True, exchanges=0, polish=False)
    lost = [clone(model).fit(X, y).history_[0]["verified_error"][-1]]
    model.set_params(polish=True).fit(X, y)
    lost.append(model.history_[0]["verified_error"][-1])
    assert lost[1] < lost[0]
    assert model.certify(X, y).verified_error == pytest.approx(lost[1])


def test_exchanges_lower_the_robust_loss():
    """Exchanged stumps, as many as before, have a smaller robust loss; the model on the way is kept as it was."""
    X, y = blobs(120, features=5)
    model = StumpBoostingClassifier(
        1, 0.15, 4, max_bins=12, corrective=True, exchanges=0, polish=False, eps_schedule=None
    )
    plain, best = (clone(model).set_params(exchanges=tries).fit(X, y) for tries in (0, 8))
    assert len(best._fits[0].state.feature) == best.n_estimators_ == 4
    assert best.history_[0]["verified_error"][-1] <= plain.history_[0]["verified_error"][-1]
    assert best.history_[0]["loss"][-1] < plain.history_[0]["loss"][-1]
    for one, two in zip(list(plain.staged_ensembles())[:3], list(best.staged_ensembles())[:3], strict=True):
        np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    assert best.certify(X, y).verified_error == pytest.approx(best.history_[0]["verified_error"][-1])


def test_the_automatic_schedule_rises_where_single_stumps_fall():
    """A radius that crosses every stump needs a rising eps (and predicts then); a small one is taken at once."""
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=200)
    X = np.where((rng.uniform(size=(200, 16)) < 0.15) ^ (y[:, None] == 1), 0.9, 0.1)  # votes of 16 features
    small, large = (StumpBoostingClassifier(1, eps, 16).fit(X, y) for eps in (0.1, 1.0))
    assert small.history_[0]["eps"] == [0.1] * 16
    eps = large.history_[0]["eps"]
    assert np.all(np.diff(eps) > 0)
    assert eps[-1] == 1.0
    at_once = clone(large).set_params(eps_schedule=None).fit(X, y)
    assert large.verified_score(X, y) > at_once.verified_score(X, y) + 0.1
    counted = StumpBoostingClassifier(0, 2, 8, eps_schedule=8).fit(X, y).history_[0]["eps"]
    assert set(counted) == {1.0, 2.0}


def test_the_largest_schedule_share_is_the_whole_radius():
    """eps grows over the scheduled rounds, in each shape, and then stays."""
    X, y = blobs()
    for shape in ("linear", "quadratic", "root", "cosine", lambda share: share**3):
        eps = StumpBoostingClassifier(1, 0.2, 6, eps_schedule=4, schedule_shape=shape).fit(X, y).history_[0]["eps"]
        assert eps[3:] == [0.2] * 3
        assert np.all(np.diff(eps[:4]) > 0)
    assert StumpBoostingClassifier(1, 0.2, 6, eps_schedule=0.5).fit(X, y).history_[0]["eps"][2:] == [0.2] * 4


def test_stages_are_the_models_on_the_way():
    """Stage t equals a fit with t stumps; the last stage is the model; certificates come along."""
    X, y = blobs()
    model = StumpBoostingClassifier(1, 0.1, 5, eps_schedule=None).fit(X, y)
    scores = list(model.staged_decision_function(X))
    assert len(scores) == model.n_estimators_ == 5
    np.testing.assert_array_equal(scores[-1], model.decision_function(X))
    np.testing.assert_array_equal(scores[2], clone(model).set_params(n_estimators=3).fit(X, y).decision_function(X))
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    errors = [found.verified_error for found in model.staged_certify(X, y)]
    np.testing.assert_allclose(errors, model.history_[0]["verified_error"])


@pytest.mark.parametrize("corrective", [False, True])
def test_warm_start_goes_on(corrective):
    """Going on from 3 to 6 stumps keeps the thresholds; plain boosting ends exactly where one run does."""
    X, y = blobs()
    model = StumpBoostingClassifier(
        1, 0.1, 3, warm_start=True, corrective=corrective, exchanges=0, eps_schedule=None
    ).fit(X, y)
    first = model._fits[0].state.threshold
    model.set_params(n_estimators=6).fit(X, y)
    whole = clone(model).set_params(warm_start=False).fit(X, y)
    assert model._fits[0].state.threshold[:3] == first
    assert len(model.history_[0]["loss"]) == 6
    if not corrective:
        np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))
    with pytest.raises(InvalidInputError, match="n_estimators must be"):
        model.set_params(n_estimators=4).fit(X, y)


def test_early_stopping_keeps_the_best_round():
    """The kept model is the round of least validation verified error, given or held-out rows."""
    X, y = blobs(240)
    X_val, y_val = blobs(80, seed=5)
    model = StumpBoostingClassifier(1, 0.1, 60, early_stopping=True, n_iter_no_change=4).fit(
        X, y, X_val=X_val, y_val=y_val
    )
    errors = model.history_[0]["validation_verified_error"]
    assert len(errors) == model.n_estimators_ < 60
    assert errors[-1] == min(errors)
    assert 1 - model.verified_score(X_val, y_val) == pytest.approx(errors[-1])
    held = StumpBoostingClassifier(1, 0.1, 60, early_stopping=True, n_iter_no_change=4, random_state=0).fit(X, y)
    assert held.n_estimators_ < 60


def test_several_classes():
    """One-vs-all on three classes: staged, certified per pair of classes, threads change nothing."""
    X, y = blobs(240, classes=3)
    names = np.array(["low", "middle", "top"])[y]
    model = StumpBoostingClassifier(1, 0.03, 25).fit(X, names)
    assert model.score(X, names) > 0.85
    found = model.certify(X, names)
    assert found.clean_error <= found.attack_error <= found.verified_error < 0.6
    threads = StumpBoostingClassifier(1, 0.03, 25, n_jobs=2).fit(X, names)
    np.testing.assert_array_equal(model.decision_function(X), threads.decision_function(X))
    assert model.rules().count("score for") == 3


def test_threads_choose_the_same_stumps():
    """Features screened in two threads give the same model as in one."""
    X, y = blobs()
    one, two = (StumpBoostingClassifier(1, 0.1, 5, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_subsampling_is_seeded():
    """Each round looks at a share of the rows; the same seed gives the same model, another one another."""
    X, y = blobs()
    models = [StumpBoostingClassifier(1, 0.1, 6, subsample=0.3, random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    scores = [model.decision_function(X) for model in models]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert np.any(scores[0] != scores[2])


def test_words_and_importances():
    """Rules name the columns, importances are shares, the summary says what the model is."""
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    X, y = blobs()
    frame = pandas.DataFrame(X, columns=["age", "dose", "flat"]).assign(flat=1.0)
    model = StumpBoostingClassifier(1, 0.05, 4).fit(frame, y)
    assert "if age <" in model.rules() or "if dose <" in model.rules()
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[2] == 0
    assert model.ensemble_.feature_names == ("age", "dose", "flat")
    assert pickle.loads(pickle.dumps(model)).score(frame, y) == model.score(frame, y)


def test_verified_scorer_in_a_grid_search():
    """GridSearchCV chooses by verified accuracy; the scorer equals one minus the verified error."""
    X, y = blobs()
    scorer = make_verified_scorer(norm=1, eps=0.08)
    search = GridSearchCV(
        StumpBoostingClassifier(1, 0.08, 6), {"train_norm": ["same", None]}, scoring=scorer, cv=2
    ).fit(X, y)
    assert search.best_params_ == {"train_norm": "same"}
    best = search.best_estimator_
    assert scorer(best, X, y) == pytest.approx(1 - best.certify(X, y, norm=1, eps=0.08).verified_error)
    assert make_verified_scorer(norm=1, eps=0.08, count="attack")(best, X, y) >= scorer(best, X, y)
    with pytest.raises(InvalidInputError, match="count must be"):
        make_verified_scorer(count="all")


def test_verbose_reports_each_round(capsys):
    """The progress line shows clean and verified training error, on standard error only."""
    X, y = blobs()
    StumpBoostingClassifier(1, 0.1, 2, verbose=1).fit(X, y)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("verified") == 2


# ---------------------------------------------------------------------- odd data (issue 4, Shows 6)


def test_constant_features_give_the_constant_model():
    """Without any candidate threshold the model is the best constant."""
    model = StumpBoostingClassifier(1, 0.3, 5).fit(np.ones((10, 2)), [0] * 3 + [1] * 7)
    assert model.predict([[1.0, 1.0], [5.0, -5.0]]).tolist() == [1, 1]
    assert model.decision_function([[1.0, 1.0]])[0] == pytest.approx(np.log(7 / 3))
    assert model.certify(np.ones((1, 2)), [1]).verified_error == 0


def test_repeated_and_weightless_rows():
    """A weight of 2 is a repeated row, a weight of 0 no row."""
    X, y = blobs(60)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    weighted = StumpBoostingClassifier(1, 0.1, 6).fit(X, y, sample_weight=weight)
    repeated = StumpBoostingClassifier(1, 0.1, 6).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


@pytest.mark.parametrize("norm", [0, 0.5, 1, 2, np.inf])
def test_an_eps_beyond_the_data_gives_the_constant(norm):
    """When every row can be moved anywhere, no stump helps: the prediction is the larger class for all."""
    X, y = blobs(50)
    y[:] = np.arange(50) < 15
    model = StumpBoostingClassifier(norm, 100.0, 4).fit(X, y)
    assert set(model.predict(X)) == {0}
    assert model.certify(X, y).verified_error == pytest.approx(0.3)


def test_one_class_is_a_clear_error():
    """One class is refused in words."""
    with pytest.raises(InvalidInputError, match="at least two classes"):
        StumpBoostingClassifier().fit(np.eye(3), [1, 1, 1])


@pytest.mark.parametrize("thresholds", ["uniform", "midpoints", "shifted"])
def test_thresholds_leave_rows_on_both_sides(thresholds):
    """Each kind of candidates trains; no candidate is one-sided on the training rows."""
    from treeproof.training.stump_bins import columns_of

    X, y = blobs(80)
    X = np.round(X * 8) / 8
    for bins in (2, 3, 40, None):
        if bins is None and thresholds == "uniform":
            continue
        columns = columns_of(X, thresholds, bins, 0.1)
        for j in range(3):
            edges = columns.edge[columns.start[j] : columns.start[j + 1]]
            assert len(edges) >= 1
            assert bins is None or len(edges) < bins
            assert all(0 < np.mean(X[:, j] < edge) < 1 for edge in edges)
        model = StumpBoostingClassifier(np.inf, 0.1, 5, thresholds=thresholds, max_bins=bins).fit(X, y)
        assert model.history_[0]["loss"][-1] < 0.95  # the constant reaches 1 at best on equal classes


@pytest.mark.slow
def test_ten_digits():
    """10-digit MNIST (2,000 rows) trains one-vs-all and certifies."""
    if not (SHARED / "data" / "mnist.npz").exists():
        pytest.skip("needs the shared MNIST file (set TREEPROOF_SHARED)")
    with np.load(SHARED / "data" / "mnist.npz") as data:
        X, y = data["X_train"][:2500].reshape(2500, -1) / 255, data["y_train"][:2500]
    model = StumpBoostingClassifier(1, 0.1, 20).fit(X[:2000], y[:2000])
    found = model.certify(X[2000:], y[2000:])
    assert found.clean_error <= found.attack_error <= found.verified_error
    assert found.clean_error < 0.4
    assert found.verified_error < 0.9
