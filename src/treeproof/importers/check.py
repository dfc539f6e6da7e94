"""The equality check: the translated model against the library itself, before ``load`` returns.

Rows stand on every threshold and on its float neighbours, both far from and along the path to each node, at
random places, at zero and the smallest numbers, and (where the model takes them) on missing values. Raw
scores must agree within the float error of the library's own sum, and predicted classes wherever that error
cannot decide them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from .._errors import TranslationError
from ..model import TreeEnsemble
from ..model.floats import following, previous
from ..model.rounding import rounding_of
from .parts import Reference

BLOCK = 2**21  # numbers in one block of rows
BUDGET = 2**25  # numbers in all rows together, and
WORK = 2**22  # trees walked by all rows together: what a check may cost
TINY = (0.0, 5e-324, -5e-324, 1.5e-45, -1.5e-45, float(np.float32(1e-35)), -float(np.float32(1e-35)))


def verify(model: TreeEnsemble, reference: Reference, seed: int = 0) -> dict:
    """Compare, and return how many rows were compared; raise `TranslationError` at the first difference."""
    rows = close = 0
    for X in probes(model, seed):
        X = X if reference.repair is None else reference.repair(X)
        close += compare(model, reference, X)
        rows += len(X)
    splits = int(np.sum(model.feature >= 0))
    return {
        "rows": rows,
        "within_float_error": close,
        "splits": splits,
        "splits_compared": min(splits, _most_splits(model, _most_rows(model))),
    }


def compare(model: TreeEnsemble, reference: Reference, X: np.ndarray) -> int:
    """Compare on given rows; return how many classes differ where float error alone decides."""
    # a scaler may overflow on the outermost rows, and then the library and the translation both see infinity
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # numbers without column names, beside a model that was trained on a data frame
        warnings.filterwarnings("ignore", message=".*feature names.*")
        labels = np.asarray(reference.labels(X)).reshape(-1)
        raw = None if reference.margin is None else reference.margin(X).reshape(len(X), -1) * reference.scale
    scores = np.asarray(model.decision_function(X)).reshape(len(X), -1)
    bound = rounding_of(model).library
    if raw is not None:
        _compare_scores(model, X, raw, scores, 2 * bound + _unit_loss(reference, scores))
    ours = model.decide(scores)
    known = {str(label): index for index, label in enumerate(model.classes)}
    theirs = np.array([known.get(str(label), -1) for label in labels])
    different = np.flatnonzero(ours != theirs)
    if len(different) == 0:
        return 0
    if model.n_outputs == 1:
        gap, slack = np.abs(scores[different, 0] - model.cut), 2 * bound[0] + model.decision_slack
    else:
        ranked = np.sort(scores[different], axis=1)
        gap, slack = ranked[:, -1] - ranked[:, -2], 4 * bound.max() + model.decision_slack
    wrong = different[gap > slack]
    if len(wrong):
        row = int(wrong[0])
        raise TranslationError(
            f"the translated model predicts {model.classes[ours[row]]!s} where the library predicts "
            f"{labels[row]!s}, "
            f"at {_point(model, X[row])} (score {scores[row].tolist()}). Nothing was loaded; please report "
            f"this model."
        )
    return len(different)


def _unit_loss(reference: Reference, scores: np.ndarray) -> np.ndarray:
    """What multiplying the library's score back into our units may cost."""
    return np.zeros_like(scores) if reference.scale == 1.0 else 4 * 2.0**-52 * np.abs(scores)


def _compare_scores(model, X, raw, scores, bound) -> None:
    if raw.shape != scores.shape:
        raise TranslationError(f"the library gives scores of shape {raw.shape}, the translation of {scores.shape}.")
    off = np.abs(raw - scores)
    wrong = np.flatnonzero((~(off <= bound)).any(axis=1))
    if len(wrong):
        row = int(wrong[0])
        raise TranslationError(
            f"the translated model's score {scores[row].tolist()} is not the library's, {raw[row].tolist()}, "
            f"at {_point(model, X[row])}. Nothing was loaded; please report this model."
        )


def _point(model: TreeEnsemble, row: np.ndarray) -> str:
    """A row in words: the features that the model reads."""
    used = model.used_features[:20]
    names = model.feature_names
    shown = ", ".join(f"{names[i] if names else f'x[{i}]'} = {row[i]!r}" for i in used)
    more = len(model.used_features) - len(used)
    return f"the point {shown or 'of no features'}" + (f" and {more} more" if more > 0 else "")


# ---------------------------------------------------------------- where to compare


