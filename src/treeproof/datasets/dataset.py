"""What `treeproof.datasets.load` returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Scaling:
    """From the numbers a model sees back to the units of the data: ``data = offset + span * x``.

    Attributes
    ----------
    offset, span : float64 array (n_features,)
        `span` is 1 where a column is constant on the training rows.
    """

    offset: np.ndarray
    span: np.ndarray

    def to_data_units(self, X) -> np.ndarray:
        """Undo the scaling (exact up to rounding)."""
        return np.asarray(X, dtype=np.float64) * self.span + self.offset

    def from_data_units(self, X) -> np.ndarray:
        """Scale rows that are given in the units of the data."""
        return (np.asarray(X, dtype=np.float64) - self.offset) / self.span


@dataclass(frozen=True, eq=False)
class Dataset:
    """One data set, divided and scaled as in the paper's experiments.

    Attributes
    ----------
    name, title : str
    X_train, X_test : float array (n_rows, n_features)
        Test values of a table may leave [0, 1]: the scaling is that of the training rows.
    y_train, y_test : int64 array (n_rows,)
        Positions in `class_names`. Of two classes, 1 is malignant, diabetic, spam, sandal, or the first
        digit of the pair.
    feature_names, class_names : tuple of str
    scaling : Scaling
    origin, licence : str
    split : str
        How the rows were divided.
    where : str
        Where this copy was read from.
    image_shape : (28, 28) or None
    """

    name: str
    title: str
    X_train: np.ndarray = field(repr=False)
    y_train: np.ndarray = field(repr=False)
    X_test: np.ndarray = field(repr=False)
    y_test: np.ndarray = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    class_names: tuple[str, ...]
    scaling: Scaling = field(repr=False)
    origin: str
    licence: str
    split: str
    where: str
    image_shape: tuple[int, int] | None = None

    @property
    def n_features(self) -> int:
        return self.X_train.shape[1]

    @property
    def n_classes(self) -> int:
        return len(self.class_names)

    @property
    def constant_error(self) -> float:
        """The test error of always predicting the most frequent training class: what to stay below."""
        most = np.argmax(np.bincount(self.y_train, minlength=self.n_classes))
        return float(np.mean(self.y_test != most))
