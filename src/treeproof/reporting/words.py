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


def moved_to(before: float, after: float) -> str:
    """Where a feature moves; a step too small for the digits is said in words."""
    text = figure(after)
    if after == before or text != figure(before):
        return text
    return f"just {'above' if after > before else 'below'} {text}"


def signed(move) -> str:
    """How far a feature moves, with its sign; one digit where the step is a hair's breadth."""
    far = move.after - move.before
    if figure(move.before) == figure(move.after):
        return f"{far:+.1g}"
    return ("+" if far > 0 else "-") + figure(float(f"{abs(far):.4g}"))


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
    frozen = len(_frozen_features(threat.frozen))
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


def threat_words(threat, n_features: int, name, most: int = 8) -> list[str]:
    """The threat's restrictions with the features that they are about, as long as those are few."""
    out = []
    for part in ("scale", "lower", "upper", "direction"):
        given = getattr(threat, part)
        if given is None or (part == "scale" and threat.norm == 0):
            continue
        settings = given if isinstance(given, dict) else dict(enumerate(_settings(given, n_features).tolist()))
        groups: dict[float, list] = {}
        for feature, value in settings.items():
            groups.setdefault(float(value), []).append(feature)
        out += [f"{_part(part, value)} for {_named(group, n_features, name, most)}" for value, group in groups.items()]
        if len(groups) > most:
            del out[-len(groups) :]
            out.append(f"{part} set for {_how_many(given, n_features)}")
    frozen = _frozen_features(threat.frozen)
    if frozen:
        out.append(f"{_named(frozen, n_features, name, most)} frozen")
    return out


def _part(part: str, value: float) -> str:
    if part == "direction":
        return {1.0: "only growth", -1.0: "only shrinking"}.get(value, "both directions")
    return {"scale": "steps of", "lower": "at least", "upper": "at most"}[part] + f" {figure(value)}"


def _named(features: list, n_features: int, name, most: int) -> str:
    if len(features) == n_features:
        return "all features"
    if len(features) > most:
        return rows_of(len(features), "feature")
    return ", ".join(feature if isinstance(feature, str) else name(int(feature)) for feature in features)


def _settings(given, n_features: int) -> np.ndarray:
    if isinstance(given, dict):
        return np.array(list(given.values()), dtype=float)
    return np.broadcast_to(np.asarray(given, dtype=float), (n_features,))


def _how_many(given, n_features: int) -> str:
    return "all features" if not isinstance(given, dict) else rows_of(len(given), "feature")


def _frozen_features(frozen) -> list:
    """The frozen features as they were named, by column or by name."""
    if frozen is None:
        return []
    if isinstance(frozen, dict):
        return [feature for feature, flag in frozen.items() if flag]
    if isinstance(frozen, (str, int)):
        return [frozen]
    flags = list(frozen)
    if flags and all(isinstance(flag, (bool, np.bool_)) for flag in flags):
        return [j for j, flag in enumerate(flags) if flag]
    return flags


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
