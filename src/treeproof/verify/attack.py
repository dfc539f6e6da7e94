"""`attack`: only the search for witnesses: fast upper bounds of the radius, and adversarial examples.

Not exact and proves nothing. Each row takes greedy steps of loss for cost, against every other class, then takes
back what is not needed; what it returns is replayed like every other witness. At p = inf steps are free within a
radius that is bisected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .costs import ground_of
from .problem import Changes, Found, Pair
from .reach import moved
from .search import Search

if TYPE_CHECKING:
    from ..results import Radii
    from ..threat import Threat


class Attack(Search):
    """The `Solver` behind `attack`: candidates without bounds."""

    batch_rows = 64

    def decide(self, pair: Pair, X: np.ndarray, limit: float) -> Found:
        """See `Solver.decide`; the lower bounds are the trivial ones."""
        found = self.nearest(pair, X, np.full(len(X), np.inf))
        lower = np.full(len(X), self.problem.least_margin(pair))
        return found._replace(lower=lower, complete=np.zeros(len(X), dtype=bool))

    def nearest(self, pair: Pair, X: np.ndarray, cap: np.ndarray) -> Found:
        """See `Solver.nearest`; the lower bounds are 0."""
        changes = Changes(len(X))
        ground = ground_of(self.problem)
        for i, x in enumerate(X):
            rowed = self._price(pair, ground, x, np.inf)
            sure = pair.target(rowed.margin)[1]
            attempt = self._greedy_inf if ground.p == np.inf else self._greedy
            flip = attempt(rowed, ground, sure, rowed.row.own)
            if flip is not None and flip.cells is not None:
                changes.put(i, *moved(self.problem, rowed.row, rowed.x, flip.cells))
        return changes.found(np.zeros(len(X)), np.zeros(len(X), dtype=bool))

    def _greedy_inf(self, rowed, ground, target: float, cells: np.ndarray):
        """p = inf: the least size of moves within which free greedy steps flip."""
        price = rowed.row.price.copy()
        sizes = np.unique(price[np.isfinite(price)])
        best, low, high = None, 0, len(sizes)
        while low < high:
            middle = (low + high) // 2
            inside = np.where(price <= sizes[middle], 0.0, np.inf)
            free = rowed._replace(row=rowed.row._replace(price=inside))
            answer = self._greedy(free, ground, target, cells)
            if answer is None:
                low = middle + 1
            else:
                best, high = answer, middle
        return best


def attack(
    model,
    X,
    y=None,
    threat: Threat | None = None,
    *,
    norm: float | None = None,
    n_jobs: int | None = None,
    progress=False,
) -> Radii:
    """Look for a near move that changes each row's prediction: fast, without any proof.

    Parameters
    ----------
    model : TreeEnsemble, estimator, booster or path
        Anything that ``treeproof.load`` reads.
    X : array or DataFrame (n, n_features)
    y : array (n,), optional
        Labels; a misclassified row needs no move.
    threat : Threat, optional
        Its norm, scale, frozen features, ranges and directions count; its eps does not. Or give `norm` alone.
    norm : float, optional
        p in [0, inf].
    n_jobs, progress
        As for `radius`.

    Returns
    -------
    Radii
        `upper` and the witnesses count; `lower` is 0 and nothing is exact.

    Examples
    --------
    >>> import treeproof
    >>> model = treeproof.TreeEnsemble.from_stumps([0, 1], [0.5, 0.5], [-1.0, -1.0], [2.0, 2.0])
    >>> treeproof.attack(model, [[0.9, 0.9]], norm=1).upper.round(6)
    array([0.8])
    """
    from .front import radius

    return radius(model, X, y, threat, norm=norm, method="attack", n_jobs=n_jobs, progress=progress)
