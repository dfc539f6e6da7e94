"""What an adversary may do: the norm, the budget, and what each feature may do.

One place owns distances and budgets: `Threat` states them, `ResolvedThreat` fits them to a model, and
`ResolvedThreat.allows` compares a real move with the budget exactly. The verifiers' floats only ever
use `rounding`, the relative error that their costs may carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np

from ._errors import InvalidThreatError, must_be
from .model.floats import ceil_to, floor_to
from .model.names import as_written

NOT_A_NUMBER = (TypeError, ValueError, OverflowError)  # what float() and numpy raise
_SMALLEST, _LARGEST = 1e-60, 1e60
_DIGITS = 60


@dataclass(frozen=True)
class Threat:
    """What an adversary may do to a row.

    Parameters
    ----------
    norm : float
        p of the l_p norm, in [0, inf]; 0 counts moved features.
    eps : float
        The budget: the norm of the move is at most eps (at p = 0: at most floor(eps) features move).
    scale : float, array or dict, optional
        The norm is taken on ``delta / scale``; in column units, positive. Ignored at p = 0.
    frozen : bool array, or list or dict of features, optional
        Features that cannot move.
    lower, upper : float, array or dict, optional
        The valid range of each feature. A row outside it may stay where it is; moves land inside.
    direction : {-1, 0, 1}, array or dict, optional
        +1: a feature can only grow, -1: only shrink, 0: both.

    Notes
    -----
    A dict names features by column number or, for a model with feature names, by name; those it does
    not name keep the default.

    Examples
    --------
    >>> Threat(norm=1, eps=0.3, frozen=[0], direction={2: +1})
    Threat(norm=1.0, eps=0.3, frozen=[0], direction={2: 1})
    """

    norm: float
    eps: float = np.inf
    scale: Any = None
    frozen: Any = None
    lower: Any = None
    upper: Any = None
    direction: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check_norm(self.norm))
        object.__setattr__(self, "eps", check_eps(self.eps))

    def __repr__(self) -> str:
        parts = [f"norm={self.norm}", f"eps={self.eps}"]
        for name in ("scale", "frozen", "lower", "upper", "direction"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)!r}")
        return f"Threat({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Threat) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def to_dict(self) -> dict[str, Any]:
        """The threat as plain data, without what is left at its default."""
        out: dict[str, Any] = {"norm": self.norm, "eps": self.eps}
        for name in ("scale", "frozen", "lower", "upper", "direction"):
            given = getattr(self, name)
            if given is not None:
                out[name] = given.tolist() if isinstance(given, np.ndarray) else given
        return out

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Threat:
        """Read what `to_dict` (or a threat file) states; an unknown name is an error."""
        known = ("norm", "eps", "scale", "frozen", "lower", "upper", "direction")
        strange = [name for name in content if name not in known]
        if strange:
            raise InvalidThreatError(must_be("a threat's entries", f"among {', '.join(known)}", strange[0]))
        if "norm" not in content:
            raise InvalidThreatError("a threat must have a norm. Got none. Add norm = 1, for example.")
        return cls(**content)

    def resolve(self, model) -> ResolvedThreat:
        """Fit the threat to a model's features and float grid."""
        d, names = model.n_features, model.feature_names
        scale = _column("scale", self.scale, d, names, 1.0)
        lower = _column("lower", self.lower, d, names, -np.inf)
        upper = _column("upper", self.upper, d, names, np.inf)
        direction = _column("direction", self.direction, d, names, 0.0)
        frozen = _mask("frozen", self.frozen, d, names)
        _require(scale, (scale >= _SMALLEST) & (scale <= _LARGEST), "scale", "positive, from 1e-60 to 1e60", names)
        _require(lower, ~np.isnan(lower), "lower", "a number, not NaN", names)
        _require(upper, ~np.isnan(upper), "upper", "a number, not NaN", names)
        _require(direction, np.isin(direction, (-1, 0, 1)), "direction", "-1, 0 or +1", names)
        if np.any(lower > upper):
            j = int(np.flatnonzero(lower > upper)[0])
            raise InvalidThreatError(
                f"lower must be at most upper for every feature. Got lower {lower[j]:g} and upper {upper[j]:g} "
                f"for {_called(j, names)} instead."
            )
        return ResolvedThreat(
            norm=self.norm,
            eps=self.eps,
            scale=np.ones(d) if self.norm == 0 else scale,
            lower=ceil_to(lower, model.dtype),
            upper=floor_to(upper, model.dtype),
            down=~frozen & (direction <= 0),
            up=~frozen & (direction >= 0),
        )


