"""The one model inside treeproof, and the views of it that the verifiers read."""

from .ensemble import TreeEnsemble

__all__ = ["TreeEnsemble"]
