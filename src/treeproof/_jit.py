"""The one way in which treeproof compiles its loops.

Kernels are plain functions on arrays: nopython, nogil, cached on disk, never fastmath. With
``NUMBA_DISABLE_JIT=1`` they run as ordinary Python. Import this module only from kernel modules, and
those only from inside functions, so that ``import treeproof`` does not import numba.
"""

from typing import Any

from numba import njit


def kernel(function) -> Any:
    """Compile a loop on arrays."""
    return njit(cache=True, nogil=True)(function)


def inline(function) -> Any:
    """Compile a small function into its callers."""
    return njit(cache=True, nogil=True, inline="always")(function)
