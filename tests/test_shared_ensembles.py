"""General ensembles on the shared XGBoost models and the authors' trees: issue 3, Shows 2, 3 and 4."""

from __future__ import annotations

from time import thread_time
from types import SimpleNamespace

import numpy as np
import pytest
from tests.test_search import random_forest

import treeproof
from treeproof import Status, datasets
from treeproof.reproduce import trainers

pytestmark = pytest.mark.slow

CASES = {  # file, data set, eps of the norms, rows that the MILP decides
    "bc20d4": ("xgboost/bc20d4.xgb.json", "breast-cancer", {0: 1, 1: 0.3, 2: 0.3, np.inf: 0.3}, 10),
    "dia20d5": ("xgboost/dia20d5.xgb.json", "diabetes", {0: 1, 1: 0.05, 2: 0.05, np.inf: 0.05}, 10),
    "m20d4": ("xgboost/m20d4.xgb.json", "mnist-2-6", {0: 1, 1: 0.3, 2: 0.3, np.inf: 0.3}, 3),
    "m200d6": ("xgboost/m200d6.xgb.json", "mnist-2-6", {1: 0.3, 2: 0.1, np.inf: 0.05}, 1),
    "authors": ("authors/trees_mnist_1_5_linf.json", "mnist-1-5", {0: 1, 1: 0.3, 2: 0.3, np.inf: 0.3}, 5),
}
NORMS = (0, 1, 2, np.inf)


def load(name: str, shared, rows: int) -> SimpleNamespace:
    """A model, and its first correctly classified test rows."""
    file, dataset, eps, few = CASES[name]
    data = datasets.load(dataset, folder=shared / "data")
    path = shared / "models" / file
    model = trainers.read_authors(path, data.n_features) if name == "authors" else treeproof.load(path)
    X = np.asarray(data.X_test)
    right = np.flatnonzero(model.predict_index(model.cast(X)) == np.asarray(data.y_test))[:rows]
    return SimpleNamespace(model=model, X=X[right], eps=eps, few=few, name=name)


@pytest.mark.parametrize("name", CASES)
def test_search_and_milp_agree(name, shared):
    """On every row that both decide; `search` decides them all (20 rows, of which the MILP gets a few, 20 s each)."""
    case = load(name, shared, 20)
    for norm, eps in case.eps.items():
        ours = treeproof.certify(case.model, case.X, norm=norm, eps=eps, method="search")
        assert np.all(ours.status != Status.UNKNOWN)
        few = case.X[: case.few]
        theirs = treeproof.certify(case.model, few, norm=norm, eps=eps, method="milp", time_limit=20).status
        both = theirs != Status.UNKNOWN
        assert np.array_equal(ours.status[: case.few][both], theirs[both])


@pytest.mark.parametrize("name", ["bc20d4", "dia20d5", "m20d4", "m200d6"])
def test_search_and_veritas_agree(name, shared):
    """linf, at the paper's eps: Veritas (1 s a row) contradicts no row, and decides none that `search` leaves."""
    pytest.importorskip("veritas")
    from benchmarks import ensembles

    case = ensembles.Case(name, shared / "models" / "xgboost", 30)
    eps = case.eps[np.inf]
    _, ours = case.decide_in_batches(np.inf, eps, 1.0)
    _, theirs = ensembles.veritas(case, eps, 1.0)
    assert np.array_equal(ours[theirs > 0], theirs[theirs > 0])


@pytest.mark.parametrize("name", ["bc20d4", "dia20d5", "m20d4", "authors"])
def test_chain_of_bounds(name, shared):
    """On every row (2,1) <= (2,2) <= exact, (3,1) <= (3,2) <= exact, exact <= attack, and r_inf <= r_2 <= r_1."""
    case = load(name, shared, 20)
    exact = {}
    for norm in NORMS:
        radii = treeproof.radius(case.model, case.X, norm=norm, method="search")
        assert radii.exact.all()
        exact[norm] = radii.upper
        above = radii.upper * (1 + 1e-9)
        assert np.all(radii.lower <= treeproof.attack(case.model, case.X, norm=norm).upper)
        for K in (2, 3):
            bounds = [
                treeproof.radius(case.model, case.X, norm=norm, method="multilevel", K=K, L=L).lower for L in (1, 2)
            ]
            assert np.all(bounds[0] <= bounds[1] * (1 + 1e-9))
            assert np.all(bounds[1] <= above)
    assert np.all(exact[np.inf] <= exact[2] * (1 + 1e-9))
    assert np.all(exact[2] <= exact[1] * (1 + 1e-9))


def test_a_time_limit_on_200_trees(shared):
    """time_limit=0.05: no row takes twice that (CPU time, the machine may be busy), binary and with three classes."""
    case = load("m200d6", shared, 20)
    rng = np.random.default_rng(8)
    three = random_forest(rng, 100, 6, 30, outputs=3)
    limit = 0.05
    for model, X, eps in ((case.model, case.X, case.eps), (three, rng.random((5, 30)), {1: 0.5, 2: 0.3, np.inf: 0.1})):
        for norm in NORMS:
            treeproof.radius(model, X[:1], norm=norm, method="search", time_limit=limit)  # compiles
            for x in X:
                start = thread_time()
                quick = treeproof.radius(model, [x], norm=norm, method="search", time_limit=limit)
                assert thread_time() - start < 2 * limit
                assert quick.lower[0] <= quick.upper[0]
            if norm in eps:
                for x in X:
                    start = thread_time()
                    proof = treeproof.certify(model, [x], norm=norm, eps=eps[norm], method="search", time_limit=limit)
                    assert thread_time() - start < 2 * limit
                    assert proof.lower[0] <= proof.upper[0]
