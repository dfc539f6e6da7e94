"""Digits: how few grey levels turn a 2 into a 6, as pictures.

    python examples/digits.py

With MNIST at hand (`treeproof data show mnist-2-6` says where it looks) the digits are MNIST's 2 and 6; otherwise
scikit-learn's own small ones, so that the example always runs offline. Two models of the same kind are compared:
a plain one, and one trained to be provable; the pictures show the nearest counterexample of each.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import treeproof
from treeproof import AdditiveClassifier, datasets
from treeproof.reporting import plot_certified_error, plot_witness, write_report

ROWS = 200


class Digits(NamedTuple):
    """Rows of grey levels in [0, 1]; class 1 is a 2, class 0 is a 6."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    shape: tuple[int, int]
    eps: float


def load(small: bool) -> Digits:
    """MNIST where it is on this machine, else scikit-learn's 8 x 8 digits."""
    if not small:
        try:
            data = datasets.load("mnist-2-6", download=False)
            return Digits(data.X_train[:2000], data.y_train[:2000], data.X_test, data.y_test, (28, 28), 1.0)
        except datasets.DataUnavailableError:
            print("MNIST is not on this machine: scikit-learn's small digits instead")
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    keep = np.isin(y, (2, 6))
    X, y = X[keep] / 16, (y[keep] == 2).astype(int)
    return Digits(X[::2], y[::2], X[1::2], y[1::2], (8, 8), 0.5)


def main(folder: str | Path = "digits", small: bool = False) -> dict[str, treeproof.Radii]:
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = load(small)
    X, y = data.X_test[:ROWS], data.y_test[:ROWS]

    radii = {}
    for name, eps in (("plain", 0.0), ("provable", data.eps)):
        model = AdditiveClassifier(norm=1, eps=eps, random_state=0).fit(data.X_train, data.y_train)
        proof = treeproof.certify(model, X, y, norm=1, eps=data.eps)
        radii[name] = treeproof.radius(model, X, y, norm=1)
        print(f"{name}\n{proof}\n  median radius {radii[name].median:.3g}\n")
        write_report(
            folder / f"{name}.html",
            proof,
            model.ensemble_,
            radii=radii[name],
            image_shape=data.shape,
            class_names={"0": "6", "1": "2"},
            title=f"Digits 2 and 6, {name} model",
        )
        nearest = int(np.argmin(np.where(radii[name].correct, radii[name].upper, np.inf)))
        plot_witness(radii[name], nearest, image_shape=data.shape).figure.savefig(folder / f"{name}-witness.png")
    ax = plot_certified_error(*radii.values(), labels=list(radii), eps=data.eps)
    ax.figure.savefig(folder / "certified-error.png")
    print(f"pictures and reports are in {folder}/")
    return radii


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:2] if word != "--small"], small="--small" in sys.argv)
