"""TreeEnsemble: predictions, the float grid, what it refuses, and its file format under hostile hands."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.judge import to_ensemble
from tests.naive import brute, floats, generate
from tests.naive.plain import leaf, nested, stump

from treeproof import InvalidInputError, InvalidModelError, TreeEnsemble, TreeproofError
from treeproof.model import floats as package_floats

DEEP = nested((0, 0.5, (1, 0.25, -1.0, 2.0), (0, 0.75, 3.0, -4.0)))
ARRAYS = ("feature", "threshold", "left", "right", "value", "missing_left", "tree_offsets", "base")
NUMBERS = ("n_features", "zero_class", "cut", "dtype", "sum_dtype", "decision_slack", "link", "accepts_missing")


def small(**fields) -> TreeEnsemble:
    return TreeEnsemble.from_trees([copy.deepcopy(DEEP), stump(1, 0.5, -1.0, 1.0)], 2, **fields)


# ---------------------------------------------------------------- prediction


def test_predict_equals_naive():
    """Scores equal the naive walk bit for bit, and classes follow its decision rule, on 300 nasty models."""
    for seed in range(300):
        case = generate.make(seed, n_rows=4)
        ensemble = to_ensemble(case.model)
        index, scores = brute.predict(case.model, case.rows)
        mine = ensemble.decision_function(np.array(case.rows))
        assert np.array_equal(mine.reshape(len(mine), -1), scores), seed
        assert np.array_equal(ensemble.predict_index(np.array(case.rows)), index), seed


def test_every_cell_of_the_naive_table_is_predicted_alike():
    """Both ends of every closed cell get the class that the naive table gives the cell."""
    for seed in range(60):
        case = generate.make(seed, n_rows=1, max_cells=200)
        table = brute.Table(case.model)
        ensemble = to_ensemble(case.model)
        for end in (0, 1):
            points = np.zeros((table.size, case.model.n_features))
            for axis, feature in enumerate(table.features):
                along = [1] * len(table.shape)
                along[axis] = -1
                column = np.array([cell[end] for cell in table.cells[axis]]).reshape(along)
                points[:, feature] = np.broadcast_to(column, table.shape).reshape(-1)
            assert np.array_equal(ensemble.predict_index(points), table.library_class), seed


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_thresholds_on_the_grid_are_the_same_rule(dtype):
    """Kept thresholds lie on the grid, and decide every grid number beside them as the given ones do."""
    rng = np.random.default_rng(0)
    for style in generate.THRESHOLDS:
        for threshold in generate.threshold_pool(rng, style, dtype):
            model = TreeEnsemble.from_stumps([0], [threshold], [0.0], [1.0], dtype=dtype)
            kept = float(model.threshold[0])
            assert floats.cast(kept, dtype) == kept
            assert math.copysign(1, kept) == 1 or kept != 0, "-0.0 is kept as 0.0"
            near = floats.cast(threshold, dtype)
            for x in (near, floats.following(near, dtype), floats.previous(near, dtype)):
                if math.isfinite(x):
                    goes_left = x < threshold if math.isinf(threshold) else Fraction(x) < Fraction(threshold)
                    assert model.predict_index([[x]])[0] == (not goes_left)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbours_on_the_grid(dtype):
    """The package's neighbours are the naive ones, without a warning at the ends of the range."""
    top = floats.largest(dtype)
    rng = np.random.default_rng(0)
    values = [0.0, 1e-45, top, -top, math.inf, -math.inf]
    values += [floats.cast(v, dtype) for s in generate.THRESHOLDS for v in generate.threshold_pool(rng, s, dtype)]
    assert package_floats.previous(values, dtype).tolist() == [floats.previous(v, dtype) for v in values]
    assert package_floats.following(values, dtype).tolist() == [floats.following(v, dtype) for v in values]
    between = [v * 1.0000000001 for v in values if math.isfinite(v)]
    assert package_floats.ceil_to(between, dtype).tolist() == [floats.at_or_above(v, dtype) for v in between]
    assert package_floats.floor_to(between, dtype).tolist() == [floats.at_or_below(v, dtype) for v in between]


