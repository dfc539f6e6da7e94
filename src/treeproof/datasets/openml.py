"""Downloading the two image sets through scikit-learn's `fetch_openml` (it checks OpenML's own checksum)."""

from __future__ import annotations

import os
import socket
import tempfile
import warnings
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError

import numpy as np

from .errors import DataUnavailableError

TRAINING_ROWS = 60000
TIMEOUT_SECONDS = 30.0


def fetch(data_id: int) -> dict[str, np.ndarray]:
    """Return ``X_train, y_train, X_test, y_test`` (uint8) of OpenML's data set number `data_id`.

    Raises
    ------
    DataUnavailableError
        Without network, or when what came is not what was asked for.
    """
    from sklearn.datasets import fetch_openml

    try:
        with tempfile.TemporaryDirectory() as folder, _timeout(TIMEOUT_SECONDS), warnings.catch_warnings():
            # scikit-learn warns before it tries again; the error below tells how it ended.
            warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
            warnings.filterwarnings("ignore", "Invalid cache", RuntimeWarning)
            # The parser without pandas: slower, but this is done once.
            bunch = fetch_openml(
                data_id=data_id, as_frame=False, parser="liac-arff", data_home=folder, n_retries=1, delay=0.5
            )
        X = np.asarray(bunch.data).astype(np.uint8)
        y = np.asarray(bunch.target).astype(np.uint8)
    except (URLError, OSError, HTTPException, ValueError, KeyError, EOFError) as error:
        reason = str(getattr(error, "reason", None) or error)
        short = reason if len(reason) <= 120 else f"{reason[:117]}..."  # the folder to fill must stay in sight
        raise DataUnavailableError(
            f"downloading OpenML data set {data_id} failed ({type(error).__name__}: {short})"
        ) from error
    cut = TRAINING_ROWS
    return {"X_train": X[:cut], "y_train": y[:cut], "X_test": X[cut:], "y_test": y[cut:]}


@contextmanager
def _timeout(seconds: float):
    """A network that swallows packets must end in a message, and fetch_openml takes no time limit."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def cache_folder() -> Path:
    """Where downloads are kept: ``TREEPROOF_CACHE``, else the platform's cache folder."""
    named = os.environ.get("TREEPROOF_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "treeproof"
