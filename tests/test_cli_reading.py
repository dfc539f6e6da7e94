"""Tables, labels and threat files of the command line: what is read, and the one line for each wrong file."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from treeproof import InvalidInputError, InvalidThreatError, TreeEnsemble
from treeproof.cli import reading
from treeproof.cli.labels import match_labels, own_labels, read_label_map
from treeproof.cli.reading import rows_for_model, rows_for_training
from treeproof.cli.threatfile import read_threat


@pytest.fixture
def model() -> TreeEnsemble:
    return TreeEnsemble.from_stumps(
        [0, 1], [0.5, 2.0], [-1.0, -1.0], [1.5, 1.0], feature_names=("income", "age"), classes=[0, 1]
    )


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "rows.csv") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_columns_are_matched_by_name_whatever_their_order(model, write):
    path = write("age,label,id,income\n30,1,a,0.25\n40,0,b,1e-3\n")
    rows = rows_for_model(path, model, target="label")
    assert rows.X.tolist() == [[0.25, 30.0], [1e-3, 40.0]]
    assert rows.y.tolist() == [1, 0]
    assert rows.ignored == ["id"]


def test_floats_are_read_to_the_last_bit(model, write):
    numbers = np.random.default_rng(0).normal(size=(50, 2)) * 10.0 ** np.arange(-25, 25)[:, None]
    text = "income,age\n" + "\n".join(f"{a!r},{b!r}" for a, b in numbers.tolist()) + "\n"
    assert np.array_equal(rows_for_model(write(text), model).X, numbers)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_delimiters_blank_lines_and_quotes(model, write, mark):
    text = f'"income"{mark}age\n\n" 1.5"{mark}2\n\n3{mark}4\n'
    assert rows_for_model(write(text), model).X.tolist() == [[1.5, 2.0], [3.0, 4.0]]


def test_a_bom_and_gzip_are_understood(model, tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress("\ufeffincome,age\n1,2\n".encode()))
    assert rows_for_model(str(path), model).X.tolist() == [[1.0, 2.0]]


def test_blocks_join_to_the_whole_file(model, write, monkeypatch):
    """A file larger than a block is read completely, and its errors name the right line."""
    monkeypatch.setattr(reading, "BLOCK", 7)
    lines = [f"{i},{i + 0.5}" for i in range(50)]
    rows = rows_for_model(write("income,age\n" + "\n".join(lines)), model)
    assert rows.X[:, 0].tolist() == list(range(50))
    lines[40] = "x,1"
    with pytest.raises(InvalidInputError, match="'income' must hold numbers. Got 'x' in line 42"):
        rows_for_model(write("income,age\n" + "\n".join(lines)), model)


def test_without_names_columns_go_by_position(write):
    bare = TreeEnsemble.from_stumps([0, 1], [0.5, 2.0], [-1.0, -1.0], [1.5, 1.0])
    rows = rows_for_model(write("a,b,y\n1,2,0\n"), bare, target="y")
    assert rows.X.tolist() == [[1.0, 2.0]]
    assert rows.names == ("a", "b")
    rows = rows_for_model(write("1,2,0\n3,4,1\n"), bare, target="-1", header=False)
    assert rows.X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert rows.y.tolist() == [0, 1]


def named(*names: str) -> TreeEnsemble:
    cuts = list(range(len(names)))
    return TreeEnsemble.from_stumps(cuts, [0.5] * len(cuts), [-1.0] * len(cuts), [1.0] * len(cuts), feature_names=names)


def test_positions_are_never_guessed_where_names_differ(write):
    """A model whose names end in numbers is still matched by name: a missing x2 is not replaced by another column."""
    path = write("x1,x3,amount,y\n1,3,9,0\n")
    with pytest.raises(InvalidInputError, match="Got no column 'x2'"):
        rows_for_model(path, named("x1", "x2", "x3"), target="y")
    with pytest.raises(InvalidInputError, match="Got no column 'x5'"):
        rows_for_model(path, named("x5", "x7", "x9"), target="y")
    for names in (("f0", "f1", "f2"), ("1", "2", "3")):
        assert rows_for_model(path, named(*names), target="y").X.tolist() == [[1.0, 3.0, 9.0]]
    numbered = write("0,x,1,2\n1,0,2,3\n".replace("x", "y"))
    assert rows_for_model(numbered, named("age", "income", "visits"), target="y").X.tolist() == [[1.0, 2.0, 3.0]]


def test_lightgbm_s_underscores_are_the_table_s_spaces(write):
    path = write("late payments,debt ratio\n1,2\n")
    assert rows_for_model(path, named("debt_ratio", "late_payments")).X.tolist() == [[2.0, 1.0]]
    with pytest.raises(InvalidInputError, match="Got no column 'debt_ratio'"):
        rows_for_model(write("debt ratio,debt\tratio\n1,2\n"), named("debt_ratio"))


def test_a_column_of_row_numbers_is_recognised(write):
    bare = TreeEnsemble.from_stumps([0, 1], [0.5, 2.0], [-1.0, -1.0], [1.5, 1.0])
    with pytest.raises(InvalidInputError, match="index=False"):
        rows_for_model(write(",a,b,y\n0,1,2,0\n"), bare, target="y")


def test_missing_values_only_where_the_model_takes_them(model, write):
    from dataclasses import replace

    path = write("income,age\n1,2\n,NA\n")
    with pytest.raises(InvalidInputError, match=r"does not take missing values.*'income', line 3"):
        rows_for_model(path, model)
    takes = replace(model, accepts_missing=True)
    with pytest.raises(InvalidInputError, match=r"'income', line 3.*--allow-missing"):
        rows_for_model(path, takes)
    rows = rows_for_model(path, takes, allow_missing=True)
    assert np.isnan(rows.X[1]).all()
    with pytest.raises(InvalidInputError, match="does not take missing values"):
        rows_for_model(path, model, allow_missing=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("income\n1\n", "Got no column 'age'; the file has income"),
        ("income,age\n1,abc\n", "column 'age' must hold numbers. Got 'abc' in line 2"),
        ("income,age\n1,2\n1;5,3\n", "Got '1;5' in line 3"),
        ('income,age\n1,"2,5"\n', "Numbers are written with a point"),
        ("income,age\n1,inf\n", "must hold finite numbers. Got 'inf' in line 2"),
        ("income,age\n1,2\n1\n", "line 3 must have 2 cells. Got 1"),
        ("income,age\n", "at least one row"),
        ("income,age\n1_000,2\n", "Got '1_000' in line 2"),
        ('income,"age\nin years"\n1,2\n', "Got no column 'age'"),
        ('"income",age\n"1\n",2\n3,x\n', "Got 'x' in line 4"),
        ("", "first line must name the columns"),
        ("1,2\n3,4\n", "Give --no-header"),
        ("income,age,age\n1,2,3\n", "Got 'age' twice"),
        ('income,age\n"1,2\n', "must be CSV text"),
    ],
)
def test_each_wrong_table_gets_its_own_line(model, write, text, message):
    with pytest.raises(InvalidInputError) as caught:
        rows_for_model(write(text), model)
    assert message in str(caught.value)
    assert "rows.csv" in str(caught.value)


def test_wrong_files_are_named(model, tmp_path):
    binary = tmp_path / "rows.csv"
    binary.write_bytes(b"\xff\xfe\x00\x01" * 10)
    for path, message in ((tmp_path / "no.csv", "no such file"), (tmp_path, "a folder"), (binary, "UTF-8")):
        with pytest.raises(InvalidInputError, match=message):
            rows_for_model(str(path), model)


def test_labels_agree_as_text_or_as_number():
    classes = np.array([0, 1])
    assert match_labels(np.array(["1.0", "0", "1"]), classes, None, "y").tolist() == [1, 0, 1]
    assert match_labels(np.array(["yes", "no"]), classes, {"yes": "1", "no": "0"}, "y").tolist() == [1, 0]
    assert match_labels(np.array(["4", "2"]), classes, {"4.0": "1", "2": "0"}, "y").tolist() == [1, 0]
    words = np.array(["ham", "spam"])
    assert match_labels(np.array(["spam"]), words, None, "y").tolist() == ["spam"]


def test_an_unknown_class_is_refused_with_the_way_out():
    with pytest.raises(InvalidInputError, match=r"model's classes, 0, 1. Got 'no', 'yes'.*--label-map no=0,yes=1"):
        match_labels(np.array(["yes", "no", "1"]), np.array([0, 1]), None, "rows.csv: column 'y'")
    with pytest.raises(InvalidInputError, match=r"Got 'b'.*--label-map a=1,b=0"):
        match_labels(np.array(["a", "b"]), np.array([0, 1]), {"a": "1"}, "y")
    with pytest.raises(InvalidInputError, match="must lead to the model's classes, 0, 1. Got a=2"):
        match_labels(np.array(["1"]), np.array([0, 1]), {"a": "2"}, "y")
    with pytest.raises(InvalidInputError, match="Got 'nan'"):
        match_labels(np.array(["nan"]), np.array([0, 1]), None, "y")
    with pytest.raises(InvalidInputError, match="yes=1,no=0"):
        read_label_map("yes")
    with pytest.raises(InvalidInputError, match="one meaning"):
        read_label_map("yes=1,yes=0")


def test_labels_to_train_on():
    assert own_labels(np.array(["2", "4.0"]), None).tolist() == [2, 4]
    assert own_labels(np.array(["2", "4"]), {"2": "good", "4": "bad"}).tolist() == ["good", "bad"]


def test_training_takes_every_column_but_the_target(write):
    rows = rows_for_training(write("a,y,b\n1,cat,2\n3,dog,4\n"), target="y")
    assert rows.names == ("a", "b")
    assert rows.y.tolist() == ["cat", "dog"]


def test_samples_are_drawn_once_for_a_seed(model, write):
    path = write("income,age\n" + "\n".join(f"{i},1" for i in range(100)))
    first = rows_for_model(path, model, sample=10, seed=3)
    assert first.numbers.tolist() == rows_for_model(path, model, sample=10, seed=3).numbers.tolist()
    assert first.X[:, 0].tolist() == first.numbers.tolist()
    assert len(rows_for_model(path, model, limit=5)) == 5


def test_parquet_and_npz_read_as_csv_does(model, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"age": [2, 4], "y": ["0", "1"], "income": [1.5, 3.0]}), path)
    rows = rows_for_model(str(path), model, target="y")
    assert rows.X.tolist() == [[1.5, 2.0], [3.0, 4.0]]
    assert rows.y.tolist() == [0, 1]
    np.savez(tmp_path / "rows.npz", X=rows.X, y=rows.y)
    again = rows_for_model(str(tmp_path / "rows.npz"), model, target="y")
    assert np.array_equal(again.X, rows.X)
    assert np.array_equal(again.y, rows.y)


def test_a_data_set_is_a_table(write):
    model = TreeEnsemble.from_stumps([7], [0.5], [-1.0], [1.0], n_features=8)
    rows = rows_for_model("dataset:diabetes", model, target="y")
    assert rows.X.shape == (154, 8)
    assert set(rows.y.tolist()) == {0, 1}


# ---------------------------------------------------------------------- threat files


NAMES = ("word_free", "word_money", "income", "age")


def resolved(write, text: str, **over):
    model = TreeEnsemble.from_stumps([0], [0.5], [-1.0], [1.0], n_features=4, feature_names=NAMES)
    return read_threat(write(text, "threat.toml"), NAMES, 4, **over).resolve(model)


def test_a_threat_file_names_features_and_patterns(write):
    threat = resolved(
        write,
        'norm = 1\neps = 2\n[features."*"]\nscale = 2\n[features."word_*"]\ndirection = 1\n'
        "[features.income]\nscale = 1000\nlower = 0\n[features.age]\nfrozen = true\n",
    )
    assert threat.scale.tolist() == [2, 2, 1000, 2]
    assert threat.up.tolist() == [True, True, True, False]
    assert threat.down.tolist() == [False, False, True, False]
    assert threat.lower.tolist()[2] == 0
    assert threat.eps == 2


def test_a_bom_of_a_threat_file_is_understood(write):
    assert resolved(write, "\ufeffnorm = 1\neps = 2\n").eps == 2


def test_the_command_line_overrules_the_file(write):
    threat = resolved(write, "norm = 1\neps = 2\n", norm=np.inf, eps=0.5)
    assert (threat.norm, threat.eps) == (np.inf, 0.5)


def test_a_threat_written_by_to_dict_reads_back(write):
    text = 'norm = 2\neps = 1\nfrozen = ["age", 2]\nscale = 3\n[direction]\nword_free = -1\n'
    threat = resolved(write, text)
    assert threat.up.tolist() == [False, True, False, False]
    assert threat.down.tolist() == [True, True, False, False]
    assert threat.scale.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eps = 1\n", "must have a norm"),
        ("norm = 1\nepsilon = 1\n", "epsilon"),
        ("norm = 'big'\n", "norm must be"),
        ("norm = 1\n[features.salary]\nscale = 1\n", "Got 'salary'"),
        ("norm = 1\n[features.age]\nspeed = 1\n", "Got 'speed'"),
        ("norm = 1\n[features.age]\nfrozen = 'no'\n", "true or false"),
        ("norm = 1\n[features.age]\nscale = true\n", "Got True"),
        ("norm = 1\n[features.age]\ndirection = 3\n", "direction of feature 3 (age) must be -1, 0 or +1"),
        ("norm = 1\n[features.age]\nlower = 3\nupper = 2\n", "upper 2 for feature 3 (age)"),
        ("norm = 1\n[features]\nage = 3\n", "must be a table"),
        ("norm = \n", "must be TOML"),
    ],
)
def test_each_wrong_threat_file_gets_its_own_line(write, text, message):
    with pytest.raises(InvalidThreatError) as caught:
        resolved(write, text)
    assert message in str(caught.value)


def test_a_threat_file_that_is_not_there():
    with pytest.raises(InvalidThreatError, match="cannot be read"):
        read_threat("no/such/threat.toml", NAMES, 4)
