"""The judgement of treeproof's answers: every claim of a row, held against brute force.

Complaints are returned as text, so that a fuzz can name the seed beside them. Only this file knows both the
oracle's plain descriptions and treeproof's objects.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from tests.naive import brute
from tests.naive.brute import Brute, Truth
from tests.naive.floats import cast
from tests.naive.plain import PlainModel, PlainThreat

import treeproof

FLOATS = Decimal(1.7e308)  # a radius beyond the floats is infinite
ROOM = 1 + Decimal(10) ** -25  # the oracle's own roots are decimals; this is far below a float's rounding
LEAST, MOST = (
    Decimal("1e-60"),
    Decimal("1e60"),
)  # the package's range of eps: beyond it powers may leave the floats


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


def float_slack(model: PlainModel) -> Fraction:
    """A margin this small may be left undecided: zero where all sums are exact, else a generous error bound.

    Sums of multiples of 1/8 below 2^15 are exact in float32 and float64, in any order.
    """
    trees = [[model.leaf_values(tree, n) for n in range(len(tree["feature"]))] for tree in model.trees]
    everything = [*model.base, model.cut, *(v for tree in trees for leaf in tree for v in leaf)]
    if all(v * 8 == int(v * 8) and abs(v) < 2.0**10 for v in everything):
        return Fraction(0)
    sizes = sum(max(abs(Fraction(v)) for leaf in tree for v in leaf) for tree in trees)
    sizes += max(abs(Fraction(v)) for v in model.base) + abs(Fraction(model.cut))
    terms = 8 * (len(model.trees) + model.n_features + 10)
    loss = Fraction(0)
    unit = Fraction(1, 2**53)
    if model.sum_dtype == "float32":
        unit += Fraction(1, 2**24)
        loss = Fraction(1, 2**140)  # leaves below the float32 range
    return 2 * terms * unit * sizes + loss


class Judge:
    """One case's model, its oracle, and the complaints about answers."""

    def __init__(self, model: PlainModel, oracle: Brute | None = None, tight: bool = True):
        self.model = model
        self.tight = tight  # with exact sums nothing is in doubt, and the bounds touch the margin
        self.oracle = oracle or Brute(model)
        self.ensemble = to_ensemble(model)
        self.slack = float_slack(model)

    def cast(self, row) -> list[float]:
        return [cast(v, self.model.dtype) for v in row]

    # ------------------------------------------------------------ certificates

    def certificate(self, proof, i: int, row, truth: Truth, complete: bool, exact: bool = False) -> list[str]:
        """Complaints about row i of a `Certificates`; `complete`: UNKNOWN needs a reason."""
        status = treeproof.Status(proof.status[i])
        out = []
        if status == treeproof.Status.ROBUST and (
            truth.broken(exact=exact) or (not exact and truth.broken(exact=True))
        ):
            out.append("ROBUST, but brute force breaks it")
        if status == treeproof.Status.BROKEN:
            out += self.witness(proof.witness[i], row, truth, truth.threat, exact)
            if not truth.broken(exact=exact):
                out.append("BROKEN, but brute force finds nothing")
        elif not np.all(np.isnan(proof.witness[i])):
            out.append(f"a witness beside {status.name}")
        if truth.predicted != truth.label:
            if status != treeproof.Status.BROKEN:
                out.append(f"misclassified but {status.name}")
        elif status == treeproof.Status.UNKNOWN and complete:
            out += self.undecided(truth, exact)
        return out + self.margins(float(proof.lower[i]), float(proof.upper[i]), status, truth, complete, exact)

    def undecided(self, truth: Truth, exact: bool) -> list[str]:
        """UNKNOWN is honest only where the budget or the margin is inside float rounding."""
        slack = Fraction(0) if exact and self.tight else self.slack
        if slack == 0:
            robust, broken = not truth.broken(+1, exact=True), truth.broken(-1, exact=True)
        else:
            robust, broken = truth.worst(+1) > slack, truth.worst(-1) < -slack
        if robust or broken:
            return [f"UNKNOWN, but {'robust' if robust else 'broken'} beyond float rounding"]
        return []

    def margins(self, lower, upper, status, truth: Truth, complete: bool, exact: bool) -> list[str]:
        """Bounds enclose the exact worst-case margin; with exact sums, and no tied budget, they touch it."""
        worst = truth.worst()
        out = []
        if math.isnan(lower) or (lower > -math.inf and (lower == math.inf or Fraction(lower) > worst)):
            out.append(f"lower {lower!r} above the worst margin {float(worst)!r}")
        if math.isnan(upper) or (upper < math.inf and (upper == -math.inf or Fraction(upper) < worst)):
            out.append(f"upper {upper!r} below the worst margin {float(worst)!r}")
        if self.tight and lower == -math.inf:
            out.append("no lower bound of the worst margin")
        if exact and complete and self.tight and not out and truth.worst(-1) == truth.worst(+1):
            near = float(worst)
            if lower < np.nextafter(near, -np.inf) or upper > np.nextafter(near, np.inf):
                out.append(f"exact margins [{lower!r}, {upper!r}] do not touch {near!r}")
        return out

    def witness(self, witness, row, truth: Truth, threat: PlainThreat, exact: bool) -> list[str]:
        """A witness is allowed and predicted otherwise (a misclassified row is its own)."""
        start = self.cast(row)
        end = [float(v) for v in witness]
        refused = brute.allowed(start, end, threat, self.model.dtype)
        out = [f"witness {end}: {refused}"] if refused else []
        if any(math.isnan(b) and not math.isnan(a) for a, b in zip(start, end, strict=True)):
            return [*out, "witness with NaN"]
        own = int(brute.predict(self.model, [end])[0][0])
        if exact and truth.predicted == truth.label:
            own = exact_class(self.model, end)
        if own == truth.label:
            out.append(f"witness {end} is predicted as the row is")
        return out

    # ------------------------------------------------------------ radii

    def radius(self, radii, i: int, row, truth: Truth, complete: bool, exact: bool = False) -> list[str]:
        """Complaints about row i of a `Radii`."""
        lower, upper = float(radii.lower[i]), float(radii.upper[i])
        real = truth.radius(exact)
        out = []
        if math.isnan(lower) or Decimal(lower) > real * ROOM and real < FLOATS:
            out.append(f"lower {lower!r} above the radius {real:.20}")
        if math.isnan(upper) or Decimal(upper) * ROOM < real:
            out.append(f"upper {upper!r} below the radius {real:.20}")
        threat = PlainThreat(**{**vars(truth.threat), "eps": upper})
        if math.isfinite(upper):
            out += self.witness(radii.witness[i], row, truth, threat, exact)
        elif not np.all(np.isnan(radii.witness[i])):
            out.append("a witness beside an infinite radius")
        if bool(radii.exact[i]) and not (lower == upper or math.isclose(lower, upper, rel_tol=1e-9, abs_tol=1e-290)):
            out.append(f"exact, but [{lower!r}, {upper!r}]")
        if complete and not radii.exact[i]:
            slack = Fraction(0) if exact and self.tight else self.slack
            may, sure = truth.radius_below(slack), truth.radius_below(-slack)
            if (slack == 0 or may == sure) and (real in (0, Decimal("Infinity")) or LEAST < real < MOST):
                out.append(f"not exact: [{lower!r}, {upper!r}] where the radius is {real:.20}")
        return out


def exact_class(model: PlainModel, row) -> int:
    """The class that exact sums give a row."""
    total = [Fraction(b) for b in model.base]
    for tree in model.trees:
        node = int(brute.leaves(tree, np.array([row]))[0])
        total = [t + Fraction(v) for t, v in zip(total, model.leaf_values(tree, node), strict=True)]
    if model.n_outputs > 1:
        return total.index(max(total))
    if total[0] == Fraction(model.cut):
        return model.zero_class
    return int(total[0] > Fraction(model.cut))
