"""Threat files: TOML that names features, with patterns.

    norm = 1
    eps = 0.5

    [features."word_*"]       # a pattern as in file names, "*" for all; later tables win
    direction = 1

    [features.income]
    scale = 1000              # the norm counts income in steps of 1000
    lower = 0

    [features.age]
    frozen = true

The forms that `Threat.to_dict` writes (``[scale]``, ``frozen = ["age"]``, ...) are read as well.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .._errors import InvalidThreatError, must_be
from ..threat import Threat

SETTINGS = ("scale", "frozen", "lower", "upper", "direction")


def read_threat(path: str | None, names, n_features: int, norm=None, eps=None) -> Threat:
    """The threat of a command line: a file, with ``--norm`` and ``--eps`` on top of it.

    Parameters
    ----------
    path : str or None
    names : sequence of str
        The features' names, in the model's order.
    n_features : int
    norm, eps : float, optional
    """
    content = _content(path) if path else {}
    if norm is not None:
        content["norm"] = norm
    if eps is not None:
        content["eps"] = eps
    if "norm" not in content:
        raise InvalidThreatError("a threat must have a norm. Got none. Give --norm 1, or norm = 1 in --threat FILE.")
    try:
        return Threat.from_dict(_spread(content, list(names), n_features))
    except InvalidThreatError as error:
        raise InvalidThreatError(f"{path}: {error}" if path else str(error)) from None


def _content(path: str) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        return tomllib.loads(text)
    except OSError as error:
        raise InvalidThreatError(f"{path}: the threat file cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidThreatError(f"{path}: must be TOML. Got something else: {error}.") from None


def _spread(content: dict[str, Any], names: list[str], n_features: int) -> dict[str, Any]:
    """Replace names by column numbers, and the ``features`` tables by one dict a setting."""
    out: dict[str, Any] = {}
    for key, value in content.items():
        if key == "features":
            continue
        if key in SETTINGS and isinstance(value, dict):
            value = {_column(name, names, n_features): setting for name, setting in value.items()}
        elif key == "frozen" and isinstance(value, list):
            value = [_column(name, names, n_features) if isinstance(name, str) else name for name in value]
        out[key] = value
    tables = content.get("features", {})
    if not isinstance(tables, dict):
        raise InvalidThreatError(must_be("features", 'tables such as [features.income] or [features."word_*"]', tables))
    for pattern, settings in tables.items():
        if not isinstance(settings, dict):
            raise InvalidThreatError(must_be(f"features.{pattern}", "a table with scale, frozen, ...", settings))
        for setting, value in settings.items():
            if setting not in SETTINGS:
                raise InvalidThreatError(
                    must_be(f"features.{pattern}'s settings", f"among {', '.join(SETTINGS)}", setting)
                )
            chosen = out.setdefault(setting, {})
            if not isinstance(chosen, dict):
                chosen = out[setting] = _as_dict(chosen, setting, n_features)
            for column in _matching(pattern, names, n_features):
                chosen[column] = value
    if isinstance(out.get("frozen"), dict):
        _check_flags(out["frozen"], names)
    return out


def _check_flags(frozen: dict[int, Any], names: list[str]) -> None:
    for column, flag in frozen.items():
        if not isinstance(flag, bool):
            raise InvalidThreatError(must_be(f"frozen of {names[column]!r}", "true or false", flag))


def _as_dict(value: Any, setting: str, n_features: int) -> dict[int, Any]:
    """A setting for all features as one for each."""
    if isinstance(value, list):
        if setting == "frozen" and not all(isinstance(flag, bool) for flag in value):
            return {int(column): True for column in value}
        return dict(enumerate(value))
    return dict.fromkeys(range(n_features), value)


def _matching(pattern: str, names: list[str], n_features: int) -> list[int]:
    if pattern in names:
        return [names.index(pattern)]
    found = [j for j, name in enumerate(names) if fnmatchcase(name, pattern)]
    return found or [_column(pattern, names, n_features)]


def _column(name: str, names: list[str], n_features: int) -> int:
    if name in names:
        return names.index(name)
    if name.isdigit() and int(name) < n_features:
        return int(name)
    few = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    raise InvalidThreatError(must_be("a feature of the threat", f"one of the model's ({few})", name))
