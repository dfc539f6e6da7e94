"""Damaged and hostile files are refused, or load exactly what they now state (issue 2, Show 5).

Every mutation of a good file must end in a model whose own file reads back the same, or in one of treeproof's
errors; never in another exception, a hang, or memory beyond a fixed limit.
"""

from __future__ import annotations

import resource
import struct
import time

import numpy as np
import pytest
from tests import import_zoo

import treeproof
from treeproof import TreeproofError
from treeproof.importers import ubj

FORMS = ("xgboost-json", "xgboost-ubj", "lightgbm", "catboost", "catboost-nested", "treeproof")
PIECES = (
    b"{", b"}", b"[", b"]", b'"', b",", b"null", b"true", b"-1", b"1e999", b"-1e999", b"NaN", b"0",
    b"99999999999999999999",     b"1" * 400, b"[" * 200, b"{" * 50, b"\x00", b"\xff",
    b"L\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"[$d#L\x00\x00\x00\x10\x00\x00\x00\x00",     b"[$Z#l\x7f\xff\xff\xff", b"l\xff\xff\xff\xff",
    b"2147483647", b"-2147483648", b"=", b"\n", b"Tree=0\n", b"end of trees\n", b" ",
)  # fmt: skip


def good(form: str, seed: int, folder) -> bytes:
    """A good file."""
    library = form.split("-")[0]
    rng = np.random.default_rng(seed)
    X, y, classes = import_zoo.table(rng, missing=False)
    if library == "treeproof":
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(3, max_depth=3, random_state=seed).fit(X, y)
        return treeproof.load(forest, check=False).to_json().encode()
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "xgboost":
        model = module.XGBClassifier(n_estimators=2, max_depth=3, booster="dart" if seed % 2 else "gbtree")
        return bytes(model.fit(X, y).get_booster().save_raw(raw_format=form.split("-")[1]))
    if library == "lightgbm":
        model = module.LGBMClassifier(n_estimators=2, num_leaves=6, verbose=-1, zero_as_missing=bool(seed % 2))
        return model.fit(X, y).booster_.model_to_string().encode()
    policy = "Depthwise" if form == "catboost-nested" else "SymmetricTree"
    quiet = {"verbose": 0, "allow_writing_files": False}
    model = module.CatBoostClassifier(iterations=2, depth=3, grow_policy=policy, **quiet).fit(X, y)
    model.save_model(str(folder / "model.json"), format="json")
    return (folder / "model.json").read_bytes()


def mutate(rng: np.random.Generator, data: bytes) -> bytes:
    """One to three damages: bits, bytes, cuts, copies, moved blocks, numbers replaced, pieces put in."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        kind = int(rng.integers(0, 8))
        at = int(rng.integers(0, max(1, len(out))))
        size = int(rng.integers(1, 40))
        if kind == 0 and out:
            out[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1 and out:
            out[at] = int(rng.integers(0, 256))
        elif kind == 2:
            del out[at : at + size]
        elif kind == 3:
            out[at:at] = out[at : at + size]
        elif kind == 4 and rng.random() < 0.3:
            del out[at:]
        elif kind == 5:
            out[at : at + int(rng.integers(0, 4))] = PIECES[int(rng.integers(0, len(PIECES)))]
        elif kind == 6:
            digits = [i for i in range(at, min(len(out), at + 200)) if 48 <= out[i] <= 57]
            if digits:
                out[digits[0]] = 48 + int(rng.integers(0, 10))
        else:
            other = int(rng.integers(0, max(1, len(out))))
            out[at : at + size] = out[other : other + size]
    return bytes(out)


def outcome(data: bytes) -> bool:
    """Load; whether it loaded. A loaded model is valid and reads back the same from its own file."""
    try:
        model = treeproof.load(data)
    except TreeproofError as error:
        if "\n" in str(error):
            raise AssertionError(f"an error of several lines: {error}") from None
        return False
    again = treeproof.TreeEnsemble.from_json(model.to_json())
    assert np.array_equal(again.threshold, model.threshold)
    assert np.array_equal(again.value, model.value)
    assert np.array_equal(again.left, model.left)
    str(model.summary())
    if model.n_features < 10_000:
        model.predict(np.zeros((1, model.n_features)))
    return True


def storm(form: str, seed: int, count: int, folder) -> tuple[int, float]:
    """Mutate a good file many times; how many loaded, and the slowest of all in seconds."""
    data = good(form, seed, folder)
    assert outcome(data)
    rng = np.random.default_rng([FORMS.index(form), seed])
    loaded, slowest = 0, 0.0
    for _ in range(count):
        start = time.perf_counter()
        loaded += outcome(mutate(rng, data))
        slowest = max(slowest, time.perf_counter() - start)
    return loaded, slowest


@pytest.fixture
def limited():
    """At most 6 GB more address space than now: a hostile length must not be believed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 6 * 2**30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("form", FORMS)
def test_damaged_files_are_refused_or_load(form, tmp_path, limited):
    """150 mutations of a file of each kind."""
    loaded, slowest = storm(form, 1, 150, tmp_path)
    assert 0 < loaded < 150
    assert slowest < 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", FORMS)
def test_a_thousand_damages_a_file(form, seed, tmp_path, limited):
    """24 files, 1,000 mutations each: 24,000 in all."""
    _, slowest = storm(form, seed, 1000, tmp_path)
    assert slowest < 10


def refused(data: bytes, word: str) -> None:
    start = time.perf_counter()
    with pytest.raises(TreeproofError, match=word):
        treeproof.load(data)
    assert time.perf_counter() - start < 10


def length(count: int) -> bytes:
    return b"L" + struct.pack(">q", count)


@pytest.mark.parametrize(
    "body",
    [
        b"[$d#" + length(2**62),
        b"[$Z#" + length(2**40),
        b"[$T#" + length(2**30),
        b"[#" + length(2**50),
        b"[$[#" + length(2**33),
        b"S" + length(2**60),
        b"S" + length(-1),
        b"[$d#" + length(-5),
        b"[" * 100_000,
        (b"{i\x01a") * 100_000,
        b"{$i#" + length(2**20),
        b"d\x00",
        b"Q",
        b"",
    ],
)
def test_hostile_ubj_is_refused(body, limited):
    """Lengths beyond the file, content-free arrays, deep nesting and unknown markers end at once."""
    with pytest.raises(treeproof.InvalidModelError):
        ubj.loads(body)
    refused(b"{L" + struct.pack(">q", 7) + b"learner" + body, "UBJSON")


def test_ubj_reads_every_kind_of_value():
    """All markers, typed and counted containers, and no-ops read as the format says."""
    text = b"SU\x03abc"
    assert ubj.loads(b"[ZTFNi\xffU\xffI\x01\x00l\x00\x01\x00\x00" + length(2) + b"Cx" + text + b"]") == [
        None, True, False, -1, 255, 256, 65536, 2, "x", "abc",
    ]  # fmt: skip
    assert ubj.loads(b"d?\x80\x00\x00") == 1.0
    assert ubj.loads(b"[$d#i\x02?\x80\x00\x00@\x00\x00\x00").tolist() == [1.0, 2.0]
    assert ubj.loads(b"[#i\x02i\x01i\x02") == [1, 2]
    assert ubj.loads(b"{i\x01a[]U\x01b{}}") == {"a": [], "b": {}}
    assert ubj.loads(b"{#i\x01i\x01aT") == {"a": True}
    assert ubj.loads(b"{$i#i\x01i\x01a\x05") == {"a": 5}


def test_hostile_json_is_refused(limited):
    """Deep nesting, huge numbers, and stated sizes without the content."""
    refused(b'{"learner":' + b"[" * 500_000, "damaged")
    refused(b'{"learner":' + b'{"a":' * 500_000, "damaged")
    refused(b'{"learner":' + b"9" * 100_000 + b"}", "damaged|lacks")
    refused(b'{"oblivious_trees":[], "features_info":{"float_features":[]}}', "columns|lacks")


def test_a_stated_number_of_classes_costs_no_memory(limited):
    """A file that states two billion classes, or ten thousand for small trees, is refused before any table is made."""
    leaf = (
        '{"left_children":[-1],"right_children":[-1],"split_indices":[0],"split_conditions":[0.5],"default_left":[0],'
        '"tree_param":{"size_leaf_vector":"1"}}'
    )
    for classes, trees in ((2_000_000_000, 1), (20_000, 20_000)):
        content = (
            '{"learner":{"objective":{"name":"multi:softprob"},"gradient_booster":{"name":"gbtree","model":{'
            f'"gbtree_model_param":{{"num_parallel_tree":"1"}},"tree_info":[{",".join(["0"] * trees)}],'
            f'"trees":[{",".join([leaf] * trees)}],"iteration_indptr":[0,{trees}]}}}},'
            f'"learner_model_param":{{"num_class":"{classes}","num_feature":"2","base_score":"0.5"}}}}}}'
        )
        refused(content.encode(), "leaf values|memory")


def test_nested_catboost_trees_cannot_overflow_the_stack(limited):
    """A chain of 300 nested splits loads as it states; one of 100,000 is refused."""

    def chain(depth: int) -> bytes:
        split = (
            '{"split":{"split_type":"FloatFeature","float_feature_index":0,"border":0.5},"right":{"value":1},"left":'
        )
        return (
            '{"features_info":{"float_features":[{"feature_index":0,"flat_feature_index":0,'
            '"nan_value_treatment":"AsIs"}]},"model_info":{"params":{"loss_function":{"type":"Logloss"}}},'
            f'"scale_and_bias":[1,[0]],"trees":[{split * depth}{{"value":0}}{"}" * depth}]}}'
        ).encode()

    assert treeproof.load(chain(300)).n_leaves == 301
    refused(chain(100_000), "damaged|deep")
