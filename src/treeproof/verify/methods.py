"""The methods by name, and which one `auto` takes."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._errors import MethodError, must_be

if TYPE_CHECKING:
    from .problem import Problem, Solver

METHODS = {
    "tree": ("single_tree", "SingleTree"),
    "additive": ("additive", "Additive"),
    "grid": ("grid", "Grid"),
    "search": ("search", "Search"),
    "milp": ("milp", "Milp"),
    "multilevel": ("multilevel", "Multilevel"),
    "attack": ("attack", "Attack"),
}


def choose(problem: Problem) -> tuple[str, str]:
    """The method that `auto` takes for a model, and why."""
    if problem.model.is_additive:
        return "additive", "additive: each tree reads one feature, solved exactly feature by feature"
    if problem.model.n_trees == 1:
        return "tree", "tree: one tree, exact over its leaves"
    return "search", "search: several trees that share features, exact branch and bound"


def solver_for(method: str, problem: Problem, options: dict[str, Any]) -> tuple[Solver, str, str]:
    """The prepared solver, its name and why it was taken."""
    reason = f"{method}: as asked"
    if method == "auto":
        method, reason = choose(problem)
    if not isinstance(method, str) or method not in METHODS:
        raise MethodError(must_be("method", f"'auto' or one of {', '.join(sorted(METHODS))}", method))
    module, name = METHODS[method]
    cls = getattr(import_module(f".{module}", __package__), name)
    known = [key for key in inspect.signature(cls.__init__).parameters if key not in ("self", "problem")]
    strange = [key for key in options if key not in known]
    if strange:
        takes = f"among the options of method {method!r} ({', '.join(known) or 'it has none'})"
        raise MethodError(must_be(f"option {strange[0]!r}", takes, options[strange[0]]))
    refusal = cls.refuses(problem)
    if refusal:
        fit, _ = choose(problem)
        raise MethodError(
            f"method must be one that serves this problem. Got {method!r} instead: {refusal} Use {fit!r}."
        )
    return cls(problem, **options), method, reason
