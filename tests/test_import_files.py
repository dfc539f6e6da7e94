"""Files and live objects give the same ensemble, and files need no library (issue 2, Shows 2 and 6)."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from tests import import_zoo

import treeproof

ARRAYS = ("feature", "threshold", "left", "right", "value", "missing_left", "tree_offsets", "base", "classes")
FACTS = (
    "n_features",
    "zero_class",
    "cut",
    "dtype",
    "sum_dtype",
    "decision_slack",
    "link",
    "accepts_missing",
    "feature_names",
)
SAVED = {
    "xgboost": ("model.json", "model.ubj", "raw-json", "raw-ubj"),
    "lightgbm": ("model.txt", "text"),
    "catboost": ("model.json",),
}


def need(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")


def assert_same(one, other) -> None:
    """Two ensembles hold the same bits."""
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert getattr(one, name).dtype == getattr(other, name).dtype, name
    for name in FACTS:
        assert getattr(one, name) == getattr(other, name), name


def saved(library: str, form: str, model, folder) -> object:
    """The model as a file (its path) or as bytes."""
    path = folder / form
    if library == "xgboost":
        if form.startswith("raw-"):
            return bytes(model.get_booster().save_raw(raw_format=form.removeprefix("raw-")))
        model.save_model(path)
        return path
    if library == "lightgbm":
        if form == "text":
            return model.booster_.model_to_string().encode()
        model.booster_.save_model(path)
        return path
    model.save_model(str(path), format="json")
    return path


def live(library: str, form: str, model, **options):
    """The live object that the file is a copy of."""
    source = model.get_booster() if form.startswith("raw-") else model
    return treeproof.load(source, **options)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("library", "form"), [(name, form) for name, forms in SAVED.items() for form in forms])
def test_a_file_is_the_live_object_bit_for_bit(library, form, seed, tmp_path):
    """The file, read without its library's help, gives the arrays of the live object."""
    need(library)
    model, _ = import_zoo.fitted(library, 1000 + seed)
    names = None if library == "xgboost" else np.asarray(model.classes_.tolist())
    from_file = treeproof.load(saved(library, form, model, tmp_path), classes=names)
    assert_same(from_file, live(library, form, model, classes=names))
    assert any("not compared" in note for note in from_file.summary().notes)


@pytest.mark.parametrize("library", import_zoo.LIBRARIES)
def test_our_own_file_is_the_ensemble(library, tmp_path):
    """What is loaded, saved as treeproof JSON and loaded again is unchanged."""
    if library != "sklearn":
        need(library)
    model, _ = import_zoo.fitted(library, 2000)
    ensemble = treeproof.load(model)
    ensemble.save(tmp_path / "model.json")
    again = treeproof.load(tmp_path / "model.json")
    assert_same(again, ensemble)
    assert again.source == ensemble.source


def test_an_ensemble_and_a_fitted_estimator_pass_through():
    """A TreeEnsemble comes back itself, and an estimator's ensemble_ is taken."""
    ensemble = treeproof.TreeEnsemble.from_stumps([0], [0.5], [-1.0], [1.0])
    assert treeproof.load(ensemble) is ensemble

    class Fitted:
        ensemble_ = ensemble

    assert treeproof.load(Fitted()) is ensemble
    with pytest.raises(treeproof.InvalidInputError, match="decision_threshold cannot be used"):
        treeproof.load(ensemble, decision_threshold=0.3)


def test_the_summary_says_what_was_read(tmp_path):
    """Source, version, trees, leaves, features, classes, rule, dtype and additivity are all in the summary."""
    need("xgboost")
    import xgboost

    X = np.random.default_rng(0).normal(size=(200, 3))
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=1).fit(X, X[:, 1] > 0.4)
    facts = treeproof.load(model).summary()
    assert facts.source == f"xgboost {xgboost.__version__}"
    assert (facts.trees, facts.leaves, facts.features, facts.features_used) == (5, 10, 3, 1)
    assert facts.classes == [0, 1]
    assert (facts.dtype, facts.sum_dtype, facts.additive, facts.accepts_missing) == ("float32", "float32", True, True)
    text = str(facts)
    for word in (
        "xgboost",
        "5 (depth up to 1, 10 leaves)",
        "3 (1 used)",
        "float32",
        "additive",
        "equal to the library",
    ):
        assert word in text


def stumps(library: str):
    """A classifier of a few stumps, which every verifier decides at once."""
    if library == "xgboost":
        return importlib.import_module(library).XGBClassifier(n_estimators=4, max_depth=1)
    if library == "lightgbm":
        return importlib.import_module(library).LGBMClassifier(n_estimators=4, num_leaves=2, verbose=-1)
    options = {"iterations": 4, "depth": 1, "verbose": 0, "allow_writing_files": False}
    return importlib.import_module(library).CatBoostClassifier(**options)


@pytest.mark.parametrize("seed", range(2))
def test_files_load_where_no_library_is_installed(seed, tmp_path):
    """With the three libraries made impossible to import, their files load and are certified."""
    paths = []
    forms = (("xgboost", "model.json"), ("xgboost", "model.ubj"), ("lightgbm", "model.txt"), ("catboost", "model.json"))
    for library, form in forms:
        need(library)
        X, y, _ = import_zoo.table(np.random.default_rng(seed), missing=False)
        model = stumps(library).fit(X, y)
        folder = tmp_path / f"{library}-{form}"
        folder.mkdir()
        path = saved(library, form, model, folder)
        rows = np.nan_to_num(X[:4]).tolist()
        predicted = import_zoo.library_labels(model, np.array(rows)).astype(str).tolist()
        labels = None if library == "xgboost" else model.classes_.tolist()
        paths.append([str(path), rows, predicted, labels])
    program = """
        import importlib.abc, json, sys

        class Absent(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("xgboost", "lightgbm", "catboost"):
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Absent())
        import numpy as np
        import treeproof

        for path, rows, predicted, labels in json.loads(sys.argv[1]):
            model = treeproof.load(path, classes=labels)
            rows = np.array(rows)
            assert model.predict(rows).astype(str).tolist() == predicted, path
            found = treeproof.certify(model, rows, norm=1, eps=1e-3, time_limit=5)
            assert len(found.status) == len(rows)
        print("done")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), json.dumps(paths)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"


def test_loading_does_not_import_other_libraries():
    """`import treeproof` and the importers' front bring in none of the four libraries."""
    program = (
        "import sys, treeproof; treeproof.load; "
        "print([n for n in ('xgboost', 'lightgbm', 'catboost', 'sklearn', 'numba') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
