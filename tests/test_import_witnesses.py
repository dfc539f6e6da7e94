"""Witnesses of certified models flip the original library's own `predict` (issue 2, Shows 3 and 4)."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests import import_zoo

import treeproof


def models(depth: int, count: int) -> dict:
    """A classifier of each library that is installed, and a pipeline."""
    found = {
        "sklearn-tree": DecisionTreeClassifier(max_depth=depth + 2, random_state=0),
        "sklearn-forest": ensemble.RandomForestClassifier(count, max_depth=depth, random_state=0),
        "sklearn-boosting": ensemble.GradientBoostingClassifier(n_estimators=count, max_depth=depth, random_state=0),
        "sklearn-histogram": ensemble.HistGradientBoostingClassifier(max_iter=count, max_depth=depth, random_state=0),
        "sklearn-pipeline": make_pipeline(
            StandardScaler(), ensemble.AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=count)
        ),
    }
    options = {
        "xgboost": ("XGBClassifier", {"n_estimators": count, "max_depth": depth}),
        "lightgbm": ("LGBMClassifier", {"n_estimators": count, "num_leaves": 2**depth, "verbose": -1}),
        "catboost": (
            "CatBoostClassifier",
            {"iterations": count, "depth": depth, "verbose": 0, "allow_writing_files": False},
        ),
    }
    for library, (name, keywords) in options.items():
        try:
            found[library] = getattr(importlib.import_module(library), name)(**keywords)
        except ImportError:
            continue
    return found


def witnesses(model, rows: np.ndarray, norms, eps, **options) -> tuple[int, int]:
    """How many witnesses there are, and how many of them the library does not predict otherwise."""
    translated = treeproof.load(model)
    original = import_zoo.library_labels(model, rows.astype(translated.dtype)).astype(str)
    count = failures = 0
    for norm, budget in zip(norms, eps, strict=True):
        proof = treeproof.certify(translated, rows, norm=norm, eps=budget, **options)
        broken = np.flatnonzero(proof.status == treeproof.Status.BROKEN)
        if len(broken):
            moved = import_zoo.library_labels(model, proof.witness[broken]).astype(str)
            failures += int(np.sum(moved == original[broken]))
            count += len(broken)
    return count, failures


@pytest.mark.parametrize("name", list(models(1, 1)))
def test_every_witness_flips_the_library(name):
    """Stump models of every library (and one tree): each witness, in five norms, changes the library's class."""
    X, y = load_breast_cancer(return_X_y=True)
    model = models(1, 12)[name].fit(X, y)
    spread = X.std()
    count, failures = witnesses(model, X[:60], (0, 0.5, 1, 2, np.inf), (3, spread, spread, spread, spread / 10))
    assert failures == 0
    assert count >= 60


def test_xgboost_learned_base_score_with_one_tenth_positives():
    """The default base_score, learned from 10% positives: predictions, scores and witnesses are the library's own."""
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=1000) > 1.4).astype(int)
    assert 0.08 < y.mean() < 0.12
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=1).fit(X, y)
    translated = treeproof.load(model)
    assert translated.base[0] < -1.5
    assert np.array_equal(translated.predict(X), model.predict(X))
    assert np.array_equal(translated.decision_function(X).astype(np.float32), model.predict(X, output_margin=True))
    without = translated.decision_function(X) - translated.base[0]
    assert np.mean((without > 0) != model.predict(X)) > 0.02  # leaving the intercept out would be seen
    proof = treeproof.certify(translated, X[:300], y[:300], norm=1, eps=0.3)
    assert proof.clean_error == np.mean(model.predict(X[:300]) != y[:300])
    count, failures = witnesses(model, X[:300], (1, np.inf), (1.0, 1.0))
    assert failures == 0
    assert count > 50


@pytest.mark.slow
def test_five_thousand_witnesses_on_three_data_sets(shared, capsys):
    """Breast cancer, diabetes and MNIST 2 vs 6, ensembles of depth 3 of all libraries: no witness fails."""
    total = wrong = 0
    report = {}
    for name, X, y, rows in data_sets(shared):
        for library, model in models(3, 20).items():
            model.fit(X, y)
            norms, eps = (0, 1, 2, np.inf), (4, 1.0, 0.7, 0.2)
            count, failures = witnesses(model, rows, norms, eps, time_limit=1.0)
            report[f"{name} {library}"] = count
            total, wrong = total + count, wrong + failures
    with capsys.disabled():
        print(f"\n{total} witnesses, {wrong} not flipped: {json.dumps(report)}")
    assert wrong == 0
    assert total >= 5000


def data_sets(shared):
    """Name, training rows, labels, and the rows to certify; scaled to [0, 1]."""
    cancer = np.genfromtxt(shared / "data" / "breast-cancer-wisconsin.data", delimiter=",", filling_values=np.nan)
    cancer = cancer[~np.isnan(cancer).any(axis=1)]
    sugar = np.genfromtxt(shared / "data" / "diabetes.csv", delimiter=",", skip_header=1)
    for name, table, start in (("breast-cancer", cancer, 1), ("diabetes", sugar, 0)):
        X = table[:, start:-1]
        X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        yield name, X, (table[:, -1] == table[:, -1].max()).astype(int), X[-100:]
    digits = np.load(shared / "data" / "mnist.npz")
    train = np.isin(digits["y_train"], (2, 6)).nonzero()[0][:3000]
    test = np.isin(digits["y_test"], (2, 6)).nonzero()[0][:100]
    X, rows = (
        digits["X_train"][train].reshape(len(train), -1) / 255,
        digits["X_test"][test].reshape(len(test), -1) / 255,
    )
    yield "mnist-2-6", X, (digits["y_train"][train] == 2).astype(int), rows
