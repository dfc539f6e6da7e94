"""Results in a notebook: a small card with the figures and, for radii, the curve. Works in light and dark themes.

A notebook's page is not ours, so the style is inside the card and its colours follow the surrounding text.
"""

from __future__ import annotations

from html import escape

from . import charts, words
from .analysis import curve_end, error_curve

_STYLE = """<style>
.treeproof{font:14px/1.45 system-ui,sans-serif;max-width:560px;border:1px solid rgba(128,128,128,.35);
border-radius:10px;padding:12px 16px}
.treeproof b{font-size:1.25em}.treeproof .t{display:flex;gap:28px;margin:8px 0}
.treeproof .t span{display:block;opacity:.75;font-size:.9em}.treeproof .s{opacity:.7;font-size:.88em}
.treeproof .chart{width:100%;height:auto}.treeproof .chart text{font:12.5px system-ui,sans-serif;fill:currentColor;
opacity:.8}
.treeproof .grid{stroke:currentColor;opacity:.12}.treeproof .axis{stroke:currentColor;opacity:.6}
.treeproof .mark,.treeproof .level{stroke:currentColor;stroke-dasharray:3 3;opacity:.5}
.treeproof .line{fill:none;stroke:#4f7be8;stroke-width:2.2}.treeproof .line.attack{stroke:#d9701f}
.treeproof .band{fill:#4f7be8;opacity:.18}
</style>"""


def certificates_html(found) -> str:
    """The errors and the sentence."""
    figures = [] if found.clean_error is None else [("clean error", found.clean_error)]
    figures += [("attack error", found.attack_error), ("verified error", found.verified_error)]
    counts = words.split_counts(found)
    note = f"{counts['robust']:,} proved robust, {counts['unknown']:,} undecided; {found.method_reason}"
    return _box(words.headline(found), [(name, words.percent(share)) for name, share in figures], note)


def radii_html(found) -> str:
    """Mean and median radius, and the error over eps."""
    moves = words.norm_name(found.threat.norm)
    figures = [("mean radius", words.figure(found.mean)), ("median radius", words.figure(found.median))]
    if found.n_infinite:
        figures.append(("never flip", f"{found.n_infinite:,}"))
    drawn = ""
    if len(found):
        curve = error_curve(found, curve_end(found))
        drawn = charts.curve_chart(curve, found.threat.norm, 0.0, found.clean_error)
        read = "Share of rows that a move of at most eps makes wrong"
        drawn += f'<div class="s">{read}{"" if curve.exact else ": between attack and verified error"}.</div>'
    note = f"exact for {int(found.exact.sum()):,} rows; {found.method_reason}"
    return _box(f"Radii of {words.rows_of(len(found))}, {moves} moves", figures, note, drawn)


def _box(title: str, figures: list[tuple[str, str]], note: str, drawn: str = "") -> str:
    tiles = "".join(f"<div><b>{text}</b><span>{name}</span></div>" for name, text in figures)
    return (
        f'{_STYLE}<div class="treeproof"><div>{escape(title)}</div><div class="t">{tiles}</div>{drawn}'
        f'<div class="s">{escape(note)}</div></div>'
    )
