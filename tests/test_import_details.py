"""The details of each library that peers get wrong: intercepts, rounds in use, zeros, ties, thresholds, scaling."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests import import_zoo

import treeproof


def data(classes: int = 2, n: int = 300, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(-2, 3, n)
    score = X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3]
    return X, np.searchsorted(np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]), score)


def same_labels(model, translated, X) -> None:
    assert np.array_equal(import_zoo.library_labels(model, X).astype(str), translated.predict(X).astype(str))


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost", reason="xgboost is not installed")


@pytest.fixture(scope="module")
def lightgbm():
    return pytest.importorskip("lightgbm", reason="lightgbm is not installed")


@pytest.fixture(scope="module")
def catboost():
    return pytest.importorskip("catboost", reason="catboost is not installed")


# ---------------------------------------------------------------- XGBoost


def document(model) -> dict:
    return json.loads(bytes(model.get_booster().save_raw("json")))


def as_bytes(content: dict) -> bytes:
    return json.dumps(content).encode()


def test_xgboost_base_score_in_every_form(xgboost):
    """Text, number, one-entry list and per-class list state the same intercept; a probability for binary:logistic."""
    X, y = data()
    model = xgboost.XGBClassifier(n_estimators=2, base_score=0.3).fit(X, y)
    content = document(model)
    wanted = treeproof.load(model).base
    assert abs(wanted[0] - np.log(0.3 / 0.7)) < 1e-6
    for form in ("3E-1", "[3E-1]", "0.3", 0.3, "[0.3]"):
        content["learner"]["learner_model_param"]["base_score"] = form
        assert np.array_equal(treeproof.load(as_bytes(content)).base, wanted), form
    X, y = data(3)
    content = document(xgboost.XGBClassifier(n_estimators=2, base_score=0.3).fit(X, y))
    content["learner"]["learner_model_param"]["base_score"] = "5E-1"
    assert treeproof.load(as_bytes(content)).base.tolist() == [0.5, 0.5, 0.5]
    content["learner"]["learner_model_param"]["base_score"] = "[1E0,2E0,-3E0]"
    assert treeproof.load(as_bytes(content)).base.tolist() == [1.0, 2.0, -3.0]
    for bad in ("[1E0,2E0]", "x", "[[1]]", "null", '"1"', "[]", "NaN", "1e999"):
        content["learner"]["learner_model_param"]["base_score"] = bad
        with pytest.raises(treeproof.InvalidModelError):
            treeproof.load(as_bytes(content))


def test_xgboost_files_of_older_versions(xgboost):
    """Files as XGBoost 1.7 wrote them (no round boundaries, no split types, no targets) give the same trees."""
    X, y = data(3)
    model = xgboost.XGBClassifier(n_estimators=4, num_parallel_tree=2, subsample=0.5, base_score=0.5).fit(X, y)
    content = document(model)
    wanted = treeproof.load(as_bytes(content))
    booster = content["learner"]["gradient_booster"]["model"]
    del booster["iteration_indptr"]
    for tree in booster["trees"]:
        del tree["split_type"]
        tree["default_left"] = [bool(value) for value in tree["default_left"]]
    param = content["learner"]["learner_model_param"]
    del param["num_target"]
    param["base_score"] = "5E-1"
    content["version"] = [1, 7, 6]
    old = treeproof.load(as_bytes(content))
    for name in ("feature", "threshold", "left", "right", "value", "missing_left", "tree_offsets", "base"):
        assert np.array_equal(getattr(old, name), getattr(wanted, name)), name
    assert old.summary().source == "xgboost 1.7.6"
    half = treeproof.load(as_bytes(content), iteration_range=(0, 2))
    assert (half.n_trees, old.n_trees) == (12, 24)


def test_xgboost_tree_weights_wherever_they_are_kept(xgboost):
    """Dart's weight of each tree: with the booster (before XGBoost 3.4) or with the trees; a new field is refused."""
    X, y = data(classes=3)
    model = xgboost.XGBClassifier(n_estimators=6, max_depth=3, booster="dart", rate_drop=0.5, one_drop=1, verbosity=0)
    content = document(model.fit(X, y))
    saved = treeproof.load(as_bytes(content)).to_json()
    booster = content["learner"]["gradient_booster"]
    trees = booster.get("gbtree", booster)["model"]
    weights = (booster if "weight_drop" in booster else trees).pop("weight_drop")
    assert len(set(weights)) > 1
    trees.pop("weight_drop", None)
    forms = [
        {"name": "dart", "gbtree": {"name": "gbtree", "model": trees}, "weight_drop": weights},
        {"name": "gbtree", "model": {**trees, "weight_drop": weights}},
        {"name": "dart", "model": {**trees, "weight_drop": weights}},
    ]
    for form in forms:
        content["learner"]["gradient_booster"] = form
        same_labels(model, treeproof.load(as_bytes(content)), X)
        assert treeproof.load(as_bytes(content)).to_json() == saved
    content["learner"]["gradient_booster"] = {"name": "gbtree", "model": {**trees, "tree_tilt": weights}}
    with pytest.raises(treeproof.TranslationError, match="'tree_tilt' that treeproof does not know"):
        treeproof.load(as_bytes(content))


