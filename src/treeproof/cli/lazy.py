"""A click group that imports a command's module only when that command is called.

``treeproof --help`` needs the names and one line each, so it imports no numpy, numba or scikit-learn.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

import click


class LazyGroup(click.Group):
    """Commands are named with their one-line help; each lives in ``treeproof.cli.NAME`` as ``command``."""

    def __init__(self, *args, commands_by_name: dict[str, str] | None = None, **kwargs):
        super().__init__(*args, **kwargs)
        self._lines = dict(commands_by_name or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lines:
            return None
        module = import_module(f".{cmd_name}", __package__)
        command = getattr(module, "command", None) or getattr(module, cmd_name)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx, args):
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self._lines:
            close = get_close_matches(name, self._lines, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" Choose one of {', '.join(self._lines)}."
            ctx.fail(f"there is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lines.items()))
