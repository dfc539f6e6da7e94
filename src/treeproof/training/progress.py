"""Progress of long fits: always to the logger ``treeproof.training``, and to the terminal when asked.

Each round (stump, tree, epoch) is a debug record with the attributes ``done`` and ``rounds``, from which the command
line draws its bar.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("treeproof.training")


def tell_round(label: str, done: int, rounds: int) -> None:
    """Log that a round is finished."""
    LOG.debug("%s: %d of %d", label, done, rounds, extra={"label": label, "done": done, "rounds": rounds})


class Progress:
    """Report lines; shown on standard error every `verbose`-th time when `verbose` is positive."""

    def __init__(self, verbose: int = 0):
        self.verbose = int(verbose)
        self.count = 0
        self.console = None
        if self.verbose > 0:
            from rich.console import Console

            self.console = Console(stderr=True, highlight=False)

    def line(self, text: str) -> None:
        """Log one line, and show it when its turn has come."""
        LOG.info(text)
        self.count += 1
        if self.console is not None and (self.count - 1) % self.verbose == 0:
            self.console.print(text, soft_wrap=True)
