"""Checks of estimator parameters: one clear line for each bad one, raised at ``fit`` as scikit-learn asks."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from .._errors import InvalidInputError, must_be


def number(name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_low: bool = False) -> float:
    """Return `value` as a float in [low, high] (above low with `open_low`), or raise one clear error."""
    rule = f"a number {'above' if open_low else 'of at least'} {low:g}"
    if high < np.inf:
        rule += f" and at most {high:g}"
    if low == -np.inf:
        rule = "a number"
    good = isinstance(value, Real | np.number) and not isinstance(value, bool | np.bool_)
    if not good or np.isnan(value) or value > high or (value <= low if open_low else value < low):
        raise InvalidInputError(must_be(name, rule, value))
    return float(value)


def finite(name: str, value: Any, low: float = -np.inf, *, open_low: bool = False) -> float:
    """As `number`, and finite."""
    result = number(name, value, low, open_low=open_low)
    if not np.isfinite(result):
        raise InvalidInputError(must_be(name, "a finite number", value))
    return result


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int of at least `low`, or raise one clear error."""
    good = isinstance(value, Integral | np.integer) and not isinstance(value, bool | np.bool_)
    if not good or value < low or (high is not None and value > high):
        upper = "" if high is None else f" and at most {high}"
        raise InvalidInputError(must_be(name, f"a whole number of at least {low}{upper}", value))
    return int(value)


def jobs(name: str, value: Any) -> None:
    """None, or a whole number other than 0; else raise one clear error."""
    good = isinstance(value, Integral | np.integer) and not isinstance(value, bool | np.bool_) and value != 0
    if value is not None and not good:
        raise InvalidInputError(must_be(name, "a whole number other than 0 (-1: all cores), or None", value))


def choice(name: str, value: Any, allowed: tuple) -> Any:
    """Return `value` when it is one of `allowed`, or raise one clear error."""
    if not any(type(value) is type(one) and value == one for one in allowed):
        raise InvalidInputError(must_be(name, "one of " + ", ".join(map(repr, allowed)), value))
    return value


def norm_of(value: Any) -> float:
    """The p of an l_p norm: any number in [0, inf]."""
    return number("norm", value, 0.0)


def eps_of(value: Any) -> float:
    """The radius of the threat: any finite number of at least 0."""
    return finite("eps", value, 0.0)
