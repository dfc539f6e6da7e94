"""Live models of all four libraries load as the same function (issue 2, Shows 1 and 4)."""

from __future__ import annotations

import numpy as np
import pytest
from tests import import_zoo

import treeproof
from treeproof.model.rounding import rounding_of

REASONS = {name: f"{name} is not installed" for name in import_zoo.LIBRARIES}


def differences(library: str, seed: int, count: int) -> tuple[int, int, int]:
    """Rows compared, and those whose classes differ: beyond what float error can decide, and within it."""
    if library != "sklearn":
        pytest.importorskip(library, reason=REASONS[library])
    model, X = import_zoo.fitted(library, seed)
    ensemble = treeproof.load(model)
    Z = import_zoo.accepted(model, import_zoo.rows(ensemble, X, count, seed))
    theirs = import_zoo.library_labels(model, Z)
    scores = ensemble.decision_function(Z)
    different = np.flatnonzero(ensemble.predict(Z).astype(str) != theirs.astype(str))
    if len(different) == 0:
        return len(Z), 0, 0
    bound = 4 * rounding_of(ensemble).library.max() + ensemble.decision_slack
    if ensemble.n_outputs == 1:
        gap = np.abs(scores[different] - ensemble.cut)
    else:
        ranked = np.sort(scores[different], axis=1)
        gap = ranked[:, -1] - ranked[:, -2]
    return len(Z), int(np.sum(gap > bound)), int(np.sum(gap <= bound))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("library", import_zoo.LIBRARIES)
def test_random_models_predict_as_their_library(library, seed):
    """Random small models agree with their library on rows around all thresholds."""
    _, beyond, within = differences(library, seed, 2000)
    assert (beyond, within) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("library", import_zoo.LIBRARIES)
def test_three_hundred_models_predict_as_their_library(library, capsys):
    """300 random models a library, 10,000 rows each: no class differs, not even where rounding decides (printed)."""
    found = [differences(library, seed, 10_000) for seed in range(300)]
    rows, beyond, within = (sum(column) for column in zip(*found, strict=True))
    with capsys.disabled():
        print(f"\n{library}: {len(found)} models, {rows} rows: {beyond} differ, {within} more within the float error")
    assert (beyond, within) == (0, 0)
