"""The one way in which treeproof compiles its loops.

Kernels are plain functions on arrays: nopython, nogil, cached on disk, never fastmath. With
``NUMBA_DISABLE_JIT=1`` they run as ordinary Python. Import this module only from kernel modules, and
those only from inside functions, so that ``import treeproof`` does not import numba.
"""

from numba import njit

kernel = njit(cache=True, nogil=True)
inline = njit(cache=True, nogil=True, inline="always")
