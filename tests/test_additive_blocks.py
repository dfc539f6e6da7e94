"""Blocks of interacting features: bound and slope against brute force, the optimiser's gap, the fitted trees."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.additive_cases import options_of, quick, small_problem

from treeproof import InvalidInputError, Status
from treeproof.training.additive import AdditiveClassifier
from treeproof.training.additive_groups import blocks_ensemble, build_blocks
from treeproof.training.additive_optimiser import solve

NORMS = (0.0, 0.5, 1.0, 2.0, np.inf)
DISJOINT, OVERLAPPING = [(0, 1)], [(0, 1), (1, 2), (0, 1, 2)]


def tables_of(blocks):
    """For each block its features, and the place of every joint cell in the flat values."""
    parts = blocks.blocks
    for b in range(len(parts.table) - 1):
        members = parts.members[parts.start[b] : parts.start[b + 1]]
        strides = parts.stride[parts.start[b] : parts.start[b + 1]]
        yield members, strides, parts.table[b]


def joint_options(problem, threat, X, i, budget):
    """Every allowed combination of cells of row i (one a feature), with its cost: the float grid."""
    options = [options_of(problem, threat, X, i, j) for j in range(len(problem.features))]
    for choice in product(*options):
        if sum(cost for _, cost in choice) <= budget:
            yield [cell for cell, _ in choice]


def exact(problem, blocks, threat, X, y, i, values):
    """The worst case of the tables over all combinations of all features."""
    budget = threat.count if threat.norm == 0 else 1.0
    worst = np.inf
    for cells in joint_options(problem, threat, X, i, budget):
        score = 0.0
        for members, strides, start in tables_of(blocks):
            own = [cells[at] if at < len(cells) else 0 for at in members]
            score += values[start + int(np.dot(own, strides))]
        worst = min(worst, float(y[i] * score))
    return worst


@pytest.mark.parametrize("groups", [DISJOINT, OVERLAPPING])
@pytest.mark.parametrize("norm", NORMS)
def test_bound_is_sound_and_exact_where_it_must_be(norm, groups):
    """Never above the exact worst case, threats and overlaps included; equal to it over disjoint blocks, p = inf."""
    rng = np.random.default_rng(1)
    for _ in range(25):
        hard = bool(rng.random() < 0.6)
        problem, rows, X, y, threat = small_problem(rng, norm, n=4, steps=2, hard=hard)
        blocks = build_blocks(problem, [tuple(int(problem.features[at]) for at in group) for group in groups])
        values = rng.integers(-3, 4, blocks.cells).astype(float)
        found = blocks.bounds(rows, values)
        for i in range(len(y)):
            worst = exact(problem, blocks, threat, X, y, i, values)
            assert found[i] <= worst + 1e-9
            if norm == np.inf and groups is DISJOINT and not hard:
                assert found[i] == pytest.approx(worst, abs=1e-9)


@pytest.mark.parametrize("norm", [0.0, 1.0, 2.0])
def test_bound_is_the_linear_relaxation(norm):
    """Over disjoint blocks the bound equals scipy's optimum of the relaxed knapsack of joint cells."""
    rng = np.random.default_rng(2)
    for _ in range(12):
        problem, rows, X, y, threat = small_problem(rng, norm, n=4, hard=False)
        blocks = build_blocks(problem, [(0, 1)])
        values, budget = rng.normal(size=blocks.cells), threat.count if norm == 0 else 1.0
        found = blocks.bounds(rows, values)
        for i in range(len(y)):
            gains, costs, owner = [], [], []
            for b, (members, strides, start) in enumerate(tables_of(blocks)):
                options = [
                    options_of(problem, threat, X, i, at, real_line=True) if at < len(problem.features) else [(0, 0.0)]
                    for at in members
                ]
                for choice in product(*options):
                    spent = sum(cost for _, cost in choice)
                    if spent <= budget:
                        gains.append(y[i] * values[start + int(np.dot([cell for cell, _ in choice], strides))])
                        costs.append(spent)
                        owner.append(b)
            one = (np.arange(b + 1)[:, None] == np.array(owner)[None]).astype(float)
            best = linprog(gains, A_ub=[costs], b_ub=[budget], A_eq=one, b_eq=np.ones(len(one)))
            assert found[i] == pytest.approx(best.fun, abs=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_slopes_support_the_loss_and_the_gap_closes(norm):
    """The mean loss lies above its planes, and two runs agree up to the gaps that they prove."""
    rng = np.random.default_rng(3)
    problem, rows, *_ = small_problem(rng, norm, n=12)
    blocks = build_blocks(problem, [(0, 1), (1, 2)])
    which, grid = np.arange(len(rows.sign)), blocks.grid()
    for _ in range(10):
        values = rng.normal(size=blocks.cells)
        loss, offset, slope = blocks.mean_loss(which, rows, values, grid)
        assert loss == pytest.approx(offset + slope @ values, abs=1e-5)
        for size in (0.01, 0.3, 3.0):
            other = values + size * rng.normal(size=blocks.cells)
            assert blocks.mean_loss(which, rows, other, grid)[0] >= offset + slope @ other - 1e-9
    settings = quick(150, tol=0.01)
    runs = [
        solve(blocks, rows, settings, np.random.default_rng(k), start=rng.normal(size=blocks.cells)) for k in range(2)
    ]
    for one, two in (runs, runs[::-1]):
        assert one.gap <= 0.02
        assert one.lower_bound <= two.objective + 1e-9


def test_the_trees_are_the_tables():
    """The fitted trees give each row the sum of its own cells, on thresholds and beside them."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        problem, rows, X, *_ = small_problem(rng, 1.0, n=40)
        blocks = build_blocks(problem, [(0, 2), (1,)])
        values = rng.integers(-2, 3, blocks.cells).astype(float)
        ensemble = blocks_ensemble(blocks, values, X.shape[1])
        score = np.zeros(len(X))
        for members, strides, start in tables_of(blocks):
            score += values[start + rows.code[:, members] @ strides]
        assert ensemble.decision_function(X) == pytest.approx(score, abs=1e-12)


def exclusive_or(n=500):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    return X, ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int)


@pytest.mark.parametrize("norm", [1, np.inf])
def test_finds_an_interaction_and_proves_it(norm):
    """Exclusive or has no additive model; the chosen pair proves most rows, and the exact search confirms it."""
    X, y = exclusive_or(300)
    settings = {"epochs": 60, "max_epochs": 60, "random_state": 0}
    plain = AdditiveClassifier(norm, 0.02, **settings).fit(X, y)
    model = AdditiveClassifier(norm, 0.02, interactions=2, **settings).fit(X, y)
    assert plain.certify(X, y).verified_error > 0.3
    proved = np.flatnonzero(model.training_bound(X, y) > 1e-9)
    assert len(proved) > 0.8 * len(y)
    some = proved[:12]
    assert np.all(model.certify(X[some], y[some]).status == Status.ROBUST)
    assert not model.ensemble_.is_additive
    given = AdditiveClassifier(norm, 0.02, interactions=[(0, 1)], **settings).fit(X, y)
    assert given.score(X, y) > 0.9


def test_threats_and_threads():
    """A frozen pair may be used freely; n_jobs changes nothing."""
    X, y = exclusive_or()
    settings = {"interactions": [(0, 1)], "epochs": 60, "max_epochs": 60, "batch_size": 200, "random_state": 0}
    free = AdditiveClassifier(1, 0.3, **settings).fit(X, y)
    frozen = AdditiveClassifier(1, 0.3, frozen=[0, 1], n_jobs=2, **settings).fit(X, y)
    again = AdditiveClassifier(1, 0.3, frozen=[0, 1], **settings).fit(X, y)
    assert frozen.objective_[0] < 0.8 * free.objective_[0]
    assert np.array_equal(frozen.ensemble_.value, again.ensemble_.value)


def test_no_threat_and_nothing_to_learn():
    """eps = 0 trains a plain model of pairs; constant features give the constant, not an error."""
    X, y = exclusive_or(200)
    assert AdditiveClassifier(1, 0, interactions=2, epochs=60, random_state=0).fit(X, y).score(X, y) > 0.9
    assert AdditiveClassifier(interactions=2).fit(np.ones((20, 2)), np.arange(20) % 4 == 0).ensemble_.n_trees == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"interactions": 1}, "interactions must be None, a number of features from 2"),
        ({"interactions": True}, "interactions must be None, a number of features from 2"),
        ({"interactions": [(0, 0)]}, "interactions must be None, a number of features from 2"),
        ({"interactions": [(0, 9)]}, "interactions's feature must be a column number"),
        ({"interactions": [(0, 1, 2)], "max_bins": 64}, "interactions must have at most 4096 joint cells"),
        ({"interactions": 2, "max_stumps": 5}, "max_stumps must be None with interactions"),
        ({"interactions": 2, "monotone": [1, 0, 0]}, "monotone must be None with interactions"),
        ({"interactions": 2, "total_variation": 0.1}, "total_variation must be 'auto' with interactions"),
    ],
)
def test_bad_interactions_are_one_clear_line(given, message):
    """Each bad use is named, with the rule and what came."""
    X, y = exclusive_or(60)
    with pytest.raises(InvalidInputError, match=message):
        AdditiveClassifier(**given).fit(X, y)
