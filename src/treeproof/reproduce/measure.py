"""Measurements that tasks are made of: verified errors with times, radii, sizes. Plain dicts out.

Times are CPU seconds per row of one call on one thread, after a first call that compiles: on a busy
machine wall clock would flatter the quick methods beside the slow ones. A quick call is repeated (at most
twenty times, half a second) and the fastest counts.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import treeproof

from ..model import TreeEnsemble


def certified(ensemble: TreeEnsemble, X, y, *, norm: float, eps: float, method: str, **options) -> dict[str, Any]:
    """Certify rows and return errors in percent, seconds a row, and one letter a row (R, B or U)."""

    def call(rows: slice = slice(None)):
        asked = {"norm": norm, "eps": eps, "method": method, "n_jobs": 1, **options}
        return whole(treeproof.certify(ensemble, X[rows], y[rows], **asked))

    if method != "milp":  # nothing to compile there
        call(slice(20))
    found, seconds = timed(call)
    letters = "".join(treeproof.Status(value).name[0] for value in found.status)
    return {
        "clean": 100 * float(found.clean_error),
        "attack": 100 * float(found.attack_error),
        "verified": 100 * float(found.verified_error),
        "unknown": letters.count("U"),
        "rows": len(letters),
        "seconds": seconds / max(1, len(letters)),
        "letters": letters,
    }


def l0(ensemble: TreeEnsemble, X, y) -> dict[str, Any]:
    """l0 at one changed feature, and the paper's r*: mean of (features needed to flip - 1), wrong rows 0."""
    out = certified(ensemble, X, y, norm=0, eps=1, method="additive")
    whole(treeproof.radius(ensemble, X[:20], y[:20], norm=0, n_jobs=1))
    radii, seconds = timed(lambda: whole(treeproof.radius(ensemble, X, y, norm=0, n_jobs=1)))
    lower = np.asarray(radii.lower)
    finite = np.isfinite(lower)
    spare = np.maximum(lower[finite] - 1, 0)
    out.update(
        r_star=float(spare.mean()) if finite.any() else None,
        never_flip=int(np.sum(~finite)),
        radius_seconds=seconds / max(1, len(lower)),
    )
    return out


def whole(found):
    """The result, unless Ctrl-C cut it short: the verifiers then return what they have, which is no cell."""
    if found.interrupted:
        raise KeyboardInterrupt
    return found


def timed(call, limit: float = 0.5, repeats: int = 20):
    """Return what `call` returns and the CPU seconds (of all threads) of its fastest repetition."""
    best, spent = float("inf"), 0.0
    for repetition in range(repeats):
        start = time.process_time()
        found = call()
        seconds = max(time.process_time() - start, 1e-9)  # the clock has steps
        best, spent = min(best, seconds), spent + seconds
        # a first call of a few seconds may have met a loop that was not compiled yet: look twice
        if spent > limit and (repetition > 0 or seconds > 10):
            break
    return found, best


def size(ensemble: TreeEnsemble) -> dict[str, Any]:
    """How large a model is: trees, leaves, and distinct (feature, threshold) pairs."""
    inner = ensemble.feature >= 0
    pairs = set(zip(ensemble.feature[inner].tolist(), ensemble.threshold[inner].tolist(), strict=True))
    return {"trees": ensemble.n_trees, "leaves": ensemble.n_leaves, "thresholds": len(pairs)}


def prefix(ensemble: TreeEnsemble, trees: int) -> TreeEnsemble:
    """The ensemble of the first `trees` trees: what boosting had after that many rounds."""
    nodes = int(ensemble.tree_offsets[trees])
    parts = {
        name: getattr(ensemble, name)[:nodes]
        for name in ("feature", "threshold", "left", "right", "value", "missing_left")
    }
    return TreeEnsemble(
        **parts,
        tree_offsets=ensemble.tree_offsets[: trees + 1],
        base=ensemble.base,
        n_features=ensemble.n_features,
        classes=ensemble.classes,
        zero_class=ensemble.zero_class,
        cut=ensemble.cut,
        dtype=ensemble.dtype,
        sum_dtype=ensemble.sum_dtype,
    )
