"""The shared-budget bound and the joint refit of leaf values: sound, tighter, convex, and worth it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.test_tree_training import BALLS, INF, naive_cost, naive_leaves, naive_worst, tiny

from treeproof._errors import InvalidInputError
from treeproof.training.tree_boosting import TreeBoostingClassifier
from treeproof.training.tree_reach import Ball
from treeproof.training.tree_refit import RefitOptions, bounds, refit
from treeproof.training.tree_rounds import Bounded, leaf_values
from treeproof.training.tree_shared import join_leaves, reach_of, shared_bound
from treeproof.training.tree_split import EXPONENTIAL


def naive_dual(model, row, side, norm, eps):
    """The best multiplier's bound by a fine scan, with equal shares, from the definition."""
    trees = naive_leaves(model)
    readers = {}
    for leaves in trees:
        for j in {j for box, _ in leaves for j in box}:
            readers[j] = readers.get(j, 0) + 1
    found = []
    for leaves in trees:
        options = []
        for box, value in leaves:
            if naive_cost(row, box, norm, eps) <= 1:
                price = 0.0
                if norm != INF:
                    price = sum(naive_cost(row, {j: side_}, norm, eps) / readers[j] for j, side_ in box.items())
                options.append((side * value, price))
        found.append(np.array(options))
    scan = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 4000)])
    totals = -scan * (norm != INF) + side * model.base[0]
    for options in found:
        totals = totals + (options[:, :1] + options[:, 1:] * scan).min(axis=0)
    return totals.max()


@pytest.mark.parametrize(("norm", "eps"), BALLS)
@pytest.mark.parametrize("corrective", [False, True])
def test_shared_bound_lies_between_the_sum_of_worst_cases_and_the_exact_one(norm, eps, corrective):
    """Per row: sum of the trees' worst cases <= shared bound <= exact worst case, as a scan of multipliers."""
    X, side, _ = tiny(11, n=30)
    model = TreeBoostingClassifier(
        norm, eps, growth_eps=0 if norm == 0 else eps / 2, n_estimators=3, max_depth=2, corrective=corrective
    ).fit(X, side)
    state = model._fits[0].state
    rows = Bounded.of(X, side, Ball(norm, eps))
    rows.restart(state.base, state.trees)
    alone = rows.margins
    rows.restart(state.base, state.trees, shared=True)
    exact = naive_worst(model.ensemble_, X, side, norm, eps)
    assert np.all(rows.margins >= alone - 1e-5)
    assert np.all(rows.margins <= exact + 1e-12)
    scanned = [naive_dual(model.ensemble_, row, s, norm, eps) for row, s in zip(X, side, strict=True)]
    # the scan is coarse (below the best multiplier's bound) and prices are rounded down by 1e-6
    assert np.all(rows.margins >= np.array(scanned) - 1e-5)
    np.testing.assert_allclose(rows.margins, scanned, atol=5e-3)


def test_supergradient_bounds_the_change_of_the_bound():
    """Concavity: moving the leaf values changes the bound by at most the supergradient times the move."""
    X = np.random.default_rng(0).random((40, 6))
    side = np.where(X.sum(axis=1) > 3, 1.0, -1.0)
    model = TreeBoostingClassifier(1, 0.6, growth_eps=0.05, n_estimators=8, max_depth=1, learning_rate=0.5).fit(X, side)
    trees = model._fits[0].state.trees
    reach = reach_of(np.ascontiguousarray(X.T), join_leaves([tree.boxes for tree in trees]), Ball(1.0, 0.6))
    values = leaf_values(trees)
    rng = np.random.default_rng(0)
    mixed = 0
    for i in range(len(X)):
        dear, cheap = np.empty(8, dtype=np.int64), np.empty(8, dtype=np.int64)
        bound, _, theta = shared_bound(reach, values, i, side[i], 1.0, 0.0, dear, cheap)
        mixed += 0 < theta < 1
        slope = np.zeros(len(values))
        np.add.at(slope, dear, theta * side[i])
        np.add.at(slope, cheap, (1 - theta) * side[i])
        for size in (1e-3, 0.1, 1.0):
            move = size * rng.standard_normal(len(values))
            after = shared_bound(reach, values + move, i, side[i], 1.0, 0.0, dear.copy(), cheap.copy())[0]
            assert after <= bound + slope @ move + 1e-5
    assert mixed > 0


@pytest.mark.parametrize("loss", [0, 1])
def test_refit_comes_close_to_the_optimum(loss):
    """The refit's objective is within 2% of what a long derivative-free search from its result finds."""
    X, side, weight = tiny(4, n=40)
    model = TreeBoostingClassifier(1, 0.12, growth_eps=0.05, n_estimators=2, max_depth=2).fit(X, side)
    trees = model._fits[0].state.trees
    reach = reach_of(np.ascontiguousarray(X.T), join_leaves([tree.boxes for tree in trees]), Ball(1.0, 0.12))

    def objective(point):
        margins = bounds(reach, side, point[:-1], point[-1])
        losses = np.exp(-margins) if loss == EXPONENTIAL else np.logaddexp(0, -margins)
        return np.average(losses, weights=weight) + 0.5e-2 * np.sum(point[:-1] ** 2)

    options = RefitOptions(loss=loss, epochs=300, batch=40, l2=1e-2)
    start = leaf_values(trees)
    values, base = refit(reach, (side, weight), (start, 0.0), options, 1.0, np.random.default_rng(0))
    found = objective(np.append(values, base))
    assert found < objective(np.append(start, 0.0))
    better = minimize(objective, np.append(values, base), method="Powell", options={"maxfev": 4000}).fun
    assert found <= better * 1.02


