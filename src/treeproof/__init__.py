"""treeproof: proofs of robustness for tree models, in any l_p norm.

The public names are resolved on first use, so that ``import treeproof`` stays quick and neither
scikit-learn nor numba is imported before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

_PUBLIC = {
    "TreeEnsemble": ".model",
    "Threat": ".threat",
    "Certificates": ".results",
    "Radii": ".results",
    "Status": ".results",
    "load": ".importers",
    "certify": ".verify",
    "radius": ".verify",
    "attack": ".verify",
    "warmup": ".verify",
    "StumpBoostingClassifier": ".training.stump_boosting",
    "TreeBoostingClassifier": ".training.tree_boosting",
    "make_verified_scorer": ".training.scorers",
    "AdditiveClassifier": ".training.additive",
    "AdditiveClassifierCV": ".training.additive_cv",
    "TreeproofError": "._errors",
    "InvalidModelError": "._errors",
    "InvalidInputError": "._errors",
    "InvalidThreatError": "._errors",
    "MethodError": "._errors",
    "TranslationError": "._errors",
}

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from ._errors import (
        InvalidInputError,
        InvalidModelError,
        InvalidThreatError,
        MethodError,
        TranslationError,
        TreeproofError,
    )
    from .importers import load
    from .model import TreeEnsemble
    from .results import Certificates, Radii, Status
    from .threat import Threat
    from .training.additive import AdditiveClassifier
    from .training.additive_cv import AdditiveClassifierCV
    from .training.scorers import make_verified_scorer
    from .training.stump_boosting import StumpBoostingClassifier
    from .training.tree_boosting import TreeBoostingClassifier
    from .verify import attack, certify, radius, warmup


def __getattr__(name: str):
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
