"""Proofs: the public functions, and one file a method."""

from .attack import attack
from .front import certify, radius
from .warm import warmup

__all__ = ["attack", "certify", "radius", "warmup"]
