"""Blocks of interacting features: which features, and their tables as a problem for `additive_optimiser`.

A block has one value for each combination of its features' cells; a staircase is a block of one feature. The
problem stays convex in all tables together (`additive_blocks`), and its gap is proved as for staircases.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._errors import InvalidInputError, must_be
from ..model import TreeEnsemble
from .additive_optimiser import Settings, solve
from .additive_problem import PARTS, Problem, spread

JOINT_CELLS = 64  # about as many joint cells a table as max_bins="auto" allows
MOST_CELLS = 4_096  # and at most


def check_interactions(model) -> None:
    """Raise one clear error for `interactions` that cannot be."""
    given = model.interactions
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        good = 2 <= given <= 12
    else:
        good = isinstance(given, (list, tuple)) and all(
            isinstance(group, (list, tuple)) and 1 <= len(set(group)) == len(group) <= 12 for group in given
        )
    if not good:
        raise InvalidInputError(
            must_be("interactions", "None, a number of features from 2 to 12, or a list of groups of features", given)
        )
    for name, least in (("max_stumps", None), ("monotone", None), ("total_variation", "auto")):
        if getattr(model, name) is not least and getattr(model, name) != least:
            found = getattr(model, name)
            raise InvalidInputError(f"{name} must be {least!r} with interactions: it shapes staircases. Got {found!r}.")


def group_size(interactions) -> int:
    """How many features the largest group has."""
    if isinstance(interactions, (int, np.integer)):
        return int(interactions)
    return max((len(group) for group in interactions), default=1)


def groups_of(interactions, problem: Problem, rows, settings: Settings, rng, column) -> list[tuple[int, ...]]:
    """The groups as input columns: those given (`column` reads a name), or chosen after a first fit of staircases."""
    if not isinstance(interactions, (int, np.integer)):
        return [tuple(column("interactions", key) for key in group) for group in interactions]
    first = replace(settings, epochs=settings.epochs, max_epochs=settings.epochs, report=None)
    return best_partners(problem, rows, solve(problem, rows, first, rng).values, int(interactions))


@dataclass
class BlockProblem:
    """What `Problem` is for staircases, for blocks over the features of a `Problem` (`single`)."""

    single: Problem
    blocks: Any  # additive_blocks.Blocks
    tv: float = 0.0  # tables have no order to smooth along: only l2 is penalised
    _work: list = field(default_factory=list)

    @property
    def cells(self) -> int:
        return int(self.blocks.table[-1])

    @property
    def first(self) -> np.ndarray:
        return self.blocks.table

    @property
    def l2(self) -> float:
        return self.single.l2

    @property
    def monotone(self) -> np.ndarray:
        return np.zeros(len(self.blocks.table) - 1, dtype=np.int64)

    def grid(self, share: float = 1.0):
        return self.single.grid(share)

    def rows(self, X, sign, weight):
        return self.single.rows(X, sign, weight)

    def pool(self) -> ThreadPoolExecutor | None:
        return self.single.pool()

    def penalty(self, values) -> float:
        return 0.5 * self.l2 * float(values @ values)

    def penalty_slope(self, values) -> np.ndarray:
        return self.l2 * values

    def project(self, values) -> np.ndarray:
        return values

    def forget_workspaces(self) -> None:
        """Free what only a run of training needs."""
        self._work.clear()

    def _workspaces(self) -> list:
        from .additive_blocks import Moves

        d, tables = len(self.single.first) - 1, len(self.blocks.table) - 1

        def space():
            return Moves(
                np.empty(self.single.cells),
                np.empty(d, dtype=np.int64),
                np.empty(d, dtype=np.int64),
                np.empty(tables + 1, dtype=np.int64),
                np.empty(self.cells, dtype=np.int32),
                np.empty(self.cells, dtype=np.float32),
                np.empty(tables, dtype=np.int64),
                np.empty(tables, dtype=np.int64),
            )

        if not self._work:
            self._work.extend(space() for _ in range(PARTS))
        return self._work

    def bounds(self, rows, values, share: float = 1.0, pool=None) -> np.ndarray:
        """The lower bound of each row's worst-case margin."""
        from .additive_blocks import block_bounds

        grid, work, out = self.grid(share), self._workspaces(), np.empty(len(rows.sign))

        def run(k, part):
            margin = np.empty(len(part))
            block_bounds(part, rows, values, grid, self.blocks, work[k], margin)
            out[part] = margin

        spread(run, np.arange(len(out)), pool)
        return out

    def mean_loss(self, which, rows, values, grid, pool=None):
        """Mean loss over rows `which`, its plane's offset at zero, and a subgradient: a supporting plane."""
        from .additive_blocks import block_loss_and_slope

        work = self._workspaces()

        def run(k, part):
            slope = np.zeros(self.cells)
            total, offset = block_loss_and_slope(
                part, rows, values, grid, self.blocks, work[k], self.single.loss, slope
            )
            return total, offset, slope

        found, count = spread(run, which, pool), len(which)
        slope = np.sum([one[2] for one in found], axis=0)
        return sum(one[0] for one in found) / count, sum(one[1] for one in found) / count, slope / count


