"""Methods for general ensembles against brute force: issue 3, Shows 1."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.fuzz import fuzz, judge_problem
from tests.judge import to_ensemble, to_threat
from tests.naive import generate
from tests.naive.problems import problems

import treeproof

TABLE = problems()
ALL = 10_000


def no(complaints: list[str]) -> None:
    assert not complaints, "\n".join(["", *complaints])


def needs(method: str) -> None:
    from treeproof.verify.methods import METHODS

    if method not in METHODS:
        pytest.skip(f"this version has no method {method!r}")


@pytest.mark.parametrize("problem", TABLE, ids=[p.name for p in TABLE])
def test_search_on_the_problem_table(problem):
    """Every hand-made trap (the paper's Figure 1 among them) gets a right and decided answer from `search`."""
    no(judge_problem(problem, "search"))


@pytest.mark.parametrize("method", ["milp", "multilevel"])
def test_other_methods_on_the_problem_table(method):
    """The referee and the paper's bound claim nothing wrong on any hand-made trap."""
    needs(method)
    for problem in TABLE:
        no([f"{problem.name}: {complaint}" for complaint in judge_problem(problem, method, complete=False)])


def test_search_against_brute_force():
    """Ensembles of 2 to 6 trees, every norm and threat: no wrong claim, sound bounds, valid witnesses, exact radii."""
    no(fuzz(range(100), "search", kinds=("ensemble",)))


def test_search_row_by_row_against_brute_force():
    """What a batch's allowance does not settle goes row by row: that way alone is right too (no allowance here)."""
    no(fuzz(range(100, 160), "search", kinds=("ensemble",), max_nodes=10**9))


def test_search_where_prices_differ_by_thirty_digits():
    """Cases that earlier versions got wrong: prices near 1e-32 beside 1, and goals far below the prices."""
    for way in ({}, {"max_nodes": 10**9}):
        no(fuzz([2001001], "search", kinds=("ensemble",), **way))


def test_search_on_models_with_their_own_methods():
    """`search` serves additive models and single trees too, and is right there."""
    no(fuzz(range(40), "search", kinds=("stumps", "staircases", "tree")))


def test_auto_on_ensembles():
    """`auto` is right on general ensembles."""
    no(fuzz(range(100, 120), "auto", kinds=("ensemble",)))


@pytest.mark.parametrize(("method", "last"), [("milp", 12), ("multilevel", 40)])
def test_other_methods_are_sound(method, last):
    """Neither the referee nor the paper's bound ever claims too much."""
    needs(method)
    no(fuzz(range(last), method, complete=False, kinds=("ensemble",)))


@pytest.mark.parametrize(("k", "levels"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_multilevel_is_never_above_the_exact_value(k, levels):
    """At every group size and number of levels the bound stays below brute force."""
    needs("multilevel")
    no(fuzz(range(200, 215), "multilevel", complete=False, kinds=("ensemble", "tree"), K=k, L=levels))


def test_a_stopped_search_is_sound():
    """With hardly any time, `search` still returns sound bounds and no wrong status."""
    no(fuzz(range(40), "search", complete=False, kinds=("ensemble",), time_limit=1e-6))


def test_answers_do_not_depend_on_the_batch():
    """A row gets the same answer alone, among others, and on two threads."""
    for seed in range(12):
        case = generate.make(seed, kinds=("ensemble", "stumps"), n_rows=6)
        ensemble, X = to_ensemble(case.model), np.array(case.rows)
        threat = to_threat(case.threats[0])
        whole = treeproof.certify(ensemble, X, threat=threat)
        threads = treeproof.certify(ensemble, X, threat=threat, n_jobs=2)
        alone = [treeproof.certify(ensemble, X[i : i + 1], threat=threat) for i in range(len(X))]
        assert whole.status.tolist() == threads.status.tolist() == [int(one.status[0]) for one in alone], seed
        radii = treeproof.radius(ensemble, X, threat=threat)
        ones = [treeproof.radius(ensemble, X[i : i + 1], threat=threat) for i in range(len(X))]
        assert np.allclose(radii.upper, [one.upper[0] for one in ones], rtol=1e-9), seed


JIT_OFF = """
from tests.fuzz import fuzz
import numba
assert numba.config.DISABLE_JIT
found = fuzz(range(8), "search", kinds=("ensemble",))
assert not found, found
print("judged")
"""


def test_search_without_the_jit():
    """The kernels of `search` also run as plain Python (NUMBA_DISABLE_JIT=1), with the same right answers."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join([os.path.dirname(os.path.dirname(treeproof.__file__)), root])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", JIT_OFF],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "judged" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, ALL, 1000))
def test_ten_thousand_ensembles(start):
    """10,000 random small ensembles against brute force by `search`; some of them by the other methods."""
    seeds = range(2 * 10**6 + start, 2 * 10**6 + start + 1000)
    no(fuzz(seeds[::2], "search", kinds=("ensemble",)))
    no(fuzz(seeds[1::2], "search", kinds=("ensemble",), max_nodes=10**9))
    no(fuzz(seeds[:50], "milp", complete=False, kinds=("ensemble",)))
    from treeproof.verify.methods import METHODS

    if "multilevel" in METHODS:
        no(fuzz(seeds, "multilevel", complete=False, kinds=("ensemble",)))
