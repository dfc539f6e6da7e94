"""The oracle itself is right: answers known by hand, a slower oracle, and random attacks never beat it."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from tests.naive import brute, floats, generate
from tests.naive.brute import Brute
from tests.naive.plain import PlainModel, PlainThreat, stump
from tests.naive.problems import problems

TABLE = problems()


@pytest.mark.parametrize("problem", TABLE, ids=[p.name for p in TABLE])
def test_known_answers(problem):
    """Brute force gives the radius and the status that the problem table derives by hand."""
    truth = Brute(problem.model).truth(problem.row, problem.threat, problem.label)
    assert truth.broken() == truth.broken(exact=True) == problem.broken
    if problem.radius is None:
        assert truth.radius() == truth.radius(exact=True) == Decimal("Infinity")
        return
    with localcontext() as context:
        context.prec = 70
        wanted = Fraction(problem.radius)
        size = Decimal(wanted.numerator) / Decimal(wanted.denominator)
        assert abs(truth.radius() - size) <= size * Decimal(10) ** -50


def test_imports_nothing_from_treeproof():
    """The oracle shares no code with what it judges."""
    from pathlib import Path

    for path in (Path(__file__).parent / "naive").glob("*.py"):
        text = path.read_text()
        assert "import treeproof" not in text, path
        assert "from treeproof" not in text, path


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cells_partition_the_grid(dtype):
    """Cells are closed, ascending, and leave no grid number out; thresholds decide alike inside a cell."""
    rng = np.random.default_rng(0)
    for style in generate.THRESHOLDS:
        cuts = generate.threshold_pool(rng, style, dtype)
        found = floats.cells(cuts, dtype)
        assert found[0][0] == -floats.largest(dtype)
        assert found[-1][1] == floats.largest(dtype)
        for (_, high), (low, _) in itertools.pairwise(found):
            assert floats.following(high, dtype) == low
        for low, high in found:
            assert [low < t for t in cuts] == [high < t for t in cuts]


def cuts_of(model: PlainModel, feature: int) -> list[float]:
    """Every threshold of a feature."""
    return [
        threshold
        for tree in model.trees
        for read, threshold in zip(tree["feature"], tree["threshold"], strict=True)
        if read == feature
    ]


def slowest(model: PlainModel, row, threat: PlainThreat, label: int):
    """One cell after another with plain loops: (worst margin, broken, least cost of a flip)."""
    row = [floats.cast(v, model.dtype) for v in row]
    places = []
    for feature in range(model.n_features):
        cuts = cuts_of(model, feature)
        feature_cells = floats.cells(cuts, model.dtype)
        places.append([o.target for o in brute.options(model, threat, feature, row[feature], feature_cells)])
    worst, broken, least = None, False, None
    for point in itertools.product(*places):
        exact = [Fraction(b) for b in model.base]
        for tree in model.trees:
            node = 0
            while tree["feature"][node] >= 0:
                x = point[tree["feature"][node]]
                left = tree.get("missing_left", [False] * 99)[node] if math.isnan(x) else x < tree["threshold"][node]
                node = tree["left"][node] if left else tree["right"][node]
            exact = [e + Fraction(v) for e, v in zip(exact, model.leaf_values(tree, node), strict=True)]
        if model.n_outputs == 1:
            margin = (exact[0] - Fraction(model.cut)) * (1 if label == 1 else -1)
        else:
            margin = exact[label] - max(e for c, e in enumerate(exact) if c != label)
        flips = brute.predict(model, [point])[0][0] != label
        total = brute.distance(row, point, threat)
        if not brute.allowed(row, point, threat, model.dtype):
            worst = margin if worst is None else min(worst, margin)
            broken |= bool(flips)
        if flips:
            least = total if least is None else min(least, total)
    return worst, broken, least


def test_equals_a_slower_oracle():
    """Plain loops over the cells, with Fractions and one prediction a cell, find the same answers."""
    for seed in range(60):
        case = generate.make(seed, max_cells=60, n_rows=1)
        row = [floats.cast(v, case.model.dtype) for v in case.rows[0]]
        for threat in case.threats[:2]:
            truth = case.brute.truth(row, threat)
            worst, broken, least = slowest(case.model, row, threat, truth.label)
            assert (worst, broken) == (truth.worst(), truth.broken()), (seed, threat)
            radius = Decimal("Infinity") if least is None else brute.to_radius(least, threat.norm)
            assert radius == truth.radius() or abs(radius - truth.radius()) <= radius * Decimal(10) ** -45


def test_random_moves_never_beat_it():
    """No random allowed move flips a row said to be robust, and none that flips is nearer than the radius."""
    rng = np.random.default_rng(1)
    robust = 0
    for seed in range(80):
        case = generate.make(seed, n_rows=1)
        row = [floats.cast(v, case.model.dtype) for v in case.rows[0]]
        for threat in case.threats:
            truth = case.brute.truth(row, threat)
            robust += not truth.broken()
            moved = random_moves(rng, case, row, threat)
            flips = brute.predict(case.model, moved)[0] != truth.label
            for other in np.array(moved)[flips]:
                other = [float(v) for v in other]
                assert truth.broken() or brute.allowed(row, other, threat, case.model.dtype), (seed, threat)
                wide = PlainThreat(**{**vars(threat), "eps": math.inf})
                if not brute.allowed(row, other, wide, case.model.dtype):
                    radius = brute.to_radius(brute.distance(row, other, threat), threat.norm)
                    assert radius >= truth.radius() * (1 - Decimal(10) ** -20), (seed, threat)
    assert robust > 50


def random_moves(rng, case, row, threat) -> list[list[float]]:
    """Moves of a few features to places on, beside and away from thresholds, often of about eps."""
    moved = []
    for _ in range(20):
        other = list(row)
        for feature in range(len(row)):
            if rng.random() < 0.5 or math.isnan(row[feature]):
                continue
            cuts = [t for t in cuts_of(case.model, feature) if math.isfinite(t)]
            step = threat.of(feature)[0] * threat.eps * rng.uniform(-1.2, 1.2)
            near = float(rng.choice([*cuts, row[feature] + step]))
            near = floats.cast(near, case.model.dtype)
            other[feature] = near if rng.random() < 0.6 else floats.previous(near, case.model.dtype)
        if all(math.isnan(v) or math.isfinite(v) for v in other):
            moved.append(other)
    return moved


def test_distance_and_rules_of_a_move():
    """`allowed` names each rule that a move breaks, and accepts a tie with the budget."""
    row, dtype = [0.0, 0.0], "float64"
    assert brute.allowed(row, [0.375, 0.5], PlainThreat(2, 0.625), dtype) == ""
    assert "costs" in brute.allowed(row, [0.375, 0.5], PlainThreat(2, 0.6249999), dtype)
    assert "frozen" in brute.allowed(row, [0.1, 0.0], PlainThreat(1, 1.0, frozen=[True, False]), dtype)
    assert "direction" in brute.allowed(row, [-0.1, 0.0], PlainThreat(1, 1.0, direction=[1, 0]), dtype)
    assert "outside" in brute.allowed(row, [0.1, 0.0], PlainThreat(1, 1.0, upper=[0.05, 1.0]), dtype)
    assert "grid" in brute.allowed(row, [0.1, 0.0], PlainThreat(1, 1.0), "float32")
    assert "grid" in brute.allowed(row, [math.inf, 0.0], PlainThreat(0, 1.0), dtype)
    assert brute.allowed([math.nan, 0.0], [math.nan, 0.1], PlainThreat(0, 1.0), dtype) == ""


def test_cases_are_seeded_and_nasty():
    """A seed is a case; together the cases hold ties, broken rows, tied budgets and infinite radii."""
    again = [generate.make(7).model, generate.make(7).model]
    assert again[0] == again[1]
    seen = {"tie": 0, "broken": 0, "robust": 0, "budget tie": 0, "inf": 0, "order matters": 0, "missing": 0}
    for seed in range(150):
        case = generate.make(seed)
        for row, threat in itertools.product(case.rows, case.threats):
            truth = case.brute.truth(row, threat)
            seen["tie"] += truth.worst() == 0
            seen["broken" if truth.broken() else "robust"] += 1
            seen["budget tie"] += truth.worst(-1) != truth.worst(+1)
            seen["inf"] += truth.radius().is_infinite()
            seen["order matters"] += truth.broken() != truth.broken(exact=True)
            seen["missing"] += any(math.isnan(v) for v in row)
    assert min(seen.values()) > 1, seen


def test_float_summation_can_differ_from_exact():
    """1e8 + 1e-9 - 1e8 is 0 in floats and positive exactly: both answers are kept."""
    model = PlainModel([stump(0, 0.5, 1.0, 1e8), stump(0, 0.5, 0.0, 1e-9), stump(0, 0.5, 0.0, -1e8)], 1, base=[0.0])
    truth = Brute(model).truth([0.0], PlainThreat(1, 1.0))
    assert truth.predicted == 1
    assert truth.broken()  # the floats add to 0: class 0
    assert not truth.broken(exact=True)  # the reals add to 1e-9
    assert truth.worst() == Fraction(1e-9)
