"""`treeproof demo`: the main job end to end, in a fresh folder, without the network."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from tests.snippets import blocks, same_story

from treeproof import TreeEnsemble
from treeproof.cli import run


def refuse(*args):
    raise OSError("the demo must not use the network")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "out"
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr("socket.socket.connect", refuse)
        code = run(["demo", "--out", str(folder)])
    assert code == 0
    folder.joinpath("said.txt").write_text(said.getvalue(), encoding="utf-8")
    return folder


def test_the_readme_shows_the_table_that_the_demo_prints(demo):
    table = [
        line for line in (demo / "said.txt").read_text(encoding="utf-8").splitlines() if line and line[0] in "┏┃┡│└"
    ]
    said = blocks("README.md", "text")[0]
    # the last column is the time of one machine
    same_story(*["\n".join(line.rsplit("│", 2)[0] for line in text) for text in (said.splitlines(), table)])


def test_the_files_lead_on_to_certify(demo, capsys):
    """The command that the demo prints works on the files that it wrote, and tells the two models apart."""
    errors = {}
    for name in ("plain", "provable", "scikit-learn"):
        words = [demo / f"{name}.json", demo / "mails.csv", "--target", "spam", "--threat", demo / "threat.toml"]
        assert run(["certify", *map(str, words), "--json"]) == 0
        errors[name] = json.loads(capsys.readouterr().out)
    for found in errors.values():
        assert found["rows"] == 921
        assert found["clean_error"] <= found["attack_error"] <= found["verified_error"]
    assert errors["provable"]["verified_error"] < 0.2
    assert errors["plain"]["attack_error"] > 0.5
    assert errors["plain"]["clean_error"] < errors["provable"]["clean_error"] < 0.15


def test_the_reports_are_written_and_name_the_words(demo):
    for file in ("report.html", "report-plain.html", "report-scikit-learn.html"):
        html = (demo / file).read_text(encoding="utf-8")
        assert html.startswith("<!doctype html>")
        assert html.count('class="line') >= 3
        assert "becomes <b>" in html
    assert TreeEnsemble.load(demo / "provable.json").feature_names[0] == "make"
