"""The report's charts: certified-error curve, histogram of radii, the features that adversaries use."""

from __future__ import annotations

import json
from html import escape

import numpy as np

from .analysis import Curve, FeatureUse
from .svg import Frame
from .words import figure, norm_name, percent, rows_of


def curve_chart(
    curve: Curve, norm: float, eps: float, clean: float | None, others: dict[str, Curve] | None = None
) -> str:
    """Verified and attack error over eps with the band between, the clean error and the chosen eps.

    `others` are further models' curves, of which the verified error is drawn.
    """
    others = others or {}
    highest = max(0.02, float(max(one.verified.max() for one in (curve, *others.values()))))
    top = min(1.12, 1.25 * highest)
    words = "verified error over eps" + ("" if curve.exact else ", and the attack error below it")
    frame = Frame(float(curve.eps[-1]), top, words, f"eps ({norm_name(norm)})", "error", norm == 0)
    frame.y_most = 1.0
    frame.axes(lambda value: f"{100 * value:g}%")
    for place, one in enumerate(others.values()):
        frame.line(one.eps, one.verified, f"other{place % 3}")
    if not curve.exact:
        frame.band(curve.eps, curve.attack, curve.verified, "band")
        frame.line(curve.eps, curve.attack, "attack")
    frame.line(curve.eps, curve.verified, "verified")
    if clean and not others:
        frame.mark_y(clean, f"clean error {percent(clean)}")
    if 0 < eps <= curve.eps[-1]:
        frame.mark_x(eps, f"eps = {figure(eps)}")
    frame.parts.append('<g class="cursor" hidden="hidden"><line class="mark"/></g>')
    points: dict[str, object] = {
        "eps": [float(f"{eps:.6g}") for eps in curve.eps],
        "attack": np.round(curve.attack, 5).tolist(),
        "verified": np.round(curve.verified, 5).tolist(),
        "whole": norm == 0,
    }
    return frame.text(f' data-curve="{escape(json.dumps(points, separators=(",", ":")))}"')


def radius_chart(radii, end: float, eps: float) -> str:
    """Histogram of the proved radii (lower bounds); misclassified rows are not in it."""
    lower = radii.lower if radii.correct is None else radii.lower[radii.correct]
    whole = radii.threat.norm == 0
    edges = _edges(end, eps, whole)
    counts, _ = np.histogram(lower[lower <= edges[-1]], edges)
    label = f"histogram of the radii of {rows_of(len(lower))}"
    name = "radius" + _beyond(lower, float(edges[-1]))
    frame = Frame(float(edges[-1]), max(1.0, 1.18 * counts.max()), label, name, "rows", whole)
    frame.axes(lambda value: f"{value:g}")
    for left, right, count in zip(edges[:-1], edges[1:], counts.tolist(), strict=True):
        if count:
            css = "bar weak" if right <= eps * (1 + 1e-9) or (whole and left <= eps) else "bar"
            where = f"radius {figure(left)}" if whole else f"radius {figure(left)} to {figure(right)}"
            frame.bar(left, right, count, css, f"{where}: {rows_of(count)}")
    if 0 < eps <= edges[-1] and not whole:
        frame.mark_x(eps, f"eps = {figure(eps)}")
    return frame.text()


def _edges(end: float, eps: float, whole: bool) -> np.ndarray:
    """Some two dozen bins; eps is an edge, so that no bar lies on both sides of it."""
    if whole:
        return np.arange(0, end + 2)
    if not 0 < eps < end:
        return np.linspace(0, end, 25)
    width = eps / max(1, round(24 * eps / end))
    return width * np.arange(int(np.ceil(end / width - 1e-9)) + 1)


def _beyond(lower: np.ndarray, end: float) -> str:
    far = int(np.sum(lower > end))
    return f" ({rows_of(far)} farther than {figure(end)})" if far else ""


def feature_bars(uses: list[FeatureUse], names, most: int = 10) -> str:
    """Horizontal bars as HTML: the share of witnesses that move each feature, and by how much."""
    lines = []
    largest = max(use.share for use in uses)
    for use in uses[:most]:
        way = "up" if use.up == use.count else ("down" if use.up == 0 else "both ways")
        wide = f"width:{100 * use.share / largest:.1f}%"
        note = f"{percent(use.share)} of flips, by {figure(use.mean_move)} {way}"
        lines.append(
            f'<div class="use"><span class="usename">{escape(names[use.feature])}</span>'
            f'<span class="track"><span class="fill" style="{wide}"></span></span>'
            f'<span class="usenote">{note}</span></div>'
        )
    rest = len(uses) - most
    more = f'<p class="small">and {rows_of(rest, "more feature")}.</p>' if rest > 0 else ""
    return f'<div class="uses">{"".join(lines)}</div>{more}'
