"""The easy norms of an additive model, exact by sorting: p = 0 (the paper's section 3.2) and p = inf radii.

p = 0: every moved feature costs 1, so the largest gains come first. p = inf: nothing is shared; sweep the
options of all features by distance until the gains suffice.
"""

from __future__ import annotations

import numpy as np

from .._jit import kernel, lean
from .additive_dual import Picks
from .additive_options import Margin, Options, gather
from .additive_rows import Asked, closed, empty_answers, fits, least_proved, longer, put, targets
from .costs import Ground


@kernel
def _take_largest(options: Options, picks: Picks, count, target):
    """Pick the largest gains until `target` is reached or `count` are taken; returns (gain, how many)."""
    n = options.counts[0]
    for a in range(n):
        picks.best[a] = -1
    order = np.argsort(-options.gain[:n])  # at p = 0 each active feature has one option, in order
    gain, taken = 0.0, 0
    for k in range(n):
        if taken >= count or gain >= target:
            break
        picks.best[order[k]] = order[k]
        gain += options.gain[order[k]]
        taken += 1
    return gain, taken


@kernel
def decide_count(ground: Ground, margin: Margin, X, asked: Asked, count, options: Options, picks: Picks):
    """Worst-case margins when `count` features may move."""
    out = empty_answers(len(X))
    for i in range(len(X)):
        if not fits(out, options, i):
            out = longer(out, len(margin.feature))
        gather(ground, margin, X[i], np.inf, options)
        enough = targets(asked, options.sums[0])[0]
        gain, taken = _take_largest(options, picks, count, np.inf)
        out.lower[i] = options.sums[0] - gain - asked.solver
        if gain < enough:
            out.lower[i] = max(out.lower[i], least_proved(asked))
        out.offsets[i + 1] = out.offsets[i]
        if taken > 0 and (gain >= enough or asked.optimise):
            put(options, picks.best, out, i)
    return closed(out)


@kernel
def _sweep(options: Options, picks: Picks, target):
    """Take options by distance until the gains reach `target`; returns (distance, gain), inf if they never do."""
    n = options.counts[0]
    for a in range(n):
        picks.best[a] = -1
    total = options.start[n]
    order = np.argsort(options.cost[:total])
    owner = np.empty(total, dtype=np.int64)
    for a in range(n):
        owner[options.start[a] : options.start[a + 1]] = a
    gain = 0.0
    if gain >= target:
        return 0.0, 0.0
    for k in range(total):
        o = order[k]
        a = owner[o]
        if o <= picks.best[a]:  # equal distances may come in any order
            continue
        before = picks.best[a]
        picks.best[a] = o
        gain += options.gain[o] - (options.gain[before] if before >= 0 else 0.0)
        if gain >= target and _sum(options, picks) >= target:
            return options.cost[o], gain
    return np.inf, gain


@lean
def _sum(options: Options, picks: Picks):
    """The gain of the picks, added afresh: the running sum above drifts."""
    gain = 0.0
    for a in range(options.counts[0]):
        if picks.best[a] >= 0:
            gain += options.gain[picks.best[a]]
    return gain


@kernel
def nearest_sorted(ground: Ground, margin: Margin, X, asked: Asked, caps, options: Options, picks: Picks):
    """The nearest flip of each row at p = 0 (features moved) or p = inf (distance), up to caps."""
    out = empty_answers(len(X))
    start = np.inf
    for i in range(len(X)):
        if not fits(out, options, i):
            out = longer(out, len(margin.feature))
        out.lower[i] = np.inf
        out.offsets[i + 1] = out.offsets[i]
        for which in range(2):
            limit = caps[i] if ground.p == 0.0 else min(caps[i], start)
            while True:
                gather(ground, margin, X[i], limit, options)
                target = targets(asked, options.sums[0])[which]
                if options.sums[1] >= target or options.counts[1] == 0 or limit >= caps[i]:
                    break
                limit = min(caps[i], 4.0 * limit if limit > 0.0 else np.inf)
            if options.sums[1] < target:
                break
            if ground.p == 0.0:
                gain, taken = _take_largest(options, picks, len(X[i]), target)
                distance = float(taken) if gain >= target else np.inf
            else:
                distance, gain = _sweep(options, picks, target)
            if distance > caps[i] or distance == np.inf:
                break
            if which == 0:
                out.lower[i] = distance
                start = 1.5 * distance if distance > 0.0 else np.inf
            if gain >= targets(asked, options.sums[0])[1]:
                put(options, picks.best, out, i)
                break
    return closed(out)
