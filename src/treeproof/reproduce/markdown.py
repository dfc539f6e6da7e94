"""The report as Markdown: each cell is ``paper / ours / difference``."""

from __future__ import annotations

from . import plots
from .report import Cell, Report, Section, show

LEGEND = (
    "A cell is **paper / ours / difference**, or ours alone where the paper gives no figure. Errors are in "
    "percent (difference in points), times in seconds a row (ours over the paper's, which come from another "
    "machine). † marks a reduced experiment; the notes under the table say how it was reduced."
)


def render(report: Report) -> str:
    """The whole page."""
    parts = ["# The paper's tables, measured again", ""]
    if report.quick:
        parts += ["**A quick run: rows are reduced throughout, see the notes.**", ""]
    parts += [f"- {key.replace('_', ' ')}: {value}" for key, value in report.environment.items()]
    parts += [f"- cells open: {report.open_cells}"] if report.open_cells else []
    parts += ["", LEGEND, ""]
    for section in report.sections:
        parts += _section(section)
    return "\n".join(parts).rstrip() + "\n"


def _section(section: Section) -> list[str]:
    out = [f"## {section.title}", "", section.about, f"Computed in {section.seconds:.0f} CPU seconds.", ""]
    if not section.lines:
        return [*out, "No row of this table was asked for.", ""]
    for group in groups(section):
        labels = list(group[0].labels)
        headers = labels + [cell.header for cell in group[0].cells]
        out.append("| " + " | ".join(headers) + " |")
        out.append("|" + "---|" * len(headers))
        for line in group:
            values = [line.labels[key] for key in labels] + [text(cell) for cell in line.cells]
            out.append("| " + " | ".join(value.replace("|", "\\|") for value in values) + " |")
        out.append("")
    out += [f"- † {note}" for note in notes(section)]
    out += [f"- failed: {note}" for note in failures(section)]
    out += [""] if out[-1] else []
    for name in plots.of(section):
        out += [f"![{section.title}]({name})", ""]
    return out


def groups(section: Section) -> list[list]:
    """Lines with the same columns, which share one printed table."""
    found: dict[tuple, list] = {}
    for line in section.lines:
        found.setdefault((*line.labels, *(cell.header for cell in line.cells)), []).append(line)
    return list(found.values())


def text(cell: Cell) -> str:
    """One cell."""
    paper, ours, change = show(cell)
    if cell.paper is None:
        return ours
    return f"{paper} / {ours} / {change}" if change else f"{paper} / {ours}"


def notes(section: Section) -> list[str]:
    """How cells of the section were reduced, each way once."""
    cells = [cell for line in section.lines for cell in line.cells]
    return list(dict.fromkeys(cell.reduced for cell in cells if cell.reduced and cell.state == "done"))


def failures(section: Section) -> list[str]:
    """What went wrong, each once."""
    cells = [cell for line in section.lines for cell in line.cells]
    return list(dict.fromkeys(cell.message for cell in cells if cell.state == "failed"))
