"""`search` on ordinary tree ensembles, against the MILP, Veritas and the clique bounds, with the answers compared.

    python benchmarks/ensembles.py [--models ../shared/models/xgboost] [--rows 100] [--parts radius decide bound ...]

Models are XGBoost's (bc20d4, dia20d5, m20d4, m200d6 from the folder; m1000d4, 1000 trees of depth 4 on MNIST 2 vs 6,
trained here); rows are the first correctly classified test rows; the paper's data as `treeproof.datasets` finds
them. One thread, warm, thread time in milliseconds a row. Exits with 1 where two methods contradict each other.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import treeproof
from treeproof import Status, datasets
from treeproof.verify.problem import Problem
from treeproof.verify.replay import holds
from treeproof.verify.search import Search

CONSOLE = Console(width=140)
MODELS = {  # data set, and the eps of the paper's tables for each norm (l1, l2, linf)
    "bc20d4": ("breast-cancer", {1: 0.3, 2: 0.3, np.inf: 0.3}),
    "dia20d5": ("diabetes", {1: 0.05, 2: 0.05, np.inf: 0.05}),
    "m20d4": ("mnist-2-6", {1: 0.3, 2: 0.3, np.inf: 0.3}),
    "m200d6": ("mnist-2-6", {1: 0.3, 2: 0.1, np.inf: 0.05}),
    "m1000d4": ("mnist-2-6", {1: 0.3, 2: 0.1, np.inf: 0.05}),
}
PARTS = ("radius", "decide", "veritas", "milp", "bound", "cliques")


class Case:
    """A model with its rows, and solvers asked one row at a time."""

    def __init__(self, name: str, folder: Path, rows: int) -> None:
        dataset, self.eps = MODELS[name]
        data = datasets.load(dataset)
        self.name, self.booster = name, booster_of(name, folder, data)
        self.model = treeproof.load(self.booster)
        X = self.model.cast(np.asarray(data.X_test))
        labels = self.model.predict_index(X)
        right = np.flatnonzero(labels == np.asarray(data.y_test))
        self.X, self.y = np.ascontiguousarray(X[right[:rows]]), labels[right[:rows]]

    def solver(self, norm: float, eps: float = np.inf, **options) -> tuple[Problem, Search]:
        problem = Problem(self.model, treeproof.Threat(norm, eps).resolve(self.model))
        return problem, Search(problem, **options)

    def warm(self, problem: Problem, ask, solver: Search) -> None:
        """Compile: a row as it is asked, and one that goes without the quick kernel (too little memory for it)."""
        pair = problem.pair(int(self.y[0]), 1 - int(self.y[0]))
        for one in (solver, Search(problem, time_limit=1.0, memory=1.0)):
            ask(one, pair, self.X[:1])

    def nearest(self, norm: float, limit: float) -> tuple[np.ndarray, ...]:
        """Of each row: milliseconds, lower and upper bound of the radius, whether finished."""
        problem, solver = self.solver(norm, time_limit=limit)
        ms, lower, done = np.empty(len(self.X)), np.empty(len(self.X)), np.zeros(len(self.X), dtype=bool)
        self.warm(problem, lambda one, pair, x: one.nearest(pair, x, np.full(1, np.inf)), solver)
        upper = np.full(len(self.X), np.inf)
        for i, (x, y) in enumerate(zip(self.X, self.y, strict=True)):
            pair = problem.pair(int(y), 1 - int(y))
            start = time.thread_time()
            found = solver.nearest(pair, x[None], np.full(1, np.inf))
            ms[i] = 1000 * (time.thread_time() - start)
            lower[i], done[i] = found.lower[0], found.complete[0]
            if len(found.feature):
                upper[i] = problem.threat.distance(found.feature, x[found.feature], found.value)
        return ms, lower, upper, done

    def decide(self, norm: float, eps: float, limit: float) -> tuple[np.ndarray, np.ndarray]:
        """Of each row: milliseconds, and 1 robust, 2 broken, 0 undecided."""
        problem, solver = self.solver(norm, eps, time_limit=limit)
        ms, status = np.empty(len(self.X)), np.zeros(len(self.X), dtype=np.int64)
        budget = 1 + problem.threat.rounding
        self.warm(problem, lambda one, pair, x: one.decide(pair, x, budget), solver)
        for i, (x, y) in enumerate(zip(self.X, self.y, strict=True)):
            pair = problem.pair(int(y), 1 - int(y))
            start = time.thread_time()
            found = solver.decide(pair, x[None], budget)
            ms[i] = 1000 * (time.thread_time() - start)
            status[i] = 1 if holds(pair, found.lower)[0] else (2 if len(found.feature) else 0)
        return ms, status

    def decide_in_batches(self, norm: float, eps: float, limit: float) -> tuple[float, np.ndarray]:
        """The same as `certify` asks it, some rows a call: milliseconds in all, and answers."""
        problem, solver = self.solver(norm, eps, time_limit=limit)
        status, budget = np.zeros(len(self.X), dtype=np.int64), 1 + problem.threat.rounding
        self.warm(problem, lambda one, pair, x: one.decide(pair, x, budget), solver)
        start = time.thread_time()
        for y in (0, 1):
            mine = np.flatnonzero(self.y == y)
            for part in np.split(mine, range(solver.batch_rows, len(mine), solver.batch_rows)):
                pair = problem.pair(y, 1 - y)
                found = solver.decide(pair, self.X[part], budget)
                status[part] = np.where(holds(pair, found.lower), 1, np.where(np.diff(found.offsets) > 0, 2, 0))
        return 1000 * (time.thread_time() - start), status


def booster_of(name: str, folder: Path, data):
    """The model from the folder; the one of 1000 trees is trained."""
    import xgboost

    if name != "m1000d4":
        return xgboost.Booster(model_file=str(folder / f"{name}.xgb.json"))
    model = xgboost.XGBClassifier(n_estimators=1000, max_depth=4, learning_rate=0.1, random_state=0, n_jobs=1)
    return model.fit(np.asarray(data.X_train, dtype=np.float32), data.y_train).get_booster()


def label(norm: float) -> str:
    return "inf" if norm == np.inf else f"{norm:g}"


def radius_part(cases: list[Case], limit: float) -> bool:
    """Exact radii, and what is known where time ran out."""
    table = titled(f"Exact radius, {limit:g} s a row", "model p rows solved median_ms worst_ms lower/upper_of_the_rest")
    good = True
    for case in cases:
        found = {}
        for norm in (0, 1, 2, np.inf):
            ms, lower, upper, done = case.nearest(norm, limit)
            found[norm] = lower, upper
            rest = "-" if done.all() else f"{np.mean(lower[~done] / upper[~done]):.3f}"
            table.add_row(
                case.name,
                label(norm),
                str(len(ms)),
                f"{done.mean():.0%}",
                f"{np.median(ms):.2f}",
                f"{ms.max():.1f}",
                rest,
            )
            good &= bool(np.all(lower <= upper))
        # smaller p, larger distance: the lower bound of one is at most the upper bound of the other
        good &= all(np.all(found[q][0] <= found[p][1]) for p, q in ((1, 2), (1, np.inf), (2, np.inf)))
    CONSOLE.print(table)
    return good


def decide_part(cases: list[Case], limit: float) -> bool:
    """Decisions at the paper's eps."""
    table = titled(f"Decide at eps, {limit:g} s a row", "model p eps robust broken undecided median_ms worst_ms")
    for case in cases:
        for norm, eps in case.eps.items():
            ms, status = case.decide(norm, eps, limit)
            counts = [str(int(np.sum(status == code))) for code in (1, 2, 0)]
            table.add_row(case.name, label(norm), f"{eps:g}", *counts, f"{np.median(ms):.2f}", f"{ms.max():.1f}")
    CONSOLE.print(table)
    return True


