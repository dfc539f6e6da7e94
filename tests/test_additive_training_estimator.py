"""AdditiveClassifier as an estimator: contract, threats, constraints, determinism, readable staircases."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from treeproof import InvalidInputError
from treeproof.training.additive import AdditiveClassifier
from treeproof.training.additive_staircases import staircases_of


@parametrize_with_checks([AdditiveClassifier(epochs=20, max_epochs=20)])
def test_scikit_learn_contract(estimator, check):
    """scikit-learn's own checks, with no expected failures."""
    check(estimator)


def table(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = (X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=n) > 0).astype(int)
    return X, y


def steps_of(model, j):
    """Thresholds and jumps of feature j in the fitted ensemble."""
    found = [one for one in staircases_of(model.ensemble_)[1] if one.feature == j]
    return np.diff(found[0].values) if found else np.zeros(0)


@pytest.mark.parametrize("norm", [0, 0.5, 1, 2, np.inf])
def test_learns_in_every_norm(norm):
    """Right on most rows and provably so: the training bound at eps on the rows is far above chance."""
    X, y = table()
    model = AdditiveClassifier(norm, 1 if norm == 0 else 0.02, random_state=0)
    if norm == 0:  # several copies of the useful features, so that losing any one of them is survivable
        X = np.hstack([X] * 4) + 0.05 * np.random.default_rng(1).normal(size=(len(X), 16))
    model.fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.ensemble_.is_additive
    assert 0 <= model.gap_ < 0.2
    assert model.objective_[0] >= model.lower_bound_[0]


