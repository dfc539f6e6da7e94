"""`treeproof data` and `treeproof reproduce`: what they print, write and refuse."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from treeproof import cli, datasets
from treeproof.reproduce import TABLES


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("TREEPROOF_DATA", raising=False)
    monkeypatch.setenv("TREEPROOF_CACHE", str(tmp_path / "cache"))


def test_list_says_where_each_set_comes_from(capsys):
    """All names, the embedded ones as such, the others to be downloaded."""
    assert cli.run(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(datasets.names())
    assert lines[0].endswith("[in the package]")
    assert lines[-1].endswith("[to be downloaded from OpenML]")


def test_show_describes_a_set(capsys):
    """Rows, classes, licence, and the error of a constant answer."""
    assert cli.run(["data", "show", "breast-cancer", "--drop-id"]) == 0
    out = capsys.readouterr().out
    for words in ("546 train, 137 test", "features:  9", "1 = malignant", "25.55%", "CC BY 4.0", "the package"):
        assert words in out


def test_unknown_names_are_one_line_and_code_2(capsys):
    """No traceback, the known names in the message."""
    assert cli.run(["data", "show", "titanic"]) == 2
    assert "name must be one of breast-cancer" in capsys.readouterr().err
    assert cli.run(["reproduce", "table-9"]) == 2
    assert "'table-9' is not a table" in capsys.readouterr().err


@pytest.mark.parametrize("raw", [False, True])
def test_export_writes_rows_that_read_back_exactly(tmp_path, capsys, raw):
    """Both files hold every row at full precision, with names and the label last."""
    arguments = ["data", "export", "diabetes", "--out", str(tmp_path / "new"), *(["--raw"] if raw else [])]
    assert cli.run(arguments) == 0
    data = datasets.load("diabetes")
    with (tmp_path / "new" / "diabetes-test.csv").open() as stream:
        header, *rows = list(csv.reader(stream))
    assert header == [*data.feature_names, "label"]
    values = np.array(rows, dtype=float)
    expected = data.scaling.to_data_units(data.X_test) if raw else data.X_test
    np.testing.assert_array_equal(values[:, :-1], expected)
    np.testing.assert_array_equal(values[:, -1], data.y_test)
    assert capsys.readouterr().out.count("diabetes-") == 2


def test_fetch_loads_what_can_be_had(capsys):
    """An embedded set is fetched without any network."""
    assert cli.run(["data", "fetch", "diabetes"]) == 0
    assert "diabetes: 614 + 154 rows from the package" in capsys.readouterr().out


def test_fetch_takes_what_is_there_and_names_what_is_missing(capsys, monkeypatch):
    """A set that cannot be had does not stop the next one; one line, code 2."""

    def fetch(number):
        raise datasets.DataUnavailableError("no network")

    monkeypatch.setattr("treeproof.datasets.openml.fetch", fetch)
    assert cli.run(["data", "fetch", "mnist", "diabetes"]) == 2
    shown = capsys.readouterr()
    assert "diabetes: 614 + 154 rows" in shown.out
    assert shown.err.count("\n") == 1
    assert "mnist.npz" in shown.err


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--datasets", "iris"], "datasets must be among breast-cancer"),
        (["--datasets", ","], "datasets must be among breast-cancer"),
        (["figure-2", "--datasets", "diabetes"], "has a row for the data sets"),
        (["--models", "."], "models must be a folder with at least one of stumps_breast_cancer_linf.json"),
        (["--models", "nowhere"], "'nowhere' does not exist"),
        (["--out", "file"], "'file' is a file"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--train-rows", "many"], "'many' is not a valid integer"),
    ],
)
def test_wrong_uses_of_reproduce_are_one_line_and_code_2(tmp_path, monkeypatch, capsys, wrong, words):
    """Nothing is computed, the line says what is allowed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert cli.run(["reproduce", "--quick", *wrong]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_reproduce_list_names_every_table(capsys):
    """--list prints the names that TABLE may be."""
    assert cli.run(["reproduce", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(TABLES)
