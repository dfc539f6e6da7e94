"""TreeBoostingClassifier: scikit-learn's contract, splits and bounds against brute force, plain boosting."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from treeproof import TreeEnsemble
from treeproof._errors import InvalidInputError
from treeproof.training import tree_growth
from treeproof.training.tree_boosting import TreeBoostingClassifier
from treeproof.training.tree_candidates import candidates
from treeproof.training.tree_growth import GrowthOptions, Rows, Split, grow_tree, split_values
from treeproof.training.tree_prune import prune
from treeproof.training.tree_reach import Ball
from treeproof.training.tree_rounds import Bounded
from treeproof.training.tree_split import Rules

INF = float("inf")
# values lie on tenths: these radii meet no exact tie (the trainer gives ties, within 1e-9, to the adversary)
BALLS = [(0, 1), (0.5, 0.11), (1, 0.16), (2, 0.21), (3, 0.21), (INF, 0.12), (1, 0), (0, 0), (INF, 0)]


@parametrize_with_checks(
    [
        TreeBoostingClassifier(),
        TreeBoostingClassifier(norm=INF, eps=0.05, loss="logistic", learning_rate=0.5, max_leaf_nodes=6),
        TreeBoostingClassifier(norm=0, eps=0, early_stopping=2),
        TreeBoostingClassifier(eps=0.05, corrective=True, prune=True, max_readers=1, refit_epochs=5),
    ]
)
def test_estimator_contract(estimator, check):
    """scikit-learn's own checks pass."""
    check(estimator)


# ------------------------------------------------------------------ naive oracles (nothing from training)


def naive_cost(row, box, norm, eps):
    """The cost of reaching a box {feature: (low, high)}, budget 1, by the definition."""
    moves = [
        (low - row[j] if row[j] < low else row[j] - high) for j, (low, high) in box.items() if not low <= row[j] < high
    ]
    if not moves:
        return 0.0
    if norm == 0:
        return len(moves) / np.floor(eps) if eps >= 1 else INF
    if eps == 0:
        return INF
    ratios = [move / eps for move in moves]
    return max(ratios) if norm == INF else sum(ratio**norm for ratio in ratios)


def naive_margins(pairs, reach, side):
    """Per row the worst of y w over the sides that it reaches, for each (w_l, w_r)."""
    both = np.where(reach[:, :, None], side[:, None, None] * pairs.T[None, :, :], INF)
    return both.min(axis=1)


def naive_leaves(model: TreeEnsemble):
    """For each tree the list of (box, value) of its leaves."""
    out = []
    for t in range(model.n_trees):
        found = []

        def walk(node, box, found=found):
            j = model.feature[node]
            if j < 0:
                found.append((box, model.value[node, 0]))
                return
            low, high = box.get(j, (-INF, INF))
            walk(model.left[node], {**box, j: (low, min(high, model.threshold[node]))})
            walk(model.right[node], {**box, j: (max(low, model.threshold[node]), high)})

        walk(model.tree_offsets[t], {})
        out.append(found)
    return out


def naive_worst(model, X, side, norm, eps):
    """The exact least of side * score over the ball, by all cells of the whole ensemble."""
    d = X.shape[1]
    cuts = [np.unique(model.threshold[model.feature == j]) for j in range(d)]
    edges = [np.concatenate([[-INF], c, [INF]]) for c in cuts]
    worst = np.full(len(X), INF)
    for cell in itertools.product(*[range(len(e) - 1) for e in edges]):
        box = {j: (edges[j][k], edges[j][k + 1]) for j, k in enumerate(cell)}
        point = np.array([low if low > -INF else high - 1 for low, high in box.values()])
        point[~np.isfinite(point)] = 0.0
        score = model.decision_function(point[None])[0]
        for i, row in enumerate(X):
            if naive_cost(row, box, norm, eps) <= 1:
                worst[i] = min(worst[i], side[i] * score)
    return worst


