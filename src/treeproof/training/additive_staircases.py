"""Staircases to and from ensembles of stumps, and how people read them: as text and as plots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._errors import InvalidModelError, must_be
from ..model import TreeEnsemble


class Staircase(NamedTuple):
    """One feature's part of a score: ``values[k]`` on ``thresholds[k - 1] <= x < thresholds[k]``."""

    feature: int
    thresholds: np.ndarray
    values: np.ndarray

    @property
    def swing(self) -> float:
        """Largest minus smallest value: what this feature can do to the score."""
        return float(np.ptp(self.values))


def ensemble_of(features, thresholds, values, first, n_features: int) -> TreeEnsemble:
    """Stumps for staircases in one flat array (the last feature is the intercept); flat steps vanish."""
    base = float(values[first[-2]])
    columns: dict[str, list] = {"feature": [], "threshold": [], "half": []}
    for at, (j, steps) in enumerate(zip(features, thresholds, strict=True)):
        own = values[first[at] : first[at + 1]]
        rise = np.diff(own)
        keep = rise != 0
        # stumps of -rise/2 and +rise/2 around the middle of the first and last value
        base += 0.5 * (own[0] + own[-1])
        columns["feature"].append(np.full(int(keep.sum()), j))
        columns["threshold"].append(steps[keep])
        columns["half"].append(0.5 * rise[keep])
    if not any(len(one) for one in columns["half"]):
        empty = np.zeros(0)
        return TreeEnsemble.from_stumps(
            np.zeros(0, dtype=np.int64), empty, empty, empty, n_features=n_features, base=base
        )
    half = np.concatenate(columns["half"])
    return TreeEnsemble.from_stumps(
        np.concatenate(columns["feature"]).astype(np.int64),
        np.concatenate(columns["threshold"]),
        -half,
        half,
        n_features=n_features,
        base=base,
    )


def staircases_of(model: TreeEnsemble, output: int = 0) -> tuple[float, list[Staircase]]:
    """The constant and the staircases of one score of an additive model, widest swing first.

    Each staircase is shifted to a mean of zero over its steps; the shifts are in the constant.
    """
    if not model.is_additive:
        raise InvalidModelError("model must be additive (each tree reads one feature). Got trees that mix features.")
    if not 0 <= output < model.n_outputs:
        raise InvalidModelError(must_be("output", f"from 0 to {model.n_outputs - 1}", output))
    steps: dict[int, dict[float, float]] = {}
    constant = float(model.base[output])
    for t in range(model.n_trees):
        begin, end = model.tree_offsets[t], model.tree_offsets[t + 1]
        constant += _add_tree(model, int(begin), int(end), output, steps)
    out = []
    for j, jumps in steps.items():
        thresholds = np.array(sorted(t for t in jumps if jumps[t] != 0.0))
        values = np.concatenate([[0.0], np.cumsum([jumps[t] for t in thresholds])])
        middle = float(values.mean())
        constant += middle
        out.append(Staircase(j, thresholds, values - middle))
    return constant, sorted((one for one in out if len(one.thresholds)), key=lambda one: -one.swing)


def _add_tree(model, begin, end, output, steps) -> float:
    """Add a one-feature tree's jumps to `steps`; return its leftmost value."""
    root = begin
    if model.feature[root] < 0:
        return float(model.value[root, output])
    j = int(model.feature[root])
    cuts = np.unique(model.threshold[begin:end][model.feature[begin:end] >= 0])
    values = []
    for x in [-np.inf, *cuts]:
        node = root
        while model.feature[node] >= 0:
            node = model.left[node] if x < model.threshold[node] else model.right[node]
        values.append(float(model.value[node, output]))
    jumps = steps.setdefault(j, {})
    for cut, rise in zip(cuts, np.diff(values), strict=True):
        jumps[float(cut)] = jumps.get(float(cut), 0.0) + float(rise)
    return values[0]


def as_text(model: TreeEnsemble, output: int = 0, max_features: int | None = 20, width: int = 40) -> str:
    """The staircases of one score as text: one line a step, with a bar to scale."""
    constant, stairs = staircases_of(model, output)
    shown = stairs if max_features is None else stairs[:max_features]
    largest = max((float(np.abs(one.values).max()) for one in shown), default=1.0) or 1.0
    lines = [
        f"score = {constant:+.4g} + the steps below ({len(stairs)} features, "
        f"{sum(len(one.thresholds) for one in stairs)} thresholds)"
    ]
    half = width // 2
    for one in shown:
        lines.append(f"{_name(model, one.feature)}  (swing {one.swing:.4g})")
        edges = [-np.inf, *one.thresholds, np.inf]
        for low, high, value in zip(edges, edges[1:], one.values, strict=False):
            size = int(round(abs(value) / largest * half))
            bar = " " * (half - size) + "-" * size + "|" if value < 0 else " " * half + "|" + "+" * size
            lines.append(f"  {_interval(low, high):<28}{value:+9.4f}  {bar}".rstrip())
    if len(shown) < len(stairs):
        lines.append(f"... and {len(stairs) - len(shown)} more features")
    return "\n".join(lines)


def _name(model, j: int) -> str:
    return model.feature_names[j] if model.feature_names is not None else f"x[{j}]"


def _interval(low: float, high: float) -> str:
    if np.isinf(low):
        return f"x < {high:.6g}"
    if np.isinf(high):
        return f"x >= {low:.6g}"
    return f"{low:.6g} <= x < {high:.6g}"


def plot(model: TreeEnsemble, output: int = 0, features=None, max_features: int = 9, axes=None):
    """Plot staircases with matplotlib, one panel a feature; returns the array of axes."""
    import matplotlib.pyplot as plt

    _, stairs = staircases_of(model, output)
    if features is not None:
        wanted = [int(j) for j in features]
        stairs = [one for j in wanted for one in stairs if one.feature == j]
    stairs = stairs[:max_features]
    if axes is None:
        columns = max(1, min(3, len(stairs)))
        lines = max(1, -(-len(stairs) // columns))
        _, axes = plt.subplots(
            lines,
            columns,
            figsize=(4 * columns, 2.6 * lines),
            squeeze=False,
            sharey=True,
            layout="constrained",
        )
    axes = np.asarray(axes).ravel()
    for panel, one in zip(axes, stairs, strict=False):
        span = np.ptp(one.thresholds) or 1.0
        edges = np.concatenate([[one.thresholds[0] - 0.1 * span], one.thresholds, [one.thresholds[-1] + 0.1 * span]])
        panel.stairs(one.values, edges, baseline=None, linewidth=1.6)
        panel.axhline(0.0, color="0.7", linewidth=0.8)
        panel.set_title(_name(model, one.feature), fontsize=10)
    for panel in axes[len(stairs) :]:
        panel.set_visible(False)
    return axes
