"""MATLAB files of version 4 to 7 as bytes: matrices in a row, or elements in elements.

Read here and not by SciPy, whose reader ends the whole interpreter on some damaged files.
Nothing can claim more than the bytes around it hold.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defgpa.arrays import RawArray
from defgpa.io.limits import Budget

# A MATLAB value without its wrapping: numbers (an array in MATLAB's own size), text (str), a
# cell (list), a struct (dict), a sparse matrix, or None for what has no meaning here.
Value = Any  # arrays, text, sparse matrices, and dicts and lists of these

MAX_DEPTH = 16  # cells in cells in cells: a loop of references, not data
_HEADER = 128
_NUMBERS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
_NUMBERS_4 = ("f8", "f4", "i4", "i2", "u2", "u1")
_TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE, _NUMERIC = 1, 2, 3, 4, 5, range(6, 16)
OVERHEAD = 256  # bytes that Python takes for an array, however few the file takes

Element = tuple[int, memoryview]  # its type, and its bytes


@dataclass(frozen=True, eq=False)
class Sparse:
    """The entries of a sparse matrix that are stored.

    SciPy's class believes the indices it is given, even while it checks them, and reads and
    writes where they point.
    """

    size: tuple[int, int]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: RawArray

    @classmethod
    def of(
        cls, size: tuple[int, ...], rows: RawArray, starts: RawArray, values: RawArray
    ) -> Sparse:
        """Build from MATLAB's form: where in ``rows`` and ``values`` each column starts.

        Parameters
        ----------
        rows, values : array (k,)
            The row and the value of every entry, column by column.
        starts : array (size[1] + 1,)
            The first entry of every column, and their number.
        """
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

    def diagonal(self) -> RawArray | None:
        """Return the entries of a row, a column or a diagonal matrix; else None."""
        place = np.maximum(self.rows, self.columns)
        has_others = self.values[self.rows != self.columns].any() or len(set(self.size)) > 1
        if has_others and 1 not in self.size:
            return None
        diagonal = np.zeros(max(self.size), dtype=self.values.dtype)
        diagonal[place] = self.values
        return diagonal


def is_mat5(head: bytes) -> bool:
    """Return whether a file has the header of version 5 (version 7.3 has nearly the same)."""
    return len(head) >= _HEADER and head[124:128] in (b"\0\1IM", b"\1\0MI")


def parse_mat5(data: bytes, budget: Budget) -> dict[str, Value]:
    """Parse the variables by name, unwrapped; a ValueError if the file is damaged."""
    reader = _Reader("<" if data[126:128] == b"IM" else ">", budget)
    variables = {}
    for kind, content in reader.split_elements(memoryview(data)[_HEADER:]):
        if kind == _COMPRESSED:
            kind, content = reader.unpack(content)
        if kind == _MATRIX and len(content):
            name, value = reader.parse_matrix(content, MAX_DEPTH)
            variables[name] = value
    return variables


def parse_mat4(data: bytes) -> dict[str, Value]:
    """Parse the matrices of version 4: five numbers, a name, and the entries, again and again."""
    variables, offset = {}, 0
    while offset < len(data):
        order = "<" if int.from_bytes(data[offset : offset + 4], "little") < 5000 else ">"
        head = np.frombuffer(data, order + "i4", 5, offset)
        kind, rows, columns, is_complex, length = (int(number) for number in head)
        precision, content = kind // 10 % 10, kind % 10
        if kind not in range(5000) or precision > 5 or min(rows, columns, length) < 0:
            raise ValueError("a matrix whose first numbers make no sense")
        name = data[offset + 20 : offset + 20 + length].split(b"\0")[0].decode("latin-1")
        entries = np.dtype(order + _NUMBERS_4[precision])
        count = rows * columns
        values = np.frombuffer(data, entries, count, offset + 20 + length)
        offset += 20 + length + count * entries.itemsize * (2 if is_complex else 1)
        if content == 0 and not is_complex:
            variables[name] = values.reshape((rows, columns), order="F")
    return variables


class _Reader:
    """Reads elements in the byte order of one file."""

    def __init__(self, order: str, budget: Budget) -> None:
        self._order, self._budget = order, budget

    def split_elements(self, data: memoryview) -> Iterator[Element]:
        """Split bytes into the elements that stand one after another in them."""
        offset = 0
        while len(data) - offset >= 8:
            first, size = (int(word) for word in np.frombuffer(data, self._order + "u4", 2, offset))
            kind, start, step = first, offset + 8, 8
            if first >> 16:  # small ones pack type, size and up to 4 bytes in one tag
                kind, size, start, step = first & 0xFFFF, first >> 16, offset + 4, 4
            if start + size > len(data):
                raise ValueError(f"an element of {size} bytes, where {len(data) - start} are left")
            yield kind, data[start : start + size]
            offset = start + (size if kind == _COMPRESSED else -(-size // step) * step)

    def unpack(self, packed: memoryview) -> Element:
        """Unpack a compressed element, if as much as it announces may be read."""
        tag = zlib.decompressobj().decompress(packed, 8)
        size = 8 + int(np.frombuffer(tag, self._order + "u4", 1, 4)[0])
        self._budget.spend(size, "what it packs")
        data = zlib.decompressobj().decompress(packed, size)
        return next(self.split_elements(memoryview(data)), (0, packed))

    def parse_matrix(self, data: memoryview, levels: int) -> tuple[str, Value]:
        """Parse the name and value of one array of any class."""
        self._budget.spend(OVERHEAD, "the arrays it holds")
        if not len(data):
            return "", np.empty((0, 0))
        parts = self.split_elements(data)
        flags = int(self._parse_numbers(next(parts, None))[0])
        size = tuple(int(length) for length in self._parse_numbers(next(parts, None)))
        name = bytes(next(parts, (0, memoryview(b"")))[1])[:63].decode("latin-1")  # none is longer
        if levels == 0 or min(size, default=-1) < 0:
            return name, None
        return name, self._parse_value(flags, size, parts, levels)

    def _parse_value(
        self, flags: int, size: tuple[int, ...], parts: Iterator[Element], levels: int
    ) -> Value:
        kind = flags & 0xFF
        if kind in _NUMERIC:
            values, is_complex = self._parse_array(size, next(parts, None)), flags & 0x0800
            return values + 1j * self._parse_array(size, next(parts)) if is_complex else values
        if kind == _CHAR:
            return self._parse_text(size, next(parts, None))
        if kind == _CELL:
            return self._parse_matrices(math.prod(size), parts, levels)
        if kind == _SPARSE:
            return Sparse.of(size, *(self._parse_numbers(next(parts, None)) for _ in range(3)))
        if kind == _OBJECT:
            next(parts, None)  # the name of its class
        return (
            self._parse_struct(math.prod(size), parts, levels)
            if kind in (_STRUCT, _OBJECT)
            else None
        )

    def _parse_matrices(self, count: int, parts: Iterator[Element], levels: int) -> list[Value]:
        matrices = [
            self.parse_matrix(content, levels - 1)[1] for kind, content in parts if kind == _MATRIX
        ]
        if len(matrices) != count:
            raise ValueError(f"expected a cell of {count} arrays; found {len(matrices)}")
        return matrices

    def _parse_struct(self, count: int, parts: Iterator[Element], levels: int) -> Value:
        width = int(self._parse_numbers(next(parts, None))[0])
        packed = bytes(next(parts, (0, memoryview(b"")))[1])
        if width <= 0:
            raise ValueError("a struct whose field names have no length")
        names = [packed[i : i + width] for i in range(0, len(packed), width)]
        fields = [name.split(b"\0")[0].decode("latin-1") for name in names]
        values = self._parse_matrices(count * len(fields), parts, levels)
        records = [
            dict(zip(fields, values[i : i + len(fields)], strict=True))
            for i in range(0, len(values), max(len(fields), 1))
        ]
        return records[0] if len(records) == 1 else records

    def _parse_text(self, size: tuple[int, ...], data: Element | None) -> Value:
        kind, content = data or (16, memoryview(b""))
        if kind in _TEXTS:
            encoding = _TEXTS[kind] + ("" if kind == 16 else "-le" if self._order == "<" else "-be")
            text = bytes(content).decode(encoding, errors="replace")
        else:
            codes = self._parse_numbers((kind, content)).astype("<u2")
            text = codes.tobytes().decode("utf-16-le", errors="replace")
        rows = size[0]
        if not 1 < rows <= len(text) or len(text) % rows:
            return text
        return [text[row::rows].rstrip() for row in range(rows)]  # stored column by column

    def _parse_array(self, size: tuple[int, ...], part: Element | None) -> RawArray:
        values = self._parse_numbers(part)
        if len(values) != math.prod(size):
            raise ValueError(f"expected an array of size {size}; found {len(values)} numbers")
        self._budget.spend(8 * len(values), "an array")  # of doubles, in the end
        return values.reshape(size, order="F")

    def _parse_numbers(self, part: Element | None) -> RawArray:
        if part is None or part[0] not in _NUMBERS:
            raise ValueError(f"expected numbers; found an element of type {part and part[0]}")
        kind, content = part
        dtype = np.dtype(self._order + _NUMBERS[kind])
        return np.frombuffer(content, dtype) if len(content) else np.empty(0, dtype)
