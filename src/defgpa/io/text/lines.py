"""Parse text files of numbers, as programs of thirty years and several countries write them.

Every encoding and line ending is read; a number is a number or one of the words for a missing
one; anything else is refused with the file, the line, what was expected and what is there.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from defgpa import errors
from defgpa.arrays import Array, RawArray
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError, format_names, format_some
from defgpa.io.files import abbreviate, decode_text, make_format_error, read_bytes, read_head
from defgpa.io.format import ReadOptions
from defgpa.io.limits import (
    TEXT_COST,
    VARIABLE,
    WORD_COST,
    Budget,
    count_words,
    get_max_file_size,
)
from defgpa.shapes import number_labels

MISSING_WORDS = frozenset({"", "na", "nan", "+nan", "-nan", "n/a", "#n/a", "null", "none"})
_USUAL_GAPS = frozenset({"", "NA", "na", "N/A"})

_BLOCK = 2**20  # characters that are read or parsed at once
_TEXT_NAME = "its text"
_JSON_COST = 150  # bytes of memory that an object or a list of JSON takes besides, however small
_ANY_WIDTH = range(1, 1000)
_COUNT = re.compile("[0-9]{1,9}")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|\d*,\d+)([eE][+-]?\d+)?")
_FORTRAN_EXPONENT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)[dD][+-]?\d+")

_collecting: ContextVar[list[str] | None] = ContextVar("collecting", default=None)

Disagree = Callable[[int, str, str], None]
Line = tuple[int, str]  # its number in the file, and its text

JsonObject = Mapping[str, Any]  # as a file has it: nothing is checked yet


def read_text(path: Path) -> str:
    """Return the text of a file with plain newlines; refuse binary, empty and enormous files."""
    budget = _open_budget(path)
    text = decode_text(read_bytes(path))
    _refuse_binary(path, text)
    text = normalise_newlines(text)
    if not text.strip():
        raise FormatError(f"{path} is empty.")
    budget.spend(WORD_COST * count_words(text), _TEXT_NAME)
    return text


def read_blocks(path: Path) -> Iterator[str]:
    """Yield the text of a file as `read_text` returns it, some thousand whole lines at a time."""
    _open_budget(path)
    encoding, is_empty = _find_encoding(path), True
    with path.open(encoding=encoding, errors="replace") as file:
        while block := file.read(_BLOCK) + file.readline():
            _refuse_binary(path, block)
            text = block.rstrip("\x1a")  # the end mark of DOS programs
            is_empty &= not text.strip()
            yield text
    if is_empty:
        raise FormatError(f"{path} is empty.")


def _open_budget(path: Path) -> Budget:
    """Open the budget of memory for reading a text file; refuse enormous files."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from None
    if size > (max_size := get_max_file_size()):
        raise FormatError(
            f"{path} has {size / 2**30:.1f} GiB; text is read up to {max_size / 2**30:g} GiB. "
            f"Split it, store it as .npz, or set {VARIABLE} to more."
        )
    budget = Budget(path)
    budget.spend(TEXT_COST * size, _TEXT_NAME)
    return budget


class NumberStore:
    """The numbers of a file, block after block in one array.

    The system takes a large array back as soon as it is copied; it does not take small ones.
    """

    def __init__(self, capacity: int, dtype: type = np.float64) -> None:
        self._numbers: RawArray = np.empty(capacity, dtype)  # takes no memory until it is filled
        self._size = 0

    def append(self, block: RawArray) -> RawArray:
        """Copy a block behind the others, and return it where it is now."""
        start, self._size = self._size, self._size + block.size
        stored = self._numbers[start : self._size]
        stored[:] = block.ravel()
        return stored.reshape(block.shape)

    @property
    def numbers(self) -> RawArray:
        """All numbers so far, in one dimension."""
        return self._numbers[: self._size]


def count_lines(path: Path) -> int:
    """Return how many lines a file has, or a larger number."""
    with path.open("rb") as file:
        blocks = iter(partial(file.read, _BLOCK), b"")
        letters = (np.frombuffer(block, dtype=np.uint8) for block in blocks)
        return 1 + sum(int(np.count_nonzero(block == end)) for block in letters for end in b"\r\n")


