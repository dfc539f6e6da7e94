"""Exchange of single stumps at a fixed number of stumps, after corrective boosting has grown them.

Greedy growth never takes a stump back, though early ones were chosen against a smaller radius and without the
others. Here the stump whose loss hurts least is left out, the best stump beside the rest takes its place, all leaf
values are refitted, and the exchange stays if the robust loss has fallen. Cost: one round's search and one refit
an attempt, on at most MOST_ROWS rows; which stumps are tried first is judged on ORDER_ROWS of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .stump_bins import rows_of
from .stump_refit import Refit
from .stump_search import RoundSearch, Rows
from .stump_tables import room_for, worst_margins

if TYPE_CHECKING:
    from .stump_costs import Costs
    from .stump_rounds import Settings, Stumps

MOST_ROWS, ORDER_ROWS = 4096, 1024
STEPS = 30
TRIED_IN_TURN = 5  # stumps left out in turn before the search ends


def exchanged(model: Stumps, rows: Rows, costs: Costs, settings: Settings, rng: np.random.Generator) -> Stumps:
    """A model of as many stumps whose robust loss is not larger."""
    rows = sampled(rows, MOST_ROWS, rng)
    few = sampled(rows, ORDER_ROWS, rng)
    model = model.copy()
    least = _refitted(model, rows, costs, settings, rng)
    attempts = 0
    while True:
        accepted = False
        for number in _least_missed(model, few, costs, settings)[:TRIED_IN_TURN]:
            if attempts == settings.exchanges:
                return model
            attempts += 1
            trial = model.without(number)
            search = RoundSearch(rows, trial.stairs(), costs, settings.loss, settings.max_weight, settings.threads)
            choice = search.best(model.candidates(rows.columns))
            if choice is None:
                return model
            trial.add(choice.feature, choice.threshold, choice.left, choice.right)
            loss = _refitted(trial, rows, costs, settings, rng)
            if loss < least * (1 - 1e-5):
                model, least, accepted = trial, loss, True
                break
        if not accepted:
            return model


def _refitted(model: Stumps, rows: Rows, costs: Costs, settings: Settings, rng: np.random.Generator) -> float:
    """Refit all leaf values; the loss reached."""
    joint = Refit(rows.X, rows.y, rows.weight, model.stairs(), costs, settings.loss, settings.penalty)
    loss, stairs, _ = joint.run(STEPS, rng)
    model.take(stairs)
    return loss


def _least_missed(model: Stumps, rows: Rows, costs: Costs, settings: Settings) -> np.ndarray:
    """Numbers of the stumps, first the one without which (all else kept) the robust loss is least."""
    losses, margin = [], np.empty(len(rows.y))
    for number in range(len(model.feature)):
        stairs = model.without(number).stairs()
        worst_margins(rows.X, rows.y, stairs, costs, room_for(stairs), margin)
        losses.append(float(rows.weight @ settings.loss.value(margin)))
    return np.argsort(losses, kind="stable")


def sampled(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    """At most `most` of the rows, at random."""
    if len(rows.y) <= most:
        return rows
    chosen = np.sort(rng.choice(len(rows.y), size=most, replace=False))
    return Rows(rows.X[chosen], rows_of(rows.columns, chosen), rows.y[chosen], rows.weight[chosen])
