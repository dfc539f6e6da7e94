"""What a model is, in a few lines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .ensemble import TreeEnsemble


@dataclass(frozen=True)
class Summary:
    """Facts of an ensemble; prints as a small table."""

    source: str
    trees: int
    leaves: int
    max_depth: int
    features: int
    features_used: int
    classes: list[Any]
    decision_rule: str
    dtype: str
    sum_dtype: str
    additive: bool
    accepts_missing: bool
    notes: list[str]

    @classmethod
    def of(cls, model: TreeEnsemble) -> Summary:
        if model.n_outputs > 1:
            rule = "the class with the largest score, the first of equals"
        else:
            rule = (
                f"class {model.classes[1]!s} above {model.cut:g}, class {model.classes[0]!s} below, "
                f"class {model.classes[model.zero_class]!s} at exactly {model.cut:g}"
            )
        source = " ".join(str(model.source[key]) for key in ("library", "version") if key in model.source)
        return cls(
            source=source or "plain trees",
            trees=model.n_trees,
            leaves=model.n_leaves,
            max_depth=int(depths(model).max(initial=0)),
            features=model.n_features,
            features_used=len(model.used_features),
            classes=np.asarray(model.classes).tolist(),
            decision_rule=rule,
            dtype=model.dtype,
            sum_dtype=model.sum_dtype,
            additive=model.is_additive,
            accepts_missing=model.accepts_missing,
            notes=list(model.source.get("notes", [])),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        rows = {
            "source": self.source,
            "trees": f"{self.trees} (depth up to {self.max_depth}, {self.leaves} leaves)",
            "features": f"{self.features} ({self.features_used} used)",
            "classes": ", ".join(map(str, self.classes)),
            "decision": self.decision_rule,
            "inputs": f"{self.dtype}, leaves added in {self.sum_dtype}"
            + (", missing values allowed" if self.accepts_missing else ""),
            "additive": "yes: each tree reads one feature" if self.additive else "no",
        }
        lines = [f"{name:<9} {text}" for name, text in rows.items()]
        return "\n".join(lines + [f"note      {note}" for note in self.notes])

    __repr__ = __str__


def depths(model: TreeEnsemble) -> np.ndarray:
    """Depth of each node (roots are at 0)."""
    depth = np.zeros(len(model.feature), dtype=np.int64)
    nodes = model.tree_offsets[:-1]
    level = 0
    while len(nodes):
        depth[nodes] = level
        inner = nodes[model.feature[nodes] >= 0]
        nodes = np.concatenate([model.left[inner], model.right[inner]])
        level += 1
    return depth
