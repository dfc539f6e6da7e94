"""`milp`: never contradicts brute force; agrees with `search`; a presolve bug of HiGHS stays avoided."""

from __future__ import annotations

import numpy as np
from tests.judge import Judge
from tests.naive import generate
from tests.test_search import random_forest

import treeproof


def test_never_contradicts_brute_force():
    """No claim of the program is refuted, and its witnesses are allowed and flip."""
    complaints = []
    for seed in range(24):
        case = generate.make(seed, ("ensemble", "tree"), max_cells=300)
        judge = Judge(case.model, case.brute)
        for threat in case.threats[:2]:
            given = treeproof.Threat(**vars(threat))
            proof = treeproof.certify(judge.ensemble, case.rows, threat=given, method="milp")
            radii = treeproof.radius(judge.ensemble, case.rows, threat=given, method="milp")
            for i, row in enumerate(case.rows):
                truth = case.brute.truth(row, threat)
                complaints += judge.certificate(proof, i, row, truth, complete=False)
                complaints += judge.radius(radii, i, row, truth, complete=False)
    assert complaints == []


def test_agrees_with_search():
    """Radii of `milp` and `search` agree to the program's tolerance, for several classes and p."""
    rng = np.random.default_rng(8)
    model = random_forest(rng, 5, 3, 4, outputs=3)
    X = rng.random((4, 4))
    for p in (0, 1, 2, np.inf):
        exact = treeproof.radius(model, X, norm=p, method="search")
        mixed = treeproof.radius(model, X, norm=p, method="milp")
        assert np.all(mixed.lower <= exact.upper * (1 + 1e-9))
        np.testing.assert_allclose(mixed.upper, exact.upper, rtol=1e-4)
        np.testing.assert_allclose(mixed.lower, exact.lower, rtol=1e-2, atol=1e-3)


def test_presolve_stays_off():
    """The case on which HiGHS 1.12 with presolve called 2 the least number of moves, where 1 suffices."""
    case = generate.make(9, ("ensemble", "tree"), n_rows=2, max_cells=600)
    judge = Judge(case.model, case.brute)
    for row in case.rows:
        for threat in case.threats:
            radii = treeproof.radius(judge.ensemble, [row], threat=treeproof.Threat(**vars(threat)), method="milp")
            truth = case.brute.truth(row, threat)
            assert judge.radius(radii, 0, row, truth, complete=False) == []
