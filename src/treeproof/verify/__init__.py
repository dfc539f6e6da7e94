"""Proofs: the public functions, and one file a method."""
