"""The HTML report: one self-contained file, light and dark, for a person who was not there.

Everything is drawn here by hand (inline SVG and PNG): no matplotlib, no network, no fonts to fetch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import InvalidInputError
from .._version import __version__
from . import charts, images, words
from .analysis import class_lines, curve_end, error_curve, feature_uses, fragile_rows, moved_rows
from .page import card, page
from .svg import share_bar


@dataclass(frozen=True)
class ReportInput:
    """What a report is made from.

    Attributes
    ----------
    certificates : Certificates
    radii : Radii or None
        Of the same rows or of a sample of them: the curve and the histogram come from these.
    model : TreeEnsemble
    names : sequence of str or None
        Feature names, in the model's order.
    scaling : object with `offset` and `span` or None
        From the model's numbers to the data's own units, for showing witnesses.
    image_shape : (height, width) or None
        Rows are drawn as images.
    title, command : str
    facts : dict
        Further lines of "how this was made": file names, checksums.
    gate : float or None
        The verified error that must not be exceeded.
    row_numbers : array or None
        What the rows are called (their numbers in the file).
    class_names : dict of str to str
        Words for the labels.
    others : dict of str to Radii
        Other models' radii on the same rows: further curves.
    """

    certificates: Any
    model: Any
    radii: Any = None
    names: Any = None
    scaling: Any = None
    image_shape: tuple[int, int] | None = None
    title: str = "Robustness report"
    command: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    gate: float | None = None
    row_numbers: Any = None
    class_names: dict[str, str] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)

    def name(self, j: int) -> str:
        return str(self.names[j]) if self.names is not None else f"feature {j}"

    def label(self, text: str | None) -> str:
        return self.class_names.get(str(text), str(text))


def write_report(path: str | Path, certificates, model, **settings) -> None:
    """Write the report of some certificates as one HTML file.

    Parameters
    ----------
    path : path
    certificates : Certificates
    model : TreeEnsemble
        The model that was certified.
    **settings
        The other attributes of `ReportInput`: radii, names, scaling, image_shape, title, command, ...
    """
    text = report_html(certificates, model, **settings)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{path}: the report cannot be written: {error.strerror or error}.") from None


def report_html(certificates, model, **settings) -> str:
    """The report as HTML text; see `write_report`."""
    data = ReportInput(certificates, model, **settings)
    if data.names is None:
        data = ReportInput(certificates, model, **{**settings, "names": model.feature_names})
    shape = data.image_shape
    if shape is not None:
        check_image_shape(shape, model)
    last = [_features(data), _classes(data)]
    if shape is not None and all(last):
        last = [f'<div class="two">{"".join(last)}</div>']
    sections = [_head(data), _headline(data), _curves(data), _fragile(data), *last, _made(data)]
    return page(data.title, "\n".join(section for section in sections if section))


def check_image_shape(shape: tuple[int, int], model) -> None:
    """Refuse a shape that has not one pixel a feature."""
    height, width = shape
    if height * width != model.n_features:
        raise InvalidInputError(
            f"image_shape must have as many pixels as the model has features, {model.n_features}. "
            f"Got {height}x{width} = {height * width} instead."
        )


# ---------------------------------------------------------------------- sections


def _head(data: ReportInput) -> str:
    summary = data.model.summary()
    n = words.rows_of(len(data.certificates))
    return (
        f"<header><div><h1>{escape(data.title)}</h1>"
        f'<div class="small">{escape(summary.source)}, {words.rows_of(summary.trees, "tree")}; {n}; '
        f"{escape(words.move_words(data.certificates.threat))}</div></div>"
        '<button type="button" aria-label="switch between light and dark">light / dark</button></header>'
    )


def _headline(data: ReportInput) -> str:
    found = data.certificates
    counts = words.split_counts(found)
    clean = ""
    if found.clean_error is not None:
        clean = _figure("", words.percent(found.clean_error), "clean error", "wrong as the rows stand")
    attack = _figure("a", words.percent(found.attack_error), "attack error", "a counterexample is known")
    verified = _figure("v", words.percent(found.verified_error), "verified error", "no attack can exceed this")
    titles = {
        "robust": "proved robust",
        "unknown": "not decided",
        "broken": "flipped by a counterexample",
        "wrong": "misclassified as they stand",
    }
    parts = [(name, counts[name], f"{titles[name]}: {words.rows_of(counts[name])}") for name in titles]
    legend = "".join(
        f'<span><i class="{name}"></i>{counts[name]:,} {titles[name]}</span>' for name in titles if counts[name]
    )
    gate = ""
    if data.gate is not None:
        passed = found.verified_error <= data.gate
        word = "passed" if passed else "failed"
        gate = (
            f'<p><span class="gate {"pass" if passed else "fail"}">gate {word}</span> the verified error '
            f"{'is at most' if passed else 'exceeds'} {words.percent(data.gate)}.</p>"
        )
    return (
        f'<section class="card"><p class="lead">{escape(words.headline(found))}</p>{gate}'
        f'<div class="figures">{clean}{attack}{verified}</div>{share_bar(parts)}'
        f'<div class="legend">{legend}</div></section>'
    )


def _figure(css: str, number: str, name: str, note: str) -> str:
    return f'<div class="{css}"><b>{number}</b><span>{name}</span><small>{note}</small></div>'


def _curves(data: ReportInput) -> str:
    radii, found = data.radii, data.certificates
    if radii is None or len(radii) == 0:
        return ""
    eps = float(found.threat.eps)
    end = curve_end(radii, eps)
    curve = error_curve(radii, end)
    blue = '<i class="l" style="background:var(--blue)"></i>'
    if curve.exact:
        this = "this model, exactly" if data.others else "robust error (exact: attack = verified)"
        legend = f"<span>{blue}{this}</span>"
    else:
        legend = (
            f'<span>{blue}verified error</span><span><i class="l" style="background:var(--orange)"></i>'
            "attack error</span><span>the true error is in the band between</span>"
        )
    more = {name: error_curve(one, end) for name, one in data.others.items()}
    for place, name in enumerate(more):
        legend += f'<span><i class="l other{place % 3}"></i>{escape(name)}</span>'
    sample = "" if len(radii) == len(found) else f" Measured on {words.rows_of(len(radii))} of them."
    right = np.ones(len(radii), bool) if radii.correct is None else radii.correct
    middle = f"median {words.figure(radii.median)}" if np.isfinite(radii.median) else "no row flips"
    if not right.all():
        middle += " (misclassified rows, not drawn, count as 0)"
    curve_card = card(
        "How the error grows with the budget",
        f"Share of rows that a move of at most eps can make wrong.{sample}",
        f"{charts.curve_chart(curve, radii.threat.norm, eps, radii.clean_error, more)}"
        f'<div class="legend">{legend}</div><p class="read">Point at the curve to read it.</p>',
    )
    radius_card = card(
        "How far the rows are from another prediction",
        f"Proved radius of each row: {middle}; exact for {int(np.sum(radii.exact)):,} of {words.rows_of(len(radii))}.",
        f"{charts.radius_chart(radii, end, eps)}"
        '<div class="legend"><span><i style="background:var(--blue)"></i>beyond eps</span>'
        '<span><i style="background:var(--weak)"></i>within eps</span></div>',
    )
    return f'<div class="two">{curve_card}{radius_card}</div>'


def _witnesses(data: ReportInput):
    """Minimal witnesses where radii are known, else those of the certificates; and their row numbers."""
    use_radii = data.radii is not None and len(moved_rows(data.radii)) > 0
    results = data.radii if use_radii else data.certificates
    numbers = data.row_numbers
    if numbers is None or len(numbers) < len(results):
        numbers = np.arange(len(results))
    return results, numbers


def _fragile(data: ReportInput) -> str:
    results, numbers = _witnesses(data)
    rows = fragile_rows(results, data.model, 6, data.scaling)
    if not rows:
        return ""
    norm = words.norm_name(results.threat.norm)
    cards = []
    for one in rows:
        number = int(numbers[one.row])
        truth = "" if one.label is None else f"labelled <b>{escape(data.label(one.label))}</b>, "
        changed = _pictures(data.image_shape, results, one) if data.image_shape else _moves(data, one)
        said = (
            f"{truth}predicted <b>{escape(data.label(one.predicted))}</b>; becomes "
            f"<b>{escape(data.label(one.becomes))}</b> after {words.rows_of(len(one.moves), 'change')}, "
            f"{norm} distance {words.figure(one.distance)}"
        )
        more = f' <span class="small">and {words.rows_of(one.alike, "row")} alike</span>' if one.alike else ""
        cards.append(f'<div class="row"><h3>Row {number}{more}</h3><p>{said}</p>{changed}</div>')
    return card(
        "The most fragile rows",
        "Right today, yet the nearest to another prediction; each change shown was replayed on the model. "
        "Rows are numbered from 0.",
        f'<div class="fragile">{"".join(cards)}</div>',
    )


def _moves(data: ReportInput, one) -> str:
    lines = "".join(
        f"<tr><td>{_breakable(data.name(move.feature))}</td><td>{words.figure(move.before)}</td>"
        f'<td class="to">{words.moved_to(move.before, move.after)}</td><td>{words.signed(move)}</td></tr>'
        for move in one.moves[:6]
    )
    rest = len(one.moves) - 6
    more = f'<p class="small">and {words.rows_of(rest, "smaller change")}</p>' if rest > 0 else ""
    head = "<tr><th>feature</th><th>from</th><th>to</th><th>move</th></tr>"
    return f'<div class="wide"><table class="moves">{head}{lines}</table></div>{more}'


def _breakable(name: str) -> str:
    """A feature's name that a narrow column may break after its underscores and points."""
    return re.sub(r"([_.])", r"\1<wbr>", escape(name))


