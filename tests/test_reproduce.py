"""`treeproof reproduce`: cells survive interruption, reports are complete, the paper's figures are in."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import treeproof
import treeproof.datasets
from treeproof import reproduce
from treeproof._errors import InvalidInputError, MethodError
from treeproof.reproduce import measure, paper, report, runner, trainers, workshop
from treeproof.reproduce.settings import FULL, QUICK, Settings
from treeproof.reproduce.store import CellStore, fingerprint, write_atomically
from treeproof.reproduce.tasks import (
    NUMBER,
    PERCENT,
    SECONDS,
    TEXT,
    TIMES,
    Quantity,
    Row,
    Table,
    Task,
    number,
)

PLACES = [
    os.environ.get("TREEPROOF_SHARED"),
    *(up / "shared" for up in Path(__file__).resolve().parents[2:4]),
]
SHARED = next((Path(place) for place in PLACES if place and Path(place).is_dir()), Path("nowhere"))
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the authors' models and the image data")

COUNT = 6


def fake_table(log: Path, pause: float = 0.0, stop_at: int | None = None, fail_at: int | None = None) -> Table:
    """A table of six cells with seeded numbers; every computation is noted in a file."""

    def task(index: int) -> Task:
        def run(shop):
            if index == stop_at:
                raise KeyboardInterrupt
            if index == fail_at:
                raise MethodError("this method cannot do it")
            time.sleep(pause)
            with log.open("a") as stream:
                stream.write(f"{index}\n")
            value = float(np.random.default_rng(index).random() * 100)
            return {"verified": value, "seconds": time.perf_counter(), "curve": [value, value / 3]}

        return Task(f"fake/{index}", {"index": index}, run, "half the rows" if index == 1 else "")

    tasks = [task(index) for index in range(COUNT)]
    rows = tuple(
        Row(
            {"data set": "diabetes", "row": str(index)},
            (
                number(one, "verified", "verified", PERCENT, 50.0),
                number(one, "seconds", "time", SECONDS, 2.0),
            ),
            "diabetes" if index else "mnist-1-5",
        )
        for index, one in enumerate(tasks)
    )
    return Table("fake", "A fake table", "For tests.", rows)


def run_fake(out: Path, log: Path, **how):
    return runner.run([fake_table(log, **how)], out, Settings())


def numbers(made: report.Report) -> list:
    return [cell.ours for cell in made.cells()]


def done(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().split()] if log.exists() else []


# ---------------------------------------------------------------------- the cell store


def test_store_gives_back_what_it_got_and_only_under_the_same_settings(tmp_path):
    """A result is found by name and settings; another eps is another cell."""
    store = CellStore(tmp_path)
    store.put("a/b", {"eps": 0.3}, {"x": 0.1 + 0.2, "inf": math.inf, "list": [1, 2]})
    assert store.get("a/b", {"eps": 0.3}) == {"x": 0.1 + 0.2, "inf": math.inf, "list": [1, 2]}
    assert store.get("a/b", {"eps": 0.4}) is None
    assert store.get("a/c", {"eps": 0.3}) is None
    store.clear()
    assert store.get("a/b", {"eps": 0.3}) is None


def test_fingerprint_changes_with_the_package_version(monkeypatch):
    """Numbers of another version are not mixed in."""
    before = fingerprint("a", {})
    monkeypatch.setattr("treeproof.reproduce.store.__version__", "999")
    assert fingerprint("a", {}) != before


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"name": "other", "result": {}}', '{"name": "a", "result": 3}'])
def test_damaged_cells_count_as_not_done(tmp_path, damage):
    """Whatever stands in the file, only a whole result of that name is believed."""
    store = CellStore(tmp_path)
    store.put("a", {}, {"x": 1})
    store.path("a", {}).write_text(damage)
    assert store.get("a", {}) is None


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    """An interruption between writing and renaming changes nothing."""
    path = tmp_path / "file"
    write_atomically(path, "old")

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


# ---------------------------------------------------------------------- running and resuming


def test_second_run_computes_nothing_and_reports_the_same(tmp_path):
    """Every cell is kept; the report of the second run is the first's, number by number."""
    log = tmp_path / "log"
    first = run_fake(tmp_path / "out", log)
    second = run_fake(tmp_path / "out", log)
    assert done(log) == list(range(COUNT))
    assert numbers(first) == numbers(second)
    assert first.open_cells == 0


