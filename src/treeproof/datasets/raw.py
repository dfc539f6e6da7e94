"""Finding the raw arrays of a source: the user's folder, the package, the cache, then OpenML."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from .._errors import InvalidInputError, must_be
from . import checksums, openml, tables
from .catalogue import SOURCES
from .errors import DataUnavailableError

IMAGE_KEYS = ("X_train", "y_train", "X_test", "y_test")


def prepared_folder(folder: str | os.PathLike | None) -> Path | None:
    """The folder of prepared files: `folder`, else ``TREEPROOF_DATA``, else None."""
    name = "folder" if folder is not None else "TREEPROOF_DATA"
    folder = folder if folder is not None else os.environ.get("TREEPROOF_DATA") or None
    if folder is None:
        return None
    path = Path(folder)
    if not path.is_dir():
        raise InvalidInputError(must_be(name, "an existing folder", str(folder)))
    return path


def locate(sources: tuple[str, ...], folder: Path | None) -> tuple[str, Path | None]:
    """Return the source that will be read, and its file; None where that is the package or a download."""
    cache = None if SOURCES[sources[0]].embedded else openml.cache_folder()
    for place in (place for place in (folder, cache) if place is not None):
        for source in sources:
            path = place / SOURCES[source].file
            if path.is_file():
                return source, path
    return next(name for name in sources if SOURCES[name].embedded or SOURCES[name].openml is not None), None


def table(source: str, folder: Path | None, verify: bool) -> tuple[np.ndarray, tuple[str, ...], str]:
    """Return a table's rows (class last), feature names, and where they came from."""
    _, path = locate((source,), folder)
    if path is not None:
        rows, names = tables.parse(source, path.read_bytes(), path)
        where = str(path)
    else:
        where = "the package"
        rows, names = tables.parse(source, tables.embedded(source), where)
    _check(source, where, checksums.of_table(rows), verify)
    return rows, names, where


def images(sources: tuple[str, ...], folder: Path | None, download: bool, verify: bool):
    """Return an image set's four uint8 arrays, the source that gave them, and where they came from."""
    source, path = locate(sources, folder)
    if path is not None:
        arrays = _read_npz(path)
        _check(source, str(path), checksums.of_images(**arrays), verify)
        return arrays, source, str(path)
    if not download:
        raise DataUnavailableError(_how_to_fill(sources, "downloading is switched off"))
    return _download(source, sources, verify)


def _download(source: str, sources: tuple[str, ...], verify: bool):
    number = SOURCES[source].openml
    assert number is not None
    try:
        arrays = openml.fetch(number)
    except DataUnavailableError as error:
        raise DataUnavailableError(_how_to_fill(sources, str(error))) from error
    where = f"OpenML data set {number}"
    _check(source, where, checksums.of_images(**arrays), verify)
    path = openml.cache_folder() / SOURCES[source].file
    _write_npz(path, arrays)
    return arrays, source, where


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in IMAGE_KEYS}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        keys = ", ".join(IMAGE_KEYS)
        raise InvalidInputError(
            f"{path} must be an .npz file with the arrays {keys}. Reading it failed: {error}."
        ) from error
    for part in ("train", "test"):
        X, y = arrays["X_" + part], arrays["y_" + part]
        if X.dtype != np.uint8 or X.ndim != 2 or X.shape[1] != 784 or y.shape != (len(X),):
            raise InvalidInputError(
                f"{path} must hold X_{part} as uint8 (rows, 784) and y_{part} as (rows,). "
                f"Got {X.dtype} {X.shape} and {y.shape} instead."
            )
    return arrays


def _write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Keep a download; written beside and renamed, so that an interruption leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez_compressed(stream, **{key: arrays[key] for key in IMAGE_KEYS})  # type: ignore[arg-type]
        os.replace(partial, path)
    finally:
        Path(partial).unlink(missing_ok=True)


def _check(source: str, where: str, got: str, verify: bool) -> None:
    known = SOURCES[source].checksums
    if verify and got not in known:
        raise InvalidInputError(
            f"The {source} arrays in {where} must have the checksum {' or '.join(known)}. "
            f"Got {got} instead. If you mean these rows, load with verify=False."
        )


def _how_to_fill(sources: tuple[str, ...], reason: str) -> str:
    files = " or ".join(SOURCES[source].file for source in sources)
    return (
        f"The data set '{sources[0]}' is not on this machine: {reason}. Put {files} (arrays "
        f"{', '.join(IMAGE_KEYS)}) into {openml.cache_folder()}, or into a folder that the environment "
        f"variable TREEPROOF_DATA names."
    )
