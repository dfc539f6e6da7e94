"""Plain descriptions of a model and of a threat: lists and numbers only, the oracle's whole input."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class PlainModel:
    """Trees in the `from_trees` form (``x < threshold`` goes left, leaves have feature -1), decision rule."""

    trees: list[dict]
    n_features: int
    n_outputs: int = 1
    base: list[float] = field(default_factory=lambda: [0.0])
    zero_class: int = 0
    cut: float = 0.0
    dtype: str = "float64"
    sum_dtype: str = "float64"
    accepts_missing: bool = False

    def leaf_values(self, tree: dict, node: int) -> list[float]:
        value = tree["value"][node]
        return list(value) if isinstance(value, (list, tuple)) else [value]


@dataclass
class PlainThreat:
    """What the adversary may do. `None` means: every scale 1, nothing frozen, no range, both directions."""

    norm: float
    eps: float = 0.0
    scale: list[float] | None = None
    frozen: list[bool] | None = None
    lower: list[float] | None = None
    upper: list[float] | None = None
    direction: list[int] | None = None

    def of(self, feature: int) -> tuple[float, bool, float, float, int]:
        """Scale, frozen, lower, upper and direction of one feature."""
        return (
            1.0 if self.scale is None else self.scale[feature],
            False if self.frozen is None else self.frozen[feature],
            -math.inf if self.lower is None else self.lower[feature],
            math.inf if self.upper is None else self.upper[feature],
            0 if self.direction is None else self.direction[feature],
        )


def stump(feature: int, threshold: float, left, right) -> dict:
    """A plain tree with one split."""
    zero = [0.0] * len(left) if isinstance(left, list) else 0.0
    return {
        "feature": [feature, -1, -1],
        "threshold": [threshold, 0.0, 0.0],
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "value": [zero, left, right],
    }


def leaf(value) -> dict:
    """A plain tree that is one leaf."""
    return {"feature": [-1], "threshold": [0.0], "left": [-1], "right": [-1], "value": [value]}


def nested(node) -> dict:
    """A plain tree from nested tuples ``(feature, threshold, left, right)``; the rest are leaf values."""
    tree: dict[str, list] = {"feature": [], "threshold": [], "left": [], "right": [], "value": []}

    def add(part) -> int:
        here = len(tree["feature"])
        for column in tree:
            tree[column].append({"threshold": 0.0, "value": None}.get(column, -1))
        if isinstance(part, tuple):
            tree["feature"][here], tree["threshold"][here] = part[0], part[1]
            tree["left"][here] = add(part[2])
            tree["right"][here] = add(part[3])
        else:
            tree["value"][here] = part
        return here

    add(node)
    sample = next(value for value in tree["value"] if value is not None)
    blank = [0.0] * len(sample) if isinstance(sample, list) else 0.0
    tree["value"] = [blank if value is None else value for value in tree["value"]]
    return tree