def _find_encoding(path: Path) -> str:
    """Return the encoding that `decode_text` takes the bytes of a file for."""
    if read_head(path).startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        with path.open(encoding="utf-8") as file:
            while file.read(_BLOCK):
                pass
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig"


def _refuse_binary(path: Path, text: str) -> None:
    if "\0" in text:
        raise FormatError(f"{path} is not a text file: it holds binary data.")


def read_json(path: Path) -> Any:
    """Read a file of JSON; a FormatError names the line where it is none."""
    budget = _open_budget(path)
    text = decode_text(read_bytes(path))
    n_parts = text.count("{") + text.count("[")
    budget.spend(_JSON_COST * n_parts, "the number of its objects and lists")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{path}, line {error.lineno}: expected JSON; {error.msg} at column {error.colno}."
        ) from None
    except RecursionError:
        raise FormatError(f"{path}: expected JSON; found lists nested too deep.") from None
    except ValueError:  # a whole number of more digits than Python converts
        raise FormatError(f"{path}: expected JSON; found a number of too many digits.") from None


def parse_json_numbers(path: Path, numbers: Any, multiple: int, expected: str) -> list[float]:
    """Parse a list of JSON numbers, as many as a multiple of ``multiple``."""
    is_list = isinstance(numbers, list) and len(numbers) % multiple == 0
    if not is_list or any(isinstance(x, bool) or not isinstance(x, (int, float)) for x in numbers):
        raise make_format_error(path, expected, numbers)
    try:
        return [float(number) for number in numbers]
    except OverflowError:  # a whole number of 400 digits
        raise make_format_error(path, expected, "a number of too many digits") from None


def parse_json_point(path: Path, numbers: Any, expected: str) -> list[float]:
    """Parse a list of three JSON numbers."""
    if not isinstance(numbers, list) or len(numbers) != 3:
        raise make_format_error(path, expected, numbers)
    return parse_json_numbers(path, numbers, 3, expected)


