"""Additive models far too large for brute force, against an exact knapsack over whole costs and gains."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from tests.judge import to_ensemble
from tests.naive import brute, knapsack
from tests.naive.knapsack import STEP
from tests.naive.plain import PlainThreat

from treeproof import Status, Threat, certify, radius

SIZES = [(3, 40, 1, "none"), (12, 60, 1, "none"), (40, 120, 1, "none"), (25, 60, 3, "none"), (30, 30, 1, "weak"),
         (30, 30, 1, "strong"), (25, 25, 1, "subset-sum")]  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("norm", [0.0, 0.5, 1.0, 2.0])
def test_decisions_and_margins(norm, size):
    """At budgets on, between and far from attained costs: status, bounds and witnesses are the knapsack's."""
    n_features, n_stumps, n_outputs, hard = size
    undecided = asked = 0
    for seed in range(6):
        instance = knapsack.make(seed, n_features, n_stumps, norm, n_outputs, hard)
        ensemble = to_ensemble(instance.model)
        row = np.zeros((1, n_features))
        label = int(ensemble.predict_index(row)[0])
        curves = {c: knapsack.curve(instance, norm, w, 400) for c, w in pair_weights(n_outputs, label)}
        for units in np.random.default_rng(seed).integers(0, 380, size=4):
            for budget in (float(units), units + 0.5):
                eps = knapsack.eps_of(budget, norm)
                threat = PlainThreat(norm, eps, direction=[1] * n_features)
                proof = certify(ensemble, row, threat=Threat(**vars(threat)))
                worst = min(curve[int(units)] for curve in curves.values()) / STEP
                breaks = any(flips(curve[int(units)], label, c, n_outputs) for c, curve in curves.items())
                tied = norm not in (0.0, 1.0) and budget == units  # eps^p is only nearly whole
                if not tied:
                    assert proof.lower[0] <= worst <= proof.upper[0], (seed, budget)
                asked += 1
                undecided += proof.status[0] == Status.UNKNOWN
                if proof.status[0] == Status.ROBUST and not tied:
                    assert not breaks, (seed, budget)
                if proof.status[0] == Status.BROKEN:
                    assert breaks, (seed, budget)
                    moved = [float(v) for v in proof.witness[0]]
                    assert brute.allowed([0.0] * n_features, moved, threat, "float64") == ""
                    assert brute.predict(instance.model, [moved])[0][0] != label
                if proof.status[0] == Status.UNKNOWN:
                    assert tied, (seed, budget, worst)
    assert undecided < asked / 2


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("norm", [0.0, 0.5, 1.0, 2.0])
def test_radii(norm, size):
    """The minimal radius is the knapsack's least cost that flips."""
    n_features, n_stumps, n_outputs, hard = size
    for seed in range(8):
        instance = knapsack.make(seed, n_features, n_stumps, norm, n_outputs, hard)
        ensemble = to_ensemble(instance.model)
        row = np.zeros((1, n_features))
        label = int(ensemble.predict_index(row)[0])
        curves = {c: knapsack.curve(instance, norm, w, 3000) for c, w in pair_weights(n_outputs, label)}
        least = math.inf
        for c, curve in curves.items():
            hit = [units for units, margin in enumerate(curve) if flips(margin, label, c, n_outputs)]
            least = min(least, hit[0] if hit else math.inf)
        threat = Threat(norm, direction=[1] * n_features)
        radii = radius(ensemble, row, threat=threat)
        if math.isinf(least):
            assert radii.lower[0] >= knapsack.eps_of(3000, norm) * (1 - 1e-12), seed
            continue
        assert radii.exact[0], seed
        wanted = knapsack.eps_of(least, norm)
        assert radii.upper[0] == pytest.approx(wanted, rel=1e-12), seed
        assert radii.lower[0] == pytest.approx(wanted, rel=1e-12), seed
        moved = [float(v) for v in radii.witness[0]]
        size_of_move = brute.to_radius(brute.distance([0.0] * n_features, moved, PlainThreat(norm)), norm)
        assert size_of_move <= Decimal(float(radii.upper[0])) * (1 + Decimal(10) ** -25)
        assert brute.predict(instance.model, [moved])[0][0] != label


