"""What a library makes of several classes' scores, in floats, before it predicts the largest.

A mean, a softmax or a sigmoid keeps the order of real scores, but its rounding can make two scores that differ
in the last digit one number, and then the first of their classes is predicted. `Link` repeats that arithmetic,
so that even there the prediction is the library's. Certificates do not rest on it: `decision_slack` bounds what
it can do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

KINDS = ("none", "softmax", "sigmoid")


class Link(NamedTuple):
    """Scores are divided, and then go through a softmax or sigmoids (or nothing)."""

    kind: str = "none"
    divisor: float = 1.0
    steepness: float = 1.0  # of the sigmoids

    def __call__(self, scores: np.ndarray, dtype: str) -> np.ndarray:
        """What is compared, of scores (n, n_outputs), in the float type of the model's sums."""
        if self.divisor != 1.0:
            scores = scores / self.divisor
        if self.kind == "none":
            return scores
        scores = np.array(scores, dtype=dtype)
        from .predict import sigmoid, softmax

        (softmax if self.kind == "softmax" else sigmoid)(scores, scores.dtype.type(self.steepness))
        return scores
