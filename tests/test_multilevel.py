"""`multilevel`: sound everywhere, and the bounds chain: more levels and exact methods are never below it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.judge import Judge
from tests.naive import generate
from tests.naive.problems import problems
from tests.test_search import random_forest

import treeproof


def test_never_contradicts_brute_force():
    """Lower bounds of margins and radii are never above the truth, for every p, threats and classes."""
    complaints = []
    for seed in range(40):
        case = generate.make(seed, ("ensemble", "tree"), max_cells=300)
        judge = Judge(case.model, case.brute)
        for threat in case.threats:
            given = treeproof.Threat(**vars(threat))
            options = {"threat": given, "method": "multilevel", "K": 2 + seed % 2, "L": 1 + seed % 3 // 2}
            proof = treeproof.certify(judge.ensemble, case.rows, **options)
            radii = treeproof.radius(judge.ensemble, case.rows, **options)
            for i, row in enumerate(case.rows):
                truth = case.brute.truth(row, threat)
                complaints += judge.certificate(proof, i, row, truth, complete=False)
                complaints += judge.radius(radii, i, row, truth, complete=False)
    assert complaints == []


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, np.inf])
def test_chain_of_bounds(p):
    """(2,1) <= (2,2) <= exact and (3,1) <= (3,2) <= exact, radii and margins (2 and 3 do not nest)."""
    rng = np.random.default_rng(11)
    model = random_forest(rng, 9, 3, 5)
    X = rng.random((6, 5))
    exact = treeproof.radius(model, X, norm=p, method="search")
    assert exact.exact.all()
    for K in (2, 3):
        radii = [treeproof.radius(model, X, norm=p, method="multilevel", K=K, L=L).lower for L in (1, 2)]
        assert np.all(radii[0] <= radii[1] * (1 + 1e-9))
        assert np.all(radii[1] <= exact.upper * (1 + 1e-9))
        eps = 1.0 if p == 0 else float(np.median(exact.upper[np.isfinite(exact.upper)]))
        margins = [treeproof.certify(model, X, norm=p, eps=eps, method="multilevel", K=K, L=L).lower for L in (1, 2)]
        assert np.all(margins[0] <= margins[1] + 1e-9)


def test_one_group_of_all_trees_is_exact():
    """With every tree in one group the cliques are all leaf combinations: the bound is the radius."""
    rng = np.random.default_rng(12)
    model = random_forest(rng, 4, 3, 4)
    X = rng.random((5, 4))
    for p in (0, 1, 2, np.inf):
        whole = treeproof.radius(model, X, norm=p, method="multilevel", K=4).lower
        exact = treeproof.radius(model, X, norm=p, method="search")
        np.testing.assert_allclose(whole, exact.upper, rtol=1e-6)


def test_figure_1():
    """Boxes that meet pairwise, and each meets the ball, but not all at once: the recheck of cliques sees it."""
    entry = next(problem for problem in problems() if "figure" in problem.name.lower())
    judge = Judge(entry.model)
    threat = treeproof.Threat(**vars(entry.threat))
    trees = len(entry.model.trees)
    proof = treeproof.certify(judge.ensemble, [entry.row], threat=threat, method="multilevel", K=trees)
    assert (proof.status[0] == treeproof.Status.ROBUST) == (not entry.broken)


def test_groups_too_large_stay_apart():
    """`max_cliques` and the time limit loosen the bound, never break it; bad options are one clear error."""
    rng = np.random.default_rng(13)
    model = random_forest(rng, 8, 4, 5)
    X = rng.random((3, 5))
    exact = treeproof.radius(model, X, norm=1, method="search")
    for options in ({"max_cliques": 20}, {"time_limit": 1e-6}):
        loose = treeproof.radius(model, X, norm=1, method="multilevel", K=3, L=2, **options)
        assert np.all(loose.lower <= exact.upper)
    with pytest.raises(treeproof.InvalidInputError, match="K must be"):
        treeproof.radius(model, X, norm=1, method="multilevel", K=0)
