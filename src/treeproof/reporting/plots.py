"""The same pictures with matplotlib (an extra): certified error, radii, one witness, staircases.

Every function draws into ``ax`` (a new figure's by default) and returns it; none calls ``show``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import InvalidInputError, must_be
from . import words
from .analysis import curve_end, error_curve

BLUE, ORANGE, GREY = "#2f5bd0", "#c2560c", "#9aa0a8"


def _pyplot():
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InvalidInputError("plots need matplotlib. Install it with: pip install matplotlib.") from None
    return pyplot


def _axes(ax, size: tuple[float, float] = (5.5, 3.6)):
    return _pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def plot_certified_error(radii, *others, labels=None, eps: float | None = None, end: float | None = None, ax=None):
    """Verified error over eps, with the attack error below it and the band between.

    Parameters
    ----------
    radii, *others : Radii
        One curve each.
    labels : list of str, optional
    eps : float, optional
        A budget to mark.
    end : float, optional
        The largest eps drawn.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    every = (radii, *others)
    if labels is not None and len(labels) != len(every):
        raise InvalidInputError(must_be("labels", f"{len(every)} texts, one a result", labels))
    ax = _axes(ax)
    end = max(curve_end(one, eps or 0.0) for one in every) if end is None else end
    for place, one in enumerate(every):
        curve = error_curve(one, end)
        label = labels[place] if labels is not None else ("robust error" if curve.exact else "verified error")
        (line,) = ax.step(curve.eps, curve.verified, where="post", label=label, color=BLUE if len(every) == 1 else None)
        if not curve.exact:
            ax.fill_between(curve.eps, curve.attack, curve.verified, step="post", alpha=0.2, color=line.get_color())
            lower = "attack error" if len(every) == 1 else None
            ax.step(curve.eps, curve.attack, where="post", color=line.get_color(), linestyle=":", label=lower)
    if eps:
        ax.axvline(eps, color=GREY, linestyle="--", linewidth=1)
    ax.set(xlabel=f"eps ({words.norm_name(radii.threat.norm)})", ylabel="error", xlim=(0, end), ylim=(0, None))
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    ax.legend(frameon=False)
    return ax


def plot_radii(radii, *, eps: float | None = None, bins: int = 30, ax=None):
    """Histogram of the proved radii; misclassified rows are left out.

    Parameters
    ----------
    radii : Radii
    eps : float, optional
        A budget to mark.
    bins : int
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = _axes(ax)
    lower = radii.lower if radii.correct is None else radii.lower[radii.correct]
    finite = lower[np.isfinite(lower)]
    ax.hist(finite, bins=bins, color=BLUE, rwidth=0.92)
    if eps:
        ax.axvline(eps, color=GREY, linestyle="--", linewidth=1)
    endless = len(lower) - len(finite)
    ax.set(xlabel=f"radius ({words.norm_name(radii.threat.norm)})", ylabel="rows")
    if endless:
        ax.set_title(f"{words.rows_of(endless)} never flip", fontsize="medium")
    return ax


def plot_witness(results, row: int, *, image_shape: tuple[int, int] | None = None, names=None, most: int = 12, ax=None):
    """What a row's witness changes: bars a feature, or the changed image.

    Parameters
    ----------
    results : Certificates or Radii
    row : int
    image_shape : (height, width), optional
        The row is an image.
    names : sequence of str, optional
        What the features are called, where the model does not say.
    most : int
        Features shown, the largest moves first.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if not 0 <= row < len(results):
        raise InvalidInputError(must_be("row", f"a row of the result, 0 to {len(results) - 1}", row))
    if not results.witnesses.present[row]:
        raise InvalidInputError(f"row {row} has no witness: it is proved robust, or undecided.")
    columns, after = results.witnesses.changes(row)
    before = np.asarray(results.X[row], dtype=float)
    if image_shape is not None:
        from .images import change

        if image_shape[0] * image_shape[1] != len(before):
            raise InvalidInputError(must_be("image_shape", f"of {len(before)} pixels", image_shape))
        changed = before.copy()
        changed[columns] = after
        ax = _axes(ax, (3.4, 3.4))
        low, high = min(0.0, float(np.nanmin(results.X))), float(np.nanmax(results.X))
        ax.imshow(change(before, changed, image_shape, low, high), interpolation="nearest")
        ax.set_axis_off()
        return ax
    ax = _axes(ax)
    moves = after - before[columns]
    order = np.argsort(-np.abs(moves), kind="stable")[:most][::-1]
    names = results.feature_names if names is None else names
    texts = [f"feature {j}" if names is None else names[j] for j in columns[order].tolist()]
    ax.barh(texts, moves[order], height=0.7, color=[ORANGE if move > 0 else BLUE for move in moves[order]])
    ax.axvline(0, color=GREY, linewidth=1)
    ax.set(xlabel="move", ylim=(-0.7, max(len(order), 4) - 0.3))
    return ax