def test_interrupted_run_goes_on_with_the_same_numbers(tmp_path):
    """Stopped at cell 3: the report shows 3 cells, the next run does the other 3 only."""
    log, out = tmp_path / "log", tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run_fake(out, log, stop_at=3)
    assert done(log) == [0, 1, 2]
    partial = json.loads((out / "reproduction.json").read_text())
    states = [cell["state"] for line in partial["sections"][0]["lines"] for cell in line["cells"]]
    assert states == ["done"] * 6 + ["open"] * 6
    resumed = run_fake(out, log)
    assert done(log) == list(range(COUNT))
    whole = run_fake(tmp_path / "other", tmp_path / "log2")
    assert numbers(resumed)[::2] == numbers(whole)[::2]
    assert resumed.open_cells == 0


def test_fresh_run_forgets(tmp_path):
    """resume=False computes every cell again."""
    log, out = tmp_path / "log", tmp_path / "out"
    run_fake(out, log)
    runner.run([fake_table(log)], out, Settings(), resume=False)
    assert done(log) == 2 * list(range(COUNT))


def test_a_failing_cell_is_told_and_tried_again(tmp_path):
    """The others are computed, the message is in every format, and the next run tries once more."""
    log, out = tmp_path / "log", tmp_path / "out"
    made = run_fake(out, log, fail_at=2)
    assert done(log) == [0, 1, 3, 4, 5]
    assert made.failures == ["MethodError: this method cannot do it"]
    for suffix in ("md", "html", "csv", "json"):
        assert "this method cannot do it" in (out / f"reproduction.{suffix}").read_text()
    again = run_fake(out, log)
    assert again.failures == []
    assert done(log)[-1] == 2


SCRIPT = """
import sys
from pathlib import Path
import treeproof.reproduce as package
from tests import test_reproduce as fakes
from treeproof.cli.reproduce import command

log = Path(sys.argv[1])
fakes.table = lambda settings: fakes.fake_table(log, pause=0.25)
package.TABLES.clear()
package.TABLES["fake"] = ("fake_module", "table")
sys.modules["treeproof.reproduce.fake_module"] = fakes
command.main(["--out", sys.argv[2]])
"""


def start_command(log: Path, out: Path) -> subprocess.Popen:
    root = Path(__file__).resolve().parents[1]
    path = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(log), str(out)],
        env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_the_command_survives_ctrl_c_and_kill_9(tmp_path, name):
    """A real process is stopped half way, then run again: it goes on, with the numbers of a whole run."""
    log, out = tmp_path / "log", tmp_path / "out"
    process = start_command(log, out)
    deadline = time.monotonic() + 60
    while len(done(log)) < 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(getattr(signal, name))
    _, errors = process.communicate(timeout=60)
    before = done(log)
    assert 2 <= len(before) < COUNT, errors
    assert process.returncode == (130 if name == "SIGINT" else -signal.SIGKILL)
    if name == "SIGINT":
        assert "the same command goes on from there" in errors
        assert "Traceback" not in errors
    again = start_command(log, out)
    shown, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert errors.count(": kept") >= len(before) - 1
    # the cell that was in work when the process died may be computed twice, no other
    assert set(done(log)) == set(range(COUNT))
    assert len(done(log)) <= COUNT + 1
    whole = run_fake(tmp_path / "other", tmp_path / "log2")
    finished = json.loads((out / "reproduction.json").read_text())
    values = [line["cells"][0]["ours"] for line in finished["sections"][0]["lines"]]
    assert values == numbers(whole)[::2]
    assert "A fake table" in shown


# ---------------------------------------------------------------------- the report


