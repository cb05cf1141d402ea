"""MATLAB files of version 5 to 7: tagged elements in elements, each within the bytes of its own.

Read here and not by SciPy, whose reader ends the whole interpreter on some damaged files.
Every element is confined to the bytes of the one around it, so none can claim more than is
there.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = Any  # see _matlab

_HEADER = 128
_NUMBERS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
_TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE = 1, 2, 3, 4, 5
_NUMERIC = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
}  # fmt: skip
_COMPLEX = 0x0800
_LONGEST_NAME = 63

Element = tuple[int, memoryview]  # its type, and its bytes


@dataclass(frozen=True, eq=False)
class Sparse:
    """The entries of a sparse matrix that are stored.

    SciPy's class believes the indices it is given, and writes where they point.
    """

    size: tuple[int, int]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: NDArray[Any]

    @classmethod
    def of(
        cls, size: tuple[int, ...], rows: NDArray[Any], starts: NDArray[Any], values: NDArray[Any]
    ) -> Sparse:
        """From MATLAB's form: where in ``rows`` and ``values`` each column starts."""
        edges = starts.astype(np.intp)
        lengths = edges[1:] - edges[:-1]
        stored = int(lengths.sum())
        if (
            len(size) != 2
            or len(lengths) != size[1]
            or (lengths < 0).any()
            or starts[0] != 0
            or min(len(rows), len(values)) < stored
            or ((rows[:stored] < 0) | (rows[:stored] >= size[0])).any()
        ):
            raise ValueError("a sparse matrix whose indices do not fit its size")
        columns = np.repeat(np.arange(len(lengths)), lengths)
        return cls((size[0], size[1]), rows[:stored].astype(np.intp), columns, values[:stored])

    def diagonal(self) -> NDArray[Any] | None:
        """The diagonal of a square matrix that has nothing beside it; None for others."""
        on = self.rows == self.columns
        if self.size[0] != self.size[1] or self.values[~on].any():
            return None
        diagonal = np.zeros(self.size[0], dtype=self.values.dtype)
        diagonal[self.rows[on]] = self.values[on]
        return diagonal

    def vector(self) -> NDArray[Any]:
        """The entries of a matrix of one row or column."""
        vector = np.zeros(max(self.size), dtype=self.values.dtype)
        vector[np.maximum(self.rows, self.columns)] = self.values
        return vector


def is_mat5(head: bytes) -> bool:
    """Whether a file has the header of version 5 (version 7.3 has nearly the same)."""
    return len(head) >= _HEADER and head[124:128] in (b"\0\1IM", b"\1\0MI")


def mat5_variables(data: bytes, deepest: int) -> dict[str, Value]:
    """The variables by name, unwrapped; a ValueError if the file is damaged."""
    order = "<" if data[126:128] == b"IM" else ">"
    reader = _Reader(order)
    variables = {}
    for kind, content in reader.elements(memoryview(data)[_HEADER:]):
        if kind == _COMPRESSED:
            unpacked = memoryview(zlib.decompress(content))
            kind, content = next(reader.elements(unpacked), (0, content))
        if kind == _MATRIX and len(content):
            name, value = reader.matrix(content, deepest)
            variables[name] = value
    return variables


