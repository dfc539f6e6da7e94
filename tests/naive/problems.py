"""The problem table: small models whose answers are known by hand, usable for every method.

Each entry says for which class the row stands, the exact radius (None: nothing flips) and whether the
threat's eps breaks it. The comments derive the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from .plain import PlainModel, PlainThreat, leaf, nested, stump

INF = math.inf
HALF_DOWN = Fraction(1, 2**54)  # from 0.5 to the float64 just below it


@dataclass
class Problem:
    name: str
    model: PlainModel
    row: list[float]
    threat: PlainThreat
    radius: Fraction | Decimal | None
    broken: bool
    label: int | None = None  # class position; the prediction by default


def _plus(threshold: float, feature: int = 0, weight: float = 1.0) -> dict:
    return stump(feature, threshold, -weight, weight)


def _one(threshold: float = 0.5, **fields) -> PlainModel:
    return PlainModel([_plus(threshold)], 1, **fields)


def _two(**fields) -> PlainModel:
    """Two unit votes on two features, thresholds 0.5: class 1 needs a positive sum."""
    return PlainModel([_plus(0.5, 0), _plus(0.5, 1)], 2, **fields)


def _votes(zero_class: int) -> PlainModel:
    return PlainModel([stump(0, 0.5, 0.0, 1.0), stump(1, 0.5, 0.0, 1.0)], 2, base=[-1.0], zero_class=zero_class)


def _forest() -> PlainModel:
    """Two trees of a forest, probabilities averaged: .5/.5 keeps class 0."""
    return PlainModel(
        [stump(0, 0.5, [0.5, 0.0], [0.0, 0.5]), stump(1, 2.5, [0.5, 0.0], [0.0, 0.5])],
        2,
        n_outputs=2,
        base=[0.0, 0.0],
    )


def _figure_1() -> PlainModel:
    """Three boxes that meet pairwise, each pair inside the ball, but no point of the ball is in all three."""
    left = nested((0, 1.0, 0.0, (0, 3.0, 1.0, 0.0)))  # 1 <= x0 < 3
    up = nested((1, 1.0, 0.0, (1, 3.0, 1.0, 0.0)))  # 1 <= x1 < 3
    deep = nested((2, 1.0, 0.0, (2, 3.0, 1.0, 0.0)))  # 1 <= x2 < 3
    return PlainModel([left, up, deep], 3, base=[-2.5])


def _conflict() -> PlainModel:
    """Each tree has a flipping leaf near the row, on opposite sides of one threshold: never both."""
    return PlainModel([stump(0, 0.5, 1.0, -1.0), stump(0, 0.5, -1.0, 1.0), leaf(0.5)], 1)


def _between_floats() -> PlainModel:
    """Thresholds 0.5 + 1e-10 and 0.5 + 2e-10 enclose no float32 number: the middle leaf is never reached."""
    return PlainModel([nested((0, 0.5 + 1e-10, -1.0, (0, 0.5 + 2e-10, 5.0, -1.0)))], 1, dtype="float32")


def problems() -> list[Problem]:
    out: list[Problem] = []

    def add(name, model, row, threat, radius, broken, label=None):
        out.append(Problem(name, model, row, threat, radius, broken, label))

    # ---- a threshold exactly on the row: the row goes right, the flip is one float to the left
    for p, radius in ((0, Fraction(1)), (1, HALF_DOWN), (2, HALF_DOWN), (INF, HALF_DOWN)):
        eps = 1.0 if p == 0 else float(HALF_DOWN)
        add(f"threshold on x, p={p}", _one(), [0.5], PlainThreat(p, eps), radius, True)
    add("threshold on x, eps 0", _one(), [0.5], PlainThreat(1, 0.0), HALF_DOWN, False)
    add("threshold on x, p=0, eps .999", _one(), [0.5], PlainThreat(0, 0.999), Fraction(1), False)
    add(
        "threshold on x, float32",
        _one(dtype="float32"),
        [0.5],
        PlainThreat(1, 1e-7),
        Fraction(1, 2**25),
        True,
    )
    add("one float below", _one(), [0.5 - 2.0**-54], PlainThreat(INF, float(HALF_DOWN)), HALF_DOWN, True)
    add(
        "the cast lands on the threshold",
        _one(dtype="float32"),
        [0.5 - 1e-12],
        PlainThreat(1, 1e-9),
        Fraction(1, 2**25),
        False,
    )
    tiny = 1.401298464324817e-45
    add("zero, float32", _one(0.0, dtype="float32"), [0.0], PlainThreat(1, tiny), Fraction(tiny), True)
    add(
        "minus zero is zero",
        _one(-0.0, dtype="float32"),
        [-0.0],
        PlainThreat(1, tiny / 2),
        Fraction(tiny),
        False,
    )
    add("1e-35 next to zero", _one(1e-35), [0.0], PlainThreat(INF, 1e-35), Fraction(1e-35), True)
    add("no grid number between", _between_floats(), [0.0], PlainThreat(1, 5.0), None, False)
    add("an infinite threshold", _one(math.inf), [0.0], PlainThreat(1, 1e60), None, False)
    add("nothing below minus infinity", _one(-math.inf), [0.0], PlainThreat(1, 1e60), None, False)

    # ---- ties of votes
    row = [0.25, 0.25]  # sum -1: both must move for a sum of 1; a sum of 0 is the tie
    add("a tie is class 0", _votes(0), row, PlainThreat(1, 0.25), Fraction(1, 2), False)
    add("a tie is class 1", _votes(1), row, PlainThreat(1, 0.25), Fraction(1, 4), True)
    add("a tie keeps class 1", _votes(1), [0.5, 0.75], PlainThreat(0, 1.0), Fraction(2), False)
    add(
        "forest votes .5/.5 keep class 0",
        _forest(),
        [0.25, 0.25],
        PlainThreat(1, 0.25),
        Fraction(5, 2),
        False,
    )
    add("forest votes .5/.5 leave class 1", _forest(), [0.75, 3.0], PlainThreat(0, 1.0), Fraction(1), True)
    tie3 = PlainModel([stump(0, 1.0, [0.0, 1.0, 0.0], [0.0, 1.0, 1.0])], 1, n_outputs=3, base=[0.0] * 3)
    add("a later class does not win a tie", tie3, [0.5], PlainThreat(1, 9.0), None, False)
    tie3b = PlainModel([stump(0, 1.0, [0.0, 1.0, 0.0], [1.0, 1.0, 0.0])], 1, n_outputs=3, base=[0.0] * 3)
    add("an earlier class wins a tie", tie3b, [0.5], PlainThreat(1, 0.5), Fraction(1, 2), True)
    add("a constant tie", PlainModel([leaf(0.0)], 2), [0.0, 0.0], PlainThreat(1, 5.0), None, False)
    add(
        "a cut",
        PlainModel([stump(0, 0.5, 0.0, 0.5)], 1, cut=0.5, zero_class=1),
        [0.25],
        PlainThreat(1, 0.25),
        Fraction(1, 4),
        True,
    )
    add(
        "at the cut, class 0",
        PlainModel([stump(0, 0.5, 0.0, 0.5)], 1, cut=0.5),
        [0.25],
        PlainThreat(1, 9.0),
        None,
        False,
    )

    # ---- budgets met exactly
    add("3-4-5", _two(base=[-1.0]), [0.5 - 3 / 8, 0.0], PlainThreat(2, 0.625), Fraction(5, 8), True)
    add(
        "3-4-5, one float less",
        _two(base=[-1.0]),
        [0.125, 0.0],
        PlainThreat(2, 0.625 - 2.0**-53),
        Fraction(5, 8),
        False,
    )
    add("square roots", _two(base=[-1.0]), [0.25, 0.25], PlainThreat(0.5, 1.0), Decimal(1), True)
    add("l1 sum", _two(base=[-1.0]), [0.25, 0.125], PlainThreat(1, 0.625), Fraction(5, 8), True)
    add("linf is the larger", _two(base=[-1.0]), [0.25, 0.125], PlainThreat(INF, 0.375), Fraction(3, 8), True)
    add("l0 counts", _two(base=[-1.0]), [0.25, 0.125], PlainThreat(0, 2.5), Fraction(2), True)
    # 0.1 + 0.1 + 0.1 is above 0.3, both as floats and as the reals that the floats are
    tenth = PlainModel([_plus(0.1, f) for f in range(3)], 3, base=[-2.0])
    add(".1 + .1 + .1 > .3", tenth, [0.0] * 3, PlainThreat(1, 0.3), 3 * Fraction(0.1), False)
    # as reals 0.7 + 0.2 is 0.89999999999999996669..., the float 0.9 is 0.90000000000000002220...
    pair = PlainModel([_plus(0.7, 0), _plus(0.2, 1)], 2, base=[-1.0])
    add(".7 + .2 < .9", pair, [0.0, 0.0], PlainThreat(1, 0.9), Fraction(0.7) + Fraction(0.2), True)

    # ---- threats
    add("frozen", _one(), [0.25], PlainThreat(1, 9.0, frozen=[True]), None, False)
    add("frozen partner", _votes(1), row, PlainThreat(1, 0.25, frozen=[True, False]), Fraction(1, 4), True)
    add("direction down", _one(), [0.25], PlainThreat(1, 9.0, direction=[-1]), None, False)
    add("direction up", _one(), [0.25], PlainThreat(1, 0.25, direction=[1]), Fraction(1, 4), True)
    add("range ends before", _one(), [0.25], PlainThreat(1, 9.0, upper=[0.4999]), None, False)
    add("range ends on the threshold", _one(), [0.25], PlainThreat(1, 9.0, upper=[0.5]), Fraction(1, 4), True)
    add(
        "outside the range, may stay",
        _one(),
        [2.0],
        PlainThreat(1, 9.0, lower=[0.5], upper=[1.0]),
        None,
        False,
    )
    # class 1 at 2.0; the flip side is below 0.5, moves land in [0, 0.25]
    add(
        "outside the range, moves land inside",
        _one(),
        [2.0],
        PlainThreat(1, 1.75, lower=[0.0], upper=[0.25]),
        Fraction(7, 4),
        True,
    )
    add("scale", _one(), [0.25], PlainThreat(1, 0.0625, scale=[4.0]), Fraction(1, 16), True)
    add("scale is ignored at p = 0", _one(), [0.25], PlainThreat(0, 1.0, scale=[1e-3]), Fraction(1), True)
    add(
        "scale, 3-4-5",
        _two(base=[-1.0]),
        [-2.5, 0.0],
        PlainThreat(2, 0.625, scale=[8.0, 1.0]),
        Fraction(5, 8),
        True,
    )

    # ---- several trees
    # every pair is reached within 2 of the row; all three cost 3 at p = 1
    add("figure 1", _figure_1(), [0.0] * 3, PlainThreat(1, 2.0), Fraction(3), False)
    add("figure 1, linf", _figure_1(), [0.0] * 3, PlainThreat(INF, 1.0), Fraction(1), True)
    add("trees in conflict", _conflict(), [0.25], PlainThreat(INF, 5.0), None, False)
    thrice = PlainModel([_plus(0.5), _plus(0.5), _plus(0.5), leaf(-2.0)], 1)
    add("one move, three trees", thrice, [0.25], PlainThreat(1, 0.25), Fraction(1, 4), True)
    # the path contradicts itself: x < 0.25 and then x >= 0.5
    dead = PlainModel([nested((0, 0.25, (0, 0.5, -1.0, 9.0), -1.0))], 1)
    add("an unreachable leaf", dead, [0.0], PlainThreat(1, 9.0), None, False)
    nan = math.nan
    blind = _two(base=[1.0], accepts_missing=True)
    blind.trees[0]["missing_left"] = [True, False, False]
    # the missing vote is -1, the other +1, base 1: class 1; only feature 1 can move
    add("missing is frozen", blind, [nan, 0.75], PlainThreat(1, 0.26), Fraction(1, 4) + HALF_DOWN, True)
    add("misclassified", _one(), [0.75], PlainThreat(1, 0.0), Fraction(0), True, label=0)
    add("a constant model", PlainModel([], 2, base=[1.0]), [0.0, 0.0], PlainThreat(2, 3.0), None, False)
    return out
