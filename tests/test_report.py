"""The report and the plots: complete, true to the results, self-contained, and drawn without errors by a browser."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

import treeproof
from treeproof import InvalidInputError, Threat, TreeEnsemble
from treeproof.reporting import analysis, images, report_html, svg, words, write_report

NAMES = ("income", "age", "visits", 'a <b> & "c"')


@pytest.fixture(scope="module")
def model() -> TreeEnsemble:
    rng = np.random.default_rng(0)
    step = rng.normal(size=30)
    return TreeEnsemble.from_stumps(rng.integers(0, 4, 30), rng.random(30), -step, step, feature_names=NAMES)


@pytest.fixture(scope="module")
def rows(model):
    X = np.random.default_rng(1).random((80, 4))
    y = model.predict(X)
    y[:5] = 1 - y[:5]
    return X, y


@pytest.fixture(scope="module")
def results(model, rows):
    threat = Threat(norm=1, eps=0.1, frozen=["age"])
    return treeproof.certify(model, *rows, threat), treeproof.radius(model, *rows, threat)


@pytest.fixture(scope="module")
def html(model, results):
    return report_html(results[0], model, radii=results[1], title="A <title>", command="treeproof certify x", gate=0.2)


class _Checker(HTMLParser):
    """Every tag is closed, and nothing is fetched from anywhere."""

    VOID = frozenset(("meta", "link", "br", "wbr", "img", "line", "rect", "path"))

    def __init__(self):
        super().__init__()
        self.open, self.links, self.seen = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.links += [value for key, value in attrs if key in ("href", "src", "xlink:href", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)
        self.links += [value for key, value in attrs if key in ("href", "src")]

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_fetches_nothing(html):
    checker = _Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert {"svg", "table", "style", "script"} <= checker.seen
    assert checker.links
    assert all(link.startswith("data:") for link in checker.links)
    assert "http://" not in html
    assert "https://" not in html
    assert "url(" not in html


def test_texts_from_outside_cannot_become_markup(html):
    assert "A &lt;title&gt;" in html
    assert "A <title>" not in html
    assert "<b> &" not in html


def test_the_figures_are_those_of_the_results(html, results):
    proof, radii = results
    for share in (proof.clean_error, proof.attack_error, proof.verified_error):
        assert f"<b>{words.percent(share)}</b>" in html
    counts = words.split_counts(proof)
    assert sum(counts.values()) == len(proof)
    assert f"{counts['robust']} proved robust" in html
    assert "gate failed" in html
    assert proof.verified_error > 0.2
    assert words.headline(proof).replace("'", "&#x27;") in html
    assert f"median {words.figure(radii.median)} (misclassified" in html
    assert "age frozen" in html
    assert "treeproof certify x" in html


def test_the_threat_is_told_feature_by_feature():
    threat = Threat(
        norm=1, eps=1, scale={"income": 1000}, frozen=[True, False, True], lower=0, direction=np.array([1, -1, 1])
    )
    said = words.threat_words(threat, 3, ["income", "age", "visits"].__getitem__)
    assert said == [
        "steps of 1000 for income",
        "at least 0 for all features",
        "only growth for income, visits",
        "only shrinking for age",
        "income, visits frozen",
    ]
    many = Threat(norm=1, eps=1, scale=np.arange(1, 21), frozen=list(range(12)))
    assert words.threat_words(many, 20, str) == ["scale set for all features", "12 features frozen"]


def test_a_page_made_from_python_says_how_to_repeat_it(model, results):
    html = report_html(results[0], model)
    assert "treeproof.certify(model, X, y, treeproof.Threat(norm=1.0, eps=0.1, frozen=[&#x27;age&#x27;])" in html


def test_the_curve_brackets_the_truth_and_meets_the_certificates(model, rows, results):
    """At the certified eps the curve from radii equals the errors of certify."""
    proof, radii = results
    curve = analysis.error_curve(radii, 0.4)
    at = int(np.searchsorted(curve.eps, 0.1, side="right")) - 1
    assert set(radii.lower[(radii.lower > 0) & (radii.lower < 0.4)]) <= set(curve.eps)
    assert curve.verified[0] == pytest.approx(proof.clean_error)
    assert np.all(np.diff(curve.verified) >= 0)
    assert np.all(curve.attack <= curve.verified)
    assert curve.attack[at] <= proof.attack_error + 1e-9
    assert curve.verified[at] == pytest.approx(proof.verified_error)


def test_fragile_rows_are_the_nearest_and_really_flip(model, rows, results):
    radii = results[1]
    fragile = analysis.fragile_rows(radii, model, 5)
    right = radii.correct
    nearest = np.sort(radii.upper[right])[:5]
    assert [one.distance for one in fragile] == pytest.approx(nearest.tolist())
    for one in fragile:
        x = rows[0][one.row].copy()
        for move in one.moves:
            assert x[move.feature] == move.before
            x[move.feature] = move.after
        assert str(model.predict(x[None])[0]) == one.becomes != one.predicted
        assert all(move.feature != 1 for move in one.moves)


def test_rows_that_flip_alike_are_told_once(model, rows):
    X = np.concatenate([rows[0][:20], rows[0][:20]])
    radii = treeproof.radius(model, X, norm=1)
    fragile = analysis.fragile_rows(radii, model, 5)
    assert [one.alike for one in fragile] == [1] * 5
    assert "and 1 row alike" in report_html(treeproof.certify(model, X, norm=1, eps=0.1), model, radii=radii)


def test_moves_are_shown_in_the_data_s_own_units(model, results):
    class Scaling:
        offset, span = np.full(4, 10.0), np.full(4, 100.0)

    plain = analysis.fragile_rows(results[1], model, 1)[0].moves[0]
    shown = analysis.fragile_rows(results[1], model, 1, Scaling)[0].moves[0]
    assert shown.before == pytest.approx(10 + 100 * plain.before)
    assert shown.after == pytest.approx(10 + 100 * plain.after)


def test_a_step_too_small_for_the_digits_is_said_in_words():
    assert words.moved_to(1.0, 2.5) == "2.5"
    assert words.moved_to(1.0, float(np.nextafter(1, 0))) == "just below 1"
    assert words.moved_to(1.0, float(np.nextafter(1, 2))) == "just above 1"


def test_exact_radii_are_one_line_and_bounds_a_band(model, rows):
    radii = treeproof.radius(model, *rows, norm=2)
    assert radii.exact.all()
    assert analysis.error_curve(radii).exact
    loose = treeproof.radius(model, *rows, norm=2, method="attack")
    assert not analysis.error_curve(loose).exact


def test_feature_uses_count_the_witnesses(results):
    uses = analysis.feature_uses(results[1])
    moved = analysis.moved_rows(results[1])
    for use in uses:
        count = sum(use.feature in results[1].witnesses.changes(row)[0] for row in moved)
        assert use.count == count
    assert 1 not in [use.feature for use in uses]


def test_class_lines_add_up(results):
    lines = analysis.class_lines(*results)
    total = sum(line.rows for line in lines)
    assert total == len(results[0])
    assert sum(line.verified * line.rows for line in lines) / total == pytest.approx(results[0].verified_error)


@pytest.mark.parametrize("norm", [0, 0.5, 2, np.inf])
def test_every_norm_has_a_page(model, rows, norm):
    eps = 1 if norm == 0 else 0.05
    proof = treeproof.certify(model, *rows, norm=norm, eps=eps)
    html = report_html(proof, model, radii=treeproof.radius(model, *rows, norm=norm))
    assert words.norm_name(norm) in html
    assert ">nan" not in html


def test_a_page_without_labels_radii_or_witnesses(model, rows):
    """Stability without labels; and a constant model, which nothing flips."""
    html = report_html(treeproof.certify(model, rows[0], norm=1, eps=0.05), model)
    assert "clean error" not in html
    assert "Predicted class" in html
    constant = TreeEnsemble.from_stumps([0], [0.5], [1.0], [1.0], n_features=4)
    proof = treeproof.certify(constant, rows[0], norm=1, eps=1)
    html = report_html(proof, constant, radii=treeproof.radius(constant, rows[0], norm=1))
    assert "None of the 80 rows" in html
    assert "proved" in html


def test_images_are_drawn_as_png(model, rows, results):
    html = report_html(results[0], model, radii=results[1], image_shape=(2, 2))
    assert html.count("data:image/png;base64,") >= 4
    with pytest.raises(InvalidInputError, match="3x3 = 9"):
        report_html(results[0], model, image_shape=(3, 3))


def test_the_png_holds_the_pixels():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    data = images.png(pixels)
    assert struct.unpack(">II", data[16:24]) == (7, 5)
    start = data.index(b"IDAT") + 4
    length = struct.unpack(">I", data[start - 8 : start - 4])[0]
    raw = np.frombuffer(zlib.decompress(data[start : start + length]), np.uint8).reshape(5, 1 + 21)
    assert np.array_equal(raw[:, 1:].reshape(5, 7, 3), pixels)


def test_ticks_are_round_and_cover():
    assert svg.ticks(0, 1, 4) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert svg.ticks(0, 0.03, 5)[:2] == [0.0, 0.01]
    assert svg.ticks(0, 7, 5) == [0.0, 2.0, 4.0, 6.0]


def test_a_report_that_cannot_be_written_says_so(model, results):
    with pytest.raises(InvalidInputError, match="cannot be written"):
        write_report("/no/such/place/report.html", results[0], model)


def test_reports_need_no_matplotlib(tmp_path):
    """The report is made in a process where matplotlib cannot be imported."""
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import treeproof\n"
        "from treeproof.reporting import write_report, plot_radii\n"
        "m = treeproof.TreeEnsemble.from_stumps([0], [0.5], [-1.0], [1.0])\n"
        "c = treeproof.certify(m, [[0.2], [0.9]], norm=1, eps=0.1)\n"
        "r = treeproof.radius(m, [[0.2], [0.9]], norm=1)\n"
        f"write_report({str(tmp_path / 'r.html')!r}, c, m, radii=r)\n"
        "try: plot_radii(r)\n"
        "except treeproof.InvalidInputError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "pip install matplotlib" in done.stdout
    assert (tmp_path / "r.html").stat().st_size > 5000


def test_notebook_cards(results):
    proof, radii = results
    assert words.percent(proof.verified_error) in proof._repr_html_()
    assert "<svg" in radii._repr_html_()


# ---------------------------------------------------------------------- matplotlib


@pytest.fixture
def pyplot(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_plots_draw_the_numbers(pyplot, model, results):
    from treeproof.reporting import plot_certified_error, plot_radii, plot_staircases, plot_witness

    proof, radii = results
    ax = plot_certified_error(radii, eps=0.1)
    xs, ys = ax.lines[0].get_data()
    assert np.allclose(ys, radii.certified_error(xs))
    assert len(plot_certified_error(radii, radii, labels=["one", "two"]).get_legend().get_texts()) == 2
    ax = plot_radii(radii, bins=10)
    assert sum(bar.get_height() for bar in ax.patches) == np.sum(radii.correct & np.isfinite(radii.lower))
    row = int(analysis.moved_rows(proof)[0])
    ax = plot_witness(proof, row)
    assert sorted(bar.get_width() for bar in ax.patches) == pytest.approx(
        sorted(after - before for before, after in proof.changes(row).values())
    )
    plot_witness(proof, row, image_shape=(2, 2))
    bars = plot_witness(proof, row, names=["w", "x", "y", "z"])
    assert {text.get_text() for text in bars.get_yticklabels()} <= {"w", "x", "y", "z"}
    assert np.ravel(plot_staircases(model, ["x"], names=["w", "x", "y", "z"]))[0].get_title() == "x"
    axes = np.ravel(plot_staircases(model, ["income", 2]))
    assert [ax.get_title() for ax in axes[:2]] == ["income", "visits"]
    for ax in (*axes[:2],):
        ax.figure.canvas.draw()


def test_staircases_sum_to_the_score(model, rows):
    from treeproof.reporting.plots import staircase

    total = np.full(len(rows[0]), model.base[0])
    for j in range(4):
        cuts, values = staircase(model, j)
        total += values[np.searchsorted(cuts, rows[0][:, j], side="right")]
    assert np.allclose(total, model.decision_function(rows[0]))


def test_plots_refuse_what_they_cannot_draw(pyplot, model, results):
    from treeproof.reporting import plot_staircases, plot_witness

    robust = int(np.flatnonzero(~results[0].witnesses.present)[0])
    with pytest.raises(InvalidInputError, match="no witness"):
        plot_witness(results[0], robust)
    with pytest.raises(InvalidInputError, match="row must be"):
        plot_witness(results[0], 10_000)
    with pytest.raises(InvalidInputError, match="features"):
        plot_staircases(model, ["salary"])


# ---------------------------------------------------------------------- a real browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--enable-logging=stderr"),
]
PROBE = """<script>addEventListener('load',function(){
var bad=[];
document.querySelectorAll('svg.chart,svg.sharebar,img').forEach(function(e){
var r=e.getBoundingClientRect();if(r.width<100||r.height<10)bad.push(e.tagName+' '+r.width+'x'+r.height);
if(e.tagName==='IMG'&&!e.naturalWidth)bad.push('broken image')});
document.querySelectorAll('svg.chart text').forEach(function(t){
var r=t.getBoundingClientRect();if(r.height<10)bad.push('text of '+r.height+'px: '+t.textContent)});
document.querySelectorAll('main *').forEach(function(e){
var r=e.getBoundingClientRect();
if(r.right>innerWidth+1&&!e.closest('.wide')&&!e.closest('pre'))bad.push(e.tagName+'.'+e.className+' sticks out')});
console.log('CHARTS '+document.querySelectorAll('svg.chart').length+' PATHS '+
document.querySelectorAll('path.line').length+' BARS '+document.querySelectorAll('rect.bar').length);
console.log('BAD '+(bad.join('; ')||'none'))})</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("look", ["light", "dark"])
def test_a_browser_draws_everything_without_an_error(tmp_path, html, width, look):
    """Headless Chromium: no console error, all plots drawn, text large enough, nothing sticks out of the page."""
    page = tmp_path / "report.html"
    page.write_text(html.replace("<html ", f'<html data-look="{look}" ').replace("</body>", PROBE), encoding="utf-8")
    command = [
        CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={max(width, 500)},2400",
        f"--screenshot={tmp_path / 'shot.png'}", frame(tmp_path, page, width),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said = re.findall(r'CONSOLE[^"]*"(.*?)"(?:, source|$)', done.stderr, flags=re.MULTILINE)
    assert "BAD none" in said
    charts = next(line for line in said if line.startswith("CHARTS"))
    assert re.fullmatch(r"CHARTS 2 PATHS [12] BARS [1-9]\d*", charts)
    assert len(said) == 2, said
    assert (tmp_path / "shot.png").stat().st_size > 20_000


def frame(folder, page, width: int) -> str:
    """Chromium's window is at least 500 wide: a phone is a frame inside one."""
    if width >= 500:
        return f"file://{page}"
    outer = folder / "phone.html"
    outer.write_text(f'<iframe src="{page.name}" width="{width}" height="2300" style="border:0"></iframe>')
    return f"file://{outer}"


def test_several_classes_have_a_page():
    """Three classes by one-vs-all stumps: the class table has a line each, witnesses name where they lead."""
    rng = np.random.default_rng(2)
    model = TreeEnsemble.from_stumps(
        rng.integers(0, 3, 30), rng.random(30), rng.normal(size=(30, 3)), rng.normal(size=(30, 3)), n_features=3,
        classes=["a", "b", "c"],
    )  # fmt: skip
    X = rng.random((60, 3))
    y = model.predict(X)
    proof = treeproof.certify(model, X, y, norm=2, eps=0.05)
    html = report_html(proof, model, radii=treeproof.radius(model, X, y, norm=2))
    assert len(analysis.class_lines(proof)) == len(set(y))
    assert "becomes <b>" in html
    assert words.percent(proof.verified_error) in html
