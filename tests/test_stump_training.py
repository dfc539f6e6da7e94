"""Robust stump boosting against brute force over perturbation cells, which shares no code with the trainer."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from treeproof import certify
from treeproof.training.losses import Exponential, Logistic
from treeproof.training.stump_bins import columns_of
from treeproof.training.stump_boosting import StumpBoostingClassifier
from treeproof.training.stump_costs import costs_of
from treeproof.training.stump_search import RoundSearch, Rows
from treeproof.training.stump_tables import room_for, stairs_of, worst_margins

LOSSES = {"exponential": lambda m: np.exp(-m), "logistic": lambda m: np.logaddexp(0.0, -m)}
BALLS = [(0, 1.0), (0.5, 0.35), (1, 0.3), (2, 0.25), (np.inf, 0.15)]


def tiny(seed, rows=8, features=3):
    """Random rows, labels -1 and +1 (both present)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, features))
    y = np.where(X @ rng.normal(size=features) + 0.3 * rng.normal(size=rows) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def even_cuts(X, bins):
    """Equal steps of each feature's range."""
    return [
        [low + k / bins * (high - low) for k in range(1, bins)] for low, high in zip(X.min(0), X.max(0), strict=True)
    ]


def landings(x, cuts):
    """x itself and the nearest point of every other cell."""
    points = [x]
    for cut in cuts:
        points.append(cut if x < cut else np.nextafter(cut, -np.inf))
    return points


def allowed(x, cuts, norm, eps, precision=None):
    """All cell representatives that the adversary can reach from x; costs floored where a precision is given."""
    points = np.array(list(itertools.product(*(landings(v, c) for v, c in zip(x, cuts, strict=True)))))
    moved = np.abs(points - x)
    if norm == 0:
        return points[(moved > 0).sum(axis=1) <= eps]
    if np.isinf(norm):
        return points[moved.max(axis=1) <= eps]
    if precision is not None:
        return points[np.floor(moved**norm / precision).sum(axis=1) <= np.floor(eps**norm / precision)]
    return points[(moved**norm).sum(axis=1) <= eps**norm]


def scores(points, stumps):
    """A stump model's scores, one stump after the other."""
    total = np.zeros(len(points))
    for feature, threshold, left, right in stumps:
        total += np.where(points[:, feature] < threshold, left, right)
    return total


def forced(reached, y, stumps, feature, threshold):
    """D_L and D_R of each row: least margin among the reachable points left and right of the threshold."""
    left, right = [], []
    for points, label in zip(reached, y, strict=True):
        margin = label * scores(points, stumps)
        side = points[:, feature] < threshold
        left.append(margin[side].min(initial=np.inf))
        right.append(margin[~side].min(initial=np.inf))
    return np.array(left), np.array(right)


def objective(pair, y, loss, leaf_left, leaf_right):
    """The robust loss of leaf values (arrays of the same shape)."""
    margins = np.minimum(
        pair[0] + y * np.asarray(leaf_left)[..., None], pair[1] + y * np.asarray(leaf_right)[..., None]
    )
    return LOSSES[loss](margins).sum(axis=-1)


def least(pair, y, loss, limit):
    """Minimum over both leaf values by zooming grids (the objective is convex)."""
    centre, reach = np.zeros(2), limit
    for _ in range(14):
        axes = [np.clip(np.linspace(c - reach, c + reach, 17), -limit, limit) for c in centre]
        grid = np.meshgrid(*axes, indexing="ij")
        values = objective(pair, y, loss, *grid)
        at = np.unravel_index(values.argmin(), values.shape)
        centre = np.array([grid[0][at], grid[1][at]])
        reach *= 0.4
    return values.min()


def stumps_of(model):
    """(feature, threshold, left, right) of a fitted model, in order."""
    state = model._fits[0].state
    return list(zip(state.feature, state.threshold, state.left, state.right, strict=True))


@pytest.mark.parametrize("bound", ["exact", "grid"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize(("norm", "eps"), BALLS)
def test_each_round_takes_the_least_robust_loss(norm, eps, loss, bound):
    """Every round's stump has the least robust loss of all candidates, by brute force (grid: of that very bound)."""
    for seed in range(2):
        X, y = tiny(seed)
        precision = eps**norm / 7.3 if bound == "grid" and 0 < norm < np.inf else None
        model = StumpBoostingClassifier(
            norm,
            eps,
            3,
            0.5,
            loss=loss,
            bound=bound,
            precision=precision,
            max_bins=6,
            max_weight=1.5,
            eps_schedule=None,
        ).fit(X, y)
        cuts = even_cuts(X, 6)
        reached = [allowed(x, cuts, norm, eps, precision) for x in X]
        before = []
        for feature, threshold, left, right in stumps_of(model):
            losses = [least(forced(reached, y, before, j, cut), y, loss, 1.5) for j in range(3) for cut in cuts[j]]
            pair = forced(reached, y, before, feature, threshold)
            mine = objective(pair, y, loss, left / 0.5, right / 0.5)
            assert mine <= min(losses) * (1 + 1e-6)
            before.append((feature, threshold, left, right))


@pytest.mark.parametrize("bound", ["exact", "grid"])
@pytest.mark.parametrize(("norm", "eps"), BALLS)
def test_leave_one_out_tables_against_brute_force(norm, eps, bound):
    """D_L and D_R of every candidate, on used and unused features, equal brute force over cells."""
    rng = np.random.default_rng(5)
    X, y = tiny(3, rows=6)
    cuts = even_cuts(X, 5)
    precision = eps**norm / 6.7 if bound == "grid" and 0 < norm < np.inf else None
    stumps = [(j, cuts[j][k], *rng.normal(size=2)) for j in (0, 1) for k in (0, 2, 2, 3)]
    rows = Rows(X, columns_of(X, "uniform", 5, eps), y, np.ones(6))
    search = RoundSearch(
        rows, stairs_of(*zip(*stumps, strict=True)), costs_of(norm, eps, bound, precision), Exponential(), 1.0
    )
    reached = [allowed(x, cuts, norm, eps, precision) for x in X]
    for candidate, edge in enumerate(rows.columns.edge):
        feature, left, right = search.pair(candidate)
        pair = forced(reached, y, stumps, feature, edge)
        np.testing.assert_allclose(left, pair[0], atol=1e-12)
        np.testing.assert_allclose(right, pair[1], atol=1e-12)


@pytest.mark.parametrize(("norm", "eps"), BALLS)
def test_screening_never_hides_the_best(norm, eps):
    """The screen's bound is below every candidate's loss, and the search ends at the least of all."""
    X, y = tiny(7, rows=150, features=6)
    rng = np.random.default_rng(1)
    columns = columns_of(X, "uniform", 12, eps)
    weight = rng.uniform(0.2, 3.0, size=len(y))
    edges = rng.choice(len(columns.edge), 9)
    features = np.searchsorted(columns.start, edges, side="right") - 1
    keep = features < 4  # features 4 and 5 stay unused
    stumps = (features[keep], columns.edge[edges][keep], *rng.normal(size=(2, keep.sum())) * 0.4)
    for limit in (1.0, 8.0):
        rows = Rows(X, columns, y, weight)
        search = RoundSearch(rows, stairs_of(*stumps), costs_of(norm, eps, "exact", None), Exponential(), limit)
        bounds = search.bounds()
        losses = np.array([search.solve(c).loss for c in range(len(bounds))])
        assert np.all(bounds <= losses * (1 + 1e-9))
        choice = search.best()
        assert choice.loss == pytest.approx(losses.min(), rel=1e-9)
        assert choice.solved < len(losses)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize(("norm", "eps"), BALLS)
def test_joint_convexity(norm, eps, loss):
    """Theorem 2: the robust loss is convex in both leaf values together, on random segments."""
    rng = np.random.default_rng(2)
    X, y = tiny(4)
    cuts = even_cuts(X, 6)
    reached = [allowed(x, cuts, norm, eps) for x in X]
    pair = forced(reached, y, [(0, cuts[0][2], -0.5, 0.7), (1, cuts[1][3], 0.4, -0.3)], 0, cuts[0][3])
    ends = rng.normal(size=(2, 400, 2)) * 2
    share = rng.uniform(size=(400, 1))
    between = share * ends[0] + (1 - share) * ends[1]
    value = [objective(pair, y, loss, *points.T) for points in (ends[0], ends[1], between)]
    assert np.all(value[2] <= share[:, 0] * value[0] + (1 - share[:, 0]) * value[1] + 1e-12)


def random_moves(rng, norm, radius, shape):
    """Moves of at most `radius` in any norm: few or many features, short and long."""
    noise = rng.normal(size=shape) * rng.uniform(size=shape) ** 3
    if norm == 0:
        keep = rng.uniform(size=shape).argsort(axis=1) < np.floor(radius)
        return np.where(keep, 5 * noise, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(noise).max(axis=1) if np.isinf(norm) else (np.abs(noise) ** norm).sum(axis=1) ** (1 / norm)
    return noise * (radius * rng.uniform(size=shape[0]) / size)[:, None]


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize(("norm", "eps"), BALLS)
def test_losses_are_ordered_every_round(norm, eps, loss):
    """Grid loss >= exact robust loss >= loss under 1,000 random, worst-cell and witness moves, every round."""
    X, y = tiny(11, rows=14)
    cuts = even_cuts(X, 6)
    precision = eps**norm / 5.5 if 0 < norm < np.inf else None
    model = StumpBoostingClassifier(
        norm,
        eps,
        5,
        0.5,
        loss=loss,
        bound="grid",
        precision=precision,
        max_bins=6,
        eps_schedule=3,
        schedule_shape="linear",
    ).fit(X, y)
    rng = np.random.default_rng(0)
    stumps = stumps_of(model)
    gaps, flipped = [], 0
    for count, ensemble in enumerate(model.staged_ensembles(), start=1):
        radius = model.history_[0]["eps"][count - 1]
        stairs = stairs_of(*zip(*stumps[:count], strict=True))
        exact = np.empty(len(y))
        worst_margins(X, y, stairs, costs_of(norm, radius, "exact", None), room_for(stairs), exact)
        reached = [allowed(x, cuts, norm, radius) for x in X]
        attacked = [(label * scores(at, stumps[:count])).min() for at, label in zip(reached, y, strict=True)]
        np.testing.assert_allclose(attacked, exact, atol=1e-12)
        for x, label, low in zip(X, y, exact, strict=True):
            moved = x + random_moves(rng, norm, radius, (1000, 3))
            assert (label * scores(moved, stumps[:count])).min() >= low - 1e-12
        found = certify(ensemble, X, y, norm=norm, eps=radius)
        for witness, label, low in zip(found.witness, y, exact, strict=True):
            if not np.isnan(witness).any():
                flipped += 1
                assert label * scores(witness[None], stumps[:count])[0] >= low - 1e-12
        gaps.append(model.history_[0]["loss"][count - 1] / LOSSES[loss](exact).mean())
        assert gaps[-1] >= 1 - 1e-12
    assert flipped > 0
    if precision is not None:
        assert max(gaps) > 1 + 1e-6  # a coarse grid is really looser: the comparison could have failed


def test_no_adversary_is_plain_boosting():
    """eps = 0 and train_norm=None are plain exponential-loss stump boosting, written out here."""
    X, y = tiny(21, rows=60, features=4)
    cuts = even_cuts(X, 10)
    expected, weight = [], np.ones(len(y))
    for _ in range(6):
        best = None
        for j in range(4):
            for cut in cuts[j]:
                leaves, loss = [], 0.0
                for side in (X[:, j] < cut, X[:, j] >= cut):
                    up, down = weight[side & (y > 0)].sum(), weight[side & (y < 0)].sum()
                    with np.errstate(divide="ignore"):
                        leaf = float(np.clip(0.5 * (np.log(up) - np.log(down)), -2.0, 2.0))
                    leaves.append(leaf)
                    loss += up * np.exp(-leaf) + down * np.exp(leaf)
                if best is None or loss < best[0] - 1e-12:
                    best = (loss, j, cut, *leaves)
        _, j, cut, left, right = best
        expected.append((j, cut, 0.4 * left, 0.4 * right))
        weight = weight * np.exp(-y * np.where(X[:, j] < cut, 0.4 * left, 0.4 * right))
    for norm, eps, train_norm in [(1, 0.0, "same"), (2, 0.7, None), (np.inf, 0.0, "same"), (0, 3, None)]:
        model = StumpBoostingClassifier(
            norm, eps, 6, train_norm=train_norm, loss="exponential", max_bins=10, max_weight=2.0
        ).fit(X, y)
        found = stumps_of(model)
        assert [stump[0] for stump in found] == [stump[0] for stump in expected]
        np.testing.assert_allclose([stump[1:] for stump in found], [stump[1:] for stump in expected], atol=1e-6)


@pytest.mark.parametrize(("norm", "eps"), [(np.inf, 0.1), (0, 1), (1, 0.2)])
def test_training_error_is_the_certified_one(norm, eps):
    """The verified training error in the history is the one that treeproof.certify proves (p = inf: exact)."""
    X, y = tiny(31, rows=120, features=4)
    model = StumpBoostingClassifier(norm, eps, 8).fit(X, y)
    for ensemble, told, clean in zip(
        model.staged_ensembles(), model.history_[0]["verified_error"], model.history_[0]["clean_error"], strict=True
    ):
        proved = certify(ensemble, X, y, norm=norm, eps=eps)
        assert proved.verified_error == pytest.approx(told)
        assert proved.attack_error == pytest.approx(told)
        assert proved.clean_error == pytest.approx(clean)


def test_divide_and_conquer_on_many_features():
    """Leave-one-out tables of 40 used features agree with a fresh table that leaves the feature out."""
    rng = np.random.default_rng(8)
    X = rng.uniform(size=(12, 40))
    y = np.where(rng.uniform(size=12) < 0.5, -1.0, 1.0)
    columns = columns_of(X, "uniform", 4, 0.5)
    stumps = (np.arange(40), np.full(40, 0.5), *rng.normal(size=(2, 40)))
    search = RoundSearch(
        Rows(X, columns, y, np.ones(12)), stairs_of(*stumps), costs_of(1, 0.5, "exact", None), Logistic(), 1.0
    )
    from treeproof.training.stump_pairs import used_pairs

    out = np.empty((len(columns.edge), 2, 12))
    used_pairs(X, y, search.stairs, search.costs, search.room, columns.edge, columns.start, out)
    for candidate in range(len(columns.edge)):
        _, left, right = search.pair(candidate)
        np.testing.assert_allclose(out[candidate], [left, right], atol=1e-9)


JIT_OFF = """
import json, numba
from tests.test_stump_training import few_models
assert numba.config.DISABLE_JIT
print(json.dumps(few_models()))
"""


def few_models():
    """Scores of small models of every norm, both losses and bounds, and a refitted one."""
    X, y = tiny(3, rows=12)
    changes = [{"norm": norm, "eps": eps} for norm, eps in BALLS]
    changes += [{"norm": 2, "eps": 0.25, "bound": "grid", "loss": "exponential"}]
    changes += [{"norm": 1, "eps": 0.1, "corrective": True, "exchanges": 1}]
    return [
        StumpBoostingClassifier(n_estimators=3, max_bins=6, **change).fit(X, y).decision_function(X).tolist()
        for change in changes
    ]


def test_kernels_without_the_jit():
    """The kernels also run as plain Python (NUMBA_DISABLE_JIT=1) and train what the compiled ones train."""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", JIT_OFF],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # numpy and compiled code round exp differently, and a refit's steps carry that on
    np.testing.assert_allclose(json.loads(done.stdout), few_models(), rtol=1e-6)
