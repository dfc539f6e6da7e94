"""Results, a row at a time: `Certificates` of `certify`, `Radii` of `radius`. Averages come last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property
from typing import Any, Self

import numpy as np

from ._errors import InvalidInputError, must_be
from .threat import Threat


class Status(IntEnum):
    """What is known of a row."""

    UNKNOWN = 0
    ROBUST = 1
    BROKEN = 2


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Changed columns of the rows that have a witness (CSR); a misclassified row is its own, unchanged."""

    present: np.ndarray  # bool (n,)
    offsets: np.ndarray  # int64 (n + 1,)
    feature: np.ndarray  # int32
    value: np.ndarray  # float64, on the model's input grid

    def changes(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Changed columns of a row, and their new values."""
        part = slice(self.offsets[row], self.offsets[row + 1])
        return self.feature[part], self.value[part]

    def dense(self, X: np.ndarray, dtype: str) -> np.ndarray:
        """Whole rows in the model's dtype, NaN where there is no witness."""
        out = np.full(X.shape, np.nan, dtype=dtype)
        out[self.present] = X[self.present].astype(dtype)
        rows = np.repeat(np.arange(len(self.present)), np.diff(self.offsets))
        out[rows, self.feature] = self.value
        return out

    @classmethod
    def empty(cls, n: int) -> Witnesses:
        return cls(np.zeros(n, bool), np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))

    @classmethod
    def join(cls, parts: list[Witnesses]) -> Witnesses:
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            np.concatenate([part.present for part in parts]),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.concatenate([part.feature for part in parts]),
            np.concatenate([part.value for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class _PerRow:
    """What both results hold."""

    X: np.ndarray = field(repr=False)
    y: np.ndarray | None
    predicted: np.ndarray
    classes: np.ndarray
    threat: Threat
    lower: np.ndarray
    upper: np.ndarray
    witnesses: Witnesses
    seconds: np.ndarray
    method_code: np.ndarray
    method_names: tuple[str, ...]
    method_reason: str
    dtype: str
    cast_rows: int
    interrupted: bool
    feature_names: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.lower)

    @cached_property
    def method(self) -> np.ndarray:
        """The method that answered each row (`method_reason` says why it was chosen)."""
        return np.asarray(self.method_names, dtype=object)[self.method_code]

    @cached_property
    def correct(self) -> np.ndarray | None:
        """Whether each row is predicted as its label; None without labels."""
        return None if self.y is None else self.y == self.predicted

    @property
    def clean_error(self) -> float | None:
        """Share of misclassified rows; None without labels."""
        return None if self.correct is None else float(np.mean(~self.correct))

    @property
    def witness(self) -> np.ndarray:
        """Witnesses as whole rows (n, n_features), NaN where none; made on request, see `changes` for one row."""
        return self.witnesses.dense(self.X, self.dtype)

    def changes(self, row: int) -> dict[Any, tuple[float, float]]:
        """What a row's witness changes: ``{feature: (from, to)}``."""
        columns, values = self.witnesses.changes(row)
        before = self.X[row].astype(self.dtype)
        names = self.feature_names
        return {
            (names[j] if names else int(j)): (float(before[j]), float(value))
            for j, value in zip(columns, values, strict=True)
        }

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Put the results of several parts of a table together, in order.

        Parameters
        ----------
        parts : sequence of Certificates, or of Radii
            Of the same model and threat, with labels in all of them or in none.
        """
        parts = list(parts)
        if not parts or any(type(part) is not cls for part in parts):
            shown = [type(part).__name__ for part in parts]
            raise InvalidInputError(must_be("parts", f"at least one, all of them {cls.__name__}", shown))
        first = parts[0]
        joined: dict[str, Any] = {}
        for name in (item.name for item in fields(cls)):
            values = [getattr(part, name) for part in parts]
            if name == "witnesses":
                joined[name] = Witnesses.join(values)
            elif name == "cast_rows":
                joined[name] = sum(values)
            elif name == "interrupted":
                joined[name] = any(values)
            elif name != "classes" and all(isinstance(value, np.ndarray) for value in values):
                joined[name] = np.concatenate(values)
            elif all(np.array_equal(value, getattr(first, name)) for value in values):
                joined[name] = getattr(first, name)
            else:
                raise InvalidInputError(
                    f"parts must be of one model, threat and method. Got different {name} instead. "
                    "Certify each part with the same arguments."
                )
        return cls(**joined)

    def _columns(self) -> dict[str, np.ndarray]:
        out = {"predicted": self.predicted}
        if self.y is not None:
            out["y"] = self.y
        out |= {"lower": self.lower, "upper": self.upper}
        out["changed"] = np.diff(self.witnesses.offsets)
        out |= {"method": self.method, "seconds": self.seconds}
        return out

    def _frame(self, columns: dict[str, Any]):
        try:
            import pandas
        except ImportError:
            raise InvalidInputError(
                "to_frame needs pandas, which is not installed. Use to_dict(), or: pip install pandas."
            ) from None
        return pandas.DataFrame(columns)

    def _label(self) -> str:
        norm = "inf" if np.isinf(self.threat.norm) else f"{self.threat.norm:g}"
        return f"l_{norm}"


@dataclass(frozen=True, eq=False, repr=False)
class Certificates(_PerRow):
    """What `certify` proved, row by row.

    Attributes
    ----------
    status : int8 array (n,)
        `Status.ROBUST`, `Status.BROKEN` or `Status.UNKNOWN`.
    lower, upper : float64 array (n,)
        Bounds of the worst-case margin, the least of f_y - f_c over what the threat allows.
    witness : array (n, n_features)
        For broken rows, an input that the threat allows and the model predicts otherwise; NaN elsewhere.
    method : array of str (n,)
    seconds : float32 array (n,)
    clean_error, attack_error, verified_error : float
        Shares of rows: misclassified; broken; not proved robust. clean <= attack <= verified.
    cast_rows : int
        Rows that rounding to the model's input type changed.
    interrupted : bool
        Whether Ctrl-C stopped the work; rows not reached are UNKNOWN.
    """

    status: np.ndarray

    @property
    def attack_error(self) -> float:
        """Share of rows with a witness."""
        return float(np.mean(self.status == Status.BROKEN))

    @property
    def verified_error(self) -> float:
        """Share of rows that are not proved robust."""
        return float(np.mean(self.status != Status.ROBUST))

    def counts(self) -> dict[str, int]:
        """How many rows have each status."""
        return {status.name: int(np.sum(self.status == status)) for status in Status}

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the aggregates, and a list a column."""
        rows = self._columns()
        rows["status"] = np.array([Status(code).name for code in self.status])
        return {
            "threat": self.threat.to_dict(),
            "clean_error": self.clean_error,
            "attack_error": self.attack_error,
            "verified_error": self.verified_error,
            "counts": self.counts(),
            "method_reason": self.method_reason,
            "cast_rows": self.cast_rows,
            "interrupted": self.interrupted,
            "rows": {name: column.tolist() for name, column in rows.items()},
        }

    def to_frame(self):
        """One row a row, as a pandas DataFrame."""
        columns: dict[str, Any] = {"status": [Status(code).name for code in self.status]}
        return self._frame(columns | self._columns())

    def _repr_html_(self) -> str:
        from .reporting.notebook import certificates_html

        return certificates_html(self)

    def __repr__(self) -> str:
        counts = self.counts()
        clean = "" if self.clean_error is None else f"clean error {self.clean_error:.2%} <= "
        lines = [
            f"Certificates of {len(self)} rows, {self._label()} moves of at most {self.threat.eps:g}",
            f"  robust {counts['ROBUST']}, broken {counts['BROKEN']}, unknown {counts['UNKNOWN']}",
            f"  {clean}attack error {self.attack_error:.2%} <= verified error {self.verified_error:.2%}",
            f"  {self.method_reason}; {float(np.sum(self.seconds)):.3g} s",
        ]
        if self.cast_rows:
            lines.append(f"  {self.cast_rows} rows were rounded to the model's {self.dtype} inputs")
        if self.interrupted:
            lines.append("  interrupted: the rows not reached are unknown")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Radii(_PerRow):
    """What `radius` proved, row by row: the smallest move, in eps units, that changes the prediction.

    Attributes
    ----------
    lower, upper : float64 array (n,)
        Bounds of the minimal radius; inf where nothing allowed flips the row.
    exact : bool array (n,)
        Whether the two differ by no more than float rounding.
    witness : array (n, n_features)
        An input at distance `upper` that is predicted otherwise; NaN where none was found.
    mean, median : float
        Of `lower`, over the rows with a finite radius; `n_infinite` counts the others.
    """

    exact: np.ndarray
    max_radius: float

    @cached_property
    def _finite(self) -> np.ndarray:
        return self.lower[np.isfinite(self.lower)]

    @property
    def n_infinite(self) -> int:
        """Rows that nothing allowed flips (within `max_radius`)."""
        return int(len(self) - len(self._finite))

    @property
    def mean(self) -> float:
        """Mean of the finite lower bounds (nan where there is none)."""
        return float(np.mean(self._finite)) if len(self._finite) else float("nan")

    @property
    def median(self) -> float:
        """Median of the finite lower bounds (nan where there is none)."""
        return float(np.median(self._finite)) if len(self._finite) else float("nan")

    def attack_error(self, eps) -> np.ndarray | float:
        """Share of rows that are known to flip within each eps."""
        return _share_within(self.upper, eps)

    def verified_error(self, eps) -> np.ndarray | float:
        """Share of rows that are not proved robust at each eps."""
        return _share_within(self.lower, eps)

    def certified_error(self, eps) -> np.ndarray | float:
        """The certified-error curve: `verified_error` at each eps."""
        return self.verified_error(eps)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the aggregates, and a list a column."""
        rows = self._columns() | {"exact": self.exact}
        return {
            "threat": {name: given for name, given in self.threat.to_dict().items() if name != "eps"},
            "clean_error": self.clean_error,
            "mean": self.mean,
            "median": self.median,
            "infinite": self.n_infinite,
            "method_reason": self.method_reason,
            "cast_rows": self.cast_rows,
            "interrupted": self.interrupted,
            "rows": {name: column.tolist() for name, column in rows.items()},
        }

    def to_frame(self):
        """One row a row, as a pandas DataFrame."""
        return self._frame(self._columns() | {"exact": self.exact})

    def _repr_html_(self) -> str:
        from .reporting.notebook import radii_html

        return radii_html(self)

    def __repr__(self) -> str:
        lines = [
            f"Radii of {len(self)} rows, {self._label()} moves",
            f"  mean {self.mean:.4g}, median {self.median:.4g} over {len(self._finite)} rows; "
            f"{self.n_infinite} never flip" + (f" within {self.max_radius:g}" if np.isfinite(self.max_radius) else ""),
            f"  exact for {int(np.sum(self.exact))} rows; {self.method_reason}; {float(np.sum(self.seconds)):.3g} s",
        ]
        if self.cast_rows:
            lines.append(f"  {self.cast_rows} rows were rounded to the model's {self.dtype} inputs")
        if self.interrupted:
            lines.append("  interrupted: the rows not reached have the bounds 0 and inf")
        return "\n".join(lines)


def _share_within(bound: np.ndarray, eps) -> np.ndarray | float:
    """Share of rows whose bound is at most each eps."""
    try:
        budgets = np.asarray(eps, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(must_be("eps", "a number or an array of numbers", eps)) from None
    within = np.searchsorted(np.sort(bound), budgets, side="right") / len(bound)
    return float(within) if np.ndim(within) == 0 else within
