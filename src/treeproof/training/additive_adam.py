"""Adam at all scales of a staircase at once.

A move of the adversary pulls at single cells, so that plain coordinate-wise steps learn the coarse shape of a
fine staircase slowly (worst for p = inf, where all of a row's pull sits on one cell a feature). Each staircase
is therefore written as a sum over dyadic blocks of cells (single cells, pairs, fours, ...), and Adam moves the
blocks' heights: the same model and objective, better conditioned. Cost: linear in the cells.
"""

from __future__ import annotations

import numpy as np

from .._jit import kernel


@kernel
def _node_offsets(first):
    """Where each feature's blocks start, finest level first; the last entry is their number."""
    offsets = np.zeros(len(first), dtype=np.int64)
    for j in range(len(first) - 1):
        size = first[j + 1] - first[j]
        count = size
        while size > 1:
            size = (size + 1) // 2
            count += size
        offsets[j + 1] = offsets[j] + count
    return offsets


@kernel
def _step(first, offsets, slope, mean, square, steps, rate, values):
    """Move `values` by one Adam step on the heights of all blocks."""
    fade_mean, fade_square = 1.0 - 0.9**steps, 1.0 - 0.999**steps
    pull = np.empty(len(mean))
    for j in range(len(first) - 1):
        size, node = first[j + 1] - first[j], offsets[j]
        levels = 1
        for k in range(size):
            pull[node + k] = slope[first[j] + k]
        while size > 1:
            above = node + size
            half = (size + 1) // 2
            for k in range(half):
                pull[above + k] = pull[node + 2 * k]
                if 2 * k + 1 < size:
                    pull[above + k] += pull[node + 2 * k + 1]
            node, size = above, half
            levels += 1
        # all levels together may move a cell by about twice the rate
        reach = rate * min(1.0, 2.0 / levels)
        for at in range(offsets[j], offsets[j + 1]):
            mean[at] += 0.1 * (pull[at] - mean[at])
            square[at] += 0.001 * (pull[at] * pull[at] - square[at])
            pull[at] = reach * (mean[at] / fade_mean) / (np.sqrt(square[at] / fade_square) + 1e-8)
        node, size = offsets[j], first[j + 1] - first[j]
        shift = 0
        while True:
            for k in range(first[j + 1] - first[j]):
                values[first[j] + k] -= pull[node + (k >> shift)]
            if size == 1:
                break
            node, size, shift = node + size, (size + 1) // 2, shift + 1


class Adam:
    """Moments of the blocks' heights over one cycle."""

    def __init__(self, first: np.ndarray):
        self.first, self.offsets = first, _node_offsets(first)
        self.mean, self.square = np.zeros(self.offsets[-1]), np.zeros(self.offsets[-1])
        self.steps = 0

    def move(self, values: np.ndarray, slope: np.ndarray, rate: float) -> None:
        """One step on `values`, in place, against a subgradient."""
        self.steps += 1
        _step(self.first, self.offsets, slope, self.mean, self.square, self.steps, float(rate), values)
