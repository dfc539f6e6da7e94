"""The commands end to end, as a stranger calls them: right answers, right exit codes, one line for each wrong use."""

from __future__ import annotations

import contextlib
import csv
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.processes import measured

import treeproof
from treeproof import Status, TreeEnsemble
from treeproof.cli import run

NAMES = ("income", "age", "visits")


@pytest.fixture(scope="module")
def model() -> TreeEnsemble:
    rng = np.random.default_rng(0)
    feature = rng.integers(0, 3, 25)
    step = rng.normal(size=25)
    return TreeEnsemble.from_stumps(
        feature, rng.random(25), -step, step, feature_names=NAMES, n_features=3, classes=["bad", "good"]
    )


@pytest.fixture(scope="module")
def rows(model):
    X = np.random.default_rng(1).random((60, 3))
    y = model.predict(X)
    y[:6] = np.where(y[:6] == "good", "bad", "good")
    return X, y


@pytest.fixture(scope="module")
def files(tmp_path_factory, model, rows):
    folder = tmp_path_factory.mktemp("cli")
    model.save(folder / "model.json")
    X, y = rows
    with open(folder / "rows.csv", "w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(["label", "visits", "income", "age"])
        writer.writerows([label, v, i, a] for label, (i, a, v) in zip(y, X.tolist(), strict=True))
    return folder


def call(capsys, *words) -> tuple[int, str, str]:
    code = run([str(word) for word in words])
    out = capsys.readouterr()
    return code, out.out, out.err


def certify(capsys, files, *more):
    return call(capsys, "certify", files / "model.json", files / "rows.csv", "--target", "label", "--norm", 1, *more)


def test_certify_prints_the_library_s_own_answer(capsys, files, model, rows):
    proof = treeproof.certify(model, *rows, norm=1, eps=0.1)
    code, out, err = certify(capsys, files, "--eps", 0.1, "--json")
    said = json.loads(out)
    assert (code, err) == (0, "")
    assert 0 < proof.clean_error < proof.verified_error < 1
    for name in ("clean_error", "attack_error", "verified_error"):
        assert said[name] == getattr(proof, name)
    assert said["threat"] == {"norm": 1.0, "eps": 0.1}


def test_the_table_names_the_three_errors_and_their_sentence(capsys, files, model, rows):
    proof = treeproof.certify(model, *rows, norm=1, eps=0.1)
    code, out, _ = certify(capsys, files, "--eps", 0.1)
    assert code == 0
    for name in ("clean", "attack", "verified"):
        share = getattr(proof, f"{name}_error")
        assert f"{100 * share:.1f}%" in next(line for line in out.splitlines() if line.startswith(name))
    assert "are or can be made wrong by l₁ moves of at most 0.1" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_the_results_file_round_trips(capsys, files, tmp_path, model, rows, kind):
    """Verdicts, bounds and witnesses read back bit for bit, and the witnesses flip the model."""
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    out = tmp_path / f"results.{kind}"
    assert certify(capsys, files, "--eps", 0.1, "--out", out)[0] == 0
    proof = treeproof.certify(model, *rows, norm=1, eps=0.1)
    got = read_back(out)
    assert got["status"] == [Status(code).name for code in proof.status]
    assert got["label"] == rows[1].tolist()
    assert np.array_equal(np.array(got["margin_lower"], float), proof.lower)
    assert np.array_equal(np.array(got["margin_upper"], float), proof.upper)
    flipped = 0
    for row, changed in enumerate(got["changes"]):
        assert (changed is not None) == (got["status"][row] == "BROKEN")
        if changed:
            x = rows[0][row].copy()
            for name, (before, after) in changed.items():
                assert x[NAMES.index(name)] == before
                x[NAMES.index(name)] = after
            assert model.predict(x[None])[0] != proof.predicted[row]
            assert np.abs(x - rows[0][row]).sum() <= 0.1 * (1 + 1e-12)
            assert got["distance"][row] == pytest.approx(np.abs(x - rows[0][row]).sum())
            flipped += 1
    assert flipped > 5


def read_back(path) -> dict[str, list]:
    if path.suffix == ".json":
        return json.loads(path.read_text())["rows"]
    if path.suffix == ".parquet":
        from pyarrow import parquet

        table = parquet.read_table(path)
        assert json.loads(table.schema.metadata[b"treeproof"])["verified_error"] > 0
        columns = table.to_pydict()
    else:
        with open(path, newline="") as text:
            lines = list(csv.DictReader(text))
        columns = {name: [line[name] for line in lines] for name in lines[0]}
        for name in ("margin_lower", "margin_upper", "distance"):
            columns[name] = [float(text) for text in columns[name]]
    return {**columns, "changes": [json.loads(text) if text else None for text in columns["changes"]]}


def test_the_gate_decides_the_exit_code(capsys, files):
    code, out, _ = certify(capsys, files, "--eps", 0.1, "--fail-above", "1%")
    assert code == 1
    assert "gate failed" in out
    code, out, _ = certify(capsys, files, "--eps", 0.1, "--fail-above", 1.0)
    assert code == 0
    assert "gate passed" in out
    code, out, _ = certify(capsys, files, "--eps", 0.1, "--fail-above", "1%", "--json")
    assert code == 1
    assert json.loads(out)["passed"] is False


def test_a_gate_at_exactly_the_error_passes(capsys, files, model, rows):
    share = treeproof.certify(model, *rows, norm=1, eps=0.1).verified_error
    assert certify(capsys, files, "--eps", 0.1, "--fail-above", repr(share))[0] == 0


def test_a_threat_file_counts(capsys, files, tmp_path, model, rows):
    threat = tmp_path / "threat.toml"
    threat.write_text('norm = 2\neps = 0.2\n[features.age]\nfrozen = true\n[features."*s"]\ndirection = 1\n')
    code, out, _ = call(
        capsys, "certify", files / "model.json", files / "rows.csv", "--target", "label", "--threat", threat, "--json"
    )
    want = treeproof.certify(model, *rows, treeproof.Threat(norm=2, eps=0.2, frozen=["age"], direction={"visits": 1}))
    assert code == 0
    assert json.loads(out)["verified_error"] == want.verified_error
    assert json.loads(out)["threat"]["frozen"] == {"age": True}


def test_radius_prints_and_writes_radii(capsys, files, tmp_path, model, rows):
    out = tmp_path / "radii.csv"
    code, said, _ = call(
        capsys,
        "radius",
        files / "model.json",
        files / "rows.csv",
        "--target",
        "label",
        "--norm",
        2,
        "--out",
        out,
        "--json",
    )
    want = treeproof.radius(model, *rows, norm=2)
    assert code == 0
    assert json.loads(said)["median"] == want.median
    with open(out, newline="") as text:
        lines = list(csv.DictReader(text))
    assert np.array_equal([float(line["radius_lower"]) for line in lines], want.lower)
    assert [line["exact"] for line in lines] == [str(bool(flag)) for flag in want.exact]


@pytest.mark.parametrize("nearest", [False, True])
def test_attack_writes_rows_that_the_model_gets_wrong(capsys, files, tmp_path, model, rows, nearest):
    """Every written row is predicted otherwise, and is as far from its origin as it says."""
    out = tmp_path / "rows.csv"
    words = ["attack", files / "model.json", files / "rows.csv", "--target", "label", "--norm", 1, "--eps", 0.1]
    code, said, _ = call(capsys, *words, "--out", out, "--json", *(["--nearest"] if nearest else []))
    assert code == 0
    with open(out, newline="") as text:
        lines = list(csv.DictReader(text))
    proof = treeproof.certify(model, *rows, norm=1, eps=0.1)
    assert len(lines) == json.loads(said)["found"] == np.sum((proof.status == Status.BROKEN) & proof.correct) > 0
    radii = treeproof.radius(model, *rows, norm=1)
    for line in lines:
        x = np.array([float(line[name]) for name in NAMES])
        origin = int(line["row"])
        assert model.predict(x[None])[0] == line["becomes"] != line["predicted"] == rows[1][origin]
        assert np.abs(x - rows[0][origin]).sum() == pytest.approx(float(line["distance"]), rel=1e-12)
        assert float(line["distance"]) <= 0.1 * (1 + 1e-12)
        if nearest:
            assert float(line["distance"]) == pytest.approx(radii.upper[origin], rel=1e-12)


def test_compare_counts_rows_gained_and_lost(capsys, files, tmp_path, model, rows):
    from dataclasses import replace

    other = tmp_path / "other.json"
    replace(model, base=model.base + 1.0).save(other)
    code, out, _ = call(
        capsys,
        "compare",
        files / "model.json",
        other,
        files / "rows.csv",
        "--target",
        "label",
        "--norm",
        1,
        "--eps",
        0.1,
        "--json",
    )
    said = json.loads(out)
    robust = [
        treeproof.certify(one, *rows, norm=1, eps=0.1).status == Status.ROBUST
        for one in (model, replace(model, base=model.base + 1.0))
    ]
    assert code == 0
    assert said["gained"] == np.sum(robust[1] & ~robust[0])
    assert said["lost"] == np.sum(robust[0] & ~robust[1])
    assert said["gained"] + said["lost"] > 0


def test_inspect_of_a_file_that_states_two_billion_features(capsys, tmp_path):
    """What a file merely states costs no memory: only the features that a split reads are counted."""
    stump = {"feature": [2**31 - 2, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1]}
    model = treeproof.TreeEnsemble.from_trees([{**stump, "value": [0, -1, 1]}], n_features=2**31 - 1)
    model.save(tmp_path / "huge.json")
    code, out, _ = call(capsys, "inspect", tmp_path / "huge.json", "--features")
    assert code == 0
    assert "1 splits  2147483646" in out


def test_inspect_and_convert_keep_the_model(capsys, files, tmp_path, model, rows):
    code, out, _ = call(capsys, "inspect", files / "model.json", "--features")
    assert code == 0
    assert "additive  yes" in out
    assert "splits  income" in out
    copy = tmp_path / "copy.json"
    assert call(capsys, "convert", files / "model.json", copy)[0] == 0
    assert np.array_equal(TreeEnsemble.load(copy).decision_function(rows[0]), model.decision_function(rows[0]))
    code, _, err = call(capsys, "convert", files / "model.json", copy)
    assert code == 2
    assert "--force" in err


def test_train_writes_a_model_that_certify_reads(capsys, files, tmp_path):
    out = tmp_path / "trained.json"
    words = ("train", "additive", files / "rows.csv", "--target", "label", "--norm", 1, "--eps", 0.05)
    code, said, _ = call(capsys, *words, "--out", out, "--set", "max_bins=8", "--json")
    assert code == 0
    content = json.loads(said)
    assert content["rows"] + content["held_out_rows"] == 60
    assert TreeEnsemble.load(out).feature_names == ("visits", "income", "age")
    code, said, _ = call(
        capsys, "certify", out, files / "rows.csv", "--target", "label", "--norm", 1, "--eps", 0.05, "--json"
    )
    assert code == 0
    assert json.loads(said)["verified_error"] < 0.6


WRONG = {
    "a missing model": (["no.json", "{rows}", "--norm", "1", "--eps", "1"], "no such file"),
    "a missing table": (["{model}", "no.csv", "--norm", "1", "--eps", "1"], "no such file"),
    "a folder for a model": (["{folder}", "{rows}", "--norm", "1", "--eps", "1"], "Got a folder"),
    "a table for a model": (["{rows}", "{rows}", "--norm", "1", "--eps", "1"], "rows.csv"),
    "an unknown target": (["{model}", "{rows}", "--target", "y", "--norm", "1", "--eps", "1"], "Got 'y'"),
    "no norm": (["{model}", "{rows}", "--eps", "1"], "Give --norm 1"),
    "no eps": (["{model}", "{rows}", "--norm", "1"], "Give --eps"),
    "eps abc": (["{model}", "{rows}", "--norm", "1", "--eps", "abc"], "not a number of at least 0"),
    "a negative eps": (["{model}", "{rows}", "--norm", "1", "--eps", "-1"], "not a number of at least 0"),
    "a nameless norm": (["{model}", "{rows}", "--norm", "x", "--eps", "1"], "not a norm"),
    "an unknown method": (["{model}", "{rows}", "--norm", "1", "--eps", "1", "--method", "guess"], "guess"),
    "an unwritable output": (
        ["{model}", "{rows}", "--norm", "1", "--eps", "1", "--out", "/no/such/place/r.csv"],
        "must exist",
    ),
    "a strange output": (["{model}", "{rows}", "--norm", "1", "--eps", "1", "--out", "r.xls"], ".csv, .json"),
    "a strange report": (["{model}", "{rows}", "--norm", "1", "--eps", "1", "--report", "r.pdf"], ".html"),
    "a gate of 200%": (["{model}", "{rows}", "--norm", "1", "--eps", "1", "--fail-above", "200%"], "share"),
    "an unknown option": (["{model}", "{rows}", "--nrom", "1"], "--nrom"),
    "a missing argument": (["{model}"], "DATA"),
    "labels without a target": (["{model}", "{rows}", "--norm", "1", "--eps", "1", "--label-map", "a=bad"], "--target"),
    "an infinite budget": (["{model}", "{rows}", "--norm", "1", "--eps", "inf"], "finite budget"),
    "a negative seed": (["{model}", "{rows}", "--norm", "1", "--eps", "1", "--sample", "2", "--seed", "-1"], "--seed"),
    "an output that is the input": (
        ["{model}", "{rows}", "--norm", "1", "--eps", "1", "--out", "{rows}"],
        "one of the files that are read",
    ),
    "a threat file that is absent": (["{model}", "{rows}", "--threat", "no.toml"], "cannot be read"),
    "an image of the wrong size": (
        ["{model}", "{rows}", "--norm", "1", "--eps", "1", "--report", "{folder}/r.html", "--image-shape", "2x2"],
        "pixels",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_every_wrong_use_gives_one_line_and_exit_2(capsys, files, name):
    words, message = WRONG[name]
    places = {"model": files / "model.json", "rows": files / "rows.csv", "folder": files}
    code, out, err = call(capsys, "certify", *[word.format(**places) for word in words])
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert "Traceback" not in err


def test_an_unknown_command_is_met_with_the_nearest(capsys):
    code, _, err = call(capsys, "certfy")
    assert code == 2
    assert "Did you mean 'certify'?" in err


def test_a_fault_of_treeproof_itself_is_one_line_too(capsys, files, monkeypatch):
    monkeypatch.setattr("treeproof.verify.certify", lambda *a, **k: 1 / 0)
    monkeypatch.delenv("TREEPROOF_TRACEBACK", raising=False)
    code, _, err = certify(capsys, files, "--eps", 0.1)
    assert code == 3
    assert "ZeroDivisionError" in err
    assert err.count("\n") == 1


def test_ctrl_c_is_not_a_traceback(capsys, files, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("treeproof.verify.certify", stop)
    code, _, err = certify(capsys, files, "--eps", 0.1)
    assert (code, err.strip()) == (130, "error: stopped.")


def test_help_is_quick_and_imports_nothing_heavy():
    """`treeproof --help` in under half a second; no numpy, numba, scipy, scikit-learn or rich."""
    script = (
        "import sys\nfrom treeproof.cli import run\nrun(['--help'])\n"
        "heavy = [m for m in ('numpy', 'numba', 'scipy', 'sklearn', 'rich') if m in sys.modules]\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done, seconds = measured([sys.executable, "-c", script])
    assert "certify" in done.stdout
    assert seconds < 0.5


def test_every_command_explains_itself(capsys):
    from treeproof.cli import COMMANDS

    for name in COMMANDS:
        code, out, _ = call(capsys, name, "--help")
        assert code == 0
        assert f"treeproof {name}" in out


def test_nothing_asked_shows_the_help(capsys):
    code, out, err = call(capsys)
    assert (code, out) == (2, "")
    assert "certify" in err
    assert err.count("\n") > 10


def test_a_number_is_no_target(capsys, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "\n".join(f"{i % 7},{i / 9}" for i in range(300)))
    words = ("train", "additive", path, "--target", "b", "--norm", 1, "--eps", 0.1, "--out", tmp_path / "m.json")
    code, _, err = call(capsys, *words)
    assert code == 2
    assert "300 different labels" in err


def test_missing_values_are_kept_only_when_asked_and_are_told(capsys, files, tmp_path, model):
    """A missing value is an input error until --allow-missing; then the answer says how many rows have one."""
    from dataclasses import replace

    replace(model, accepts_missing=True).save(tmp_path / "takes.json")
    rows = tmp_path / "rows.csv"
    rows.write_text("income,age,visits\n0.1,0.2,0.3\n0.1,,0.3\n")
    words = ("certify", tmp_path / "takes.json", rows, "--norm", 1, "--eps", 0.1)
    code, _, err = call(capsys, *words)
    assert code == 2
    assert "'age', line 3" in err
    assert "--allow-missing" in err
    code, out, _ = call(capsys, *words, "--allow-missing")
    assert code == 0
    assert "2 rows, 1 with missing values" in out
    code, out, _ = call(capsys, *words, "--allow-missing", "--json")
    assert json.loads(out)["rows_with_missing_values"] == 1


def test_time_limits_and_seconds_leave_compiling_out():
    """The clock of limits and results stands still while numba compiles."""
    from treeproof import _clock

    compiling, before = _clock.compiling, _clock.clock()
    heard = []
    _clock.announce_compiling(lambda: heard.append(1))
    for _ in range(2):
        compiling.start()
        compiling.start()  # a function that the first calls
        time.sleep(0.05)
        compiling.end()
        compiling.end()
    assert _clock.clock() - before < 0.05
    assert heard == [1]


def test_training_follows_its_rounds(capsys, files, tmp_path, monkeypatch):
    """The bar of `train` hears every round of each kind, and the last is the whole."""
    from treeproof.cli import console

    @contextlib.contextmanager
    def listen(label, total, quiet=False):
        yield lambda done, total: heard.append((done, total))

    monkeypatch.setattr(console, "watched", lambda: True)
    monkeypatch.setattr(console, "progress", listen)
    for kind, rounds in (("stumps", "n_estimators=3"), ("trees", "n_estimators=3"), ("additive", "max_epochs=3")):
        heard: list = []
        words = ("train", kind, files / "rows.csv", "--target", "label", "--norm", 1, "--eps", 0.01, "--set", rounds)
        extra = ("--set", "epochs=3") if kind == "additive" else ()
        assert call(capsys, *words, *extra, "--out", tmp_path / "m.json")[0] == 0
        assert heard == [(1, 3), (2, 3), (3, 3)], kind


def test_python_dash_m_runs_the_command():
    done = subprocess.run([sys.executable, "-m", "treeproof", "--version"], capture_output=True, text=True, timeout=30)
    assert done.stdout == f"treeproof {treeproof.__version__}\n"