def test_several_classes():
    """One staircase model a class, joined into one ensemble."""
    X, _ = table()
    y = np.array(["a", "b", "c"])[(X[:, 0] * 3).astype(int)]
    model = AdditiveClassifier(1, 0.02, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.ensemble_.n_outputs == 3
    assert len(model.objective_) == 3
    assert "score = " in model.explain("b")
    with pytest.raises(InvalidInputError, match="label must be one of"):
        model.explain("d")


def test_same_seed_same_model_whatever_the_threads():
    """Deterministic given random_state, and n_jobs changes nothing."""
    X, y = table(3000)
    runs = [
        AdditiveClassifier(1, 0.05, epochs=3, max_epochs=3, batch_size=512, random_state=1, n_jobs=jobs).fit(X, y)
        for jobs in (1, 2)
    ]
    assert np.array_equal(runs[0].ensemble_.value, runs[1].ensemble_.value)
    assert np.array_equal(runs[0].ensemble_.threshold, runs[1].ensemble_.threshold)


def test_weights_are_repetitions():
    """A row of weight 2 is exactly a repeated row; a row of weight 0 is no row."""
    X, y = table(100)
    weight = np.random.default_rng(0).integers(0, 3, 100)
    rows = np.repeat(np.arange(100), weight)
    settings = {"norm": 1, "eps": 0.05, "random_state": 0, "epochs": 10, "max_epochs": 10}
    one = AdditiveClassifier(**settings).fit(X, y, weight)
    two = AdditiveClassifier(**settings).fit(X[rows], y[rows])
    assert one.decision_function(X) == pytest.approx(two.decision_function(X), abs=1e-9)


def test_monotone_staircases():
    """No staircase goes against its constraint, by position or by name."""
    X, y = table()
    model = AdditiveClassifier(1, 0.05, monotone=[1, -1, 1, 0], random_state=0).fit(X, y)
    for j, sign in ((0, 1), (1, -1), (2, 1)):
        assert np.all(sign * steps_of(model, j) > 0)
    against = AdditiveClassifier(1, 0.05, monotone={0: -1}, random_state=0).fit(X, y)
    assert np.all(steps_of(against, 0) < 0)
    with pytest.raises(InvalidInputError, match="monotone must be 4 numbers"):
        AdditiveClassifier(monotone=[1]).fit(X, y)


def test_threat_parts_change_what_is_learned():
    """A frozen feature may be used freely where a movable one may not: the model leans on it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = np.column_stack([y + 0.4 * rng.normal(size=500), y + 0.4 * rng.normal(size=500)])
    free = AdditiveClassifier(1, 1.0, random_state=0).fit(X, y)
    frozen = AdditiveClassifier(1, 1.0, frozen=[1], random_state=0).fit(X, y)
    assert frozen.objective_[0] < 0.7 * free.objective_[0]
    scaled = AdditiveClassifier(1, 1.0, scale=[1.0, 1e-3], random_state=0).fit(X, y)
    assert scaled.objective_[0] == pytest.approx(frozen.objective_[0], rel=0.05)
    assert frozen._default_threat().frozen == [1]
    both, up, none = (
        AdditiveClassifier(1, 0.4, direction=way, frozen=still, random_state=0).fit(X, y).objective_[0]
        for way, still in ((None, None), ({1: 1}, None), (None, [1]))
    )
    assert none < up < both


def test_given_thresholds_are_the_only_ones_used():
    """`thresholds` replaces the search."""
    X, y = table()
    model = AdditiveClassifier(1, 0.05, thresholds=[[0.5], [0.25, 0.75], [], []], random_state=0).fit(X, y)
    pairs = set(zip(model.ensemble_.feature, model.ensemble_.threshold, strict=True))
    assert {pair for pair in pairs if pair[0] >= 0} <= {(0, 0.5), (1, 0.25), (1, 0.75)}


def test_thresholds_lie_inside_gaps():
    """No threshold on a data value, several evenly inside a wide gap, for every binning."""
    X = np.random.default_rng(0).integers(0, 5, (200, 2)).astype(float)
    y = (X[:, 0] > 2).astype(int)
    for binning in ("uniform", "quantile", "mixed"):
        model = AdditiveClassifier(1, 0.5, max_bins=13, binning=binning, random_state=0).fit(X, y)
        cuts = model.ensemble_.threshold[model.ensemble_.feature == 0]
        assert len(cuts)
        assert not np.isin(cuts, X).any()


def test_early_stopping_keeps_the_best_validation_error():
    """With validation rows the history has their verified error, and the least is kept."""
    X, y = table(600)
    X_val, y_val = table(300, seed=1)
    model = AdditiveClassifier(1, 0.05, early_stopping=True, tol=0.0, random_state=0)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    errors = model.history_[0]["validation_error"]
    assert all(0 <= error <= 0.5 for error in errors)
    assert model.stopped_by_ in (["validation"], ["max_epochs"])
    own = AdditiveClassifier(1, 0.05, early_stopping=True, random_state=0).fit(X, y)
    assert own.history_[0]["validation_error"][0] is not None


def test_staircases_say_what_the_model_does():
    """Constant plus staircases give the decision function; the text names the features."""
    X, y = table()
    model = AdditiveClassifier(1, 0.05, random_state=0).fit(X, y)
    constant, stairs = model.staircases()
    score = np.full(len(X), constant)
    for one in stairs:
        score += one.values[np.searchsorted(one.thresholds, X[:, one.feature], side="right")]
    assert score == pytest.approx(model.decision_function(X), abs=1e-9)
    text = model.explain(max_features=2)
    assert "x[0]" in text
    assert "x[1]" in text


def test_max_stumps_bounds_the_thresholds_and_orders_the_objectives():
    """At most T thresholds, a subset of those of every larger T, and the training objective falls with T."""
    X, y = table(600)
    objectives, sets = [], []
    for most in (2, 5, 20):
        model = AdditiveClassifier(1, 0.05, max_stumps=most, tol=0.005, random_state=0).fit(X, y)
        assert 1 <= model.ensemble_.n_trees <= most
        objectives.append(model.objective_[0])
        problem = model._fits[0].state[0]
        sets.append({(j, t) for j, steps in zip(problem.features, problem.thresholds, strict=True) for t in steps})
    assert objectives[0] > objectives[1] > objectives[2]
    assert sets[0] < sets[1] < sets[2]
    assert model.score(X, y) > 0.9


def test_plot_draws_one_panel_a_feature():
    """Plots need matplotlib only, and draw the asked features."""
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib")
    matplotlib.use("Agg")
    X, y = table()
    model = AdditiveClassifier(1, 0.05, random_state=0).fit(X, y)
    axes = model.plot(features=[0, 1])
    assert [panel.get_title() for panel in axes[:2]] == ["x[0]", "x[1]"]
    import matplotlib.pyplot as plt

    plt.close("all")


def test_nothing_to_learn_gives_the_constant():
    """Constant features, or a threat larger than the data, give the constant classifier, not an error."""
    X = np.ones((20, 2))
    y = np.arange(20) % 4 == 0
    model = AdditiveClassifier(random_state=0).fit(X, y)
    assert model.ensemble_.n_trees == 0
    assert not model.predict(X).any()
    wide, labels = table(200)
    far = AdditiveClassifier(np.inf, 5.0, random_state=0).fit(wide, labels)
    assert np.abs(far.decision_function(wide)).max() < 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"norm": -1}, "norm must be"),
        ({"eps": np.nan}, "eps must be"),
        ({"max_bins": 0}, "max_bins must be"),
        ({"binning": "kmeans"}, "binning must be one of"),
        ({"loss": "square"}, "loss must be one of"),
        ({"l2": 0.0}, "l2 must be"),
        ({"total_variation": -1}, "total_variation must be"),
        ({"thresholds": [[0.5]]}, "thresholds must be a list of 4"),
        ({"max_stumps": 0}, "max_stumps must be"),
        ({"monotone": {9: 1}}, "monotone's feature must be"),
    ],
)
def test_bad_parameters_are_one_clear_line(given, message):
    """Each bad parameter is named, with the rule and what came."""
    X, y = table(50)
    with pytest.raises(InvalidInputError, match=message):
        AdditiveClassifier(**given).fit(X, y)
