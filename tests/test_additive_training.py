"""AdditiveClassifier: the training bound, its slope, the convex optimum and the reported gap."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, minimize

from treeproof import Threat, certify, datasets
from treeproof.training import additive_gap
from treeproof.training.additive import AdditiveClassifier
from treeproof.training.additive_optimiser import Settings, solve
from treeproof.training.additive_problem import build

NORMS = (0.0, 0.5, 1.0, 1.7, 2.0, np.inf)


class Shape:
    """What a threat needs to know of a model."""

    def __init__(self, n_features):
        self.n_features, self.feature_names, self.dtype = n_features, None, "float64"


def small_problem(rng, norm, n=6, d=3, steps=3, *, hard=True, loss="logistic", tv=0.01, l2=0.05):
    """A random problem on a coarse grid: ties, rows on thresholds, threats with all their parts."""
    X = rng.integers(0, 9, (n, d)) / 8.0
    thresholds = [np.unique(rng.integers(1, 9, rng.integers(1, steps + 1)) / 8.0) for _ in range(d)]
    parts = {}
    if hard:
        parts = {
            "scale": rng.choice([0.5, 1.0, 2.0], d),
            "frozen": rng.random(d) < 0.15,
            "direction": rng.choice([-1, 0, 0, 0, 1], d),
            "lower": rng.choice([-np.inf, 0.0, 0.25], d),
            "upper": rng.choice([np.inf, 1.0, 0.75], d),
        }
    eps = (
        float(rng.choice([1.0, 2.0]))
        if norm == 0
        else float(rng.choice([0.125, 0.3, 0.7] if hard else [0.2, 0.3, 0.7]))
    )
    threat = Threat(norm, eps, **parts).resolve(Shape(d))
    problem = build(thresholds, threat, np.zeros(d, dtype=np.int64), loss, tv, l2)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return problem, problem.rows(X, y, np.ones(n)), X, y, threat


def options_of(problem, threat, X, i, j, *, real_line=False):
    """Cells that row i can reach in feature j, with their cost in units of the budget: the obvious way.

    On the float grid, or at the infimum over the real line, which the training bound uses.
    """
    steps = problem.thresholds[j]
    column = problem.features[j]
    x = X[i, column]
    edges = [-np.inf, *steps, np.inf]
    out = []
    for k in range(len(edges) - 1):
        low, high = edges[k], np.nextafter(edges[k + 1], -np.inf)
        if low <= x <= high:
            out.append((k, 0.0))
            continue
        low, high = max(low, threat.lower[column]), min(high, threat.upper[column])
        if low > high or not (threat.up if x < low else threat.down)[column]:
            continue
        if real_line and x > high:
            high = min(edges[k + 1], threat.upper[column])
        move = abs((low if x < low else high) - x) / threat.scale[column]
        if threat.norm == 0:
            cost = 1.0
        elif threat.norm == np.inf:
            cost = 0.0 if move <= threat.eps else np.inf
        else:
            cost = (move / threat.eps) ** threat.norm
        out.append((k, cost))
    return out


def exact_margin(problem, threat, X, y, i, values):
    """The worst case over all combinations of cells."""
    budget = threat.count if threat.norm == 0 else 1.0
    states = [(0.0, float(y[i] * values[-1]))]
    for j in range(len(problem.features)):
        begin = problem.first[j]
        states = [
            (spent + cost, margin + float(y[i] * values[begin + k]))
            for spent, margin in states
            for k, cost in options_of(problem, threat, X, i, j)
            if spent + cost <= budget
        ]
    return min(margin for _, margin in states)


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


def scipy_optimum(problem, threat, X, y):
    """The training optimum by a general solver: staircases, multipliers and pieces as variables."""
    n, d, cells = len(y), len(problem.features), problem.cells
    jumps = [k for k in range(cells - 1) if k + 1 not in problem.first[1:]]
    size = cells + n + n * d + len(jumps)
    lines, budget = [], 1.0

    def line(pairs):
        row = np.zeros(size)
        for place, weight in pairs:
            row[place] += weight
        lines.append(row)

    for i in range(n):
        for j in range(d):
            piece = cells + n + i * d + j
            for k, cost in options_of(problem, threat, X, i, j, real_line=True):
                if cost <= 1.0:  # y g + lambda cost - piece >= 0
                    line([(problem.first[j] + k, y[i]), (cells + i, cost), (piece, -1.0)])
    for s, k in enumerate(jumps):
        for sign in (1.0, -1.0):
            line([(cells + n + n * d + s, 1.0), (k + 1, sign), (k, -sign)])
    margin = np.zeros((n, size))
    for i in range(n):
        margin[i, cells - 1] = y[i]
        margin[i, cells + n + i * d : cells + n + (i + 1) * d] = 1.0
        margin[i, cells + i] = -budget

    def objective(z):
        m = margin @ z
        g, s = z[:cells], z[cells + n + n * d :]
        slope = margin.T @ (-1.0 / (1.0 + np.exp(m))) / n
        slope[:cells] += problem.l2 * g
        slope[cells + n + n * d :] += problem.tv
        return np.logaddexp(0.0, -m).mean() + 0.5 * problem.l2 * g @ g + problem.tv * s.sum(), slope

    bounds = [(None, None)] * cells + [(0, None)] * n + [(None, None)] * (n * d) + [(0, None)] * len(jumps)
    found = minimize(
        objective, np.zeros(size), jac=True, bounds=bounds, method="SLSQP",
        constraints=LinearConstraint(np.array(lines), 0.0, np.inf), options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert found.success, found.message
    return found.fun


def quick(epochs=400, **changes):
    given = {
        "epochs": epochs,
        "max_epochs": 10 * epochs,
        "batch": 6,
        "rate": 0.05,
        "ramp": 0.3,
        "average": 0.3,
    }
    return Settings(**(given | {"tol": 1e-3, "patience": 3} | changes))


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_gap_brackets_the_optimum_of_a_general_solver(norm):
    """Reported lower bound <= scipy's optimum <= our objective, and the gap closes to 0.5%."""
    rng = np.random.default_rng(4)
    for _ in range(3):
        problem, rows, X, y, threat = small_problem(rng, norm, n=5, d=2, hard=False)
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


class Watched(AdditiveClassifier):
    """Keeps its training problem, to evaluate the bound on other rows."""

    def _problem(self, X, weight):
        self.problem = super()._problem(X, weight)
        return self.problem


def check_against_exact(name, norm, eps, rows, **settings):
    """The training bound of test rows is at most the exact verifier's margin, and proves nearly as many rows."""
    data = datasets.load(name)
    model = Watched(norm, eps, random_state=0, **settings).fit(data.X_train, data.y_train)
    X, y = data.X_test[:rows], data.y_test[:rows]
    problem, values = model.problem, model._fits[0].state.values
    bound = problem.bounds(problem.rows(X, np.where(y == 1, 1.0, -1.0), np.ones(len(y))), values)
    exact = certify(model.ensemble_, X, y, norm=norm, eps=eps, method="additive")
    assert np.all(bound <= exact.upper + 1e-9)
    proved = np.mean(bound > 1e-9)
    assert proved <= 1.0 - exact.verified_error + 1e-12
    assert proved >= 1.0 - exact.verified_error - 0.05


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
    """All test rows of the embedded data sets, against the exact verifier."""
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