def test_rows_are_cast_to_the_model_grid():
    """A float64 row just below a float32 threshold is rounded onto it first, as the library would."""
    below = np.nextafter(0.5, 0)
    assert small(dtype="float64").predict_index([[below, 0.0]]) == brute.predict(_plain("float64"), [[below, 0.0]])[0]
    assert TreeEnsemble.from_stumps([0], [0.5], [-1], [1], dtype="float64").predict([[below]]) == 0
    assert TreeEnsemble.from_stumps([0], [0.5], [-1], [1], dtype="float32").predict([[below]]) == 1


def _plain(dtype: str):
    return brute.PlainModel([copy.deepcopy(DEEP), stump(1, 0.5, -1.0, 1.0)], 2, dtype=dtype)


@pytest.mark.parametrize(("zero_class", "cut"), [(0, 0.0), (1, 0.0), (0, 0.5), (1, 0.5)])
def test_one_output_decides_ties_by_zero_class(zero_class, cut):
    """Above the cut is class 1, below it class 0, exactly at it `zero_class`."""
    model = TreeEnsemble.from_stumps([0], [0.0], [cut], [1.0], cut=cut, zero_class=zero_class, classes=["no", "yes"])
    assert model.predict([[-1.0], [1.0]]).tolist() == [["no", "yes"][zero_class], "yes"]


def test_several_outputs_take_the_first_maximum():
    """Ties of classes go to the first."""
    model = TreeEnsemble.from_stumps([0], [0.0], [[1.0, 2.0, 2.0]], [[2.0, 2.0, 2.0]], classes=[5, 6, 7])
    assert model.predict([[-1.0], [1.0]]).tolist() == [6, 5]


def test_float32_sums_are_rounded_after_every_tree():
    """With sum_dtype float32 the score is the float32 running sum, not a rounded float64 sum."""
    leaves = [np.float32(16777216.0), np.float32(1.0), np.float32(1.0)]
    model = TreeEnsemble.from_trees([leaf(float(v)) for v in leaves], 1, sum_dtype="float32")
    assert model.decision_function([[0.0]])[0] == 16777216.0
    assert TreeEnsemble.from_trees([leaf(float(v)) for v in leaves], 1).decision_function([[0.0]])[0] == 16777218.0


def test_stumps_equal_plain_trees():
    """`from_stumps` and `from_trees` build the same arrays."""
    trees = [stump(1, 0.5, -1.0, 2.0), stump(0, -0.25, 0.5, -0.5)]
    one = TreeEnsemble.from_trees(trees, 2, base=0.25)
    two = TreeEnsemble.from_stumps([1, 0], [0.5, -0.25], [-1.0, 0.5], [2.0, -0.5], base=0.25)
    assert one.to_json() == two.to_json()


def test_models_without_trees_or_splits():
    """No trees at all, or only leaves, is a constant model."""
    assert TreeEnsemble.from_trees([], 2, base=[0.0, 1.0]).predict(np.zeros((3, 2))).tolist() == [1, 1, 1]
    assert TreeEnsemble.from_stumps([], [], [], [], base=-1.0).predict([[0.0]]).tolist() == [0]
    constant = TreeEnsemble.from_trees([leaf(1.0)], 2)
    assert constant.predict(np.zeros((1, 2))).tolist() == [1]
    assert constant.is_additive
    assert len(constant.used_features) == 0


def test_additive_is_detected_tree_by_tree():
    """A tree of any depth on one feature is additive; one that reads two is not, wherever it stands."""
    deep_one = nested((0, 0.5, (0, 0.25, -1.0, 2.0), (0, 0.75, 3.0, -4.0)))
    other = nested((1, 0.5, (1, 0.25, -1.0, 2.0), 1.0))
    assert TreeEnsemble.from_trees([deep_one, other, leaf(1.0)], 2).is_additive
    assert not TreeEnsemble.from_trees([DEEP], 2).is_additive
    for place in range(3):
        trees = [deep_one, other]
        trees.insert(place, DEEP)
        assert not TreeEnsemble.from_trees(trees, 2).is_additive
    for seed in range(200):
        case = generate.make(seed)
        read = [len({f for f in tree["feature"] if f >= 0}) for tree in case.model.trees]
        assert to_ensemble(case.model).is_additive == (max(read, default=0) <= 1), seed


