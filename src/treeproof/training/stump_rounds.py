"""Robust boosting of decision stumps for one problem with two classes: the loop over rounds (paper section 4.1).

Each round raises eps by the schedule, finds the stump of least robust loss (`stump_search`), shrinks it by
the learning rate, or, when corrective, refits all leaf values together (`stump_refit`).
Cost: about one pass over rows x features a round, plus the tables of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..model import TreeEnsemble
from .base import BinaryFit, BinaryTask
from .progress import Progress, tell_round
from .schedule import schedule_of
from .stump_bins import columns_of
from .stump_costs import Costs, costs_of
from .stump_exchange import exchanged, sampled
from .stump_refit import Refit, polished
from .stump_screen import Columns
from .stump_search import Choice, RoundSearch, Rows
from .stump_tables import Stairs, room_for, stairs_of, worst_margins
from .stump_weights import best_leaves

REFIT_STEPS, LAST_REFIT_STEPS, POLISH_STEPS = 25, 100, 60
# share of its gain that the best single stump must keep at full eps, or else eps grows over all rounds. The paper's
# small radii leave 0.38 to 0.76 of it, its large ones 0 to 0.05 (benchmarks/stump_settings.py prints them)
STURDY = 0.1


@dataclass(frozen=True)
class Settings:
    """Checked parameters of `StumpBoostingClassifier`, as the loop reads them."""

    norm: float
    eps: float
    bound: str
    precision: float | None
    loss: Any
    rounds: int
    learning_rate: float
    max_weight: float
    thresholds: str
    max_bins: int | None
    share: Callable[[int], float] | None  # None: decided by the data
    shape: Any
    corrective: bool
    penalty: float
    exchanges: int
    polish: bool
    subsample: float
    patience: int | None
    validation_fraction: float
    threads: int
    verbose: int

    def radius(self, share: float) -> float:
        """The radius at a share of eps; whole features for p = 0."""
        return float(np.rint(self.eps * share)) if self.norm == 0 and share < 1 else self.eps * share

    def costs(self, share: float = 1.0, bound: str | None = None) -> Costs:
        """Costs at a share of eps; a budget below the precision is one free level."""
        eps = self.radius(share)
        precision = self.precision
        if precision is not None and 0 < self.norm < np.inf:
            precision = min(precision, eps**self.norm) or None
        return costs_of(self.norm, eps, self.bound if bound is None else bound, precision)


class Stage(NamedTuple):
    """A model on the way."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    base: float


