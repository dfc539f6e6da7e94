"""Randomly configured small models of all four libraries, on awkward data, and rows to compare them on."""

from __future__ import annotations

import warnings

import numpy as np

LIBRARIES = ("xgboost", "lightgbm", "catboost", "sklearn")


def table(rng: np.random.Generator, missing: bool):
    """Rows and labels: integers, constants, copies, float32-unfriendly and tiny numbers; 2 to 5 classes."""
    n, d = int(rng.integers(60, 300)), int(rng.integers(2, 8))
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        kind = rng.integers(0, 9)
        if kind == 0:
            X[:, j] = rng.integers(-3, 4, n)
        elif kind == 1:
            X[:, j] = rng.integers(0, 2)
        elif kind == 2:
            X[:, j] = X[:, j - 1]
        elif kind == 3:  # neighbours in float64 that are one number in float32
            X[:, j] = 16777216.0 + rng.integers(0, 5, n) + rng.integers(0, 3, n) / 4
        elif kind == 4:
            X[:, j] = rng.integers(0, 41, n) / 40
        elif kind == 5:
            X[:, j] *= 1e-38
        elif kind == 6:
            X[:, j] *= 1e20
        elif kind == 7:
            X[:, j] = np.where(rng.random(n) < 0.7, 0.0, X[:, j])
    classes = int(rng.choice([2, 2, 2, 3, 4, 5]))
    ranks = X.argsort(axis=0).argsort(axis=0) / n
    signal = ranks @ rng.normal(size=d) + ranks[:, 0] * ranks[:, -1] + rng.normal(size=n) * 0.3
    if rng.random() < 0.25:  # 1 to 50
        cuts = np.quantile(signal, np.linspace(0.98 - 0.02 * (classes - 2), 0.98, classes - 1))
    else:
        cuts = np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1])
    y = np.searchsorted(cuts, signal)
    y[:classes] = np.arange(classes)
    y[classes : 2 * classes] = np.arange(classes)
    if missing:
        X[rng.random(X.shape) < 0.08] = np.nan
        X[: 2 * classes] = np.nan_to_num(X[: 2 * classes])
    return X, y, classes


