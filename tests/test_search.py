"""`search`: exact against brute force, bounds when stopped, threats, classes, and the paper's Figure 1."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest
from tests.judge import Judge
from tests.naive import generate
from tests.naive.problems import problems

import treeproof
from treeproof import Status

KINDS = ("ensemble", "ensemble", "staircases", "tree")


def random_forest(rng, trees, depth, features, outputs=1):
    """A model of complete trees with thresholds on a coarse grid, so that trees share cells."""

    def grow(left):
        if left == 0:
            return {"value": rng.normal(size=outputs)}
        split = {"feature": int(rng.integers(features)), "threshold": float(rng.integers(1, 16)) / 16}
        return {**split, "children": (grow(left - 1), grow(left - 1))}

    plain = []
    for _ in range(trees):
        nodes: dict[str, list] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}

        def add(node, nodes=nodes):
            here = len(nodes["feature"])
            for name, blank in zip(nodes, (-1, 0.0, -1, -1, np.zeros(outputs).tolist()), strict=True):
                nodes[name].append(blank)
            if "children" in node:
                nodes["feature"][here], nodes["threshold"][here] = node["feature"], node["threshold"]
                nodes["left"][here] = add(node["children"][0])
                nodes["right"][here] = add(node["children"][1])
            else:
                nodes["value"][here] = node["value"].tolist()
            return here

        add(grow(depth))
        plain.append(nodes)
    return treeproof.TreeEnsemble.from_trees(plain, n_features=features, base=np.zeros(outputs))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_agrees_with_brute_force(first):
    """Status, margins, radii and witnesses of random small ensembles are what brute force says."""
    complaints = []
    for seed in range(first, first + 20):
        case = generate.make(seed, KINDS, max_cells=400)
        judge = Judge(case.model, case.brute)
        for threat in case.threats:
            given = treeproof.Threat(**vars(threat))
            proof = treeproof.certify(judge.ensemble, case.rows, threat=given, method="search")
            radii = treeproof.radius(judge.ensemble, case.rows, threat=given, method="search")
            for i, row in enumerate(case.rows):
                truth = case.brute.truth(row, threat)
                complaints += judge.certificate(proof, i, row, truth, complete=True)
                complaints += judge.radius(radii, i, row, truth, complete=True)
    assert complaints == []


@pytest.mark.parametrize("problem", problems(), ids=lambda p: p.name)
def test_known_answers(problem):
    """The problem table's radii and statuses come out, Figure 1's empty common intersection among them."""
    judge = Judge(problem.model)
    labels = None if problem.label is None else [problem.label]
    threat = treeproof.Threat(**vars(problem.threat))
    truth = judge.oracle.truth(problem.row, problem.threat, problem.label)
    proof = treeproof.certify(judge.ensemble, [problem.row], labels, threat, method="search")
    radii = treeproof.radius(judge.ensemble, [problem.row], labels, threat, method="search")
    found = judge.certificate(proof, 0, problem.row, truth, complete=True)
    assert found + judge.radius(radii, 0, problem.row, truth, complete=True) == []


def test_norms_are_ordered():
    """For the same row r_inf <= r_2 <= r_1, and the l0 radius is a whole number."""
    rng = np.random.default_rng(3)
    model = random_forest(rng, 8, 4, 5, outputs=3)
    X = rng.random((6, 5))
    radii = {p: treeproof.radius(model, X, norm=p, method="search") for p in (0, 1, 2, np.inf)}
    assert all(r.exact.all() for r in radii.values())
    assert np.all(radii[np.inf].upper <= radii[2].upper * (1 + 1e-9))
    assert np.all(radii[2].upper <= radii[1].upper * (1 + 1e-9))
    known = radii[0].upper[np.isfinite(radii[0].upper)]
    np.testing.assert_array_equal(known, np.round(known))


def test_decide_agrees_with_radius():
    """Just below the radius a row is robust, just above it is broken, for every p."""
    rng = np.random.default_rng(4)
    model = random_forest(rng, 10, 4, 6)
    X = rng.random((4, 6))
    for p in (0.5, 1, 2, np.inf):
        radii = treeproof.radius(model, X, norm=p, method="search")
        for x, r in zip(X, radii.upper, strict=True):
            if not np.isfinite(r):
                continue
            below = treeproof.certify(model, [x], norm=p, eps=r * 0.999, method="search")
            above = treeproof.certify(model, [x], norm=p, eps=r * 1.001, method="search")
            assert [below.status[0], above.status[0]] == [Status.ROBUST, Status.BROKEN]


def test_a_time_limit_returns_sound_bounds_in_time():
    """Stopped by the clock, a row has bounds around the exact radius, within twice the limit."""
    rng = np.random.default_rng(5)
    model = random_forest(rng, 60, 5, 12)
    X = rng.random((3, 12))
    full = treeproof.radius(model, X, norm=2, method="search")
    assert full.exact.all()
    for limit in (1e-4, 1e-3, 0.05):
        start = perf_counter()
        quick = treeproof.radius(model, X, norm=2, method="search", time_limit=limit)
        assert perf_counter() - start < 3 * (2 * limit + 0.25)  # a busy machine may add to it
        assert np.all(quick.lower <= full.upper)
        assert np.all(quick.upper >= full.lower)


def test_little_memory_returns_bounds():
    """The memory option gives up nodes, not the row: bounds stay sound."""
    rng = np.random.default_rng(6)
    model = random_forest(rng, 12, 4, 6)
    X = rng.random((4, 6))
    full = treeproof.radius(model, X, norm=1, method="search")
    little = treeproof.radius(model, X, norm=1, method="search", memory=1e-6)
    assert full.exact.all()
    assert np.all(little.lower <= full.upper * (1 + 1e-9))
    assert np.all(little.upper >= full.lower * (1 - 1e-9))
    with pytest.raises(treeproof.InvalidInputError, match="memory must be"):
        treeproof.radius(model, X, norm=1, method="search", memory=0)


def test_attack_bounds_the_radius_from_above():
    """`attack` finds moves that flip, never nearer than the exact radius, and claims nothing else."""
    rng = np.random.default_rng(7)
    model = random_forest(rng, 8, 4, 6, outputs=3)
    X = rng.random((6, 6))
    for p in (0, 1, 2, np.inf):
        exact = treeproof.radius(model, X, norm=p, method="search")
        fast = treeproof.attack(model, X, norm=p)
        assert np.all(fast.upper >= exact.lower * (1 - 1e-9))
        assert np.isfinite(fast.upper).mean() > 0.8
        found = np.isfinite(fast.upper) & (fast.upper > 0)
        assert np.all(model.predict(fast.witness[found]) != model.predict(X[found]))
        assert not np.any(fast.exact[fast.upper > 0])
