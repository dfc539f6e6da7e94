"""The radius of each boosting round (paper section 4.3): it grows to eps, so that first stumps are not wasted.

Without it, the first stumps of a large eps can all be flipped by one sample's whole budget, and the
constant looks optimal.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from .._errors import InvalidInputError, must_be

SHAPES: dict[str, Callable[[float], float]] = {
    "linear": lambda share: share,
    "quadratic": lambda share: share * share,
    "root": lambda share: share**0.5,
    "cosine": lambda share: float(0.5 - 0.5 * np.cos(np.pi * share)),
}


def schedule_of(length: Any, shape: Any, rounds: int) -> Callable[[int], float]:
    """Return the share of eps used in round 0, 1, ...: 1 from round ``length - 1`` on.

    Parameters
    ----------
    length : int, float in (0, 1) or None
        Rounds until the full eps (1, 0 or None: at once); a fraction is of `rounds`.
    shape : str or callable
        One of `SHAPES`, or a function from (0, 1] to a share in [0, 1].
    rounds : int
    """
    if isinstance(shape, str) and shape in SHAPES:
        grow = SHAPES[shape]
    elif callable(shape):
        grow = shape
    else:
        raise InvalidInputError(must_be("schedule_shape", f"a function or one of {sorted(SHAPES)}", shape))
    number = isinstance(length, Real) and not isinstance(length, bool)
    if length is None:
        steps = 1
    elif number and 0 <= length < 1:
        steps = max(1, int(np.ceil(length * rounds)))
    elif number and 1 <= length == np.floor(length) < np.inf:
        steps = int(length)
    else:
        raise InvalidInputError(
            must_be("eps_schedule", "'auto', a number of rounds, a fraction below 1, or None", length)
        )

    def share(number: int) -> float:
        if number + 1 >= steps:
            return 1.0
        value = float(grow((number + 1) / steps))
        if not 0.0 <= value <= 1.0:
            raise InvalidInputError(must_be("schedule_shape", "a function to shares between 0 and 1", value))
        return value

    return share
