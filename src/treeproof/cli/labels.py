"""From a column of texts to class labels: the model's own classes, or the labels found in the file."""

from __future__ import annotations

import numpy as np

from .._errors import InvalidInputError


def read_label_map(text: str | None) -> dict[str, str]:
    """``"yes=1,no=0"`` as a dict from the file's label to the model's class."""
    pairs: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        left, mark, right = part.partition("=")
        if not mark or not left.strip() or not right.strip():
            raise InvalidInputError(f"--label-map must be a list such as yes=1,no=0. Got {part.strip()!r}.")
        left, right = left.strip(), right.strip()
        if pairs.get(left, right) != right:
            raise InvalidInputError(
                f"--label-map must give each label one meaning. Got {left!r} as {pairs[left]!r} and as {right!r}."
            )
        pairs[left] = right
    return pairs


def match_labels(labels: np.ndarray, classes: np.ndarray, label_map: dict[str, str] | None, where: str) -> np.ndarray:
    """The model's class for each text; a text that names none is an error.

    Texts and classes agree when they are equal, or equal as numbers ("1.0" is the class 1).
    """
    label_map = label_map or {}
    known = {str(label): place for place, label in enumerate(classes.tolist())}
    numbers = {_number(label): place for place, label in enumerate(classes.tolist()) if _number(label) is not None}

    def place_of(text: str) -> int:
        return known.get(text, numbers.get(_number(text), -1))

    for key, value in label_map.items():
        if place_of(value) < 0:
            raise InvalidInputError(
                f"--label-map must lead to the model's classes, {_few(classes.tolist())}. Got {key}={value}."
            )
    texts, inverse = np.unique(labels, return_inverse=True)
    places = [place_of(_mapped(text, label_map)) for text in texts.tolist()]
    strange = [text for text, place in zip(texts.tolist(), places, strict=True) if place < 0]
    if strange:
        raise InvalidInputError(_unknown(strange, classes.tolist(), label_map, where))
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


def _few(names: list, most: int = 10) -> str:
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def _unknown(strange: list[str], classes: list, label_map: dict[str, str], where: str) -> str:
    """What to type, with a class for each unknown label to choose in the reader's stead."""
    given = [f"{key}={value}" for key, value in label_map.items()]
    example = ",".join([*given, *(f"{text}={classes[i % len(classes)]}" for i, text in enumerate(strange[:4]))])
    return (
        f"{where} must hold the model's classes, {_few(classes)}. Got {_few([repr(text) for text in strange], 4)}. "
        f"Say what they mean, for example --label-map {example}."
    )
