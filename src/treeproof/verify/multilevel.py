"""Method `multilevel`: the paper's section 3.3, Chen et al.'s clique bound for any l_p ball. Sound, not exact.

Trees are grouped by `K`; the leaves of a group that meet each other and the ball are its cliques, boxes again,
and each group becomes a virtual tree, `L` times. At the end every group takes its best clique with the whole
budget: what is lost is that budgets are not shared. (The paper's CheckClique has its test the wrong way round:
a clique is kept when its distance is at most eps.) The paper's baseline; cost grows as leaves^(K^L) within reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._clock import clock
from .._errors import InvalidInputError, must_be
from .._jit import kernel
from .costs import cost, empty_row, ground_of, price_of_cells, price_row
from .problem import Found, Pair, Problem
from .reach import own_leaves, price_leaves


class Cliques(NamedTuple):
    """A virtual tree: boxes with what they cost and what they take from the margin."""

    price: np.ndarray
    loss: np.ndarray
    start: np.ndarray  # (cliques + 1,): entries, ascending by feature
    feature: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


@kernel
def _leaves_of(boxes, order, offsets, row, gain, reach, t):
    """The reachable leaves of a tree as cliques of one."""
    first, last = boxes.tree_offsets[t], boxes.tree_offsets[t + 1]
    n, entries = 0, 0
    for leaf in range(first, last):
        if reach[leaf] < np.inf:
            n += 1
            entries += boxes.entry_offsets[leaf + 1] - boxes.entry_offsets[leaf]
    price, loss, start = np.empty(n), np.empty(n), np.zeros(n + 1, dtype=np.int64)
    feature = np.empty(entries, dtype=np.int64)
    lo, hi = np.empty(entries, dtype=np.int64), np.empty(entries, dtype=np.int64)
    n, at = 0, 0
    for leaf in range(first, last):
        if not reach[leaf] < np.inf:
            continue
        price[n], loss[n] = reach[leaf], gain[leaf]
        for i in range(boxes.entry_offsets[leaf], boxes.entry_offsets[leaf + 1]):
            e = order[i]
            if row.own[boxes.feature[e]] >= 0:
                feature[at], lo[at], hi[at] = boxes.feature[e], boxes.lo[e], boxes.hi[e]
                at += 1
        n += 1
        start[n] = at
    return Cliques(price, loss, start, feature[:at], lo[:at], hi[:at])


@kernel
def _meet(a, i, b, k, out, offsets, row, p, cap):
    """Intersect box i of a with box k of b into `out` (feature, lo, hi); entries and cost, inf if out of reach."""
    x, x_end, y, y_end = a.start[i], a.start[i + 1], b.start[k], b.start[k + 1]
    n, total = 0, 0.0
    while x < x_end or y < y_end:
        if y == y_end or (x < x_end and a.feature[x] < b.feature[y]):
            j, lo, hi = a.feature[x], a.lo[x], a.hi[x]
            x += 1
        elif x == x_end or b.feature[y] < a.feature[x]:
            j, lo, hi = b.feature[y], b.lo[y], b.hi[y]
            y += 1
        else:
            j, lo, hi = a.feature[x], max(a.lo[x], b.lo[y]), min(a.hi[x], b.hi[y])
            x += 1
            y += 1
        if lo >= hi:
            return 0, np.inf
        price, _ = price_of_cells(row, offsets[j] + j, lo, hi, row.own[j])
        total = max(total, price) if p == np.inf else total + price
        if total > cap or total == np.inf:
            return 0, np.inf
        out[0, n], out[1, n], out[2, n] = j, lo, hi
        n += 1
    return n, total


@kernel
def _merge(a, b, offsets, row, p, cap, most):
    """The cliques of two virtual trees, and whether they were at most `most`."""
    widest = 1
    for i in range(len(a.price)):
        widest = max(widest, a.start[i + 1] - a.start[i])
    other = 1
    for k in range(len(b.price)):
        other = max(other, b.start[k + 1] - b.start[k])
    out = np.empty((3, widest + other), dtype=np.int64)
    room, space = 64, 512
    price, loss, start = np.empty(room), np.empty(room), np.zeros(room + 1, dtype=np.int64)
    entries = np.empty((3, space), dtype=np.int64)
    n, at = 0, 0
    for i in range(len(a.price)):
        for k in range(len(b.price)):
            used, total = _meet(a, i, b, k, out, offsets, row, p, cap)
            if total == np.inf:
                continue
            if n == most:
                return a, False
            if n == room:
                room *= 2
                price, loss = _grown(price, room), _grown(loss, room)
                longer = np.zeros(room + 1, dtype=np.int64)
                longer[: n + 1] = start[: n + 1]
                start = longer
            while at + used > space:
                space *= 2
                wider = np.empty((3, space), dtype=np.int64)
                wider[:, :at] = entries[:, :at]
                entries = wider
            entries[:, at : at + used] = out[:, :used]
            price[n], loss[n] = total, a.loss[i] + b.loss[k]
            at += used
            n += 1
            start[n] = at
    return (
        Cliques(
            price[:n],
            loss[:n],
            start[: n + 1],
            entries[0, :at].copy(),
            entries[1, :at].copy(),
            entries[2, :at].copy(),
        ),
        True,
    )


@kernel
def _grown(array, room):
    longer = np.empty(room)
    longer[: len(array)] = array
    return longer


class Multilevel:
    """The `Solver` of method ``multilevel``.

    Parameters
    ----------
    K : int
        Trees (later: virtual trees) a group.
    L : int
        Levels.
    time_limit : float, optional
        Seconds a row; groups not merged by then stay apart, which is sound.
    max_cliques : int
        A group with more stays apart.
    """

    batch_rows = 16

    def __init__(
        self,
        problem: Problem,
        *,
        K: int = 2,
        L: int = 1,
        time_limit: float | None = None,
        max_cliques: int = 200_000,
    ) -> None:
        for name, number in (("K", K), ("L", L), ("max_cliques", max_cliques)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise InvalidInputError(must_be(name, "a whole number of at least 1", number))
        self.problem, self.K, self.L = problem, K, L
        self.time_limit, self.max_cliques = time_limit, max_cliques
        boxes = problem.boxes
        leaf = np.repeat(np.arange(len(boxes.node)), np.diff(boxes.entry_offsets))
        self._order = np.lexsort((boxes.feature, leaf)).astype(np.int64)
        self._tree = np.repeat(np.arange(problem.model.n_trees), np.diff(boxes.tree_offsets))

    @staticmethod
    def refuses(problem: Problem) -> str | None:
        """Why this method cannot serve a problem, if so: it serves all."""
        return None

    def decide(self, pair: Pair, X: np.ndarray, limit: float) -> Found:
        """See `Solver.decide`; it offers no witnesses."""
        threat = self.problem.threat
        p = threat.norm
        spends = 0 < p < np.inf and 0 < threat.eps < np.inf
        ground = ground_of(self.problem, eps=threat.eps, unit=threat.eps if spends else 1.0)
        cap = float(threat.count) if p == 0 else (limit if spends else np.inf)
        lower, complete = np.empty(len(X)), np.ones(len(X), dtype=bool)
        for i, x in enumerate(X):
            row, gain, margin = self._row(pair, ground, x)
            lower[i] = margin - pair.solver
            if threat.moves:
                groups, complete[i] = self._groups(ground, row, gain, cap * (1 + 1e-12))
                lower[i] -= sum(float(group.loss.max()) for group in groups)
        return self._found(lower, complete)

    def nearest(self, pair: Pair, X: np.ndarray, cap: np.ndarray) -> Found:
        """See `Solver.nearest`: the least distance at which the groups together could flip; no witnesses."""
        p = self.problem.threat.norm
        ground = ground_of(self.problem)
        lower, complete = np.empty(len(X)), np.ones(len(X), dtype=bool)
        for i, x in enumerate(X):
            top = np.inf
            if cap[i] < np.inf:
                top = np.floor(cap[i]) if p == 0 else float(cost(max(cap[i], 1e-300), 1.0, p)) * (1 + 1e-12)
            row, gain, margin = self._row(pair, ground, x)
            may = pair.target(margin)[0]
            least, complete[i] = self._least(ground, row, gain, may, top)
            lower[i] = self.problem.threat.root_below(least)
        return self._found(lower, complete)

    def _least(self, ground, row, gain, may: float, top: float) -> tuple[float, bool]:
        """Deepen a cap until the groups could flip within it: the cost at which they first could."""
        if may <= 0:
            return 0.0, True
        # trees on their own reach the loss no later than groups do: their answer is where to start
        reach = self._reach(ground, row, np.inf)
        single = [_single(reach[a:b], gain[a:b]) for a, b in self._spans()]
        at = _first(single, may)
        finite = np.where(np.isfinite(row.price), row.price, 0.0)
        most, complete = float(finite.sum()) * (1 + 1e-9), True  # beyond it there is nothing to reach
        while at < np.inf and at <= top:
            cap = min(at + 1e-9 if ground.p == 0 else max(at * 1.3, most * 1e-6), top)
            groups, whole = self._groups(ground, row, gain, cap * (1 + 1e-12))
            complete &= whole
            found = _first([(group.price, group.loss) for group in groups], may)
            if found < np.inf:
                return max(found, at) if found <= top else np.inf, complete
            if cap >= min(top, most):
                break
            at = at + 1.0 if ground.p == 0 else cap
        return np.inf, complete

    def _spans(self):
        offsets = self.problem.boxes.tree_offsets
        return zip(offsets[:-1], offsets[1:], strict=True)

    def _row(self, pair: Pair, ground, x: np.ndarray):
        boxes = self.problem.boxes
        row = empty_row(ground)
        price_row(ground, x, row)
        own = np.empty(self.problem.model.n_trees, dtype=np.int64)
        own_leaves(boxes, row, own)
        value = self.problem.leaf_values(pair)[boxes.node]
        return row, value[own][self._tree] - value, pair.base + float(value[own].sum())

    def _reach(self, ground, row, cap: float) -> np.ndarray:
        out = np.empty(len(self.problem.boxes.node))
        price_leaves(self.problem.boxes, ground.offsets, row, ground.p, cap, out)
        return out

    def _groups(self, ground, row, gain, cap: float) -> tuple[list[Cliques], bool]:
        """The virtual trees of the last level, and whether every group was merged."""
        end = np.inf if self.time_limit is None else clock() + self.time_limit
        boxes, reach, complete = self.problem.boxes, self._reach(ground, row, cap), True
        level = [
            _leaves_of(boxes, self._order, ground.offsets, row, gain, reach, t)
            for t in range(self.problem.model.n_trees)
        ]
        for _ in range(self.L):
            merged = []
            for start in range(0, len(level), self.K):
                group = level[start]
                for other in level[start + 1 : start + self.K]:
                    small = False
                    if clock() < end:
                        args = (ground.offsets, row, ground.p, cap, self.max_cliques)
                        group, small = _merge(group, other, *args)
                    if not small:  # too many, or no time: the two stay apart
                        merged.append(other)
                        complete = False
                merged.append(group)
            level = merged
        return level, complete

    def _found(self, lower: np.ndarray, complete: np.ndarray) -> Found:
        empty = np.zeros(len(lower) + 1, dtype=np.int64)
        return Found(lower, empty, np.zeros(0, dtype=np.int32), np.zeros(0), complete)


def _single(reach: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = reach < np.inf
    return reach[kept], gain[kept]


def _first(groups: list[tuple[np.ndarray, np.ndarray]], wanted: float) -> float:
    """The least cost at which each group's best loss within it adds up to what is wanted."""
    steps: list[tuple[np.ndarray, np.ndarray]] = []
    for price, loss in groups:
        order = np.argsort(price, kind="stable")
        best = np.maximum.accumulate(loss[order])
        steps.append((price[order], np.diff(best, prepend=0.0)))
    price = np.concatenate([step[0] for step in steps] or [np.zeros(0)])
    order = np.argsort(price, kind="stable")
    rise = np.cumsum(np.concatenate([step[1] for step in steps] or [np.zeros(0)])[order])
    # running sums differ from the real ones by rounding: leave room, a little too early is sound
    enough = rise >= wanted - 1e-9 * max(abs(wanted), 1e-300)
    return float(price[order][np.argmax(enough)]) if enough.any() else np.inf