def tiny(seed, n=24, d=3):
    """A few rows with ties, in three features."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, d)), 1)
    side = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(n) > 0.7, 1.0, -1.0)
    return X, side, rng.uniform(0.5, 2, n)


# ---------------------------------------------------------------------- splits


GRID = np.array(list(itertools.product(np.linspace(-1, 1, 41), repeat=2)))


def naive_losses(rows, box, j, cut, norm, eps, pairs):
    """The robust exponential loss of a split of a box, for each (w_l, w_r); and the two halves."""
    X = rows.columns.T
    here = np.array([naive_cost(row, box, norm, eps) <= 1 for row in X])
    low, high = box.get(j, (-INF, INF))
    halves = [{**box, j: (low, cut)}, {**box, j: (cut, high)}]
    reach = np.array([[naive_cost(row, half, norm, eps) <= 1 for half in halves] for row in X[here]])
    margins = rows.margins[here, None] + naive_margins(pairs, reach, rows.side[here])
    return (rows.weight[here, None] * np.exp(-margins)).sum(axis=0), halves


@pytest.mark.parametrize(("norm", "eps"), BALLS)
def test_each_split_is_the_best_of_all_candidates(norm, eps):
    """At each node no candidate, with any (w_l, w_r) on a fine grid, has a smaller robust loss."""
    splits = 0
    for seed in range(3):
        X, side, weight = tiny(seed)
        columns = np.ascontiguousarray(X.T)
        start = np.random.default_rng(seed).normal(0, 0.3, len(X))
        cuts = candidates(columns, None)
        rows = Rows(columns, side, weight, start, cuts, np.arange(3))
        options = GrowthOptions(3, None, 0.0, 1, True, Rules(0, 1.0, 0.0, 0.0))
        tree = grow_tree(rows, Ball(norm, eps), options)
        todo = [(0, {})]
        while todo:
            node, box = todo.pop()
            if tree.feature[node] < 0:
                continue
            splits += 1
            j, cut = int(tree.feature[node]), tree.threshold[node]
            own = split_values(rows, box, Split(j, cut, 0.0), Ball(norm, eps), options.rules)
            chosen, halves = naive_losses(rows, box, j, cut, norm, eps, np.array([own]))
            for other in range(3):
                low, high = box.get(other, (-INF, INF))
                for candidate in cuts.cuts[cuts.offsets[other] : cuts.offsets[other + 1]]:
                    if low < candidate < high:
                        least = naive_losses(rows, box, other, candidate, norm, eps, GRID)[0].min()
                        assert chosen[0] <= least * (1 + 1e-9)
            todo += zip((tree.left[node], tree.right[node]), halves, strict=True)
    # a single move in p = 0 can cross any one threshold: there no split helps, and none is made
    assert (splits == 0) == (norm == 0 and eps >= 1)


def test_thinned_candidates_keep_the_wide_gap():
    """However few candidates are kept, one of them lies in the gap that holds most of the range."""
    rng = np.random.default_rng(0)
    column = np.concatenate([0.1 * rng.random(200), 1 + 0.1 * rng.random(200)])
    for max_bins in (1, 2, 3, 16, 64):
        cuts = candidates(column[None], max_bins).cuts
        assert 1 <= len(cuts) <= max_bins
        assert np.any((cuts > 0.1) & (cuts < 1))


def test_logistic_splits_have_exact_leaf_pairs():
    """With the logistic loss no pair (w_l, w_r) on a fine grid beats the fitted one at the chosen split."""
    grid = np.linspace(-1, 1, 81)
    pairs = np.array(list(itertools.product(grid, grid)))
    for seed, (norm, eps) in itertools.product(range(4), [(1, 0.16), (INF, 0.12), (2, 0.0)]):
        X, side, weight = tiny(seed)
        columns = np.ascontiguousarray(X.T)
        rows = Rows(columns, side, weight, np.zeros(len(X)), candidates(columns, None), np.arange(3))
        tree = grow_tree(rows, Ball(norm, eps), GrowthOptions(1, None, 0.0, 1, True, Rules(1, 1.0, 0.0, 0.0)))
        if tree.feature[0] < 0:
            continue
        j, cut = tree.feature[0], tree.threshold[0]
        halves = [{j: (-INF, cut)}, {j: (cut, INF)}]
        reach = np.array([[naive_cost(row, half, norm, eps) <= 1 for half in halves] for row in X])

        def loss(pairs, reach=reach, side=side, weight=weight):
            return (weight[:, None] * np.log1p(np.exp(-naive_margins(pairs, reach, side)))).sum(axis=0)

        assert loss(tree.value[1:3][None])[0] <= loss(pairs).min() * (1 + 1e-9)


# ---------------------------------------------------------------------- bounds


@pytest.mark.parametrize(("norm", "eps"), BALLS)
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_maintained_bounds_equal_recomputed_ones_and_are_sound(norm, eps, loss):
    """After every round the maintained bounds equal naive ones and stay below the exact worst case."""
    X, side, _ = tiny(7, n=20)
    Y = np.random.default_rng(1).random((10, 3))
    rows = np.vstack([X, Y])
    sides = np.concatenate([side, np.where(Y[:, 0] > 0.5, 1.0, -1.0)])
    for count in (1, 2, 3):
        model = TreeBoostingClassifier(
            norm, eps, n_estimators=count, max_depth=3, loss=loss, learning_rate=0.7, eps_schedule=2
        ).fit(X, side)
        state = model._fits[0].state
        kept = Bounded.of(rows, sides, Ball(norm, eps))
        kept.restart(state.base, state.trees)
        naive = sides * model.ensemble_.base[0]
        for leaves in naive_leaves(model.ensemble_):
            naive = naive + [
                min(s * value for box, value in leaves if naive_cost(row, box, norm, eps) <= 1)
                for row, s in zip(rows, sides, strict=True)
            ]
        np.testing.assert_allclose(kept.margins, naive, rtol=0, atol=1e-12)
        exact = naive_worst(model.ensemble_, rows, sides, norm, eps)
        assert np.all(kept.margins <= exact + 1e-12)
        mean_loss = np.exp(-kept.margins[:20]) if loss == "exponential" else np.log1p(np.exp(-kept.margins[:20]))
        # equal rows are merged inside; the weighted mean is the same
        assert model.history_[0]["loss"][-1] == pytest.approx(mean_loss.mean(), rel=1e-12)
        if count == 1:
            np.testing.assert_allclose(kept.margins, exact, rtol=0, atol=1e-12)


def test_a_feature_read_twice_costs_the_distance_to_the_box():
    """Crossing two thresholds of one feature costs the larger distance, not the sum."""
    X = np.array([[0.0], [0.3], [0.5], [0.9], [1.0]] * 3)
    side = np.array([1.0, -1.0, -1.0, 1.0, 1.0] * 3)
    columns = np.ascontiguousarray(X.T)
    rows = Rows(columns, side, np.ones(15), np.zeros(15), candidates(columns, None), np.array([0]))
    tree = grow_tree(rows, Ball(1.0, 0.01), GrowthOptions(3, None, 0.0, 1, True, Rules(0, 1.0, 0.0, 0.0)))
    assert np.sum(tree.feature == 0) >= 2
    worst = [tree.worst(np.array([[0.0]]), np.ones(1), Ball(1.0, eps))[0] for eps in (0.1, 0.2)]
    assert worst[0] > 0 > worst[1]
    # the far leaf (above .7) is reached at .7 and no sooner, whatever lies between
    far = tree.worst(np.array([[0.0]]), -np.ones(1), Ball(1.0, 0.69))[0]
    assert far == pytest.approx(-max(tree.value[tree.leaves[[0]]].max(), worst[0]))


def test_once_a_path_is_the_papers_restriction():
    """With reuse_features=False no path reads a feature twice."""
    X, side, _ = tiny(3, n=60)
    model = TreeBoostingClassifier(1, 0.02, max_depth=4, n_estimators=3, reuse_features=False).fit(X, side)

    def check(node, seen):
        j = model.ensemble_.feature[node]
        if j >= 0:
            assert j not in seen
            check(model.ensemble_.left[node], seen | {j})
            check(model.ensemble_.right[node], seen | {j})

    for root in model.ensemble_.tree_offsets[:-1]:
        check(root, frozenset())


# ---------------------------------------------------------------------- plain boosting and options


@pytest.mark.parametrize("data", [load_breast_cancer, partial(make_moons, 400, noise=0.3, random_state=0)])
def test_plain_boosting_matches_scikit_learn(data):
    """eps = 0 is plain boosting: within noise of GradientBoostingClassifier with the exponential loss."""
    X, y = data(return_X_y=True) if data is load_breast_cancer else data()
    common = {"n_estimators": 30, "max_depth": 3, "learning_rate": 0.2}
    ours = cross_val_score(TreeBoostingClassifier(1, 0, max_weight=4.0, **common), X, y, cv=5)
    theirs = cross_val_score(GradientBoostingClassifier(loss="exponential", random_state=0, **common), X, y, cv=5)
    # two standard errors of a difference of paired fold means, at least one per cent
    noise = max(0.01, 2 * np.std(ours - theirs, ddof=1) / np.sqrt(5))
    assert ours.mean() >= theirs.mean() - noise


def test_warm_start_continues_and_equals_one_run():
    """Trees added under warm_start are the trees of one longer run."""
    X, side, _ = tiny(5, n=80)
    whole = TreeBoostingClassifier(1, 0.03, n_estimators=4).fit(X, side)
    part = TreeBoostingClassifier(1, 0.03, n_estimators=2, warm_start=True).fit(X, side)
    part.set_params(n_estimators=4).fit(X, side)
    np.testing.assert_array_equal(part.decision_function(X), whole.decision_function(X))
    with pytest.raises(InvalidInputError, match="n_estimators must be at least the 4 trees"):
        part.set_params(n_estimators=3).fit(X, side)


def test_early_stopping_keeps_the_best_round():
    """The kept ensemble has the least verified validation error of all rounds."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 4))
    y = (X[:, 0] + 0.3 * rng.standard_normal(300)) > 0.5
    model = TreeBoostingClassifier(INF, 0.05, n_estimators=40, early_stopping=5, random_state=0)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    errors = model.history_[0]["val_bound_error"]
    assert model.ensemble_.n_trees == int(np.argmin(errors)) + 1 < 40
    held = Bounded.of(X[200:], np.where(y[200:], 1.0, -1.0), Ball(INF, 0.05))
    held.restart(model.ensemble_.base[0], model._fits[0].state.trees)
    assert held.unproved() == min(errors)