def test_correction_proves_more_with_the_same_trees():
    """Where any one tree can be flipped but not all at once, only the shared bound proves anything."""
    rng = np.random.default_rng(0)
    y = rng.random(600) > 0.5
    X = np.where((rng.random((600, 15)) < 0.9) == y[:, None], 1.0, 0.0) + 0.1 * rng.random((600, 15))
    errors = []
    for corrective in (False, True):
        model = TreeBoostingClassifier(
            1,
            1.0,
            growth_eps=0.3,
            n_estimators=15,
            max_depth=1,
            max_readers=1,
            learning_rate=0.3,
            corrective=corrective,
        ).fit(X[:300], y[:300])
        state = model._fits[0].state
        held = Bounded.of(X[300:], np.where(y[300:], 1.0, -1.0), Ball(1, 1.0))
        held.restart(state.base, state.trees, shared=corrective)
        errors.append(held.unproved())
    assert errors[0] > 0.9
    assert errors[1] < 0.1


@pytest.mark.slow
def test_certificates_agree_with_the_training_bound():
    """A row that the shared bound proves is never found broken by the exact verifier."""
    rng = np.random.default_rng(0)
    y = rng.random(300) > 0.5
    X = np.where((rng.random((300, 9)) < 0.9) == y[:, None], 1.0, 0.0) + 0.1 * rng.random((300, 9))
    model = TreeBoostingClassifier(
        1, 1.0, growth_eps=0.3, n_estimators=9, max_depth=1, max_readers=1, corrective=True, corrective_every=9
    ).fit(X, y)
    state = model._fits[0].state
    bounded = Bounded.of(X, np.where(y, 1.0, -1.0), Ball(1, 1.0))
    bounded.restart(state.base, state.trees, shared=True)
    found = model.certify(X, y)
    assert np.all(found.upper >= bounded.margins - 1e-9)
    assert found.verified_error <= bounded.unproved()


def test_a_clean_share_trades_proofs_for_clean_accuracy():
    """Where the radius makes the constant optimal, a clean share keeps a model that predicts."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    y = X[:, 0] > 0.5
    scores = []
    for share in (0.0, 0.7):
        model = TreeBoostingClassifier(
            1, 0.9, growth_eps=0.01, n_estimators=2, max_depth=2, corrective=True, refit_clean=share, loss="logistic"
        ).fit(X, y)
        scores.append(model.score(X, y))
    assert scores[0] < 0.75
    assert scores[1] > 0.9
    with pytest.raises(InvalidInputError, match="refit_clean must be 0 at norm = inf"):
        model.set_params(norm=INF).fit(X, y)


def test_the_polish_lowers_the_smoothed_count():
    """The polished values have a smaller mean 1 / (1 + exp(bound)) than the convex optimum they start from."""
    X, side, weight = tiny(4, n=40)
    model = TreeBoostingClassifier(1, 0.12, growth_eps=0.05, n_estimators=2, max_depth=2).fit(X, side)
    trees = model._fits[0].state.trees
    reach = reach_of(np.ascontiguousarray(X.T), join_leaves([tree.boxes for tree in trees]), Ball(1.0, 0.12))
    counts = []
    for polish in (False, True):
        options = RefitOptions(loss=1, epochs=100, batch=40, rate=0.05, polish=polish)
        values, base = refit(reach, (side, weight), (leaf_values(trees), 0.0), options, 1.0, np.random.default_rng(0))
        margins = bounds(reach, side, values, base)
        counts.append(np.average(1 / (1 + np.exp(margins)), weights=weight))
    assert counts[1] < 0.95 * counts[0]


def test_correction_with_early_stopping_keeps_the_best_rounds_values():
    """The kept model's own shared bounds give the best validation error of the history."""
    rng = np.random.default_rng(1)
    X = rng.random((300, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(300) > 0.5
    model = TreeBoostingClassifier(
        1, 0.05, n_estimators=12, max_depth=2, corrective=True, early_stopping=3, random_state=0
    ).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    state = model._fits[0].state
    held = Bounded.of(X[200:], np.where(y[200:], 1.0, -1.0), Ball(1, 0.05))
    held.restart(state.base, state.trees, shared=True)
    assert held.unproved() == min(model.history_[0]["val_bound_error"])
    kept = model.decision_function(X)
    model.set_params(warm_start=True, early_stopping=None, n_estimators=model.ensemble_.n_trees).fit(X[:200], y[:200])
    np.testing.assert_array_equal(model.decision_function(X), kept)
