"""The frontier table: certified additive models against the best published verified errors.

    TREEPROOF_DATA=../shared/data python benchmarks/frontier.py                    # default settings, all rows
    TREEPROOF_DATA=../shared/data python benchmarks/frontier.py --mode cv          # settings chosen on splits
    TREEPROOF_DATA=../shared/data python benchmarks/frontier.py --mode sizes       # at most T thresholds
    TREEPROOF_DATA=../shared/data python benchmarks/frontier.py --mode blocks      # interactions, p = inf

Every figure is measured on the whole test set with the exact verifiers; the test set is read once a fitted
model. With ``--mode cv`` all settings are chosen by `AdditiveClassifierCV` on seeded splits of the training rows.
Every fitted model's training bound is compared with the exact certificates of all rows, training and test, and the
command fails where it is above one. Finished rows are kept in the file of ``--out`` and not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from treeproof import Status, StumpBoostingClassifier, certify, datasets
from treeproof.training.additive import AdditiveClassifier
from treeproof.training.additive_cv import AdditiveClassifierCV

INF = float("inf")
# data set, norm, eps, the paper's verified error, best published, our one-page prototype (docs/convex-method.md)
ROWS = [
    ("breast-cancer", 1, 1.0, 35.77, 16.1, 3.65),
    ("diabetes", 1, 0.05, 31.82, 27.9, 29.87),
    ("fashion-shoes", 1, 0.1, 10.35, 16.25, 4.85),
    ("fashion-shoes", 1, 0.5, 32.20, 16.3, 6.25),
    ("mnist-1-5", 1, 0.3, 2.81, 0.74, 0.49),
    ("mnist-1-5", 1, 1.0, 16.23, 1.9, 0.69),
    ("mnist-2-6", 1, 0.3, 8.24, 3.92, 1.76),
    ("mnist-2-6", 1, 1.0, 33.46, 5.9, 2.61),
    ("breast-cancer", 2, 0.7, 39.42, 17.5, 14.60),
    ("diabetes", 2, 0.05, None, 28.6, 35.06),
    ("fashion-shoes", 2, 0.4, 49.55, 15.5, 11.95),
    ("mnist-1-5", 2, 0.8, 36.56, 3.7, 1.92),
    ("mnist-2-6", 2, 0.8, 76.98, 10.3, 5.13),
    ("breast-cancer", INF, 0.3, 10.94, 6.6, 6.57),
    ("diabetes", INF, 0.05, 35.06, 30.5, 35.06),
    ("fashion-shoes", INF, 0.1, 11.35, 8.0, 11.65),
    ("mnist-1-5", INF, 0.3, 3.6, 1.3, 3.01),
    ("mnist-2-6", INF, 0.3, 8.63, 3.8, 7.59),
    # the paper's tree table (5 trees of depth 5 there)
    ("mnist-1-5", 1, 0.8, 36.23, None, 0.59),
    ("mnist-2-6", 1, 0.6, 39.67, None, 2.11),
]
# the paper's own sizes: data set, norm, eps, T, the paper's verified error, best prototype at that size
SIZES = [
    ("breast-cancer", 1, 1.0, 20, 35.77, 25.55),
    ("diabetes", 1, 0.05, 20, 31.82, 31.82),
    ("fashion-shoes", 1, 0.1, 20, 10.35, 13.10),
    ("fashion-shoes", 1, 0.5, 40, 32.20, 21.70),
    ("mnist-1-5", 1, 0.3, 20, 2.81, 2.81),
    ("mnist-1-5", 1, 1.0, 40, 16.23, 5.08),
    ("mnist-2-6", 1, 0.3, 20, 8.24, 6.93),
    ("mnist-2-6", 1, 1.0, 40, 33.46, 16.43),
]
MORE_SIZES = (20, 40, 100, 400)
TABLES = ("breast-cancer", "diabetes")
IMAGE_SEARCH = {
    "total_variation": ["auto", 5e-4],
    "l2": [1e-4, 1e-3],
    "eps_factor": [1.0, 1.2],
}
# at p = inf tables over groups of features may win; they have no total variation to choose
LINF_SEARCH = {"interactions": [None, 4], "l2": [1e-4, 1e-3], "eps_factor": [1.0, 1.2]}


def check_bound(model, X, y, found) -> None:
    """Fail unless the training bound is at most the exact worst-case margin of every row."""
    bound = model.training_bound(X, y)
    above = (bound > found.upper + 1e-9) | ((bound > 1e-9) & (found.status == Status.BROKEN))
    if above.any():
        raise SystemExit(f"the training bound is above the exact margin in {above.sum()} rows")


def measure(model, data, norm: float, eps: float, **options) -> dict:
    """Exact figures on the whole test set."""
    start = time.perf_counter()
    found = certify(model.ensemble_, data.X_test, data.y_test, norm=norm, eps=eps, **options)
    seconds = time.perf_counter() - start
    fitted = getattr(model, "best_estimator_", model)
    if isinstance(fitted, AdditiveClassifier):
        check_bound(fitted, data.X_test, data.y_test, found)
        if fitted.ensemble_.is_additive:
            known = certify(fitted.ensemble_, data.X_train, data.y_train, norm=norm, eps=eps)
            check_bound(fitted, data.X_train, data.y_train, known)
    return {
        "clean": 100 * found.clean_error,
        "attack": 100 * found.attack_error,
        "verified": 100 * found.verified_error,
        "thresholds": int(model.ensemble_.n_trees),
        "certify_seconds": seconds,
    }


def default_runs(data, norm: float, eps: float, seeds: int) -> dict:
    """Default settings, several seeds."""
    runs = []
    for seed in range(seeds):
        start = time.perf_counter()
        model = AdditiveClassifier(norm, eps, random_state=seed).fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - start
        runs.append(measure(model, data, norm, eps) | {"seconds": seconds, "gap": model.gap_})
    return {"runs": runs}


def chosen_run(name: str, data, norm: float, eps: float, splits: int) -> dict:
    """Settings chosen on splits of the training rows, then one model and one look at the test rows."""
    search = None if name in TABLES else LINF_SEARCH if norm == INF else IMAGE_SEARCH
    start = time.perf_counter()
    model = AdditiveClassifierCV(norm, eps, search=search, n_splits=splits, random_state=0, verbose=True)
    model.fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - start
    best = next(one for one in model.results_ if one["params"] == model.best_params_)
    return {
        "runs": [measure(model, data, norm, eps) | {"seconds": seconds, "gap": model.best_estimator_.gap_}],
        "params": model.best_params_,
        "validation": [100 * error for error in best["errors"]],
        "tried": len(model.results_),
    }


def sized_run(data, norm: float, eps: float, most: int) -> dict:
    """At most T thresholds, default settings otherwise."""
    start = time.perf_counter()
    model = AdditiveClassifier(norm, eps, max_stumps=most, random_state=0).fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - start
    found = measure(model, data, norm, eps)
    loss = float(np.logaddexp(0.0, -model.training_bound(data.X_train, data.y_train)).mean())
    start = time.perf_counter()
    boosted = StumpBoostingClassifier(norm, eps, n_estimators=most, random_state=0).fit(data.X_train, data.y_train)
    other = measure(boosted, data, norm, eps) | {"seconds": time.perf_counter() - start}
    return {"runs": [found | {"seconds": seconds, "gap": model.gap_}], "robust_loss": loss, "boosting": other}


def block_run(data, norm: float, eps: float, size: int, time_limit: float) -> dict:
    """Default settings with interactions of `size` features; a row that the search leaves open is not verified."""
    start = time.perf_counter()
    model = AdditiveClassifier(norm, eps, interactions=size, random_state=0).fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - start
    found = measure(model, data, norm, eps, time_limit=time_limit)
    return {"runs": [found | {"seconds": seconds, "gap": model.gap_}]}


def show(figure) -> str:
    return "-" if figure is None else f"{figure:.2f}"


def line(label: str, references: list, result: dict) -> str:
    """One row of the table, in Markdown."""
    runs = result["runs"]
    verified = [one["verified"] for one in runs]
    spread = (
        show(np.mean(verified))
        if len(runs) == 1
        else f"{np.mean(verified):.2f} ({min(verified):.2f} to {max(verified):.2f})"
    )
    cells = [
        label,
        *map(show, references),
        f"**{spread}**",
        show(np.mean([one["clean"] for one in runs])),
        str(runs[0]["thresholds"]),
        f"{np.mean([one['seconds'] for one in runs]):.1f}",
        f"{np.mean([one['gap'] for one in runs]):.3f}",
    ]
    if "boosting" in result:
        other = result["boosting"]
        cells += [f"{result['robust_loss']:.4f}", show(other["verified"]), show(other["clean"])]
    if "params" in result:
        settings = ", ".join(f"{key}={value}" for key, value in result["params"].items())
        cells.append(f"{np.mean(result['validation']):.2f} ± {np.std(result['validation']):.2f}; {settings}")
    return "| " + " | ".join(cells) + " |"


def jobs(mode: str):
    """(key, data set, norm, eps, T or size of blocks or None, reference figures) of every row of a table."""
    if mode == "blocks":
        for name, norm, eps, *references in ROWS:
            for size in (2, 3, 4) if norm == INF else ():
                yield f"interactions={size} l{norm:g} {name} {eps:g}", name, norm, eps, size, references
        return
    if mode != "sizes":
        for name, norm, eps, *references in ROWS:
            yield f"{mode} l{norm:g} {name} {eps:g}", name, norm, eps, None, references
        return
    seen = set()
    for name, norm, eps, most, *references in SIZES:
        seen.add((name, norm, eps, most))
        yield f"T={most} l{norm:g} {name} {eps:g}", name, norm, eps, most, references
    for most in MORE_SIZES:
        for name, eps in (("breast-cancer", 1.0), ("mnist-2-6", 0.3), ("mnist-2-6", 1.0)):
            if (name, 1, eps, most) not in seen:
                yield f"T={most} l1 {name} {eps:g}", name, 1, eps, most, [None, None]


def heading(mode: str) -> str:
    names = ["row", "paper"] + (["prototype"] if mode == "sizes" else ["published", "prototype"])
    names += ["ours, verified", "clean", "thresholds", "training s", "gap"]
    if mode == "sizes":
        names += ["training robust loss", "boosting, verified", "clean"]
    if mode == "cv":
        names.append("validation error of the choice; settings")
    return "| " + " | ".join(names) + " |\n|" + "---|" * len(names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mode", choices=("defaults", "cv", "sizes", "blocks"), default="defaults")
    parser.add_argument("--only", nargs="*", default=[], help="run only rows whose name has all of these words")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=10, help="splits for the tables; the images take a fifth")
    parser.add_argument("--time-limit", type=float, default=1.0, help="seconds a row, for --mode blocks")
    parser.add_argument("--out", type=Path, default=Path("frontier.json"))
    options = parser.parse_args()
    done = json.loads(options.out.read_text()) if options.out.exists() else {}
    print(heading(options.mode), flush=True)
    for key, name, norm, eps, most, references in jobs(options.mode):
        if not all(word in key.split() for word in options.only):
            continue
        if key not in done:
            data = datasets.load(name)
            if options.mode == "defaults":
                done[key] = default_runs(data, norm, eps, options.seeds)
            elif options.mode == "cv":
                splits = options.splits if name in TABLES else max(2, options.splits // 5)
                done[key] = chosen_run(name, data, norm, eps, splits)
            elif options.mode == "blocks":
                done[key] = block_run(data, norm, eps, most, options.time_limit)
            else:
                done[key] = sized_run(data, norm, eps, most)
            options.out.write_text(json.dumps(done, indent=1))
        print(line(key, references, done[key]), flush=True)


if __name__ == "__main__":
    main()
