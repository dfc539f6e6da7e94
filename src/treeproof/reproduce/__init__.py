"""The paper, measured again: every table of Wang et al. (ICML 2020), the paper's figures beside ours.

``treeproof reproduce`` is the command; `run` is the function behind it. One file a table; each finished
cell is kept at once, so an interrupted run goes on where it stopped (docs/reproducing.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from .._errors import InvalidInputError, must_be
from .report import Report
from .settings import FULL, QUICK, Settings

__all__ = ["DATASETS", "TABLES", "Report", "run"]

DATASETS = ("breast-cancer", "diabetes", "fashion-shoes", "mnist-1-5", "mnist-2-6")

# name -> (module, function): modules are imported when their table is asked for
TABLES = {
    "stump-verification": ("stump_verification", "table"),
    "tree-verification": ("tree_verification", "table"),
    "l1-stump-training": ("stump_training", "l1_table"),
    "l2-stump-training": ("stump_training", "l2_table"),
    "l1-tree-training": ("tree_training", "l1_table"),
    "l2-tree-training": ("tree_training", "l2_table"),
    "linf-robustness": ("linf_robustness", "table"),
    "equal-eps": ("equal_eps", "table"),
    "figure-2": ("figure_2", "table"),
    "frontier": ("frontier", "table"),
}


def run(
    tables: Iterable[str] | None = None,
    *,
    datasets: Iterable[str] | None = None,
    quick: bool = False,
    out: str | os.PathLike = "reproduction",
    resume: bool = True,
    models: str | os.PathLike | None = None,
    train_rows: int | None = None,
    n_jobs: int = 1,
    progress: Callable | None = None,
) -> Report:
    """Measure tables of the paper again and write the report into a folder.

    Parameters
    ----------
    tables : names, optional
        Keys of `TABLES`; all by default.
    datasets : names, optional
        Rows of these data sets only (`DATASETS`).
    quick : bool
        Reduced rows, clearly marked: every table in minutes.
    out : path
        Folder for finished cells, models and the report (reproduction.md, .html, .csv, .json).
    resume : bool
        Keep the cells that `out` already holds.
    models : path, optional
        A folder with the models that the paper's authors published; by default ``models`` beside the
        folder that ``TREEPROOF_DATA`` names, if there is one.
    train_rows : int, optional
        Train on this many rows of the image sets at most, for a run between quick and full (marked).
    n_jobs : int
        Processes that work on tasks at once, each on one thread, so that CPU times compare. They are
        spawned: a script that asks for more than one needs ``if __name__ == "__main__":``.
    progress : callable, optional
        Called with a `runner.Event` at every step.

    Returns
    -------
    Report
    """
    from . import runner

    chosen = _known("tables", tables, TABLES)
    wanted = None if datasets is None else tuple(_known("datasets", datasets, DATASETS))
    if n_jobs < 1:
        raise InvalidInputError(must_be("n_jobs", "at least 1", n_jobs))
    size = QUICK if quick else FULL
    if train_rows is not None:
        if train_rows < 100:
            raise InvalidInputError(must_be("train_rows", "at least 100", train_rows))
        size = replace(size, train_rows=train_rows)
    words = {
        "--datasets": ",".join(wanted or ()), "--train-rows": train_rows, "--models": models, "--jobs": n_jobs,
    }  # fmt: skip
    command = ["treeproof reproduce", *(chosen if tables is not None else []), *(["--quick"] if quick else [])]
    command += [f"{option} {value}" for option, value in words.items() if value]
    data = os.environ.get("TREEPROOF_DATA")
    command = [f"TREEPROOF_DATA={data}", *command] if data else command
    settings = Settings(size, wanted, _models(models), " ".join(command))
    build = partial(_build, chosen, settings)
    return runner.run(build(), Path(out), settings, resume=resume, progress=progress, processes=n_jobs, build=build)


def _build(names: list[str], settings: Settings) -> list:
    """The tables of these names, for a run of this size."""
    found = []
    for name in names:
        module, function = TABLES[name]
        found.append(getattr(import_module(f".{module}", __name__), function)(settings))
    return found


def _known(name: str, asked: Iterable[str] | None, known: Iterable[str]) -> list[str]:
    known = list(known)
    asked = known if asked is None else list(asked)
    if not asked:
        raise InvalidInputError(must_be(name, "among " + ", ".join(known), asked))
    for one in asked:
        if one not in known:
            raise InvalidInputError(must_be(name, "among " + ", ".join(known), one))
    return [one for one in known if one in asked]


def _models(folder: str | os.PathLike | None) -> Path | None:
    from .workshop import AUTHORS, authors_file

    if folder is not None:
        path = Path(folder)
        if not path.is_dir():
            raise InvalidInputError(must_be("models", "an existing folder", str(folder)))
        if not any(authors_file(path, name) for name in AUTHORS.values()):
            files = ", ".join(AUTHORS.values())
            raise InvalidInputError(must_be("models", f"a folder with at least one of {files}", str(folder)))
        return path
    data = os.environ.get("TREEPROOF_DATA")
    beside = Path(os.path.normpath(Path(data) / ".." / "models")) if data else None
    return beside if beside is not None and beside.is_dir() else None
