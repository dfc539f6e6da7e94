"""From the oracle's plain descriptions to treeproof's objects, and the judgement of its answers."""

from __future__ import annotations

from tests.naive.plain import PlainModel, PlainThreat

import treeproof


def to_ensemble(model: PlainModel) -> treeproof.TreeEnsemble:
    """The model that the verifiers are asked about."""
    return treeproof.TreeEnsemble.from_trees(
        model.trees,
        n_features=model.n_features,
        base=model.base,
        zero_class=model.zero_class,
        dtype=model.dtype,
        cut=model.cut,
        sum_dtype=model.sum_dtype,
        accepts_missing=model.accepts_missing,
    )


def to_threat(threat: PlainThreat) -> treeproof.Threat:
    """The threat that the verifiers are asked about."""
    return treeproof.Threat(**vars(threat))