def test_xgboost_nodes_that_pruning_left_behind(xgboost):
    """Unreachable nodes in the arrays are dropped; a cycle is refused."""
    X, y = data()
    content = document(xgboost.XGBClassifier(n_estimators=1, max_depth=2).fit(X, y))
    wanted = treeproof.load(as_bytes(content))
    tree = content["learner"]["gradient_booster"]["model"]["trees"][0]
    for name, extra in (
        ("left_children", -1),
        ("right_children", -1),
        ("split_indices", 2**31 - 1),
        ("split_conditions", 0.0),
        ("default_left", 0),
        ("split_type", 0),
    ):
        tree[name] = tree[name][:1] + [extra] + tree[name][1:]
    for side in ("left_children", "right_children"):
        tree[side] = [child + 1 if child >= 1 else child for child in tree[side]]
    again = treeproof.load(as_bytes(content))
    assert np.array_equal(again.value, wanted.value)
    assert np.array_equal(again.left, wanted.left)
    tree["left_children"][0] = 0
    with pytest.raises(treeproof.InvalidModelError, match="cycle"):
        treeproof.load(as_bytes(content))


def test_xgboost_rounds_in_use(xgboost, tmp_path):
    """After early stopping the classifier uses the best round (live and from its file), the Booster all rounds."""
    X, y = data(seed=1)
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(len(y)) < 0.3, 1 - y, y)
    model = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=5, learning_rate=1.0)
    model.fit(X[:150], noisy[:150], eval_set=[(X[150:], noisy[150:])], verbose=False)
    best, every = model.best_iteration + 1, model.get_booster().num_boosted_rounds()
    assert best < every
    model.save_model(tmp_path / "model.json")
    for source in (model, tmp_path / "model.json"):
        assert treeproof.load(source).n_trees == best
        assert treeproof.load(source, iteration_range=(0, every)).n_trees == every
    booster = treeproof.load(model.get_booster())
    assert booster.n_trees == every
    assert any("iteration_range" in note for note in booster.summary().notes)
    same_labels(model, treeproof.load(model), X)


def test_links_give_the_librarys_own_probabilities(xgboost, lightgbm):
    """Softmax in float32 (XGBoost) and float64, and sigmoids (LightGBM), from their own scores, to the last digit."""
    X, y = data(4)
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, y)
    link = treeproof.load(model).link
    found = link(model.predict(X, output_margin=True), "float32")
    assert found.dtype == np.float32
    # one digit for another C library's exp; here the bits are the same
    np.testing.assert_array_max_ulp(found, model.predict_proba(X), maxulp=1)
    for objective in ("multiclass", "multiclassova"):
        quiet = {"verbose": -1, "min_child_samples": 5, "learning_rate": 0.05}
        model = lightgbm.LGBMClassifier(n_estimators=5, objective=objective, **quiet).fit(X, y)
        link = treeproof.load(model).link
        booster = model.booster_  # the classifier makes one-vs-all probabilities add up to 1
        np.testing.assert_array_max_ulp(link(booster.predict(X, raw_score=True), "float64"), booster.predict(X), 1)


