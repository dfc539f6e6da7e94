"""The frontier table: certified additive models against the best published verified errors.

    TREEPROOF_DATA=../shared/data python benchmarks/frontier.py                    # defaults and chosen settings
    TREEPROOF_DATA=../shared/data python benchmarks/frontier.py --mode defaults    # default settings only
    TREEPROOF_DATA=../shared/data python benchmarks/frontier.py --mode sizes       # at most T thresholds
    TREEPROOF_DATA=../shared/data python benchmarks/frontier.py --mode blocks      # interactions, p = inf

Every figure is measured on the whole test set with the exact verifiers; the test set is read once a fitted model,
and seconds are CPU seconds of one thread (the choice of settings, and compiling on a first run, included).
Chosen settings are chosen by `AdditiveClassifierCV` on seeded splits of the training rows, with fewer epochs on images
while it chooses. Every fitted model's training bound is compared with the exact certificates of all rows, training and
test, and the command fails where it is above one. Finished rows are kept in the file of ``--out`` and not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path

import numpy as np

from treeproof import Status, StumpBoostingClassifier, certify, datasets
from treeproof.training.additive import AdditiveClassifier
from treeproof.training.additive_cv import AdditiveClassifierCV

INF = float("inf")
# data set, norm, eps, then verified errors: the paper's, the best published, and those of our one-page prototype with
# one fixed recipe and with settings tuned on one validation split
ROWS = [
    ("breast-cancer", 1, 1.0, 35.77, 16.1, 5.8, 3.65),
    ("diabetes", 1, 0.05, 31.82, 27.9, 30.5, 29.87),
    ("fashion-shoes", 1, 0.1, 10.35, 16.25, 4.8, 4.85),
    ("fashion-shoes", 1, 0.5, 32.20, 16.3, 6.8, 6.25),
    ("mnist-1-5", 1, 0.3, 2.81, 0.74, 0.59, 0.49),
    ("mnist-1-5", 1, 1.0, 16.23, 1.9, 0.69, 0.69),
    ("mnist-2-6", 1, 0.3, 8.24, 3.92, 2.1, 1.76),
    ("mnist-2-6", 1, 1.0, 33.46, 5.9, 2.5, 2.61),
    ("breast-cancer", 2, 0.7, 39.42, 17.5, 17.5, 14.60),
    ("diabetes", 2, 0.05, None, 28.6, 31.8, 35.06),
    ("fashion-shoes", 2, 0.4, 49.55, 15.5, 14.0, 11.95),
    ("mnist-1-5", 2, 0.8, 36.56, 3.7, 1.6, 1.92),
    ("mnist-2-6", 2, 0.8, 76.98, 10.3, 4.9, 5.13),
    ("breast-cancer", INF, 0.3, 10.94, 6.6, 8.8, 6.57),
    ("diabetes", INF, 0.05, 35.06, 30.5, None, 35.06),
    ("fashion-shoes", INF, 0.1, 11.35, 8.0, 12.0, 11.65),
    ("mnist-1-5", INF, 0.3, 3.6, 1.3, 3.7, 3.01),
    ("mnist-2-6", INF, 0.3, 8.63, 3.8, 8.8, 7.59),
    # the paper's tree table (5 trees of depth 5 there)
    ("mnist-1-5", 1, 0.8, 36.23, None, 0.59, None),
    ("mnist-2-6", 1, 0.6, 39.67, None, 2.11, None),
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
    "eps_factor": [1.0, 1.2],
    "total_variation": ["auto", 3e-4],
    "l2": [1e-4, 1e-3],
}
# at p = inf tables over groups of features may win; they have no total variation to choose
LINF_SEARCH = {"interactions": [None, 4], "eps_factor": [1.0, 1.2]}
# on images, while settings are judged
TRIAL = {"epochs": 4}
LINF_TRIAL = {"epochs": 12}


def search_of(name: str, norm: float) -> dict:
    """What `AdditiveClassifierCV` tries (its own search on tables), and how briefly it trains on images."""
    if name in TABLES:
        return {}
    return {"search": LINF_SEARCH, "trial": LINF_TRIAL} if norm == INF else {"search": IMAGE_SEARCH, "trial": TRIAL}


def check_bound(model, X, y, found) -> None:
    """Fail unless the training bound is at most the exact worst-case margin of every row."""
    bound = model.training_bound(X, y)
    above = (bound > found.upper + 1e-9) | ((bound > 1e-9) & (found.status == Status.BROKEN))
    if above.any():
        raise SystemExit(f"the training bound is above the exact margin in {above.sum()} rows")


def measure(model, data, norm: float, eps: float, **options) -> dict:
    """Exact figures on the whole test set."""
    start = time.process_time()
    found = certify(model.ensemble_, data.X_test, data.y_test, norm=norm, eps=eps, **options)
    seconds = time.process_time() - start
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
        start = time.process_time()
        model = AdditiveClassifier(norm, eps, random_state=seed).fit(data.X_train, data.y_train)
        seconds = time.process_time() - start
        runs.append(measure(model, data, norm, eps) | {"seconds": seconds, "gap": model.gap_})
    return {"runs": runs}


def chosen_run(name: str, data, norm: float, eps: float, splits: int, time_limit: float) -> dict:
    """Settings chosen on splits of the training rows, then one model and one look at the test rows."""
    start = time.process_time()
    model = AdditiveClassifierCV(norm, eps, n_splits=splits, random_state=0, verbose=True, **search_of(name, norm)).fit(
        data.X_train, data.y_train
    )
    seconds = time.process_time() - start
    best = next(one for one in model.results_ if one["params"] == model.best_params_)
    options = {} if model.ensemble_.is_additive else {"time_limit": time_limit}
    found = measure(model, data, norm, eps, **options)
    return {
        "runs": [found | {"seconds": seconds, "gap": model.best_estimator_.gap_}],
        "params": model.best_params_,
        "validation": [100 * error for error in best["errors"]],
        "tried": len(model.results_),
    }


def sized_run(data, norm: float, eps: float, most: int) -> dict:
    """At most T thresholds, default settings otherwise."""
    start = time.process_time()
    model = AdditiveClassifier(norm, eps, max_stumps=most, random_state=0).fit(data.X_train, data.y_train)
    seconds = time.process_time() - start
    found = measure(model, data, norm, eps)
    loss = float(np.logaddexp(0.0, -model.training_bound(data.X_train, data.y_train)).mean())
    start = time.process_time()
    boosted = StumpBoostingClassifier(norm, eps, n_estimators=most, random_state=0).fit(data.X_train, data.y_train)
    other = measure(boosted, data, norm, eps) | {"seconds": time.process_time() - start}
    return {"runs": [found | {"seconds": seconds, "gap": model.gap_}], "robust_loss": loss, "boosting": other}


def block_run(data, norm: float, eps: float, size: int, time_limit: float) -> dict:
    """Default settings with interactions of `size` features; a row that the search leaves open is not verified."""
    start = time.process_time()
    model = AdditiveClassifier(norm, eps, interactions=size, random_state=0).fit(data.X_train, data.y_train)
    seconds = time.process_time() - start
    found = measure(model, data, norm, eps, time_limit=time_limit)
    return {"runs": [found | {"seconds": seconds, "gap": model.gap_}]}


def show(figure) -> str:
    return "-" if figure is None else f"{figure:.2f}"


def measured(result: dict) -> list[str]:
    """Verified error (its spread over seeds), clean error, thresholds, training seconds, gap: five cells."""
    runs = result["runs"]
    verified = [one["verified"] for one in runs]
    spread = show(min(verified)) if min(verified) == max(verified) else f"{min(verified):.2f} to {max(verified):.2f}"
    return [
        f"**{spread}**",
        show(np.mean([one["clean"] for one in runs])),
        str(runs[0]["thresholds"]),
        f"{np.mean([one['seconds'] for one in runs]):.1f}",
        f"{np.mean([one['gap'] for one in runs]):.3f}",
    ]


def choice(result: dict) -> list[str]:
    """The validation error of chosen settings, with its spread over the splits, and what differs from the defaults."""
    default = AdditiveClassifier().get_params()
    changed = [f"{key}={value}" for key, value in result["params"].items() if value != default[key]]
    return [
        f"{np.mean(result['validation']):.2f} ± {np.std(result['validation']):.2f}",
        ", ".join(changed) or "the defaults",
    ]


MEASURED = ["verified", "clean", "thresholds", "CPU s", "gap"]
KNOWN = ["paper", "published", "fixed recipe", "tuned prototype"]


def run_rows(options, done: dict) -> None:
    """The frontier: default settings, chosen settings, or both side by side."""
    both = options.mode == "frontier"
    defaults, chosen = both or options.mode == "defaults", both or options.mode == "cv"
    names = ["row", *KNOWN]
    names += [f"defaults: {MEASURED[0]}", *MEASURED[1:]] if defaults else []
    names += [f"chosen: {MEASURED[0]}", *MEASURED[1:], "validation", "settings"] if chosen else []
    heading(names)
    for name, norm, eps, *known in ROWS:
        label = f"l{norm:g} {name} {eps:g}"
        if not wanted(label, options):
            continue
        cells = [label, *map(show, known)]
        if defaults:
            job = partial(default_runs, datasets.load(name), norm, eps, options.seeds)
            cells += measured(once(f"defaults {label}, {options.seeds} seeds", job, done, options))
        if chosen:
            job = partial(chosen_run, name, datasets.load(name), norm, eps, options.splits, options.time_limit)
            result = once(f"cv {label}, {options.splits} splits", job, done, options)
            cells += measured(result) + choice(result)
        line(cells)


def run_blocks(options, done: dict) -> None:
    """Interactions at p = inf."""
    heading(["row", *KNOWN, *MEASURED])
    for name, norm, eps, *known in ROWS:
        for size in (2, 3, 4) if norm == INF else ():
            label = f"interactions={size} l{norm:g} {name} {eps:g}"
            if wanted(label, options):
                job = partial(block_run, datasets.load(name), norm, eps, size, options.time_limit)
                line([label, *map(show, known), *measured(once(label, job, done, options))])


def run_sizes(options, done: dict) -> None:
    """At most T thresholds, T rising on each data set: fails where the training loss does not fall."""
    heading(["row", "paper", "prototype", *MEASURED, "training robust loss", "boosting: verified", "clean", "CPU s"])
    for name, norm, eps, paper_size, paper, prototype in SIZES:
        before = np.inf
        for most in MORE_SIZES:
            label = f"T={most} l{norm:g} {name} {eps:g}"
            if not wanted(label, options):
                continue
            result = once(label, partial(sized_run, datasets.load(name), norm, eps, most), done, options)
            known = (paper, prototype) if most == paper_size else (None, None)
            other = result["boosting"]
            cells = [label, *map(show, known), *measured(result), f"{result['robust_loss']:.4f}"]
            line([*cells, show(other["verified"]), show(other["clean"]), f"{other['seconds']:.1f}"])
            if result["robust_loss"] > before:
                raise SystemExit(f"the training robust loss rises from {before:.4f} with more thresholds")
            before = result["robust_loss"]


def wanted(label: str, options) -> bool:
    return all(word in label.split() for word in options.only)


def once(key: str, job, done: dict, options) -> dict:
    """The result of a job: the kept one, or run now and kept."""
    if key not in done:
        done[key] = job()
        options.out.write_text(json.dumps(done, indent=1))
    return done[key]


def heading(names: list[str]) -> None:
    line(names)
    print("|" + "---|" * len(names), flush=True)


def line(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


RUN = {"frontier": run_rows, "defaults": run_rows, "cv": run_rows, "sizes": run_sizes, "blocks": run_blocks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mode", choices=tuple(RUN), default="frontier")
    parser.add_argument("--only", nargs="*", default=[], help="run only rows whose name has all of these words")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--splits", type=int, default=5, help="splits of the training rows to choose settings on")
    parser.add_argument("--time-limit", type=float, default=1.0, help="seconds a row, for models with interactions")
    parser.add_argument("--out", type=Path, default=Path("frontier.json"))
    options = parser.parse_args()
    done = json.loads(options.out.read_text()) if options.out.exists() else {}
    RUN[options.mode](options, done)


if __name__ == "__main__":
    main()
