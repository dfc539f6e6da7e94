"""Plots of curves over boosting rounds (the paper's figure 2), as small SVG drawings made by hand."""

from __future__ import annotations

from html import escape

from .report import Report, Section

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 360, 60, 50, 20, 170
COLOURS = ("#d1495b", "#00798c", "#edae49", "#66a182")


def names(section: Section) -> list[str]:
    """File names of the section's plots."""
    return [f"{section.name}-{number}.svg" for number in range(1, len(section.curves) + 1)]


def drawings(report: Report) -> dict[str, str]:
    """Every plot of the report, by file name."""
    return {
        name: curve_plot(curves, section.title)
        for section in report.sections
        for name, curves in zip(names(section), section.curves, strict=True)
    }


def curve_plot(curves: dict[str, list[float]], title: str) -> str:
    """Lines over rounds 1, 2, ...: errors in percent from 0 to 100."""
    rounds = max(len(values) for values in curves.values())
    across = (WIDTH - LEFT - RIGHT) / max(1, rounds - 1)

    def place(index: int, value: float) -> tuple[float, float]:
        return LEFT + across * index, TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / 100)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12" fill="gray">'
    ]
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
