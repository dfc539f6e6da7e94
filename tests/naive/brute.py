"""Brute force over every cell of a small ensemble: the exact worst-case margin and the exact minimal radius.

All cells (the product over the used features) are listed; nothing is bounded, relaxed or searched. Leaves are
added exactly (integers over a common power of two) and, separately, as the model's own float summation adds
them. Costs are rationals for p = 0, inf and whole p, else decimals of 120 digits. Exponential, for tests only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from .floats import at_or_above, at_or_below, cast, cells
from .plain import PlainModel, PlainThreat

DIGITS = 120
TIE = Decimal(10) ** -105  # decimals closer than this (relative) are taken as equal


@dataclass
class Option:
    """One place where a feature may be: the cell's number, the nearest allowed point and how far it is."""

    cell: int
    target: float
    distance: Fraction
    moved: bool


class Table:
    """Scores of every cell of a model, for one set of missing features."""

    def __init__(self, model: PlainModel, missing: frozenset[int] = frozenset()):
        self.model, self.missing = model, missing
        cuts: dict[int, set[float]] = {}
        for tree in model.trees:
            for feature, threshold in zip(tree["feature"], tree["threshold"], strict=True):
                if feature >= 0:
                    cuts.setdefault(feature, set()).add(threshold)
        self.features = sorted(cuts)
        self.cells = [[(math.nan, math.nan)] if f in missing else cells(cuts[f], model.dtype) for f in self.features]
        self.shape = tuple(len(c) for c in self.cells)
        self.size = math.prod(self.shape)
        self._add_leaves()

    def _add_leaves(self) -> None:
        model = self.model
        points = np.zeros((self.size, model.n_features))
        for axis, feature in enumerate(self.features):
            column = np.array([low for low, _ in self.cells[axis]])
            along = [1] * len(self.shape)
            along[axis] = -1
            points[:, feature] = np.broadcast_to(column.reshape(along), self.shape).reshape(-1)
        values = [
            np.array([model.leaf_values(tree, n) for n in range(len(tree["feature"]))], dtype=np.float64)
            for tree in model.trees
        ]
        base = np.array(model.base, dtype=np.float64)
        # every float is a whole multiple of 2 ** -shift: exact sums are sums of whole numbers
        everything = [base, np.array([model.cut]), *values]
        self.shift = max(Fraction(v).denominator.bit_length() - 1 for part in everything for v in part.flat)
        whole = np.vectorize(lambda v: int(Fraction(v) * 2**self.shift), otypes=[object])
        kind = np.dtype(model.sum_dtype).type  # only the model's own sum rounds the leaves to it
        self.exact = np.tile(whole(base), (self.size, 1))
        self.library = np.tile(base.astype(kind), (self.size, 1))
        for tree, value in zip(model.trees, values, strict=True):
            reached = leaves(tree, points)
            self.exact = self.exact + whole(value)[reached]
            self.library = self.library + value.astype(kind)[reached]
        self.library_class = decide(model, self.library.astype(np.float64))

    def margin(self, label: int) -> np.ndarray:
        """Exact f_label - best other score of every cell, as whole numbers over 2 ** shift."""
        if self.model.n_outputs == 1:
            signed = self.exact[:, 0] - int(Fraction(self.model.cut) * 2**self.shift)
            return signed if label == 1 else -signed
        others = np.delete(self.exact, label, axis=1)
        return self.exact[:, label] - others.max(axis=1)

    def exact_flips(self, label: int) -> np.ndarray:
        """Cells where the exact scores are not decided for `label`."""
        margin = self.margin(label)
        if self.model.n_outputs == 1:
            tie_flips = self.model.zero_class != label
            return np.array([m < 0 or (m == 0 and tie_flips) for m in margin], dtype=bool)
        flips = np.array([m < 0 for m in margin], dtype=bool)
        for other in range(label):  # an earlier class wins a tie
            flips |= (self.exact[:, other] == self.exact[:, label]).astype(bool)
        return flips

    def as_fraction(self, whole: int) -> Fraction:
        return Fraction(int(whole), 2**self.shift)


