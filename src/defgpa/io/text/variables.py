"""Variables in tables of landmarks: name, group, image and other columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from defgpa.arrays import Index
from defgpa.io.text.lines import MISSING_WORDS
from defgpa.io.text.table import Table, is_enumeration
from defgpa.shapes import Shapes

# What columns are called, the surer words first.
SHAPE_WORDS = ("shape", "specimen", "individual", "sample", "subject", "case", "image", "file")
LANDMARK_WORDS = ("landmark", "lm", "lmk", "point", "pt", "marker", "vertex", "label", "index")
NAME_WORDS = ("id", "name")
_METADATA_WORDS = {
    "groups": ("group", "class", "population", "species", "sex", "label"),
    "images": ("image",),
    "comments": ("comment",),
}
_FILLERS = ("id", "name", "no", "nr", "number", "label")


def collect_metadata(
    table: Table, order: Index, starts: Index, columns: Mapping[int, str]
) -> list[dict[str, object]]:
    """Collect what the rows of each specimen state about it in some columns, where they agree.

    The rows of a specimen are those of ``order`` from one of ``starts`` to the next.
    """
    variables: list[dict[str, str]] = [{} for _ in starts]
    for column, head in columns.items():
        codes, words = table.encode(column)
        codes = codes[order]
        first = codes[starts]
        agree = np.minimum.reduceat(codes, starts) == np.maximum.reduceat(codes, starts)
        for row, code in zip(variables, np.where(agree, first, -1).tolist(), strict=True):
            if code >= 0 and words[code] not in ("", "NA"):
                row[head] = words[code]
    return [build_metadata(row) if row else {} for row in variables]


def find_variables(table: Table, used_columns: Iterable[int | None]) -> dict[int, str]:
    """Find the columns that are not used otherwise, by head, or by number without a header.

    A column without a head that counts the rows says nothing.
    """
    used = set(used_columns)
    heads = table.header or [""] * table.width
    return {
        column: head.strip() or f"column {column + 1}"
        for column, head in enumerate(heads)
        if column not in used
        and not (table.header and not head and is_enumeration(table.column(column)))
    }


def list_other_heads(table: Table, used_columns: Iterable[int]) -> dict[int, str]:
    """List the heads of the columns that are not used, in one word each."""
    used = set(used_columns)
    return {c: simplify_head(head) for c, head in enumerate(table.header) if c not in used}


def simplify_head(text: str) -> str:
    """Simplify a head: ``Specimen ID`` becomes ``specimen``, ``id`` stays."""
    words = re.findall(r"[a-z]+", text.lower())
    return " ".join(word for word in words if word not in _FILLERS) or " ".join(words)


def find_column(heads: Mapping[int, str], words: Sequence[str]) -> int | None:
    """Find the column that has the first of these words, or its plural, as its head."""
    columns = ((c for c, head in heads.items() if head in (word, f"{word}s")) for word in words)
    return next(chain.from_iterable(columns), None)


def is_descriptive(cells: Sequence[str]) -> bool:
    """Return whether a column holds words only, no number."""
    words = [cell for cell in cells if cell.lower() not in MISSING_WORDS]
    return bool(words) and not any(re.fullmatch(r"[-+−]?[0-9].*", word) for word in words)


def get_variable_columns(shapes: Shapes) -> dict[str, list[str]]:
    """Return ``metadata["variables"]`` column by column; "" where a shape says nothing."""
    rows = [row or {} for row in shapes.metadata.get("variables") or ()]
    heads = dict.fromkeys(head for row in rows for head in row)
    return {head: [row.get(head, "") for row in rows] for head in heads}


def format_variables(shapes: Shapes) -> dict[str, list[str]]:
    """Format the variables of shapes as columns that `find_variables` finds again."""
    columns = get_variable_columns(shapes)
    others: dict[str, list[str]] = {}
    for key, (head, *_) in _METADATA_WORDS.items():
        values = shapes.metadata.get(key) or ()
        others[head] = ["" if value is None else str(value) for value in values]
    if others["group"] in columns.values():
        del others["group"]
    columns |= {head: texts for head, texts in others.items() if any(texts)}
    return {head: [" ".join(text.split()) for text in texts] for head, texts in columns.items()}


def build_metadata(row: Mapping[str, str]) -> dict[str, object]:
    """Build the metadata of a specimen from the cells of its row, by column."""
    heads_by_key, other_heads = _sort_heads(tuple(row))
    metadata: dict[str, object] = {key: row[head] for key, head in heads_by_key.items()}
    others = {head: row[head] for head in other_heads}
    return {**metadata, "variables": others} if others else metadata


@lru_cache(maxsize=1)  # a table has the same heads in every row
def _sort_heads(heads: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Find the heads that state the group, the image and the comment, and all but the last two."""
    words_by_column = {k: simplify_head(head) for k, head in enumerate(heads)}
    columns = {key: find_column(words_by_column, words) for key, words in _METADATA_WORDS.items()}
    heads_by_key = {key: heads[k] for key, k in columns.items() if k is not None}
    others = [heads[k] for k, word in words_by_column.items() if word not in ("image", "comment")]
    return heads_by_key, others
