"""Morphologika files: sections in brackets, the coordinates of all specimens in ``[rawpoints]``.

``[groups]`` counts specimens in their order; ``[labels]`` and ``[labelvalues]`` are variables
of the specimens, not names of landmarks: a single one is taken for their group.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, mask_missing
from defgpa.io.format import Document, Format, ReadOptions, make_document
from defgpa.io.limits import WORD_COST, Budget, count_words
from defgpa.io.text.lines import (
    Disagree,
    Line,
    collect_disagreements,
    decode_head,
    find_end_of_line,
    format_row,
    is_number,
    parse_count,
    parse_number,
    parse_numbers_fast,
    parse_rows_in_bulk,
    read_blocks,
    read_lines,
    replace_forbidden,
    warn_of_lost_labels,
)
from defgpa.shapes import Metadata, Shapes

_SECTION = re.compile(r"\s*\[([A-Za-z ]+)\](.*)")
_SIGNATURE = re.compile(
    r"^[ \t]*\[ *(individuals|landmarks|dimensions|raw ?points) *\]", re.IGNORECASE | re.MULTILINE
)
_RAW_POINTS = re.compile(r"^[ \t]*\[ *raw ?points *\][ \t]*\n", re.IGNORECASE | re.MULTILINE)
_R_VECTOR = re.compile(r"c\((.*)\)")  # how R prints a column that it was given whole

Sections = Mapping[str, Sequence[Line]]
Sizes = tuple[int, int, int]  # announced: individuals, landmarks, dimensions


def read_morphologika(path: Path, options: ReadOptions) -> Document:
    """Read all specimens of a Morphologika file."""
    read = _read_in_bulk(path)
    sections = _split_sections(path) if read is None else read[0]
    sizes = _parse_sizes(path, sections)
    with collect_disagreements(path, options) as disagree:
        titles, points = (
            _parse_raw_points(path, sections, sizes, disagree) if read is None else read[1:]
        )
        Budget(path).spend_on_specimens(len(points))
        names = _find_names(sections, titles, len(points), disagree)
        metadata_by_key = _collect_metadata(sections, len(points), disagree)
    points = mask_missing(points, options.missing)
    polygons = _parse_links(path, sections, "polygons", points.shape[1])
    links = _parse_links(path, sections, "wireframe", points.shape[1])
    triangles = polygons and all(len(polygon) == 3 for polygon in polygons)
    faces = np.array(polygons, dtype=np.intp) if triangles else None
    lines = {"links": links, "polygons": () if triangles else polygons}
    metadata = {key: chains for key, chains in lines.items() if chains}
    each = [{key: values[k] for key, values in metadata_by_key.items()} for k in range(len(points))]
    return make_document(path, points, names, shape_metadata=each, faces=faces, metadata=metadata)


def write_morphologika(path: Path, shapes: Shapes) -> None:
    """Write all shapes; ``NA`` where a landmark is missing, faces as polygons."""
    n, m, d = shapes.points.shape
    warn_of_lost_labels(shapes.landmarks, "morphologika")
    names = replace_forbidden(shapes.names, r"^\s|\s$|^\[|[\r\n\0]", "name")
    lines = ["[individuals]", str(n), "[landmarks]", str(m), "[dimensions]", str(d)]
    lines += ["[names]", *names, *_format_groups(shapes.metadata), "[rawpoints]"]
    for name, points in zip(names, shapes.points.tolist(), strict=True):
        lines += [f"'{name}", *map(format_row, points)]
    lines += _format_links("wireframe", shapes.metadata.get("links", ()))
    faces = () if shapes.faces is None else shapes.faces.tolist()
    lines += _format_links("polygons", [*faces, *shapes.metadata.get("polygons", ())])
    write_text(path, "\n".join(lines) + "\n")


def _split_sections(path: Path) -> Sections:
    """Split a file into the lines of each section that are not blank, with their numbers."""
    return _sort_lines(path, read_lines(path))


def _sort_lines(path: Path, lines: Sequence[Line]) -> Sections:
    """Sort lines by the section that they stand in."""
    sections: dict[str, list[Line]] = {}
    current: list[Line] = []
    for at, line in lines:
        opening = _SECTION.match(line)
        if opening:
            current = sections.setdefault(opening[1].replace(" ", "").lower(), [])
            line = opening[2].strip()
        if line:
            current.append((at, line))
    if not sections:
        raise FormatError(f"{path} has no section: expected [individuals]; found none.")
    return sections


def _read_in_bulk(path: Path) -> tuple[Sections, list[str], Array] | None:
    """Read a file whose numbers are rows as announced, in C: other sections, titles and points.

    None for any other: `_split_sections` and what follows it know what to make of it.
    """
    before, titles, blocks, after = list[str](), list[str](), list[Array](), list[str]()
    counts: list[int] = []  # of rows below each title
    n_lines = 0  # of rows and titles
    budget = Budget(path)
    for block in read_blocks(path):
        at = 0
        if not counts:
            opening = _RAW_POINTS.search(block)
            if opening is None:
                before.append(block)
                continue
            before.append(block[: opening.start()])
            counts.append(0)
            at = opening.end()
        if not after:
            end = block.find("[", at)
            end = len(block) if end < 0 else end
            budget.spend(WORD_COST * block.count("'", at, end), "the number of its titles")
            rows = _take_titles(block[at:end], titles, counts)
            n_lines += block.count("\n", at, end)
            at = end
            points = parse_rows_in_bulk(rows)
            if points is None and rows.strip():
                return None
            blocks += [] if points is None else [points]
        if at < len(block):
            after.append(block[at:])
    first = 1
    lines: list[Line] = []
    for blocks_of_lines, n_others in ((before, 1 + n_lines), (after, 0)):
        text = "".join(blocks_of_lines)
        budget.spend(WORD_COST * count_words(text), "the text of its sections")
        numbered = enumerate(text.split("\n"), start=first)
        lines += [(line, row) for line, padded in numbered if (row := padded.strip())]
        first += text.count("\n") + n_others
    sections = _sort_lines(path, lines)
    n, m, d = _parse_sizes(path, sections)
    is_titled = len(titles) == n and counts == [0, *[m] * n]
    if not (is_titled or counts == [n * m]) or {block.shape[1] for block in blocks} != {d}:
        return None
    points = np.concatenate(blocks)
    return (sections, titles, points.reshape(n, m, d)) if len(points) == n * m else None


def _take_titles(text: str, titles: list[str], counts: list[int]) -> str:
    """Take the titles out of rows, and count the rows below each."""
    pieces: list[str] = []
    start = 0
    while (quote := text.find("'", start)) >= 0:
        end = find_end_of_line(text, quote)
        pieces.append(text[start:quote])
        counts[-1] += pieces[-1].count("\n")
        titles.append(text[quote:end].lstrip("'\"").strip())
        counts.append(0)
        start = end + 1
    pieces.append(text[start:])
    counts[-1] += pieces[-1].count("\n")
    return "".join(pieces)


def _parse_sizes(path: Path, sections: Sections) -> Sizes:
    keys = ("individuals", "landmarks", "dimensions")
    n, m, d = (_parse_size(path, sections, key) for key in keys)
    if d not in (2, 3):
        raise make_format_error(path, "2 or 3 [dimensions]", str(d), sections["dimensions"][0][0])
    return n, m, d


def _parse_size(path: Path, sections: Sections, key: str) -> int:
    if not sections.get(key):
        raise FormatError(f"{path}: expected a section [{key}] with a number; found none.")
    at, text = sections[key][0]
    value = parse_count(path, at, text, f"[{key}]")
    if value == 0:
        raise make_format_error(path, f"at least one in [{key}]", "0", at)
    return value


def _parse_raw_points(
    path: Path, sections: Sections, sizes: Sizes, disagree: Disagree
) -> tuple[list[str], Array]:
    """Parse the titles (lines that start with a quote) and the (n, m, d) points."""
    lines = sections.get("rawpoints")
    if not lines:
        raise FormatError(f"{path}: expected a section [rawpoints] with coordinates; found none.")
    n, m, d = sizes
    titles = [text.lstrip("'\"").strip() for _, text in lines if text[0] in "'\""]
    if len(titles) == n:
        _require_equal_blocks(path, lines, m)
    rows = _parse_rows(path, [line for line in lines if line[1][0] not in "'\""], d)
    if len(rows) != n * m:
        disagree(lines[0][0], f"{n * m} rows ({n} × {m}) in [rawpoints]", str(len(rows)))
    complete = len(rows) // m
    if complete == 0:
        raise make_format_error(path, f"{m} rows a specimen", str(len(rows)), lines[0][0])
    return titles, rows[: complete * m].reshape(complete, m, d)


def _require_equal_blocks(path: Path, lines: Sequence[Line], m: int) -> None:
    """Require that every titled specimen has the same number of rows.

    Otherwise a row too few in one and a row too many in another would pass unseen.
    """
    at, rows = lines[0][0], m
    for line, text in [*lines, (0, "'")]:
        if text[0] not in "'\"":
            rows += 1
            continue
        if rows != m:
            raise make_format_error(path, f"{m} rows of coordinates", str(rows), at)
        at, rows = line, 0


def _parse_rows(path: Path, lines: Sequence[Line], dim: int) -> Array:
    """Parse (rows, dim) at once, or one by one to report an irregular number."""
    return np.array([_parse_row(path, line, dim) for line in lines])


def _parse_row(path: Path, line: Line, dim: int) -> list[float]:
    """Parse the coordinates of one landmark; whatever is not a number means missing."""
    at, text = line
    tokens = text.split()
    values = parse_numbers_fast(tokens) or [
        parse_number(path, at, token) if is_number(token) else math.nan for token in tokens
    ]
    if len(values) == dim:
        return values
    if any(value == value for value in values):
        raise make_format_error(path, f"{dim} coordinates", repr(text), at)
    return [math.nan] * dim


def _find_names(sections: Sections, titles: Sequence[str], n: int, disagree: Disagree) -> list[str]:
    """Find names in [names], else in the titles of the points; "" where there are none."""
    names = [text for _, text in sections.get("names", ())]
    if names and len(names) != n:
        disagree(sections["names"][0][0], f"{n} lines in [names]", str(len(names)))
    if not names and len(titles) == n:
        names = ["" if re.fullmatch(r"#?\s*[0-9]*", title) else title for title in titles]
    return names


def _collect_metadata(
    sections: Sections, n: int, disagree: Disagree
) -> dict[str, Sequence[object]]:
    """Collect the group, the variables and the image of each specimen."""
    heads = [word for _, text in sections.get("labels", ()) for word in text.split()]
    values = _parse_lines(sections, "labelvalues", n, disagree)
    groups = _parse_groups(sections.get("groups", ()), n, disagree)
    images = _parse_lines(sections, "images", n, disagree)
    variables = [_match_heads(heads, value) for value in values]
    metadata: dict[str, Sequence[object]] = {"groups": groups, "images": images}
    if all(variables):
        metadata["variables"] = variables
    if not groups and len(heads) <= 1:
        metadata["groups"] = values
    else:
        metadata["comments"] = [  # Sex=F, Age=3, where the variables are known
            ", ".join(f"{head}={word}" for head, word in row.items()) or value
            for row, value in zip(variables, values, strict=True)
        ]
    return {key: entries for key, entries in metadata.items() if entries}


def _parse_lines(sections: Sections, key: str, n: int, disagree: Disagree) -> list[str]:
    """Parse one line per specimen, or nothing."""
    lines = [text for _, text in sections.get(key, ())]
    if len(lines) == 1 and (vector := _R_VECTOR.fullmatch(lines[0])):
        lines = [word.strip().strip('"') for word in vector[1].split(",")]
    if lines and len(lines) != n:
        disagree(sections[key][0][0], f"{n} lines in [{key}]", str(len(lines)))
        return []
    return lines


def _match_heads(heads: Sequence[str], value: str) -> dict[str, str]:
    """Match the values of a line with their heads, where there is one for each head."""
    words = value.split() if len(heads) != 1 else [value]
    return dict(zip(heads, words, strict=True)) if len(words) == len(heads) else {}


def _parse_groups(lines: Sequence[Line], n: int, disagree: Disagree) -> list[str]:
    """Parse the group of each specimen, from pairs of a name and a count."""
    if not lines:
        return []
    texts = [text.replace(",", " ") for _, text in lines]
    halves = [text.rsplit(maxsplit=1) for text in texts]
    pairs = [(half[0], int(half[1])) for half in halves if len(half) == 2 and _is_size(half[1])]
    if len(pairs) < len(lines) or sum(size for _, size in pairs) != n:
        pairs = _find_pairs(" ".join(texts).split())
    total = sum(size for _, size in pairs)
    if total != n:
        disagree(lines[0][0], f"[groups] of {n} specimens in all", str(total))
        return []
    return list(chain.from_iterable([name] * size for name, size in pairs))


def _find_pairs(words: Sequence[str]) -> list[tuple[str, int]]:
    """Find names of one or more words, each followed by a count."""
    pairs: list[tuple[str, int]] = []
    name: list[str] = []
    for word in words:
        if name and _is_size(word):
            pairs.append((" ".join(name), int(word)))
            name = []
        else:
            name.append(word)
    return pairs


def _is_size(word: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}", word) is not None


def _parse_links(path: Path, sections: Sections, key: str, m: int) -> tuple[tuple[int, ...], ...]:
    """Parse lines of landmark numbers, from 1 in the file and from 0 here."""
    links = []
    for at, text in sections.get(key, ()):
        numbers = [parse_count(path, at, word, "a landmark") for word in text.split()]
        if not all(1 <= k <= m for k in numbers):
            raise make_format_error(path, f"landmarks 1 to {m} in [{key}]", repr(text), at)
        links.append(tuple(k - 1 for k in numbers))
    return tuple(links)


def _format_groups(metadata: Metadata) -> list[str]:
    """Group specimens by runs in their order."""
    groups = metadata.get("groups", ())
    if not groups or any(group is None for group in groups):
        return []
    words = [" ".join(str(group).split()) or "_" for group in groups]
    runs = [f"{group} {len(list(members))}" for group, members in groupby(words)]
    return ["[groups]", *runs]


def _format_links(key: str, links: Sequence[Sequence[int]]) -> list[str]:
    """Format a section of 1-based landmark numbers."""
    return [f"[{key}]"] * bool(links) + [" ".join(str(k + 1) for k in link) for link in links]


FORMATS = (
    Format(
        "morphologika",
        (".txt", ".morphologika"),
        lambda head: bool(_SIGNATURE.search(decode_head(head))),
        read_morphologika,
        write_morphologika,
        holds=("groups", "links", "polygons", "faces"),
    ),
)
