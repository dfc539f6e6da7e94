"""The example programs run offline, end to end, and their results say what their first lines promise."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from tests.snippets import ROOT

from treeproof import Status


def example(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_spam_filter_is_hardened_against_added_words(tmp_path, capsys):
    """Witnesses only add words and leave the capitals alone; hardening at least halves the verified error."""
    pytest.importorskip("xgboost", reason="the example reads an XGBoost model")
    found = example("spam_filter").main(tmp_path)
    before, after = found["XGBoost"], found["hardened"]
    moved = 0
    for row in np.flatnonzero(before.status == Status.BROKEN):
        for j, (old, new) in before.changes(int(row)).items():
            assert new > old
            assert j < 54
            moved += 1
    assert moved > 0
    assert after.verified_error < before.attack_error / 2
    assert (tmp_path / "report.html").exists()
    assert "% of the words" in capsys.readouterr().out


def test_digits_write_pictures_of_witnesses(tmp_path, capsys):
    matplotlib = pytest.importorskip("matplotlib", reason="the example draws with matplotlib")
    matplotlib.use("Agg")
    radii = example("digits").main(tmp_path, small=True)
    assert radii["provable"].median > 1.5 * radii["plain"].median
    for name in ("plain-witness.png", "provable-witness.png", "certified-error.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert "data:image/png" in (tmp_path / "plain.html").read_text(encoding="utf-8")
    from matplotlib import pyplot

    pyplot.close("all")


def test_grid_search_chooses_by_verified_accuracy(capsys):
    search = example("grid_search").main()
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 4
    assert search.best_score_ == max(scores)
    assert 0.5 < search.best_score_ < 1
    assert "verified error" in capsys.readouterr().out
