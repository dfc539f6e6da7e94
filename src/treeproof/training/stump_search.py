"""One boosting round: the candidate stump of least robust loss (paper section 4.1).

Unused features are screened by histograms (`stump_screen`), used ones by their leave-one-out tables
(`stump_pairs`); then candidates are solved exactly, most promising first, until no bound is below the best
loss found. With the exponential loss the screen's bounds are true lower bounds and the choice is the
optimum; with other losses they come from the exponential upper model of the loss, so at least SHORTLIST
candidates (all, on small data) are solved.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from .losses import Exponential, Logistic
from .stump_costs import Costs
from .stump_logistic import logistic_parts
from .stump_pairs import one_used_pair, unused_pair, used_pairs
from .stump_screen import (
    Columns,
    Deltas,
    Profiles,
    add_pairs,
    bound_of,
    deltas_of,
    screen_features,
    sums_on_grid,
    thin_tables,
)
from .stump_tables import Room, Stairs, full_tables, room_for
from .stump_weights import best_leaves

THIN_STEP, THIN_MOST = 0.01, 24
SHORTLIST = 12
MOST_SOLVED = 600
SOLVE_ALL = 20_000  # rows x candidates up to which another loss than the exponential is solved everywhere
BLOCK = 1024
MOST_KEPT = 5 * 10**7  # numbers: pairs of used features are kept from the screen for the exact solution up to 0.4 GB


class Rows(NamedTuple):
    """The rows of one round: by row and by feature, labels -1 and +1, and weights."""

    X: np.ndarray
    columns: Columns
    y: np.ndarray
    weight: np.ndarray


class Choice(NamedTuple):
    """A stump and the robust loss that it reaches; `solved` counts the candidates solved exactly."""

    feature: int
    threshold: float
    left: float
    right: float
    loss: float
    solved: int


class RoundSearch:
    """Tables of the model so far, and the search over candidates for the next stump.

    Parameters
    ----------
    rows : Rows
    stairs : Stairs
        The model so far.
    costs : Costs
    loss : a loss object
    max_weight : float
        Leaf values are within [-max_weight, max_weight].
    threads : int
    """

    def __init__(self, rows: Rows, stairs: Stairs, costs: Costs, loss, max_weight: float, threads: int = 1):
        self.rows, self.stairs, self.costs, self.loss = rows, stairs, costs, loss
        self.deltas: Deltas = deltas_of(max_weight)
        self.threads = threads
        self.room: Room = room_for(stairs)
        self.reach, self.value, self.size = full_tables(rows.X, rows.y, stairs, costs, self.room)
        self.home = self.value[np.arange(len(self.size)), self.size - 1]
        self.side = (rows.y < 0).astype(np.int64)
        self.place = {int(j): u for u, j in enumerate(stairs.feature)}
        # the exponential loss is scale free: keep its weights near 1
        self.shift = float(self.home.min()) if isinstance(loss, Exponential) else 0.0
        self.kept_at: dict[int, int] = {}
        self.kept = np.zeros((0, 2, 0))

    # ------------------------------------------------------------------ the choice

    def best(self, excluded=()) -> Choice | None:
        """The candidate of least robust loss, or None when there is none; `excluded` holds candidate numbers."""
        columns = self.rows.columns
        if len(columns.edge) == 0:
            return None
        bounds = self.bounds()
        bounds[list(excluded)] = np.inf
        order = np.argsort(bounds, kind="stable")
        least = SHORTLIST if not isinstance(self.loss, Exponential) else 1
        if least > 1 and len(order) * len(self.home) <= SOLVE_ALL:
            least = len(order)
        found: Choice | None = None
        for solved, candidate in enumerate(order[: max(MOST_SOLVED, least)]):
            if not np.isfinite(bounds[candidate]):
                break
            if found is not None and solved >= least:
                slack = 1e-9 * abs(found.loss)
                if least > 1 or bounds[candidate] > found.loss - slack:
                    break
            choice = self.solve(int(candidate), solved + 1)
            if found is None or choice.loss < found.loss * (1 - 1e-12) - 1e-300:
                found = choice
        return found._replace(solved=solved) if found is not None else None

    def solve(self, candidate: int, solved: int = 0) -> Choice:
        """The optimal leaves of one candidate."""
        feature, left, right = self.pair(candidate)
        leaves = best_leaves(left, right, self.rows.y, self.rows.weight, self.loss, self.deltas.limit)
        edge = float(self.rows.columns.edge[candidate])
        return Choice(feature, edge, leaves.left, leaves.right, leaves.loss, solved)

    def pair(self, candidate: int) -> tuple[int, np.ndarray, np.ndarray]:
        """Feature, D_L and D_R of one candidate."""
        columns, y = self.rows.columns, self.rows.y
        feature = int(np.searchsorted(columns.start, candidate, side="right") - 1)
        if candidate in self.kept_at:
            return feature, *self.kept[self.kept_at[candidate]]
        edge = columns.edge[candidate]
        left, right = np.empty(len(y)), np.empty(len(y))
        if feature in self.place:
            u = self.place[feature]
            one_used_pair(self.rows.X, y, u, edge, self.stairs, self.costs, self.room, left, right)
        else:
            below = columns.below[candidate]
            unused_pair(columns.values[feature], edge, below, self.reach, self.value, self.size, left, right)
        return feature, left, right

    # ------------------------------------------------------------------ bounds of all candidates

    def bounds(self) -> np.ndarray:
        """A lower bound (exponential loss) or an estimate (others) of each candidate's robust loss."""
        out = np.full(len(self.rows.columns.edge), np.inf)
        self._screen_unused(out)
        if len(self.stairs.feature):
            self._screen_used(out)
        return out * np.exp(-self.shift) if self.shift else out

    def _parts(self, margin) -> tuple[np.ndarray, np.ndarray]:
        """The exponential upper model of the loss at margins: its weight, -loss', and what it has beside (none: empty).

        Both are 0 at infinite margins, sides out of reach.
        """
        if isinstance(self.loss, Exponential):
            return np.exp(self.shift - margin), np.zeros(0)
        if isinstance(self.loss, Logistic):
            return logistic_parts(np.ascontiguousarray(margin))
        weights, constants = np.zeros_like(margin), np.zeros_like(margin)
        inside = np.isfinite(margin)
        weights[inside] = -self.loss.slope(margin[inside])
        constants[inside] = self.loss.value(margin[inside]) - weights[inside]
        return weights, constants

    def _profiles(self) -> tuple[Profiles, Profiles]:
        rows, deltas = len(self.size), self.deltas
        start = np.zeros(rows + 1, dtype=np.int64)
        total = int(self.size.sum())
        reach, value = np.zeros(total + 1), np.zeros(total + 1)
        kept = thin_tables(self.reach, self.value, self.size, THIN_STEP, THIN_MOST, start, reach, value)
        reach, value = reach[:kept].copy(), value[:kept].copy()
        owner = np.repeat(np.arange(rows), np.diff(start))
        gain = value - self.home[owner]
        up = np.searchsorted(deltas.at, gain, side="right").astype(np.int64)
        down = np.searchsorted(deltas.at, -gain, side="right").astype(np.int64)
        weight = self.rows.weight
        away, away_constants = self._parts(value)
        home, home_constants = self._parts(self.home)
        main = Profiles(start, reach, weight[owner] * away, up, down, weight * home, self.side)
        if not len(home_constants):
            return main, main._replace(home=home_constants)
        return main, main._replace(weight=weight[owner] * away_constants, home=weight * home_constants)

    def _screen_unused(self, out: np.ndarray) -> None:
        columns = self.rows.columns
        main, constants = self._profiles()
        # used features are screened by their own tables: give them no candidates here
        features = len(columns.start) - 1
        parts = np.linspace(0, features, max(1, self.threads) + 1).astype(np.int64)

        def run(part: int) -> None:
            span = parts[part : part + 2].copy()
            screen_features(columns, main, constants, self.deltas, span, out)

        if self.threads > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(run, range(self.threads)))
        else:
            run(0)

    def _screen_used(self, out: np.ndarray) -> None:
        """Candidates of used features, rows in blocks so that memory stays small."""
        columns, deltas, weight = self.rows.columns, self.deltas, self.rows.weight
        numbers = np.concatenate([np.arange(columns.start[j], columns.start[j + 1]) for j in self.stairs.feature])
        offset = np.concatenate(
            [[0], np.cumsum([columns.start[j + 1] - columns.start[j] for j in self.stairs.feature])]
        ).astype(np.int64)
        if len(numbers) == 0:
            return
        edges, extra = columns.edge[numbers], not isinstance(self.loss, Exponential)
        hist = np.zeros((len(numbers), 2, 2, len(deltas.at) + 1))
        other = np.zeros_like(hist) if extra else hist
        if len(numbers) * 2 * len(weight) <= MOST_KEPT:
            self.kept_at = {int(number): c for c, number in enumerate(numbers)}
            self.kept = np.empty((len(numbers), 2, len(weight)))
        for first in range(0, len(weight), BLOCK):
            rows = slice(first, min(first + BLOCK, len(weight)))
            block = np.empty((len(numbers), 2, rows.stop - first))
            used_pairs(self.rows.X[rows], self.rows.y[rows], self.stairs, self.costs, self.room, edges, offset, block)
            if self.kept_at:
                self.kept[:, :, rows] = block
            weights, constants = self._parts(block)
            add_pairs(block, weights, self.side[rows], weight[rows], deltas, hist)
            if extra:
                add_pairs(block, constants, self.side[rows], weight[rows], deltas, other)
        sums, beside = np.zeros((len(deltas.at), 4)), np.zeros((len(deltas.at), 4))
        spare = np.zeros(len(deltas.at))
        for c, number in enumerate(numbers):
            sums_on_grid(hist[c], deltas, sums)
            if extra:
                sums_on_grid(other[c], deltas, beside)
            out[number] = bound_of(sums, beside, deltas, spare)
