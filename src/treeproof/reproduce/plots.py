"""Plots as small SVG drawings made by hand: verified errors beside the paper's, and curves over rounds (figure 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from .report import ROUNDING, Section
from .tasks import PERCENT

FOLDER = "plots"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 360, 60, 50, 20, 170
COLOURS = ("#d1495b", "#00798c", "#edae49", "#66a182")
LEAST = 0.1  # where the logarithmic axis of errors starts; smaller ones are drawn there


def of(section: Section) -> dict[str, str]:
    """The section's plots, by file name."""
    found = {f"{section.name}-{number}.svg": curve_plot(curves, section.title)
             for number, curves in enumerate(section.curves, 1)}  # fmt: skip
    pairs = compared(section)
    if pairs:
        found[f"{section.name}-compared.svg"] = comparison_plot(pairs, section.title)
    return found


def compared(section: Section) -> list[tuple[str, float, float]]:
    """Words, the paper's and our figure, of every finished error that the paper gives (clean errors aside)."""
    return [
        (f"{_row(line.labels)}: {cell.header}", cell.paper, float(cell.ours))
        for line in section.lines
        for cell in line.cells
        if cell.unit == PERCENT and cell.paper is not None and isinstance(cell.ours, (int, float))
        and "clean" not in cell.header
    ]  # fmt: skip


def _row(labels: Mapping[str, str]) -> str:
    """A line's labels in words; bare numbers keep their name."""
    return ", ".join(f"{key} {value}" if value[:1].isdigit() else value for key, value in labels.items())


def comparison_plot(pairs: list[tuple[str, float, float]], title: str) -> str:
    """One line a figure: the paper's as a circle, ours as a dot, over a logarithmic axis of errors in percent."""
    step, left, right = 18, 480, 950
    bottom = TOP + step * len(pairs)

    def across(value: float) -> float:
        return left + (right - left) * math.log(max(value, LEAST) / LEAST) / math.log(100 / LEAST)

    parts = [_start(right + 20, bottom + 60, title)]
    for level in (0.1, 0.3, 1, 3, 10, 30, 100):
        x = f"{across(level):.1f}"
        parts.append(f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}" stroke="gray" stroke-opacity="0.25"/>')
        parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{level:g}</text>')
    for number, (words, paper, ours) in enumerate(pairs):
        y, one, two = TOP + step * (number + 0.5), f"{across(paper):.1f}", f"{across(ours):.1f}"
        colour = "gray" if abs(ours - paper) <= ROUNDING else COLOURS[1] if ours < paper else COLOURS[0]
        parts.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(words)}</text>')
        parts.append(f'<line x1="{one}" x2="{two}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{one}" cy="{y}" r="4" fill="none" stroke="gray" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{two}" cy="{y}" r="4" fill="{colour}"/>')
    legend = "error in %: circle, the paper; dot, ours"
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 40}" text-anchor="middle">{legend}</text>')
    return "".join([*parts, "</svg>\n"])


def _start(width: float, height: float, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12" fill="gray">'
    )


def curve_plot(curves: dict[str, list[float]], title: str) -> str:
    """Lines over rounds 1, 2, ...: errors in percent from 0 to 100."""
    rounds = max(len(values) for values in curves.values())
    across = (WIDTH - LEFT - RIGHT) / max(1, rounds - 1)

    def place(index: int, value: float) -> tuple[float, float]:
        return LEFT + across * index, TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / 100)

    parts = [_start(WIDTH, HEIGHT, title)]
    for level in range(0, 101, 20):
        x, y = place(0, level)
        parts.append(
            f'<line x1="{x}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="gray" stroke-opacity="0.25"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{level}</text>')
    for index in range(rounds):
        if rounds <= 10 or (index + 1) % 5 == 0 or index == 0:
            x = place(index, 0)[0]
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{index + 1}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">stumps</text>')
    parts.append(
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">error in %</text>'
    )
    for number, (name, values) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        dash = "" if number < len(COLOURS) / 2 else ' stroke-dasharray="5 4"'
        points = " ".join("{:.1f},{:.1f}".format(*place(i, value)) for i, value in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        y = TOP + 16 + 20 * number
        x = WIDTH - RIGHT + 14
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{x + 24}" y="{y + 4}">{escape(name)}</text>')
    return "".join([*parts, "</svg>\n"])
