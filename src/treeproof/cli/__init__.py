"""The ``treeproof`` command: one file a command, loaded only when it is called.

Exit codes: 0 done, 1 a gate failed (``--fail-above``), 2 a usage or input error (one line on standard
error, never a traceback), 3 a fault of treeproof itself, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys

import click

from .._errors import TreeproofError
from .._version import __version__
from .lazy import LazyGroup

COMMANDS = {
    "certify": "Prove, row by row, that no allowed move changes the prediction.",
    "radius": "Find how far each row is from another prediction.",
    "attack": "Look for counterexamples only, and write them as rows.",
    "compare": "Put two models' errors on the same rows side by side.",
    "train": "Train a provable model from a table.",
    "inspect": "Say what a model file holds.",
    "convert": "Write a model in treeproof's own format.",
    "demo": "Train, certify, compare and report on embedded data.",
    "data": "List, describe and fetch data sets, or write them as CSV.",
    "reproduce": "Measure the paper's tables again.",
    "warmup": "Compile the fast loops once, so that later calls are quick.",
}

EPILOG = "Exit codes: 0 done, 1 gate failed, 2 usage or input error."


@click.group(cls=LazyGroup, commands_by_name=COMMANDS, epilog=EPILOG)
@click.version_option(__version__, message="treeproof %(version)s")
def app() -> None:
    """Proofs of robustness for tree models.

    How far can a row move, in any l_p norm, before the prediction changes?

    \b
      treeproof demo
      treeproof certify model.json rows.csv --target label --norm 1 --eps 0.3
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command and leave with its exit code."""
    sys.exit(run(argv))


def run(argv: list[str] | None = None) -> int:
    """Run the command; return its exit code. Every expected error becomes one line."""
    _words_of_warnings()
    try:
        code = app.main(args=argv, prog_name="treeproof", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) and not isinstance(code, bool) else 0
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # nothing was asked
            click.echo(error.format_message(), err=True)
            return 2
        where = f" ({error.ctx.command_path} --help shows how)" if error.ctx else ""
        return _fail(error.format_message() + where)
    except click.ClickException as error:
        return _fail(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return _fail("stopped.", 130)
    except TreeproofError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # the reader (head, less) has gone: not an error, but Python would complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _fail(f"{named}{error.strerror or error}")
    except Exception as error:  # the last line of defence: one line, a code of its own
        if os.environ.get("TREEPROOF_TRACEBACK"):
            raise
        return _fail(
            f"treeproof met a fault of its own: {type(error).__name__}: {error}. "
            "Please report it; TREEPROOF_TRACEBACK=1 shows where.",
            3,
        )


def _fail(message: str, code: int = 2) -> int:
    click.echo("error: " + " ".join(str(message).split()), err=True)
    return code


def _words_of_warnings() -> None:
    """Warnings become one line on standard error, without file names and source lines."""
    import warnings

    def show(message, category, filename, lineno, file=None, line=None):
        click.echo("warning: " + " ".join(str(message).split()), err=True)

    warnings.showwarning = show


__all__ = ["app", "main", "run"]
