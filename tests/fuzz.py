"""One fuzz for every method: nasty cases in, complaints out."""

from __future__ import annotations

import math

import numpy as np
from tests.judge import Judge, to_threat
from tests.naive import generate
from tests.naive.generate import Case
from tests.naive.problems import Problem

import treeproof

TIGHT = ("additive", "tree")  # with exact sums these enclose the margin to the last float; the others only decide
NO_RADIUS = ("grid",)  # methods that only decide


def fuzz(seeds, method: str, *, complete: bool = True, kinds=generate.KINDS, enough: int = 5, **options) -> list[str]:
    """Complaints about a method's answers on the cases of these seeds (stops at `enough`)."""
    found: list[str] = []
    for seed in seeds:
        found += judge_case(generate.make(seed, kinds), method, complete, options)
        if len(found) >= enough:
            break
    return found


def judge_case(case: Case, method: str, complete: bool, options: dict) -> list[str]:
    """Both questions, with float and with exact sums, for every threat of a case."""
    judge = Judge(case.model, case.brute, method in TIGHT)
    X = np.array(case.rows, dtype=np.float64)
    labels = labels_of(case)
    found = []
    for threat in case.threats:
        truths = [
            case.brute.truth(row, threat, None if labels is None else label)
            for row, label in zip(case.rows, labels if labels is not None else case.rows, strict=True)
        ]
        more = {name: value(threat) if callable(value) else value for name, value in options.items()}
        if any(value is None for value in more.values()):
            continue
        for exact in (False, True):
            where = f"seed {case.seed}, {method}, {'exact ' if exact else ''}{threat}"
            proof = treeproof.certify(
                judge.ensemble, X, labels, to_threat(threat), method=method, exact_margin=exact, **more
            )
            for i, row in enumerate(case.rows):
                found += [
                    f"{where}, row {i}: {c}" for c in judge.certificate(proof, i, row, truths[i], complete, exact)
                ]
            if method in NO_RADIUS:
                continue
            radii = treeproof.radius(
                judge.ensemble, X, labels, to_threat(threat), method=method, exact_margin=exact, **more
            )
            for i, row in enumerate(case.rows):
                found += [
                    f"{where}, row {i}: radius: {c}" for c in judge.radius(radii, i, row, truths[i], complete, exact)
                ]
    return found


def labels_of(case: Case) -> np.ndarray | None:
    """For every third case labels are given, right or wrong."""
    if case.seed % 3:
        return None
    rng = np.random.default_rng(case.seed)
    return rng.integers(max(2, case.model.n_outputs), size=len(case.rows))


def judge_problem(problem: Problem, method: str, complete: bool = True, exact: bool = False, **options) -> list[str]:
    """Complaints about one entry of the problem table, and whether the known status and radius come out."""
    judge = Judge(problem.model, tight=method in TIGHT)
    row = np.array([problem.row])
    truth = judge.oracle.truth(problem.row, problem.threat, problem.label)
    labels = None if problem.label is None else [problem.label]
    asked = {"method": method, "exact_margin": exact, **options}
    proof = treeproof.certify(judge.ensemble, row, labels, to_threat(problem.threat), **asked)
    found = judge.certificate(proof, 0, problem.row, truth, complete, exact)
    radii = treeproof.radius(judge.ensemble, row, labels, to_threat(problem.threat), **asked)
    return found + judge.radius(radii, 0, problem.row, truth, complete, exact)


def grid_precision(parts: float):
    """A precision of about the budget / parts; None where the grid is refused (p = 0, p = inf, eps = 0)."""

    def choose(threat) -> float | None:
        if threat.norm in (0, math.inf) or not 0 < threat.eps < math.inf:
            return None
        budget = threat.eps**threat.norm
        return budget / parts if 1e-300 < budget < 1e300 else None

    return choose
