"""Method `grid`: the paper's dynamic program for stumps (equation 6), sound and incomplete, 0 < p < inf.

Costs and budget are counted in whole steps of `precision`, all rounded so that nothing allowed is lost: costs
down, the budget up to the smallest P steps that exceed it, as in the paper. A sum of floors never exceeds the
floor of the budget, so ``ceiling=False`` is sound too, and tighter by a step. Cost of a row: features times
steps, times the options of a feature. The baseline that `additive` must equal or beat on every row.
"""

from __future__ import annotations

import numpy as np

from .._errors import InvalidInputError, MethodError, must_be
from .._jit import inline, kernel, lean
from ..model.staircases import staircases_of
from .additive import margin_of
from .additive_options import Margin, Options, gather, options_room
from .additive_rows import Asked, closed, empty_answers, fits, least_proved, longer, put, targets
from .costs import Ground, ground_of
from .problem import Found, Pair, Problem

MOST_STEPS = 10_000_000


@inline
def _steps(price, precision):
    """Whole steps that an option surely costs."""
    return int(price * (1.0 - 1e-12) / precision)


@lean
def _fill(options: Options, precision, table):
    """table[a + 1, s]: the largest gain of the first a + 1 active features within s steps."""
    last = table.shape[1] - 1
    table[0, :] = 0.0
    for a in range(options.counts[0]):
        before, after = table[a], table[a + 1]
        for s in range(last + 1):
            after[s] = before[s]
        for o in range(options.start[a], options.start[a + 1]):
            taken = _steps(options.cost[o], precision)
            if taken > last:
                break
            gain, moved = options.gain[o], after[taken:]
            for s in range(len(moved)):
                value = before[s] + gain
                moved[s] = value if value > moved[s] else moved[s]


@lean
def _read(options: Options, precision, table, best):
    """The options behind the table's last entry, into `best`."""
    s = table.shape[1] - 1
    for a in range(options.counts[0] - 1, -1, -1):
        best[a] = -1
        if table[a + 1, s] == table[a, s]:
            continue
        for o in range(options.start[a], options.start[a + 1]):
            taken = _steps(options.cost[o], precision)
            if taken <= s and table[a, s - taken] + options.gain[o] == table[a + 1, s]:
                best[a] = o
                s -= taken
                break


@lean
def _rows_from(
    first, ground: Ground, margin: Margin, X, asked: Asked, limit, precision, options: Options, best, table, out
):
    """Answer rows from `first` on, as long as their moves fit; returns the next row."""
    steps = table.shape[1] - 1
    for i in range(first, len(X)):
        if not fits(out, options, i):
            return i
        gather(ground, margin, X[i], limit, options)
        enough = targets(asked, options.sums[0])[0]
        most = options.sums[1]
        if most >= enough:
            _fill(options, precision, table)
            most = table[options.counts[0], steps]
        out.lower[i] = options.sums[0] - most - asked.solver
        out.offsets[i + 1] = out.offsets[i]
        if most < enough:
            out.lower[i] = max(out.lower[i], least_proved(asked))
        else:
            _read(options, precision, table, best)
            put(options, best, out, i)
    return len(X)


@kernel
def grid_rows(ground: Ground, margin: Margin, X, asked: Asked, limit, precision, steps, options: Options):
    """Lower bounds of the worst-case margins; the table's own choice is the candidate."""
    out = empty_answers(len(X))
    table = np.empty((len(margin.feature) + 1, steps + 1))
    best = np.empty(len(margin.feature), dtype=np.int64)
    done = 0
    while True:
        done = _rows_from(done, ground, margin, X, asked, limit, precision, options, best, table, out)
        if done == len(X):
            return closed(out)
        out = longer(out, len(margin.feature))


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
        if not isinstance(ceiling, (bool, np.bool_)):
            raise InvalidInputError(must_be("ceiling", "True or False", ceiling))
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