@pytest.mark.parametrize("norm", [0.5, 1.0, 2.0])
def test_grid_is_below_the_knapsack(norm):
    """At any precision the grid's margin is at most the exact one, and finer grids that divide coarser are no worse."""
    for seed in range(6):
        instance = knapsack.make(seed, 12, 60, norm)
        ensemble = to_ensemble(instance.model)
        row = np.zeros((1, 12))
        label = int(ensemble.predict_index(row)[0])
        (_, weights), *_ = pair_weights(1, label)
        curve = knapsack.curve(instance, norm, weights, 200)
        for units in (7, 50, 150):
            eps = knapsack.eps_of(units + 0.5, norm)
            threat = Threat(norm, eps, direction=[1] * 12)
            before = -math.inf
            for parts in (1, 2, 4, 8, 32, 128, 1024):
                precision = eps**norm / parts
                proof = certify(ensemble, row, threat=threat, method="grid", precision=precision)
                assert proof.lower[0] <= curve[units] / STEP + 1e-9, (seed, units, parts)
                assert proof.lower[0] >= before - 1e-9, (seed, units, parts)
                before = float(proof.lower[0])
                if flips(curve[units], label, 1 - label, 1):
                    assert proof.status[0] != Status.ROBUST, (seed, units, parts)


@pytest.mark.parametrize("norm", [0.3, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf, 0.0])
def test_radius_and_decision_agree(norm):
    """On random stumps of every kind, eps just below the radius is ROBUST and eps at its upper bound is BROKEN."""
    rng = np.random.default_rng(5)
    for n_stumps, d in ((30, 4), (200, 30), (1000, 60)):
        from treeproof import TreeEnsemble

        model = TreeEnsemble.from_stumps(
            rng.integers(d, size=n_stumps), rng.random(n_stumps).round(2), *rng.normal(size=(2, n_stumps)),
            n_features=d, dtype="float32",
        )  # fmt: skip
        X = rng.random((12, d)).round(2)
        radii = radius(model, X, norm=norm)
        assert np.all(radii.lower <= radii.upper)
        assert np.mean(radii.exact) > 0.7
        for i in np.flatnonzero(np.isfinite(radii.upper)):
            hit = certify(
                model, X[i : i + 1], norm=norm, eps=radii.upper[i] if norm == 0 else radii.upper[i] * 1.000001
            )
            assert hit.status[0] != Status.ROBUST, i
            if radii.exact[i]:
                assert hit.status[0] == Status.BROKEN, i
            below = radii.lower[i] - 1 if norm == 0 else radii.lower[i] * 0.999999
            safe = certify(model, X[i : i + 1], norm=norm, eps=below)
            assert safe.status[0] != Status.BROKEN, i
            assert safe.lower[0] <= hit.upper[0] or hit.lower[0] <= safe.upper[0]


def pair_weights(n_outputs: int, label: int):
    """The weights of f_label - f_c for each other class c."""
    if n_outputs == 1:
        return [(1 - label, np.array([1 if label == 1 else -1]))]
    unit = np.eye(n_outputs, dtype=np.int64)
    return [(c, unit[label] - unit[c]) for c in range(n_outputs) if c != label]


def flips(margin: int, label: int, c: int, n_outputs: int) -> bool:
    """Whether a whole margin of `label` over c is decided otherwise (ties: class 0, or the earlier class)."""
    if margin == 0:
        return label == 1 if n_outputs == 1 else c < label
    return margin < 0


@pytest.mark.parametrize("norm", [0.0, 0.5, 1.0, 2.0])
def test_exact_margins_are_the_knapsack_s(norm):
    """With exact sums the bounds meet at the knapsack's worst margin."""
    for seed in range(3):
        instance = knapsack.make(seed, 6, 14, norm)
        ensemble = to_ensemble(instance.model)
        row = np.zeros((1, 6))
        label = int(ensemble.predict_index(row)[0])
        (_, weights), *_ = pair_weights(1, label)
        curve = knapsack.curve(instance, norm, weights, 60)
        for units in (1, 9, 30, 60):
            threat = Threat(norm, knapsack.eps_of(units + 0.5, norm), direction=[1] * 6)
            proof = certify(ensemble, row, threat=threat, exact_margin=True)
            assert proof.lower[0] == proof.upper[0] == curve[units] / STEP, (seed, units)
