"""An array as blocks of rows below its three counts, as Deformetrica keeps momenta.

``n m d`` stands in the first line, then n blocks of m rows of d numbers, a blank line before each.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from defgpa.io.files import file_head
from defgpa.io.format import Document, document
from defgpa.io.text.lines import head_text, numbers, text_of, warn

_COUNTS = re.compile(r"\s*([0-9]{1,9})[ \t]+([0-9]{1,9})[ \t]+([23])[ \t]*\n[ \t]*\n")


def read_blocks(path: Path) -> Document | None:
    """A shape for each block; None for files that do not hold what their first line counts."""
    counts = _COUNTS.match(head_text(file_head(path)))
    if counts is None:
        return None
    n, m, d = map(int, counts.groups())
    lines = enumerate(text_of(path).split("\n"), start=1)
    _, *rows = ((at, words) for at, line in lines if (words := line.split()))
    if not n * m or len(rows) != n * m or {len(words) for _, words in rows} != {d}:
        return None
    points = np.array([numbers(path, at, words) for at, words in rows]).reshape(n, m, d)
    if "moment" in path.stem.lower():
        warn(f"{path}: momenta are directions at control points, not places of landmarks.")
    return document(path, points, metadata={"format": "csv"})
