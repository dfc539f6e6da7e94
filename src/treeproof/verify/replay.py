"""From bounds and candidates to a status: the one place that says ROBUST or BROKEN.

A candidate counts only if the threat allows it (its distance recomputed, exactly where floats cannot
tell) and the model predicts it otherwise: by its real margin, beyond what the model's own arithmetic may
err, and by the model's own prediction.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum, inf, nextafter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..model.predict import leaves, scores

if TYPE_CHECKING:
    from .problem import Found, Pair, Problem

TINY = 1e-300  # distances below it are denormal, or nearly so: floats there have no relative accuracy


class Replayed(NamedTuple):
    """Candidates, checked."""

    flips: np.ndarray  # bool (n,): a witness
    margin: np.ndarray  # (n,) upper bound of the candidate's real margin; inf where none is allowed
    distance: np.ndarray  # (n,) upper bound of its distance in eps units; inf where none
    outside: np.ndarray  # bool (n,): there is a candidate, and its distance is beyond the budget


def holds(pair: Pair, lower: np.ndarray) -> np.ndarray:
    """Whether a sound lower bound of the real margin proves class y against class c."""
    if pair.slack > 0:
        return lower > pair.slack
    return lower > 0 if pair.tie_flips else lower >= 0


def replay(problem: Problem, pair: Pair, X: np.ndarray, found: Found, eps: float | None) -> Replayed:
    """Check every candidate; `eps` None: whatever its distance."""
    n, threat = len(X), problem.threat
    margin, distance = np.full(n, np.inf), np.full(n, np.inf)
    outside, flips = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    counts = np.diff(found.offsets)
    rows = np.flatnonzero(counts)
    if len(rows):
        starts, owner = found.offsets[rows], np.repeat(np.arange(n), counts)
        feature, after = found.feature, found.value
        before = X[owner, feature]
        good = np.logical_and.reduceat(threat.admits(feature, before, after), starts)
        sizes = threat.distances(starts, feature, before, after)
        if eps is not None:

            def moves_of(k: int):
                part = slice(found.offsets[rows[k]], found.offsets[rows[k] + 1])
                return feature[part], before[part], after[part]

            near = threat.allows(sizes, moves_of, eps)
            outside[rows] = good & ~near
            good &= near
        chosen = rows[good]
        moved = X.copy()
        moved[owner, feature] = after
        margin[chosen], beyond = _judge(problem, pair, moved[chosen])
        # with exact margins the model's own float sum is not what is asked about
        predicted = problem.model.decide(scores(problem.model, moved[chosen]))
        flips[chosen] = beyond & (problem.exact_margin | (predicted != pair.y))
        distance[rows] = _round_up(sizes, threat)
        distance[~flips] = np.inf
    return Replayed(flips, margin, distance, outside)


def _round_up(sizes: np.ndarray, threat) -> np.ndarray:
    """Distances that are surely at least the real ones."""
    if threat.norm == 0:
        return sizes
    error = 2.0**-51 if threat.norm == inf else threat.rounding / min(threat.norm, 1.0)
    with np.errstate(over="ignore"):
        return np.maximum(sizes * (1 + error), TINY)


def _judge(problem: Problem, pair: Pair, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An upper bound of each row's real margin, and whether it is surely on the other side."""
    upper, beyond = np.empty(len(X)), np.empty(len(X), dtype=bool)
    step = max(1, 2**21 // max(1, problem.model.n_trees))
    for start in range(0, len(X), step):
        part = slice(start, min(start + step, len(X)))
        near, doubt = _float_margins(problem, pair, X[part]), pair.doubt
        upper[part] = np.nextafter(near + pair.solver, np.inf) if pair.solver else near
        beyond[part] = near < -doubt if doubt else (near < 0) | ((near == 0) & pair.tie_flips)
        # where floats cannot tell, rationals do
        unsure = np.flatnonzero(np.abs(near + pair.slack) <= 2 * doubt) if doubt else np.zeros(0, dtype=np.int64)
        if problem.exact_margin:
            unsure = np.arange(len(near))
        for k, value in zip(unsure, real_margins(problem, pair, X[part][unsure]), strict=True):
            upper[start + k] = float_above(value)
            flipped = value < -pair.slack if pair.slack > 0 else (value < 0 or (value == 0 and pair.tie_flips))
            beyond[start + k] = flipped
    return upper, beyond


def _float_margins(problem: Problem, pair: Pair, X: np.ndarray) -> np.ndarray:
    """Margins, added in float64 (within ``pair.solver`` of the real ones)."""
    model = problem.model
    reached = leaves(model, X)
    if model.n_outputs == 1:
        return pair.base + pair.weights[0] * model.value[reached, 0].sum(axis=1)
    return pair.base + (model.value[reached, pair.y] - model.value[reached, pair.c]).sum(axis=1)


def real_margins(problem: Problem, pair: Pair, X: np.ndarray) -> list[float | Fraction]:
    """The real margin of each row: a float where the correctly rounded sum is far from 0, else a Fraction."""
    model = problem.model
    reached = leaves(model, X)
    if model.n_outputs == 1:
        sign = pair.weights[0]
        terms = sign * model.value[reached, 0]
        start = [sign * model.base[0], -sign * model.cut]
    else:
        terms = np.concatenate([model.value[reached, pair.y], -model.value[reached, pair.c]], axis=1)
        start = [model.base[pair.y], -model.base[pair.c]]
    out: list[float | Fraction] = []
    for row in terms:
        numbers = [*start, *row.tolist()]
        total = fsum(numbers)
        if problem.exact_margin or abs(total) <= 2 * pair.slack:
            out.append(sum((Fraction(number) for number in numbers), Fraction(0)))
        else:
            out.append(total)
    return out


def float_above(value: float | Fraction) -> float:
    """The smallest float at or above a rational; one float above a rounded sum."""
    if isinstance(value, Fraction):
        near = _nearest(value)
        return near if near == inf or (near > -inf and Fraction(near) >= value) else nextafter(near, inf)
    return nextafter(value, inf)


def float_below(value: Fraction) -> float:
    """The largest float at or below a rational."""
    near = _nearest(value)
    return near if near == -inf or (near < inf and Fraction(near) <= value) else nextafter(near, -inf)


def _nearest(value: Fraction) -> float:
    """The nearest float; infinite beyond their range."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
