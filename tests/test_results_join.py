"""Results of parts, put together, are the results of the whole; parts that do not belong together are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tests.snippets import blocks

import treeproof
from treeproof import Certificates, InvalidInputError, Radii, TreeEnsemble


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    return TreeEnsemble.from_stumps(rng.integers(4, size=12), rng.random(12), *rng.normal(size=(2, 12)), n_features=4)


@pytest.fixture
def rows():
    return np.random.default_rng(1).random((37, 4))


def parts_of(rows, y=None):
    return [(rows[part], None if y is None else y[part]) for part in (slice(0, 10), slice(10, 11), slice(11, 37))]


def test_joined_certificates_are_those_of_the_whole(model, rows):
    y = np.random.default_rng(2).integers(2, size=37)
    whole = treeproof.certify(model, rows, y, norm=1, eps=0.2)
    joined = Certificates.join(
        [treeproof.certify(model, X, labels, norm=1, eps=0.2) for X, labels in parts_of(rows, y)]
    )
    for name in ("status", "lower", "upper", "predicted", "y", "X"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    np.testing.assert_array_equal(joined.witness, whole.witness)
    assert joined.verified_error == whole.verified_error
    assert joined.clean_error == whole.clean_error


def test_joined_radii_are_those_of_the_whole(model, rows):
    whole = treeproof.radius(model, rows, norm=2)
    joined = Radii.join([treeproof.radius(model, X, norm=2) for X, _ in parts_of(rows)])
    np.testing.assert_array_equal(joined.lower, whole.lower)
    np.testing.assert_array_equal(joined.exact, whole.exact)
    np.testing.assert_array_equal(joined.witness, whole.witness)


def test_models_and_results_travel_between_processes(model, rows):
    proof = treeproof.certify(pickle.loads(pickle.dumps(model)), rows, norm=1, eps=0.2)
    back = pickle.loads(pickle.dumps(proof))
    np.testing.assert_array_equal(back.status, treeproof.certify(model, rows, norm=1, eps=0.2).status)


@pytest.mark.parametrize("other", [{"norm": 1, "eps": 0.3}, {"norm": 2, "eps": 0.2}])
def test_parts_of_different_threats_are_refused(model, rows, other):
    first = treeproof.certify(model, rows, norm=1, eps=0.2)
    with pytest.raises(InvalidInputError, match="different threat"):
        Certificates.join([first, treeproof.certify(model, rows, **other)])


def test_labels_in_some_parts_only_and_no_parts_are_refused(model, rows):
    first = treeproof.certify(model, rows, norm=1, eps=0.2)
    with pytest.raises(InvalidInputError, match="different y"):
        Certificates.join([first, treeproof.certify(model, rows, np.zeros(37, dtype=int), norm=1, eps=0.2)])
    with pytest.raises(InvalidInputError, match="at least one"):
        Certificates.join([])
    with pytest.raises(InvalidInputError, match="Radii"):
        Certificates.join([treeproof.radius(model, rows, norm=1)])


def test_the_guide_s_dask_cluster_gives_the_same_answer(model, rows):
    pytest.importorskip("distributed", reason="dask's scheduler is not installed")
    given, names = np.array_split(rows, 4), {}
    here, cluster = blocks("docs/guide/clusters.md", "python")
    exec(here, names)
    names |= {"model": model, "parts": given}
    exec(cluster.replace("eps=0.05", "eps=0.2"), names)
    np.testing.assert_array_equal(names["proof"].status, treeproof.certify(model, rows, norm=1, eps=0.2).status)