def build_blocks(single: Problem, groups: list[tuple[int, ...]]) -> BlockProblem:
    """Blocks for groups of input columns; every other feature with thresholds is a block of its own."""
    from .additive_blocks import Blocks

    place = {int(j): at for at, j in enumerate(single.features)}
    known = [tuple(place[j] for j in group if j in place) for group in groups]
    known = list(dict.fromkeys(group for group in known if group))
    covered = {at for group in known for at in group}
    # the intercept is the problem's last feature, with a single cell
    known += [(at,) for at in range(len(single.first) - 1) if at not in covered]
    sizes = np.diff(single.first)
    stride, table, readers = [], [0], np.zeros(len(sizes))
    for group in known:
        step = 1
        for at in group:
            stride.append(step)
            step *= int(sizes[at])
            readers[at] += 1
        if step > MOST_CELLS:
            raise InvalidInputError(
                f"interactions must have at most {MOST_CELLS} joint cells a group. Got {step} for columns "
                f"{[int(single.features[at]) for at in group]}. Use a smaller max_bins or smaller groups."
            )
        table.append(table[-1] + step)
    start = np.concatenate([[0], np.cumsum([len(group) for group in known])]).astype(np.int64)
    blocks = Blocks(
        start, np.array([at for group in known for at in group]), np.array(stride), np.array(table), readers
    )
    return BlockProblem(single, blocks)


def best_partners(problem: Problem, rows, values, size: int) -> list[tuple[int, ...]]:
    """For each feature the group of `size` features that it interacts with most, in input columns.

    A feature's side of its middle threshold is +1 or -1, or 0 where the adversary alone could change it (p = inf).
    Two features interact by the squared correlation of the product of their sides with the slope of the robust
    loss, which is what a table of their four corners can gain. For finite p groups are disjoint, which keeps the
    bound tight; at p = inf each feature leads a group, and groups overlap.
    """
    features = len(problem.features)
    slope = rows.weight * rows.sign / (1.0 + np.exp(np.clip(problem.bounds(rows, values), -50.0, 50.0)))
    side = np.zeros((len(rows.sign), features), dtype=np.float32)
    for at, steps in enumerate(problem.thresholds):
        side[:, at] = np.where(rows.X[:, at] < steps[len(steps) // 2], -1.0, 1.0)
    if np.isinf(problem.threat.norm) and problem.threat.moves:
        inverse = problem.threat.inverse_scale(problem.threat.eps)[problem.features]
        movable = np.logical_or(problem.threat.up, problem.threat.down)[problem.features]
        for place in np.flatnonzero(movable):
            steps = problem.thresholds[place]
            away = np.abs(rows.X[:, place] - steps[len(steps) // 2]) * inverse[place]
            side[away <= 1.0, place] = 0.0
    gain = (side * slope[:, None].astype(np.float32)).T @ side
    score = gain.astype(np.float64) ** 2 / np.maximum(np.abs(side).T @ np.abs(side), 50.0)
    np.fill_diagonal(score, -1.0)
    used = np.zeros(features, dtype=bool)
    groups = []
    for leader in np.argsort(-score.max(axis=1, initial=-1.0), kind="stable"):
        if used[leader]:
            continue
        group, total = [int(leader)], score[leader].copy()
        while len(group) < size:
            total[group] = -1.0
            best = int(np.argmax(np.where(used, -1.0, total)))
            if used[best] or total[best] <= 0.0:
                break
            group.append(best)
            total = total + score[best]
        if not np.isinf(problem.threat.norm):
            used[group] = True
        groups.append(tuple(int(problem.features[at]) for at in sorted(group)))
    return list(dict.fromkeys(groups))


def blocks_ensemble(problem: BlockProblem, values, n_features: int) -> TreeEnsemble:
    """One tree a block; equal neighbours are one leaf, and constant blocks go into the base."""
    single, blocks = problem.single, problem.blocks
    base, trees = 0.0, []
    for b in range(len(blocks.table) - 1):
        members = blocks.members[blocks.start[b] : blocks.start[b + 1]]
        own = values[blocks.table[b] : blocks.table[b + 1]]
        if np.all(own == own[0]):
            base += float(own[0])
            continue
        shape = [int(single.first[at + 1] - single.first[at]) for at in members]
        columns = [(int(single.features[at]), single.thresholds[at]) for at in members]
        tree: dict[str, list] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
        _grow(tree, own.reshape(shape, order="F"), columns, [0] * len(members))
        trees.append(tree)
    if not trees:
        empty = np.zeros(0)
        return TreeEnsemble.from_stumps(empty.astype(np.int64), empty, empty, empty, n_features=n_features, base=base)
    return TreeEnsemble.from_trees(trees, n_features=n_features, base=base)


def _grow(tree, table, columns, offset) -> int:
    """Add the nodes of a table to `tree`, halving its longest side; returns the root's number."""
    number = len(tree["feature"])
    axis = int(np.argmax(table.shape))
    leaf = bool(np.all(table == table.flat[0]))
    cut = table.shape[axis] // 2
    column, steps = columns[axis]
    tree["feature"].append(-1 if leaf else column)
    tree["threshold"].append(0.0 if leaf else float(steps[offset[axis] + cut - 1]))
    tree["value"].append(float(table.flat[0]) if leaf else 0.0)
    for name in ("left", "right"):
        tree[name].append(-1)
    if leaf:
        return number
    low, high = np.split(table, [cut], axis=axis)
    tree["left"][number] = _grow(tree, low, columns, offset)
    after = [*offset]
    after[axis] += cut
    tree["right"][number] = _grow(tree, high, columns, after)
    return number
