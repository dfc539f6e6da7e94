"""Costs of cells: the exact l_inf comparison, landings under ranges and directions, and prices."""

from fractions import Fraction

import numpy as np
import pytest

from treeproof import Threat, TreeEnsemble
from treeproof.verify.costs import empty_row, ground_of, price_of_cells, price_row, within_inf
from treeproof.verify.problem import Problem


def staircase(thresholds, dtype="float64"):
    """A model of stumps on one feature."""
    n = len(thresholds)
    return TreeEnsemble.from_stumps(np.zeros(n, int), thresholds, -np.ones(n), np.ones(n), dtype=dtype)


def prices(model, x, **threat):
    """The priced cells of one row."""
    resolved = Threat(**threat).resolve(model)
    ground = ground_of(Problem(model, resolved), eps=resolved.eps)
    row = empty_row(ground)
    price_row(ground, np.asarray([x], dtype=np.float64), row)
    return row


def test_within_inf_is_the_comparison_over_the_rationals():
    """The l_inf test agrees with exact fractions on ties, near ties and random numbers."""
    rng = np.random.default_rng(0)
    hits = [0, 0]
    for _ in range(3000):
        x = float(rng.choice([rng.random(), np.float32(rng.random()), rng.integers(0, 255) / 255]))
        scale = float(rng.choice([1.0, 0.1, rng.random() + 0.01, 3.0]))
        eps = float(rng.choice([0.3, 0.1, rng.random() + 0.01, 2.0**-10]))
        z = x + float(rng.choice([-1.0, 1.0])) * eps * scale
        for near in (z, np.nextafter(z, np.inf), np.nextafter(z, -np.inf)):
            near = float(near)
            exact = abs(Fraction(near) - Fraction(x)) <= Fraction(eps) * Fraction(scale)
            assert within_inf(x, near, scale, eps) == exact
            hits[exact] += 1
    assert min(hits) > 1000  # both answers were really tested


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0])
def test_landings_are_the_nearest_numbers(p):
    """Moving right lands on the cut, moving left just before it; prices are the powers of the distances."""
    row = prices(staircase([0.2, 0.5, 0.9]), 0.6, norm=p, eps=1.0)
    assert row.own[0] == 2
    before = np.nextafter([0.2, 0.5], 0)
    np.testing.assert_array_equal(row.landing, [before[0], before[1], 0.6, 0.9])
    np.testing.assert_allclose(row.price, np.abs(row.landing - 0.6) ** p, rtol=1e-14)


def test_a_row_on_a_threshold_pays_one_ulp_to_the_left():
    """A row on a cut is in the right cell; the left one is one grid number away and counts at p = 0."""
    model = staircase([0.5], dtype="float32")
    row = prices(model, 0.5, norm=1, eps=1.0)
    assert row.own[0] == 1
    assert row.price[0] == 0.5 - float(np.nextafter(np.float32(0.5), np.float32(0)))
    assert prices(model, 0.5, norm=0, eps=1)[1].tolist() == [1.0, 0.0]


def test_ranges_and_directions():
    """Cells outside the range or against the direction cost inf; a row outside its range may stay."""
    model = staircase([0.2, 0.5, 0.9])
    up = prices(model, 0.3, norm=1, eps=1.0, direction=+1)
    assert np.isinf(up.price[0])
    assert np.isfinite(up.price[2:]).all()
    inside = prices(model, 0.3, norm=1, eps=1.0, lower=0.25, upper=0.6)
    np.testing.assert_array_equal(np.isinf(inside.price), [True, False, False, True])
    outside = prices(model, 0.1, norm=1, eps=1.0, lower=0.6, upper=0.7)
    np.testing.assert_array_equal(np.isinf(outside.price), [False, True, False, True])
    assert outside.landing[2] == 0.6
    assert price_of_cells(outside, 0, 1, 4, outside.own[0]) == (0.5, 2)
    frozen = prices(model, 0.3, norm=1, eps=1.0, frozen=[0])
    np.testing.assert_array_equal(frozen.price, [np.inf, 0, np.inf, np.inf])


def test_missing_and_infinite_cuts():
    """A missing feature has no cell; a cut at infinity is never crossed."""
    model = TreeEnsemble.from_stumps([0, 0], [0.5, np.inf], [-1.0, -1], [1.0, 1], accepts_missing=True)
    assert prices(model, np.nan, norm=1, eps=1.0).own[0] == -1
    np.testing.assert_array_equal(prices(model, 0.2, norm=0, eps=1).price, [0, 1, np.inf])


def test_powers_never_overflow_to_not_allowed():
    """A cost too large for a float stays finite, and one too small becomes 0 without a loop."""
    row = prices(staircase([1e-300, 1e10]), 0.0, norm=64, eps=1.0)
    np.testing.assert_array_equal(row.price, [0.0, 0.0, 1e300])