def _pictures(shape: tuple[int, int], results, one) -> str:
    before = np.asarray(results.X[one.row], float)
    after = before.copy()
    columns, values = results.witnesses.changes(one.row)
    after[columns] = values
    low, high = min(0.0, float(np.nanmin(results.X))), float(np.nanmax(results.X))
    pictures = (
        ("as it is", images.grey(before, shape, low, high)),
        ("after", images.grey(after, shape, low, high)),
        ("the change", images.change(before, after, shape, low, high)),
    )
    figures = "".join(
        f'<figure><img class="pixels" alt="{name}" src="{images.data_uri(pixels)}">'
        f"<figcaption>{name}</figcaption></figure>"
        for name, pixels in pictures
    )
    return f'<div class="pictures">{figures}</div>'


def _features(data: ReportInput) -> str:
    results, _ = _witnesses(data)
    uses = feature_uses(results, None if data.scaling is None else data.scaling.span)
    if not uses:
        return ""
    flips = len(moved_rows(results))
    names = [data.name(j) for j in range(data.model.n_features)]
    if data.image_shape:
        counts = np.zeros(data.model.n_features)
        for use in uses:
            counts[use.feature] = use.count
        src = images.data_uri(images.heat(counts, data.image_shape))
        drawn = f'<img class="pixels heat" alt="how often each pixel is moved" src="{src}">'
    else:
        drawn = charts.feature_bars(uses, names)
    what = "Pixels" if data.image_shape else "Features"
    note = f"{what} by how many of the {flips:,} nearest counterexamples move them."
    return card("What an adversary would move", note, drawn)


