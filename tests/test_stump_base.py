"""The shared estimator base: scikit-learn's contract around a trainer of three lines."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from treeproof import InvalidInputError, TreeEnsemble
from treeproof.training.base import BinaryFit, ProvableClassifier, join_outputs, merge_repeated_rows


class ClassMeans(ProvableClassifier):
    """One stump a feature, cut halfway between the class means (documents feature_names_in_, as asked)."""

    _merge_repeated_rows = True

    def __init__(self, norm=1, eps=0.1, warm_start=False, random_state=None):
        self.norm = norm
        self.eps = eps
        self.warm_start = warm_start
        self.random_state = random_state

    def _fit_binary(self, task):
        means = [
            np.average(task.X[task.y == side], axis=0, weights=task.sample_weight[task.y == side]) for side in (-1, 1)
        ]
        scale = np.sign(means[1] - means[0]) * np.abs(means[1] - means[0])
        ensemble = TreeEnsemble.from_stumps(
            np.arange(task.X.shape[1]), (means[0] + means[1]) / 2, -scale, scale, n_features=task.X.shape[1]
        )
        return BinaryFit(ensemble, state=None if task.previous is None else "went on")


@parametrize_with_checks([ClassMeans()])
def test_sklearn_contract(estimator, check):
    """A trainer that only writes _fit_binary passes scikit-learn's estimator checks."""
    check(estimator)


def test_one_vs_all_scores_are_the_parts():
    """Each column of a joined ensemble is, bit for bit, the score of its one-vs-all part."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.choice(["a", "b", "c"], 60)
    model = ClassMeans().fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (60, 3)
    for k, fit in enumerate(model._fits):
        np.testing.assert_array_equal(scores[:, k], fit.ensemble.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), np.array(["a", "b", "c"])[scores.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_join_outputs_keeps_one_output():
    """Two classes stay one output, with the labels attached."""
    part = TreeEnsemble.from_stumps([0], [0.5], [-1.0], [1.0], n_features=2)
    joined = join_outputs([part], np.array(["no", "yes"]))
    assert joined.n_outputs == 1
    assert joined.predict([[0.5, 0.0], [0.4, 0.0]]).tolist() == ["yes", "no"]


def test_merged_rows_add_their_weights():
    """Equal rows of one class become one row; equal rows of two classes stay two."""
    X = np.array([[1.0, 0.0], [1.0, -0.0], [1.0, 0.0], [0.0, 2.0]])
    merged, codes, weight = merge_repeated_rows(X, np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 4.0, 8.0]))
    assert len(merged) == 3
    assert sorted(zip(codes.tolist(), weight.tolist(), strict=True)) == [(0, 3.0), (1, 4.0), (1, 8.0)]


@pytest.mark.parametrize(
    ("params", "fit", "words"),
    [
        ({"norm": -1}, {}, "norm must be"),
        ({"norm": "l1"}, {}, "norm must be"),
        ({"eps": np.inf}, {}, "eps must be"),
        ({"eps": float("nan")}, {}, "eps must be"),
        ({}, {"X_val": np.zeros((2, 2))}, "X_val and y_val"),
        ({}, {"X_val": np.zeros((2, 2)), "y_val": [0, 5]}, "y_val must be"),
        ({}, {"sample_weight": np.zeros(4)}, "sample_weight must be"),
        ({}, {"sample_weight": [0, 0, 1, 1]}, "at least two classes"),
    ],
)
def test_bad_arguments_have_one_clear_line(params, fit, words):
    """Bad parameters and fit arguments are refused with the name and the rule."""
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(InvalidInputError, match=words) as caught:
        ClassMeans(**params).fit(X, [0, 0, 1, 1], **fit)
    assert "\n" not in str(caught.value)


def test_warm_start_hands_over_the_last_fit():
    """warm_start passes the previous fit on, and refuses other classes."""
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 0, 1, 1])
    model = ClassMeans(warm_start=True).fit(X, y)
    assert model._fits[0].state is None
    assert model.fit(X, y)._fits[0].state == "went on"
    with pytest.raises(InvalidInputError, match="classes of the first fit"):
        model.fit(X, y + 1)
