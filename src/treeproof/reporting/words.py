"""The sentences that the terminal, the report and the notebook share."""

from __future__ import annotations

import numpy as np


def percent(share: float | None) -> str:
    """A share of rows, with as many digits as people read: ``12.3%``."""
    if share is None or not np.isfinite(share):
        return "-"
    return f"{100 * share:.1f}%" if share < 0.9995 or share == 1 else f"{100 * share:.2f}%"


def figure(number: float) -> str:
    """A number in a person's digits."""
    if not np.isfinite(number):
        return "∞" if number > 0 else ("-∞" if number < 0 else "-")
    if number == 0:
        return "0"
    size = abs(number)
    if size >= 1e5 or size < 1e-4:
        return f"{number:.3g}"
    text = f"{number:.0f}" if size >= 1000 else f"{number:.4g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rows_of(count: int, noun: str = "row") -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def norm_name(norm: float) -> str:
    """``l₁``, ``l∞``; ``l_0.5`` where there is no such sign."""
    signs = {0.0: "l₀", 1.0: "l₁", 2.0: "l₂", 3.0: "l₃", np.inf: "l∞"}
    return signs.get(float(norm), f"l_{norm:g}")


def move_words(threat) -> str:
    """What an adversary may do, in one phrase."""
    if threat.norm == 0:
        count = int(min(threat.eps, 1e9)) if np.isfinite(threat.eps) else None
        most = "any number of features" if count is None else f"at most {rows_of(count, 'feature')}"
        base = f"changes of {most} (l₀)"
    else:
        base = f"{norm_name(threat.norm)} moves" + (f" of at most {figure(threat.eps)}" if threat.eps < np.inf else "")
    return base


def limit_words(threat, n_features: int) -> list[str]:
    """The threat's restrictions, a short phrase each."""
    out = []
    if threat.scale is not None and threat.norm != 0:
        out.append(f"scale set for {_how_many(threat.scale, n_features)}")
    frozen = _frozen_count(threat.frozen)
    if frozen:
        out.append(f"{rows_of(frozen, 'feature')} frozen")
    if threat.lower is not None or threat.upper is not None:
        out.append("valid ranges set")
    if threat.direction is not None:
        settings = _settings(threat.direction, n_features)
        up, down = int(np.sum(settings == 1)), int(np.sum(settings == -1))
        if up:
            out.append(f"{rows_of(up, 'feature')} may only grow")
        if down:
            out.append(f"{rows_of(down, 'feature')} may only shrink")
    return out


def _settings(given, n_features: int) -> np.ndarray:
    if isinstance(given, dict):
        return np.array(list(given.values()), dtype=float)
    return np.broadcast_to(np.asarray(given, dtype=float), (n_features,))


def _how_many(given, n_features: int) -> str:
    return "all features" if not isinstance(given, dict) else rows_of(len(given), "feature")


def _frozen_count(frozen) -> int:
    if frozen is None:
        return 0
    if isinstance(frozen, dict):
        return sum(bool(flag) for flag in frozen.values())
    if isinstance(frozen, (str, int)):
        return 1
    flags = list(frozen)
    return sum(flags) if flags and all(isinstance(flag, (bool, np.bool_)) for flag in flags) else len(flags)


def headline(certificates) -> str:
    """What was proved, in a sentence that a manager can repeat."""
    n = len(certificates)
    verified, attack = certificates.verified_error, certificates.attack_error
    moves = move_words(certificates.threat)
    wrong = "are or can be made wrong" if certificates.y is not None else "can change their prediction"
    if verified == attack:
        broken = round(attack * n)
        if broken == 0:
            return f"None of the {rows_of(n)} {wrong} by {moves}: proved."
        if broken == n:
            return f"All {rows_of(n)} {wrong} by {moves}: each has a counterexample."
        share = f"Exactly {rows_of(broken)} of {n:,} ({percent(attack)})"
        return f"{share} {wrong} by {moves}; the other {n - broken:,} are proved robust."
    return (
        f"Between {percent(attack)} and {percent(verified)} of the {rows_of(n)} {wrong} by {moves}: "
        "the lower figure has counterexamples, the upper one is proved."
    )


def split_counts(certificates) -> dict[str, int]:
    """How many rows are proved robust, unknown, flipped by a witness, and misclassified as they stand."""
    from ..results import Status

    wrong = np.zeros(len(certificates), bool) if certificates.correct is None else ~certificates.correct
    broken = (certificates.status == Status.BROKEN) & ~wrong
    return {
        "robust": int(np.sum(certificates.status == Status.ROBUST)),
        "unknown": int(np.sum((certificates.status == Status.UNKNOWN) & ~wrong)),
        "broken": int(np.sum(broken)),
        "wrong": int(np.sum(wrong)),
    }
