"""Choose the loss and the eps schedule of the paper's stump rows, on training rows only.

    python benchmarks/stump_settings.py                                  # all rows (some twenty minutes)
    python benchmarks/stump_settings.py --rows "l1 diabetes 0.05" --columns lp corrective
    python benchmarks/stump_settings.py --show --out results.jsonl       # what was measured before

Every setting of a row is trained and verified exactly on the same seeded, stratified splits of the training rows:
ten with a quarter held out for the two small tables, three of 1,200 training and 1,000 validation rows for the image
sets. No test row is read. The best setting of a row has the least mean verified error, to which each point of clean
error beyond one above the paper's is added. The printed spread is the standard error of the mean.

What this decided: the estimator's defaults (loss="logistic", eps_schedule="auto": no schedule where a single stump
keeps its worth at the full eps, all rounds as their root where not), one rule for all rows, here, in
benchmarks/stump_training.py and in `treeproof reproduce`. The last line says what one rule costs beside the best
setting of each row.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from stump_training import SMALL, estimator, table_rows

from treeproof import datasets
from treeproof.training.base import BinaryTask
from treeproof.training.stump_rounds import Boosting

LOSSES = ("exponential", "logistic")
# rounds until the full eps (as a share of all rounds) and the shape of the growth
SCHEDULES = {
    "none": {"eps_schedule": None},
    "half root": {"eps_schedule": 0.5, "schedule_shape": "root"},
    "all root": {"eps_schedule": "rounds", "schedule_shape": "root"},
    "all linear": {"eps_schedule": "rounds", "schedule_shape": "linear"},
}
SETTINGS = [f"{loss}, {schedule}" for loss, schedule in product(LOSSES, SCHEDULES)]


def settings_of(row: dict) -> list[str]:
    """What is tried: all on the small tables; on images no linear growth, and growth always where eps is large."""
    if row["dataset"] in SMALL:
        return SETTINGS
    schedules = ("half root", "all root") if row["eps"] > row["eps_inf"] else ("none", "half root", "all root")
    return [f"{loss}, {schedule}" for loss, schedule in product(LOSSES, schedules)]


def splits(name: str, y, count: int | None):
    """The same (training, validation) row numbers for every setting of a data set."""
    small = name in SMALL
    sizes = {"test_size": 0.25} if small else {"train_size": 1200, "test_size": 1000}
    number = count if count is not None else (10 if small else 3)
    return StratifiedShuffleSplit(number, **sizes, random_state=0).split(np.zeros(len(y)), y)


def options_of(setting: str, rounds: int) -> dict:
    """The estimator's parameters of a setting."""
    loss, schedule = setting.split(", ")
    changes = {"loss": loss, **SCHEDULES[schedule]}
    return changes | ({"eps_schedule": rounds} if changes["eps_schedule"] == "rounds" else {})


def measure(row: dict, column: str, setting: str, count: int | None) -> dict[str, list[float]]:
    """Clean and verified validation errors in percent, one a split."""
    data = datasets.load(row["dataset"])
    X, y = data.X_train, data.y_train
    errors: dict[str, list[float]] = {"clean": [], "verified": []}
    for train, held in splits(row["dataset"], y, count):
        model = estimator(row, column).set_params(**options_of(setting, row["n"]))
        model.fit(X[train], y[train])
        found = model.certify(X[held], y[held], norm=row["norm"], eps=row["eps"], method="additive")
        errors["clean"].append(100 * found.clean_error)
        errors["verified"].append(100 * found.verified_error)
    return errors


def score(row: dict, cell: dict) -> float:
    """Mean verified error, and the clean error beyond one point above the paper's."""
    return float(np.mean(cell["verified"]) + max(0.0, np.mean(cell["clean"]) - row["lp"]["error"] - 1.0))


def default_of(row: dict, column: str) -> tuple[str, float]:
    """Which setting the estimator's own "auto" is on the first split, and the share of its gain that decides it."""
    data = datasets.load(row["dataset"])
    train, _ = next(iter(splits(row["dataset"], data.y_train, 1)))
    sign = np.where(data.y_train[train] == data.y_train.max(), 1.0, -1.0)
    task = BinaryTask(data.X_train[train], sign, np.ones(len(train)), np.random.default_rng(0))
    model = estimator(row, column)
    boosting = Boosting(model._settings(1), task)
    kept, whole = boosting.first_gains()
    return f"{model.loss}, {'none' if boosting.share(0) == 1.0 else 'all root'}", kept / whole


def error_words(values: list[float]) -> str:
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):8.2f} +- {spread:4.2f}"


def show(name: str, column: str, row: dict, cells: dict[str, dict]) -> float:
    """One row's table, best and default marked; returns how much better the best is."""
    scores = {setting: score(row, cell) for setting, cell in cells.items()}
    best, (default, kept) = min(scores, key=lambda setting: scores[setting]), default_of(row, column)
    print(f"{name}, {column}: paper {row['lp']['error']:.2f} clean, {row['lp']['verified']:.2f} verified (test rows)")
    print(f"    the best single stump keeps {max(0.0, kept):.2f} of its gain at the full eps")
    for setting, cell in cells.items():
        mark = ("  best" if setting == best else "") + ("  default" if setting == default else "")
        print(f"    {setting:<26}{error_words(cell['clean'])} clean{error_words(cell['verified'])} verified{mark}")
    return scores[default] - scores[best] if default in scores else float("nan")


def main() -> None:
    rows = table_rows()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", nargs="*", choices=list(rows), default=list(rows), metavar="ROW", help=", ".join(rows)
    )
    parser.add_argument("--columns", nargs="*", choices=("lp", "corrective"), default=["lp"])
    parser.add_argument("--settings", nargs="*", choices=SETTINGS, metavar="SETTING")
    parser.add_argument("--splits", type=int, help="fewer or more splits")
    parser.add_argument("--out", type=Path, help="a file of JSON lines: cells in it are not measured again")
    parser.add_argument("--show", action="store_true", help="only show what is in --out")
    given = parser.parse_args()
    known: dict[tuple[str, str, str], dict] = {}
    if given.out and given.out.exists():
        for line in given.out.read_text(encoding="utf-8").splitlines():
            cell = json.loads(line)
            known[cell["row"], cell["column"], cell["setting"]] = cell
    lost = []
    for name, column in product(given.rows, given.columns):
        for setting in given.settings or settings_of(rows[name]):
            key = (name, column, setting)
            if key in known or given.show:
                continue
            known[key] = {
                "row": name, "column": column, "setting": setting,
                **measure(rows[name], column, setting, given.splits),
            }  # fmt: skip
            if given.out:
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(known[key]) + "\n")
        cells = {s: known[name, column, s] for s in SETTINGS if (name, column, s) in known}
        if cells:
            lost.append(show(name, column, rows[name], cells))
    print(
        f"one rule for all: {np.nanmean(lost):.2f} points above the best setting of each row (mean of {len(lost)} rows)"
    )


if __name__ == "__main__":
    main()
