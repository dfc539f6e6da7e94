"""Hard knapsacks as stump models: the paper's reduction (Theorem 1), for benchmarks.

Item i with weight w_i and value v_i becomes a stump on feature i that loses v_i once x_i reaches w_i^(1/p); at
x = 0 with budget C = eps^p the worst-case margin is the margin less the best knapsack value.
"""

from __future__ import annotations

import numpy as np

import treeproof

FAMILIES = ("uncorrelated", "weakly correlated", "strongly correlated", "subset-sum")


def items(family: str, n: int, rng: np.random.Generator, largest: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Weights and values of one of Pisinger's classes."""
    weight = rng.integers(1, largest + 1, n).astype(float)
    if family == "uncorrelated":
        value = rng.integers(1, largest + 1, n).astype(float)
    elif family == "weakly correlated":
        value = np.maximum(1, weight + rng.integers(-largest // 10, largest // 10 + 1, n))
    elif family == "strongly correlated":
        value = weight + largest // 10
    else:
        value = weight.copy()
    return weight, value


def model(weight: np.ndarray, value: np.ndarray, norm: float) -> tuple[treeproof.TreeEnsemble, float]:
    """The stumps, and the eps whose budget is half of all weights. The margin at 0 is all values, and more."""
    n = len(weight)
    ensemble = treeproof.TreeEnsemble.from_stumps(
        np.arange(n), weight ** (1 / norm), np.zeros(n), -value, n_features=n, base=float(value.sum() * 0.6)
    )
    return ensemble, float((np.floor(weight.sum() / 2) + 0.5) ** (1 / norm))
