"""Code blocks of Markdown pages, for the tests that run them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of one language in a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def same_story(said: str, printed: str, tolerance: float = 0.25) -> None:
    """The same words, and numbers within a tolerance (times of one machine are left out).

    Training and libraries differ in the last digits between machines, which may move a row; a figure that is
    plainly not what the code prints must fail.
    """
    number = r"\d+(?:\.\d+)?"
    strip = [re.sub(rf"; {number}(?:e-\d+)? s$", "; s", text, flags=re.MULTILINE) for text in (said, printed)]
    words = [re.sub(rf"{number}|\s+|[─━]+", " ", text).split() for text in strip]
    assert words[0] == words[1]
    numbers = [[float(one) for one in re.findall(number, text)] for text in strip]
    for left, right in zip(*numbers, strict=True):
        assert abs(left - right) <= tolerance * max(left, right) or abs(left - right) <= 1, (left, right)