@dataclass(frozen=True, eq=False)
class ResolvedThreat:
    """A threat as arrays over a model's features; ranges are on the model's float grid."""

    norm: float
    eps: float
    scale: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    down: np.ndarray
    up: np.ndarray

    @property
    def moves(self) -> bool:
        """Whether the budget allows any move at all."""
        return self.count >= 1 if self.norm == 0 else self.eps > 0

    @property
    def count(self) -> int:
        """p = 0: how many features may move."""
        return int(min(self.eps, len(self.scale)))

    @cached_property
    def rounding(self) -> float:
        """Bound on the relative error of a float64 sum of costs (|delta| / (scale * eps))^p.

        Four roundings before the power (amplified by p), two for the power itself, one for each term of
        the sum; doubled for the second-order terms.
        """
        p = self.norm if 0 < self.norm < np.inf else 1.0
        return (4.0 * p + 6.0 + len(self.scale)) * 2.0**-52

    def inverse_scale(self, unit: float) -> np.ndarray:
        """1 / (scale * unit): distances become dimensionless."""
        return 1.0 / (self.scale * unit)

    def root_below(self, cost):
        """A distance that is surely at most the real one of a summed cost (relative error: `rounding`)."""
        p = self.norm
        if p == 0:
            return cost
        if p == np.inf:
            return cost * (1 - 2.0**-50)
        cost = np.maximum(cost, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            # 1 / p is rounded too, and the power amplifies that by log(cost)
            loose = np.where((cost > 0) & (cost < np.inf), np.abs(np.log(cost)) / p * 2.0**-52, 0.0)
            return cost ** (1 / p) * (1 - 2 * self.rounding / min(p, 1.0) - loose)

    def admits(self, feature: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Whether each single move is in the direction and range allowed (whatever the budget)."""
        free = np.where(after > before, self.up[feature], True) & np.where(after < before, self.down[feature], True)
        inside = (after >= self.lower[feature]) & (after <= self.upper[feature])
        return free & (inside | (after == before))

    def distances(self, starts: np.ndarray, feature: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """The norm of each row's moves in float64 (relative error at most `rounding` / min(p, 1)).

        The moves of row r are those from ``starts[r]`` to ``starts[r + 1]``, at least one.
        """
        counts = np.diff(np.append(starts, len(feature)))
        if self.norm == 0:
            return counts.astype(np.float64)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # from one end of the floats to the other
            size = np.abs(after - before) / self.scale[feature]
            largest = np.maximum.reduceat(size, starts)
            if self.norm == np.inf:
                return largest
            shares = np.where(size == 0, 0.0, size / np.repeat(largest, counts)) ** self.norm
            total = largest * np.add.reduceat(shares, starts) ** (1.0 / self.norm)
        return np.where((counts == 1) | ~(largest > 0) | np.isinf(largest), largest, total)

    def distance(self, feature: np.ndarray, before: np.ndarray, after: np.ndarray) -> float:
        """The norm of one row's moves."""
        if len(feature) == 0:
            return 0.0
        return float(self.distances(np.zeros(1, dtype=np.int64), feature, before, after)[0])

    def allows_one(self, feature: np.ndarray, before: np.ndarray, after: np.ndarray) -> bool:
        """Whether one row's moves are within eps, exactly."""
        size = np.array([self.distance(feature, before, after)])
        return len(feature) == 0 or bool(self.allows(size, lambda _: (feature, before, after), self.eps)[0])

    def allows(self, sizes: np.ndarray, moves_of, eps: float) -> np.ndarray:
        """Whether moves at these float distances are within eps: exactly, where floats cannot tell.

        ``moves_of(r)`` gives row r's features, and their values before and after.
        """
        if self.norm == 0:
            return sizes <= np.floor(eps)
        slack = self.rounding / min(self.norm, 1.0) + 2.0**-50
        out = sizes <= eps * (1 - slack)
        for row in np.flatnonzero(~out & (sizes <= eps * (1 + slack))):
            feature, before, after = moves_of(row)
            out[row] = eps == np.inf or self._allows_exactly(feature, before, after, eps)
        return out

    def _allows_exactly(self, feature, before, after, eps) -> bool:
        if len(feature) == 1 and self.norm > 0:  # no power is needed
            return self._ratio(feature[0], before[0], after[0]) <= Fraction(float(eps))
        costs = [self.exact_cost(j, b, a, up=True) for j, b, a in zip(feature, before, after, strict=True)]
        total = max(costs) if self.norm == np.inf else sum(costs[1:], costs[0])
        return total <= self.exact_budget(eps, up=False)

    def exact_cost(self, feature: int, before: float, after: float, up: bool) -> Fraction:
        """(|move| / scale)^p, the ratio itself at p = inf: as a rational, rounded (up or down) where it is none."""
        if self.norm == 0:
            return Fraction(int(before != after))
        return self._power(self._ratio(feature, before, after), up)

    def exact_budget(self, eps: float, up: bool) -> Fraction:
        """What exact costs must not exceed."""
        return Fraction(int(np.floor(eps))) if self.norm == 0 else self._power(Fraction(float(eps)), up)

    def _ratio(self, feature: int, before: float, after: float) -> Fraction:
        return abs(Fraction(float(after)) - Fraction(float(before))) / Fraction(float(self.scale[feature]))

    def _power(self, ratio: Fraction, up: bool) -> Fraction:
        """ratio^p, rounded in the 55th digit where it is not rational."""
        if self.norm == np.inf or ratio == 0:
            return ratio
        power = Fraction(self.norm)
        root: Fraction | None = ratio
        degree = power.denominator  # a float's denominator is a power of two
        while root is not None and degree > 1:
            root, degree = _square_root(root), degree // 2
        if root is not None and power.numerator <= 64:
            return root**power.numerator
        with localcontext() as context:
            context.prec = _DIGITS
            near = (Decimal(ratio.numerator) / Decimal(ratio.denominator)) ** Decimal(self.norm)
        nudge = Fraction(1, 10 ** (_DIGITS - 5))
        return Fraction(near) * (1 + nudge if up else 1 - nudge)


def _square_root(ratio: Fraction) -> Fraction | None:
    """The rational square root, if there is one."""
    top, bottom = isqrt(ratio.numerator), isqrt(ratio.denominator)
    exact = top * top == ratio.numerator and bottom * bottom == ratio.denominator
    return Fraction(top, bottom) if exact else None


def check_norm(norm) -> float:
    """Return p as a float in [0, inf], or raise."""
    try:
        p = float(norm)
    except NOT_A_NUMBER:
        p = np.nan
    if isinstance(norm, bool) or not p >= 0:
        raise InvalidThreatError(must_be("norm", "a number p in [0, inf] (float('inf') for l_inf)", norm))
    if 0 < p < 2.0**-10 or 2.0**10 < p < np.inf:
        raise InvalidThreatError(must_be("norm", "0, inf, or between 1/1024 and 1024", norm))
    return p


def check_eps(eps, name: str = "eps") -> float:
    """Return a budget as a float, or raise."""
    try:
        value = float(eps)
    except NOT_A_NUMBER:
        value = np.nan
    if isinstance(eps, bool) or not value >= 0:
        raise InvalidThreatError(must_be(name, "a number of at least 0", eps))
    if 0 < value < _SMALLEST or _LARGEST < value < np.inf:
        raise InvalidThreatError(must_be(name, "0, inf, or between 1e-60 and 1e60", eps))
    return value


def _position(feature, d: int, names, what: str) -> int:
    """The column that a key of a dict or list names."""
    if isinstance(feature, str):
        if names is not None and feature not in names:
            feature = as_written(feature)
        if names is None or feature not in names:
            known = "the model has no feature names" if names is None else f"the model has {', '.join(names[:5])}, ..."
            raise InvalidThreatError(must_be(f"{what}'s feature", f"a feature of the model ({known})", feature))
        return names.index(feature)
    whole = isinstance(feature, (int, np.integer)) and not isinstance(feature, bool)
    if not whole or not -d <= int(feature) < d or int(feature) < 0:
        raise InvalidThreatError(must_be(f"{what}'s feature", f"a column number, 0 to {d - 1}, or a name", feature))
    return int(feature)


def _column(name: str, given, d: int, names, default: float) -> np.ndarray:
    """One number a feature, from None, a number, an array or a dict."""
    if given is None:
        return np.full(d, default)
    if isinstance(given, Mapping):
        out = np.full(d, default)
        for key, number in given.items():
            out[_position(key, d, names, name)] = _number(name, number)
        return out
    try:
        array = np.asarray(given, dtype=np.float64)
        if np.asarray(given).dtype == bool:
            raise TypeError
    except NOT_A_NUMBER:
        array = np.full(0, np.nan)
    if array.shape not in ((), (d,)):
        raise InvalidThreatError(
            must_be(name, f"a number, an array of {d} (one a feature) or a dict of features", given)
        )
    return np.broadcast_to(array, (d,)).copy()


def _number(name: str, number) -> float:
    try:
        if not isinstance(number, (bool, np.bool_)):
            return float(number)
    except NOT_A_NUMBER:
        pass
    raise InvalidThreatError(must_be(f"{name}'s entries", "numbers", number))


def _mask(name: str, given, d: int, names) -> np.ndarray:
    """A bool a feature, from None, a bool array, or a list or dict of features."""
    out = np.zeros(d, dtype=bool)
    if given is None:
        return out
    if isinstance(given, Mapping):
        for key, flag in given.items():
            if not isinstance(flag, (bool, np.bool_)):
                raise InvalidThreatError(must_be(f"{name}'s entries", "True or False", flag))
            out[_position(key, d, names, name)] = bool(flag)
        return out
    if isinstance(given, (str, int, np.integer)) and not isinstance(given, bool):
        given = [given]
    if not isinstance(given, Iterable):
        raise InvalidThreatError(must_be(name, f"{d} bools, or a list of features", given))
    given = list(given)
    if given and all(isinstance(flag, (bool, np.bool_)) for flag in given):
        if len(given) != d:
            raise InvalidThreatError(must_be(name, f"{d} bools, or a list of features", f"{len(given)} bools"))
        return np.array(given, dtype=bool)
    for key in given:
        out[_position(key, d, names, name)] = True
    return out


def _require(column: np.ndarray, good: np.ndarray, name: str, rule: str, names) -> None:
    if not np.all(good):
        j = int(np.flatnonzero(~good)[0])
        raise InvalidThreatError(must_be(f"{name} of {_called(j, names)}", rule, float(column[j])))


def _called(j: int, names) -> str:
    return f"feature {j}" + (f" ({names[j]})" if names is not None else "")
