"""A batch of rows, certified within a budget: every class pair asked, every answer replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..model.predict import scores
from ..results import Status, Witnesses
from .replay import Replayed, float_above, holds, real_margins, replay

if TYPE_CHECKING:
    from .problem import Found, Problem, Solver


class CertifiedBatch(NamedTuple):
    status: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    predicted: np.ndarray
    witnesses: Witnesses
    cast_rows: int


def certify_batch(problem: Problem, solver: Solver, X: np.ndarray, y: np.ndarray | None) -> CertifiedBatch:
    """Certify checked rows; `y` are positions in the model's classes."""
    model = problem.model
    rows = model.cast(X)
    cast_rows = count_cast(X, rows)
    raw = scores(model, rows)
    predicted = model.decide(raw)
    target = predicted if y is None else y
    out = RowStates(rows, raw)
    wrong = predicted != target
    out.status[wrong], out.present[wrong] = Status.BROKEN, True
    for c in np.unique(target):
        mine = np.flatnonzero(target == c)
        if not problem.exact_margin and wrong[mine].any():  # a misclassified row needs no proof
            lost, mine = mine[wrong[mine]], mine[~wrong[mine]]
            out.lower[lost] = min(problem.least_margin(pair) for pair in problem.pairs(int(c)))
            out.upper[lost] = _margin_at(problem, rows[lost], raw[lost], int(c))
        if len(mine):
            _certify_class(problem, solver, mine, int(c), out)
    return CertifiedBatch(out.status, out.lower, out.upper, predicted, out.witnesses(), cast_rows)


def count_cast(X: np.ndarray, rows: np.ndarray) -> int:
    """Rows that rounding to the model's input type changed."""
    if X.dtype == np.float32 or X.shape[1] == 0:
        return 0
    return int(np.sum(np.any((rows != X) & ~np.isnan(X), axis=1)))


class RowStates:
    """What is known of each row while pairs are asked."""

    def __init__(self, X: np.ndarray, raw: np.ndarray) -> None:
        n = len(X)
        self.X, self.raw = X, raw  # rows on the model's grid, and their scores
        self.status = np.full(n, Status.UNKNOWN, dtype=np.int8)
        self.lower = np.full(n, np.inf)
        self.upper = np.full(n, np.inf)
        self.present = np.zeros(n, dtype=bool)
        self.changed: list[tuple[np.ndarray, np.ndarray] | None] = [None] * n

    def take(self, rows: np.ndarray, found: Found, chosen: np.ndarray) -> None:
        """Keep the chosen candidates as the rows' witnesses."""
        for k in np.flatnonzero(chosen):
            part = slice(found.offsets[k], found.offsets[k + 1])
            self.present[rows[k]] = True
            self.changed[rows[k]] = (found.feature[part], found.value[part])

    def forget(self, rows: np.ndarray) -> None:
        """Drop the witnesses of some rows (a mask)."""
        for row in np.flatnonzero(rows & self.present):
            self.present[row], self.changed[row] = False, None

    def witnesses(self) -> Witnesses:
        counts = [0 if change is None else len(change[0]) for change in self.changed]
        kept = [change for change in self.changed if change is not None]
        return Witnesses(
            self.present,
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.concatenate([change[0] for change in kept]) if kept else np.zeros(0, dtype=np.int32),
            np.concatenate([change[1] for change in kept]) if kept else np.zeros(0),
        )


def _certify_class(problem: Problem, solver: Solver, mine: np.ndarray, c: int, out: RowStates) -> None:
    """Ask every pair (c, other) about the rows `mine`, all of class c."""
    proved = np.ones(len(mine), dtype=bool)
    rounding = problem.threat.rounding
    for pair in problem.pairs(c):
        open_rows = problem.exact_margin | (out.status[mine] != Status.BROKEN)
        if not open_rows.all():  # a broken row needs no more proofs, but its lower bound is over every class
            spared = mine[~open_rows]
            out.lower[spared] = np.minimum(out.lower[spared], problem.least_margin(pair))
        ask = np.flatnonzero(open_rows)
        if len(ask) == 0:
            continue
        rows = out.X[mine[ask]]
        found = solver.decide(pair, rows, 1.0 + rounding)
        seen = replay(problem, pair, rows, found, problem.threat.eps)
        robust = holds(pair, found.lower)
        proved[ask] &= robust
        out.lower[mine[ask]] = np.minimum(out.lower[mine[ask]], found.lower)
        _take(out, mine[ask], found, seen)
        again = np.flatnonzero(~robust & seen.outside)
        if len(again) and 0 < problem.threat.norm < np.inf:
            # the candidate costs a rounding error more than the budget: look strictly inside
            inside = solver.decide(pair, rows[again], 1.0 - rounding)
            _take(out, mine[ask[again]], inside, replay(problem, pair, rows[again], inside, problem.threat.eps))
    stay = _margin_at(problem, out.X[mine], out.raw[mine], c)
    out.upper[mine] = np.minimum(out.upper[mine], stay)
    if problem.exact_margin:
        # in real numbers a row may be on the other side as it stands
        lost = mine[here_flips(problem, out.X[mine], c) & (out.status[mine] == Status.UNKNOWN)]
        out.status[lost], out.present[lost] = Status.BROKEN, True
    done = proved & (out.status[mine] == Status.UNKNOWN)
    out.status[mine[done]] = Status.ROBUST


def _take(out: RowStates, rows: np.ndarray, found: Found, seen: Replayed) -> None:
    """Keep what the replay confirmed."""
    out.upper[rows] = np.minimum(out.upper[rows], seen.margin)
    fresh = seen.flips & ~out.present[rows]
    out.status[rows[fresh]] = Status.BROKEN
    out.take(rows, found, fresh)


def here_flips(problem: Problem, X: np.ndarray, c: int) -> np.ndarray:
    """Whether the real margin of a row, unmoved, is not class c's (its float prediction may still be c)."""
    out = np.zeros(len(X), dtype=bool)
    for pair in problem.pairs(c):
        margins = real_margins(problem, pair, X)
        out |= np.array([margin < 0 or (margin == 0 and pair.tie_flips) for margin in margins], dtype=bool)
    return out


def _margin_at(problem: Problem, X: np.ndarray, raw: np.ndarray, c: int) -> np.ndarray:
    """An upper bound of each row's own real margin: staying is always allowed."""
    if problem.exact_margin:
        every = [real_margins(problem, pair, X) for pair in problem.pairs(c)]
        return np.array([float_above(min(margins)) for margins in zip(*every, strict=True)])
    out = np.full(len(X), np.inf)
    for pair in problem.pairs(c):
        margin = raw @ pair.weights
        if problem.model.n_outputs == 1:
            margin = margin - pair.weights[0] * problem.model.cut
        out = np.minimum(out, margin + pair.doubt)
    return out
