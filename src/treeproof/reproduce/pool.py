"""Tasks in several processes, one thread each; all tasks of one model stay together, so that it is trained once.

Tasks hold closures, which no pipe carries: a worker builds the tables anew and is told names. Results go through the
cell store, as they do without workers. A worker ignores Ctrl-C (whoever started it ends it) and leaves when the process
that started it has gone, however that died.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from .settings import Settings
from .tasks import Table, Task

Build = Callable[[], list[Table]]  # a picklable one
Hear = Callable[..., None]  # called with a kind of event, a task's name, and what there is to say

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def groups(tasks: Iterable[Task]) -> list[list[str]]:
    """Names of tasks that use the same model, in order."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        model = json.dumps(task.settings.get("model", task.name), sort_keys=True, default=str)
        found.setdefault(model, []).append(task.name)
    return list(found.values())


def work(build: Build, todo: list[list[str]], out: Path, settings: Settings, processes: int, hear: Hear) -> None:
    """Do groups of tasks in so many processes; `hear` is called in this one at every step."""
    waiting = deque(todo)
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < processes:
                workers.append(_Worker(build, out, settings, waiting.popleft()))
            for connection in wait([worker.connection for worker in workers]):
                worker = next(one for one in workers if one.connection is connection)
                if worker.step(hear, waiting):
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process, seen from the one that started it."""

    def __init__(self, build: Build, out: Path, settings: Settings, group: list[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, build, out, settings), daemon=True)
        with _one_thread():
            self.process.start()
        other.close()
        self.left: list[str] = []
        self.give(group)

    def give(self, group: list[str]) -> None:
        self.left = list(group)
        with suppress(OSError):  # it died meanwhile: the next step finds out
            self.connection.send(group)

    def step(self, hear: Hear, waiting: deque[list[str]]) -> bool:
        """Take one message; true when the process has ended."""
        try:
            message: tuple[str, str, dict[str, Any]] = self.connection.recv()
        except (EOFError, OSError):  # it died: killed, or out of memory
            self.end()
            for name in self.left:
                hear("failed", name, message=f"its process ended with code {self.process.exitcode}", seconds=0.0)
            return True
        kind, name, more = message
        hear(kind, name, **more)
        if kind != "start":
            self.left.remove(name)
        if self.left:
            return False
        if waiting:
            self.give(waiting.popleft())
            return False
        self.end()
        return True

    def end(self) -> None:
        """Cells are renamed when they are whole, so a process may be ended at any time."""
        self.connection.close()
        self.process.terminate()
        self.process.join()


def _serve(connection: Connection, build: Build, out: Path, settings: Settings) -> None:
    """The process's own side: groups of names come, events go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    from .runner import do
    from .store import CellStore
    from .workshop import Workshop

    tasks = {task.name: task for table in build() for row in table.rows for task in row.tasks}
    store, shop = CellStore(out), Workshop(out, settings)
    while True:
        try:
            group = connection.recv()
        except EOFError:
            return
        for name in group:
            do(tasks[name], store, shop, lambda kind, name=name, **more: connection.send((kind, name, more)))


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Libraries read these when they are loaded: processes started inside work on one thread each."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
