"""Proofs: the public functions, and one file a method."""

from .front import certify, radius
from .warm import warmup

__all__ = ["certify", "radius", "warmup"]
