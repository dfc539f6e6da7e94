"""Trees added to a fitted model: `init`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from tests.test_tree_training import INF, naive_worst, tiny

from treeproof import AdditiveClassifier, StumpBoostingClassifier, TreeBoostingClassifier
from treeproof._errors import InvalidInputError
from treeproof.training.tree_reach import Ball
from treeproof.training.tree_rounds import Bounded
from treeproof.training.tree_start import initial_trees


@pytest.mark.parametrize(
    "first",
    [
        AdditiveClassifier(1, 0.1, epochs=5),
        StumpBoostingClassifier(INF, 0.1, n_estimators=12),
        TreeBoostingClassifier(1, 0.02, n_estimators=3, max_depth=3),
    ],
)
def test_initial_trees_score_as_the_fitted_model(first):
    """Also on every threshold and just below it; an additive model becomes one tree a feature."""
    X, side, _ = tiny(2, n=60)
    model = first.fit(X, side).ensemble_
    base, trees = initial_trees(model)
    edges = np.concatenate([np.unique(model.threshold[model.feature >= 0]), [0.0, 1.0]])
    points = np.random.default_rng(0).choice(np.concatenate([edges, np.nextafter(edges, -INF)]), (200, 3))
    rows = Bounded.of(points, np.ones(200), Ball(1.0, 0.0))
    rows.restart(base, trees)
    np.testing.assert_allclose(rows.margins, model.decision_function(points), rtol=0, atol=1e-12)
    if model.is_additive:
        assert len(trees) == len(model.used_features)


@pytest.mark.parametrize(("norm", "eps"), [(1, 0.16), (2, 0.21), (INF, 0.12)])
def test_bounds_with_an_initial_model_stay_below_the_exact_worst_case(norm, eps):
    """Both bounds: the sum of the trees' worst cases, and that of one shared budget, which is the higher."""
    X, side, _ = tiny(3, n=30)
    first = AdditiveClassifier(norm, eps, max_bins=4, epochs=20, random_state=0)
    model = TreeBoostingClassifier(
        norm, eps, init=first, n_estimators=2, max_depth=2, corrective=True, loss="logistic", random_state=0
    ).fit(X, side)
    state = model._fits[0].state
    rows = Bounded.of(X, side, Ball(norm, eps))
    rows.restart(state.base, state.trees)
    alone = rows.margins
    rows.restart(state.base, state.trees, shared=True)
    exact = naive_worst(model.ensemble_, X, side, norm, eps)
    assert np.all(alone <= rows.margins + 1e-5)
    assert np.all(rows.margins <= exact + 1e-12)
    assert len(state.trees) == state.given + 2


def test_shallow_trees_learn_what_an_additive_model_cannot():
    """Exclusive or of two features, robustly: none of it is additive, all of it is proved with trees beside."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    X = X[np.all(np.abs(X[:, :2] - 0.5) > 0.1, axis=1)]
    y = (X[:, 0] > 0.5) != (X[:, 1] > 0.5)
    first = AdditiveClassifier(INF, 0.08, random_state=0)
    model = TreeBoostingClassifier(
        INF, 0.08, init=first, n_estimators=20, max_depth=3, corrective=True, corrective_every=20, loss="logistic"
    ).fit(X, y)
    assert first.fit(X, y).certify(X, y).verified_error > 0.4
    assert model.certify(X, y).verified_error < 0.02


def test_initial_model_with_warm_start_and_several_classes():
    """Trees are counted without the initial model's; a longer run continues a shorter one; classes each have theirs."""
    rng = np.random.default_rng(0)
    X = rng.random((150, 3))
    y = np.digitize(X[:, 0], [0.33, 0.66])
    first = AdditiveClassifier(1, 0.02, epochs=3, random_state=0)
    options = {"init": first, "max_depth": 2}
    whole = TreeBoostingClassifier(1, 0.02, n_estimators=3, **options).fit(X, y)
    part = TreeBoostingClassifier(1, 0.02, n_estimators=1, warm_start=True, **options).fit(X, y)
    part.set_params(n_estimators=3).fit(X, y)
    np.testing.assert_array_equal(part.decision_function(X), whole.decision_function(X))
    with pytest.raises(InvalidInputError, match="n_estimators must be at least the 3 trees"):
        part.set_params(n_estimators=2).fit(X, y)


def test_one_seed_repeats_the_initial_model_too():
    """An initial model without a seed of its own takes one from the outer `random_state`."""
    X, side, _ = tiny(3, n=60)
    first = AdditiveClassifier(1, 0.02, epochs=3, batch_size=8)
    runs = [TreeBoostingClassifier(1, 0.02, init=first, n_estimators=1, random_state=5).fit(X, side) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].decision_function(X), runs[1].decision_function(X))


def test_another_librarys_initial_model_is_refused():
    """Only a classifier of treeproof has the bounds that training needs."""
    with pytest.raises(InvalidInputError, match="init must be None or an unfitted classifier of treeproof"):
        TreeBoostingClassifier(init=DecisionTreeClassifier()).fit([[0.0], [1.0]], [0, 1])
