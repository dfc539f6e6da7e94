"""The training bound of tables over the joint cells of a few features (blocks), with its slope.

A block reads several features and has one value for each combination of their cells; a staircase is a block
of one feature. The bound is that of `tree_shared`: one budget, each feature's cost shared equally by the blocks
that read it. Over disjoint blocks it is the linear relaxation of the exact worst case; at p = inf nothing is
spent, and blocks may overlap. The bound is concave in all tables
together, as for staircases, and its slopes are true supergradients.
Cost a row: its reachable joint cells times a few tangents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .additive_bound import loss_of, move_cost
from .tree_shared import Reach, shared_bound


class Blocks(NamedTuple):
    """The blocks' features and where their tables start, as the kernels read them."""

    start: np.ndarray  # int64 (n_blocks + 1,): block b reads members[start[b]:start[b + 1]]
    members: np.ndarray  # int64: features of the single-feature problem
    stride: np.ndarray  # int64: how far apart neighbouring cells of a member lie in its block's table
    table: np.ndarray  # int64 (n_blocks + 1,)
    readers: np.ndarray  # float64, one a feature: how many blocks read it


class Moves(NamedTuple):
    """One worker's workspace: what a row's moves cost, and the joint cells that it can be brought to."""

    cost: np.ndarray  # float64 (cells,): of each feature's cells
    low: np.ndarray  # int64 (d,): the lowest and the highest cell within reach
    high: np.ndarray
    start: np.ndarray  # int64 (n_blocks + 1,)
    leaf: np.ndarray  # int32 (most joint cells,)
    price: np.ndarray  # float32
    dear: np.ndarray  # int64 (n_blocks,)
    cheap: np.ndarray


@kernel
def feature_costs(i, rows, grid, moves):
    """What moving row i into each cell of each feature costs in units of the budget; which cells are in reach."""
    for j in range(rows.X.shape[1]):
        begin, end = grid.first[j], grid.first[j + 1]
        own, x = begin + rows.code[i, j], rows.X[i, j]
        moves.cost[own] = 0.0
        moves.low[j] = moves.high[j] = own
        for k in range(own + 1, end):
            moves.cost[k] = move_cost((grid.up[k] - x) * grid.inverse_scale[j], grid.kind, grid.power)
            if not moves.cost[k] <= grid.cap:
                break
            moves.high[j] = k
        for k in range(own - 1, begin - 1, -1):
            moves.cost[k] = move_cost((x - grid.down[k]) * grid.inverse_scale[j], grid.kind, grid.power)
            if not moves.cost[k] <= grid.cap:
                break
            moves.low[j] = k


@kernel
def joint_cells(i, rows, grid, blocks, moves):
    """List the joint cells of every block that the row can be brought to within the budget, with their price."""
    count = 0
    at = np.empty(len(blocks.members), dtype=np.int64)
    for b in range(len(blocks.table) - 1):
        moves.start[b] = count
        begin, end = blocks.start[b], blocks.start[b + 1]
        cell, size = blocks.table[b], end - begin
        own = cell
        for q in range(size):
            j = blocks.members[begin + q]
            at[q] = moves.low[j]
            cell += (at[q] - grid.first[j]) * blocks.stride[begin + q]
            own += rows.code[i, j] * blocks.stride[begin + q]
        # the row's own cell comes first: it wins every tie
        moves.leaf[count], moves.price[count] = own, np.float32(0.0)
        count += 1
        while True:
            spent, price = 0.0, 0.0
            for q in range(size):
                cost = moves.cost[at[q]]
                spent += cost
                price += cost / blocks.readers[blocks.members[begin + q]]
            if np.isinf(grid.budget):  # p = inf: each move is within reach by itself, and nothing is spent
                spent, price = 0.0, 0.0
            if cell != own and spent <= grid.budget * (1.0 + 1e-12):
                moves.leaf[count] = cell
                # rounded down, so that float32 never makes a cell dearer than it is
                moves.price[count] = np.float32(price * (1.0 - 1e-6))
                count += 1
            q = 0
            while q < size:
                j = blocks.members[begin + q]
                if at[q] < moves.high[j]:
                    at[q] += 1
                    cell += blocks.stride[begin + q]
                    break
                cell -= (at[q] - moves.low[j]) * blocks.stride[begin + q]
                at[q] = moves.low[j]
                q += 1
            if q == size:
                break
    moves.start[len(blocks.table) - 1] = count


@kernel
def block_bounds(which, rows, values, grid, blocks, moves, margin):
    """The bound of each row in `which`."""
    budget = 1.0 if np.isinf(grid.budget) else grid.budget
    for at in range(len(which)):
        i = which[at]
        feature_costs(i, rows, grid, moves)
        joint_cells(i, rows, grid, blocks, moves)
        reach = Reach(moves.start, moves.leaf, moves.price)
        found = shared_bound(reach, values, 0, rows.sign[i], budget, rows.slope[i], moves.dear, moves.cheap)
        margin[at], rows.slope[i] = found[0], found[1]


@kernel
def block_loss_and_slope(which, rows, values, grid, blocks, moves, loss, gradient):
    """As `additive_bound.loss_and_slope`: (sum of losses, sum of their planes at zero), slope into `gradient`."""
    total, offset = 0.0, 0.0
    budget = 1.0 if np.isinf(grid.budget) else grid.budget
    for at in range(len(which)):
        i = which[at]
        feature_costs(i, rows, grid, moves)
        joint_cells(i, rows, grid, blocks, moves)
        reach = Reach(moves.start, moves.leaf, moves.price)
        margin, rows.slope[i], part = shared_bound(
            reach, values, 0, rows.sign[i], budget, rows.slope[i], moves.dear, moves.cheap
        )
        value, change = loss_of(margin, loss)
        total += rows.weight[i] * value
        offset += rows.weight[i] * (value - change * margin)
        push = rows.weight[i] * change * rows.sign[i]
        for b in range(len(moves.dear)):
            gradient[moves.dear[b]] += part * push
            gradient[moves.cheap[b]] += (1.0 - part) * push
    return total, offset
