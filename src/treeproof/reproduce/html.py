"""The report as one self-contained HTML page (no scripts, nothing loaded from elsewhere)."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from . import markdown, plots
from .report import ROUNDING, Cell, Report, Section, show
from .tasks import PERCENT

STYLE = """
:root { color-scheme: light dark; --edge: #8885; --good: #1a7f37; --bad: #b35900; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 100rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { border: 1px solid var(--edge); padding: .25rem .6rem; text-align: right; white-space: nowrap; }
th { text-align: center; white-space: normal; min-width: 4.5rem; }
caption { text-align: left; font-weight: bold; padding-bottom: .25rem; }
 td.label { text-align: left; }
small { opacity: .75; } .good { color: var(--good); } .bad { color: var(--bad); }
.open, .failed { opacity: .6; font-style: italic; }
svg { max-width: 100%; height: auto; }
"""


def render(report: Report) -> str:
    """The whole page."""
    facts = "".join(
        f"<li>{escape(key.replace('_', ' '))}: {escape(value)}</li>" for key, value in report.environment.items()
    )
    legend = escape(markdown.LEGEND.replace("**", ""))
    quick = "<p><strong>A quick run: rows are reduced throughout.</strong></p>" if report.quick else ""
    body = "".join(_section(section) for section in report.sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The paper's tables, measured again</title><style>{STYLE}</style></head><body>"
        f"<h1>The paper's tables, measured again</h1>{quick}<ul>{facts}</ul><p>{legend}</p>"
        f"{body}</body></html>\n"
    )


def _section(section: Section) -> str:
    about = f"{section.about} Computed in {section.seconds:.0f} CPU seconds."
    parts = [f"<h2>{escape(section.title)}</h2><p>{_words(about)}</p>"]
    signs = markdown.marks(section)
    for title, group in markdown.blocks(section):
        labels = list(group[0].labels)
        heads = "".join(f"<th>{escape(key)}</th>" for key in labels)
        heads += "".join(f"<th>{escape(cell.header)}</th>" for cell in group[0].cells)
        rows = ""
        for line in group:
            rows += "<tr>" + "".join(f'<td class="label">{escape(line.labels[key])}</td>' for key in labels)
            rows += "".join(_cell(cell, signs) for cell in line.cells) + "</tr>"
        table = f"<table><caption>{title}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        parts.append(f'<div class="wide">{table}</div>')
    remarks = [f"{sign} {note}" for note, sign in signs.items()]
    remarks += [f"failed: {note}" for note in markdown.failures(section)]
    if remarks:
        parts.append("<ul>" + "".join(f"<li>{escape(remark)}</li>" for remark in remarks) + "</ul>")
    parts += plots.of(section).values()
    return "".join(parts)


def _words(text: str) -> str:
    """Escaped, with `code` as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))


def _cell(cell: Cell, signs: Mapping[str, str]) -> str:
    paper, ours, change = show(cell, signs)
    if cell.state != "done":
        title = f' title="{escape(cell.message)}"' if cell.message else ""
        return f'<td class="{cell.state}"{title}>{ours}</td>'
    title = f' title="{escape(cell.reduced)}"' if cell.reduced else ""
    if cell.paper is None:
        return f"<td{title}>{escape(ours)}</td>"
    good = ""
    if cell.unit == PERCENT and cell.difference is not None and abs(cell.difference) > ROUNDING:
        good = "good" if cell.difference < 0 else "bad"
    return (
        f"<td{title}><small>{escape(paper)}</small> / <strong>{escape(ours)}</strong>"
        f' / <span class="{good}">{escape(change)}</span></td>'
    )
