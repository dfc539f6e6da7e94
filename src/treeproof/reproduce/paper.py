"""The paper's own figures, as data (``paper.json``): the tables of Wang et al., ICML 2020."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def figures() -> dict[str, Any]:
    """The whole file: one list of rows a table, errors in percent, seconds on the authors' machine."""
    return json.loads(resources.files(__package__).joinpath("paper.json").read_text(encoding="utf-8"))


def rows(table: str) -> list[dict[str, Any]]:
    """The rows of one of the paper's tables."""
    return figures()[table]
