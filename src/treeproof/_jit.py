"""The one way in which treeproof compiles its loops.

Kernels are plain functions on arrays: nopython, nogil, cached on disk, never fastmath. With
``NUMBA_DISABLE_JIT=1`` they run as ordinary Python. Import this module only from kernel modules, and
those only from inside functions, so that ``import treeproof`` does not import numba.

numba's disk cache of a kernel is keyed by the kernel's own file, so a change in a function that it calls, in
another file, would go on running the old machine code. Here the key is the source of all kernel modules.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import event

from ._clock import compiling


class _Listener(event.Listener):
    """Tells the clock when numba compiles."""

    def on_start(self, event) -> None:
        compiling.start()

    def on_end(self, event) -> None:
        compiling.end()


event.register("numba:compile", _Listener())


@cache
def package_stamp() -> str:
    """A digest of every module of the package that has kernels (those that import this one)."""
    digest = sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        if b"_jit import" in source:
            digest.update(str(path.relative_to(root)).encode())
            digest.update(source)
    return digest.hexdigest()


def _compile(function, **options) -> Any:
    compiled = njit(cache=True, nogil=True, **options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT
        return compiled
    try:
        file = compiled._cache._cache_file
        file._source_stamp = (file._source_stamp, package_stamp())
    except AttributeError:  # another numba: rather compile again than run what may be stale
        return njit(nogil=True, **options)(function)
    return compiled


def kernel(function) -> Any:
    """Compile a loop on arrays."""
    return _compile(function, _nrt=True)  # said aloud: else a kernel that a lean one calls would be lean too


def lean(function) -> Any:
    """Compile a loop that allocates nothing and returns numbers: it borrows its arrays.

    Without counting references to every array that it is handed, a short row takes a third of the time.
    """
    return _compile(function, _nrt=False)


def inline(function) -> Any:
    """Compile a small function into its callers."""
    return _compile(function, inline="always")
