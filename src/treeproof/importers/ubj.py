"""A UBJSON reader for files from strangers: bounded depth, and no more memory than a few times the file.

The format is Universal Binary JSON, draft 12, as XGBoost writes it. Every declared length is compared with
the bytes that are left before anything is made of that length.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from .._errors import InvalidModelError

MAX_DEPTH = 64
_INTEGERS = {b"i": "b", b"U": "B", b"I": ">h", b"l": ">i", b"L": ">q"}
_FLOATS = {b"d": ">f", b"D": ">d"}
_ARRAYS = {b"i": "i1", b"U": "u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_CONSTANTS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}


def loads(data: bytes) -> Any:
    """The value that the bytes state; typed arrays come back as numpy arrays."""
    reader = _Reader(data)
    value = reader.value(reader.marker(), 0)
    while reader.place < len(data):
        if data[reader.place : reader.place + 1] not in (b"N", b"\x00"):
            raise InvalidModelError(f"the UBJSON file has bytes after its end, from byte {reader.place} on.")
        reader.place += 1
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.place:
            raise InvalidModelError(
                f"the UBJSON file is damaged or cut short: {count} bytes are announced at byte {self.place}, "
                f"{len(self.data) - self.place} are left."
            )
        start = self.place
        self.place += count
        return self.data[start : self.place]

    def marker(self) -> bytes:
        mark = self.take(1)
        while mark == b"N":  # a no-op
            mark = self.take(1)
        return mark

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def length(self) -> int:
        mark = self.take(1)
        if mark not in _INTEGERS:
            raise self.unexpected(mark, "a length")
        return self.number(_INTEGERS[mark])

    def text(self, mark: bytes | None = None) -> str:
        raw = self.take(self.length() if mark is None else self.number(_INTEGERS[mark]))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidModelError(f"the UBJSON file has text that is not UTF-8 before byte {self.place}.") from None

    def unexpected(self, mark: bytes, wanted: str) -> InvalidModelError:
        return InvalidModelError(f"the UBJSON file has {mark!r} at byte {self.place - 1} where {wanted} should be.")

    def value(self, mark: bytes, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise InvalidModelError(f"the UBJSON file is nested more than {MAX_DEPTH} levels deep.")
        if mark in _INTEGERS:
            return self.number(_INTEGERS[mark])
        if mark in _FLOATS:
            return self.number(_FLOATS[mark])
        if mark in _CONSTANTS:
            return _CONSTANTS[mark]
        if mark == b"S" or mark == b"H":
            return self.text()
        if mark == b"C":
            return chr(self.take(1)[0])
        if mark == b"[":
            return self.array(depth)
        if mark == b"{":
            return self.table(depth)
        raise self.unexpected(mark, "a value")

    def header(self) -> tuple[bytes | None, int | None]:
        """The optional type and count of a container."""
        kind = None
        if self.peek() == b"$":
            self.place += 1
            kind = self.take(1)
            if self.peek() != b"#":
                raise self.unexpected(self.take(1), "the count of a typed container")
        if self.peek() != b"#":
            return None, None
        self.place += 1
        count = self.length()
        # each entry takes a byte at least: types without any content are refused where they are counted
        if kind in _CONSTANTS or not 0 <= count <= len(self.data) - self.place:
            raise InvalidModelError(
                f"the UBJSON file is damaged: a container of {count} entries is announced at byte {self.place}."
            )
        return kind, count

    def peek(self) -> bytes:
        return self.data[self.place : self.place + 1]

    def array(self, depth: int) -> Any:
        kind, count = self.header()
        if kind in _ARRAYS and count is not None:
            form = np.dtype(_ARRAYS[kind])
            raw = np.frombuffer(self.take(count * form.itemsize), dtype=form)
            return raw.astype(form.newbyteorder("="))
        entries: list[Any] = []
        while count is None or len(entries) < count:
            mark = kind or self.marker()
            if count is None and mark == b"]":
                break
            entries.append(self.value(mark, depth + 1))
        return entries

    def table(self, depth: int) -> dict[str, Any]:
        kind, count = self.header()
        table: dict[str, Any] = {}
        seen = 0
        while count is None or seen < count:
            mark = self.marker()
            if count is None and mark == b"}":
                break
            if mark not in _INTEGERS:
                raise self.unexpected(mark, "a name")
            name = self.text(mark)
            table[name] = self.value(kind or self.marker(), depth + 1)
            seen += 1
        return table
