"""A model trained elsewhere: an XGBoost file and a CSV give the answer that the library itself confirms."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.processes import measured

from treeproof import datasets
from treeproof.cli import run

xgboost = pytest.importorskip("xgboost", reason="the model is XGBoost's")


@pytest.fixture(scope="module", params=[(1, 40), (3, 10)], ids=["stumps", "trees"])
def trained(tmp_path_factory, request):
    """Boosted stumps, and trees, on Spambase in raw units; class 1 is spam."""
    depth, rounds = request.param
    folder = tmp_path_factory.mktemp("xgboost")
    data = datasets.load("spambase")
    train, test = (data.scaling.to_data_units(X) for X in (data.X_train[:1500], data.X_test[:150]))
    matrix = xgboost.DMatrix(train, data.y_train[:1500], feature_names=list(data.feature_names))
    settings = {"objective": "binary:logistic", "max_depth": depth, "nthread": 1, "seed": 0}
    booster = xgboost.train(settings, matrix, rounds)
    booster.save_model(folder / "model.json")
    with open(folder / "rows.csv", "w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(["kind", *reversed(data.feature_names)])
        words = np.array(["ham", "spam"])[data.y_test[:150]]
        writer.writerows([word, *reversed(row)] for word, row in zip(words, test.tolist(), strict=True))
    return folder, booster, test, data.y_test[:150], list(data.feature_names)


def command(folder, *more):
    words = ["certify", folder / "model.json", folder / "rows.csv", "--target", "kind", "--norm", 1, "--eps", 0.1]
    return [str(word) for word in (*words, "--label-map", "ham=0,spam=1", *more)]


def test_the_library_confirms_errors_and_witnesses(trained, tmp_path, capsys):
    """The clean error is the library's own; each witness flips the library's prediction within the budget."""
    folder, booster, X, y, names = trained
    out = tmp_path / "results.json"
    assert run(command(folder, "--out", str(out), "--json")) == 0
    said = json.loads(capsys.readouterr().out)

    def predict(rows):
        return (booster.predict(xgboost.DMatrix(rows, feature_names=names)) > 0.5).astype(int)

    own = predict(X)
    assert said["clean_error"] == np.mean(own != y)
    assert said["counts"]["UNKNOWN"] <= 3
    content = json.loads(out.read_text())["rows"]
    assert content["predicted"] == own.tolist()
    flips = 0
    for row, changed in enumerate(content["changes"]):
        if not changed:
            continue
        moved = X[row].astype(np.float32).copy()
        for name, (_, after) in changed.items():
            moved[names.index(name)] = after
        distance = np.abs(moved.astype(float) - X[row].astype(np.float32).astype(float)).sum()
        assert distance <= 0.1 * (1 + 1e-12)
        assert predict(moved[None])[0] != own[row]
        flips += 1
    assert flips == said["counts"]["BROKEN"] - np.sum(own != y) > 10


def test_a_label_that_the_model_does_not_know_is_refused(trained, capsys):
    folder = trained[0]
    words = command(folder)
    words[words.index("ham=0,spam=1")] = "ham=0"
    assert run(words) == 2
    assert "Got 'spam'" in capsys.readouterr().err


def test_a_small_job_is_quick_when_warm(trained):
    """150 rows on a small model, once the loops are compiled: the whole process takes less than 3 s.

    Measured in the process's own CPU time, so that a busy machine does not count.
    """
    _, seconds = measured([sys.executable, "-m", "treeproof", *command(trained[0], "--quiet")])
    assert seconds < 3


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_ctrl_c_stops_a_long_job_without_a_traceback(trained, tmp_path):
    """SIGINT while rows are being proved: exit code 130, one line or the rows so far, nothing of Python's insides."""
    folder, _, X, _, names = trained
    rows = tmp_path / "many.csv"
    with open(rows, "w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(names)
        for _ in range(400):
            writer.writerows(X.tolist())
    words = [sys.executable, "-m", "treeproof", "certify", folder / "model.json", rows, "--norm", "1", "--eps", "0.1"]
    work = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)
    work.send_signal(signal.SIGINT)
    out, err = work.communicate(timeout=60)
    told = "verified error" in out and "interrupted" not in out  # the whole answer was out: Python was on its way out
    if work.returncode == 0 or (work.returncode == -signal.SIGINT and told):
        pytest.skip("the machine was too quick: the job was done before the signal")
    assert work.returncode == 130, (out, err)
    assert "Traceback" not in err