def probes(model: TreeEnsemble, seed: int = 0, minimum: int = 512) -> Iterator[np.ndarray]:
    """Blocks of rows in the model's dtype."""
    rng = np.random.default_rng(seed)
    pools = _pools(model, rng)
    longest = max((len(pool) for pool in pools.values()), default=0)
    step = max(1, BLOCK // model.n_features)
    most = _most_rows(model)
    orders = {feature: rng.permutation(len(pool)) for feature, pool in pools.items()}
    for start in range(0, min(max(minimum, longest), most), step):
        count = min(step, max(minimum, longest) - start)
        yield _finish(model, _random(model, pools, rng, count, orders, start))
    inner = np.flatnonzero(model.feature >= 0)
    most = _most_splits(model, most)
    if len(inner) > most:
        inner = np.sort(rng.choice(inner, most, replace=False))
    parents = _parents(model)
    step = max(1, step // 4)
    for start in range(0, len(inner), step):
        nodes = inner[start : start + step]
        X = _random(model, pools, rng, len(nodes), orders, None)
        _walk_to(model, parents, nodes, X, rng)
        yield _finish(model, _around(model, nodes, X))


def _most_rows(model: TreeEnsemble) -> int:
    """How many rows a check may take, in each of its two parts."""
    return max(4096, min(BUDGET // model.n_features, WORK // max(1, model.n_trees)))


def _most_splits(model: TreeEnsemble, rows: int) -> int:
    """How many splits can each have their own rows: at the threshold, below, above and missing."""
    return rows // (4 if model.accepts_missing else 3)


def _pools(model: TreeEnsemble, rng: np.random.Generator) -> dict[int, np.ndarray]:
    """For each feature in use: its thresholds, their neighbours, and numbers around them."""
    pools = {}
    inner = np.flatnonzero((model.feature >= 0) & np.isfinite(model.threshold))
    order = inner[np.argsort(model.feature[inner], kind="stable")]
    ends = np.searchsorted(model.feature[order], model.used_features, side="right")
    first = 0
    for feature, end in zip(model.used_features, ends, strict=True):
        cuts = np.unique(model.threshold[order[first:end]])
        first = end
        low, high = (cuts[0], cuts[-1]) if len(cuts) else (-1.0, 1.0)
        span = max(high / 2 - low / 2, abs(low) / 8, abs(high) / 8, 1e-3)
        around = rng.uniform(0, 1, 64 + len(cuts)) * (2 * span) + (low / 2 + high / 2 - span)
        pools[int(feature)] = np.concatenate(
            [cuts, previous(cuts, model.dtype), following(cuts, model.dtype), around, np.array(TINY)]
        )
    return pools


def _random(model, pools, rng, count: int, orders: dict, start: int | None) -> np.ndarray:
    """Rows whose features each take numbers of their pool: in turn from `start` on, or at random."""
    X = rng.normal(size=(count, model.n_features))
    for feature, pool in pools.items():
        if start is None:
            X[:, feature] = pool[rng.integers(0, len(pool), count)]
        else:
            X[:, feature] = pool[orders[feature][np.arange(start, start + count) % len(pool)]]
    if model.accepts_missing:
        X[rng.random(X.shape) < 0.03] = np.nan
    return X


def _finish(model: TreeEnsemble, X: np.ndarray) -> np.ndarray:
    """Rows on the model's grid, without infinities."""
    top = np.finfo(model.dtype).max
    return np.clip(X, -float(top), float(top)).astype(model.dtype)


def _parents(model: TreeEnsemble) -> np.ndarray:
    parents = np.full(len(model.feature), -1)
    inner = np.flatnonzero(model.feature >= 0)
    parents[model.left[inner]] = inner
    parents[model.right[inner]] = inner
    return parents


def _walk_to(model: TreeEnsemble, parents: np.ndarray, nodes: np.ndarray, X: np.ndarray, rng) -> None:
    """Change rows so that each reaches its node (where any row does)."""
    low, high = np.full(X.shape, -np.inf), np.full(X.shape, np.inf)
    row, child = np.arange(len(nodes)), nodes
    while len(row):
        node = parents[child]
        climbs = node >= 0
        row, child, node = row[climbs], child[climbs], node[climbs]
        feature, threshold = model.feature[node], model.threshold[node]
        left = model.left[node] == child
        end, begin = (row[left], feature[left]), (row[~left], feature[~left])
        high[end] = np.minimum(high[end], threshold[left])
        low[begin] = np.maximum(low[begin], threshold[~left])
        child = node
    outside = ~((low <= X) & (high > X)) & ((low > -np.inf) | (high < np.inf))
    last = np.where(high < np.inf, previous(high, model.dtype), np.inf)
    at_low = (low > -np.inf) & ((last == np.inf) | (rng.random(X.shape) < 0.5))
    X[outside] = np.where(at_low, low, last)[outside]


def _around(model: TreeEnsemble, nodes: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Each row at its node's threshold, just below and just above it, and missing there."""
    feature, threshold = model.feature[nodes], model.threshold[nodes]
    places = [threshold, previous(threshold, model.dtype), following(threshold, model.dtype)]
    if model.accepts_missing:
        places.append(np.full(len(nodes), np.nan))
    out = np.concatenate([X] * len(places))
    out[np.arange(len(out)), np.tile(feature, len(places))] = np.concatenate(places)
    return out
