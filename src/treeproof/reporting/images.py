"""Images in a page without any library: PNG bytes by hand, as data URIs.

Grey levels for rows that are images; for witnesses, what went up and what went down in two colours.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

UP, DOWN = (217, 72, 15), (34, 110, 216)


def png(pixels: np.ndarray) -> bytes:
    """PNG of uint8 pixels (h, w, 3) or (h, w, 4)."""
    height, width, channels = pixels.shape
    kind = {3: 2, 4: 6}[channels]
    raw = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels, dtype=np.uint8))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def data_uri(pixels: np.ndarray) -> str:
    """An image's ``src`` that needs no network."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def grey(row: np.ndarray, shape: tuple[int, int], low: float, high: float) -> np.ndarray:
    """A row as grey pixels: `low` black, `high` white."""
    level = np.clip((row.reshape(shape) - low) / ((high - low) or 1.0), 0, 1)
    return np.repeat((level * 255).astype(np.uint8)[:, :, None], 3, axis=2)


def change(before: np.ndarray, after: np.ndarray, shape: tuple[int, int], low: float, high: float) -> np.ndarray:
    """The faint row with what a witness adds and removes on top (hardly transparent, so that small moves are seen)."""
    base = grey(before, shape, low, high).astype(float) * 0.35
    move = ((after - before) / ((high - low) or 1.0)).reshape(shape)
    weight = np.where(move != 0, 0.8 + 0.2 * np.clip(np.abs(move), 0, 1), 0)[:, :, None]
    colour = np.where(move[:, :, None] > 0, np.array(UP, float), np.array(DOWN, float))
    return (base * (1 - weight) + colour * weight).astype(np.uint8)


def heat(counts: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """How often each pixel is moved: transparent to full colour (square root, so that rare ones show)."""
    level = np.sqrt(counts.reshape(shape) / max(float(counts.max()), 1.0))
    out = np.zeros((*shape, 4), np.uint8)
    out[:, :, :3] = UP
    out[:, :, 3] = (level * 255).astype(np.uint8)
    return out
