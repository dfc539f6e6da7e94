"""A rigorous bound on how far a trained additive model is from the optimum of its training objective.

The objective is P(g) = F(g) + R(g): F the weighted mean loss of the training bounds, convex, and
R(g) = tv * total variation + l2 / 2 |g|^2 (+ monotone cones). Every pass over the rows yields a plane
c + <a, g> that supports F from below everywhere, even when g moved during the pass. For any convex
combination alpha of the planes, min_g [c(alpha) + <a(alpha), g> + R(g)] is a lower bound of the optimum; the
minimiser is the proximal point of tv and the cones at -a / l2, found exactly by the taut string (or by
isotonic regression), and the minimum is c - l2/2 |g|^2. Cost: linear in the cells for each evaluation.
See docs/convex-method.md, section "A certificate of convergence".
"""

from __future__ import annotations

import numpy as np

from .._jit import kernel


@kernel
def taut_string(target, weight, out):
    """Minimise ``1/2 |out - target|^2 + weight * sum |out[k + 1] - out[k]|`` exactly.

    The cumulative sum of the solution is the shortest path in a tube of radius `weight` around the
    cumulative sum of the target; it is pulled tight from knot to knot.
    """
    n = len(target)
    total = np.empty(n + 1)
    total[0] = 0.0
    for k in range(n):
        total[k + 1] = total[k] + target[k]
    knot, height = 0, 0.0
    while knot < n:
        low, high = -np.inf, np.inf
        low_at, high_at = knot, knot
        bend, level, slope = n, total[n], 0.0
        for k in range(knot + 1, n + 1):
            room = weight if k < n else 0.0
            below = (total[k] - room - height) / (k - knot)
            above = (total[k] + room - height) / (k - knot)
            if below > high:
                bend, level, slope = high_at, total[high_at] + weight, high
                break
            if above < low:
                bend, level, slope = low_at, total[low_at] - weight, low
                break
            if below >= low:
                low, low_at = below, k
            if above <= high:
                high, high_at = above, k
            slope = below
        for k in range(knot, bend):
            out[k] = slope
        knot, height = bend, level


@kernel
def isotonic(target, sign, out):
    """The nearest sequence to `target` that never falls (sign = 1) or never rises (sign = -1)."""
    n = len(target)
    level = np.empty(n)
    size = np.empty(n, dtype=np.int64)
    blocks = 0
    for k in range(n):
        level[blocks], size[blocks] = sign * target[k], 1
        blocks += 1
        while blocks > 1 and level[blocks - 2] >= level[blocks - 1]:
            both = size[blocks - 2] + size[blocks - 1]
            level[blocks - 2] += (level[blocks - 1] - level[blocks - 2]) * size[blocks - 1] / both
            size[blocks - 2] = both
            blocks -= 1
    k = 0
    for b in range(blocks):
        for _ in range(size[b]):
            out[k] = sign * level[b]
            k += 1


@kernel
def proximal(target, first, weight, monotone, out):
    """The proximal point of ``weight * total variation`` and the monotone cones, feature by feature."""
    for j in range(len(first) - 1):
        begin, end = first[j], first[j + 1]
        if monotone[j] == 0:
            taut_string(target[begin:end], weight, out[begin:end])
        else:
            sign = 1.0 if monotone[j] > 0 else -1.0
            shifted = target[begin:end].copy()
            # inside the cone the total variation is sign * (last - first)
            shifted[0] += sign * weight
            shifted[-1] -= sign * weight
            isotonic(shifted, sign, out[begin:end])


def total_variation(values, first) -> float:
    """Sum of the staircases' steps, in absolute value."""
    steps = np.abs(np.diff(values))
    steps[first[1:-1] - 1] = 0.0
    return float(steps.sum())


class Planes:
    """Supporting planes of the mean loss, and the best lower bound of the optimum that they prove."""

    def __init__(self, first, tv: float, l2: float, monotone, keep: int = 40):
        self.first, self.tv, self.l2, self.monotone, self.keep = first, tv, l2, monotone, keep
        # losses are never negative: the zero plane
        self.slopes: list[np.ndarray] = [np.zeros(int(first[-1]))]
        self.offsets: list[float] = [0.0]
        self.alpha = np.ones(1)

    def add(self, offset: float, slope: np.ndarray) -> None:
        """Store the plane ``offset + <slope, g>``; the least useful one leaves when there are too many."""
        if len(self.slopes) >= self.keep:
            worst = int(np.argmin(self.alpha))
            del self.slopes[worst], self.offsets[worst]
            self.alpha = np.delete(self.alpha, worst)
        self.slopes.append(slope)
        self.offsets.append(offset)
        self.alpha = np.append(self.alpha, 0.0)
        total = self.alpha.sum()
        self.alpha = self.alpha / total if total > 0 else np.full(len(self.slopes), 1.0 / len(self.slopes))

    def _point(self, alpha, matrix):
        """The minimiser for one combination of planes."""
        out = np.empty(matrix.shape[1])
        proximal(-(alpha @ matrix) / self.l2, self.first, self.tv / self.l2, self.monotone, out)
        return out

    def lower_bound(self, steps: int = 60) -> tuple[float, np.ndarray]:
        """The greatest proved lower bound over combinations of the planes, and the point it belongs to.

        Pairwise Frank-Wolfe over the simplex, with a line search; every iterate is a valid bound.
        """
        matrix, offsets = np.array(self.slopes), np.array(self.offsets)
        alpha = self.alpha
        point = self._point(alpha, matrix)
        best = float(alpha @ offsets - 0.5 * self.l2 * point @ point)
        for _ in range(steps):
            scores = offsets + matrix @ point  # the slope of the dual in alpha
            up, down = int(np.argmax(scores)), int(np.argmin(np.where(alpha > 0, scores, np.inf)))
            slack = scores[up] - alpha @ scores
            if slack <= 1e-10 * abs(best) or up == down:
                break
            direction = matrix[up] - matrix[down]
            curvature = float(direction @ direction) / self.l2
            step = min(alpha[down], (scores[up] - scores[down]) / max(curvature, 1e-300))
            trial = alpha.copy()
            trial[up] += step
            trial[down] -= step
            moved = self._point(trial, matrix)
            value = float(trial @ offsets - 0.5 * self.l2 * moved @ moved)
            if value < best:
                break
            alpha, point, best = trial, moved, value
        self.alpha = alpha
        return best, point