def veritas_part(cases: list[Case], limit: float) -> bool:
    """l_inf decisions of Veritas on the same rows, in the same run."""
    table = titled(
        f"l_inf decide beside Veritas, {limit:g} s a row",
        "model eps undecided Veritas_undecided only_Veritas total_ms Veritas_total_ms ours/Veritas contradictions",
    )
    good = True
    for case in cases:
        eps = case.eps[np.inf]
        ms, ours = case.decide_in_batches(np.inf, eps, limit)
        theirs_ms, theirs = veritas(case, eps, limit)
        both = (ours > 0) & (theirs > 0)
        wrong = int(np.sum(ours[both] != theirs[both]))
        good &= wrong == 0
        table.add_row(
            case.name, f"{eps:g}", str(int(np.sum(ours == 0))), str(int(np.sum(theirs == 0))),
            str(int(np.sum((ours == 0) & (theirs > 0)))), f"{ms:.1f}", f"{theirs_ms.sum():.1f}",
            f"{ms / theirs_ms.sum():.2f}", str(wrong),
        )  # fmt: skip
    CONSOLE.print(table)
    return good


def veritas(case: Case, eps: float, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Veritas' milliseconds and answers: 1 robust, 2 broken, 0 undecided within the limit."""
    from veritas import Config, HeuristicType, Interval, get_addtree

    with contextlib.redirect_stdout(io.StringIO()):
        up = get_addtree(case.booster)
    down = up.negate_leaf_values()
    ms, status = np.empty(len(case.X)), np.zeros(len(case.X), dtype=np.int64)
    for i, (x, y) in enumerate(zip(case.X, case.y, strict=True)):
        box = [Interval(*ends(v, eps)) for v in x]
        start = time.thread_time()
        config = Config(HeuristicType.MAX_OUTPUT)  # the settings of Veritas' own robustness search
        config.stop_when_optimal = True
        config.ignore_state_when_worse_than = 0.0
        config.stop_when_num_solutions_exceeds = 1
        config.max_focal_size = 1000
        config.focal_eps = 0.2
        trees = (down if y == 1 else up).prune(box)
        search = config.get_search(trees, box)
        search.step_for(limit, 100)
        ms[i] = 1000 * (time.thread_time() - start)
        if search.num_solutions() > 0 and search.get_solution(0).output > 0:
            status[i] = 2
        elif search.current_bounds().best < 0:
            status[i] = 1
    return ms, status


def ends(x: float, eps: float) -> tuple[float, float]:
    """The float32 numbers within eps of x, exactly, as Veritas' half-open interval."""
    low, high = Fraction(float(x)) - Fraction(eps), Fraction(float(x)) + Fraction(eps)
    first, last = np.float32(float(low)), np.float32(float(high))
    first = np.nextafter(first, np.float32(np.inf)) if Fraction(float(first)) < low else first
    last = last if Fraction(float(last)) > high else np.nextafter(last, np.float32(np.inf))
    return float(first), float(last)


def milp_part(cases: list[Case], rows: int) -> bool:
    """The MILP's radii and decisions."""
    table = titled(f"MILP (HiGHS), first {rows} rows", "model p MILP_ms search_ms MILP/search undecided contradictions")
    good = True
    for case in cases:
        few = case.X[:rows]
        for norm, eps in case.eps.items():
            took, proofs = {}, {}
            for method in ("search", "milp"):
                treeproof.certify(case.model, few[:1], norm=norm, eps=eps, method=method)
                start = time.thread_time()
                proofs[method] = treeproof.certify(case.model, few, norm=norm, eps=eps, method=method, time_limit=60)
                took[method] = 1000 * (time.thread_time() - start) / len(few)
            ours, theirs = proofs["search"].status, proofs["milp"].status
            both = (ours != Status.UNKNOWN) & (theirs != Status.UNKNOWN)
            wrong = int(np.sum(ours[both] != theirs[both]))
            good &= wrong == 0
            table.add_row(
                case.name, label(norm), f"{took['milp']:.0f}", f"{took['search']:.2f}",
                f"{took['milp'] / took['search']:,.0f}", str(int(np.sum(~both))), str(wrong),
            )  # fmt: skip
    CONSOLE.print(table)
    return good


def bound_part(cases: list[Case], long: float) -> bool:
    """The l1 lower bound after 0.1 s, beside the radius where it is known."""
    table = titled("l1 lower bound within 0.1 s", f"model rows radius_known_in_{long:g}_s bound/radius worst ms_a_row")
    good = True
    for case in cases:
        _, lower, upper, done = case.nearest(1, long)
        ms, early, *_ = case.nearest(1, 0.1)
        known = done & np.isfinite(upper)
        ratio = early[known] / upper[known]
        good &= bool(np.all(ratio <= 1 + 1e-9))
        shown = (f"{ratio.mean():.3f}", f"{ratio.min():.3f}") if known.any() else ("-", "-")
        table.add_row(case.name, str(len(ms)), str(int(known.sum())), *shown, f"{ms.mean():.1f}")
    CONSOLE.print(table)
    return good


def cliques_part(cases: list[Case], limit: float) -> bool:
    """The paper's bound and the attack, as parts of the exact l1 radius."""
    table = titled("l1: bound / exact radius (mean)", "model rows cliques_2,1 cliques_2,2 cliques_3,2 attack")
    good = True
    for case in cases:
        _, lower, upper, done = case.nearest(1, limit)
        rows = np.flatnonzero(done & np.isfinite(upper))
        ratios = []
        for K, L in ((2, 1), (2, 2), (3, 2)):
            bounds = treeproof.radius(case.model, case.X[rows], norm=1, method="multilevel", K=K, L=L, time_limit=limit)
            good &= bool(np.all(bounds.lower <= upper[rows] * (1 + 1e-9)))
            ratios.append(np.mean(bounds.lower / upper[rows]))
        attacked = treeproof.attack(case.model, case.X[rows], norm=1).upper
        good &= bool(np.all(attacked >= lower[rows]))
        found = np.isfinite(attacked)
        ratios.append(np.mean(attacked[found] / upper[rows][found]))
        table.add_row(case.name, str(len(rows)), *(f"{ratio:.3f}" for ratio in ratios))
    CONSOLE.print(table)
    return good


def titled(title: str, columns: str) -> Table:
    table = Table(title=title)
    for name in columns.split():
        table.add_column(name.replace("_", " "), justify="right")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shared = Path(__file__).resolve().parents[2] / "shared/models/xgboost"
    parser.add_argument("--models", type=Path, default=shared, help="folder of the XGBoost models")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--limit", type=float, default=1.0, help="seconds a row")
    parser.add_argument("--long", type=float, default=10.0, help="seconds a row for the radius that a bound is held to")
    parser.add_argument("--milp-rows", type=int, default=5)
    parser.add_argument("--cpu-limits", action="store_true", help="limits of search in CPU time, for a busy machine")
    options = parser.parse_args()
    if options.cpu_limits:
        treeproof.verify.search.clock = time.thread_time
    cases = [Case(name, options.models, options.rows) for name in options.only]
    small = [case for case in cases if case.model.n_trees <= 20]
    work = {
        "radius": lambda: radius_part([case for case in cases if case.model.n_trees < 1000], options.limit),
        "decide": lambda: decide_part(cases, options.limit),
        "veritas": lambda: veritas_part(cases, options.limit),
        "milp": lambda: milp_part(small, options.milp_rows),
        "bound": lambda: bound_part([case for case in cases if case.model.n_trees >= 200], options.long),
        "cliques": lambda: cliques_part(small, options.limit),
    }
    good = True
    for part in options.parts:
        good &= work[part]()
    CONSOLE.print("answers agree" if good else "[red]answers differ[/red]")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
