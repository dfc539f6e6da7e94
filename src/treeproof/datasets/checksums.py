"""Checksums of arrays, so that every run starts from the same numbers.

Tables: SHA-256 of the shape and the little-endian float64 values. Images: MD5 of the IDX files that
the arrays stand for (the published checksums of the original downloads are of that form). They guard
against mix-ups and damage, not against an attacker.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np


def of_table(rows: np.ndarray) -> str:
    """The checksum of a table of numbers."""
    digest = hashlib.sha256(repr(rows.shape).encode())
    digest.update(np.ascontiguousarray(rows, dtype="<f8").tobytes())
    return "sha256:" + digest.hexdigest()


def of_images(X_train, y_train, X_test, y_test) -> str:
    """The joined checksums of the four IDX files of a set of 28 x 28 images."""
    parts = []
    for X, y in ((X_train, y_train), (X_test, y_test)):
        for head, body in (
            (struct.pack(">IIII", 2051, len(X), 28, 28), X),
            (struct.pack(">II", 2049, len(y)), y),
        ):
            digest = hashlib.md5(head, usedforsecurity=False)
            digest.update(np.ascontiguousarray(body, dtype=np.uint8).tobytes())
            parts.append(digest.hexdigest())
    return "md5:" + "+".join(parts)
