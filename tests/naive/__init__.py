"""Slow, obvious oracles. Nothing here imports ``treeproof``: no code is shared with what is judged."""
