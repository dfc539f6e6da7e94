"""The error of a data set that cannot be had."""

from __future__ import annotations

from .._errors import TreeproofError


class DataUnavailableError(TreeproofError):
    """The data set is neither in the package nor in a folder, and could not be downloaded."""