def test_every_format_tells_paper_ours_and_difference(tmp_path):
    """Markdown, CSV, HTML and JSON agree, and reduced cells are marked in all of them."""
    out = tmp_path / "out"
    made = run_fake(out, tmp_path / "log")
    value = made.cells()[2].ours
    text = f"50.00 / {value:.2f} † / {value - 50:+.2f}"
    markdown = (out / "reproduction.md").read_text()
    assert text in markdown
    assert "- † half the rows" in markdown
    page = (out / "reproduction.html").read_text()
    assert f"<strong>{value:.2f} †</strong>" in page
    assert 'title="half the rows"' in page
    lines = list(csv.DictReader(io.StringIO((out / "reproduction.csv").read_text())))
    assert float(lines[2]["ours"]) == value
    assert float(lines[2]["difference"]) == value - 50
    assert lines[2]["reduced"] == "half the rows"
    stored = json.loads((out / "reproduction.json").read_text())
    assert stored["sections"][0]["lines"][1]["cells"][0]["ours"] == value
    assert "numba" in stored["environment"]["versions"]


def test_differences_by_unit():
    """Errors are subtracted, times and speed-ups divided, words and missing figures left alone."""
    assert report.difference(PERCENT, 10.0, 12.5) == 2.5
    assert report.difference(SECONDS, 2.0, 1.0) == 0.5
    assert report.difference(TIMES, 50.0, 100.0) == 2.0
    assert report.difference(NUMBER, 3.0, 1) == -2.0
    assert report.difference(TEXT, 1.0, "a") is None
    assert report.difference(PERCENT, None, 1.0) is None
    assert report.difference(PERCENT, 1.0, None) is None


def test_curves_become_a_drawing(tmp_path):
    """A table with curves gets an SVG file, shown in Markdown and inside the page."""
    plain = fake_table(tmp_path / "log")

    def curves(row, result):
        found = result(row.tasks[0])
        return {"a <b>": found["curve"]} if found else {}

    made = runner.run([Table("fake", "T", "", plain.rows[:1], curves)], tmp_path / "out", Settings())
    drawing = (tmp_path / "out" / "fake-1.svg").read_text()
    assert drawing.startswith("<svg")
    assert "a &lt;b&gt;" in drawing
    assert drawing in (tmp_path / "out" / "reproduction.html").read_text()
    assert "](fake-1.svg)" in (tmp_path / "out" / "reproduction.md").read_text()
    assert made.sections[0].curves


def test_datasets_choose_rows(tmp_path):
    """Rows of other data sets are neither computed nor printed."""
    log = tmp_path / "log"
    made = runner.run([fake_table(log)], tmp_path / "out", Settings(datasets=("mnist-1-5",)))
    assert done(log) == [0]
    assert len(made.sections[0].lines) == 1


def test_wrong_names_and_folders_are_refused(tmp_path):
    """Tables, data sets and folders that are not there give one clear line."""
    with pytest.raises(InvalidInputError, match="tables must be among stump-verification"):
        reproduce.run(["table-9"], out=tmp_path)
    with pytest.raises(InvalidInputError, match="datasets must be among breast-cancer"):
        reproduce.run(datasets=["iris"], out=tmp_path)
    with pytest.raises(InvalidInputError, match="models must be an existing folder"):
        reproduce.run(models=tmp_path / "no", out=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match="out must be a folder"):
        runner.run([], tmp_path / "file", Settings())


# ---------------------------------------------------------------------- the real tables


def every_table(size) -> list[Table]:
    from importlib import import_module

    settings = Settings(size)
    return [
        getattr(import_module(f"treeproof.reproduce.{module}"), function)(settings)
        for module, function in reproduce.TABLES.values()
    ]


@pytest.mark.parametrize("size", [FULL, QUICK])
def test_every_figure_of_the_paper_is_in_a_table(size):
    """Each number of the paper's tables stands in some cell, in the full and in the quick run."""
    tables = {table.name.replace("-", "_"): table for table in every_table(size)}
    names = {"linf_robustness": "linf_of_stump_models"}
    labels = {"eps", "eps_1", "eps_inf", "precision", "K", "L", "n", "depth", "dataset"}
    for name, table in tables.items():
        if name in ("equal_eps", "figure_2", "frontier"):
            continue
        lines = paper.rows(names.get(name, name))
        assert len(table.rows) == len(lines)
        for row, line in zip(table.rows, lines, strict=True):
            printed = {quantity.paper for quantity in row.quantities}
            for key, value in line.items():
                if key in labels:
                    continue
                for figure in value.values() if isinstance(value, dict) else [value]:
                    assert figure in printed, (name, line["dataset"], key)