def test_robust_training_proves_more_than_plain_training():
    """Training against the ball lowers the bound's error on held-out rows by half or more."""
    rng = np.random.default_rng(0)
    X = rng.random((600, 6))
    y = X[:, 0] + X[:, 1] > 1
    gap = np.abs(X[:, 0] + X[:, 1] - 1) > 0.35
    X, y = X[gap], y[gap]
    cut = len(X) // 2
    errors = []
    for eps in (0.0, 0.1):
        model = TreeBoostingClassifier(INF, eps, n_estimators=10, learning_rate=0.3).fit(X[:cut], y[:cut])
        held = Bounded.of(X[cut:], np.where(y[cut:], 1.0, -1.0), Ball(INF, 0.1))
        held.restart(model.ensemble_.base[0], model._fits[0].state.trees)
        errors.append(held.unproved())
    assert errors[1] <= 0.5 * errors[0]


def test_several_classes_subsampling_and_feature_sampling():
    """Three classes, half the rows and features a tree: seeded runs repeat, n_jobs changes nothing."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 4))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.33, 0.66])]
    options = {"subsample": 0.5, "max_features": 0.5, "random_state": 3, "n_estimators": 8, "max_bins": 8}
    first = TreeBoostingClassifier(2, 0.01, **options).fit(X, y)
    second = TreeBoostingClassifier(2, 0.01, n_jobs=2, **options).fit(X, y)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    assert first.score(X, y) > 0.9
    assert len(first.history_) == 3


@pytest.mark.parametrize("corrective", [False, True])
def test_threads_over_features_change_nothing(monkeypatch, corrective):
    """Two classes: nodes whose features are shared by threads give the same model, to the last bit."""
    monkeypatch.setattr(tree_growth, "_SHARED_WORK", 1)
    rng = np.random.default_rng(0)
    X = rng.random((150, 20))
    y = X[:, 0] + X[:, 1] > 1
    options = {"n_estimators": 3, "max_features": 0.8, "subsample": 0.9, "random_state": 1, "corrective": corrective}
    alone = TreeBoostingClassifier(1, 0.05, **options).fit(X, y)
    shared = TreeBoostingClassifier(1, 0.05, n_jobs=3, **options).fit(X, y)
    np.testing.assert_array_equal(alone.ensemble_.threshold, shared.ensemble_.threshold)
    np.testing.assert_array_equal(alone.ensemble_.value, shared.ensemble_.value)


def test_progress_hears_of_every_round():
    """A callable progress is called once a round."""
    heard = []
    X, side, _ = tiny(5)
    TreeBoostingClassifier(n_estimators=3, progress=lambda done, total: heard.append((done, total))).fit(X, side)
    assert heard == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("norm", -1, "norm must be"),
        ("eps", -0.1, "eps must be"),
        ("n_estimators", 0, "n_estimators must be a whole number"),
        ("max_depth", 1.5, "max_depth must be a whole number"),
        ("max_leaf_nodes", 1, "max_leaf_nodes must be a whole number of at least 2"),
        ("learning_rate", 0, "learning_rate must be"),
        ("max_weight", INF, "max_weight must be"),
        ("loss", "hinge", "loss must be one of"),
        ("subsample", 0, "subsample must be"),
        ("max_features", 1.5, "max_features must be"),
        ("max_bins", 0, "max_bins must be"),
        ("eps_schedule", 0, "eps_schedule must be"),
        ("early_stopping", 0, "early_stopping must be"),
        ("reuse_features", "no", "reuse_features must be"),
        ("l2", np.nan, "l2 must be"),
        ("n_jobs", "two", "n_jobs must be a whole number other than 0"),
        ("n_jobs", 0, "n_jobs must be a whole number other than 0"),
        ("polish", "yes", "polish must be one of"),
        ("polish", True, "polish must be False without corrective=True"),
    ],
)
def test_bad_parameters_are_refused(name, value, rule):
    """Each bad parameter ends in one clear line."""
    with pytest.raises(InvalidInputError, match=rule):
        TreeBoostingClassifier(**{name: value}).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(("norm", "eps"), [(1, 0.16), (2, 0.21), (INF, 0.12), (1, 0)])
def test_pruning_never_raises_the_trees_robust_loss(norm, eps):
    """A pruned tree has fewer leaves or the same, and at most the robust loss of the grown one (by brute force)."""
    shorter = 0
    for seed in range(6):
        X, side, weight = tiny(seed, n=40)
        columns = np.ascontiguousarray(X.T)
        rows = Rows(columns, side, weight, np.zeros(40), candidates(columns, None), np.arange(3))
        rules = Rules(0, 1.0, 0.0, 0.0)
        tree = grow_tree(rows, Ball(norm, eps), GrowthOptions(4, None, 0.0, 2, True, rules))
        pruned = prune(tree, rows, Ball(norm, eps), rules)
        losses = []
        for each in (tree, pruned):
            model = TreeEnsemble.from_trees([each.as_dict()], n_features=3)
            leaves = naive_leaves(model)[0]
            worst = [
                min(s * value for box, value in leaves if naive_cost(row, box, norm, eps) <= 1)
                for row, s in zip(X, side, strict=True)
            ]
            np.testing.assert_allclose(each.worst(columns, side, Ball(norm, eps)), worst, atol=1e-12)
            losses.append(weight @ np.exp(-np.array(worst)))
        assert losses[1] <= losses[0] * (1 + 1e-12)
        assert len(pruned.leaves) <= len(tree.leaves)
        shorter += len(pruned.leaves) < len(tree.leaves)
    assert shorter > 0 or eps == 0
