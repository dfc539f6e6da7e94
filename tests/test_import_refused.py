"""What cannot be translated is refused with one line that names the thing and the way out (issue 2, Show 5)."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn import ensemble, model_selection, preprocessing, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import treeproof
from treeproof import InvalidInputError, InvalidModelError, TranslationError


def data(seed: int = 0, classes: int = 2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    X[:, 3] = rng.integers(0, 4, 200)
    y = np.searchsorted(np.quantile(X[:, 0] + (X[:, 3] == 2), np.linspace(0, 1, classes + 1)[1:-1]), X[:, 0])
    return X, y


def refused(source, *words, error=TranslationError, **options) -> str:
    """`load` refuses in one line that holds the words."""
    with pytest.raises(error) as caught:
        treeproof.load(source, **options)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, text
    return text


# ---------------------------------------------------------------- XGBoost


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost", reason="xgboost is not installed")


def test_xgboost_categorical_splits_name_the_feature(xgboost):
    """A categorical split is refused with the feature's name, live and from a file."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, _ = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "colour"])
    frame["colour"] = frame["colour"].astype(int).astype("category")
    y = np.isin(X[:, 3], [1, 3]).astype(int)
    model = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True, tree_method="hist").fit(frame, y)
    refused(model, "categorical", "'colour'", "Train on numbers")
    refused(bytes(model.get_booster().save_raw("json")), "categorical", "'colour'")


def test_xgboost_other_boosters_and_objectives(xgboost):
    """gblinear, regression, ranking, several targets, vector leaves and another missing value are refused by name."""
    X, y = data()
    with xgboost.config_context(verbosity=0):  # newer versions warn that they will drop it
        refused(xgboost.XGBClassifier(booster="gblinear", n_estimators=2).fit(X, y), "gblinear", "gbtree")
    refused(xgboost.XGBRegressor(n_estimators=2).fit(X, y), "XGBRegressor", "classifier")
    refused(xgboost.XGBRegressor(n_estimators=2).fit(X, y).get_booster(), "reg:squarederror")
    refused(xgboost.XGBClassifier(n_estimators=2, missing=-999.0).fit(X, y), "-999.0", "NaN")
    several = xgboost.XGBClassifier(n_estimators=2).fit(X, np.column_stack([y, 1 - y]))
    refused(several, "targets")
    _, y3 = data(classes=3)
    vector = xgboost.XGBClassifier(n_estimators=2, multi_strategy="multi_output_tree", tree_method="hist")
    refused(vector.fit(X, y3), "multi_output_tree")
    refused(xgboost.DMatrix(X), "DMatrix")
    refused(xgboost.XGBClassifier(n_estimators=2).fit(X, 0 * y), "one class")
    refused(xgboost.XGBClassifier(n_estimators=2).fit(X, y).set_params(missing=None), "None", "NaN")
    refused(
        xgboost.XGBClassifier(n_estimators=2, objective="binary:hinge").fit(X, y),
        "hinge",
        error=InvalidInputError,
        decision_threshold=0.3,
    )


def test_models_that_are_not_fitted_are_refused(xgboost):
    """Estimators before fit, and an empty Booster, say so in one line."""
    refused(xgboost.XGBClassifier(), "XGBClassifier is not fitted")
    refused(xgboost.Booster(), "is it trained")
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    refused(lightgbm.LGBMClassifier(), "LGBMClassifier is not fitted")
    X, y = data()
    refused(lightgbm.LGBMClassifier(verbose=-1).fit(X, y * 0), "one class")
    refused(make_pipeline(preprocessing.StandardScaler(), tree.DecisionTreeClassifier()), "not fitted")


def test_xgboost_dumps_are_refused(xgboost, tmp_path):
    """Text and JSON dumps lose digits: refused, naming save_model."""
    X, y = data()
    booster = xgboost.XGBClassifier(n_estimators=2).fit(X, y).get_booster()
    for form in ("text", "json"):
        booster.dump_model(tmp_path / "dump", dump_format=form)
        refused(tmp_path / "dump", "dump", "save_model")
    refused(b"binf\x00\x00\x00", "old binary", "save_model")


# ---------------------------------------------------------------- LightGBM


@pytest.fixture(scope="module")
def lightgbm():
    return pytest.importorskip("lightgbm", reason="lightgbm is not installed")


def test_lightgbm_refusals(lightgbm, tmp_path):
    """Linear leaves, categorical splits, regression, the JSON dump and early-stopped prediction are refused."""
    X, y = data()
    quiet = {"n_estimators": 3, "verbose": -1}
    refused(lightgbm.LGBMClassifier(linear_tree=True, **quiet).fit(X, y), "linear_tree")
    odd = np.isin(X[:, 3], [1, 3]).astype(int)
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "colour"])
    frame["colour"] = frame["colour"].astype(int).astype("category")
    categorical = lightgbm.LGBMClassifier(min_child_samples=2, min_data_per_group=1, cat_smooth=1, **quiet)
    refused(categorical.fit(frame, odd), "categorical", "'colour'")
    refused(lightgbm.LGBMRegressor(**quiet).fit(X, y), "LGBMRegressor")
    refused(lightgbm.LGBMRegressor(**quiet).fit(X, y).booster_, "regression")
    refused(lightgbm.LGBMClassifier(objective="cross_entropy", **quiet).fit(X, y), "cross_entropy")
    model = lightgbm.LGBMClassifier(**quiet).fit(X, y)
    refused(json.dumps(model.booster_.dump_model()).encode(), "JSON dump", "save_model")
    refused(lightgbm.LGBMClassifier(pred_early_stop=True, **quiet).fit(X, y), "pred_early_stop")