@pytest.mark.parametrize("size", [FULL, QUICK])
def test_task_names_are_unique_and_reductions_are_marked(size):
    """Two tasks of one name would share a cell; marks: the MILP always, quick image rows."""
    seen: dict[str, dict] = {}
    for table in every_table(size):
        for row in table.rows:
            for task in row.tasks:
                assert seen.setdefault(task.name, task.settings) == task.settings
                if "milp" in task.name:
                    small = row.dataset in ("breast-cancer", "diabetes")
                    assert ("MILP on" in task.reduced) == (size.quick or not small)
                elif size.quick:
                    assert bool(task.reduced) == (row.dataset not in ("breast-cancer", "diabetes")), task.name
                else:
                    assert not task.reduced, task.name


def test_frontier_rows_repeat_the_papers_own_tables():
    """The paper's column of the frontier is its stump tables' l_p (or better of linf and l1) column."""
    from treeproof.reproduce.frontier import ROWS

    for norm, name in ((1, "l1_stump_training"), (2, "l2_stump_training")):
        for line in paper.rows(name):
            known = [one for one in ROWS if (one.norm, one.dataset, one.eps) == (norm, line["dataset"], line["eps"])]
            assert [one.paper for one in known] == [line["lp"]["verified"]]
            assert [one.paper_clean for one in known] == [line["lp"]["error"]]


def test_chosen_rows_are_nested_and_fixed():
    """The MILP's rows are among the rows that the other methods verify."""
    small, large = workshop.choose(1000, 20), workshop.choose(1000, 200)
    assert set(small) < set(large)
    np.testing.assert_array_equal(small, workshop.choose(1000, 20))
    np.testing.assert_array_equal(workshop.choose(5, None), range(5))
    np.testing.assert_array_equal(workshop.choose(5, 9), range(5))


def test_prefix_is_the_ensemble_after_that_many_rounds():
    """The first t stumps score as the sum of their leaves."""
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(2, 8))
    threshold = rng.random(8)
    whole = treeproof.TreeEnsemble.from_stumps(np.arange(8) % 3, threshold, left, right, n_features=3, base=0.5)
    X = rng.random((40, 3))
    for count in (1, 4, 8):
        expected = np.full(40, 0.5)
        for j in range(count):
            expected = expected + np.where(X[:, j % 3] < threshold[j], left[j], right[j])
        np.testing.assert_allclose(measure.prefix(whole, count).decision_function(X), expected, atol=1e-12)
    assert measure.size(whole) == {"trees": 8, "leaves": 16, "thresholds": 8}


def test_timed_reports_the_fastest_call():
    """A call that is slow once and quick later counts with its quick time; waiting is no work."""
    rounds = iter([300_000, 10, 10, 10, 10])
    slow = time.process_time()
    sum(range(300_000))
    slow = time.process_time() - slow
    found, seconds = measure.timed(lambda: time.sleep(0.02) or sum(range(next(rounds))))
    assert found == 45
    assert 0 <= seconds < slow


def test_agreement_counts_contradictions():
    """Undecided rows are neither alike nor against."""
    from treeproof.reproduce.verification import agreement

    assert agreement("RRBU", "RBBR") == "2/4 alike, 1 CONTRADICT"
    assert agreement("RB", "RB") == "2/2 alike"


def test_quantities_with_several_tasks_wait_for_all(tmp_path):
    """A number read off two tasks is open until both are done."""
    first, second = (Task(name, {}, lambda shop, value=value: {"v": value}) for name, value in (("a", 3), ("b", 4)))
    ratio = Quantity("ratio", TIMES, None, (first, second), lambda one, two: one["v"] / two["v"])
    table = Table("t", "T", "", (Row({"x": "1"}, (ratio,), "diabetes"),))
    assert report.make([table], runner.Outcome({"a": {"v": 3}}), Settings()).cells()[0].state == "open"
    assert runner.run([table], tmp_path, Settings()).cells()[0].ours == 0.75


