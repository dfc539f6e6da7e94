"""The authors' stump models on whole test sets: issue 1, Shows 3 and 4."""

from __future__ import annotations

import numpy as np
import pytest

import treeproof
from treeproof import datasets
from treeproof.reproduce import trainers

# percent, from the issue: exact l1, the grid at the paper's precision, l0 with one feature, linf; and r*
SETS = {
    "breast-cancer": ("stumps_breast_cancer_linf.json", 0.3, 0.01, (10.95, 10.95, 95.62, 10.95), 0.044),
    "diabetes": ("stumps_diabetes_linf.json", 0.05, 0.0002, (35.06, 35.06, 100.0, 35.06), 0.0),
    "mnist-1-5": ("stumps_mnist_1_5_linf.json", 0.3, 0.005, (3.31, 3.35, 3.50, 4.09), 3.332),
}


@pytest.fixture(params=SETS)
def case(request, shared):
    """The model, its test rows, and what is known of them."""
    file, eps, precision, errors, radius = SETS[request.param]
    data = datasets.load(request.param, folder=shared / "data")
    model = trainers.read_authors(shared / "models" / "authors" / file, data.n_features)
    return model, data.X_test, data.y_test, eps, precision, errors, radius


def test_verified_errors_and_radii(case):
    """Exact l1, the paper's grid, l0 and linf verified errors, and the paper's r*."""
    model, X, y, eps, precision, errors, radius = case
    got = [
        treeproof.certify(model, X, y, norm=1, eps=eps),
        treeproof.certify(model, X, y, norm=1, eps=eps, method="grid", precision=precision),
        treeproof.certify(model, X, y, norm=0, eps=1),
        treeproof.certify(model, X, y, norm=np.inf, eps=eps),
    ]
    assert [round(100 * proof.verified_error, 2) for proof in got] == list(errors)
    assert np.all(got[0].status != treeproof.Status.UNKNOWN)
    moves = treeproof.radius(model, X, y, norm=0)
    assert np.all(moves.exact)
    assert round(float(np.mean(np.where(moves.correct, moves.lower - 1, 0.0))), 3) == radius


@pytest.mark.parametrize("ceiling", [True, False])
def test_the_grid_is_below_the_exact_margin(case, ceiling):
    """On every row, at every precision: never above the exact margin, and nothing proved that `additive` breaks."""
    model, X, y, eps, *_ = case
    exact = treeproof.certify(model, X, y, norm=1, eps=eps, exact_margin=True)
    broken = treeproof.certify(model, X, y, norm=1, eps=eps).status == treeproof.Status.BROKEN
    for parts in (1, 2, 3, 7, 10, 30, 60, 100, 1000):
        grid = treeproof.certify(model, X, y, norm=1, eps=eps, method="grid", precision=eps / parts, ceiling=ceiling)
        assert np.all(grid.lower <= exact.upper)
        assert not np.any((grid.status == treeproof.Status.ROBUST) & broken)
