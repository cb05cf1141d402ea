"""Numbers and tables as text and as HTML for notebooks, and names in the order of people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from math import floor, log10
from textwrap import wrap

MAX_WIDTH = 80  # of a table, in characters
_MIN_EXPONENT = -6  # of the largest figure of a column that is written without exponents
_MIN_NAME = 24  # characters of a line of a name


def format_number(value: float, digits: int = 4, unknown: str = "") -> str:
    """Format a number with so many significant digits, zeros at the end too; NaN as ``unknown``."""
    return unknown if value != value else f"{value:#.{digits}g}".removesuffix(".")


def format_column(values: Iterable[float], digits: int = 4) -> list[str]:
    """Format a column with one number of decimals, enough for its smallest figure, as R does.

    A column of nothing but tiny figures is written with exponents.

    Examples
    --------
    >>> format_column([0.1055, 0.02473, float("nan")])
    ['0.10550', '0.02473', '']
    """
    figures = list(map(float, values))
    magnitudes = [abs(value) for value in figures if value == value and value != 0]
    low = floor(log10(min(magnitudes))) if magnitudes else 0
    high = floor(log10(max(magnitudes))) if magnitudes else 0
    if high < _MIN_EXPONENT:
        return ["" if value != value else f"{value:.{digits - 1}e}" for value in figures]
    places = max(0, min(digits - 1 - low, digits + 2 - high if high > low + 3 else 12))
    return format_fixed(figures, places)


def format_fixed(values: Iterable[float], places: int) -> list[str]:
    """Format a column with so many decimals; NaN as nothing."""
    return ["" if value != value else f"{value:.{places}f}" for value in values]


def make_sort_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Make a key that sorts numbers in names by their value: ``a2`` before ``a10``.

    Examples
    --------
    >>> sorted(["b", "a10", "a2"], key=make_sort_key)
    ['a2', 'a10', 'b']
    """
    parts = re.split(r"([0-9]+)", text.casefold())
    return tuple(
        (0, len(piece.lstrip("0")), piece.lstrip("0")) if piece.isdecimal() else (1, 0, piece)
        for piece in parts
        if piece
    )


def align_columns(
    lines: Sequence[Sequence[str]], marks: Sequence[str] = (), between: str = " "
) -> str:
    """Align cells of text in columns: the first to the left, the others to the right, then marks.

    Parameters
    ----------
    lines : sequence of sequences of str
        The header first.
    marks : sequence of str, optional
        What to write behind each line but the header.
    between : str
        What separates two columns.

    Returns
    -------
    str
        At most 80 characters wide, if breaking long names into lines achieves that.
    """
    first, *others = [max(map(len, column)) for column in zip(*lines, strict=True)]
    free = MAX_WIDTH - sum(others) - len(between) * len(others)
    first = min(first, max(free, _MIN_NAME))
    rows = [
        [
            _break_name(name, first),
            *(cell.rjust(w) for cell, w in zip(cells, others, strict=True)),
        ]
        for name, *cells in lines
    ]
    line_ends = ["", *(marks or [""] * (len(lines) - 1))]
    pairs = zip(rows, line_ends, strict=True)
    return "\n".join(between.join([*row, end]).rstrip() for row, end in pairs)


def _break_name(name: str, width: int) -> str:
    """Break a name into lines of a width, the last one padded to it."""
    *above, last = wrap(name, width, subsequent_indent="  ") or [""]
    return "\n".join([*above, last.ljust(width)])


def render_table(
    title: str, rows: Iterable[Sequence[object]], header: Sequence[object] = ()
) -> str:
    """Render rows of cells as an HTML table; everything is escaped.

    Parameters
    ----------
    title : str
        The caption.
    rows : iterable of sequences
        Cells, converted to text.
    header : sequence, optional
        Titles of the columns.

    Returns
    -------
    str

    Examples
    --------
    >>> print(render_table("Sizes", [("a < b", 1.5)]))
    <table><caption>Sizes</caption><tbody><tr><td>a &lt; b</td><td>1.5</td></tr></tbody></table>
    """
    head = f"<thead>{_render_row(header, 'th')}</thead>" if header else ""
    body = "".join(_render_row(row, "td") for row in rows)
    return f"<table><caption>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>"


def _render_row(cells: Iterable[object], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
