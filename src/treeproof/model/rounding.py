"""How far a float sum of leaves may be from the real sum: the one place that decides that slack.

Where every partial sum, in any order, is exactly representable (integers, votes, float32 leaves of similar
size added in float64) the slack is zero and ties are real ties. Otherwise the standard bound holds:
adding n numbers in any order errs by at most (n - 1) u / (1 - (n - 1) u) times the sum of their sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .ensemble import TreeEnsemble

_DIGITS = {"float32": 24, "float64": 53}


class Rounding(NamedTuple):
    """Error bounds for each output, and what the bound of a difference of two is made of."""

    library: np.ndarray  # (n_outputs,) of the model's own sum, in its sum_dtype
    sizes: np.ndarray  # (n_outputs,) no score is larger
    terms: np.ndarray  # (n_outputs,) how many numbers are added
    low: np.ndarray  # (n_outputs,) all are whole multiples of 2^low

    def solver(self, outputs: list[int], n_features: int) -> float:
        """Of a float64 sum here, in any order, of an output or of the difference of two.

        The difference of two sums that are exact by themselves need not be: the bound is theirs together.
        """
        # differences of leaves, of two outputs, and a threshold: two digits and a few terms more
        sizes, terms = 4 * np.sum(self.sizes[outputs]), 2 * np.sum(self.terms[outputs]) + n_features + 8
        return float(_bound(sizes, terms, np.min(self.low[outputs]), 53))


def rounding_of(model: TreeEnsemble) -> Rounding:
    """Bounds on the summation error of each output, over every input."""
    leaf_sizes = np.abs(model.value)
    sizes = np.abs(model.base) + (
        np.maximum.reduceat(leaf_sizes, model.tree_offsets[:-1], axis=0).sum(axis=0) if model.n_trees else 0.0
    )
    if model.n_outputs == 1:
        sizes = sizes + abs(model.cut)
    terms = np.array([1 + np.sum(_touches(model, k)) for k in range(model.n_outputs)])
    low = np.array(
        [_lowest_bit(np.append(model.value[:, k], [model.base[k], model.cut])) for k in range(model.n_outputs)]
    )
    library = _bound(sizes, terms, low, _DIGITS[model.sum_dtype])
    if model.sum_dtype == "float32":
        # leaves that are not float32 numbers are rounded before they are added
        rounded = model.value.astype(np.float32).astype(np.float64)
        loss = np.abs(rounded - model.value)
        if model.n_trees:
            library = library + np.maximum.reduceat(loss, model.tree_offsets[:-1], axis=0).sum(axis=0)
        library = library + np.abs(model.base.astype(np.float32) - model.base)
    return Rounding(library, sizes, terms, low)


def _touches(model: TreeEnsemble, output: int) -> np.ndarray:
    """Which trees add anything to an output."""
    if not model.n_trees:
        return np.zeros(0, dtype=bool)
    return np.maximum.reduceat(np.abs(model.value[:, output]), model.tree_offsets[:-1]) > 0


def _lowest_bit(values: np.ndarray) -> int:
    """The largest e such that every value is a whole multiple of 2^e."""
    values = values[values != 0]
    if len(values) == 0:
        return 10_000
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    return int(np.min(exponent - 53 + trailing))


def _bound(sizes: np.ndarray, terms: np.ndarray, low: np.ndarray, digits: int) -> np.ndarray:
    """Zero where sums are exact, else the standard bound (with room for its own rounding)."""
    top = np.ceil(np.log2(np.maximum(sizes, 2.0**-1074)) + 1e-9) + 1
    exact = (top - low <= digits) | (sizes == 0)
    unit = 2.0**-digits
    bound = 1.01 * terms * unit / np.maximum(1 - terms * unit, 0.5) * sizes
    return np.where(exact, 0.0, bound)