def test_xgboost_booster_decisions(xgboost):
    """A Booster's scores and probabilities decide as its classifier does, on data frames' names as well."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(frame, y)
    for source in (model, model.get_booster()):
        translated = treeproof.load(source)
        assert translated.feature_names == ("a", "b", "c", "d")
        assert np.array_equal(translated.predict(frame), model.predict(frame))
    raw = xgboost.XGBClassifier(n_estimators=5, objective="binary:logitraw").fit(X, y)
    assert treeproof.load(raw).cut == 0.5  # XGBClassifier compares logitraw's score with 0.5
    assert treeproof.load(raw.get_booster()).cut == 0.0
    same_labels(raw, treeproof.load(raw), X)


def test_xgboost_sigmoid_switches_where_we_cut(xgboost):
    """The float32 sigmoid first exceeds 0.5 just above our cut, on this machine's XGBoost."""
    from treeproof.importers.xgboost import LOGISTIC_CUT, LOGISTIC_SLACK

    rows = np.zeros((4, 1))
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(rows, label=[0, 1, 0, 1]), 0)
    cut = np.float32(LOGISTIC_CUT)
    margins = np.array([-1e-7, 0.0, cut, np.nextafter(cut, np.float32(1)), 1e-6], dtype=np.float32)
    found = booster.predict(xgboost.DMatrix(np.zeros((5, 1)), base_margin=margins))
    assert (found > 0.5).tolist() == [False, False, False, True, True]
    assert LOGISTIC_SLACK > LOGISTIC_CUT


# ---------------------------------------------------------------- LightGBM


