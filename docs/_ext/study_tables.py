"""Figures of a study: read from the tables that commands wrote, beside those of geomorph."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?: %)?(?!\w|\.\d)")


class Figure(NamedTuple):
    """Where a figure of a text comes from."""

    text: str
    file: str
    row: str
    column: str


def read_figure(folder: Path, file: str, row: str, column: str) -> float:
    """Return one figure of a table (CSV), by the first cells of its row, or of a summary (JSON).

    Parameters
    ----------
    folder : Path
        Where the commands were run.
    file : str
    row : str
        The first cell of the row; for pairs the first two joined by `` – ``; empty for the only
        row. Of a summary, the entry in which the column is; empty for the summary itself.
    column : str
    """
    path = folder / file
    if path.suffix == ".json":
        content = json.loads(path.read_text(encoding="utf-8"))
        return float((content[row] if row else content)[column])
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    if not row and len(rows) != 1:
        raise LookupError(f"{file} has {len(rows)} rows, so the one that is meant must be named.")
    for cells in rows:
        names = list(cells.values())
        if row in ("", names[0], " – ".join(names[:2])):
            return float(cells[column])
    raise LookupError(f"{file} has no row {row!r}.")


def round_like(value: float, text: str) -> str:
    """Format a value with the decimals of a printed figure."""
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    return f"{value:.{digits}{'e' if exponent else 'f'}}"


def show_beside_geomorph(*rows: tuple[str, str, str, str, str]) -> None:
    """Print a table of figures beside those of geomorph: name, file, row, column, geomorph's."""
    print("| | geomorph | here |\n|---|---|---|")
    for name, file, row, column, theirs in rows:
        ours = round_like(read_figure(Path(), file, row, column), theirs)
        print(f"| {name} | {theirs} | {ours} |")


def show_figure(file: str, caption: str) -> None:
    """Print the HTML of a picture that a command wrote, for a page that keeps ``folder-name.png``.

    Examples
    --------
    ``pca/scree.png`` is copied to ``pca-scree.png``, which ``KEEP`` must name.
    """
    copy = file.replace("/", "-")
    shutil.copy(file, copy)
    address = f"../files/tutorials-salamanders/{copy}"
    print(
        f'<figure class="run drawing"><img src="{address}" loading="lazy" alt="{caption}" '
        f'width="620"><figcaption>{caption}</figcaption></figure>\n'
    )


def list_numbers(text: str) -> list[str]:
    """Return all numbers of a text in their order.

    >>> list_numbers("of 40 heads PC1 had 36.7 %, R² 0.149 (F 14.5), P = 0.001.")
    ['40', '36.7 %', '0.149', '14.5', '0.001']
    """
    return _NUMBER.findall(text)


def read_report(page: str) -> tuple[str, list[Figure]]:
    """Return the paragraph of a page for a paper (its quotation), and the table of its figures."""
    quoted = re.findall(r"^> (.*)$", page, re.MULTILINE)
    table = page.partition("| number | file | row | column |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines()[1:]]
    return " ".join(quoted), [Figure(*row) for row in rows]


def find_wrong_numbers(page: str, folder: Path) -> list[str]:
    """Return a sentence for each number of the paragraph that is not what the commands wrote."""
    paragraph, figures = read_report(page)
    numbers, listed = list_numbers(paragraph), [figure.text for figure in figures]
    if numbers != listed:
        return [f"The paragraph has the numbers {numbers}, the table below it {listed}."]
    wrong = []
    for text, *place in figures:
        value, number = read_figure(folder, *place), text.removesuffix(" %")
        if round_like(value * (100 if text.endswith("%") else 1), number) != number:
            wrong.append(f"{text} is {value} in {', '.join(place)}.")
    return wrong
