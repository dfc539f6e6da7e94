"""Small training problems of additive models, their worst cases and their optimum, the slow and obvious way."""

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from treeproof import Threat
from treeproof.training.additive_optimiser import Settings
from treeproof.training.additive_problem import build


class Shape:
    """What a threat needs to know of a model."""

    def __init__(self, n_features):
        self.n_features, self.feature_names, self.dtype = n_features, None, "float64"


def small_problem(rng, norm, n=6, d=3, steps=3, *, hard=True, monotone=False, tv=0.01, l2=0.05):
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
    signs = rng.choice([-1, 1], d) if monotone else np.zeros(d, dtype=np.int64)
    problem = build(thresholds, threat, signs, "logistic", tv, l2)
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
        way = problem.monotone[np.searchsorted(problem.first, k, side="right") - 1]
        if way:
            line([(k + 1, way), (k, -way)])
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