@pytest.mark.parametrize("zero_as_missing", [False, True])
@pytest.mark.parametrize("use_missing", [False, True])
def test_lightgbm_zeros_and_missing_values(lightgbm, zero_as_missing, use_missing):
    """Inputs within 1e-35 of zero, zeros against their side, and NaN go where LightGBM sends them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.1] = np.nan
    y = ((X[:, 0] == 0) ^ (np.nan_to_num(X[:, 1]) > 0.3) ^ np.isnan(X[:, 2])).astype(int)
    model = lightgbm.LGBMClassifier(
        n_estimators=8, num_leaves=12, verbose=-1, zero_as_missing=zero_as_missing, use_missing=use_missing
    ).fit(X, y)
    translated = treeproof.load(model)
    small = float(np.float32(1e-35))
    near = [0.0, -0.0, small, -small, np.nextafter(small, 1), np.nextafter(-small, -1), 5e-324, -1e-40, np.nan, 1.0]
    rows = rng.choice(near, (3000, 3))
    rows[::2] = np.where(rng.random((1500, 3)) < 0.5, X[rng.integers(0, 400, 1500)], rows[::2])
    ours, theirs = translated.decision_function(rows), model.predict(rows, raw_score=True)
    assert np.max(np.abs(ours - theirs)) < 1e-12
    same_labels(model, translated, rows)


def test_lightgbm_thresholds_inside_the_zero_window(lightgbm):
    """A file's thresholds at and inside 1e-35 follow LightGBM's own rounding of small inputs to 0."""
    X, y = data()
    model = lightgbm.LGBMClassifier(n_estimators=1, num_leaves=2, verbose=-1).fit(X, y)
    text = model.booster_.model_to_string()
    line = next(line for line in text.splitlines() if line.startswith("threshold="))
    kinds = next(line for line in text.splitlines() if line.startswith("decision_type="))
    feature = int(next(line for line in text.splitlines() if line.startswith("split_feature=")).split("=")[1])
    small = float(np.float32(1e-35))
    rows = np.zeros((11, 4))
    rows[:, feature] = [
        -1, -2 * small, np.nextafter(-small, -1), -small, -1e-36, 0, 1e-36, small, np.nextafter(small, 1), 1, np.nan,
    ]  # fmt: skip
    for threshold in (-1e-35, -small, -1e-36, -0.0, 0.0, 1e-36, small, np.nextafter(small, 1), 0.5, -0.5):
        for kind in (0, 2, 4, 6, 8, 10):
            changed = text.replace(line, f"threshold={float(threshold)!r}").replace(kinds, f"decision_type={kind}")
            # LightGBM would trust the old sizes of the blocks; without them it reads line by line
            sizes = next(line for line in changed.splitlines() if line.startswith("tree_sizes="))
            booster = lightgbm.Booster(model_str=changed.replace(sizes + "\n", ""))
            found = treeproof.load(changed.encode())
            wanted = booster.predict(rows, raw_score=True)
            assert np.array_equal(found.decision_function(rows), wanted), (threshold, kind)


def test_lightgbm_rounds_in_use(lightgbm):
    """The best iteration is what predict uses, and what is loaded; iteration_range overrides it."""
    X, y = data(seed=2)
    model = lightgbm.LGBMClassifier(n_estimators=80, learning_rate=0.8, verbose=-1)
    stop = [lightgbm.early_stopping(5, verbose=False)]
    model.fit(X[:150], y[:150], eval_set=[(X[150:], y[150:])], callbacks=stop)
    assert 0 < model.best_iteration_ < 80
    assert treeproof.load(model).n_trees == model.best_iteration_
    assert treeproof.load(model.booster_).n_trees == model.best_iteration_
    assert treeproof.load(model, iteration_range=(1, 3)).n_trees == 2
    same_labels(model, treeproof.load(model), X)


def test_lightgbm_one_vs_all_that_saturates_is_refused(lightgbm):
    """Scores at which float64 sigmoids are all 1 cannot be compared: refused, naming the other objective."""
    X, y = data(3)
    model = lightgbm.LGBMClassifier(n_estimators=60, learning_rate=1.0, objective="multiclassova", verbose=-1)
    with pytest.raises(treeproof.TranslationError, match="multiclassova.*objective='multiclass'"):
        treeproof.load(model.fit(X, y))


# ---------------------------------------------------------------- CatBoost


@pytest.mark.parametrize("mode", ["Min", "Max"])
def test_catboost_missing_values_go_their_way(catboost, mode):
    """NaN follows nan_mode, also where a border splits missing from all numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    X[rng.random(X.shape) < 0.3] = np.nan
    y = (np.isnan(X[:, 0]) ^ (np.nan_to_num(X[:, 1]) > 0)).astype(int)
    quiet = {"verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(iterations=10, depth=4, nan_mode=mode, **quiet).fit(X, y)
    translated = treeproof.load(model)
    top = float(np.finfo(np.float32).max)
    if mode == "Max":
        assert (np.abs(translated.threshold) >= top).any()
    raw = model.predict(X, prediction_type="RawFormulaVal")
    assert np.max(np.abs(translated.decision_function(X) - raw)) < 1e-12
    same_labels(model, translated, X)


def test_catboost_stored_threshold(catboost):
    """A probability threshold stored in the model is the decision rule; the caller's overrides it."""
    X, y = data()
    quiet = {"verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(iterations=10, depth=3, **quiet).fit(X, y)
    model.set_probability_threshold(0.2)
    translated = treeproof.load(model)
    assert abs(translated.cut - np.log(0.2 / 0.8)) < 1e-12
    same_labels(model, translated, X)
    assert abs(treeproof.load(model, decision_threshold=0.7).cut - np.log(0.7 / 0.3)) < 1e-12


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", ["cbm", "json"])
def test_catboost_models_read_back_by_catboost(catboost, tmp_path, form, classes):
    """A plain ``CatBoost`` object that read a file has the labels of the classifier that wrote it."""
    X, y = data(classes)
    labels = np.array(["no", "yes", "maybe"])[y]
    model = catboost.CatBoostClassifier(iterations=5, depth=3, verbose=0, allow_writing_files=False).fit(X, labels)
    model.save_model(str(tmp_path / "model"), format=form)
    for kind in (catboost.CatBoost, catboost.CatBoostClassifier):
        translated = treeproof.load(kind().load_model(str(tmp_path / "model"), format=form))
        assert translated.classes.tolist() == sorted(set(labels))
        same_labels(model, translated, X)


# ---------------------------------------------------------------- scikit-learn


def test_forest_votes_that_tie_are_ties():
    """Half the votes each: the first class, with a slack of zero, so that ties are decided and not unknown."""
    from treeproof.model.rounding import rounding_of

    X, y = data(n=60)
    model = ensemble.RandomForestClassifier(10, random_state=0).fit(X, y)
    translated = treeproof.load(model)
    assert translated.decision_slack == 0
    assert rounding_of(translated).library.tolist() == [0.0, 0.0]
    rows = np.random.default_rng(0).normal(size=(4000, 4))
    scores = translated.decision_function(rows)
    ties = scores[:, 0] == scores[:, 1]
    assert ties.sum() > 20
    assert (model.predict(rows[ties]) == 0).all()
    same_labels(model, translated, rows)


def test_bagging_of_feature_subsets_and_missing_classes():
    """Trees that see few columns, or never saw a class, add to the right class from the right column."""
    X, y = data(5, n=60)
    model = ensemble.BaggingClassifier(
        DecisionTreeClassifier(), n_estimators=12, max_features=2, max_samples=8, random_state=0
    ).fit(X, np.array(list("edcba"))[y])
    rows = np.random.default_rng(0).normal(size=(2000, 4))
    same_labels(model, treeproof.load(model), rows)


def classifiers(catboost, lightgbm, xgboost) -> list:
    quiet = {"verbose": 0, "allow_writing_files": False, "iterations": 8}
    return [
        xgboost.XGBClassifier(n_estimators=8),
        lightgbm.LGBMClassifier(n_estimators=8, verbose=-1),
        lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, boosting_type="rf", subsample=0.5, subsample_freq=1),
        catboost.CatBoostClassifier(**quiet),
        DecisionTreeClassifier(max_depth=4),
        ensemble.RandomForestClassifier(8, random_state=0),
        ensemble.GradientBoostingClassifier(n_estimators=8),
        ensemble.GradientBoostingClassifier(n_estimators=8, loss="exponential"),
        ensemble.HistGradientBoostingClassifier(max_iter=8),
        make_pipeline(StandardScaler(), ensemble.RandomForestClassifier(8, random_state=0)),
    ]


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.9])
def test_decision_thresholds(catboost, lightgbm, xgboost, threshold):
    """With decision_threshold=p the class is 1 where the library's own probability exceeds p."""
    X, y = data(n=400)
    for model in classifiers(catboost, lightgbm, xgboost):
        model.fit(X[:200], y[:200])
        translated = treeproof.load(model, decision_threshold=threshold)
        wanted = model.predict_proba(X)[:, 1] > threshold
        assert np.array_equal(translated.predict(X) == translated.classes[1], wanted), model


