"""Convex decreasing losses of the margin, by name or as an object (paper section 4: any such loss will do).

A loss is anything with the vectorised methods ``value(margin)`` and ``slope(margin)`` (its derivative, at
most 0); ``curvature`` (the second derivative) is optional and speeds the weights up by Newton's method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from .._errors import InvalidInputError, must_be


class Exponential:
    """exp(-margin), the paper's loss: weights in closed form; wild outliers weigh a lot."""

    link_scale = 2.0  # its minimiser is half the log-odds

    def value(self, margin):
        with np.errstate(over="ignore"):
            return np.exp(-margin)

    def slope(self, margin):
        return -self.value(margin)

    def curvature(self, margin):
        return self.value(margin)


class Logistic:
    """log(1 + exp(-margin)): grows only linearly for badly misclassified rows."""

    link_scale = 1.0

    def value(self, margin):
        return -log_expit(margin)

    def slope(self, margin):
        return -expit(-margin)

    def curvature(self, margin):
        chance = expit(margin)
        return chance * (1.0 - chance)


class Sigmoid:
    """A smooth step of width `width`: nearly the count of rows with a negative margin, and not convex."""

    def __init__(self, width: float):
        self.width = width

    def value(self, margin):
        return expit(-margin / self.width)

    def slope(self, margin):
        chance = self.value(margin)
        return -chance * (1.0 - chance) / self.width


NAMED = {"exponential": Exponential, "logistic": Logistic}


def loss_of(value: Any):
    """Return the loss that `value` names or is, or raise one clear error."""
    if isinstance(value, str):
        if value not in NAMED:
            raise InvalidInputError(
                must_be("loss", "'exponential', 'logistic' or a convex decreasing loss object", value)
            )
        return NAMED[value]()
    for method in ("value", "slope"):
        if not callable(getattr(value, method, None)):
            raise InvalidInputError(
                must_be("loss", "'exponential', 'logistic' or an object with value(margin) and slope(margin)", value)
            )
    _check_shape(value)
    return value


def _check_shape(loss) -> None:
    """Refuse a loss that is plainly not finite, decreasing and convex on a few margins."""
    margins = np.linspace(-4.0, 4.0, 65)
    values, slopes = np.asarray(loss.value(margins)), np.asarray(loss.slope(margins))
    good = values.shape == slopes.shape == margins.shape and bool(
        np.all(np.isfinite(values)) and np.all(np.isfinite(slopes))
    )
    tolerance = 1e-9 * (1.0 + np.abs(values).max()) if good else 0.0
    if not good or np.any(slopes > tolerance) or np.any(np.diff(slopes) < -tolerance):
        raise InvalidInputError(
            "loss must be finite, decreasing and convex, with value(margins) and slope(margins) of the shape of "
            f"margins. Got {type(loss).__name__}, which is not so between -4 and 4."
        )