def leaves(tree: dict, points: np.ndarray) -> np.ndarray:
    """The leaf that each point reaches."""
    feature, threshold = np.array(tree["feature"]), np.array(tree["threshold"], dtype=np.float64)
    left, right = np.array(tree["left"]), np.array(tree["right"])
    missing_left = np.array(tree.get("missing_left", [False] * len(feature)))
    node = np.zeros(len(points), dtype=int)
    while True:
        inner = feature[node] >= 0
        if not inner.any():
            return node
        x = points[np.arange(len(points)), np.maximum(feature[node], 0)]
        go_left = np.where(np.isnan(x), missing_left[node], x < threshold[node])
        node = np.where(inner, np.where(go_left, left[node], right[node]), node)


def decide(model: PlainModel, scores: np.ndarray) -> np.ndarray:
    """Class positions from scores: above the cut is 1, at it `zero_class`; several outputs: first maximum."""
    if model.n_outputs > 1:
        return np.array([int(list(row).index(max(row))) for row in scores])
    return np.array([model.zero_class if s == model.cut else int(s > model.cut) for s in scores[:, 0]])


def predict(model: PlainModel, rows) -> tuple[np.ndarray, np.ndarray]:
    """Class positions and scores of rows, by the model's own float summation."""
    points = np.array([[cast(v, model.dtype) for v in row] for row in rows], dtype=np.float64)
    kind = np.dtype(model.sum_dtype).type
    total = np.tile(np.array(model.base, dtype=np.float64).astype(kind), (len(points), 1))
    for tree in model.trees:
        value = np.array([model.leaf_values(tree, n) for n in range(len(tree["feature"]))], dtype=np.float64)
        total = total + value.astype(kind)[leaves(tree, points)]
    scores = total.astype(np.float64)
    return decide(model, scores), scores


def options(model: PlainModel, threat: PlainThreat, feature: int, x: float, feature_cells) -> list[Option]:
    """Where the threat lets a feature be, nearest point of each cell; staying is always allowed."""
    if math.isnan(x):
        return [Option(0, x, Fraction(0), False)]
    _, frozen, lower, upper, direction = threat.of(feature)
    found = []
    for number, (low, high) in enumerate(feature_cells):
        if low <= x <= high:
            found.append(Option(number, x, Fraction(0), False))
            continue
        right = low > x
        low = max(low, at_or_above(lower, model.dtype))
        high = min(high, at_or_below(upper, model.dtype))
        if frozen or low > high or (direction == 1 and not right) or (direction == -1 and right):
            continue
        target = low if right else high
        found.append(Option(number, target, abs(Fraction(target) - Fraction(x)), True))
    return found


def cost(distance: Fraction, moved: bool, scale: float, p: float):
    """What one feature's move costs: 1 at p = 0, |d / scale| at p = inf, else its p-th power."""
    if p == 0:
        return Fraction(int(moved))
    ratio = distance / Fraction(scale)
    if p == math.inf:
        return ratio
    if p == int(p):
        return ratio ** int(p)
    with localcontext() as context:
        context.prec = DIGITS
        if ratio == 0:
            return Decimal(0)
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)) ** Decimal(p)


def budget(eps: float, p: float):
    """What may be spent in the units of `cost`."""
    if eps == math.inf:
        eps = 10**2000
    if p == 0:
        return Fraction(math.floor(eps))
    return cost(Fraction(eps), True, 1.0, p)


def to_radius(total, p: float) -> Decimal:
    """From a total cost to a distance, 120 digits."""
    with localcontext() as context:
        context.prec = DIGITS
        value = total if isinstance(total, Decimal) else Decimal(total.numerator) / Decimal(total.denominator)
        if p in (0, math.inf) or value == 0:
            return value
        return value ** (Decimal(1) / Decimal(p))


def distance(row, other, threat: PlainThreat):
    """Cost, in the units of `budget`, between two rows of grid numbers; NaN to NaN costs nothing."""
    parts = []
    for feature, (a, b) in enumerate(zip(row, other, strict=True)):
        if math.isnan(a) and math.isnan(b):
            continue
        move = abs(Fraction(b) - Fraction(a))
        parts.append(cost(move, move != 0, threat.of(feature)[0], threat.norm))
    return total_cost(parts, threat.norm)


def total_cost(parts, p: float):
    if p == math.inf:
        return max(parts, default=Fraction(0))
    with localcontext() as context:
        context.prec = DIGITS
        return sum(parts, start=Decimal(0) if p not in (0,) and p != int(p) else Fraction(0))


