"""A table of effects that prints as R prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from math import ceil, log10
from typing import TYPE_CHECKING, Any, ClassVar

from defgpa.dataframes import import_pandas
from defgpa.formatting import align_columns, format_column, format_fixed, render_table
from defgpa.io.text.table import format_csv

if TYPE_CHECKING:
    import pandas as pd

_TITLES = ("", "Df", "SS", "MS", "Rsq", "F", "Z", "Pr(>F)")
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
_LEGEND = "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1"

Row = tuple[Any, ...]  # of a table: names, then numbers
Table = tuple[Sequence[str], Sequence[Row]]  # a header and rows


class Rows:
    """A result that becomes a table elsewhere: names of columns, and attributes with values."""

    _columns: ClassVar[tuple[str, ...]]
    _attributes: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        return str(self)

    def _rows(self) -> list[Row]:
        columns = (getattr(self, name) for name in self._attributes)
        lists = (column if isinstance(column, tuple) else column.tolist() for column in columns)
        return list(zip(*lists, strict=True))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._columns

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame, row by row as it prints."""
        return import_pandas().DataFrame(self._rows(), columns=list(self._columns))

    def to_csv(self) -> str:
        """Return the rows as comma-separated text, with all digits; empty without a figure."""
        return format_csv(self._columns, self._rows())

    def records(self) -> list[dict[str, object]]:
        """Return one mapping of column to value for each row."""
        return [dict(zip(self._columns, row, strict=True)) for row in self._rows()]

    def to_rows(self) -> list[Row]:
        """Return the rows without their columns' names."""
        return self._rows()

    def further_tables(self) -> dict[str, Table]:
        """Return what is printed beside the rows, as tables by name; none here."""
        return {}


@dataclass(frozen=True)
class Effect:
    """One row: a term, its degrees of freedom, sum of squares and what follows; NaN where none."""

    term: str
    df: int
    ss: float
    ms: float = float("nan")
    r_squared: float = float("nan")
    f: float = float("nan")
    z: float = float("nan")
    p: float = float("nan")


@dataclass(frozen=True, repr=False)
class EffectTable(Rows):
    """Effects in the order in which they entered the model; prints like R's.

    Examples
    --------
    >>> table = EffectTable((
    ...     Effect("species", 1, 0.029258, 0.029258, 0.14856, 14.544, 4.1, 0.001),
    ...     Effect("Residuals", 38, 0.167682, 0.0044127, 0.85144),
    ...     Effect("Total", 39, 0.19694),
    ... ))
    >>> print(table)
              Df       SS        MS     Rsq      F      Z Pr(>F)
    species    1 0.029258 0.0292580 0.14856 14.544 4.1000  0.001 ***
    Residuals 38 0.167682 0.0044127 0.85144
    Total     39 0.196940
    Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1
    >>> table["species"].f
    14.544
    """

    _columns = tuple(field.name for field in fields(Effect))

    rows: tuple[Effect, ...]

    def __getitem__(self, term: str) -> Effect:
        """Return the row of a term."""
        for row in self.rows:
            if row.term == term:
                return row
        raise KeyError(f"There is no term {term!r}. There are: {[row.term for row in self.rows]}")

    def __iter__(self) -> Iterator[Effect]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        marks = [next((mark for level, mark in _STARS if row.p <= level), "") for row in self.rows]
        table = align_columns(self.cells(), marks)
        return f"{table}\n{_LEGEND}" if any(row.p == row.p for row in self.rows) else table

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame, indexed by term."""
        return super().to_pandas().set_index("term")

    def _rows(self) -> list[Row]:
        return [astuple(row) for row in self.rows]

    def _repr_html_(self) -> str:
        header, *rows = self.cells()
        return render_table("Effects", rows, header)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the table as text, its header first; columns without a figure are left out."""
        columns = [
            [str(row.df) for row in self.rows],
            format_column([row.ss for row in self.rows], 5),
            format_column([row.ms for row in self.rows], 5),
            format_fixed([row.r_squared for row in self.rows], 5),
            format_column([row.f for row in self.rows], 5),
            format_fixed([row.z for row in self.rows], 4),
            format_p_values([row.p for row in self.rows]),
        ]
        titled = [(title, *column) for title, column in zip(_TITLES[1:], columns, strict=True)]
        names = ("", *(row.term for row in self.rows))
        return list(zip(names, *(column for column in titled if any(column[1:])), strict=True))


class EffectRows(Rows):
    """A result whose rows are those of its table of effects."""

    _columns = EffectTable._columns

    table: EffectTable

    def __getitem__(self, term: str) -> Effect:
        """Return the row of a term."""
        return self.table[term]

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame, indexed by term."""
        return self.table.to_pandas()

    def _rows(self) -> list[Row]:
        return self.table.to_rows()


def effect(term: str, df: int, ss: float, total: float, *chance: float) -> Effect:
    """Return the row of a term: mean square, share of the total, then F, Z and P."""
    undefined = float("nan")
    ms, share = ss / df if df else undefined, ss / total if total else undefined
    return Effect(term, df, ss, ms, share, *chance)


def format_p(value: float) -> str:
    """Format one P to three decimals, or to as many as it needs not to be zero."""
    return format_p_values([value])[0]


def format_p_values(values: Sequence[float]) -> list[str]:
    """Format P to three decimals, or to as many as the smallest of them needs not to be zero."""
    smallest = min((value for value in values if value > 0), default=1.0)
    return format_fixed(values, max(3, ceil(-log10(smallest))))