def test_models_are_trained_once_and_read_back(tmp_path, monkeypatch):
    """The second workshop reads the kept model, scores and time alike; a damaged one is trained again."""
    calls = []

    class Trainer:
        def fit(self, X, y):
            calls.append(len(X))
            self.ensemble_ = treeproof.TreeEnsemble.from_stumps([0], [1 / 3], [-1.0], [1.0], n_features=X.shape[1])
            return self

    monkeypatch.setattr(trainers, "make", lambda spec, n_jobs: Trainer())
    spec = workshop.ModelSpec("stumps", "diabetes", 1.0, 0.05, {"n_estimators": 1}, 100)
    first = workshop.Workshop(tmp_path, Settings()).model(spec)
    second = workshop.Workshop(tmp_path, Settings()).model(spec)
    assert calls == [100]
    assert first.seconds == second.seconds
    X = workshop.Workshop(tmp_path, Settings()).data("diabetes").X_test
    np.testing.assert_array_equal(first.ensemble.decision_function(X), second.ensemble.decision_function(X))
    next((tmp_path / "models").iterdir()).write_text("{")
    workshop.Workshop(tmp_path, Settings()).model(spec)
    assert calls == [100, 100]


def test_training_is_told_in_words():
    """How a model was trained, as in the report's labels."""
    assert trainers.words(None, 0) == "standard"
    assert trainers.words(math.inf, 0.3) == "linf 0.3"
    assert trainers.words(1, 1.0) == "l1 1"


# ---------------------------------------------------------------------- the authors' published models


@needs_shared
@pytest.mark.parametrize(
    ("dataset", "file", "l0"),
    [
        ("breast-cancer", "stumps_breast_cancer_linf.json", 95.62),
        ("diabetes", "stumps_diabetes_linf.json", 100.0),
        # the paper prints 4.50; 71 of 2027 rows of the published model are 3.50
        ("mnist-1-5", "stumps_mnist_1_5_linf.json", 3.50),
    ],
)
def test_the_authors_models_give_the_papers_figures(dataset, file, l0):
    """Exact and grid verified errors within one test row of the paper's; l0 and r* as published."""
    line = next(one for one in paper.rows("stump_verification") if one["dataset"] == dataset)
    data = treeproof.datasets.load(dataset, folder=SHARED / "data")
    model = trainers.read_authors(SHARED / "models" / "authors" / file, data.n_features)
    X, y = data.X_test, data.y_test
    exact = measure.certified(model, X, y, norm=1, eps=line["eps"], method="additive")
    grid = measure.certified(model, X, y, norm=1, eps=line["eps"], method="grid", precision=line["precision"])
    one_row = 100 / len(X) + 0.005  # the paper rounds to two digits
    assert abs(exact["verified"] - line["milp_verified"]) <= one_row
    assert abs(grid["verified"] - line["dp_verified"]) <= one_row
    assert exact["verified"] <= grid["verified"]
    counted = measure.l0(model, X, y)
    assert abs(counted["verified"] - l0) <= one_row
    assert abs(counted["r_star"] - line["l0_avg_r"]) <= 0.01


def test_a_real_table_runs_and_resumes(tmp_path):
    """The frontier's diabetes rows, quick: trained, verified, reported, and read back by the second run."""
    how = {"datasets": ["diabetes"], "quick": True, "out": tmp_path}
    events = []
    first = reproduce.run(["frontier"], progress=events.append, **how)
    assert first.failures == []
    assert first.open_cells == 0
    assert len(first.sections[0].lines) == 3
    for line in first.sections[0].lines:
        shown = {cell.header: cell.ours for cell in line.cells}
        assert 0 < shown["clean (paper)"] <= shown["verified (paper)"] <= 100
        assert shown["verified (best published)"] == shown["verified (paper)"]
    second = reproduce.run(["frontier"], progress=events.append, **how)
    assert numbers(second) == numbers(first)
    assert [event.kind for event in events] == ["start", "done"] * 3 + ["kept"] * 3