def within(total, limit) -> bool:
    """``total <= limit``: exactly for rationals, with decimals that agree in 105 digits count as equal."""
    if isinstance(total, Decimal) or isinstance(limit, Decimal):
        with localcontext() as context:
            context.prec = DIGITS
            return total <= limit * (1 + TIE)
    return total <= limit


def allowed(row, other, threat: PlainThreat, dtype: str) -> str:
    """Why the threat does not allow moving `row` (grid numbers) to `other`; empty if it does."""
    for feature, (a, b) in enumerate(zip(row, other, strict=True)):
        _, frozen, lower, upper, direction = threat.of(feature)
        if math.isnan(a) or math.isnan(b):
            if math.isnan(a) != math.isnan(b):
                return f"feature {feature} moves between NaN and a number"
            continue
        if not math.isfinite(b) or cast(b, dtype) != b:
            return f"feature {feature}: {b!r} is not a finite number of the {dtype} grid"
        if a == b:
            continue
        if frozen:
            return f"feature {feature} is frozen and moves from {a!r} to {b!r}"
        if not lower <= b <= upper:
            return f"feature {feature} lands at {b!r}, outside [{lower}, {upper}]"
        if (direction == 1 and b < a) or (direction == -1 and b > a):
            return f"feature {feature} moves from {a!r} to {b!r} against its direction {direction}"
    moved = [f for f, (a, b) in enumerate(zip(row, other, strict=True)) if a != b and not math.isnan(a)]
    if len(moved) == 1 and threat.norm > 0 and threat.eps < math.inf:  # no power is needed
        ratio = abs(Fraction(other[moved[0]]) - Fraction(row[moved[0]])) / Fraction(threat.of(moved[0])[0])
        return "" if ratio <= Fraction(threat.eps) else f"the move is {float(ratio)!r} where {threat.eps!r} is allowed"
    total, limit = distance(row, other, threat), budget(threat.eps, threat.norm)
    if not within(total, limit):
        return f"the move costs {total} where {limit} may be spent"
    return ""


@dataclass
class Truth:
    """What brute force knows of one row under one threat, for the class at position `label`.

    All allowed cells with their cost, exact margin, and whether they are predicted otherwise (by the
    model's own summation, and by exact sums).
    """

    threat: PlainThreat
    label: int
    predicted: int
    total: np.ndarray  # costs, in units of 1 / unit
    unit: int
    margin: np.ndarray  # whole numbers over 2 ** shift
    shift: int
    single: np.ndarray  # the only moved feature's distance / scale, -1 where none or several moved
    flips: np.ndarray  # by the model's own summation
    flips_exact: np.ndarray

    def inside(self, hair: int = 0) -> np.ndarray:
        """Cells within the budget; `hair` -1 and +1: shrunk and grown by 1e-9 of itself."""
        limit = budget(self.threat.eps, self.threat.norm)
        if self.threat.norm == 0:
            hair = 0  # whole numbers are never a hair apart
        if isinstance(limit, Decimal):
            with localcontext() as context:
                context.prec = DIGITS
                inside = (self.total <= limit * (1 + Decimal(hair) / 10**9) * (1 + TIE)).astype(bool)
            if hair == 0:  # one move alone is compared without its power
                alone = (self.single >= 0).astype(bool)
                inside[alone] = (self.single[alone] <= Fraction(self.threat.eps)).astype(bool)
            return inside
        return (self.total <= math.floor(limit * (1 + Fraction(hair, 10**9)) * self.unit)).astype(bool)

    def worst(self, hair: int = 0) -> Fraction:
        """Exact worst-case margin within the budget."""
        return Fraction(int(min(self.margin[self.inside(hair)])), 2**self.shift)

    def broken(self, hair: int = 0, exact: bool = False) -> bool:
        """Whether some cell within the budget is predicted otherwise."""
        flips = self.flips_exact if exact else self.flips
        return self.predicted != self.label or bool(flips[self.inside(hair)].any())

    def radius(self, exact: bool = False) -> Decimal:
        """Distance of the nearest cell predicted otherwise; Infinity if there is none."""
        return self._nearest(self.flips_exact if exact else self.flips)

    def radius_below(self, margin: Fraction) -> Decimal:
        """Distance of the nearest cell whose exact margin is at most `margin`."""
        return self._nearest((self.margin <= math.floor(margin * 2**self.shift)).astype(bool))

    def _nearest(self, chosen: np.ndarray) -> Decimal:
        if self.predicted != self.label:
            return Decimal(0)
        if not chosen.any():
            return Decimal("Infinity")
        least = min(self.total[chosen])
        return to_radius(least if isinstance(least, Decimal) else Fraction(int(least), self.unit), self.threat.norm)


