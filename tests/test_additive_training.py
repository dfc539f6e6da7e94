"""AdditiveClassifier: the training bound, its slope, the convex optimum and the reported gap."""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.additive_cases import exact_margin, options_of, quick, scipy_optimum, small_problem

from treeproof import Status, certify, datasets
from treeproof.training import additive_gap
from treeproof.training.additive import AdditiveClassifier
from treeproof.training.additive_optimiser import solve

NORMS = (0.0, 0.5, 1.0, 1.7, 2.0, np.inf)


@pytest.mark.parametrize("norm", NORMS)
def test_bound_is_sound_and_exact_where_it_must_be(norm):
    """Never above the exact worst case, with every part of a threat; equal to it for p = 0 and inf."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        # rows outside the range may be credited with passing cells: sound, not exact
        hard = bool(rng.random() < 0.6)
        problem, rows, X, y, threat = small_problem(rng, norm, hard=hard)
        values = rng.integers(-3, 4, problem.cells).astype(float)
        found = problem.bounds(rows, values)
        for i in range(len(y)):
            exact = exact_margin(problem, threat, X, y, i, values)
            assert found[i] <= exact + 1e-9
            if norm in (0.0, np.inf) and not hard:
                assert found[i] == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("norm", [0.0, 0.5, 1.0, 2.0])
def test_bound_is_the_linear_relaxation(norm):
    """The bound equals scipy's optimum of the relaxed knapsack after dear moves are dropped."""
    rng = np.random.default_rng(2)
    for _ in range(25):
        problem, rows, X, y, threat = small_problem(rng, norm, hard=False)
        values = rng.normal(size=problem.cells)
        found = problem.bounds(rows, values)
        budget = threat.count if norm == 0 else 1.0
        for i in range(len(y)):
            gains, costs, owner = [], [], []
            for j in range(len(problem.features)):
                for k, cost in options_of(problem, threat, X, i, j, real_line=True):
                    if cost <= 1.0:
                        gains.append(y[i] * values[problem.first[j] + k])
                        costs.append(cost)
                        owner.append(j)
            one = (np.arange(len(problem.features))[:, None] == np.array(owner)[None]).astype(float)
            best = linprog(gains, A_ub=[costs], b_ub=[budget], A_eq=one, b_eq=np.ones(len(one)))
            assert found[i] == pytest.approx(best.fun + y[i] * values[-1], abs=1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_slopes_support_the_loss(norm):
    """The mean loss lies above its plane everywhere, touches it where it was taken, and scales with g."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        problem, rows, *_ = small_problem(rng, norm)
        which, grid = np.arange(len(rows.sign)), problem.grid()
        values = rng.normal(size=problem.cells)
        loss, offset, slope = problem.mean_loss(which, rows, values, grid)
        assert loss == pytest.approx(offset + slope @ values, abs=1e-9)
        for size in (0.01, 0.3, 3.0):
            other = values + size * rng.normal(size=problem.cells)
            assert problem.mean_loss(which, rows, other, grid)[0] >= offset + slope @ other - 1e-9
        assert problem.bounds(rows, 2.5 * values) == pytest.approx(2.5 * problem.bounds(rows, values), abs=1e-9)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_gap_brackets_the_optimum_of_a_general_solver(norm, monotone):
    """Reported lower bound <= scipy's optimum <= our objective, and the gap closes to 0.5%; monotone too."""
    rng = np.random.default_rng(4)
    for _ in range(3):
        problem, rows, X, y, threat = small_problem(rng, norm, n=5, d=2, hard=False, monotone=monotone)
        best = scipy_optimum(problem, threat, X, y)
        found = solve(problem, rows, quick(), np.random.default_rng(0))
        assert found.lower_bound <= best + 1e-6
        assert best <= found.objective + 1e-6
        assert found.gap <= 0.005


def test_random_starts_end_within_the_stated_gap():
    """Convexity: two random starts reach the same objective, up to the gaps that they report."""
    rng = np.random.default_rng(5)
    problem, rows, *_ = small_problem(rng, 1.0, n=60, d=4, hard=False, tv=0.001, l2=0.01)
    settings = quick(200, batch=16, tol=0.005)
    runs = [
        solve(problem, rows, settings, np.random.default_rng(k), start=3.0 * rng.normal(size=problem.cells))
        for k in range(2)
    ]
    long = solve(problem, rows, quick(1500, batch=16, tol=0.0, max_epochs=1500), np.random.default_rng(9))
    for one in runs:
        assert one.gap < 0.05
        assert one.lower_bound <= min(long.objective, runs[0].objective, runs[1].objective) + 1e-9
        assert one.objective <= long.objective + one.gap * one.objective + 1e-9


def test_proximal_points_are_exact():
    """Taut string and isotonic regression satisfy their optimality conditions on random staircases."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        n, weight = int(rng.integers(1, 9)), float(rng.random())
        target = np.round(rng.normal(size=n), 1)
        first = np.array([0, n])
        for sign in (0, 1, -1):
            out = np.empty(n)
            additive_gap.proximal(target, first, weight, np.array([sign]), out)
            steps = np.diff(out)
            assert np.all(sign * steps >= -1e-12)
            # the dual: cumulated residuals stay in the tube and touch its wall where the solution steps
            dual = np.cumsum(out - target)
            assert dual[-1] == pytest.approx(0.0, abs=1e-9)
            pull = dual[:-1]
            if sign == 0:
                assert np.all(np.abs(pull) <= weight + 1e-9)
            else:
                assert np.all(sign * pull <= weight + 1e-9)
            moved = np.abs(steps) > 1e-9
            assert pull[moved] == pytest.approx(weight * np.sign(steps[moved]), abs=1e-9)


def check_against_exact(name, norm, eps, rows, **settings):
    """The training bound is at most the exact margin on training and test rows, and proves nearly as many."""
    data = datasets.load(name)
    model = AdditiveClassifier(norm, eps, random_state=0, **settings).fit(data.X_train, data.y_train)
    for X, y in ((data.X_test[:rows], data.y_test[:rows]), (data.X_train[:rows], data.y_train[:rows])):
        bound = model.training_bound(X, y)
        exact = certify(model.ensemble_, X, y, norm=norm, eps=eps, method="additive")
        assert np.all(bound <= exact.upper + 1e-9)
        assert np.all(exact.status[bound > 1e-9] == Status.ROBUST)
        assert np.mean(bound > 1e-9) >= 1.0 - exact.verified_error - 0.05


@pytest.mark.parametrize(
    ("name", "norm", "eps"),
    [
        ("breast-cancer", 1, 1.0),
        ("breast-cancer", 2, 0.7),
        ("breast-cancer", np.inf, 0.3),
        ("breast-cancer", 0, 1),
        ("breast-cancer", 0.5, 0.5),
        ("diabetes", 1, 0.05),
        ("diabetes", 2, 0.05),
        ("diabetes", np.inf, 0.05),
        ("spambase", 1, 0.02),
    ],
)
def test_bound_never_exceeds_the_exact_margin_on_the_tables(name, norm, eps):
    """All rows of the embedded data sets, against the exact verifier."""
    check_against_exact(name, norm, eps, None, epochs=10, max_epochs=10, max_bins=32)


@pytest.mark.slow
@pytest.mark.parametrize(("norm", "eps"), [(1, 1.0), (2, 0.8), (np.inf, 0.3)])
def test_bound_never_exceeds_the_exact_margin_on_images(norm, eps):
    """MNIST 2 against 6 where it can be had, against the exact verifier."""
    try:
        datasets.load("mnist-2-6", download=False)
    except datasets.DataUnavailableError:
        pytest.skip("needs a folder of prepared files in TREEPROOF_DATA")
    check_against_exact("mnist-2-6", norm, eps, 500, epochs=3, max_epochs=3)
