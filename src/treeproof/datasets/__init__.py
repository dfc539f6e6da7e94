"""The data sets of the paper's experiments, by name (docs/data.md).

Three tables travel with the package; the image sets come from a folder of prepared files
(``TREEPROOF_DATA``), from the cache, or from OpenML. Split and scaled exactly as in the paper.
"""

from __future__ import annotations

import os

import numpy as np

from .._errors import InvalidInputError, must_be
from . import preprocess, raw
from .catalogue import ENTRIES, SOURCES, Entry
from .dataset import Dataset, Scaling
from .errors import DataUnavailableError

__all__ = ["DataUnavailableError", "Dataset", "Scaling", "load", "names", "source"]


def names() -> tuple[str, ...]:
    """The names that `load` knows."""
    return tuple(ENTRIES)


def source(name: str, folder: str | os.PathLike | None = None) -> str:
    """Which source `load` would cut data set `name` from: fashion-shoes has two, with different splits."""
    return raw.locate(_entry(name).sources, raw.prepared_folder(folder))[0]


def load(
    name: str,
    drop_id: bool = False,
    *,
    dtype: str = "float64",
    folder: str | os.PathLike | None = None,
    download: bool = True,
    verify: bool = True,
) -> Dataset:
    """Load a data set, divided and scaled as in the paper's experiments.

    Parameters
    ----------
    name : str
        One of `names()`: breast-cancer, diabetes, spambase, fashion-shoes, mnist-1-5, mnist-2-6,
        mnist, fashion-mnist.
    drop_id : bool
        Leave out breast-cancer's feature 0, the patient id, which the paper's experiments keep.
    dtype : {"float64", "float32"}
        Of the rows. The paper's experiments use float64.
    folder : path, optional
        A folder of prepared files to look in first; the environment variable ``TREEPROOF_DATA`` by default.
    download : bool
        Whether an image set that is nowhere on the machine may be fetched from OpenML.
    verify : bool
        Compare the arrays with the checksums they must have.

    Returns
    -------
    Dataset

    Raises
    ------
    DataUnavailableError
        With the folder to fill, when an image set cannot be had.

    Examples
    --------
    >>> from treeproof import datasets
    >>> data = datasets.load("diabetes")
    >>> data.X_train.shape, data.X_test.shape, data.class_names
    ((614, 8), (154, 8), ('healthy', 'diabetic'))
    """
    entry = _entry(name)
    if dtype not in ("float32", "float64"):
        raise InvalidInputError(must_be("dtype", "'float32' or 'float64'", dtype))
    if drop_id and name != "breast-cancer":
        raise InvalidInputError(must_be("drop_id", "False except for breast-cancer", drop_id))
    place = raw.prepared_folder(folder)
    if entry.image:
        return _load_images(entry, place, dtype, download, verify)
    return _load_table(entry, place, dtype, drop_id, verify)


def _entry(name: str) -> Entry:
    if not isinstance(name, str) or name not in ENTRIES:
        raise InvalidInputError(must_be("name", "one of " + ", ".join(ENTRIES), name))
    return ENTRIES[name]


def _load_table(entry: Entry, place, dtype: str, drop_id: bool, verify: bool) -> Dataset:
    kind = entry.sources[0]
    rows, columns, where = raw.table(kind, place, verify)
    if drop_id:
        rows, columns = rows[:, 1:], columns[1:]
    X_train, y_train, X_test, y_test = preprocess.split_table(rows, shuffle=kind == "spambase")
    X_train, X_test, scaling = preprocess.min_max(X_train, X_test)
    return Dataset(
        name=entry.name,
        title=entry.title,
        X_train=X_train.astype(dtype),
        y_train=y_train.copy(),
        X_test=X_test.astype(dtype),
        y_test=y_test.copy(),
        feature_names=columns,
        class_names=entry.class_names,
        scaling=scaling,
        origin=entry.origin,
        licence=entry.licence,
        split=SOURCES[kind].split,
        where=where,
    )


def _load_images(entry: Entry, place, dtype: str, download: bool, verify: bool) -> Dataset:
    arrays, kind, where = raw.images(entry.sources, place, download, verify)
    parts = {}
    for part in ("train", "test"):
        X, y = arrays["X_" + part], arrays["y_" + part].astype(np.int64)
        if entry.pair is not None:
            X, y = preprocess.choose_pair(X, y, entry.pair)
        parts["X_" + part], parts["y_" + part] = preprocess.pixels(X, dtype), y
    width = arrays["X_train"].shape[1]
    return Dataset(
        name=entry.name,
        title=entry.title,
        **parts,
        feature_names=tuple(f"pixel_{row}_{column}" for row in range(28) for column in range(28)),
        class_names=entry.class_names,
        scaling=Scaling(np.zeros(width), np.full(width, 255.0)),
        origin=entry.origin,
        licence=entry.licence,
        split=SOURCES[kind].split,
        where=where,
        image_shape=(28, 28),
    )
