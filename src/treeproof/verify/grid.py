"""Method `grid`: the paper's dynamic program for stumps (equation 6), sound and incomplete, 0 < p < inf.

Costs and budget are counted in whole steps of `precision`, all rounded so that nothing allowed is lost: costs
down, the budget up to the smallest P steps that exceed it, as in the paper. A sum of floors never exceeds the
floor of the budget, so ``ceiling=False`` is sound too, and tighter by a step. Cost of a row: features times
steps, times the options of a feature. The baseline that `additive` must equal or beat on every row.
"""

from __future__ import annotations

import numpy as np

from .._errors import InvalidInputError, MethodError, must_be
from .._jit import kernel, lean
from ..model.staircases import staircases_of
from .additive import margin_of
from .additive_options import Margin, Options, gather, options_room
from .additive_rows import Answers, Asked, least_proved, put, targets
from .costs import Ground, ground_of
from .problem import Found, Pair, Problem

MOST_STEPS = 10_000_000


@lean
def _table(options: Options, precision, steps, table, choice):
    """The largest gain for every whole number of steps; `choice` remembers each feature's option."""
    n = options.counts[0]
    table[:] = 0.0
    for a in range(n):
        first, last = options.start[a], options.start[a + 1]
        for s in range(steps, -1, -1):
            best, which = table[s], -1
            for o in range(first, last):
                taken = int(options.cost[o] * (1.0 - 1e-12) / precision)
                if taken > s:
                    break
                if table[s - taken] + options.gain[o] > best:
                    best, which = table[s - taken] + options.gain[o], o
            table[s] = best
            choice[a, s] = which


@kernel
def grid_rows(ground: Ground, margin: Margin, X, asked: Asked, limit, precision, steps, options: Options):
    """Lower bounds of the worst-case margins; the table's own choice is the candidate."""
    n = len(X)
    lower = np.empty(n)
    offsets = np.zeros(n + 1, dtype=np.int64)
    feature, value = np.empty(4 * n + 16, dtype=np.int32), np.empty(4 * n + 16)
    at = 0
    table = np.empty(steps + 1)
    choice = np.empty((len(margin.feature), steps + 1), dtype=np.int32)
    best = np.empty(len(margin.feature), dtype=np.int64)
    for i in range(n):
        gather(ground, margin, X[i], limit, options)
        enough = targets(asked, options.sums[0])[0]
        most = options.sums[1]
        if most >= enough:
            _table(options, precision, steps, table, choice)
            most = table[steps]
        lower[i] = options.sums[0] - most - asked.solver
        if most < enough:
            lower[i] = max(lower[i], least_proved(asked))
        else:
            s = steps
            for a in range(options.counts[0] - 1, -1, -1):
                best[a] = choice[a, s]
                if best[a] >= 0:
                    s -= int(options.cost[best[a]] * (1.0 - 1e-12) / precision)
            feature, value, at = put(options, best, feature, value, at)
        offsets[i + 1] = at
    return Answers(lower, np.ones(n, dtype=np.bool_), offsets, feature[:at], value[:at])


class Grid:
    """The paper's dynamic program.

    Parameters
    ----------
    problem : Problem
    precision : float
        The step in units of eps^p's terms, |delta / scale|^p; at most eps^p. The paper takes 0.0002 to 0.01.
    ceiling : bool
        Round the budget up to whole steps, as the paper does (it reproduces its figures); False rounds down.
    """

    batch_rows = 4096

    def __init__(
        self, problem: Problem, precision: float = 0.005, ceiling: bool = True, time_limit: float | None = None
    ) -> None:
        self.problem = problem
        threat = problem.threat
        if threat.eps == np.inf:
            raise MethodError("method 'grid' must have a finite eps (it has no radius mode). Use method='additive'.")
        budget = threat.eps**threat.norm
        number = isinstance(precision, (int, float, np.number)) and not isinstance(precision, bool)
        if not number or not 0 < precision < np.inf:
            raise InvalidInputError(must_be("precision", "a positive number", precision))
        if threat.moves and precision > budget:
            raise InvalidInputError(
                must_be("precision", f"at most the budget eps^p = {budget:g}", precision, "Take a smaller step.")
            )
        self.ground = ground_of(problem)
        self.precision = float(precision)
        self.stairs = staircases_of(problem.model, problem.cuts)
        self.steps = 0
        if threat.moves:
            # outward: 0.3 / 0.1 is 2.99... in floats
            steps = np.floor(budget / precision * (1 + 2 * threat.rounding))
            if steps > MOST_STEPS:
                raise InvalidInputError(
                    must_be("precision", f"at least eps^p / {MOST_STEPS:g}", precision, "Take a larger step.")
                )
            self.steps = int(steps) + (1 if ceiling else 0)

    @staticmethod
    def refuses(problem: Problem) -> str | None:
        """Why this method cannot serve a problem, if so."""
        if not problem.model.is_additive:
            return "'grid' needs trees that read one feature each, and this model has others."
        if problem.threat.norm in (0, np.inf):
            return "'grid' needs 0 < p < inf (p = 0 and p = inf are solved exactly without a grid)."
        return None

    def decide(self, pair: Pair, X: np.ndarray, limit: float) -> Found:
        """See `Solver.decide`."""
        threat = self.problem.threat
        margin = margin_of(self.stairs, self.problem.cuts, pair)
        asked = Asked(pair.slack, pair.solver, pair.tie_flips, False, 1)
        budget = threat.eps**threat.norm * limit if threat.moves else -1.0
        answers = grid_rows(self.ground, margin, X, asked, budget, self.precision, self.steps, options_room(margin))
        return Found(answers.lower, answers.offsets, answers.feature, answers.value, answers.complete)

    def nearest(self, pair: Pair, X: np.ndarray, cap: np.ndarray) -> Found:
        """Not offered: a radius by bisection of a loose bound would only look exact."""
        raise MethodError("method 'grid' must be used with certify. It has no radius mode. Use method='additive'.")