def plot_staircases(model, features=None, *, names=None, output: int = 0, most: int = 6, axes=None) -> Any:
    """The staircase of each feature of an additive model.

    Parameters
    ----------
    model : TreeEnsemble or estimator with ``ensemble_``
        Additive: every tree reads at most one feature.
    features : list of int or str, optional
        Those with the largest range by default.
    names : sequence of str, optional
        What the features are called, where the model does not say.
    output : int
        Which score, for models with several.
    most : int
        How many features at most.
    axes : array of matplotlib axes, optional

    Returns
    -------
    array of matplotlib axes
    """
    model = getattr(model, "ensemble_", model)
    if not model.is_additive:
        raise InvalidInputError(
            "plot_staircases needs an additive model. Got trees that read several features; "
            "there is no staircase a feature."
        )
    names = model.feature_names if names is None else names
    stairs = {j: staircase(model, j, output) for j in model.used_features.tolist()}
    if features is None:
        chosen = sorted(stairs, key=lambda j: -np.ptp(stairs[j][1]))[:most]
    else:
        chosen = [_column(model, names, feature) for feature in features]
    if axes is None:
        axes = _many_axes(max(1, len(chosen)))
    for ax, j in zip(np.ravel(axes), chosen, strict=False):
        cuts, values = stairs.get(j, (np.zeros(0), np.zeros(1)))
        span = (cuts[-1] - cuts[0]) if len(cuts) > 1 else 1.0
        ends = (cuts[0] - 0.08 * span, cuts[-1] + 0.08 * span) if len(cuts) else (0.0, 1.0)
        ax.step(
            np.concatenate([[ends[0]], cuts, [ends[1]]]),
            np.append(values, values[-1]),
            where="post",
            color=BLUE,
        )
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.set_title(f"feature {j}" if names is None else names[j], fontsize="medium")
    return axes


def staircase(model, feature: int, output: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds of one feature of an additive model, and its part of the score in each cell between."""
    reads = model.feature == feature
    cuts = np.unique(model.threshold[reads])
    trees = np.unique(model.tree_of_node[reads])
    cells = np.concatenate([[-np.inf], cuts])
    values = np.zeros(len(cells))
    for tree in trees:
        for place, x in enumerate(cells):
            node = int(model.tree_offsets[tree])
            while model.feature[node] >= 0:
                node = int(model.left[node] if x < model.threshold[node] else model.right[node])
            values[place] += model.value[node, output]
    return cuts, values


def _column(model, names, feature) -> int:
    if isinstance(feature, str):
        if names is None or feature not in names:
            raise InvalidInputError(must_be("features", "features of the model", feature))
        return list(names).index(feature)
    if not 0 <= int(feature) < model.n_features:
        raise InvalidInputError(must_be("features", f"columns from 0 to {model.n_features - 1}", feature))
    return int(feature)


def _many_axes(count: int):
    wide = min(3, count)
    tall = -(-count // wide)
    size = (3.2 * wide, 2.4 * tall)
    axes = _pyplot().subplots(tall, wide, figsize=size, layout="constrained", squeeze=False)[1]
    for ax in np.ravel(axes)[count:]:
        ax.set_visible(False)
    return axes
