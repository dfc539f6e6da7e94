"""What the documentation is made of beyond its pages: the command line's reference, and formulas without scripts.

Formulas ($...$ and $$...$$) become MathML, which browsers draw themselves: the site needs no network.
"""

from __future__ import annotations

import re
from html import unescape
from inspect import cleandoc

import click
from latex2mathml.converter import convert

from treeproof.cli import COMMANDS, app

MATH = re.compile(r'<(span|div) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.DOTALL)


def on_page_markdown(markdown: str, **_) -> str:
    """Put the commands where the page asks for them."""
    return markdown.replace("<!-- commands -->", "\n".join(map(reference, COMMANDS)))


def on_page_content(html: str, **_) -> str:
    """Turn what arithmatex has marked into MathML."""
    return MATH.sub(_mathml, html)


def _mathml(found: re.Match) -> str:
    display = "block" if found[1] == "div" else "inline"
    return convert(unescape(found[2]).strip(), display=display)


def reference(name: str, above: str = "treeproof", group: click.Group = app, depth: int = 2) -> str:
    """A command's help as Markdown, and that of the commands below it."""
    command = group.get_command(click.Context(group), name)
    context = click.Context(command, info_name=f"{above} {name}")
    parts = [f"{'#' * depth} {above} {name}", *_paragraphs(cleandoc(command.help or ""))]
    parts.append(f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```")
    options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    lines = ["| option | |", "|---|---|", *(_line(option, context) for option in options if option.name != "help")]
    if len(lines) > 2:
        parts.append("\n".join(lines))
    if isinstance(command, click.Group):
        parts += [reference(one, context.command_path, command, depth + 1) for one in command.list_commands(context)]
    return "\n\n".join(parts) + "\n"


def _paragraphs(text: str) -> list[str]:
    """Help text; what click is told not to wrap (after a line with \\b) are commands to type."""
    out = []
    for part in text.split("\n\n"):
        typed = part.startswith("\b")
        lines = [line.strip() for line in part.strip("\b\n").splitlines()]
        out.append("```console\n" + "\n".join(lines) + "\n```" if typed else " ".join(lines))
    return out


def _line(option: click.Option, context: click.Context) -> str:
    written, said = option.get_help_record(context) or ("", "")
    return f"| `{written}` | {said} |"
