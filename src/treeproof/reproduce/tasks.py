"""What a table is made of: rows of quantities, and the tasks (the costly work) that give their numbers.

A `Task` is the unit that is kept: once finished, its result is in the cell store and is never computed
again under the same settings. A `Quantity` is one printed number, read off the results of its tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .workshop import Workshop

Result = Mapping[str, Any]

PERCENT, SECONDS, TIMES, NUMBER, TEXT = "%", "s", "x", "", "text"


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Attributes
    ----------
    name : str
        Table, data set, model and method, separated by slashes.
    settings : dict
        All that determines the numbers; part of the identity of the stored result.
    run : callable
        Takes the `Workshop`, returns a flat dict of plain values.
    reduced : str
        How it falls short of the full experiment; empty when it does not.
    """

    name: str
    settings: Mapping[str, Any]
    run: Callable[[Workshop], dict[str, Any]] = field(repr=False, compare=False)
    reduced: str = ""


@dataclass(frozen=True)
class Quantity:
    """One number of a row: header, unit, the paper's figure (or None), and how to read ours.

    `value` gets the results of `tasks`, in their order, and is asked only when all of them are there.
    """

    header: str
    unit: str
    paper: float | None
    tasks: tuple[Task, ...]
    value: Callable[..., Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Row:
    """One line: what it is about, and its quantities."""

    labels: Mapping[str, str]
    quantities: tuple[Quantity, ...]
    dataset: str

    @property
    def tasks(self) -> list[Task]:
        """The tasks of the quantities, each once, in order."""
        found: dict[str, Task] = {}
        for quantity in self.quantities:
            for task in quantity.tasks:
                found.setdefault(task.name, task)
        return list(found.values())


@dataclass(frozen=True)
class Table:
    """One table of the report; `curves` (row number -> result) are drawn as a plot when given."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    curves: Callable[[Row, Callable[[Task], Result | None]], dict[str, list[float]]] | None = field(
        default=None, repr=False, compare=False
    )


def number(task: Task, key: str, header: str, unit: str, paper: float | None = None) -> Quantity:
    """The commonest quantity: one entry of one task's result."""
    return Quantity(header, unit, paper, (task,), lambda result: result.get(key))
