"""The additive verifier against the paper's grid and a MILP, in one run, with the answers compared.

    python benchmarks/additive.py [--sizes 20 200 1000 5000] [--milp-rows 10] [--million]

Stumps are trained by scikit-learn on MNIST 2 vs 6 (found as `treeproof.datasets` finds it; TREEPROOF_DATA names a
folder). Times are thread times of one thread, warm, the best of several runs, in microseconds a row.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np
from knapsacks import FAMILIES, items, model
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

import treeproof
from treeproof import datasets
from treeproof.verify.additive import Additive
from treeproof.verify.grid import Grid
from treeproof.verify.problem import Problem
from treeproof.verify.replay import holds
from treeproof.verify.single_tree import SingleTree

CONSOLE = Console(width=120)
CPP = {20: (0.34, 0.6), 200: (2.9, 4.8), 1000: (8.2, 14.0), 5000: (13.4, 26.0)}  # FRONTIER.md, C++ prototypes, p = 1
EPS = {0.5: 0.3, 1: 0.3, 2: 0.3}


def best_time(call, pair, rows: np.ndarray, third, repeats: int = 5) -> float:
    """Microseconds a row of ``call(pair, rows, third)``, the least of several runs."""
    call(pair, rows, third)
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        call(pair, rows, third)
        times.append(time.thread_time() - start)
    return min(times) / len(rows) * 1e6


def speed(sizes: list[int], milp_rows: int) -> bool:
    """The speed table; returns whether all answers agree."""
    data = datasets.load("mnist-2-6")
    names = (
        "stumps",
        "features",
        "p",
        "grid",
        "decide",
        "/ grid",
        "/ C++",
        "radius",
        "/ grid",
        "/ C++",
        "MILP / decide",
    )
    CONSOLE.print("MNIST 2 vs 6, microseconds a row (decide and radius are exact; goals: / grid 1.2 and 3, / C++ 2)")
    CONSOLE.print(("{:>9} " * len(names)).format(*names), highlight=False)
    good = True
    for size in sizes:
        trained = HistGradientBoostingClassifier(max_iter=size, max_leaf_nodes=2, early_stopping=False, random_state=0)
        ensemble = treeproof.load(trained.fit(data.X_train, data.y_train))
        rows = ensemble.cast(np.asarray(data.X_test))
        rows = np.ascontiguousarray(rows[ensemble.predict_index(rows) == 1])
        for p, eps in EPS.items():
            problem = Problem(ensemble, treeproof.Threat(p, eps).resolve(ensemble))
            pair = problem.pair(1, 0)
            exact, grid = Additive(problem), Grid(problem, precision=0.005 if p == 1 else eps**p / 60)
            free = Additive(Problem(ensemble, treeproof.Threat(p).resolve(ensemble)))
            limit, far = 1 + problem.threat.rounding, np.full(len(rows), np.inf)
            took = {
                "grid": best_time(grid.decide, pair, rows, limit),
                "decide": best_time(exact.decide, pair, rows, limit),
                "radius": best_time(free.nearest, pair, rows, far),
            }
            agree = check(exact, grid, free, pair, rows, eps, limit)
            milp = milp_ratio(ensemble, rows[:milp_rows], p, eps, exact, pair, took["decide"]) if milp_rows else "-"
            good &= agree
            cpp = CPP.get(size) if p == 1 else None
            cells = [f"{size}", f"{len(ensemble.used_features)}", f"{p:g}", f"{took['grid']:.2f}"]
            for k, name in enumerate(("decide", "radius")):
                against = f"{took[name] / cpp[k]:.2f}" if cpp else "-"
                cells += [f"{took[name]:.2f}", f"{took[name] / took['grid']:.2f}", against]
            CONSOLE.print(("{:>9} " * len(names)).format(*cells, milp), highlight=False)
            if not agree:
                CONSOLE.print(f"[red]answers differ at {size} stumps, p = {p}[/red]")
    return good


def check(exact: Additive, grid: Grid, free: Additive, pair, rows, eps: float, limit: float) -> bool:
    """The grid never proves more; the radius and the decision say the same."""
    decided, coarse = exact.decide(pair, rows, limit), grid.decide(pair, rows, limit)
    proved = holds(pair, decided.lower)
    radii = free.nearest(pair, rows, np.full(len(rows), np.inf)).lower
    return bool(np.all(~holds(pair, coarse.lower) | proved) and np.all(proved == (radii > eps)))


def milp_ratio(ensemble, rows, p: float, eps: float, exact: Additive, pair, decide_us: float) -> str:
    """How many times longer the MILP takes on the same rows; '!' where it contradicts."""
    start = time.perf_counter()
    referee = treeproof.certify(ensemble, rows, norm=p, eps=eps, method="milp")
    took = (time.perf_counter() - start) / len(rows) * 1e6
    ours = treeproof.certify(ensemble, rows, norm=p, eps=eps, method="additive")
    unknown = treeproof.Status.UNKNOWN
    wrong = (referee.status != ours.status) & (referee.status != unknown) & (ours.status != unknown)
    return f"{took / decide_us:,.0f}" + (" !" if wrong.any() else "")


def knapsacks() -> None:
    """Hard knapsacks: solved, or the gap that is left."""
    table = Table(title="Knapsacks by the paper's reduction, p = 1, one row each (max_states at its default)")
    for name in ("family", "items", "solved of 5", "worst gap %", "worst ms"):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(0)
    for family in FAMILIES:
        for n in (50, 100, 200, 500):
            gaps, times, solved = [], [], 0
            for _ in range(5):
                weight, value = items(family, n, rng)
                ensemble, eps = model(weight, value, 1.0)
                row = np.zeros((1, n))
                treeproof.certify(ensemble, row, norm=1, eps=eps, exact_margin=False)
                problem = Problem(ensemble, treeproof.Threat(1, eps).resolve(ensemble))
                asked = Additive(problem)._asked(problem.pair(1, 0))._replace(optimise=True)
                start = time.perf_counter()
                lower, upper, complete = optimum(Additive(problem), problem.pair(1, 0), row, asked)
                times.append(time.perf_counter() - start)
                best = value.sum() * 0.6 - upper
                gaps.append(100 * (upper - lower) / max(best, 1.0))
                solved += complete
            table.add_row(family, str(n), str(solved), f"{max(gaps):.3f}", f"{1000 * max(times):.1f}")
    CONSOLE.print(table)


def optimum(solver: Additive, pair, row, asked):
    """Bounds of the worst-case margin itself (not only of its sign), from the float kernels."""
    from treeproof.verify.additive_rows import decide_rows

    margin, room = solver._room(pair)
    answer = decide_rows(solver.ground, margin, row, asked, 1 + solver.problem.threat.rounding, room)
    moved = row.copy()
    moved[0, answer.feature] = answer.value
    upper = float(solver.problem.model.decision_function(moved)[0])
    return float(answer.lower[0]), upper, bool(answer.complete[0])


def scaling() -> None:
    """Cost against stumps, features and rows (the paper's Table 1: P d + T a row for the grid)."""
    table = Table(title="Scaling: random stumps, l_1, microseconds a row")
    for name in ("stumps T", "features d", "rows", "grid", "decide", "radius"):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(1)
    for stumps, d, n in ((100, 50, 500), (1000, 50, 500), (1000, 500, 500), (10000, 500, 500), (1000, 50, 5000)):
        ensemble = treeproof.TreeEnsemble.from_stumps(
            rng.integers(d, size=stumps),
            rng.random(stumps),
            rng.normal(size=stumps),
            rng.normal(size=stumps),
            n_features=d,
        )
        rows = rng.random((n, d))
        problem = Problem(ensemble, treeproof.Threat(1, 0.1).resolve(ensemble))
        pair, limit = problem.pair(1, 0), 1 + problem.threat.rounding
        free = Additive(Problem(ensemble, treeproof.Threat(1).resolve(ensemble)))
        exact, grid = Additive(problem), Grid(problem, precision=0.002)
        calls = ((grid.decide, limit), (exact.decide, limit), (free.nearest, np.full(n, np.inf)))
        times = [f"{best_time(call, pair, rows, third, 2):.2f}" for call, third in calls]
        table.add_row(str(stumps), str(d), str(n), *times)
    CONSOLE.print(table)


def classes() -> None:
    """Cost against size, beside what the paper's Table 1 says of each problem."""
    table = Table(title="Scaling beside the paper's Table 1, microseconds a row (stumps on size / 20 features)")
    sizes = (100, 1_000, 10_000)
    for name in ("problem", "method", "the paper", *(f"{size:,}" for size in sizes), "x10 costs"):
        table.add_column(name, justify="right")
    said = {
        ("one tree, any p", "tree", 1.0): "linear in leaves",
        ("stumps, p = 0", "additive", 0.0): "linearithmic",
        ("stumps, p = inf", "additive", np.inf): "polynomial",
        ("stumps, p = 1, P = 60", "grid", 1.0): "P d + T",
        ("stumps, p = 1", "additive", 1.0): "NP-complete",
    }
    for (problem, method, p), complexity in said.items():
        times = [class_time(method, p, size) for size in sizes]
        growth = (times[-1] / times[0]) ** (1 / (len(sizes) - 1))
        table.add_row(problem, method, complexity, *(f"{took:.2f}" for took in times), f"{growth:.1f}")
    CONSOLE.print(table)


def class_time(method: str, p: float, size: int) -> float:
    """Microseconds a row of one decision on a random model of this many stumps (or leaves)."""
    rng = np.random.default_rng(3)
    d = max(5, size // 20)
    if method == "tree":
        d = 20
        grown = DecisionTreeClassifier(max_leaf_nodes=size, random_state=0)
        ensemble = treeproof.load(grown.fit(rng.random((3 * size, d)), rng.integers(2, size=3 * size)))
    else:
        ensemble = random_stumps(rng, size, d, "float64")
    rows = rng.random((200, d))
    eps = 3.0 if p == 0 else 0.1
    problem = Problem(ensemble, treeproof.Threat(p, eps).resolve(ensemble))
    made = {"tree": SingleTree, "additive": Additive, "grid": lambda problem: Grid(problem, precision=eps / 60)}
    rows = np.ascontiguousarray(ensemble.cast(rows))
    return best_time(made[method](problem).decide, problem.pair(1, 0), rows, 1 + problem.threat.rounding, 3)


def random_stumps(rng: np.random.Generator, count: int, d: int, dtype: str) -> treeproof.TreeEnsemble:
    """Stumps on random features at random thresholds, with random leaves."""
    return treeproof.TreeEnsemble.from_stumps(
        rng.integers(d, size=count), rng.random(count), *rng.normal(size=(2, count)), n_features=d, dtype=dtype
    )


def million() -> None:
    """1,000,000 rows x 784 float32 features: memory beyond the input."""
    rng = np.random.default_rng(2)
    rows = rng.random((1_000_000, 784), dtype=np.float32)
    ensemble = random_stumps(rng, 1000, 784, "float32")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    proof = treeproof.certify(ensemble, rows, norm=1, eps=0.1, n_jobs=-1)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    CONSOLE.print(proof)
    CONSOLE.print(
        f"beyond the input and what was there: {(after - before) / 1024:.0f} MB, {time.perf_counter() - start:.0f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 200, 1000, 5000])
    parser.add_argument("--milp-rows", type=int, default=5, help="rows for the MILP (0: leave it out)")
    parser.add_argument("--million", action="store_true", help="measure the memory of a million rows (needs 6 GB)")
    options = parser.parse_args()
    if options.million:
        million()
        return 0
    good = speed(options.sizes, options.milp_rows)
    knapsacks()
    scaling()
    classes()
    CONSOLE.print("answers agree" if good else "[red]answers differ[/red]")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