def test_bisection_over_floats_is_exact():
    """A pipeline's new threshold is the first float64 that its own arithmetic carries to the old one."""
    from treeproof.importers import pipeline

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [1.0, 1e-12, 1e9] + [0.1, 1.0, -3e8]
    for scalers in ([StandardScaler()], [MinMaxScaler((-1, 3))], [MaxAbsScaler(), RobustScaler()]):
        pipe = make_pipeline(*scalers).fit(X)
        actions = [action for name, step in pipe.steps for action in pipeline._actions(name, step, 3)]
        for dtype in ("float32", "float64"):
            feature = rng.integers(0, 3, 500)
            target = rng.normal(size=500).astype(dtype).astype(np.float64)
            found = pipeline._first_reaching(actions, feature, target, dtype)
            for place, reaches in ((found, True), (np.nextafter(found, -np.inf), False)):
                rows = np.zeros((500, 3))
                rows[np.arange(500), feature] = place
                scaled = pipe.transform(rows)[np.arange(500), feature].astype(dtype)
                assert np.array_equal(scaled.astype(np.float64) >= target, np.full(500, reaches))


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_data_frames_and_other_labels(catboost, lightgbm, xgboost, threshold):
    """Models trained on data frames load without a warning, and under the caller's labels."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    for model in classifiers(catboost, lightgbm, xgboost):
        model.fit(frame, y)
        translated = treeproof.load(model, classes=["good", "bad"], decision_threshold=threshold)
        assert translated.feature_names == ("a", "b", "c", "d"), model
        wanted = model.predict_proba(frame)[:, 1] > (0.5 if threshold is None else threshold)
        assert np.array_equal(translated.predict(frame), np.where(wanted, "bad", "good")), model


def test_names_with_spaces_match_what_lightgbm_made_of_them(lightgbm):
    """LightGBM writes spaces as underscores: frames and threats with the names of the table still fit, in any order."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["mean radius", "mean_area", "a b c", "plain"])
    model = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1, min_child_samples=2).fit(frame, y)
    translated = treeproof.load(model)
    assert translated.feature_names == ("mean_radius", "mean_area", "a_b_c", "plain")
    assert np.array_equal(translated.predict(frame[frame.columns[::-1]]), model.predict(frame))
    threat = treeproof.Threat(norm=0, eps=4, frozen=["mean radius", "a_b_c", "mean_area", "plain"])
    assert (treeproof.certify(translated, frame[:9], threat=threat).status != treeproof.Status.BROKEN).all()
    for wrong, word in (
        (frame.rename(columns={"plain": "other"}), "'plain'"),
        (frame.rename(columns={"plain": "mean_area"}), "'plain'"),
        (pandas.concat([frame, frame[["plain"]]], axis=1), "'plain' twice"),
    ):
        with pytest.raises(treeproof.InvalidInputError, match=word):
            translated.predict(wrong)
    # which of the two columns is meant cannot be told
    twins = frame.rename(columns={"a b c": "mean radius", "mean radius": "mean  radius"}).rename(
        columns={"mean  radius": "mean\tradius"}
    )
    with pytest.raises(treeproof.InvalidInputError, match="mean_radius"):
        translated.predict(twins)


