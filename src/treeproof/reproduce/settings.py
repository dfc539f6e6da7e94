"""How large a run is: the full experiments, or ``--quick``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SMALL = ("breast-cancer", "diabetes")  # never cut down: their test sets have 137 and 154 rows


@dataclass(frozen=True)
class Size:
    """What a run leaves out, if anything; `None` means all rows.

    Attributes
    ----------
    train_rows, tree_rows : int or None
        Training rows of the image sets, for stumps and additive models, and for trees.
    test_rows : int or None
        Test rows that are verified.
    epochs : int or None
        Most epochs of additive models on image sets; on few rows the estimator's own limit is many passes.
    row_seconds, milp_seconds : float
        Time limits a row; a row that hits one counts as not verified.
    """

    quick: bool = False
    train_rows: int | None = None
    test_rows: int | None = None
    epochs: int | None = None
    row_seconds: float = 20.0
    milp_seconds: float = 60.0

    def training(self, dataset: str) -> int | None:
        """How many training rows a stump or additive model gets."""
        return None if dataset in SMALL else self.train_rows

    def testing(self, dataset: str) -> int | None:
        """How many test rows are verified."""
        return None if dataset in SMALL else self.test_rows


FULL = Size()
QUICK = Size(quick=True, train_rows=800, test_rows=100, epochs=40, row_seconds=0.5, milp_seconds=5.0)


@dataclass(frozen=True)
class Settings:
    """One run: its size, which data sets, where the authors' models are, and the command that repeats it."""

    size: Size = FULL
    datasets: tuple[str, ...] | None = None
    models: Path | None = None
    command: str = ""

    def wants(self, dataset: str) -> bool:
        return self.datasets is None or dataset in self.datasets
