"""Fixtures for every test: where the shared data and models are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data and models: ``TREEPROOF_SHARED``, or ``../shared`` beside the checkout."""
    places = [Path(os.environ["TREEPROOF_SHARED"])] if "TREEPROOF_SHARED" in os.environ else []
    root = Path(__file__).resolve().parents[1]
    # a git worktree lies one folder deeper than the checkout
    places += [root.parent / "shared", root.parent.parent / "shared"]
    for place in places:
        if (place / "models").is_dir():
            return place
    pytest.skip("the shared data are not here: set TREEPROOF_SHARED, or put them in ../shared")
