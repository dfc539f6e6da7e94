"""SVG charts by hand: a frame with axes, and the four shapes that the report draws in it.

Colours are CSS classes of the page, so that one drawing serves light and dark. Every chart has a text
that says what it shows (for screen readers). Text is sized for a chart between 320 and 560 pixels wide.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import numpy as np

from .words import figure

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 14, 44


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from `low` to `high`."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * (1 - 1e-9))
    first = np.ceil(low / step - 1e-9) * step
    return [float(round(first + i * step, 12)) for i in range(int((high - first) / step + 1e-6) + 1)]


class Frame:
    """Axes over a range of numbers; collects the parts of one SVG."""

    def __init__(self, x_end: float, y_end: float, label: str, x_name: str, y_name: str, x_whole: bool = False):
        self.x_end, self.y_end = x_end or 1.0, y_end or 1.0
        self.label, self.names = label, (x_name, y_name)
        self.x_whole = x_whole
        self.y_most = np.inf  # no tick above this: shares end at 1, the space above is for words
        self.parts: list[str] = []

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_end

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.y_end

    def axes(self, y_text: Callable[[float], str]) -> None:
        for value in ticks(0, self.y_end, 5):
            if value > self.y_most:
                continue
            y = self.y(value)
            self.parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            self.parts.append(
                f'<text class="tick" x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{y_text(value)}</text>'
            )
        for value in ticks(0, self.x_end, 5):
            if self.x_whole and value != int(value):
                continue
            self.parts.append(
                f'<text class="tick" x="{self.x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" '
                f'text-anchor="middle">{figure(value)}</text>'
            )
        base = HEIGHT - BOTTOM
        self.parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>')
        middle, name = (LEFT + WIDTH - RIGHT) / 2, escape(self.names[0])
        self.parts.append(f'<text class="name" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{name}</text>')

    def steps(self, xs: np.ndarray, ys: np.ndarray) -> str:
        """Path data of a staircase: each value holds until the next x."""
        points = [f"M{self.x(xs[0]):.1f} {self.y(ys[0]):.1f}"]
        for i in range(1, len(xs)):
            if ys[i] != ys[i - 1]:
                points.append(f"H{self.x(xs[i]):.1f}V{self.y(ys[i]):.1f}")
        return "".join(points) + f"H{self.x(xs[-1]):.1f}"

    def line(self, xs, ys, css: str) -> None:
        self.parts.append(f'<path class="line {css}" d="{self.steps(xs, ys)}"/>')

    def band(self, xs, low, high, css: str) -> None:
        """The area between two staircases."""
        back = [f"L{self.x(xs[-1]):.1f} {self.y(low[-1]):.1f}"]
        for i in range(len(xs) - 1, 0, -1):
            if low[i] != low[i - 1]:
                back.append(f"H{self.x(xs[i]):.1f}V{self.y(low[i - 1]):.1f}")
        back.append(f"H{self.x(xs[0]):.1f}Z")
        self.parts.append(f'<path class="{css}" d="{self.steps(xs, high)}{"".join(back)}"/>')

    def mark_x(self, value: float, text: str) -> None:
        """A vertical line with a word at its top, on the side that has room."""
        x = self.x(value)
        side, shift = ("end", -5) if x > 0.7 * WIDTH else ("start", 5)
        self.parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{HEIGHT - BOTTOM}"/>')
        place = f'x="{x + shift:.1f}" y="{TOP + 6}" text-anchor="{side}"'
        self.parts.append(f'<text class="marktext" {place}>{escape(text)}</text>')

    def mark_y(self, value: float, text: str) -> None:
        """A horizontal dotted line with a word at its right end."""
        y = self.y(value)
        self.parts.append(f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        self.parts.append(
            f'<text class="tick" x="{WIDTH - RIGHT}" y="{y - 5:.1f}" text-anchor="end">{escape(text)}</text>'
        )

    def bar(self, left: float, right: float, height: float, css: str, title: str) -> None:
        """A column of a histogram, with a gap of two units to its neighbour."""
        x, wide = self.x(left) + 1, max(1.0, self.x(right) - self.x(left) - 2)
        y = self.y(height)
        tall = max(0.0, HEIGHT - BOTTOM - y)
        self.parts.append(
            f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" rx="1.5">'
            f"<title>{escape(title)}</title></rect>"
        )

    def text(self, extra: str = "") -> str:
        body = "".join(self.parts)
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(self.label)}"{extra}>{body}</svg>'
        )


def share_bar(parts: list[tuple[str, int, str]]) -> str:
    """One horizontal bar divided by counts: (CSS class, rows, title)."""
    total = sum(count for _, count, _ in parts) or 1
    x, out = 0.0, []
    for css, count, title in parts:
        wide = 1000 * count / total
        if wide:
            out.append(
                f'<rect class="{css}" x="{x + 1:.2f}" y="0" width="{max(wide - 2, 1):.2f}" '
                f'height="26" rx="3"><title>{escape(title)}</title></rect>'
            )
        x += wide
    label = "; ".join(title for _, count, title in parts if count)
    return (
        f'<svg class="sharebar" viewBox="0 0 1000 26" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(out)}</svg>'
    )
