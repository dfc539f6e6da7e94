"""The tables of `treeproof reproduce`: the paper's figures are in, reductions are marked, real rows run."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from tests.reproduce_fakes import numbers

import treeproof
import treeproof.datasets
from treeproof import reproduce
from treeproof._errors import InvalidInputError
from treeproof.reproduce import paper, trainers
from treeproof.reproduce.settings import FULL, QUICK, SMALL, Settings
from treeproof.reproduce.tasks import Table, Task

COMMITTED = Path(__file__).resolve().parents[1] / "docs" / "reproduction.md"


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
def test_task_names_are_unique_and_reductions_are_marked(size, monkeypatch, tmp_path):
    """Two tasks of one name would share a cell; marks: the image rows of a quick run."""
    monkeypatch.delenv("TREEPROOF_DATA", raising=False)
    monkeypatch.setenv("TREEPROOF_CACHE", str(tmp_path))
    seen: dict[str, dict] = {}
    for table in every_table(size):
        for row in table.rows:
            for task in row.tasks:
                assert seen.setdefault(task.name, task.settings) == task.settings
                assert bool(task.reduced) == (size.quick and row.dataset not in SMALL), task.name


def test_rows_divided_otherwise_are_marked_and_are_other_cells(monkeypatch, tmp_path):
    """With the prepared fashion_shoes.npz, its rows carry a note, and share no cell with the original division."""
    monkeypatch.setenv("TREEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("TREEPROOF_CACHE", str(tmp_path))

    def tasks() -> dict[str, Task]:
        return {task.name: task for table in every_table(FULL) for row in table.rows for task in row.tasks}

    original = tasks()
    (tmp_path / "fashion_shoes.npz").write_bytes(b"")
    for name, other in tasks().items():
        shoes = "fashion-shoes" in name or "figure-2" in name
        assert ("another division than the original" in other.reduced) == shoes
        assert (other.settings != original[name].settings) == shoes


@pytest.mark.skipif(not COMMITTED.is_file(), reason="docs/reproduction.md is not there; make reproduction writes it")
def test_the_committed_report_is_a_full_run_with_every_cell():
    """Every row of every table, nothing open or failed, nothing reduced but by the division of fashion-shoes."""
    text = COMMITTED.read_text()
    assert "- size: full\n" in text
    assert "treeproof reproduce" in text
    for word in ("not run", "failed", "cells open", "CONTRADICT", " nan "):
        assert word not in text
    notes = {line.split(" ", 2)[2] for line in text.splitlines() if line.startswith("- †")}
    assert notes <= {"fashion-shoes in another division than the original"}
    for table in every_table(FULL):
        section = text.split(f"## {table.title}\n")[1].split("\n## ")[0]
        for row in table.rows:
            assert "| " + " | ".join(row.labels.values()) + " | " in section, (table.name, row.labels)
        for drawing in re.findall(r"\]\(([^)]*[.]svg)\)", section):
            assert (COMMITTED.parent / drawing).is_file()


def test_frontier_rows_repeat_the_papers_own_tables():
    """The paper's column of the frontier is its training tables' l_p column; stumps where it has both at one eps."""
    from treeproof.reproduce.frontier import ROWS

    for norm, model in ((1, "stump"), (2, "stump"), (1, "tree"), (2, "tree")):
        for line in paper.rows(f"l{norm}_{model}_training"):
            known = [one for one in ROWS if (one.norm, one.dataset, one.eps) == (norm, line["dataset"], line["eps"])]
            assert len(known) == 1
            if known[0].model == f"{model}s":
                assert (known[0].paper, known[0].paper_clean) == (line["lp"]["verified"], line["lp"]["error"])
            else:
                assert model == "tree"


def test_train_rows_is_a_marked_run_of_its_own(tmp_path):
    """Fewer training rows than the full run: images are marked, tables and the test set are whole."""
    size = dataclasses.replace(FULL, train_rows=3000)
    for table in every_table(size):
        for row in table.rows:
            for task in row.tasks:
                usual = table.name == "l2-tree-training"  # 1,000 rows in the paper too
                if row.dataset in SMALL or "authors" in task.name or usual:
                    assert "trained on" not in task.reduced
                else:
                    assert "trained on" in task.reduced, task.name
                    assert "of the test rows" not in task.reduced
    with pytest.raises(InvalidInputError, match="train_rows must be at least 100"):
        reproduce.run(train_rows=3, out=tmp_path)


def test_training_is_told_in_words():
    """How a model was trained, as in the report's labels."""
    assert trainers.words(None, 0) == "standard"
    assert trainers.words(math.inf, 0.3) == "linf 0.3"
    assert trainers.words(1, 1.0) == "l1 1"


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
        reproduce.run(out=tmp_path / "file")
    with pytest.raises(InvalidInputError, match="n_jobs must be at least 1"):
        reproduce.run(n_jobs=0, out=tmp_path)


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


def test_data_that_cannot_be_had_fails_its_rows_once_and_clearly(tmp_path, monkeypatch):
    """Without network and folder: image rows name the folder to fill, the network is tried once, tables go on."""
    asked = []

    def fetch(number):
        asked.append(number)
        raise treeproof.datasets.DataUnavailableError("no network")

    monkeypatch.delenv("TREEPROOF_DATA", raising=False)
    monkeypatch.setenv("TREEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("treeproof.datasets.openml.fetch", fetch)
    wanted = ["diabetes", "mnist-1-5", "mnist-2-6"]
    made = reproduce.run(["frontier"], datasets=wanted, quick=True, out=tmp_path / "out")
    assert asked == [554]
    assert len(made.failures) == 1
    assert "mnist.npz" in made.failures[0]
    assert "TREEPROOF_DATA" in made.failures[0]
    states = {line.labels["data set"]: {cell.state for cell in line.cells} for line in made.sections[0].lines}
    assert states == {"diabetes": {"done"}, "mnist-1-5": {"failed"}, "mnist-2-6": {"failed"}}


@pytest.mark.slow
def test_the_verification_tables_on_diabetes(tmp_path):
    """Both verification tables, quick, with our own trained models: every cell done, nothing contradicts the MILP."""
    made = reproduce.run(["stump-verification", "tree-verification"], datasets=["diabetes"], quick=True, out=tmp_path)
    assert made.failures == []
    assert made.open_cells == 0
    words = [cell.ours for cell in made.cells() if cell.header.endswith("and MILP")]
    assert len(words) >= 4
    assert not any("CONTRADICT" in str(word) for word in words)
