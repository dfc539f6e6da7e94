"""The cell store: finished results in a folder, one small file each, never half written.

A file is written beside, flushed to disk and renamed, so an interruption of any kind (Ctrl-C, kill -9)
leaves whole files or none. A result is found again by its name and a fingerprint of its settings and
of the package version; anything else, damaged files included, counts as not done.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._version import __version__

_FORMAT = 1


def fingerprint(name: str, settings: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits that change with the name, any setting or the package version."""
    text = json.dumps([_FORMAT, __version__, name, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def file_name(name: str, settings: Mapping[str, Any]) -> str:
    """A readable file name that is unique to the name and the settings."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")[:100]
    return f"{slug}-{fingerprint(name, settings)}"


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that readers see the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        Path(partial).unlink(missing_ok=True)


class CellStore:
    """Results of finished tasks under ``folder/cells``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cells"

    def path(self, name: str, settings: Mapping[str, Any]) -> Path:
        return self.folder / (file_name(name, settings) + ".json")

    def get(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """The stored result, or None."""
        try:
            content = json.loads(self.path(name, settings).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(content, dict) or content.get("name") != name:
            return None
        result = content.get("result")
        return result if isinstance(result, dict) else None

    def put(self, name: str, settings: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep a finished result."""
        content = {"name": name, "settings": dict(settings), "version": __version__, "result": dict(result)}
        text = json.dumps(content, indent=1, default=str, allow_nan=True)
        write_atomically(self.path(name, settings), text)

    def clear(self) -> None:
        """Forget every result."""
        if self.folder.is_dir():
            for path in self.folder.glob("*.json"):
                path.unlink(missing_ok=True)