class _Reader:
    """Reads elements in the byte order of one file."""

    def __init__(self, order: str) -> None:
        self._order = order

    def elements(self, data: memoryview) -> Iterator[Element]:
        """The elements that stand one after another in these bytes."""
        at = 0
        while len(data) - at >= 8:
            first, size = (int(word) for word in np.frombuffer(data, self._order + "u4", 2, at))
            start, step = at + 8, 8
            kind = first
            if first >> 16:  # small ones pack type, size and up to 4 bytes in one tag
                kind, size, start, step = first & 0xFFFF, first >> 16, at + 4, 4
            if start + size > len(data):
                raise ValueError(f"an element of {size} bytes, where {len(data) - start} are left")
            yield kind, data[start : start + size]
            padded = size if kind == _COMPRESSED else -(-size // step) * step
            at = start + padded

    def matrix(self, data: memoryview, levels: int) -> tuple[str, Value]:
        """The name and value of one array of any class."""
        parts = self.elements(data)
        flags = int(self._numbers(next(parts, None))[0])
        size = tuple(int(length) for length in self._numbers(next(parts, None)))
        name = bytes(next(parts, (0, memoryview(b"")))[1])[:_LONGEST_NAME].decode("latin-1")
        if levels == 0 or min(size, default=-1) < 0:
            return name, None
        return name, self._value(flags, size, parts, levels)

    def _value(
        self, flags: int, size: tuple[int, ...], parts: Iterator[Element], levels: int
    ) -> Value:
        kind = flags & 0xFF
        if kind in _NUMERIC:
            values = self._array(size, next(parts, None))
            if flags & _COMPLEX:
                return values + 1j * self._array(size, next(parts, None))
            return values
        if kind == _CHAR:
            return self._text(size, next(parts, None))
        if kind == _CELL:
            return self._matrices(math.prod(size), parts, levels)
        if kind == _SPARSE:
            return self._sparse(size, parts)
        if kind in (_STRUCT, _OBJECT):
            if kind == _OBJECT:
                next(parts, None)  # the name of its class
            return self._struct(math.prod(size), parts, levels)
        return None

    def _matrices(self, count: int, parts: Iterator[Element], levels: int) -> list[Value]:
        values: list[Value] = []
        for kind, content in parts:
            if kind != _MATRIX or len(values) == count:
                raise ValueError(f"expected a cell of {count} arrays; found something else in it")
            empty = len(content) == 0
            values.append(np.empty((0, 0)) if empty else self.matrix(content, levels - 1)[1])
        if len(values) != count:
            raise ValueError(f"expected a cell of {count} arrays; found {len(values)}")
        return values

    def _struct(self, count: int, parts: Iterator[Element], levels: int) -> Value:
        width = int(self._numbers(next(parts, None))[0])
        packed = bytes(next(parts, (0, memoryview(b"")))[1])
        if width <= 0:
            raise ValueError("a struct whose field names have no length")
        names = [packed[i : i + width] for i in range(0, len(packed), width)]
        fields = [name.split(b"\0")[0].decode("latin-1") for name in names]
        values = self._matrices(count * len(fields), parts, levels)
        records = [
            dict(zip(fields, values[i : i + len(fields)], strict=True))
            for i in range(0, len(values), max(len(fields), 1))
        ]
        return records[0] if len(records) == 1 else records

    def _text(self, size: tuple[int, ...], part: Element | None) -> Value:
        kind, content = part or (16, memoryview(b""))
        if kind in _TEXTS:
            encoding = _TEXTS[kind] + ("" if kind == 16 else "-le" if self._order == "<" else "-be")
            text = bytes(content).decode(encoding, errors="replace")
        else:
            codes = self._numbers((kind, content)).astype("<u2")
            text = codes.tobytes().decode("utf-16-le", errors="replace")
        rows = size[0]
        if not 1 < rows <= len(text) or len(text) % rows:
            return text
        return [text[row::rows].rstrip() for row in range(rows)]  # stored column by column

    def _sparse(self, size: tuple[int, ...], parts: Iterator[Element]) -> Sparse:
        rows, starts, values = (self._numbers(next(parts, None)) for _ in range(3))
        return Sparse.of(size, rows, starts, values)

    def _array(self, size: tuple[int, ...], part: Element | None) -> NDArray[Any]:
        values = self._numbers(part)
        if len(values) != math.prod(size):
            raise ValueError(f"expected an array of size {size}; found {len(values)} numbers")
        return values.reshape(size, order="F")

    def _numbers(self, part: Element | None) -> NDArray[Any]:
        if part is None or part[0] not in _NUMBERS:
            raise ValueError(f"expected numbers; found an element of type {part and part[0]}")
        kind, content = part
        dtype = np.dtype(self._order + _NUMBERS[kind])
        return np.frombuffer(content, dtype) if len(content) else np.empty(0, dtype)