def test_the_model_is_frozen():
    """Neither attributes nor array entries can be changed, and the caller's arrays are not aliased."""
    model = small()
    with pytest.raises(AttributeError):
        model.cut = 1.0
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, name)[0] = 0


def test_summary_counts():
    """The summary states what the arrays hold."""
    summary = small(classes=["ok", "bad"]).summary()
    assert (summary.trees, summary.leaves, summary.max_depth) == (2, 6, 2)
    assert (summary.features, summary.features_used, summary.classes) == (2, 2, ["ok", "bad"])
    assert "bad above 0" in str(summary)


# ---------------------------------------------------------------- what is refused


def broken_tree(**changes):
    tree = copy.deepcopy(DEEP)
    for name, (node, value) in changes.items():
        tree[name][node] = value
    return tree


BAD_TREES = {
    "a child beyond the tree": (broken_tree(left=(0, 99)), "left"),
    "an inner node without a child": (broken_tree(left=(0, -1)), "left"),
    "a child below -1": (broken_tree(right=(0, -2)), "right"),
    "a cycle": (broken_tree(left=(4, 4)), "cycle"),
    "the root as a child": (broken_tree(left=(4, 0)), "one parent"),
    "a shared child": (broken_tree(left=(4, 1)), "one parent"),
    "both children the same": (broken_tree(left=(4, 5), right=(4, 5)), "parent|reached"),
    "a leaf with a child": (broken_tree(left=(2, 3)), "left must be -1 at a leaf"),
    "a NaN threshold": (broken_tree(threshold=(0, math.nan)), "threshold must be a number, not NaN"),
    "a NaN leaf": (broken_tree(value=(2, math.nan)), "value must be finite"),
    "an infinite leaf": (broken_tree(value=(2, math.inf)), "value must be finite"),
    "a feature out of range": (broken_tree(feature=(0, 2)), "feature must be below n_features"),
    "a negative feature": (broken_tree(feature=(0, -2)), "feature must be -1"),
    "half a feature": (broken_tree(feature=(0, 0.5)), "feature must be whole numbers"),
    "a huge feature": (broken_tree(feature=(0, 2**40)), "feature must be whole numbers"),
    "an orphan": ({name: [*column, column[2]] for name, column in DEEP.items()}, "never reached"),
    "a short column": ({**DEEP, "left": DEEP["left"][:-1]}, "left must have one entry"),
    "a missing column": ({name: DEEP[name] for name in DEEP if name != "value"}, "'value'"),
    "words": ({**DEEP, "threshold": ["x"] * 7}, "threshold must be a list of numbers"),
    "a table of thresholds": ({**DEEP, "threshold": [[0.5]] * 7}, "threshold must have one entry"),
    "ragged values": (
        {**DEEP, "value": [[1.0], [1.0, 2.0]] + [[1.0]] * 5},
        "value must be a list of numbers",
    ),
    "no nodes": ({name: [] for name in DEEP}, "one entry"),
    "a short value": ({**DEEP, "value": DEEP["value"][:-1]}, "value must have one entry"),
    "a leaf beyond the floats": (broken_tree(value=(2, 10**400)), "value must be a list of numbers"),
    "missing_left in words": ({**DEEP, "missing_left": ["left"] * 7}, "missing_left must be"),
    "not a tree": ([1, 2, 3], "tree 0 must have"),
    "leaves that overflow": (broken_tree(value=(2, 1e308)), "added in float64"),
}


@pytest.mark.parametrize("name", BAD_TREES)
def test_bad_trees_are_refused(name):
    """Each flaw of a plain tree is one clear error."""
    tree, message = BAD_TREES[name]
    with pytest.raises(InvalidModelError, match=message):
        TreeEnsemble.from_trees([tree], 2)