@pytest.mark.parametrize("name", ["certify", "radius"])
def test_an_answer_cut_short_is_an_interruption_and_no_cell(monkeypatch, name):
    """Ctrl-C inside a verifier returns rows marked unknown; they must not be kept as a finished measurement."""
    model = treeproof.TreeEnsemble.from_stumps([0], [0.5], [-1.0], [1.0], n_features=1)
    X, y = np.array([[0.1], [0.9], [0.2]]), np.array([0, 1, 0])
    assert measure.l0(model, X, y)["letters"] == "BBB"
    real = getattr(treeproof, name)
    monkeypatch.setattr(treeproof, name, lambda *a, **k: dataclasses.replace(real(*a, **k), interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        measure.l0(model, X, y)


def test_data_that_cannot_be_had_fails_its_rows_once_and_clearly(tmp_path, monkeypatch):
    """Without network and folder: image rows name the folder to fill, the network is tried once, tables go on."""
    asked = []

    def fetch(number):
        asked.append(number)
        raise treeproof.datasets.DataUnavailableError("no network")

    monkeypatch.delenv("TREEPROOF_DATA", raising=False)
    monkeypatch.setenv("TREEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("treeproof.datasets.openml.fetch", fetch)
    made = reproduce.run(["frontier"], datasets=["diabetes", "mnist-1-5"], quick=True, out=tmp_path / "out")
    assert asked == [554]
    assert len(made.failures) == 1
    assert "mnist.npz" in made.failures[0]
    assert "TREEPROOF_DATA" in made.failures[0]
    states = {line.labels["data set"]: {cell.state for cell in line.cells} for line in made.sections[0].lines}
    assert states == {"diabetes": {"done"}, "mnist-1-5": {"failed"}}


def test_train_rows_is_a_marked_run_of_its_own(tmp_path):
    """Fewer training rows than the full run: images are marked, tables and the test set are whole."""
    size = dataclasses.replace(FULL, train_rows=3000)
    for table in every_table(size):
        for row in table.rows:
            for task in row.tasks:
                usual = table.name == "l2-tree-training"  # 1,000 rows in the paper too
                if row.dataset in ("breast-cancer", "diabetes") or "authors" in task.name or usual:
                    assert "trained on" not in task.reduced
                else:
                    assert "trained on" in task.reduced, task.name
                    assert "of the test rows" not in task.reduced
    with pytest.raises(InvalidInputError, match="train_rows must be at least 100"):
        reproduce.run(train_rows=3, out=tmp_path)


def test_methods_beside_the_milp_agree_on_the_same_rows(tmp_path, monkeypatch):
    """One task gives the MILP's and the others' errors on the same rows, their speed-ups and agreement."""
    from treeproof.reproduce import verification

    rng = np.random.default_rng(5)
    model = treeproof.TreeEnsemble.from_stumps(
        np.arange(8), rng.random(8), *rng.normal(size=(2, 8)), n_features=8, base=0.1
    )

    class Trainer:
        ensemble_ = model

        def fit(self, X, y):
            return self

    monkeypatch.setattr(trainers, "make", lambda spec, n_jobs: Trainer())
    size = dataclasses.replace(QUICK, milp_rows=12)
    spec = workshop.ModelSpec("stumps", "diabetes", math.inf, 0.05)
    task = verification.beside_milp(
        "t", spec, size, norm=1, eps=0.05, methods={"grid": {"precision": 0.0002}, "additive": {}}
    )
    out = task.run(workshop.Workshop(tmp_path, Settings(size)))
    assert out["additive_agreement"] == "12/12 alike"
    assert out["milp_verified"] == out["additive_verified"] <= out["grid_verified"]
    assert out["milp_rows"] == 12
    assert out["grid_speedup"] == out["milp_seconds"] / out["grid_seconds"]


@pytest.mark.slow
def test_the_verification_tables_on_diabetes(tmp_path):
    """Both verification tables, quick, with our own trained models: every cell done, nothing contradicts the MILP."""
    made = reproduce.run(["stump-verification", "tree-verification"], datasets=["diabetes"], quick=True, out=tmp_path)
    assert made.failures == []
    assert made.open_cells == 0
    words = [cell.ours for cell in made.cells() if cell.header.endswith("and MILP")]
    assert len(words) >= 4
    assert all(str(word).endswith("alike") for word in words)
