"""Seeded generator of nasty little problems: one number in, the same model, rows and threats out.

Everything that has ever broken a verifier is likely here: thresholds on the row and one float beside it,
duplicate and denormal thresholds, -0.0, ties of votes, eps equal to an attained distance, unreachable leaves,
cells without a grid point, leaf values that cancel, frozen, ranged and one-sided features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from .brute import Brute, cast, predict
from .floats import following, largest, previous
from .plain import PlainModel, PlainThreat, leaf

NORMS = (0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf)
KINDS = ("stumps", "staircases", "tree", "ensemble")
THRESHOLDS = ("eighths", "tenths", "normal", "ulps", "zeros", "mixed", "wide")
VALUES = ("votes", "eighths", "tenths", "normal", "cancel", "float32")


@dataclass
class Case:
    """One model, some rows, and some threats for each of them."""

    seed: int
    kind: str
    model: PlainModel
    rows: list[list[float]]
    threats: list[PlainThreat] = field(default_factory=list)
    brute: Brute | None = None


def make(seed: int, kinds=KINDS, n_rows: int = 2, norms=NORMS, max_cells: int = 1500) -> Case:
    """The case of this seed."""
    rng = np.random.default_rng([seed, len(kinds)])
    kind = str(rng.choice(kinds))
    model, pools = make_model(rng, kind, max_cells)
    rows = [make_row(rng, model, pools) for _ in range(n_rows)]
    case = Case(seed, kind, model, rows, brute=Brute(model))
    chosen = norms if len(norms) <= 3 else rng.choice(norms, size=3, replace=False)
    case.threats = [make_threat(rng, case, float(norm)) for norm in chosen]
    return case


# ---------------------------------------------------------------- models


def make_model(rng, kind: str, max_cells: int = 1500) -> tuple[PlainModel, dict[int, list[float]]]:
    dtype = str(rng.choice(["float32", "float64"]))
    n_features = int(rng.choice([1, 2, 2, 3, 3, 4, 4, 5, 6]))
    n_outputs = int(rng.choice([1, 1, 1, 2, 3, 4]))
    pools = make_pools(rng, n_features, dtype, max_cells)
    value = leaf_maker(rng, n_outputs)
    n_trees = {"stumps": int(rng.integers(1, 13)), "staircases": int(rng.integers(1, 7)), "tree": 1}.get(
        kind, int(rng.integers(2, 7))
    )
    trees = []
    for _ in range(n_trees):
        if kind != "tree" and rng.random() < 0.03:
            trees.append(leaf(value()))
            continue
        depth = 1 if kind == "stumps" else int(rng.integers(1, 5))
        only = int(rng.integers(n_features)) if kind in ("stumps", "staircases") else None
        trees.append(grow(rng, depth, pools, value, only))
    if rng.random() < 0.25:  # the same trees again, sometimes upside down: ties, and exact cancelling
        again = [dict(tree) for tree in trees[: 6 if kind == "stumps" else 2]]
        if kind != "tree":
            trees += again
    style = rng.choice(["zero", "vote", "value", "level", "level"])
    if style == "zero":
        base = [0.0] * n_outputs
    elif style == "vote":
        base = [float(rng.integers(-2, 3)) for _ in range(n_outputs)]
    elif style == "value":
        first = value()
        base = first if isinstance(first, list) else [first]
    else:  # some cell ends in a tie, so that many decisions hang on little
        plain = PlainModel(trees, n_features, n_outputs, [0.0] * n_outputs, dtype=dtype)
        point = [float(rng.choice(pools[f] or [0.0])) for f in range(n_features)]
        base = [-float(score) for score in predict(plain, [point])[1][0]]
    missing = bool(rng.random() < 0.25)
    if missing:
        for tree in trees:
            tree["missing_left"] = [bool(b) for b in rng.random(len(tree["feature"])) < 0.5]
    model = PlainModel(
        trees=trees,
        n_features=n_features,
        n_outputs=n_outputs,
        base=base,
        zero_class=int(rng.integers(2)),
        cut=float(rng.choice([0.0, 0.0, 0.0, 0.5, 0.1])) if n_outputs == 1 else 0.0,
        dtype=dtype,
        sum_dtype=str(rng.choice(["float64", "float64", "float32"])),
        accepts_missing=missing,
    )
    return model, pools


def make_pools(rng, n_features: int, dtype: str, max_cells: int) -> dict[int, list[float]]:
    """A few thresholds a feature to draw from, so that trees share them and the cells stay few."""
    pools: dict[int, list[float]] = {}
    cells = 1
    for feature in range(n_features):
        style = str(rng.choice(THRESHOLDS))
        room = max(1, min(6, max_cells // cells - 1))
        count = int(rng.integers(1, room + 1))
        pool = sorted({float(t) + 0.0 for t in threshold_pool(rng, style, dtype)})
        rng.shuffle(pool)
        pools[feature] = pool[:count]
        if rng.random() < 0.1 and 0.0 in pools[feature]:
            pools[feature][pools[feature].index(0.0)] = -0.0
        cells *= len(pools[feature]) + 1
        if cells * 2 > max_cells:
            break
    for feature in range(len(pools), n_features):
        pools[feature] = []
    return pools


def threshold_pool(rng, style: str, dtype: str) -> list[float]:
    if style == "eighths":
        return [float(k) / 8 for k in rng.integers(-8, 9, size=8)]
    if style == "tenths":
        return [float(k) / 10 for k in rng.integers(-10, 11, size=8)]
    if style == "normal":
        return [float(v) for v in rng.normal(size=6)]
    if style == "ulps":  # neighbours on the model's grid, and doubles between two float32 numbers
        start = cast(float(rng.choice([0.3, 0.5, 1.0, -0.7])), dtype)
        up, down = following(start, dtype), previous(start, dtype)
        return [start, up, down, following(up, dtype), (start + up) / 2, start + (up - start) / 4]
    if style == "zeros":
        tiny = 1.401298464324817e-45 if dtype == "float32" else 5e-324
        return [0.0, 1e-35, -1e-35, tiny, -tiny, 1.0000000180025095e-35, 0.25, -0.25]
    if style == "wide":
        top = largest(dtype)  # infinite thresholds send every number one way; below -top lies nothing
        return [1e30, -1e30, 3e38, 1e-3, 1e6, 0.1, 16777216.0, 16777217.0, top, -top, math.inf, -math.inf]
    return [0.0, 0.5, float(rng.integers(3)), float(np.float32(0.1)), 0.1, 1 / 3, float(rng.normal())]


def leaf_maker(rng, n_outputs: int):
    """A function that draws leaf values: a number, or one a class."""
    style = str(rng.choice(VALUES))

    def number() -> float:
        if style == "votes":
            return float(rng.choice([-1.0, 0.0, 1.0]))
        if style == "eighths":
            return float(rng.integers(-8, 9)) / 8
        if style == "tenths":
            return float(rng.integers(-10, 11)) / 10
        if style == "cancel":
            return float(rng.choice([1e8, -1e8, 1e-8, -1e-8, 0.1, -0.1, 0.3, 1.0]))
        if style == "float32":
            return float(np.float32(rng.normal()))
        return float(rng.normal())

    if n_outputs == 1:
        return number
    one_hot = rng.random() < 0.3

    def vector() -> list[float]:
        if one_hot:  # one class a tree, as boosting libraries write multiclass models
            out = [0.0] * n_outputs
            out[int(rng.integers(n_outputs))] = number()
            return out
        return [number() for _ in range(n_outputs)]

    return vector


def grow(rng, depth: int, pools, value, only: int | None) -> dict:
    """A random tree; splits on a path may contradict each other, so some leaves cannot be reached."""
    tree: dict[str, list] = {"feature": [], "threshold": [], "left": [], "right": [], "value": []}
    usable = [f for f, pool in pools.items() if pool and only in (None, f)]
    sample = value()
    blank = [0.0] * len(sample) if isinstance(sample, list) else 0.0

    def add(level: int) -> int:
        here = len(tree["feature"])
        for column in tree:
            tree[column].append({"threshold": 0.0, "value": blank}.get(column, -1))
        if not usable or level == depth or (level > 0 and rng.random() < 0.2):
            tree["value"][here] = value()
            return here
        feature = int(rng.choice(usable))
        tree["feature"][here] = feature
        tree["threshold"][here] = float(rng.choice(pools[feature]))
        tree["left"][here] = add(level + 1)
        tree["right"][here] = add(level + 1)
        return here

    add(0)
    return tree


# ---------------------------------------------------------------- rows


def make_row(rng, model: PlainModel, pools) -> list[float]:
    row = []
    for feature in range(model.n_features):
        pool = pools[feature] or [0.5]
        threshold = float(rng.choice(pool))
        how = int(rng.integers(8))
        if how == 0:
            x = threshold
        elif how == 1:
            x = previous(cast(threshold, model.dtype), model.dtype)
        elif how == 2:
            x = following(cast(threshold, model.dtype), model.dtype)
        elif how == 3:
            x = float(rng.integers(-8, 9)) / 8
        elif how == 4:
            x = float(rng.integers(-10, 11)) / 10  # not on the float32 grid: the cast moves it
        elif how == 5:
            x = float(rng.choice([0.0, -0.0, 1.0, 0.5]))
        elif how == 6:
            x = threshold + float(rng.normal()) * 0.1
        else:
            x = float(rng.normal())
        if abs(x) > largest(model.dtype):
            x = 0.25
        if model.accepts_missing and rng.random() < 0.15:
            x = math.nan
        row.append(x)
    return row


# ---------------------------------------------------------------- threats


def make_threat(rng, case: Case, norm: float) -> PlainThreat:
    threat = PlainThreat(norm=norm)
    d = case.model.n_features
    if rng.random() < 0.4:
        choices = [0.5, 1.0, 2.0, 0.1, 3.0, float(rng.uniform(0.2, 4))]
        threat.scale = [float(rng.choice(choices)) for _ in range(d)]
    if rng.random() < 0.3:
        threat.frozen = [bool(b) for b in rng.random(d) < 0.3]
    if rng.random() < 0.3:
        threat.direction = [int(v) for v in rng.choice([-1, 0, 1], size=d)]
    if rng.random() < 0.3:
        ends = [sorted((range_end(rng, case, f), range_end(rng, case, f))) for f in range(d)]
        threat.lower = [low if rng.random() < 0.8 else -math.inf for low, _ in ends]
        threat.upper = [high if rng.random() < 0.8 else math.inf for _, high in ends]
    threat.eps = make_eps(rng, case, threat)
    return threat


def range_end(rng, case: Case, feature: int) -> float:
    """Ends of ranges lie on thresholds, on rows, between grid numbers, anywhere."""
    cuts = [
        t
        for tree in case.model.trees
        for f, t in zip(tree["feature"], tree["threshold"], strict=True)
        if f == feature and abs(t) < 1e20
    ]
    here = [row[feature] for row in case.rows if not math.isnan(row[feature])]
    choices = [0.0, 1.0, -1.0, 0.1, float(rng.normal()), *cuts[:3], *here]
    return float(choices[int(rng.integers(len(choices)))])


def make_eps(rng, case: Case, threat: PlainThreat) -> float:
    """0, a usual number, or exactly (or one float beside) the distance of some cell from some row."""
    if threat.norm == 0:
        return float(rng.choice([0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 0.999, 1.5, 6.0]))
    if rng.random() < 0.08:
        return 0.0
    if rng.random() < 0.25:
        return float(rng.choice([0.1, 0.25, 0.3, 0.5, 1.0, 2.0, float(rng.uniform(0, 1.5))]))
    row = [cast(v, case.model.dtype) for v in case.rows[int(rng.integers(len(case.rows)))]]
    radius = case.brute.some_distance(row, threat, rng)
    eps = float(min(radius, Decimal(10) ** 300))
    turn = int(rng.integers(4))
    if turn == 1:
        eps = float(np.nextafter(eps, np.inf))
    elif turn == 2:
        eps = max(0.0, float(np.nextafter(eps, -np.inf)))
    allowed = eps == 0 or 1e-60 <= eps <= 1e60  # the package's stated limits of eps
    return eps if allowed else float(rng.choice([0.0, 1e-60, 1e60]))