BAD_FIELDS = {
    "n_features 0": ({"n_features": 0}, "n_features"),
    "n_features 1.5": ({"n_features": 1.5}, "n_features"),
    "too few features": ({"n_features": 1}, "below n_features"),
    "n_features true": ({"n_features": True}, "n_features"),
    "n_features a word": ({"n_features": "two"}, "n_features"),
    "n_features none": ({"n_features": None}, "n_features"),
    "n_features beyond int32": ({"n_features": 2**31}, "n_features"),
    "base a word": ({"base": "none"}, "base must be"),
    "classes of two kinds": ({"classes": [None, 1]}, "classes must be"),
    "text and number classes": ({"classes": ["no", 1]}, "classes must be"),
    "NaN class": ({"classes": [math.nan, 1]}, "classes must be"),
    "ragged classes": ({"classes": [[1], [1, 2]]}, "classes must be"),
    "cut a word": ({"cut": "half"}, "cut must be"),
    "slack a word": ({"decision_slack": "some"}, "decision_slack"),
    "slack beyond the floats": ({"decision_slack": 10**400}, "decision_slack"),
    "names a number": ({"feature_names": 3}, "feature_names must be"),
    "accepts_missing a word": ({"accepts_missing": "yes"}, "accepts_missing must be"),
    "source a word": ({"source": "xgboost"}, "source must be"),
    "dtype": ({"dtype": "float16"}, "dtype must be"),
    "sum_dtype": ({"sum_dtype": "int"}, "sum_dtype must be"),
    "NaN base": ({"base": math.nan}, "base must be"),
    "two bases": ({"base": [0.0, 1.0]}, "same number of classes"),
    "three classes": ({"classes": [0, 1, 2]}, "classes must be 2"),
    "equal classes": ({"classes": [1, 1]}, "classes must be 2"),
    "zero_class": ({"zero_class": 2}, "zero_class"),
    "infinite cut": ({"cut": math.inf}, "cut"),
    "negative slack": ({"decision_slack": -1.0}, "decision_slack"),
    "NaN slack": ({"decision_slack": math.nan}, "decision_slack"),
    "one name": ({"feature_names": ["a"]}, "feature_names"),
    "equal names": ({"feature_names": ["a", "a"]}, "feature_names"),
    "a float32 overflow": ({"base": 1e38, "sum_dtype": "float32"}, "added in float32"),
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_bad_fields_are_refused(name):
    """Each flaw of the other fields is one clear error."""
    fields, message = BAD_FIELDS[name]
    with pytest.raises(InvalidModelError, match=message):
        TreeEnsemble.from_trees([DEEP], **{"n_features": 2, **fields})


@pytest.mark.parametrize(
    "link", ["softmax", ("softmax", 1.0), ("tanh", 1.0, 1.0), ("none", 0.0, 1.0), ("sigmoid", 1.0, math.inf), None, 3]
)
def test_bad_links_are_refused(link):
    """A link is one of three kinds and two positive numbers; nothing else."""
    with pytest.raises(InvalidModelError, match="link must be"):
        TreeEnsemble.from_trees([leaf([0.0, 1.0])], 1, base=[0.0, 0.0], link=link)


@pytest.mark.parametrize("trees", [None, 5, "trees", {0: DEEP}])
def test_trees_are_a_list(trees):
    """What is no list of trees is refused by name."""
    with pytest.raises(InvalidModelError, match="trees must be"):
        TreeEnsemble.from_trees(trees, 2)


BAD_STUMPS = {
    "a feature that int32 would wrap to 0": ({"feature": [2**32]}, "feature must be"),
    "a threshold in words": ({"threshold": ["x"]}, "threshold must be"),
    "a leaf in words": ({"left": ["x"]}, "left must be"),
    "a base too many": ({"base": [0.0, 1.0]}, "base must be"),
}


@pytest.mark.parametrize("name", BAD_STUMPS)
def test_bad_columns_of_stumps_are_refused(name):
    """Nothing is cut, wrapped or broadcast into another model."""
    fields, message = BAD_STUMPS[name]
    with pytest.raises(InvalidModelError, match=message):
        TreeEnsemble.from_stumps(
            **{"feature": [0], "threshold": [0.5], "left": [-1.0], "right": [1.0], "n_features": 1, **fields}
        )


def test_a_link_needs_several_outputs():
    """A single score is compared with its cut as it is."""
    with pytest.raises(InvalidModelError, match="single output"):
        TreeEnsemble.from_trees([leaf(1.0)], 1, link=("softmax", 1.0, 1.0))


@pytest.mark.parametrize("link", [("none", 3.0, 1.0), ("softmax", 1.0, 1.0), ("sigmoid", 1.0, 2.0)])
def test_scores_that_a_link_rounds_together_go_to_the_first_class(link):
    """The second class is larger by one last digit; where dividing or exp loses it the first class is predicted."""
    merged = 0
    rng = np.random.default_rng(0)
    for low in rng.uniform(0.1, 1.9, 200):
        high = float(np.nextafter(low, 9.0))
        model = TreeEnsemble.from_trees([leaf([low, high])], 1, base=[0.0, 0.0], link=link)
        assert TreeEnsemble.from_json(model.to_json()).link == model.link
        lost = {
            "none": low / 3.0 == high / 3.0,
            "softmax": math.exp(low - high) == 1.0,
            "sigmoid": 1 / (1 + math.exp(-2 * low)) == 1 / (1 + math.exp(-2 * high)),
        }[link[0]]
        found = int(model.predict(np.zeros((1, 1)))[0])
        assert found == (0 if lost else 1)
        merged += lost
    assert merged > 0


def test_files_without_a_link_still_load():
    """Files older than the field predict the first largest score."""
    content = json.loads(small().to_json())
    del content["link"]
    assert TreeEnsemble.from_json(json.dumps(content)).link == small().link


def test_errors_are_one_short_line():
    """Whatever a name or a file holds, an error is one line, and cut in its middle."""
    error = InvalidModelError("a\nb\u2028c " + "x" * 5000 + " Do this instead.")
    assert len(str(error).splitlines()) == 1
    assert len(str(error)) < 700
    assert str(error).endswith("Do this instead.")


def test_a_cut_needs_one_output():
    """A cut beside 0 has no meaning for the first maximum."""
    with pytest.raises(InvalidModelError, match="cut"):
        TreeEnsemble.from_trees([leaf([0.0, 1.0])], 1, base=[0.0, 0.0], cut=0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [0.5], [1.0], [1.0]), "integers"),
        (([-1], [0.5], [1.0], [1.0]), "non-negative"),
        (([0, 1], [0.5], [1.0], [1.0]), "one entry a stump|threshold"),
        (([0], [0.5], [1.0], [[1.0, 2.0]]), "one entry a stump"),
        (([0, 1], [0.5, 0.5], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]), "one entry a stump"),
        (([0], [0.5], 1.0, 1.0), "one entry a stump"),
        (([0], [math.nan], [1.0], [1.0]), "NaN"),
    ],
)
def test_bad_stumps_are_refused(arguments, message):
    """Each flaw of a stump array is one clear error."""
    with pytest.raises(InvalidModelError, match=message):
        TreeEnsemble.from_stumps(*arguments)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.0]], "shape"),
        ([0.0, 0.0], "shape"),
        (np.zeros((0, 2)), "at least one row"),
        ([[0.0, math.nan]], "row 0, column 1"),
        ([[0.0, 0.0], [math.inf, 0.0]], "row 1, column 0"),
        ([["a", "b"]], "numbers"),
        ([[None, {}]], "numbers"),
        (np.zeros((1, 2), dtype=complex), "numbers"),
    ],
)
def test_bad_rows_are_refused(rows, message):
    """Each flaw of X is one clear error."""
    with pytest.raises(InvalidInputError, match=message):
        small().predict(rows)


