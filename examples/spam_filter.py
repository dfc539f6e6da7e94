"""A spam filter, attacked by a spammer who can only ADD words, then hardened.

    python examples/spam_filter.py

An XGBoost filter is trained on Spambase (inside the package). The threat: word frequencies can only grow; a
word that is twice as common in mail is twice as cheap to add (scale); the three counts of capital letters do
not move (frozen). Then the same is certified for a model trained against exactly this threat.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xgboost

import treeproof
from treeproof import datasets
from treeproof.reporting import write_report

ROWS = 200


def threat_for(data) -> treeproof.Threat:
    """Only additions; costs in units of each word's usual size; capitals do not move."""
    usual = data.X_train.std(axis=0)
    capitals = [name for name in data.feature_names if name.startswith("capital")]
    places = [data.feature_names.index(name) for name in capitals]
    return treeproof.Threat(norm=1, eps=0.5, scale=usual, frozen=places, direction=+1)


def main(folder: str | Path = "spam-filter") -> dict[str, treeproof.Certificates]:
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = datasets.load("spambase")
    threat = threat_for(data)
    X, y = data.X_test[:ROWS], data.y_test[:ROWS]

    filter_ = xgboost.XGBClassifier(n_estimators=50, max_depth=3, random_state=0, n_jobs=1)
    filter_.fit(data.X_train, data.y_train)
    before = treeproof.certify(filter_, X, y, threat, time_limit=1)
    print("XGBoost\n" + str(before))

    row = int(np.flatnonzero((before.status == treeproof.Status.BROKEN) & (before.y == 1) & before.correct)[0])
    print(f"\nmail {row} is spam and is caught; it passes after adding")
    units = data.scaling.span
    for j, (old, new) in before.changes(row).items():
        print(f"  {data.feature_names[j]:<12} {old * units[j]:6.2f}% -> {new * units[j]:6.2f}% of the words")

    hardened = treeproof.AdditiveClassifier(
        norm=1, eps=0.5, scale=threat.scale, frozen=threat.frozen, direction=+1, random_state=0
    )
    hardened.fit(data.X_train, data.y_train)
    after = treeproof.certify(hardened, X, y, threat)
    print("\nhardened\n" + str(after))

    radii = treeproof.radius(hardened, X, y, threat)
    write_report(
        folder / "report.html",
        after,
        hardened.ensemble_,
        radii=radii,
        names=data.feature_names,
        scaling=data.scaling,
        title="Spam filter against added words",
        class_names={"0": "ham", "1": "spam"},
    )
    hardened.ensemble_.save(folder / "model.json")
    print(f"\nreport: {folder / 'report.html'}")
    return {"XGBoost": before, "hardened": after}


if __name__ == "__main__":
    main(*sys.argv[1:2])
