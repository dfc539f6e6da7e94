"""The report as Markdown: each cell is ``paper / ours / difference``."""

from __future__ import annotations

from collections.abc import Mapping

from . import plots
from .report import Cell, Line, Report, Section, show
from .tasks import SECONDS, TIMES

LEGEND = (
    "A cell is **paper / ours / difference**, or ours alone where the paper gives no figure. Errors are in "
    "percent (difference in points), times in CPU seconds, a row's where a method verifies (ours over the paper's, "
    "which come from another machine). † marks a reduced experiment; the notes under the table say how it was reduced."
)


def render(report: Report) -> str:
    """The whole page."""
    parts = ["# The paper's tables, measured again", ""]
    if report.quick:
        parts += ["**A quick run: rows are reduced throughout, see the notes.**", ""]
    facts = {**report.environment, "command": f"`{report.environment['command']}`"}
    parts += [f"- {key.replace('_', ' ')}: {value}" for key, value in facts.items()]
    parts += [f"- cells open: {report.open_cells}"] if report.open_cells else []
    parts += ["", LEGEND, ""]
    for section in report.sections:
        parts += _section(section)
    return "\n".join(parts).rstrip() + "\n"


def _section(section: Section) -> list[str]:
    out = [f"## {section.title}", "", section.about, f"Computed in {section.seconds:.0f} CPU seconds.", ""]
    if not section.lines:
        return [*out, "No row of this table was asked for.", ""]
    signs = marks(section)
    for title, group in blocks(section):
        labels = list(group[0].labels)
        headers = labels + [cell.header for cell in group[0].cells]
        out += [f"**{title}**", "", "| " + " | ".join(headers) + " |"]
        out.append("|" + "---|" * len(headers))
        for line in group:
            values = [line.labels[key] for key in labels] + [text(cell, signs) for cell in line.cells]
            out.append("| " + " | ".join(value.replace("|", "\\|") for value in values) + " |")
        out.append("")
    out += [f"- {sign} {note}" for note, sign in signs.items()]
    out += [f"- failed: {note}" for note in failures(section)]
    out += [""] if out[-1] else []
    for name in plots.of(section):
        out += [f"![{section.title}]({plots.FOLDER}/{name})", ""]
    return out


def blocks(section: Section) -> list[tuple[str, list[Line]]]:
    """What is printed as one table, with its title: lines with the same columns; errors first, then times."""
    found: dict[tuple, list[Line]] = {}
    for line in section.lines:
        found.setdefault((*line.labels, *(cell.header for cell in line.cells)), []).append(line)
    out = []
    for lines in found.values():
        for title, timed in (("Errors", False), ("Times", True)):
            chosen = [
                Line(line.labels, [cell for cell in line.cells if (cell.unit in (SECONDS, TIMES)) == timed])
                for line in lines
            ]
            if chosen[0].cells:
                out.append((title, chosen))
    return out


def text(cell: Cell, signs: Mapping[str, str]) -> str:
    """One cell."""
    paper, ours, change = show(cell, signs)
    if cell.paper is None:
        return ours
    return f"{paper} / {ours} / {change}" if change else f"{paper} / {ours}"


def marks(section: Section) -> dict[str, str]:
    """The sign of each way in which cells of the section were reduced: † alone, or numbered."""
    cells = [cell for line in section.lines for cell in line.cells]
    notes = list(dict.fromkeys(cell.reduced for cell in cells if cell.reduced and cell.state == "done"))
    return {note: "†" if len(notes) == 1 else f"†{number}" for number, note in enumerate(notes, 1)}


def failures(section: Section) -> list[str]:
    """What went wrong, each once."""
    cells = [cell for line in section.lines for cell in line.cells]
    return list(dict.fromkeys(cell.message for cell in cells if cell.state == "failed"))
