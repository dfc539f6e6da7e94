"""Bring the model you already have: ``load`` gives a `TreeEnsemble` that is the same function, or refuses."""

from .front import load

__all__ = ["load"]
