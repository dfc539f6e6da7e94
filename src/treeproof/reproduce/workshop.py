"""Where tasks get what they need: data sets, trained models (kept, so trained once), rows to verify."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from .. import datasets
from .._errors import InvalidInputError, TreeproofError
from ..model import TreeEnsemble
from . import trainers
from .settings import Settings
from .store import CellStore, file_name, write_atomically

AUTHORS = {  # what the paper's authors published, by kind and data set
    ("stumps", "breast-cancer"): "stumps_breast_cancer_linf.json",
    ("stumps", "diabetes"): "stumps_diabetes_linf.json",
    ("stumps", "mnist-1-5"): "stumps_mnist_1_5_linf.json",
    ("trees", "mnist-1-5"): "trees_mnist_1_5_linf.json",
}
SEED = 0
COMPILING_ROWS = 60


@dataclass(frozen=True)
class ModelSpec:
    """A model, by all that determines it.

    Attributes
    ----------
    kind : {"stumps", "trees", "additive", "authors"}
    dataset : str
    norm : float or None
        What it is trained against; None is standard training.
    eps : float
    options : dict
        Further parameters of the estimator; for "authors" the file's name.
    train_rows : int or None
        How many training rows (chosen by a fixed seed); None is all.
    """

    kind: str
    dataset: str
    norm: float | None = None
    eps: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    train_rows: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "dataset": self.dataset, "source": datasets.source(self.dataset),
            "norm": str(self.norm), "eps": self.eps,
            "options": dict(self.options), "train_rows": self.train_rows, "seed": SEED,
        }  # fmt: skip

    @property
    def name(self) -> str:
        """In words: "mnist-2-6/5 trees of depth 5, corrective/l1 0.6"; `settings` has every option."""
        if self.kind == "authors":
            return f"{self.dataset}/the authors' model"
        words = f"{self.options['n_estimators']} {self.kind}" if "n_estimators" in self.options else self.kind
        words += f" of depth {self.options['max_depth']}" if "max_depth" in self.options else ""
        words += ", corrective" if self.options.get("corrective") else ""
        return f"{self.dataset}/{words}/{trainers.words(self.norm, self.eps)}"


@dataclass(frozen=True)
class BuiltModel:
    """A model with what is known of its making; `seconds` are CPU seconds of all threads, after compilation."""

    ensemble: TreeEnsemble
    seconds: float
    facts: Mapping[str, Any]


class Workshop:
    """Data and models of one run. `settings.models` names a folder with the authors' models."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings
        self.store = CellStore(folder)
        # one image set is 75 MB: keep the two that neighbouring tasks use
        self._loaded = lru_cache(maxsize=2)(datasets.load)
        self._missing: dict[str, TreeproofError] = {}

    def data(self, name: str) -> datasets.Dataset:
        """A data set; one that cannot be had is asked for once, not by every task anew."""
        source = datasets.source(name)  # two pairs of digits are one download
        if source in self._missing:
            raise self._missing[source]
        try:
            return self._loaded(name)
        except TreeproofError as error:
            self._missing[source] = error
            raise

    def test_rows(self, name: str, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
        """The test rows, or `limit` of them (by a fixed seed; a smaller choice is part of a larger one)."""
        data = self.data(name)
        chosen = choose(len(data.X_test), limit)
        return data.X_test[chosen], data.y_test[chosen]

    def training_rows(self, name: str, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
        """The training rows, or `limit` of them."""
        data = self.data(name)
        chosen = choose(len(data.X_train), limit)
        return data.X_train[chosen], data.y_train[chosen]

    def model(self, spec: ModelSpec) -> BuiltModel:
        """The model of `spec`: read back, or trained (or read from the authors' file) and kept."""
        path = self.folder / "models" / (file_name(spec.name, spec.settings) + ".json")
        built = _read_model(path)
        if built is not None:
            return built
        if spec.kind == "authors":
            return self._authors(spec)
        X, y = self.training_rows(spec.dataset, spec.train_rows)
        few = choose(len(X), COMPILING_ROWS)
        trainers.make(spec, brief=True).fit(X[few], y[few])  # so that compiling is not timed
        estimator = trainers.make(spec)
        start = time.process_time()
        estimator.fit(X, y)
        seconds = time.process_time() - start
        built = BuiltModel(estimator.ensemble_, seconds, {"rows": len(X), "estimator": repr(estimator)})
        _write_model(path, built)
        return built

    def _authors(self, spec: ModelSpec) -> BuiltModel:
        file = authors_file(self.settings.models, spec.options["file"])
        if file is None:
            raise InvalidInputError(f"The authors' model {spec.options['file']} must be in the models folder.")
        ensemble = trainers.read_authors(file, self.data(spec.dataset).n_features)
        return BuiltModel(ensemble, 0.0, {"file": file.name})


def choose(count: int, limit: int | None) -> np.ndarray:
    """Positions of `limit` of `count` rows, in order; the same for everyone who asks."""
    if limit is None or limit >= count:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).permutation(count)[:limit])


def authors_spec(folder: Path | None, kind: str, dataset: str) -> ModelSpec | None:
    """The published model for a data set, if its file is there; other contents make another model."""
    name = AUTHORS.get((kind, dataset))
    file = authors_file(folder, name) if name else None
    if file is None:
        return None
    return ModelSpec("authors", dataset, options={"file": file.name, "sha256": sha256(file.read_bytes()).hexdigest()})


def authors_file(folder: Path | None, name: str) -> Path | None:
    """A model file in the folder of published models or its ``authors`` subfolder, if it is there."""
    if folder is not None:
        for path in (folder / name, folder / "authors" / name):
            if path.is_file():
                return path
    return None


def _read_model(path: Path) -> BuiltModel | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return BuiltModel(TreeEnsemble.from_json(content["model"]), content["seconds"], content["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there, or damaged: then it is made again


def _write_model(path: Path, built: BuiltModel) -> None:
    content = {"seconds": built.seconds, "facts": dict(built.facts), "model": built.ensemble.to_json()}
    write_atomically(path, json.dumps(content))
