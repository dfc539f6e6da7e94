"""Proofs: the public functions, and one file a method."""

from .front import certify, radius

__all__ = ["certify", "radius"]
