"""Every error that treeproof raises for a bad argument, file or model.

All are ``ValueError``s and carry one clear line: the name, the rule, what came, the next step.
"""

from __future__ import annotations

LONGEST = 600


class TreeproofError(ValueError):
    """Base class of the errors that treeproof raises on purpose.

    Its message is one line, whatever it quotes: line ends in names and files become spaces, and the middle of
    what is endless is left out.
    """

    def __init__(self, message: str) -> None:
        line = " ".join(str(message).splitlines())
        if len(line) > LONGEST:
            line = f"{line[: LONGEST * 2 // 3]} ... {line[-LONGEST // 3 :]}"
        super().__init__(line)


class InvalidModelError(TreeproofError):
    """The trees do not form a valid ensemble."""


class InvalidInputError(TreeproofError):
    """An array, label or option is not what the function needs."""


class InvalidThreatError(TreeproofError):
    """The description of what an adversary may do is not valid."""


class MethodError(TreeproofError):
    """The method is unknown, or cannot serve this model, norm or threat."""


class TranslationError(TreeproofError):
    """A model could not be translated into exactly the same function."""


def must_be(name: str, rule: str, got: object, hint: str = "") -> str:
    """Return the one error sentence of the package: name, rule, what came, next step."""
    shown = repr(got)
    if len(shown) > 120:
        shown = shown[:117] + "..."
    return f"{name} must be {rule}. Got {shown} instead." + (f" {hint}" if hint else "")
