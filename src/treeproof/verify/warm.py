"""`warmup`: compile every kernel once, so that first answers do not wait. The results stay on disk."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from ..model import TreeEnsemble
from .front import certify, radius
from .methods import METHODS


def warmup(report: Callable[[str, float], None] | None = None) -> dict[str, float]:
    """Compile (or load from the cache on disk) the kernels of every method.

    Parameters
    ----------
    report : callable, optional
        Called with each method's name and seconds as it is ready.

    Returns
    -------
    dict
        Seconds taken, by method.
    """
    rows = np.array([[0.9, 0.9], [0.6, 0.1]])
    stumps = TreeEnsemble.from_stumps([0, 1], [0.5, 0.5], [-1.0, -1.0], [2.0, 2.0])
    tree = {"feature": [0, 1, -1, -1, -1], "threshold": [0.5, 0.5, 0, 0, 0], "left": [1, 2, -1, -1, -1]}
    tree |= {"right": [4, 3, -1, -1, -1], "value": [0, 0, -1.0, 1.0, 2.0]}
    one = TreeEnsemble.from_trees([tree], n_features=2)
    two = TreeEnsemble.from_trees([tree, tree], n_features=2)
    taken = {}
    for method in METHODS:
        start = perf_counter()
        model = {"additive": stumps, "grid": stumps, "tree": one}.get(method, two)
        for norm in (1, 2, 0.5, np.inf, 0):
            if method != "grid" or 0 < norm < np.inf:
                certify(model, rows, norm=norm, eps=1.0, method=method)
            if method not in ("grid", "multilevel"):
                radius(model, rows, norm=norm, method=method)
        taken[method] = perf_counter() - start
        if report is not None:
            report(method, taken[method])
    return taken
