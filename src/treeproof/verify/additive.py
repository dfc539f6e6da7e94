"""Method `additive`: exact for every ensemble whose trees each read one feature, for every p.

A row is a knapsack over features (the paper's section 3.2 shows that it is NP-complete for 0 < p < inf);
it is decided by a Lagrangian bound (`additive_dual`) and, where that leaves a gap, by merging the few
features still open (`additive_core`). p = 0 and p = inf come by sorting (`additive_sorted`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .._errors import InvalidInputError, must_be
from ..model.cells import Cuts
from ..model.staircases import Staircases, staircases_of
from .additive_core import arena_room
from .additive_dual import picks_room
from .additive_options import Margin, lower_cells, options_room
from .additive_rows import Answers, Asked, Room, decide_rows, nearest_rows
from .additive_sorted import decide_count, nearest_sorted
from .costs import ground_of
from .problem import Found, Pair, Problem
from .referee import Referee

STATES_A_SECOND = 1_000_000
MOST_STATES = 10_000_000  # about a gigabyte of room, taken as it is used


class Additive:
    """Exact verification of additive ensembles.

    Parameters
    ----------
    problem : Problem
    max_states : int
        Budget of knapsack states a row; beyond it a row gets sound bounds.
    time_limit : float, optional
        Seconds a row; here a smaller state budget.
    """

    batch_rows = 4096

    def __init__(self, problem: Problem, max_states: int = 200_000, time_limit: float | None = None) -> None:
        whole = isinstance(max_states, (int, np.integer)) and not isinstance(max_states, bool)
        if not whole or not 1 <= max_states <= MOST_STATES:
            raise InvalidInputError(must_be("max_states", f"a whole number, 1 to {MOST_STATES}", max_states))
        if time_limit is not None:
            max_states = max(1, int(min(max_states, time_limit * STATES_A_SECOND)))
        self.problem = problem
        self.max_states = int(max_states)
        self.stairs = staircases_of(problem.model, problem.cuts)
        threat = problem.threat
        spends = 0 < threat.norm < np.inf and 0 < threat.eps < np.inf
        self.ground = ground_of(problem, eps=threat.eps, unit=threat.eps if spends else 1.0)

    @staticmethod
    def refuses(problem: Problem) -> str | None:
        """Why this method cannot serve a problem, if so."""
        if problem.model.is_additive:
            return None
        return "'additive' needs trees that read one feature each, and this model has others."

    def decide(self, pair: Pair, X: np.ndarray, limit: float) -> Found:
        """See `Solver.decide`."""
        threat = self.problem.threat
        asked = self._asked(pair)
        margin, room = self._room(pair)
        if threat.norm == 0:
            answers = decide_count(self.ground, margin, X, asked, threat.count, room.options, room.picks)
        else:
            if not threat.moves:
                limit = -1.0
            elif threat.norm == np.inf or threat.eps == np.inf:
                limit = np.inf
            answers = decide_rows(self.ground, margin, X, asked, limit, room)
        found = _found(answers)
        return self._referee.decide(pair, X, found) if self.problem.exact_margin else found

    def nearest(self, pair: Pair, X: np.ndarray, cap: np.ndarray) -> Found:
        """See `Solver.nearest`."""
        p = self.problem.threat.norm
        asked = self._asked(pair)
        margin, room = self._room(pair)
        error = self.problem.threat.rounding
        if p in (0, np.inf):
            caps = np.floor(cap) if p == 0 else cap * (1 + 2.0**-50)
            found = nearest_sorted(self.ground, margin, X, asked, caps, room.options, room.picks)
        else:
            with np.errstate(over="ignore"):
                caps = cap**p * (1 + 2 * error)
            found = nearest_rows(self.ground, margin, X, asked, caps, room)
        answer = _found(found._replace(lower=self.problem.threat.root_below(found.lower)))
        return self._referee.nearest(pair, X, answer, cap) if self.problem.exact_margin else answer

    @cached_property
    def _referee(self) -> Referee:
        return Referee(self.problem)

    def _asked(self, pair: Pair) -> Asked:
        return Asked(pair.slack, pair.solver, pair.tie_flips, self.problem.exact_margin, self.max_states)

    def _room(self, pair: Pair):
        margin = margin_of(self.stairs, self.problem.cuts, pair)
        m = len(margin.feature)
        return margin, Room(options_room(margin), picks_room(m), arena_room(m, self.max_states))


def margin_of(stairs: Staircases, cuts: Cuts, pair: Pair) -> Margin:
    """The scalar staircases of a class pair."""
    weights = pair.weights
    value = stairs.value @ weights
    right, left = lower_cells(cuts.offsets, stairs.feature, value)
    return Margin(stairs.feature, value, stairs.missing @ weights, float(stairs.base @ weights), right, left)


def _found(answers: Answers) -> Found:
    return Found(answers.lower, answers.offsets, answers.feature, answers.value, answers.complete)