def test_rows_beyond_float32_are_refused():
    """A number that a float32 model cannot receive is an error, not infinity."""
    with pytest.raises(InvalidInputError, match="float32"):
        small(dtype="float32").predict([[1e39, 0.0]])


def test_missing_rows_where_accepted():
    """A NaN follows `missing_left`; an infinity is still refused."""
    tree = {**copy.deepcopy(DEEP), "missing_left": [True, False, False, False, False, False, False]}
    model = TreeEnsemble.from_trees([tree], 2, accepts_missing=True)
    assert model.decision_function([[math.nan, math.nan]])[0] == 2.0
    with pytest.raises(InvalidInputError, match="finite"):
        model.predict([[math.nan, math.inf]])


# ---------------------------------------------------------------- the file format


def test_files_read_back_as_the_same_bits(tmp_path):
    """Saving and loading keeps every bit of every field, for nasty thresholds and leaves too."""
    for seed in range(60):
        model = to_ensemble(generate.make(seed).model)
        model.save(tmp_path / "model.json")
        again = TreeEnsemble.load(tmp_path / "model.json")
        for name in (*ARRAYS, "classes"):
            one, two = getattr(model, name), getattr(again, name)
            assert one.dtype == two.dtype
            assert one.tobytes() == two.tobytes(), (seed, name)
        for name in NUMBERS:
            assert getattr(model, name) == getattr(again, name)