# ---------------------------------------------------------------- CatBoost


@pytest.fixture(scope="module")
def catboost():
    return pytest.importorskip("catboost", reason="catboost is not installed")


def test_catboost_refusals(catboost, tmp_path):
    """Categorical features, regression, unfitted models and the binary format are refused by name."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data()
    quiet = {"iterations": 3, "verbose": 0, "allow_writing_files": False}
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "colour"])
    frame["colour"] = frame["colour"].astype(int).astype(str)
    model = catboost.CatBoostClassifier(**quiet).fit(frame, y, cat_features=["colour"])
    refused(model, "categorical", "'colour'")
    refused(catboost.CatBoostRegressor(**quiet).fit(X, y), "CatBoostRegressor")
    refused(catboost.CatBoost({"loss_function": "RMSE", **quiet}).fit(X, y), "RMSE")
    refused(catboost.CatBoostClassifier(**quiet), "not fitted")
    vectors = frame[["a", "b"]].assign(v=[[1.0, float(label)] for label in y])
    pool = catboost.Pool(vectors, y, embedding_features=["v"])
    refused(catboost.CatBoostClassifier(**quiet).fit(pool), "embedding", "numbers")
    numbers = catboost.CatBoostClassifier(**quiet).fit(X, y)
    refused(catboost.sum_models([numbers, numbers]), "loss", "one classifier")
    numbers.save_model(str(tmp_path / "model.cbm"))
    refused(tmp_path / "model.cbm", "CatBoost's binary", "format='json'")
    refused(numbers, "iteration_range", error=InvalidInputError, iteration_range=(0, 1))


# ---------------------------------------------------------------- scikit-learn


def test_sklearn_refusals():
    """Each unsupported estimator is named, with what to load instead."""
    X, y = data()
    forest = ensemble.RandomForestClassifier(3, random_state=0)
    refused(ensemble.RandomForestRegressor(3).fit(X, y), "RandomForestRegressor", "RandomForestClassifier")
    refused(LogisticRegression().fit(X, y), "LogisticRegression")
    refused(forest.fit(X, np.column_stack([y, y])), "several outputs")
    refused(ensemble.RandomForestClassifier(3), "not fitted")
    refused(tree.DecisionTreeClassifier().fit(X, np.zeros(len(X))), "one class")
    search = model_selection.GridSearchCV(forest, {"max_depth": [1, 2]}).fit(X, y)
    refused(search, "GridSearchCV", "best_estimator_")
    refused(CalibratedClassifierCV(forest).fit(X, y), "CalibratedClassifierCV")
    start = ensemble.GradientBoostingClassifier(n_estimators=2, init=LogisticRegression()).fit(X, y)
    refused(start, "init=LogisticRegression", "init='zero'")
    chance = ensemble.GradientBoostingClassifier(n_estimators=2, init=DummyClassifier(strategy="uniform"))
    refused(chance.fit(X, y), "uniform")
    refused(ensemble.BaggingClassifier(LogisticRegression(), n_estimators=2).fit(X, y), "LogisticRegression")
    refused(ensemble.AdaBoostClassifier(forest, n_estimators=2).fit(X, y), "RandomForestClassifier")
    voting = ensemble.VotingClassifier([("f", forest)]).fit(X, y)
    refused(voting, "VotingClassifier", "one by one")
    refused(
        ensemble.AdaBoostClassifier(n_estimators=2).fit(X, y), "votes", error=InvalidInputError, decision_threshold=0.4
    )


def test_sklearn_categorical_features_are_named():
    """Histogram gradient boosting with a categorical feature is refused with the feature's name."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "colour"])
    model = ensemble.HistGradientBoostingClassifier(max_iter=3, categorical_features=["colour"]).fit(frame, y)
    refused(model, "categorical", "'colour'")


def test_pipelines_with_other_steps_are_refused():
    """A step that is no per-column scaler is named."""
    X, y = data()
    forest = tree.DecisionTreeClassifier(max_depth=2)
    refused(make_pipeline(PCA(2), forest).fit(X, y), "'pca'", "PCA", "StandardScaler")
    refused(make_pipeline(preprocessing.PolynomialFeatures(), forest).fit(X, y), "PolynomialFeatures")
    refused(make_pipeline(preprocessing.StandardScaler(), LogisticRegression()).fit(X, y), "LogisticRegression")
    refused(make_pipeline(preprocessing.StandardScaler(), "passthrough").fit(X, y), "last step")


# ---------------------------------------------------------------- files and arguments


