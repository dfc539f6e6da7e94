"""The report of `treeproof reproduce`: paper / ours / difference, in every format."""

from __future__ import annotations

import csv
import io
import json
import re

from tests.reproduce_fakes import done, fake_table, run_fake

from treeproof.reproduce import plots, report, runner
from treeproof.reproduce.settings import Settings
from treeproof.reproduce.tasks import NUMBER, PERCENT, SECONDS, TEXT, TIMES, Quantity, Row, Table, Task, number


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
    drawing = (tmp_path / "out" / "plots" / "fake-1.svg").read_text()
    assert drawing.startswith("<svg")
    assert "a &lt;b&gt;" in drawing
    assert drawing in (tmp_path / "out" / "reproduction.html").read_text()
    assert "](plots/fake-1.svg)" in (tmp_path / "out" / "reproduction.md").read_text()
    assert made.sections[0].curves


def test_every_compared_error_is_drawn_beside_the_papers(tmp_path):
    """One circle at the paper's figure and one dot at ours for each finished error; better ones in another colour."""
    out = tmp_path / "out"
    made = run_fake(out, tmp_path / "log", fail_at=4)
    drawing = (out / "plots" / "fake-compared.svg").read_text()
    assert "](plots/fake-compared.svg)" in (out / "reproduction.md").read_text()
    assert drawing in (out / "reproduction.html").read_text()
    dots = re.findall(r'<circle cx="([0-9.]+)" cy="[0-9.]+" r="4" fill="(#\w+)"/>', drawing)
    rings = re.findall(r'<circle cx="([0-9.]+)" cy="[0-9.]+" r="4" fill="none"', drawing)
    figures = [cell.ours for cell in made.cells() if cell.unit == PERCENT and cell.state == "done"]
    assert len(figures) == len(dots) == len(rings) == 5
    assert len(set(rings)) == 1  # 50 percent each
    for figure, (place, colour) in zip(figures, dots, strict=True):
        better = figure <= 50
        assert (float(place) <= float(rings[0])) == better
        assert (colour == plots.COLOURS[1]) == better


def test_each_way_of_being_reduced_has_its_sign_and_times_their_own_table(tmp_path):
    """Two notes are numbered, the cells say which is theirs; errors and times are two tables in both formats."""
    ways = {"a": "half the rows", "b": "", "c": "a tenth of the rows"}
    rows = []
    for name, reduced in ways.items():
        task = Task(name, {}, lambda shop: {"e": 1.0, "t": 2.0}, reduced)
        pair = (number(task, "e", "error", PERCENT), number(task, "t", "time", SECONDS))
        rows.append(Row({"x": name}, pair, "diabetes"))
    runner.run([Table("t", "T", "with `code`", tuple(rows))], tmp_path, Settings())
    markdown = (tmp_path / "reproduction.md").read_text()
    assert "| x | error |\n|---|---|\n| a | 1.00 †1 |\n| b | 1.00 |\n| c | 1.00 †2 |\n" in markdown
    assert "| x | time |\n|---|---|\n| a | 2 s †1 |" in markdown
    assert "- †1 half the rows\n- †2 a tenth of the rows\n" in markdown
    page = (tmp_path / "reproduction.html").read_text()
    assert page.count("<table>") == 2
    assert "1.00 †2" in page
    assert "with <code>code</code>" in page


def test_datasets_choose_rows(tmp_path):
    """Rows of other data sets are neither computed nor printed."""
    log = tmp_path / "log"
    made = runner.run([fake_table(log)], tmp_path / "out", Settings(datasets=("mnist-1-5",)))
    assert done(log) == [0]
    assert len(made.sections[0].lines) == 1


def test_quantities_with_several_tasks_wait_for_all(tmp_path):
    """A number read off two tasks is open until both are done."""
    first, second = (Task(name, {}, lambda shop, value=value: {"v": value}) for name, value in (("a", 3), ("b", 4)))
    ratio = Quantity("ratio", TIMES, None, (first, second), lambda one, two: one["v"] / two["v"])
    table = Table("t", "T", "", (Row({"x": "1"}, (ratio,), "diabetes"),))
    assert report.make([table], runner.Outcome({"a": {"v": 3}}), Settings()).cells()[0].state == "open"
    assert runner.run([table], tmp_path, Settings()).cells()[0].ours == 0.75
