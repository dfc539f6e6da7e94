"""Additive ensembles in rationals, for ``exact_margin``: no float slack, at the price of plain Python.

The lists of undominated (cost, gain) choices are merged feature by feature over Fractions. It answers rows whose
lists stay short (small models, tests, ties at the budget); the others keep the float answer, which is sound.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..model.staircases import Staircases, staircases_of
from .costs import land_left, land_right
from .problem import Changes, Found, Pair, Problem
from .replay import float_below

MOST_CHOICES = 20_000


class Choice(NamedTuple):
    """A choice of moves so far: what it costs and gains, its last move and the rest of it."""

    cost: Fraction
    gain: Fraction
    move: tuple[int, float] | None
    rest: Choice | None

    def moves(self) -> list[tuple[int, float]]:
        out = []
        at: Choice | None = self
        while at is not None:
            if at.move is not None:
                out.append(at.move)
            at = at.rest
        return out


class Referee:
    """Exact worst-case margins and radii of an additive problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.stairs: Staircases = staircases_of(problem.model, problem.cuts, exact=True)

    def decide(self, pair: Pair, X: np.ndarray, found: Found) -> Found:
        """Replace the float answers of `Additive.decide` by exact ones where the lists stay short."""
        threat = self.problem.threat
        limit = threat.exact_budget(threat.eps, up=True) if np.isfinite(threat.eps) else None
        changes, lower = _copy(found), found.lower.copy()
        for row, x in enumerate(X):
            margin, lists = self._lists(pair, x, limit)
            choices = self._merge(lists, limit)
            if choices is None:
                continue
            lower[row] = float_below(margin - choices[-1].gain)
            for choice in reversed(choices):  # the last may cost a rounding error more than the budget
                moves = choice.moves()
                columns, values = np.array([j for j, _ in moves], dtype=np.int64), np.array([z for _, z in moves])
                if threat.allows_one(columns, x[columns], values):
                    changes.put(row, columns, values)
                    break
        return changes.found(lower, found.complete)

    def nearest(self, pair: Pair, X: np.ndarray, found: Found, cap: np.ndarray) -> Found:
        """Replace the float answers of `Additive.nearest` by exact ones where the lists stay short."""
        threat = self.problem.threat
        changes, lower = _copy(found), found.lower.copy()
        for row, x in enumerate(X):
            limit = threat.exact_budget(cap[row], up=True) if np.isfinite(cap[row]) else None
            margin, lists = self._lists(pair, x, limit)
            choices = self._merge(lists, limit)
            if choices is None:
                continue
            flips = [c for c in choices if c.gain > margin or (c.gain == margin and pair.tie_flips)]
            lower[row] = threat.root_below(float_below(flips[0].cost)) if flips else np.inf
            moves = flips[0].moves() if flips else []
            changes.put(row, [j for j, _ in moves], [z for _, z in moves])
        return changes.found(lower, found.complete)

    def _lists(self, pair: Pair, x: np.ndarray, limit: Fraction | None):
        """The row's exact margin, and each feature's undominated moves."""
        stairs, cuts, threat = self.stairs, self.problem.cuts, self.problem.threat
        weights = [Fraction(weight) for weight in pair.weights]

        def scalar(values) -> Fraction:
            return sum((w * v for w, v in zip(weights, values, strict=True) if w), Fraction(0))

        margin = scalar(stairs.base)
        lists = []
        for i, j in enumerate(stairs.feature):
            if np.isnan(x[j]):
                margin += scalar(stairs.missing[i])
                continue
            lo, hi = int(stairs.offsets[i]), int(stairs.offsets[i + 1])
            own = int(np.searchsorted(stairs.cuts[lo:hi], x[j], side="right"))
            here = scalar(stairs.value[lo + i + own])
            margin += here
            moves = [Choice(Fraction(0), Fraction(0), None, None)]
            for cell in range(hi - lo + 1):
                if cell == own or not (threat.up[j] if cell > own else threat.down[j]) or not threat.moves:
                    continue
                land = land_right if cell > own else land_left
                z = land(cuts.cuts, cuts.before, lo, hi, cell, x[j], threat.lower[j], threat.upper[j])
                gain = here - scalar(stairs.value[lo + i + cell])
                if np.isnan(z) or gain <= 0:
                    continue
                cost = threat.exact_cost(j, x[j], z, up=False)
                if limit is None or cost <= limit:
                    moves.append(Choice(cost, gain, (int(j), float(z)), None))
            if len(moves) > 1:
                lists.append(_undominated(moves))
        return margin, lists

    def _merge(self, lists: list[list[Choice]], limit: Fraction | None) -> list[Choice] | None:
        """All undominated choices over all features, by cost; None where there are too many."""
        largest = self.problem.threat.norm == np.inf
        so_far = [Choice(Fraction(0), Fraction(0), None, None)]
        for moves in lists:
            if len(so_far) * len(moves) > MOST_CHOICES:
                return None
            wider = []
            for choice in so_far:
                for move in moves:
                    cost = max(choice.cost, move.cost) if largest else choice.cost + move.cost
                    if limit is None or cost <= limit:
                        wider.append(Choice(cost, choice.gain + move.gain, move.move, choice))
            so_far = _undominated(wider)
        return so_far


def _undominated(choices: list[Choice]) -> list[Choice]:
    """By cost, only those that gain more than every cheaper one."""
    out: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.cost, -c.gain)):
        if not out or choice.gain > out[-1].gain:
            out.append(choice)
    return out


def _copy(found: Found) -> Changes:
    """The candidates of an answer, to be replaced row by row."""
    changes = Changes(len(found.lower))
    for row in np.flatnonzero(np.diff(found.offsets)):
        part = slice(found.offsets[row], found.offsets[row + 1])
        changes.put(int(row), found.feature[part], found.value[part])
    return changes