def test_frames_of_objects():
    """Nullable integers are numbers and their NA is missing; a text is named with its row and column."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data()
    X = X.round()
    model = ensemble.RandomForestClassifier(5, random_state=0).fit(X, y)
    translated = treeproof.load(model)
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"]).astype("Int64")
    frame.iloc[3, 2] = pandas.NA
    assert translated.accepts_missing
    X[3, 2] = np.nan
    assert np.array_equal(translated.predict(frame), model.predict(X))
    with pytest.raises(treeproof.InvalidInputError, match=r"\(row 0, column 'b'\) must be a number.*'red'"):
        translated.predict(frame.assign(b="red"))


def test_pipelines_are_on_raw_columns():
    """Rows, names and thresholds of a translated pipeline are those of the raw table."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data()
    frame = pandas.DataFrame(X * 1000 + 5, columns=["a", "b", "c", "d"])
    model = make_pipeline(StandardScaler(), "passthrough", ensemble.ExtraTreesClassifier(5, random_state=0))
    model.fit(frame, y)
    translated = treeproof.load(model)
    assert translated.dtype == "float64"
    assert translated.feature_names == ("a", "b", "c", "d")
    assert np.array_equal(translated.predict(frame), model.predict(frame))
    assert np.abs(translated.threshold[translated.feature >= 0]).max() > 100


def test_pipelines_inside_pipelines():
    """Scalers nested at the beginning or at the end are those of the flat pipeline, bit for bit."""
    X, y = data()
    X *= 1e30  # rows that the scalers carry beyond float32 are among those compared
    tree = ensemble.ExtraTreesClassifier(5, random_state=0)
    flat = treeproof.load(make_pipeline(StandardScaler(), MaxAbsScaler(), tree).fit(X, y))
    for nested in (
        make_pipeline(make_pipeline(StandardScaler(), MaxAbsScaler()), tree),
        make_pipeline(StandardScaler(), make_pipeline(MaxAbsScaler(), tree)),
    ):
        inner = treeproof.load(nested.fit(X, y))
        assert np.array_equal(inner.threshold, flat.threshold)
        assert np.array_equal(inner.value, flat.value)


def test_a_column_that_was_always_missing_in_a_pipeline_is_named():
    """A scaler without a mean for a column cannot be pulled into thresholds."""
    X, y = data()
    X[:, 2] = np.nan
    model = make_pipeline(MaxAbsScaler(), ensemble.ExtraTreesClassifier(5, random_state=0))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    with pytest.raises(treeproof.TranslationError, match="column 2.*Train without"):
        treeproof.load(model)


def test_float32_rows_beside_a_float64_tree():
    """Two float64 thresholds that enclose no float32 number leave an empty cell, and predictions agree."""
    base = np.float32(16777216.0)
    X = np.array([[16777216.0], [16777217.0], [16777218.0], [16777220.0]] * 5)
    y = np.array([0, 1, 0, 1] * 5)
    model = ensemble.HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=1).fit(X, y)
    tree = DecisionTreeClassifier().fit(X, y)
    rows = np.array([[float(base) + step / 4] for step in range(-8, 24)])
    for source in (model, tree):
        same_labels(source, treeproof.load(source), rows)