def normalise_newlines(text: str) -> str:
    """Replace line ends by ``\\n``, and remove the end mark of DOS programs."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\x1a")


def decode_head(head: bytes) -> str:
    """Decode the first bytes of a file to tell formats apart; "" if they are binary."""
    text = decode_text(head)
    return "" if "\0" in text else normalise_newlines(text)


def read_lines(path: Path) -> list[Line]:
    """Read the lines of a file that are not blank, with no blanks around them."""
    lines = enumerate(read_text(path).split("\n"), start=1)
    return [(at, text) for at, line in lines if (text := line.strip())]


def parse_number(path: Path, line: int, token: str) -> float:
    """Parse one token: a number, or NaN for a missing one."""
    if (number := _parse_token(token)) is not None:
        return number
    if has_decimal_comma(word := token.strip().replace("−", "-")):
        found, remedy = abbreviate(repr(word)), abbreviate(word.replace(",", "."))
        raise FormatError(
            f"{path}, line {line}: expected a number with a decimal point; found {found}. "
            f"Write {remedy} (decimal commas are not read here)."
        )
    raise make_format_error(path, "a number", repr(token), line)


def _parse_token(token: str) -> float | None:
    """Parse a number, or NaN for a missing one; None if it is neither."""
    if quick := parse_numbers_fast([token]):
        return quick[0]
    word = token.strip().replace("−", "-")
    if word.lower() in MISSING_WORDS:
        return math.nan
    if _FORTRAN_EXPONENT.fullmatch(word):
        word = word.lower().replace("d", "e")
    return next(iter(parse_numbers_fast([word])), None)


def has_decimal_comma(token: str) -> bool:
    """Return whether a token is a number with a decimal comma: 1,5."""
    return "," in token and _DECIMAL_COMMA.fullmatch(token.strip()) is not None


def is_number(token: str) -> bool:
    """Return whether a token is a number, also a missing one or one with a decimal comma."""
    return _parse_token(token) is not None or has_decimal_comma(token)


def are_numbers(tokens: Sequence[str]) -> bool:
    """Return whether all tokens are numbers, as `is_number` says of one."""
    return bool(parse_numbers_fast(tokens)) or all(map(is_number, tokens))


def parse_numbers(path: Path, line: int, tokens: Sequence[str]) -> list[float]:
    """Parse the tokens of one line."""
    return parse_numbers_fast(tokens) or [parse_number(path, line, token) for token in tokens]


def parse_numbers_fast(tokens: Sequence[str]) -> list[float]:
    """Parse all tokens in C; none if one is irregular."""
    if "_" in "".join(tokens):  # a digit separator to Python, and to nobody else
        return []
    try:
        return list(map(float, tokens))
    except ValueError:
        pass
    try:
        return list(map(float, ["nan" if token in _USUAL_GAPS else token for token in tokens]))
    except ValueError:
        return []


def parse_count(path: Path, line: int, text: str, what: str) -> int:
    """Parse the number of things that a file announces."""
    word = text.strip()
    if not _COUNT.fullmatch(word):  # longer ones are damage, and int() has a limit
        raise make_format_error(path, f"a whole number as {what}", repr(word), line)
    return int(word)


def parse_points(path: Path, text: str, first: int) -> Array:
    """Parse (rows, d) numbers, one point a line; blank lines do not count.

    ``first`` is the number of the first line, for complaints.
    """
    points = parse_rows_in_bulk(text, (2, 3))
    if points is None:
        Budget(path).spend(WORD_COST * count_words(text), _TEXT_NAME)
        points = _parse_points_by_line(path, text.split("\n"), first)
    return points


def parse_lines_in_bulk(data: bytes, start: int, n_lines: int) -> tuple[Array, int] | None:
    """Parse the next lines of bytes, equally many numbers each, in C; return where they end, too.

    None if a line is blank or irregular: readers of lines then name it.
    """
    if not 0 < n_lines <= (len(data) - start + 1) // 2:
        return None
    end = _find_end_of_lines(data, start, n_lines)
    rows = parse_rows_in_bulk(data[start:end].decode("latin-1"))
    return None if rows is None or len(rows) != n_lines else (rows, end)


def find_end_of_line(text: str, start: int) -> int:
    """Return where the line that holds a place ends: at its newline, or with the text."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _find_end_of_lines(data: bytes, start: int, n_lines: int) -> int:
    """Return where so many lines end, or the end of the data."""
    for first in range(start, len(data), _BLOCK):
        n_ends = data.count(b"\n", first, first + _BLOCK)
        if n_ends >= n_lines:
            letters = np.frombuffer(data[first : first + _BLOCK], dtype=np.uint8)
            return first + int(np.flatnonzero(letters == ord("\n"))[n_lines - 1]) + 1
        n_lines -= n_ends
    return len(data)


def parse_rows_in_bulk(text: str, widths: Container[int] = _ANY_WIDTH) -> Array | None:
    """Parse (rows, d) of numbers in C, one row a line, with d in ``widths``.

    None if a number is irregular, and if there is none; blank lines do not count.
    """
    blocks: list[Array] = []
    start = 0
    while start < len(text):
        end = find_end_of_line(text, start + _BLOCK)
        if block := text[start:end].strip():
            rows = _load_rows(block)
            if rows is None or rows.shape[1] != (blocks[0] if blocks else rows).shape[1]:
                return None
            blocks.append(rows)
        start = end + 1
    if not blocks or blocks[0].shape[1] not in widths:
        return None
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _load_rows(text: str) -> Array | None:
    """Load rows of equally many numbers, NA included; None if one is irregular."""
    if "N" in text:  # one letter is found much faster than two
        # NANA, NAN and the like then are no numbers; replace() takes twice as long
        text = "nan".join(text.split("NA"))
    try:
        return np.loadtxt(text.split("\n"), comments=None, ndmin=2)
    except ValueError:
        return None


