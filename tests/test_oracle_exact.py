"""The exact methods (single trees, additive ensembles) and the grid against brute force: issue 1, Shows 2."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tests.fuzz import fuzz, grid_precision, judge_problem
from tests.judge import ROOM, to_ensemble, to_threat
from tests.naive import generate
from tests.naive.problems import problems

import treeproof

TABLE = problems()
QUICK = 120
ALL = 10_000


def no(complaints: list[str]) -> None:
    assert not complaints, "\n".join(["", *complaints])


def methods_for(problem) -> list[str]:
    ensemble = to_ensemble(problem.model)
    return ["additive"] * ensemble.is_additive + ["tree"] * (ensemble.n_trees == 1)


@pytest.mark.parametrize("exact", [False, True], ids=["float", "exact"])
@pytest.mark.parametrize("problem", TABLE, ids=[p.name for p in TABLE])
def test_problem_table(problem, exact):
    """Every hand-made trap gets a right answer from each method that serves its model."""
    for method in methods_for(problem):
        no(judge_problem(problem, method, exact=exact))


def test_additive_against_brute_force():
    """Stumps and staircases, every norm: no wrong claim, sound bounds, valid witnesses, exact radii."""
    no(fuzz(range(QUICK), "additive", kinds=("stumps", "staircases")))


def test_single_trees_against_brute_force():
    """Single trees, every norm and threat: no wrong claim, sound bounds, valid witnesses, exact radii."""
    no(fuzz(range(QUICK), "tree", kinds=("tree",)))


def test_auto_against_brute_force():
    """`auto` on additive models and single trees answers as the exact methods do."""
    no(fuzz(range(QUICK // 4), "auto", kinds=("stumps", "staircases", "tree")))


@pytest.mark.parametrize("parts", [1.0, 7.0, 100.0])
def test_grid_is_sound(parts):
    """The grid never claims too much, at precisions from the whole budget down to a hundredth of it."""
    no(
        fuzz(
            range(QUICK // 3),
            "grid",
            complete=False,
            kinds=("stumps", "staircases"),
            precision=grid_precision(parts),
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, ALL, 1000))
def test_ten_thousand_models(start):
    """10,000 random small models against brute force: 4 of 10 stumps, 3 staircases, 3 single trees."""
    seeds = range(10**6 + start, 10**6 + start + 1000)
    no(fuzz(seeds[:400], "additive", kinds=("stumps",)))
    no(fuzz(seeds[400:700], "additive", kinds=("staircases",)))
    no(fuzz(seeds[700:], "tree", kinds=("tree",)))
    no(fuzz(seeds[:200], "grid", complete=False, kinds=("stumps",), precision=grid_precision(10.0)))


JIT_OFF = """
from tests.fuzz import fuzz, grid_precision
import numba
assert numba.config.DISABLE_JIT
found = fuzz(range({first}, {last}), "additive", kinds=("stumps", "staircases"))
found += fuzz(range({first}, {last}), "tree", kinds=("tree",))
found += fuzz(range({first}, {last}), "grid", complete=False, kinds=("stumps",), precision=grid_precision(5.0))
assert not found, found
print("judged")
"""


def test_kernels_without_the_jit():
    """The kernels also run as plain Python (NUMBA_DISABLE_JIT=1), with the same right answers."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join([os.path.dirname(os.path.dirname(treeproof.__file__)), root])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", JIT_OFF.format(first=0, last=25)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "judged" in done.stdout


@pytest.mark.parametrize("slack", [0.25, 1e-3])
def test_decision_slack_is_left_undecided(slack):
    """Where the model's own decision may err by `slack`, nothing closer to the cut is called robust or broken."""
    seen = set()
    for seed in range(150):
        case = generate.make(seed, n_rows=3)
        ensemble = replace(to_ensemble(case.model), decision_slack=slack)
        for threat in case.threats[:2]:
            proof = treeproof.certify(ensemble, np.array(case.rows), threat=to_threat(threat))
            radii = treeproof.radius(ensemble, np.array(case.rows), threat=to_threat(threat))
            for i, row in enumerate(case.rows):
                truth = case.brute.truth(row, threat)
                status = treeproof.Status(proof.status[i])
                seen.add(status)
                if status == treeproof.Status.ROBUST:
                    assert truth.worst() > Fraction(slack), (seed, threat, i)
                if status == treeproof.Status.BROKEN:
                    assert truth.worst() < -Fraction(slack), (seed, threat, i)
                assert Decimal(float(radii.lower[i])) <= truth.radius_below(Fraction(slack)) * ROOM, (seed, threat, i)
                assert Decimal(float(radii.upper[i])) * ROOM >= truth.radius_below(-Fraction(slack)), (seed, threat, i)
    assert len(seen) == 3
