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

from ..model.predict import leaves

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
    n = len(X)
    margin, distance = np.full(n, np.inf), np.full(n, np.inf)
    outside, flips = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    rows = np.flatnonzero(np.diff(found.offsets) > 0)
    allowed = []
    for row in rows:
        part = slice(found.offsets[row], found.offsets[row + 1])
        feature, after = found.feature[part], found.value[part]
        before = X[row, feature]
        if not problem.threat.admits(feature, before, after):
            continue
        if eps is not None and not problem.threat.allows(feature, before, after, eps):
            outside[row] = True
            continue
        size = problem.threat.distance(feature, before, after)
        distance[row] = _round_up(size, problem.threat)
        allowed.append(row)
    if not allowed:
        return Replayed(flips, margin, distance, outside)
    chosen = np.array(allowed)
    moved = X[chosen]
    for k, row in enumerate(chosen):
        part = slice(found.offsets[row], found.offsets[row + 1])
        moved[k, found.feature[part]] = found.value[part]
    exact = real_margins(problem, pair, moved)
    otherwise = problem.model.predict_index(moved) != pair.y
    margin[chosen] = [float_above(value) for value in exact]
    beyond = [
        value < -pair.slack if pair.slack > 0 else (value < 0 or (value == 0 and pair.tie_flips)) for value in exact
    ]
    # with exact margins the model's own float sum is not what is asked about
    flips[chosen] = np.array(beyond) & (otherwise | problem.exact_margin)
    distance[~flips] = np.inf
    return Replayed(flips, margin, distance, outside)


def _round_up(size: float, threat) -> float:
    """A distance that is surely at least the real one."""
    if threat.norm == 0:
        return size
    error = 2.0**-51 if threat.norm == inf else threat.rounding / min(threat.norm, 1.0)
    return max(size * (1 + error), TINY)


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
