"""`treeproof reproduce` keeps finished cells: through Ctrl-C, kill -9, damage and failures."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.reproduce_fakes import COUNT, done, fake_table, numbers, run_fake

import treeproof
from treeproof.reproduce import measure, pool, runner, trainers, workshop
from treeproof.reproduce.settings import Settings
from treeproof.reproduce.store import CellStore, fingerprint, write_atomically
from treeproof.reproduce.tasks import Task


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
import signal
import sys
from pathlib import Path
import treeproof.reproduce as package
from tests import reproduce_fakes as fakes
from treeproof.cli.reproduce import command

log = Path(sys.argv[1])
fakes.table = lambda settings: fakes.fake_table(log, pause=0.4)
package.TABLES.clear()
package.TABLES["fake"] = ("fake_module", "table")
sys.modules["treeproof.reproduce.fake_module"] = fakes
if __name__ == "__main__":  # a worker reads all of this file but the end
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores Ctrl-C
    command.main(sys.argv[2:])
"""


def start_command(folder: Path, jobs: int) -> subprocess.Popen:
    root = Path(__file__).resolve().parents[1]
    path = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), str(folder / "log"), "--out", str(folder / "out"), "--jobs", str(jobs)],
        env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_the_command_survives_ctrl_c_and_kill_9(tmp_path, name, jobs):
    """A real run, alone or with workers, is stopped half way and run again: it goes on, with a whole run's numbers."""
    log, out = tmp_path / "log", tmp_path / "out"
    process = start_command(tmp_path, jobs)
    wait_for(lambda: len(done(log)) >= 2 or process.poll() is not None)
    process.send_signal(getattr(signal, name))
    _, errors = process.communicate(timeout=60)  # pipes close when the workers are gone too
    before = done(log)
    assert 2 <= len(before) < COUNT, errors
    assert process.returncode == (130 if name == "SIGINT" else -signal.SIGKILL)
    if name == "SIGINT":
        assert "the same command goes on from there" in errors
        assert "Traceback" not in errors
    again = start_command(tmp_path, jobs)
    shown, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert errors.count(": kept") >= len(before) - jobs
    # the cells that were in work when the process died may be computed twice, no other
    assert set(done(log)) == set(range(COUNT))
    assert len(done(log)) <= COUNT + jobs
    whole = run_fake(tmp_path / "other", tmp_path / "log2")
    finished = json.loads((out / "reproduction.json").read_text())
    values = [line["cells"][0]["ours"] for line in finished["sections"][0]["lines"]]
    assert values == numbers(whole)[::2]
    assert "A fake table" in shown


def fakes_of(folder: Path, **how) -> list:
    return [fake_table(folder / "log", **how)]


def test_workers_give_what_one_process_gives(tmp_path):
    """Every cell once, same numbers, one event of each kind a task."""
    build = partial(fakes_of, tmp_path)
    events: list[runner.Event] = []
    made = runner.run(build(), tmp_path / "out", Settings(), processes=2, build=build, progress=events.append)
    assert numbers(made)[::2] == numbers(run_fake(tmp_path / "other", tmp_path / "log2"))[::2]
    assert sorted(done(tmp_path / "log")) == list(range(COUNT))
    told = sorted((event.task.name, event.kind) for event in events)
    assert told == sorted((f"fake/{index}", kind) for index in range(COUNT) for kind in ("start", "done"))
    assert [event.number for event in events if event.kind == "done"] == list(range(1, COUNT + 1))


def test_a_worker_that_fails_or_dies_costs_its_own_cell_only(tmp_path):
    """One cell raises, another kills its process: both are told, the others are done, the next run does the two."""
    build = partial(fakes_of, tmp_path, fail_at=1, die_at=2)
    made = runner.run(build(), tmp_path / "out", Settings(), processes=2, build=build)
    assert sorted(done(tmp_path / "log")) == [0, 3, 4, 5]
    assert made.failures == ["MethodError: this method cannot do it", "its process ended with code 9"]
    build = partial(fakes_of, tmp_path)
    again = runner.run(build(), tmp_path / "out", Settings(), processes=2, build=build)
    assert (again.failures, again.open_cells) == ([], 0)
    assert sorted(done(tmp_path / "log")) == list(range(COUNT))


def test_tasks_of_one_model_stay_together():
    """Groups by model, in order of first appearance; a task without a model is a group."""
    tasks = [Task(name, settings, lambda shop: {}) for name, settings in (
        ("a", {"model": {"eps": 1}}), ("b", {"model": {"eps": 2}}), ("c", {}), ("d", {"model": {"eps": 1}}),
    )]  # fmt: skip
    assert pool.groups(tasks) == [["a", "d"], ["b"], ["c"]]


def test_models_are_trained_once_and_read_back(tmp_path, monkeypatch):
    """The second workshop reads the kept model, scores and time alike; a damaged one is trained again."""
    calls = []

    class Trainer:
        def fit(self, X, y):
            calls.append(len(X))
            self.ensemble_ = treeproof.TreeEnsemble.from_stumps([0], [1 / 3], [-1.0], [1.0], n_features=X.shape[1])
            return self

    monkeypatch.setattr(trainers, "make", lambda spec, brief=False: Trainer())
    spec = workshop.ModelSpec("stumps", "diabetes", 1.0, 0.05, {"n_estimators": 1}, 100)
    first = workshop.Workshop(tmp_path, Settings()).model(spec)
    second = workshop.Workshop(tmp_path, Settings()).model(spec)
    assert calls == [60, 100]  # few rows to compile, then all of them
    assert first.seconds == second.seconds
    X = workshop.Workshop(tmp_path, Settings()).data("diabetes").X_test
    np.testing.assert_array_equal(first.ensemble.decision_function(X), second.ensemble.decision_function(X))
    next((tmp_path / "models").iterdir()).write_text("{")
    workshop.Workshop(tmp_path, Settings()).model(spec)
    assert calls == [60, 100, 60, 100]


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