def labels(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    """The classes under other names."""
    kind = rng.integers(0, 4)
    if kind == 0:
        return np.array(["setosa", "versicolor", "virginica", "other", "fifth"])[y]
    if kind == 1:
        return y * 3 - 2
    return y


def fitted(library: str, seed: int):
    """A fitted model of a library, and the rows that it was trained on."""
    rng = np.random.default_rng([LIBRARIES.index(library), seed])
    missing = bool(rng.random() < 0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y, classes = table(rng, missing)
        model = globals()[f"_{library}"](rng, classes, missing, seed)
        if library != "xgboost":
            y = labels(rng, y)
        if library == "sklearn" and missing and not _takes_missing(model):
            X = np.nan_to_num(X)
        return model.fit(X, y), X


def _xgboost(rng, classes, missing, seed):
    import xgboost

    options = {
        "n_estimators": int(rng.integers(1, 16)),
        "max_depth": int(rng.integers(1, 9)),
        "learning_rate": float(rng.choice([0.1, 0.3, 1.0])),
        "random_state": seed,
        "n_jobs": 1,
        "min_child_weight": float(rng.choice([0.0, 1.0, 5.0])),
        "num_parallel_tree": int(rng.choice([1, 1, 1, 3])),
        "subsample": float(rng.choice([1.0, 0.7])),
        "tree_method": str(rng.choice(["hist", "exact", "approx"])),
    }
    if rng.random() < 0.25:
        options |= {"booster": "dart", "rate_drop": 0.3, "verbosity": 0}
    if rng.random() < 0.3:
        options["base_score"] = float(rng.uniform(0.05, 0.95))
    if classes == 2:
        kinds = ["binary:logistic", "binary:logistic", "binary:hinge", "binary:logitraw"]
        options["objective"] = str(rng.choice(kinds))
        options["scale_pos_weight"] = float(rng.choice([1.0, 7.0]))
    elif rng.random() < 0.3:
        options["objective"] = "multi:softmax"
    return xgboost.XGBClassifier(**options)


def _lightgbm(rng, classes, missing, seed):
    import lightgbm

    options = {
        "n_estimators": int(rng.integers(1, 16)),
        "max_depth": int(rng.integers(1, 9)),
        "num_leaves": int(rng.integers(2, 40)),
        "min_child_samples": int(rng.choice([1, 5, 20])),
        "learning_rate": float(rng.choice([0.05, 0.3, 1.0])),
        "zero_as_missing": bool(rng.random() < 0.25),
        "use_missing": bool(rng.random() < 0.8),
        "boost_from_average": bool(rng.random() < 0.7),
        "random_state": seed,
        "n_jobs": 1,
        "verbose": -1,
    }
    kind = rng.random()
    if kind < 0.2:
        options |= {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}
    elif kind < 0.4:
        options |= {"boosting_type": "dart"}
    if classes > 2 and rng.random() < 0.4:
        # louder one-vs-all models saturate their sigmoids, and are refused
        options |= {"objective": "multiclassova", "learning_rate": 0.05, "boosting_type": "gbdt"}
    elif classes == 2 and rng.random() < 0.3:
        options |= {"sigmoid": 1.7}
    return lightgbm.LGBMClassifier(**options)


def _catboost(rng, classes, missing, seed):
    import catboost

    options = {
        "iterations": int(rng.integers(1, 16)),
        "depth": int(rng.integers(1, 9)),
        "grow_policy": str(rng.choice(["SymmetricTree", "SymmetricTree", "Depthwise", "Lossguide"])),
        "nan_mode": str(rng.choice(["Min", "Max"])),
        "border_count": int(rng.choice([3, 32, 254])),
        "learning_rate": float(rng.choice([0.1, 0.5])),
        "random_seed": seed,
        "verbose": 0,
        "thread_count": 1,
        "allow_writing_files": False,
    }
    if classes == 2:
        options["boost_from_average"] = bool(rng.random() < 0.5)
    else:
        options["loss_function"] = str(rng.choice(["MultiClass", "MultiClassOneVsAll"]))
    return catboost.CatBoostClassifier(**options)


def _sklearn(rng, classes, missing, seed):
    from sklearn import ensemble, preprocessing
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    depth, count = int(rng.integers(1, 9)), int(rng.integers(1, 16))
    tree = DecisionTreeClassifier(max_depth=depth, random_state=seed)
    kinds = [
        lambda: tree,
        lambda: ensemble.RandomForestClassifier(count, max_depth=depth, random_state=seed),
        lambda: ensemble.ExtraTreesClassifier(count, max_depth=depth, random_state=seed),
        lambda: ensemble.GradientBoostingClassifier(
            n_estimators=count,
            max_depth=depth,
            random_state=seed,
            init=None if rng.random() < 0.7 else "zero",
            loss="exponential" if classes == 2 and rng.random() < 0.3 else "log_loss",
        ),
        lambda: ensemble.HistGradientBoostingClassifier(
            max_iter=count, max_depth=depth, min_samples_leaf=5, random_state=seed
        ),
        lambda: ensemble.AdaBoostClassifier(tree, n_estimators=count, random_state=seed),
        lambda: ensemble.BaggingClassifier(
            tree, n_estimators=count, max_features=0.7, max_samples=0.5, random_state=seed
        ),
    ]
    model = kinds[int(rng.integers(0, len(kinds)))]()
    scalers = [
        preprocessing.StandardScaler(),
        preprocessing.MinMaxScaler((-1, 3)),
        preprocessing.MinMaxScaler(clip=True),
        preprocessing.MaxAbsScaler(),
        preprocessing.RobustScaler(),
    ]
    if rng.random() < 0.35:
        chosen = rng.choice(len(scalers), int(rng.integers(1, 3)), replace=False)
        return make_pipeline(*[scalers[i] for i in chosen], model)
    return model


def _takes_missing(model) -> bool:
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return type(last).__name__ not in ("GradientBoostingClassifier", "AdaBoostClassifier")


def rows(ensemble, X: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Float64 rows: of the data, of other rows' columns, and on thresholds and their neighbours in both types."""
    rng = np.random.default_rng([7, seed])
    n, d = X.shape
    out = np.column_stack([X[rng.integers(0, n, count), j] for j in range(d)])
    out[: n if n < count else count] = X[:count]
    inner = np.flatnonzero((ensemble.feature >= 0) & np.isfinite(ensemble.threshold))
    if len(inner):
        for j in range(d):
            cuts = ensemble.threshold[inner[ensemble.feature[inner] == j]]
            if len(cuts) == 0:
                continue
            here = rng.choice(cuts, count)
            with np.errstate(over="ignore", under="ignore"):
                narrow = here.astype(np.float32)
                places = np.stack(
                    [
                        here,
                        np.nextafter(here, -np.inf),
                        np.nextafter(here, np.inf),
                        np.nextafter(narrow, np.float32(-np.inf)).astype(np.float64),
                        np.nextafter(narrow, np.float32(np.inf)).astype(np.float64),
                        # half way between float32 numbers: the cast has to round as the library does
                        (here + np.nextafter(narrow, np.float32(-np.inf)).astype(np.float64)) / 2,
                        here + rng.normal(size=count) * (np.abs(here) + np.nanstd(X[:, j])) * 0.1,
                        np.zeros(count),
                    ]
                )
            chosen = places[rng.integers(0, len(places), count), np.arange(count)]
            use = (rng.random(count) < 0.6) & np.isfinite(chosen)
            use[: min(n, count // 4)] = False
            out[use, j] = chosen[use]
    if ensemble.accepts_missing:
        out[rng.random(out.shape) < 0.03] = np.nan
    else:
        out = np.nan_to_num(out)
    top = float(np.finfo(np.float32).max)
    return np.clip(out, -top, top)


def library_labels(model, X: np.ndarray) -> np.ndarray:
    """What the library itself predicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.predict(X)).reshape(-1)


def accepted(model, X: np.ndarray) -> np.ndarray:
    """The rows that a pipeline does not carry beyond float32, which scikit-learn's trees refuse."""
    if not hasattr(model, "steps"):
        return X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled = model[:-1].transform(X)
    keep = ~(np.abs(scaled) > np.finfo(np.float32).max).any(axis=1)
    assert keep.mean() > 0.5
    return X[keep]
