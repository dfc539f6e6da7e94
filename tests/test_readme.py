"""The README and the guide keep their promises: code runs, output is what it prints, commands and links exist."""

from __future__ import annotations

import contextlib
import io
import re
import shlex

import pytest
from tests.snippets import ROOT, blocks, same_story

from treeproof import AdditiveClassifier, TreeEnsemble, datasets
from treeproof.cli import run

PAGES = sorted(str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def execute(code: str) -> str:
    """Run a block; what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<snippet>", "exec"), {"__name__": "snippet"})
    return out.getvalue()


def test_the_example_prints_what_the_readme_says():
    (code,) = blocks("README.md", "python")
    said = blocks("README.md", "text")[1]
    same_story(said, execute(code))


def test_the_quick_start_runs():
    out = "".join(execute(code) for code in blocks("docs/index.md", "python"))
    assert "Certificates of 154 rows" in out


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the files that the pages' commands name."""
    monkeypatch.chdir(tmp_path)
    data = datasets.load("diabetes")
    model = AdditiveClassifier(norm=1, eps=0.05, epochs=2, max_epochs=2, random_state=0)
    model.fit(data.X_train, data.y_train).ensemble_.save("model.json")
    lines = [",".join([*data.feature_names, "label"])]
    lines += [",".join(map(repr, [*x, y])) for x, y in zip(data.X_test.tolist(), data.y_test.tolist(), strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    (tmp_path / "threat.toml").write_text("norm = 1\neps = 0.05\n")
    return tmp_path


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/guide/reports.md"])
def test_the_certify_commands_of_a_page_run(page, workplace, capsys):
    commands = [line for block in blocks(page, "console") for line in block.splitlines() if "treeproof certify" in line]
    assert commands
    for line in commands:
        words = shlex.split(line)[1:]
        if "--image-shape" in words:
            continue
        code = run(words)
        assert code == (1 if "--fail-above" in words else 0), capsys.readouterr().err
        capsys.readouterr()


def test_every_command_and_option_in_the_pages_exists():
    from treeproof.cli import COMMANDS, app

    for page in PAGES:
        for block in blocks(page, "console"):
            for line in re.findall(r"^treeproof .*$", block, flags=re.MULTILINE):
                words = shlex.split(line, comments=True)
                assert words[1] in COMMANDS, (page, line)
                command = app.get_command(None, words[1])
                known = {option for param in command.params for option in param.opts} | {"--help"}
                for word in words[2:]:
                    if word.startswith("--") and not hasattr(command, "commands"):
                        assert word.split("=")[0] in known, (page, line)


def test_the_threat_file_of_the_guide_is_read(tmp_path):
    from treeproof.cli.threatfile import read_threat

    data = datasets.load("spambase")
    (text,) = blocks("docs/guide/threats.md", "toml")
    (tmp_path / "threat.toml").write_text(text)
    model = TreeEnsemble.from_stumps([0], [0.5], [-1.0], [1.0], n_features=57, feature_names=data.feature_names)
    threat = read_threat(str(tmp_path / "threat.toml"), data.feature_names, 57).resolve(model)
    assert not threat.down.any()
    assert threat.up.sum() == 54
    assert threat.scale[data.feature_names.index("charExclamation")] == 0.1


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
            if not target.startswith("http"):
                assert (ROOT / page).parent.joinpath(target).resolve().exists(), (page, target)
