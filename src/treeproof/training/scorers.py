"""Scorers for scikit-learn's model selection that count proofs instead of predictions.

``GridSearchCV(model, grid, scoring=make_verified_scorer(norm=1, eps=0.3))`` chooses hyper-parameters by
verified accuracy. Works for any model that `treeproof.certify` accepts. Cost: one certificate a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._errors import InvalidInputError, must_be

if TYPE_CHECKING:
    from ..threat import Threat

COUNTS = ("verified", "attack")


@dataclass(frozen=True)
class VerifiedScorer:
    """A scorer ``(estimator, X, y) -> float``, as `make_verified_scorer` builds it; picklable."""

    norm: float | None = None
    eps: float | None = None
    threat: Threat | None = None
    count: str = "verified"
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, estimator, X, y, sample_weight=None) -> float:
        if sample_weight is not None:
            raise InvalidInputError("sample_weight must be left out: certificates are counted row by row.")
        own = getattr(estimator, "certify", None)
        if own is not None:
            found = own(X, y, self.threat, norm=self.norm, eps=self.eps, **self.options)
        else:
            from ..verify import certify

            found = certify(estimator, X, y, self.threat, norm=self.norm, eps=self.eps, **self.options)
        error = found.verified_error if self.count == "verified" else found.attack_error
        return 1.0 - float(error)


def make_verified_scorer(
    norm: float | None = None,
    eps: float | None = None,
    *,
    threat: Threat | None = None,
    count: str = "verified",
    **options,
) -> VerifiedScorer:
    """A scikit-learn scorer of robust accuracy.

    Parameters
    ----------
    norm, eps : float, optional
        The threat; by default the estimator's own.
    threat : Threat, optional
        Replaces norm and eps.
    count : {"verified", "attack"}
        Rows proved right and robust, or (more generously) right rows for which no attack was found.
    **options
        Any other option of `treeproof.certify`, such as ``method`` or ``time_limit``.

    Returns
    -------
    VerifiedScorer
        Greater is better, between 0 and 1.

    Examples
    --------
    >>> scorer = make_verified_scorer(norm=1, eps=0.3)
    """
    if count not in COUNTS:
        raise InvalidInputError(must_be("count", "'verified' or 'attack'", count))
    return VerifiedScorer(norm, eps, threat, count, options)
