"""`search`, the quick part: whole batches of rows in one call, each row with a small allowance of operations.

Most rows are settled by the first bounds; what would take longer is left to `search.py`, row by row. The steps and
their proofs are the same: only the way through Python is saved, which takes longer than an easy row's search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .additive_rows import least_proved, targets
from .costs import Row, price_row
from .reach import own_leaves, price_leaves
from .search_bound import COST, GOAL, HOLD, LOST, LOWEST, new_state
from .search_greedy import flip, total_value
from .search_instance import build, cells_of, open_domain, shrink
from .search_tree import FINISHED, FOUND, HELD, run, start

ALLOWANCE = 100_000.0  # operations a question
LONG = 3_000_000.0  # and a radius: about ten milliseconds; row by row small instances would take longer
DEPTHS = 40
SMALL = 400  # leaves: radii on larger instances are left to `search.py`
HAIR = 1e-10  # leaves and cells this much beyond a cap are kept: their costs are sums of floats
SETTLED_NONE, SETTLED_FLIP, OPEN = 0, 1, 2


class Asked(NamedTuple):
    """One class pair's question, the same for every row."""

    value: np.ndarray  # (nodes,): each leaf's value for the pair
    base: float
    slack: float  # the library's rounding
    solver: float  # ours
    tie_flips: bool
    budget: float  # of the cost; inf at p = inf
    priced: bool  # False: cells are only filtered (p = inf)
    closer: float  # see `_closer` in search.py


class Model(NamedTuple):
    """What the rows are asked of."""

    boxes: object
    ground: object
    walk: object


class Batch(NamedTuple):
    """Answers; rows that are not settled have none."""

    settled: np.ndarray  # bool (n,)
    lower: np.ndarray  # (n,): of the margin, or of the cost of a flip
    moves: np.ndarray  # int64 (n,): how many features the candidate moves
    feature: np.ndarray  # int32 (n, d)
    value: np.ndarray  # float64 (n, d)


class Priced(NamedTuple):
    """One row, with room for the next."""

    row: Row
    reach: np.ndarray  # (leaves,): the cost of each leaf's box on its own
    gain: np.ndarray  # (leaves,): what each leaf takes from the margin
    own: np.ndarray  # (trees,): the row's own leaves
    cells: np.ndarray  # (d,): of the best flip
    number: np.ndarray  # (2,): the sum of the row's leaves, and of the most that each tree can lose


@kernel
def _room(model):
    d = len(model.ground.offsets) - 1
    cells, leaves = len(model.ground.cuts) + d, len(model.boxes.node)
    row = Row(np.zeros(d, dtype=np.int64), np.zeros(cells), np.zeros(cells))
    own = np.zeros(len(model.boxes.tree_offsets) - 1, dtype=np.int64)
    return Priced(row, np.zeros(leaves), np.zeros(leaves), own, np.zeros(d, dtype=np.int64), np.zeros(2))


@kernel
def _batch(n, d):
    return Batch(
        np.zeros(n, dtype=np.bool_),
        np.zeros(n),
        np.zeros(n, dtype=np.int64),
        np.empty((n, d), dtype=np.int32),
        np.empty((n, d)),
    )


@kernel
def _price(model, asked, x, cap, at):
    """Price a row's cells and leaves."""
    boxes, row = model.boxes, at.row
    price_row(model.ground, x, row)
    price_leaves(boxes, model.ground.offsets, row, model.ground.p, cap * (1 + HAIR), at.reach)
    own_leaves(boxes, row, at.own)
    whole, most = 0.0, 0.0
    for t in range(len(at.own)):
        mine = asked.value[boxes.node[at.own[t]]]
        whole += mine
        best = -np.inf
        for leaf in range(boxes.tree_offsets[t], boxes.tree_offsets[t + 1]):
            at.gain[leaf] = mine - asked.value[boxes.node[leaf]]
            if at.reach[leaf] < np.inf:
                best = max(best, at.gain[leaf])
        most += best
    at.number[0], at.number[1] = whole, most


@kernel
def _ask(model, asked, at, target, goal):
    """Whether any flip of loss >= target is within the goal: (answer, by how much losses miss); cells in `at`."""
    offsets, row = model.ground.offsets, at.row
    cap = goal * (1 + HAIR)
    domain = open_domain(offsets, row, at.reach, cap)
    for leaf in range(len(at.reach)):
        domain.alive[leaf] = at.reach[leaf] <= cap and at.reach[leaf] < np.inf
    if not shrink(model.boxes, offsets, row, at.gain, domain, target, cap if asked.priced else np.inf, False):
        return SETTLED_NONE, max(target - at.number[1], 0.0)
    instance = build(model.boxes, offsets, row, at.gain, domain, asked.priced)
    state = new_state(instance, DEPTHS)
    priced = 1.0 if asked.priced else 0.0
    wanted = goal if asked.priced else 0.0
    start(
        instance,
        state,
        (target, domain.total[0], wanted, domain.total[1], priced, 1.0, asked.closer, 0.0),
    )
    status = run(instance, state, ALLOWANCE)
    if status == FOUND:
        cells_of(row, offsets, domain, instance, state.best, at.cells)
        return SETTLED_FLIP, 0.0
    if status != FINISHED or state.number[LOST] != 0.0:
        return OPEN, 0.0
    return SETTLED_NONE, min(state.number[LOWEST], domain.total[2])


