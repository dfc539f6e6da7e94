"""The exact methods (single trees, additive ensembles) and the grid against brute force: issue 1, Shows 2."""

from __future__ import annotations

import math
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


@pytest.mark.parametrize("norm", [0.0, 0.5, 1.0, 2.0, math.inf])
def test_radii_do_not_depend_on_the_rows_before(norm):
    """What an earlier row taught (a price, a likely cost) only saves time: near and far rows in any order agree."""
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        whole = seed % 3 > 0  # whole gains: bounds close at once, and ties are real
        size = 6 if whole else 12
        leaves = rng.integers(-3, 4, size=(2, size)) if whole else rng.normal(size=(2, size))
        stumps = treeproof.TreeEnsemble.from_stumps(
            rng.integers(4, size=size),
            rng.integers(-8, 9, size=size) / 4,
            *leaves,
            n_features=4,
            decision_slack=float(seed % 2),
        )
        X = rng.integers(-8, 9, size=(24, 4)) / 4 * 4.0 ** rng.integers(-1, 3, size=(24, 1))
        together = treeproof.radius(stumps, X, norm=norm)
        backwards = treeproof.radius(stumps, X[::-1], norm=norm)
        for i in range(len(X)):
            alone = treeproof.radius(stumps, X[i : i + 1], norm=norm)
            for got in (together.lower[i], backwards.lower[-1 - i]):
                assert got == pytest.approx(alone.lower[0], rel=1e-12), (seed, i)
            for got in (together.upper[i], backwards.upper[-1 - i]):
                assert got == pytest.approx(alone.upper[0], rel=1e-12), (seed, i)


def test_a_dearer_move_than_the_row_before_suggests():
    """Two moves of 1 flip the row, but so does one of 1.5, beyond what the row before (radius 0.6) suggests."""
    stumps = treeproof.TreeEnsemble.from_stumps([0, 1, 2], [1.0, 1.0, 1.5], [0.0] * 3, [-0.5, -0.5, -1.0], base=1.0)
    radii = treeproof.radius(stumps, [[0.0, 0.0, 0.9], [0.0, 0.0, 0.0]], norm=1)
    assert radii.lower.tolist() == pytest.approx([0.6, 1.5])
    assert radii.upper.tolist() == pytest.approx([0.6, 1.5])
