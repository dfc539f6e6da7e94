"""From a column of texts to class labels: the model's own classes, or the labels found in the file."""

from __future__ import annotations

import numpy as np

from .._errors import InvalidInputError


def read_label_map(text: str | None) -> dict[str, str]:
    """``"yes=1,no=0"`` as a dict from the file's label to the model's class."""
    pairs = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        left, mark, right = part.partition("=")
        if not mark or not left.strip() or not right.strip():
            raise InvalidInputError(f"--label-map must be a list such as yes=1,no=0. Got {part.strip()!r}.")
        pairs[left.strip()] = right.strip()
    return pairs


def match_labels(labels: np.ndarray, classes: np.ndarray, label_map: dict[str, str] | None, where: str) -> np.ndarray:
    """The model's class for each text; a text that names none is an error.

    Texts and classes agree when they are equal, or equal as numbers ("1.0" is the class 1).
    """
    label_map = label_map or {}
    known = {str(label): place for place, label in enumerate(classes.tolist())}
    numbers: dict[float | None, int] = {}
    for place, label in enumerate(classes.tolist()):
        number = _number(label)
        if number is not None:
            numbers[number] = place
    texts, inverse = np.unique(labels, return_inverse=True)
    places = []
    for text in texts.tolist():
        wanted = _mapped(text, label_map)
        place = known.get(wanted, numbers.get(_number(wanted), -1))
        if place < 0:
            raise InvalidInputError(_unknown(text, wanted, classes, where, bool(label_map)))
        places.append(place)
    return classes[np.array(places, dtype=np.int64)[inverse]]


def own_labels(labels: np.ndarray, label_map: dict[str, str] | None) -> np.ndarray:
    """The labels as classes to train on: whole numbers where all are, else texts."""
    mapped = [_mapped(text, label_map or {}) for text in labels.tolist()]
    numbers = [_number(text) for text in mapped]
    if all(number is not None and number == int(number) and abs(number) < 2**53 for number in numbers):
        return np.array([int(number) for number in numbers])  # type: ignore[arg-type]
    return np.array(mapped)


def _mapped(text: str, label_map: dict[str, str]) -> str:
    if text in label_map:
        return label_map[text]
    number = _number(text)
    for key, value in label_map.items():
        if number is not None and _number(key) == number:
            return value
    return text


def _number(label) -> float | None:
    try:
        value = float(label)
    except (TypeError, ValueError):
        return None
    return value if value - value == 0 else None


def _unknown(text: str, wanted: str, classes: np.ndarray, where: str, mapped: bool) -> str:
    names = ", ".join(map(str, classes.tolist()[:10]))
    meant = f" (mapped to {wanted!r})" if wanted != text else ""
    first = classes.tolist()[0]
    return (
        f"{where} must hold the model's classes, {names}. Got {text!r}{meant}. "
        f"Say which class it means with --label-map {text}={first}" + (", ..." if mapped else "") + "."
    )