@kernel
def _keep(model, at, i, out):
    """Write the moves to `at.cells` down as row i's candidate."""
    n = 0
    for j in range(len(at.cells)):
        if at.cells[j] >= 0 and at.cells[j] != at.row.own[j]:
            out.feature[i, n] = j
            out.value[i, n] = at.row.landing[model.ground.offsets[j] + j + at.cells[j]]
            n += 1
    out.moves[i] = n
    out.settled[i] = True


@kernel
def _loss(model, asked, at):
    """What moving to `at.cells` takes from the margin."""
    return at.number[0] - total_value(model.walk, asked.value, at.cells)


@kernel
def decide_rows(model, asked, X):
    """`Search.decide` for the rows that a few operations settle."""
    out, at = _batch(len(X), X.shape[1]), _room(model)
    for i in range(len(X)):
        _price(model, asked, X[i], asked.budget, at)
        margin = asked.base + at.number[0]
        may, sure = targets(asked, margin)
        if may <= 0.0:
            continue
        answer, spare = _ask(model, asked, at, may, asked.budget)
        if answer == SETTLED_NONE:
            proved = margin
            if spare < np.inf:
                proved = max(least_proved(asked), margin - may + spare * (1 - 1e-9) - asked.solver)
            out.lower[i] = min(proved, margin - asked.solver)
            out.settled[i] = True
        elif answer == SETTLED_FLIP and _loss(model, asked, at) >= sure:
            out.lower[i] = margin - at.number[1] - asked.solver
            _keep(model, at, i, out)
    return out


@kernel
def nearest_rows(model, asked, X, top):
    """`Search.nearest` (costs of flips, at most `top`) for the rows that a few operations settle."""
    out, at = _batch(len(X), X.shape[1]), _room(model)
    for i in range(len(X)):
        _price(model, asked, X[i], top[i], at)
        may, sure = targets(asked, asked.base + at.number[0])
        if may <= 0.0:
            continue
        if asked.priced:
            least = _nearest_sum(model, asked, at, may, top[i])
        else:
            least = _nearest_inf(model, asked, at, may, top[i])
        if least >= 0.0 and _loss(model, asked, at) >= sure:
            out.lower[i] = least
            _keep(model, at, i, out)
    return out


@kernel
def _nearest_inf(model, asked, at, target, top):
    """p = inf: bisect over the sizes of moves; the least size of a flip (in `at.cells`), or -1: not settled."""
    price = at.row.price
    sizes = np.unique(price[(price < np.inf) & (price <= top)])
    if len(sizes) == 0:
        return -1.0
    low, high = 0, len(sizes)
    best = at.cells.copy()
    middle = high - 1  # the last size comes first: its flip is seldom the dearest
    while low < high:
        answer, _ = _ask(model, asked, at, target, sizes[middle])
        if answer == OPEN:
            return -1.0
        if answer == SETTLED_NONE:
            if middle == len(sizes) - 1:
                return -1.0
            low = middle + 1
        else:
            best[:] = at.cells
            high = min(middle, np.searchsorted(sizes, _dearest(model, at)))
        middle = (low + high) // 2
    at.cells[:] = best
    return sizes[low]


@kernel
def _dearest(model, at):
    """The largest price of the moves to `at.cells`."""
    most = 0.0
    for j in range(len(at.cells)):
        if at.cells[j] >= 0:
            most = max(most, at.row.price[model.ground.offsets[j] + j + at.cells[j]])
    return most


@kernel
def _sum(model, at, cells):
    """The cost of moving to the cells."""
    total = 0.0
    for j in range(len(cells)):
        if cells[j] >= 0:
            total += at.row.price[model.ground.offsets[j] + j + cells[j]]
    return total


@kernel
def _under(cost, closer):
    """Only flips at most this dear are better than one of this cost."""
    return cost - 0.5 if closer == 0.0 else cost * closer


@kernel
def _nearest_sum(model, asked, at, target, top):
    """p < inf: a cheap flip, then the proof that none is cheaper; its cost (flip in `at.cells`), or -1: not settled."""
    offsets, row = model.ground.offsets, at.row
    at.cells[:] = row.own
    if not flip(model.walk, asked.value, offsets, row, at.cells, at.number[0], target):
        return -1.0
    cost = _sum(model, at, at.cells)
    if not 0.0 < cost <= top:
        return -1.0
    goal = _under(cost, asked.closer)
    cap = goal * (1 + HAIR)
    domain = open_domain(offsets, row, at.reach, cap)
    for leaf in range(len(at.reach)):
        domain.alive[leaf] = at.reach[leaf] <= cap
    if not shrink(model.boxes, offsets, row, at.gain, domain, target, cap, False):
        return goal
    instance = build(model.boxes, offsets, row, at.gain, domain, True)
    if len(instance.gain) > SMALL:
        return -1.0
    state = new_state(instance, DEPTHS)
    number = state.number
    start(instance, state, (target, domain.total[0], goal, domain.total[1], 1.0, 0.0, asked.closer, 0.0))
    number[HOLD] = 1.0
    status = run(instance, state, LONG)
    if status == HELD:
        trial = at.cells.copy()
        cells_of(row, offsets, domain, instance, state.choice, trial)
        if flip(model.walk, asked.value, offsets, row, trial, at.number[0], target):
            price = _sum(model, at, trial)
            if price < cost:
                cost = price
                at.cells[:] = trial
                number[GOAL] = min(number[GOAL], _under(price, asked.closer))
        status = run(instance, state, LONG)
    if status != FINISHED or number[LOST] != 0.0:
        return -1.0
    if number[COST] < cost:
        cells_of(row, offsets, domain, instance, state.best, at.cells)
    return number[GOAL]
