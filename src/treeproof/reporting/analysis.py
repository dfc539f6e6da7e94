"""What a report says beyond the averages: curves, fragile rows, features that adversaries use, classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..results import Status


@dataclass(frozen=True)
class Curve:
    """Error shares as steps over eps: the true robust error lies between `attack` and `verified`."""

    eps: np.ndarray
    attack: np.ndarray
    verified: np.ndarray

    @property
    def exact(self) -> bool:
        return bool(np.all(self.attack == self.verified))


def error_curve(radii, end: float | None = None, most: int = 1500) -> Curve:
    """The certified-error curve from radii, with a step at each radius from 0 to `end` (at `most` steps, evenly)."""
    end = curve_end(radii) if end is None else end
    # where a radius is exact its two bounds differ by rounding only: one step, not a band of a hair's breadth
    upper = np.where(radii.exact, radii.lower, radii.upper)
    if radii.threat.norm == 0:
        eps = np.arange(0, int(np.ceil(end)) + 1.0)
    else:
        bounds = np.concatenate([radii.lower, upper])
        eps = np.unique(np.concatenate([[0.0], bounds[(bounds > 0) & (bounds < end)], [end]]))
        if len(eps) > most:
            eps = np.linspace(0, end, most)
    attack, verified = (
        np.searchsorted(np.sort(bound), eps, side="right") / len(radii) for bound in (upper, radii.lower)
    )
    return Curve(eps, attack, verified)


def curve_end(radii, eps: float = 0.0) -> float:
    """Where the interesting part of a curve ends: past eps, and past most finite radii."""
    finite = radii.upper[np.isfinite(radii.upper) & (radii.upper > 0)]
    end = float(np.quantile(finite, 0.97)) * 1.05 if len(finite) else 0.0
    if 0 < eps < np.inf:
        end = max(end, 1.5 * eps) if end < 20 * eps else 4 * eps
    if np.isfinite(radii.max_radius):
        end = min(end, radii.max_radius) if end else radii.max_radius
    if radii.threat.norm == 0:
        return float(max(2, np.ceil(end)))
    return end or 1.0


@dataclass(frozen=True)
class ClassLine:
    """One class of the per-class table."""

    label: str
    rows: int
    clean: float | None
    attack: float
    verified: float
    median_radius: float | None


def class_lines(certificates, radii=None) -> list[ClassLine]:
    """Errors by true class, or by predicted class where there are no labels."""
    groups = certificates.predicted if certificates.y is None else certificates.y
    lines = []
    for label in certificates.classes:
        rows = groups == label
        if not rows.any():
            continue
        status = certificates.status[rows]
        clean = None if certificates.correct is None else float(np.mean(~certificates.correct[rows]))
        middle = None
        if radii is not None and len(radii) == len(certificates):
            middle = float(np.quantile(radii.lower[rows], 0.5, method="lower"))
        lines.append(
            ClassLine(
                str(label),
                int(rows.sum()),
                clean,
                float(np.mean(status == Status.BROKEN)),
                float(np.mean(status != Status.ROBUST)),
                middle,
            )
        )
    return lines


@dataclass(frozen=True)
class FeatureUse:
    """How often witnesses move a feature, and by how much."""

    feature: int
    count: int
    share: float
    mean_move: float
    up: int


def feature_uses(results, scaling_span=None) -> list[FeatureUse]:
    """The features that witnesses move, most used first (rows already misclassified do not count)."""
    rows = moved_rows(results)
    counts: dict[int, list[float]] = {}
    for row in rows:
        columns, values = results.witnesses.changes(row)
        before = results.X[row, columns].astype(results.dtype).astype(float)
        for j, move in zip(columns.tolist(), (values - before).tolist(), strict=True):
            counts.setdefault(j, []).append(move * (1.0 if scaling_span is None else float(scaling_span[j])))
    uses = [
        FeatureUse(j, len(moves), len(moves) / len(rows), float(np.mean(np.abs(moves))), sum(m > 0 for m in moves))
        for j, moves in counts.items()
    ]
    return sorted(uses, key=lambda use: (-use.count, use.feature))


def moved_rows(results) -> np.ndarray:
    """Rows whose witness changes something."""
    return np.flatnonzero(results.witnesses.present & (np.diff(results.witnesses.offsets) > 0))


@dataclass(frozen=True)
class Move:
    """One feature of a witness, in the data's own units."""

    feature: int
    before: float
    after: float
    share: float


@dataclass(frozen=True)
class Fragile:
    """A row that little suffices to flip."""

    row: int
    label: str | None
    predicted: str
    becomes: str
    distance: float
    moves: list[Move]
    alike: int = 0


def fragile_rows(results, model, count: int = 6, scaling=None) -> list[Fragile]:
    """The rows with the nearest witnesses, misclassified rows left out; moves in the data's own units.

    Rows that flip by the very same moves are told once, with how many more there are (`alike`).
    """
    rows = moved_rows(results)
    if len(rows) == 0:
        return []
    X = model.cast(np.asarray(results.X))
    resolved = results.threat.resolve(model)
    far = np.array([resolved.distance(*_move(results, X, row)) for row in rows])
    same: dict[tuple, list[int]] = {}  # rows by what moves, nearest first
    for place in np.argsort(far, kind="stable").tolist():
        row = int(rows[place])
        key = (str(results.predicted[row]), *(part.tobytes() for part in _move(results, X, row)))
        same.setdefault(key, []).append(place)
    return [
        _fragile(results, model, X, int(rows[places[0]]), float(far[places[0]]), len(places) - 1, resolved, scaling)
        for places in list(same.values())[:count]
    ]


def _fragile(results, model, X, row: int, distance: float, alike: int, resolved, scaling) -> Fragile:
    """One row with its moves, largest first."""
    columns, before, after = _move(results, X, row)
    flipped = X[row].copy()
    flipped[columns] = after
    size = np.abs(after - before) / resolved.scale[columns]
    offset, span = (0.0, 1.0) if scaling is None else (scaling.offset[columns], scaling.span[columns])
    shown = (before * span + offset, after * span + offset, size / max(size.max(), 1e-300))
    moves = [Move(int(j), float(b), float(a), float(s)) for j, b, a, s in zip(columns, *shown, strict=True)]
    return Fragile(
        row,
        None if results.y is None else str(results.y[row]),
        str(results.predicted[row]),
        str(model.predict(flipped[None])[0]),
        distance,
        sorted(moves, key=lambda move: -move.share),
        alike,
    )


def _move(results, X: np.ndarray, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns, values = results.witnesses.changes(row)
    return columns, X[row, columns], values