def test_names_labels_and_source_survive_a_file():
    """Feature names, text labels and the source come back."""
    model = small(feature_names=["a", "é"], classes=["no", "yes"], source={"library": "x", "notes": ["n"]})
    again = TreeEnsemble.from_json(model.to_json())
    assert again.feature_names == ("a", "é")
    assert again.classes.tolist() == ["no", "yes"]
    assert again.source == model.source


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '"x"', "NaN", b"\xff\xfe\x00", "[" * 100_000, "9" * 5_000, '{"format": 1}'],
    ids=lambda text: repr(text)[:12],
)
def test_what_is_not_a_model_file_is_refused(text):
    """Text that is not ours, binary, or nested without end is one clear error."""
    with pytest.raises(InvalidModelError):
        TreeEnsemble.from_json(text)


HOSTILE = [
    *(None, [], {}, "x", -1, 1e300, math.nan, math.inf, 10**30, True, "9" * 40, [[0]], [[1, 2], [3]]),
    *([v] * 10 for v in (None, "0", 1.5, 10**30, True, math.nan, -5, 2**31, {}, 0)),
]


def test_hostile_fields_are_refused_or_harmless():
    """Any field replaced by anything is one clear error, or a model that predicts, prints and saves."""
    good = json.loads(small(feature_names=["a", "b"], source={"library": "x"}).to_json())
    refused = 0
    for name in good:
        for value in HOSTILE:
            text = json.dumps({**good, name: value})
            try:
                model = TreeEnsemble.from_json(text)
            except TreeproofError:
                refused += 1
                continue
            assert np.isfinite(model.decision_function(np.zeros((1, model.n_features)))).all(), (name, value)
            assert str(model.summary())
            assert TreeEnsemble.from_json(model.to_json()).to_json() == model.to_json()
    assert refused > 300


@pytest.mark.parametrize("name", ["feature", "version", "classes", "base", "cut", "dtype", "tree_offsets"])
def test_a_file_that_lacks_a_field_is_refused(name):
    """No field has a silent default."""
    content = json.loads(small().to_json())
    del content[name]
    with pytest.raises(InvalidModelError, match=name):
        TreeEnsemble.from_json(json.dumps(content))


@pytest.mark.parametrize("source", [{"notes": 3}, {"notes": None}, {"notes": [["x"]]}])
def test_hostile_notes_are_refused(source):
    """Notes that `summary` could not print never get in."""
    content = json.loads(small().to_json())
    with pytest.raises(InvalidModelError, match="notes"):
        TreeEnsemble.from_json(json.dumps({**content, "source": source}))


def test_a_newer_version_says_so():
    """A file of another version names both versions and what to do."""
    content = json.loads(small().to_json())
    with pytest.raises(InvalidModelError, match="version must be 1. Got 2"):
        TreeEnsemble.from_json(json.dumps({**content, "version": 2}))


def test_unreadable_files_are_one_clear_error(tmp_path):
    """A path that does not exist, or is a folder, is our error."""
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(InvalidModelError, match="cannot be read"):
            TreeEnsemble.load(path)


def test_a_source_that_is_not_data_cannot_be_saved():
    """Objects in `source` are refused at saving, not pickled."""
    with pytest.raises(InvalidModelError, match="written as JSON"):
        small(source={"library": object()}).to_json()