def test_foreign_files_are_refused(tmp_path):
    """Pickles, archives, other JSON, empty files, folders and missing files are each told apart."""
    X, y = data()
    path = tmp_path / "model"
    for content, words in (
        (pickle.dumps(tree.DecisionTreeClassifier().fit(X, y)), ("pickle", "live estimator")),
        (b"PK\x03\x04zip", ("zip",)),
        (b"\x1f\x8b\x08gzip", ("gzip",)),
        (b"<?xml version='1.0'?><PMML/>", ("XML",)),
        (b'{"some": "thing"}', ("no known kind", "LightGBM text")),
        (b"[1, 2]", ("list",)),
        (b"hello", ("no known kind",)),
    ):
        path.write_bytes(content)
        refused(path, *words)
        refused(content, *words)
    path.write_bytes(b"")
    refused(path, "empty", error=InvalidModelError)
    path.write_bytes(b'{"learner": ')
    refused(path, "damaged", error=InvalidModelError)
    refused(tmp_path, "regular file", error=InvalidModelError)
    refused(tmp_path / "absent.json", "cannot be read", error=InvalidModelError)
    refused("name\0with a zero", "cannot be read", error=InvalidModelError)
    refused("/dev/zero", "regular file", error=InvalidModelError)


@pytest.mark.parametrize("source", [None, 3, [1, 2], {"learner": {}}, np.zeros(3), object(), treeproof.TreeEnsemble])
def test_things_that_are_no_models_are_refused(source):
    """Numbers, lists, dicts, arrays and classes are refused with their type."""
    refused(source, "source must be a model")


@pytest.mark.parametrize("threshold", [0, 1, -0.1, 1.5, float("nan"), True, "0.5", [0.5]])
def test_bad_thresholds_are_refused(threshold):
    """A decision threshold outside (0, 1), or no number, is refused."""
    X, y = data()
    forest = ensemble.RandomForestClassifier(3, random_state=0).fit(X, y)
    refused(forest, "decision_threshold", error=InvalidInputError, decision_threshold=threshold)


def test_wrong_labels_and_ranges_are_refused():
    """classes of the wrong number, thresholds for several classes and ranges outside the rounds are refused."""
    X, y = data(classes=3)
    forest = ensemble.RandomForestClassifier(3, random_state=0).fit(X, y)
    refused(forest, "classes", "3 labels", error=InvalidInputError, classes=["a", "b"])
    refused(forest, "several classes", error=InvalidInputError, decision_threshold=0.5)
    refused(forest, "iteration_range", error=InvalidInputError, iteration_range=(0, 1))


@pytest.mark.parametrize("range_", [(0, 0), (2, 1), (0, 99), (-1, 2), (0,), "all", (0.0, 1.0), (False, True)])
def test_bad_ranges_are_refused(xgboost, range_):
    """A range of rounds outside the model is refused."""
    X, y = data()
    model = xgboost.XGBClassifier(n_estimators=3).fit(X, y)
    refused(model, "iteration_range", error=InvalidInputError, iteration_range=range_)


def test_a_library_that_fails_to_predict_is_one_clear_error():
    """Whatever goes wrong inside the library during the comparison, the model is refused in one line."""

    class Broken(ensemble.RandomForestClassifier):
        def predict(self, X):
            raise KeyError("first line\nsecond line") if len(X) > 1 else ValueError("no missing values")

    X, y = data()
    forest = Broken(3, random_state=0).fit(X, y)
    refused(forest, "KeyError", "check=False")
    assert treeproof.load(forest, check=False).n_trees == 3


def test_a_wrong_translation_is_caught():
    """The equality check sees one threshold moved by one float, one leaf changed, and a base left out."""
    from dataclasses import replace

    from treeproof.importers import check, front, parts

    X, y = data()
    model = ensemble.GradientBoostingClassifier(n_estimators=20, max_depth=3, random_state=0).fit(X, y)
    found = front.live(model, parts.Options())
    check.verify(found.model, found.reference)

    def below(node: int) -> set[float]:
        if found.model.feature[node] < 0:
            return {round(float(found.model.value[node, 0]), 9)}
        return below(found.model.left[node]) | below(found.model.right[node])

    inner = np.flatnonzero(found.model.feature >= 0)
    # a threshold between equal leaves decides nothing
    telling = [node for node in inner if not below(found.model.left[node]) & below(found.model.right[node])]
    assert len(telling) > 15
    for node in telling:
        threshold = np.array(found.model.threshold)
        threshold[node] = np.nextafter(np.float32(threshold[node]), np.float32(np.inf))
        moved = replace(found.model, threshold=threshold)
        with pytest.raises(TranslationError, match="at the point x"):
            check.verify(moved, found.reference)
    for node in np.flatnonzero(found.model.feature < 0)[::11]:
        value = np.array(found.model.value)
        value[node] += 1e-9
        with pytest.raises(TranslationError, match="at the point x"):
            check.verify(replace(found.model, value=value), found.reference)
    with pytest.raises(TranslationError):
        check.verify(replace(found.model, base=found.model.base * 0), found.reference)
