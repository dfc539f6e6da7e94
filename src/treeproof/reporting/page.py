"""The page around a report: its style (``page.css``, light and dark) and its small script (``page.js``).

Both are written into the page: a report is one file, and nothing comes from a network.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files

from .svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH


def page(title: str, body: str) -> str:
    """A whole HTML file."""
    style, script = (files(__package__).joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    for name, number in (("W", WIDTH), ("L", LEFT), ("R", RIGHT), ("T", TOP), ("B", HEIGHT - BOTTOM)):
        script = script.replace(f"__{name}__", str(number))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def card(title: str, note: str, body: str) -> str:
    """A titled part of the page; `note` and `body` are HTML."""
    small = f'<p class="small">{note}</p>' if note else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{small}{body}</section>'