@dataclass
class Stumps:
    """The model so far: stumps, a base, and what it was after each round (`corrective` changes all values)."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    base: float = 0.0
    stages: list[Stage] = field(default_factory=list)

    def stairs(self) -> Stairs:
        return stairs_of(self.feature, self.threshold, self.left, self.right, self.base)

    @classmethod
    def of(cls, stage: Stage, stages: list[Stage]) -> Stumps:
        """The model at a stage, to go on with."""
        feature, threshold, left, right, base = stage
        return cls(list(feature), list(threshold), list(left), list(right), base, stages)

    def stage(self) -> Stage:
        return Stage(tuple(self.feature), tuple(self.threshold), tuple(self.left), tuple(self.right), self.base)

    def at_stage(self, count: int) -> Stumps:
        """The model after `count` rounds."""
        if not self.stages:
            return self.copy()
        return Stumps.of(self.stages[count - 1], self.stages[:count])

    def copy(self) -> Stumps:
        return Stumps.of(self.stage(), list(self.stages))

    def without(self, number: int) -> Stumps:
        """The model without one stump, whose mean value stays."""
        rest = self.copy()
        rest.base += 0.5 * (rest.left[number] + rest.right[number])
        for values in (rest.feature, rest.threshold, rest.left, rest.right):
            del values[number]
        return rest

    def candidates(self, columns: Columns) -> list[int]:
        """Numbers of the candidates that the model has already: refitting them again would add nothing."""
        numbers: list[int] = []
        for feature, threshold in zip(self.feature, self.threshold, strict=True):
            first, last = columns.start[feature], columns.start[feature + 1]
            numbers += (first + np.flatnonzero(columns.edge[first:last] == threshold)).tolist()
        return numbers

    def add(self, feature: int, threshold: float, left: float, right: float) -> None:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.left.append(left)
        self.right.append(right)

    def take(self, stairs: Stairs) -> None:
        """Adopt the values of staircases over the same thresholds; each step is shared by both leaves."""
        steps = {}
        for u, feature in enumerate(stairs.feature):
            first, last = stairs.start[u], stairs.start[u + 1]
            cells = stairs.cell[first + u : last + u + 1]
            for edge, step in zip(stairs.edge[first:last], np.diff(cells), strict=True):
                steps[int(feature), float(edge)] = float(step)
        self.base = float(stairs.base + stairs.cell[stairs.start[:-1] + np.arange(len(stairs.feature))].sum())
        for t, key in enumerate(zip(self.feature, self.threshold, strict=True)):
            step = steps.pop(key, 0.0)  # a repeated threshold carries its step once
            self.left[t], self.right[t] = -0.5 * step, 0.5 * step
            self.base += 0.5 * step

    def ensemble(self, n_features: int) -> TreeEnsemble:
        return TreeEnsemble.from_stumps(
            np.array(self.feature, dtype=np.int64),
            np.array(self.threshold),
            np.array(self.left),
            np.array(self.right),
            n_features=n_features,
            base=self.base,
        )


class Boosting:
    """One run of the loop on one task."""

    def __init__(self, settings: Settings, task: BinaryTask):
        self.settings, self.rng = settings, task.rng
        X, y, weight = task.X, task.y, task.sample_weight
        self.validation = None if task.X_val is None else (task.X_val, task.y_val)
        if self.validation is None and settings.patience is not None:
            X, y, weight, self.validation = hold_out(X, y, weight, settings.validation_fraction, task.rng)
        columns = columns_of(X, settings.thresholds, settings.max_bins, settings.eps)
        self.rows = Rows(X, columns, y, weight)
        self.model = Stumps() if task.previous is None else task.previous.state.copy()
        self.history: dict[str, list] = {name: [] for name in ("eps", "loss", "clean_error", "verified_error")}
        if self.validation is not None:
            self.history["validation_verified_error"] = []
        if task.previous is not None:
            self.history = {name: list(task.previous.history.get(name, [])) for name in self.history}
        self.progress = Progress(settings.verbose)
        self.label = task.label
        self.full = settings.costs()
        self.share = settings.share if settings.share is not None else self.chosen_schedule()

    def chosen_schedule(self) -> Callable[[int], float]:
        """All rounds if the best first stump loses too much of its gain at the full eps, else none."""
        settings = self.settings
        # early stopping waits for the full eps, and its rounds are a bound rather than a plan
        length = settings.rounds if settings.patience is None else max(1, settings.rounds // 2)
        kept, whole = self.first_gains()
        return schedule_of(None if kept >= STURDY * whole else length, settings.shape, settings.rounds)

    def first_gains(self) -> tuple[float, float]:
        """By how much the best first stump lowers the robust loss of the best constant, at the full eps and at 0."""
        settings, rows = self.settings, self.rows
        if settings.eps == 0 or not len(rows.columns.edge):
            return 0.0, 0.0
        away = np.full(len(rows.y), np.inf)
        constant = best_leaves(np.zeros(len(rows.y)), away, rows.y, rows.weight, settings.loss, settings.max_weight)
        empty = Stumps().stairs()
        gains = []
        for costs in (self.full, costs_of(settings.norm, 0.0, "exact", None)):
            search = RoundSearch(rows, empty, costs, settings.loss, settings.max_weight, settings.threads)
            found = search.best()
            gains.append(constant.loss - found.loss if found is not None else 0.0)
        return gains[0], gains[1]

    def run(self) -> BinaryFit:
        """All rounds, with early stopping."""
        settings = self.settings
        best_error, best_round = np.inf, 0
        fresh = len(self.model.stages)
        for number in range(len(self.model.stages), settings.rounds):
            if not self.round(number):
                break
            if self.validation is None or settings.patience is None or self.share(number) < 1.0:
                continue
            error = self.history["validation_verified_error"][-1]
            if error < best_error:
                best_error, best_round = error, number + 1
            elif number + 1 - best_round >= settings.patience:
                break
        if best_round and settings.patience is not None:
            self.model = self.model.at_stage(best_round)
            self.history = {name: values[:best_round] for name, values in self.history.items()}
        if settings.corrective and len(self.model.stages) > fresh:
            self.finish()
        return BinaryFit(self.model.ensemble(self.rows.X.shape[1]), self.history, self.model)

    def round(self, number: int) -> bool:
        """Add one stump; False when there is nothing to add."""
        settings, model = self.settings, self.model
        costs = settings.costs(self.share(number))
        choice = self.choose(costs)
        if choice is None:
            self.constant()
            return False
        rate = 1.0 if settings.corrective else settings.learning_rate
        model.add(choice.feature, choice.threshold, rate * choice.left, rate * choice.right)
        if settings.corrective:
            self.refit(costs, REFIT_STEPS)
        model.stages.append(model.stage())
        self.report(number, costs)
        return True

    def finish(self) -> None:
        """Exchanges, the last refit, at the whole eps however far the schedule came, and the polish."""
        settings, rows = self.settings, self.rows
        if not self.model.feature:
            return
        # a large eps can make the constant the loss's optimum: keep what proves more training rows
        tries = [self.model.copy()]
        if settings.exchanges:
            tries.append(exchanged(self.model, rows, self.full, settings, self.rng))
        for start in tuple(tries):
            self.model = start.copy()
            self.refit(self.full, LAST_REFIT_STEPS)
            tries.append(self.model)
        if settings.polish:
            for start in tuple(tries):
                sharp = polished(rows.X, rows.y, rows.weight, start.stairs(), self.full, POLISH_STEPS, self.rng)
                tries.append(start.copy())
                tries[-1].take(sharp)
        lost = []
        for self.model in tries:
            margin = self.margins(rows.X, rows.y, self.full)
            lost.append((float(rows.weight @ (margin <= 0)), float(rows.weight @ settings.loss.value(margin))))
        self.model = tries[lost.index(min(lost))]
        self.model.stages[-1] = self.model.stage()
        for values in self.history.values():
            del values[-1]
        self.report(len(self.model.stages) - 1, self.full)

    def choose(self, costs: Costs) -> Choice | None:
        """The best stump on this round's rows."""
        settings, rows = self.settings, self.rows
        if settings.subsample < 1.0:
            rows = sampled(rows, max(2, int(np.ceil(settings.subsample * len(rows.y)))), self.rng)
        search = RoundSearch(rows, self.model.stairs(), costs, settings.loss, settings.max_weight, settings.threads)
        return search.best(self.model.candidates(rows.columns) if settings.corrective else ())

    def refit(self, costs: Costs, steps: int) -> None:
        settings, rows = self.settings, self.rows
        joint = Refit(rows.X, rows.y, rows.weight, self.model.stairs(), costs, settings.loss, settings.penalty)
        self.model.take(joint.run(steps, self.rng)[1])

    def constant(self) -> None:
        """Without any candidate the best model is a constant."""
        if self.model.feature:
            return
        rows, settings = self.rows, self.settings
        margins = rows.y * self.model.base
        away = np.full(len(margins), np.inf)
        leaves = best_leaves(margins, away, rows.y, rows.weight, settings.loss, settings.max_weight)
        self.model.base += leaves.left

    def margins(self, X, y, costs: Costs) -> np.ndarray:
        """Worst margins of the present model."""
        out = np.empty(len(y))
        stairs = self.model.stairs()
        worst_margins(X, y, stairs, costs, room_for(stairs), out)
        return out

    def report(self, number: int, costs: Costs) -> None:
        """One entry of the history, and one line of progress."""
        settings, rows = self.settings, self.rows
        weight = rows.weight / rows.weight.sum()
        now = self.margins(rows.X, rows.y, costs)
        full = now if costs == self.full else self.margins(rows.X, rows.y, self.full)
        clean = self.margins(rows.X, rows.y, costs_of(settings.norm, 0.0, "exact", None))
        entry = {
            "eps": settings.eps if costs is self.full else settings.radius(self.share(number)),
            "loss": float(weight @ settings.loss.value(now)),
            "clean_error": float(weight @ (clean <= 0)),
            "verified_error": float(weight @ (full <= 0)),
        }
        text = (
            f"{self.label}: stump {number + 1}/{settings.rounds} on feature {self.model.feature[-1]}, "
            f"eps {entry['eps']:.4g}, loss {entry['loss']:.4f}, training error clean {entry['clean_error']:.2%}, "
            f"verified {entry['verified_error']:.2%}"
        )
        if self.validation is not None:
            X_val, y_val = self.validation
            wrong = self.margins(X_val, y_val, settings.costs(bound="exact")) <= 0
            entry["validation_verified_error"] = float(np.mean(wrong))
            text += f", validation verified {entry['validation_verified_error']:.2%}"
        for name, value in entry.items():
            self.history[name].append(value)
        self.progress.line(text)
        tell_round(self.label, number + 1, settings.rounds)


def hold_out(X, y, weight, fraction: float, rng: np.random.Generator):
    """Set a fraction of each class aside: (X, y, weight, (X_val, y_val)); a class keeps at least one row."""
    aside = np.zeros(len(y), dtype=bool)
    for sign in (-1.0, 1.0):
        mine = rng.permutation(np.flatnonzero(y == sign))
        aside[mine[: min(len(mine) - 1, int(np.ceil(fraction * len(mine))))]] = True
    return X[~aside], y[~aside], weight[~aside], (X[aside], y[aside])