def _classes(data: ReportInput) -> str:
    lines = class_lines(data.certificates, data.radii)
    if not lines:
        return ""
    by = "Class" if data.certificates.y is not None else "Predicted class"
    with_radius = any(line.median_radius is not None for line in lines)
    head = f"<tr><th>{by}</th><th>rows</th><th>clean</th><th>attack</th><th>verified</th>"
    head += "<th>median radius</th></tr>" if with_radius else "</tr>"
    body = "".join(
        f"<tr><td>{escape(data.label(line.label))}</td><td>{line.rows:,}</td><td>{words.percent(line.clean)}</td>"
        f"<td>{words.percent(line.attack)}</td><td>{words.percent(line.verified)}</td>"
        + (f"<td>{words.figure(line.median_radius)}</td>" if line.median_radius is not None else "")
        + "</tr>"
        for line in lines
    )
    return card("Class by class", "", f'<div class="wide"><table>{head}{body}</table></div>')


def _made(data: ReportInput) -> str:
    found = data.certificates
    summary = data.model.summary()
    limits = words.threat_words(found.threat, data.model.n_features, data.name)
    lines = {
        "model": f"{summary.source}: {words.rows_of(summary.trees, 'tree')} of depth up to "
        f"{summary.max_depth}, {summary.leaves:,} leaves; {summary.features_used} of {summary.features:,} "
        "features used",
        "decision": summary.decision_rule,
        "adversary": "; ".join([words.move_words(found.threat), *limits]),
        "method": found.method_reason,
        "time": _time(data),
        "arithmetic": f"rows as {found.dtype} numbers, as the model receives them"
        + (f"; {words.rows_of(found.cast_rows)} were rounded" if found.cast_rows else ""),
        **{key: str(value) for key, value in data.facts.items()},
        "treeproof": __version__,
    }
    if found.interrupted:
        lines["stopped"] = "the work was interrupted; rows not reached are undecided"
    listed = "".join(f"<dt>{escape(key)}</dt><dd>{escape(str(text))}</dd>" for key, text in lines.items())
    command = f'<p class="small">To reproduce it:</p><pre>{escape(data.command or _call(found))}</pre>'
    note = (
        "Verified means proved mathematically for every input that the adversary may reach, not tested on "
        "some. A counterexample is a real input, replayed on the model. The true robust error is at least "
        "the attack error and at most the verified error."
    )
    return card("What this means, and how it was made", note, f"<dl>{listed}</dl>{command}")


def _call(found) -> str:
    """The Python call that gives the same certificates, for pages that no command made."""
    labels = "" if found.y is None else "y, "
    threat = repr(found.threat)
    if len(threat) > 600:
        threat = "threat"  # numbers for hundreds of features: the page names them in words
    return f"treeproof.certify(model, X, {labels}treeproof.{threat}, method={found.method_names[-1]!r})".replace(
        "treeproof.threat", "threat"
    )


def _time(data: ReportInput) -> str:
    total = float(np.sum(data.certificates.seconds))
    text = f"{total:.3g} s for {words.rows_of(len(data.certificates))}"
    if data.radii is not None:
        text += f", and {float(np.sum(data.radii.seconds)):.3g} s for the radii"
    return text
