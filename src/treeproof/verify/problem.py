"""What every verifier is asked, and what it answers.

Class y against class c is one scalar ensemble, the margin f_y - f_c. A method is a `Solver`: prepared
once for a model and a threat, then asked about batches of rows that are predicted y, one pair at a time.
It never decides a status: `replay.py` does, from its sound lower bounds and its candidate witnesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ..model.cells import Cuts, LeafBoxes, boxes_of, cuts_of
from ..model.rounding import rounding_of

if TYPE_CHECKING:
    from ..model.ensemble import TreeEnsemble
    from ..threat import ResolvedThreat


class Pair(NamedTuple):
    """The scalar ensemble "class y against class c": real margin = base + sum of (leaf value @ weights)."""

    y: int
    c: int
    weights: np.ndarray  # (n_outputs,)
    base: float
    tie_flips: bool  # whether a margin of exactly 0 is no longer class y
    slack: float  # the model's own arithmetic may err by this much
    solver: float  # a float64 sum here may err by this much

    @property
    def doubt(self) -> float:
        """A real margin computed here is decided only beyond this."""
        return self.slack + self.solver

    def target(self, margin):
        """Losses of margin (at least this) that may flip the row, and that surely flip it."""
        if self.doubt > 0:
            return margin - self.doubt, np.nextafter(margin + self.doubt, np.inf)
        least = margin if self.tie_flips else np.nextafter(margin, np.inf)
        return least, least


class Found(NamedTuple):
    """A solver's answer for a batch: sound bounds and candidate witnesses (changed features, CSR)."""

    lower: np.ndarray  # (n,) `decide`: of the real worst-case margin; `nearest`: of the distance to a flip
    offsets: np.ndarray  # int64 (n + 1,): the changes of each row; none = no candidate
    feature: np.ndarray  # int32
    value: np.ndarray  # float64, on the model's grid
    complete: np.ndarray  # bool (n,): the search was not stopped by a limit


class Solver(Protocol):
    """One method, prepared for a model and a threat (see `methods.py` for the list)."""

    def decide(self, pair: Pair, X: np.ndarray, limit: float) -> Found:
        """Bound the worst-case margin of rows X (float64, on the model's grid; NaN = missing) within the threat.

        `limit` is the budget in units of eps^p (1 + rounding: nothing that might be allowed is left out;
        1 - rounding: everything inside is surely allowed); it does not matter at p = 0 and inf, where
        budgets are compared exactly.
        """
        ...

    def nearest(self, pair: Pair, X: np.ndarray, cap: np.ndarray) -> Found:
        """Bound the distance (in eps units) of the nearest flip from below, looking no further than cap.

        A row with no flip within cap has lower inf and no candidate.
        """
        ...


@dataclass(frozen=True, eq=False)
class Problem:
    """A model and a threat, with what the methods share: cells, boxes, pairs."""

    model: TreeEnsemble
    threat: ResolvedThreat
    exact_margin: bool = False

    @cached_property
    def cuts(self) -> Cuts:
        return cuts_of(self.model)

    @cached_property
    def boxes(self) -> LeafBoxes:
        return boxes_of(self.model, self.cuts)

    @cached_property
    def _rounding(self):
        return rounding_of(self.model)

    def pairs(self, y: int) -> list[Pair]:
        """Class y against every other class."""
        return [self.pair(y, c) for c in range(self.model.n_classes) if c != y]

    def pair(self, y: int, c: int) -> Pair:
        """Class y against class c."""
        model, rounding = self.model, self._rounding
        weights = np.zeros(model.n_outputs)
        if model.n_outputs == 1:
            weights[0] = 1.0 if y == 1 else -1.0
            base = weights[0] * (model.base[0] - model.cut)
            tie_flips = model.zero_class != y
            slack, solver = rounding.library[0], rounding.solver([0], model.n_features)
        else:
            weights[y], weights[c] = 1.0, -1.0
            base = model.base[y] - model.base[c]
            tie_flips = c < y
            slack = rounding.library[y] + rounding.library[c]
            solver = rounding.solver([y, c], model.n_features)
        slack = 0.0 if self.exact_margin else slack + model.decision_slack
        return Pair(y, c, weights, float(base), bool(tie_flips), float(slack), float(solver))

    @cached_property
    def _least(self) -> dict[tuple[int, int], float]:
        return {}

    def least_margin(self, pair: Pair) -> float:
        """A lower bound of a pair's real margin, whatever the row."""
        key = pair.y, pair.c
        if key not in self._least:
            self._least[key] = self._sum_least(pair)
        return self._least[key]

    def _sum_least(self, pair: Pair) -> float:
        """The least leaf of every tree, added."""
        model = self.model
        values = np.where(model.feature < 0, self.leaf_values(pair), np.inf)
        total = np.minimum.reduceat(values, model.tree_offsets[:-1]).sum() if model.n_trees else 0.0
        return float(pair.base + total - pair.solver)

    def leaf_values(self, pair: Pair) -> np.ndarray:
        """The scalar value of every node's leaf for a pair (indexed by node)."""
        return self.model.value @ pair.weights


class Changes:
    """Grows a `Found`'s candidate witnesses row by row (outside kernels)."""

    def __init__(self, n: int) -> None:
        self.rows: list[tuple[np.ndarray, np.ndarray] | None] = [None] * n

    def put(self, row: int, feature, value) -> None:
        self.rows[row] = (np.asarray(feature, dtype=np.int32), np.asarray(value, dtype=np.float64))

    def found(self, lower: np.ndarray, complete: np.ndarray) -> Found:
        counts = [0 if row is None else len(row[0]) for row in self.rows]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        full = [row for row in self.rows if row is not None]
        feature = np.concatenate([row[0] for row in full]) if full else np.zeros(0, dtype=np.int32)
        value = np.concatenate([row[1] for row in full]) if full else np.zeros(0)
        return Found(lower, offsets, feature, value, complete)
