"""A bad argument is one clear error of our own family, never a deep traceback and never "robust"."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.naive.plain import nested, stump

import treeproof
from treeproof import (
    InvalidInputError,
    InvalidThreatError,
    MethodError,
    Status,
    Threat,
    TreeEnsemble,
    TreeproofError,
    certify,
    radius,
)

STUMPS = TreeEnsemble.from_trees([stump(0, 0.5, -1.0, 1.0), stump(1, 0.5, -1.0, 1.0)], 2, base=0.5)
GENERAL = TreeEnsemble.from_trees([nested((0, 0.5, (1, 0.5, -1.0, 1.0), 1.0)), stump(1, 0.25, -1.0, 1.0)], 2)
ONE_TREE = TreeEnsemble.from_trees([nested((0, 0.5, (1, 0.5, -1.0, 1.0), 1.0))], 2)
NAMED = TreeEnsemble.from_trees([stump(0, 0.5, -1.0, 1.0)], 2, feature_names=["age", "income"])
X = np.array([[0.25, 0.75], [0.75, 0.75]])
NAN, INF = math.nan, math.inf


def one_line(error) -> None:
    """The message is one line that says more than a word or two."""
    assert "\n" not in str(error.value)
    assert len(str(error.value).split()) > 4


BAD_ROWS = {
    "NaN": ([[0.5, NAN]], "row 0, column 1"),
    "inf": ([[0.5, 0.5], [-INF, 0.5]], "row 1, column 0"),
    "too narrow": ([[0.5]], "2"),
    "too wide": ([[0.5, 0.5, 0.5]], "2"),
    "one row as a vector": ([0.5, 0.5], "shape"),
    "three dimensions": (np.zeros((1, 2, 1)), "shape"),
    "empty": (np.zeros((0, 2)), "at least one row"),
    "words": ([["a", "b"]], "numbers"),
    "none": (None, "X must be"),
    "ragged": ([[1.0], [1.0, 2.0]], "X must be"),
    "beyond the floats": ([[10**400, 0.5]], "X must be"),
    "beyond a double": (np.array([[np.longdouble("1e400"), 0.5]]), "row 0, column 0"),
    "masked": (np.ma.array([[0.5, 0.5]], mask=[[False, True]]), "row 0, column 1"),
}


@pytest.mark.parametrize("ask", [certify, radius])
@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows(ask, name):
    """Rows that the model cannot receive are refused before anything is proved."""
    rows, message = BAD_ROWS[name]
    asked = {"norm": 1, "eps": 0.1} if ask is certify else {"norm": 1}
    with pytest.raises(InvalidInputError, match=message) as error:
        ask(STUMPS, rows, **asked)
    one_line(error)


BAD_NUMBERS = {
    "eps negative": {"norm": 1, "eps": -0.1},
    "eps NaN": {"norm": 1, "eps": NAN},
    "eps text": {"norm": 1, "eps": "much"},
    "eps none": {"norm": 1},
    "eps beyond the floats": {"norm": 1, "eps": 10**400},
    "norm beyond the floats": {"norm": 10**400, "eps": 0.1},
    "eps true": {"norm": 1, "eps": True},
    "norm negative": {"norm": -1, "eps": 0.1},
    "norm NaN": {"norm": NAN, "eps": 0.1},
    "norm -inf": {"norm": -INF, "eps": 0.1},
    "norm text": {"norm": "l1", "eps": 0.1},
    "norm none": {"eps": 0.1},
    "nothing": {},
}


@pytest.mark.parametrize("name", BAD_NUMBERS)
def test_bad_norm_and_budget(name):
    """Norms outside [0, inf] and budgets that are no budget are refused."""
    with pytest.raises(InvalidThreatError) as error:
        certify(STUMPS, X, **BAD_NUMBERS[name])
    one_line(error)


@pytest.mark.parametrize("wrong", [{}, {"norm": -1}, {"norm": NAN}, {"norm": 1, "max_radius": -1}])
def test_bad_norm_and_cap_of_a_radius(wrong):
    """`radius` refuses the same."""
    with pytest.raises(InvalidThreatError) as error:
        radius(STUMPS, X, **wrong)
    one_line(error)


BAD_THREATS = {
    "scale zero": ({"scale": [1.0, 0.0]}, "scale"),
    "scale negative": ({"scale": -1.0}, "scale"),
    "scale NaN": ({"scale": [1.0, NAN]}, "scale"),
    "scale inf": ({"scale": [1.0, INF]}, "scale"),
    "scale too short": ({"scale": [1.0]}, "scale"),
    "scale words": ({"scale": ["a", "b"]}, "scale"),
    "frozen out of range": ({"frozen": [2]}, "frozen"),
    "frozen negative": ({"frozen": [-1]}, "frozen"),
    "frozen a name of no feature": ({"frozen": ["age"]}, "frozen"),
    "frozen too few bools": ({"frozen": [True]}, "frozen"),
    "frozen a fraction": ({"frozen": [0.5]}, "frozen"),
    "lower above upper": ({"lower": 1.0, "upper": 0.0}, "lower"),
    "lower NaN": ({"lower": [NAN, 0.0]}, "lower"),
    "upper NaN": ({"upper": NAN}, "upper"),
    "upper of another width": ({"upper": [1.0, 1.0, 1.0]}, "upper"),
    "direction 2": ({"direction": [2, 0]}, "direction"),
    "direction NaN": ({"direction": [NAN, 0]}, "direction"),
    "direction one half": ({"direction": 0.5}, "direction"),
    "a dict of no feature": ({"scale": {5: 1.0}}, "scale"),
    "scale beyond the floats": ({"scale": [10**400, 1]}, "scale"),
    "frozen by a word": ({"frozen": {0: "no"}}, "frozen"),
    "a dict of words": ({"scale": {0: "wide"}}, "scale"),
}


@pytest.mark.parametrize("name", BAD_THREATS)
def test_bad_threats(name):
    """Each flaw of a threat is refused with the name of the field."""
    fields, message = BAD_THREATS[name]
    with pytest.raises(InvalidThreatError, match=message) as error:
        certify(STUMPS, X, threat=Threat(norm=1, eps=0.1, **fields))
    one_line(error)


def test_names_of_a_threat_are_the_models():
    """A threat names features where the model has names, and only its own."""
    assert certify(NAMED, X, threat=Threat(1, 9.0, frozen=["age"])).status.tolist() == [Status.ROBUST] * 2
    with pytest.raises(InvalidThreatError, match="height"):
        certify(NAMED, X, threat=Threat(1, 9.0, frozen=["height"]))


def test_norm_given_twice():
    """A norm or budget beside a threat that says otherwise is refused; the same is not."""
    threat = Threat(norm=1, eps=0.1)
    for wrong in ({"norm": 2}, {"eps": 0.2}):
        with pytest.raises(InvalidThreatError, match="once"):
            certify(STUMPS, X, threat=threat, **wrong)
    assert len(certify(STUMPS, X, threat=threat, norm=1, eps=0.1)) == 2


@pytest.mark.parametrize("threat", [0.1, "l1", {"norm": 1, "eps": 1}, (1, 0.1)])
def test_what_is_not_a_threat(threat):
    """Anything but a Threat is refused."""
    with pytest.raises(InvalidThreatError, match="threat"):
        certify(STUMPS, X, threat=threat)


@pytest.mark.parametrize("ask", [certify, radius])
@pytest.mark.parametrize(
    "y",
    [[0], [0, 1, 0], [0, 2], [0, -1], ["0", "1"], [[0], [1]], [0, NAN], [0, None], 1, [0.5, 1], [[0], [0, 1]]],
    ids=repr,
)
def test_bad_labels(ask, y):
    """Labels that are not classes of the model, or not one a row, are refused."""
    asked = {"norm": 1, "eps": 0.1} if ask is certify else {"norm": 1}
    with pytest.raises(InvalidInputError, match="y ") as error:
        ask(STUMPS, X, y, **asked)
    one_line(error)


def test_labels_of_text():
    """Text classes take text labels, and nothing else."""
    model = TreeEnsemble.from_trees([stump(0, 0.5, -1.0, 1.0)], 2, classes=["no", "yes"])
    assert certify(model, X, ["no", "yes"], norm=1, eps=0.1).clean_error == 0.0
    for wrong in ([0, 1], ["no", "maybe"], [b"no", b"yes"], ["no", None]):
        with pytest.raises(InvalidInputError, match="y "):
            certify(model, X, wrong, norm=1, eps=0.1)


@pytest.mark.parametrize("ask", [certify, radius])
@pytest.mark.parametrize("method", ["magic", "", None, 3, "AUTO", ["additive"]])
def test_unknown_methods(ask, method):
    """A method that does not exist is refused, and the message lists those that do."""
    asked = {"norm": 1, "eps": 0.1} if ask is certify else {"norm": 1}
    with pytest.raises(MethodError, match="additive") as error:
        ask(STUMPS, X, method=method, **asked)
    one_line(error)


@pytest.mark.parametrize(
    ("model", "method", "fit"),
    [
        (GENERAL, "additive", "search"),
        (GENERAL, "grid", "search"),
        (GENERAL, "tree", "search"),
        (ONE_TREE, "additive", "tree"),
        (STUMPS, "tree", "additive"),
    ],
)
def test_methods_that_cannot_serve_the_model(model, method, fit):
    """A method for other models is refused, and the message says which one serves."""
    options = {"precision": 0.01} if method == "grid" else {}
    with pytest.raises(MethodError, match=fit) as error:
        certify(model, X, norm=1, eps=0.1, method=method, **options)
    one_line(error)


@pytest.mark.parametrize("norm", [0, INF])
def test_the_grid_is_refused_where_nothing_is_spent(norm):
    """p = 0 and p = inf have no cost to round to a grid."""
    with pytest.raises(MethodError) as error:
        certify(STUMPS, X, norm=norm, eps=1.0, method="grid", precision=0.1)
    one_line(error)


@pytest.mark.parametrize("precision", [0.11, 1.0, 1e300, INF, NAN, 0.0, -0.1, "fine", None, True])
def test_bad_precision(precision):
    """A precision above the budget (or no number at all) is refused; it once certified a wrong row."""
    with pytest.raises(TreeproofError, match="precision") as error:
        certify(STUMPS, X, norm=1, eps=0.1, method="grid", precision=precision)
    one_line(error)


def test_precision_is_in_cost_units():
    """At p = 2 the budget is eps^2 = 0.01: a precision of 0.05 is below eps, but above the budget."""
    with pytest.raises(TreeproofError, match="precision"):
        certify(STUMPS, X, norm=2, eps=0.1, method="grid", precision=0.05)


@pytest.mark.parametrize("ask", [certify, radius])
@pytest.mark.parametrize(
    "options",
    [{"precision": 0.1}, {"tolerance": 1e-6}, {"time_limit": 0}, {"time_limit": -1.0}, {"time_limit": NAN},
     {"time_limit": "long"}, {"max_states": 0}, {"max_states": 10**12},
     {"exact_margin": "maybe"}, {"progress": "bar"}, {"n_jobs": 0}, {"n_jobs": 1.5}, {"n_jobs": "all"}],
    ids=str,
)  # fmt: skip
def test_bad_options(ask, options):
    """Options that the method does not have, and impossible limits, are refused."""
    asked = {"norm": 1, "eps": 0.1} if ask is certify else {"norm": 1}
    with pytest.raises(TreeproofError, match=next(iter(options))) as error:
        ask(STUMPS, X, method="additive", **asked, **options)
    one_line(error)


@pytest.mark.parametrize("model", [None, 3, "no-such-file.json", [1, 2], pytest.param(object(), id="object")], ids=str)
def test_what_is_not_a_model(model):
    """Anything that is no model, and no file of one, is refused."""
    with pytest.raises(TreeproofError) as error:
        certify(model, X, norm=1, eps=0.1)
    one_line(error)


def test_a_row_outside_the_range_may_stay():
    """The documented rule: a row outside the threat's range stays where it is, and its moves land inside."""
    model = TreeEnsemble.from_trees([stump(0, 0.5, -1.0, 1.0)], 1)
    far = np.array([[2.0]])
    safe = certify(model, far, threat=Threat(1, 9.0, lower=0.5, upper=1.0))
    assert safe.status.tolist() == [Status.ROBUST]
    hit = certify(model, far, threat=Threat(1, 1.75, lower=0.0, upper=0.25))
    assert hit.status.tolist() == [Status.BROKEN]
    assert hit.witness.tolist() == [[0.25]]
    near = certify(model, far, threat=Threat(1, 1.7, lower=0.0, upper=0.25))
    assert near.status.tolist() == [Status.ROBUST]


def test_misclassified_rows_are_never_robust():
    """With labels, a misclassified row is broken at distance 0 and its own witness, whatever the method."""
    for method in ("auto", "additive"):
        proof = certify(STUMPS, X, [1, 0], norm=1, eps=0.0, method=method)
        assert proof.status[1] == Status.BROKEN
        assert np.array_equal(proof.witness[1], X[1])
        radii = radius(STUMPS, X, [1, 0], norm=1, method=method)
        assert (radii.lower[1], radii.upper[1]) == (0.0, 0.0)
        assert np.array_equal(radii.witness[1], X[1])


def test_the_caller_s_arrays_are_left_alone():
    """Neither X nor y is changed, and read-only or non-contiguous arrays are fine."""
    rows = np.asfortranarray(np.tile(X, (3, 1)))
    rows.flags.writeable = False
    before = rows.copy()
    one = certify(STUMPS, rows, norm=1, eps=0.2)
    two = certify(STUMPS, rows[::-1], norm=1, eps=0.2)
    assert np.array_equal(rows, before)
    assert one.status.tolist() == two.status[::-1].tolist()


def test_the_public_names_exist():
    """Every public name resolves."""
    for name in treeproof.__all__:
        assert getattr(treeproof, name) is not None