def _parse_points_by_line(path: Path, lines: Sequence[str], first: int) -> Array:
    """Parse (rows, d) numbers line by line, to find a missing value or the wrong line."""
    points: list[list[float]] = []
    for at, line in enumerate(lines, start=first):
        tokens = line.split()
        if not tokens:
            continue
        expected = str(len(points[0])) if points else "2 or 3"
        if str(len(tokens)) not in expected.split(" or "):
            raise make_format_error(path, f"{expected} coordinates", repr(line.strip()), at)
        points.append(parse_numbers(path, at, tokens))
    return np.array(points) if points else np.empty((0, 0))


@dataclass
class Disagreements:
    """Counts of a file that disagree with the rows after them, collected for one warning."""

    path: Path
    strict: bool  # whether they are errors
    remedy: str = ""
    errors: list[tuple[int, FormatError]] = field(default_factory=list)  # with their lines

    def __call__(self, line: int, expected: str, actual: str) -> None:
        """Report a count: the line that states it, what it promises, what there is."""
        self.errors.append((line, make_format_error(self.path, expected, actual, line)))

    @property
    def sentence(self) -> str:
        """The first of them, and the lines of the others."""
        (_, first), *others = self.errors
        lines = format_some([line for line, _ in others], 20)
        plural = "s" * (len(others) > 1)
        return f"{first} Likewise line{plural} {lines}." if others else f"{first}"


@contextlib.contextmanager
def collect_disagreements(path: Path, options: ReadOptions) -> Iterator[Disagreements]:
    """Yield a function that reports a count that disagrees with what follows it.

    When the block ends, all reports together give one error or, with ``on_mismatch="warn"``,
    one warning.
    """
    reports = Disagreements(path, strict=options.on_mismatch == "error")
    try:
        yield reports
    except FormatError:
        if reports.strict and reports.errors:  # whatever went wrong afterwards follows from it
            raise FormatError(reports.sentence) from None
        raise
    if reports.errors and reports.strict:
        remedy = reports.remedy or f"{name_option('on_mismatch', 'warn')} takes what there is."
        raise FormatError(f"{reports.sentence} ({remedy})")
    if reports.errors:
        warn(f"A count disagrees with what follows it: {reports.sentence}")


def warn(message: str) -> None:
    """Warn of something about the files that deserves a look."""
    collected = _collecting.get()
    if collected is None:
        errors.warn(message)
    else:
        collected.append(message)


@contextlib.contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect what `warn` says in this block in a list instead of warning."""
    messages: list[str] = []
    token = _collecting.set(messages)
    try:
        yield messages
    finally:
        _collecting.reset(token)


def format_row(values: Sequence[float]) -> str:
    """Format numbers with every digit, ``NA`` for NaN."""
    return " ".join("NA" if value != value else repr(value) for value in values)


def replace_forbidden(words: Sequence[str], forbidden: str, kind: str) -> list[str]:
    """Replace characters that a format forbids (a regular expression), keeping words unique."""
    clean_words = [re.sub(forbidden, "_", word) or "_" for word in words]
    changed = [word for word, clean in zip(words, clean_words, strict=True) if word != clean]
    if changed:
        warn(
            f"This format cannot hold the {kind} {format_names(changed)} as it is; written with "
            "'_'."
        )
        clean_words = make_unique(clean_words)
    return clean_words


def make_unique(words: Sequence[str]) -> list[str]:
    """Make every word unique: ``a, a, b`` becomes ``a, a_2, b``."""
    originals, unique, used = set(words), [], set()
    copies: dict[str, int] = {}
    for word in words:
        new_name = word
        while new_name in used or (new_name != word and new_name in originals):
            copies[word] = copies.get(word, 1) + 1
            new_name = f"{word}_{copies[word]}"
        used.add(new_name)
        unique.append(new_name)
    return unique


def warn_of_lost_labels(labels: Sequence[str], format_name: str) -> None:
    """Warn that labels are lost in a format that only numbers landmarks."""
    if tuple(labels) != number_labels("", len(labels)):
        warn(
            f"A {format_name} file has no landmark labels; {format_names(labels, 3)} are not "
            "written."
        )