class Brute:
    """Brute force for one model; tables of cells are kept between rows."""

    def __init__(self, model: PlainModel):
        self.model = model
        self._tables: dict[frozenset[int], Table] = {}

    def table(self, row) -> Table:
        missing = frozenset(f for f, v in enumerate(row) if math.isnan(v))
        if missing not in self._tables:
            self._tables[missing] = Table(self.model, missing)
        return self._tables[missing]

    def costs(self, row, threat: PlainThreat) -> tuple[np.ndarray, list, np.ndarray]:
        """Positions (in the table) of the allowed cells, each feature's costs, and what a cell's only move is."""
        table = self.table(row)
        position = np.zeros(1, dtype=np.int64)
        parts: list[np.ndarray] = []
        single = np.zeros(1, dtype=object)
        moves = np.zeros(1, dtype=np.int64)
        for axis, feature in enumerate(table.features):
            choice = options(self.model, threat, feature, row[feature], table.cells[axis])
            scale = threat.of(feature)[0]
            price = [cost(o.distance, o.moved, scale, threat.norm) for o in choice]
            place = np.array([o.cell for o in choice], dtype=np.int64)
            position = (position[:, None] * table.shape[axis] + place).reshape(-1)
            parts.append(np.array(price, dtype=object))
            ratio = np.array([o.distance / Fraction(scale) for o in choice], dtype=object)
            moves = (moves[:, None] + np.array([o.moved for o in choice])).reshape(-1)
            single = np.maximum(single[:, None], ratio).reshape(-1)
        single[moves != 1] = -1
        return position, parts, single

    def some_distance(self, row, threat: PlainThreat, rng) -> Decimal:
        """The distance of a random allowed cell, or of the nearest one predicted otherwise."""
        position, parts, _ = self.costs(row, threat)
        total, unit = spread(parts, threat.norm)
        table = self.table(row)
        flips = table.library_class[position] != predict(self.model, [row])[0][0]
        if flips.any() and rng.random() < 0.6:
            value = min(total[flips])
        else:
            positive = total[(total > 0).astype(bool)]
            total = positive if len(positive) else total
            value = total[int(rng.integers(len(total)))]
        return to_radius(value if isinstance(value, Decimal) else Fraction(int(value), unit), threat.norm)

    def truth(self, row, threat: PlainThreat, label: int | None = None) -> Truth:
        """Everything about one row; `label` is a class position, the model's prediction by default."""
        row = [cast(v, self.model.dtype) for v in row]
        table = self.table(row)
        position, parts, single = self.costs(row, threat)
        total, unit = spread(parts, threat.norm)
        predicted = int(predict(self.model, [row])[0][0])
        label = predicted if label is None else label
        return Truth(
            threat=threat,
            label=label,
            predicted=predicted,
            total=total,
            unit=unit,
            margin=table.margin(label)[position],
            shift=table.shift,
            single=single,
            flips=table.library_class[position] != label,
            flips_exact=table.exact_flips(label)[position],
        )


def spread(parts: list[np.ndarray], p: float) -> tuple[np.ndarray, int]:
    """Total cost of every combination of options; rationals become whole numbers over one denominator."""
    flat = [value for part in parts for value in part]
    if any(isinstance(value, Decimal) for value in flat):
        unit = 1
        start: object = Decimal(0)
    else:
        unit = math.lcm(*(value.denominator for value in flat)) if flat else 1
        parts = [np.array([int(value * unit) for value in part], dtype=object) for part in parts]
        start = 0
    total = np.array([start], dtype=object)
    with localcontext() as context:
        context.prec = DIGITS
        for part in parts:
            grid = np.maximum if p == math.inf else np.add
            total = grid(total[:, None], part).reshape(-1)
    return total, unit
