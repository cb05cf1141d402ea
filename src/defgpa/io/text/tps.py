"""TPS files (tpsDig, geomorph): ``LM=n`` opens a specimen, ``KEY=value`` lines say the rest.

Points of ``CURVES`` and ``OUTLINES`` follow the landmarks of their specimen, named
``curve1_1``, ``curve1_2``, …: they take part where every specimen has the same ones.
Coordinates are multiplied by ``SCALE`` when they are read (`_build_specimen`) and divided by it
when they are written, so that they stay on their ``IMAGE``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, pairwise
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, mask_missing
from defgpa.io.format import Document, Format, ReadOptions, Specimen, make_default_name
from defgpa.io.limits import SPECIMEN_COST, Budget
from defgpa.io.specimen_names import IDENTIFIER
from defgpa.io.text.lines import (
    Disagree,
    NumberStore,
    collect_disagreements,
    count_lines,
    decode_head,
    format_row,
    parse_count,
    parse_number,
    parse_points,
    parse_rows_in_bulk,
    read_blocks,
    replace_forbidden,
    warn_of_lost_labels,
)
from defgpa.shapes import Metadata, Shapes, number_labels

_KEY = re.compile(r"[A-Za-z][\w .-]*")
_OPENING = re.compile(r"^[ \t]*LM3?[ \t]*=", re.IGNORECASE | re.MULTILINE)
_LANDMARKS = ("LM", "LM3")
_WITH_POINTS = (*_LANDMARKS, "POINTS")
_BATCH = 2**17  # characters of rows that are parsed at once
_KEY_COST = 200  # bytes of memory that a key takes with its value
_ON_CURVES = ("CURVES", "OUTLINES", "POINTS")
_NO_POINTS = np.empty((0, 0))
_VARIABLES = "VARIABLES"  # as tpsDig writes them: kept as one text
_NAMES = ("ID", "IMAGE", "SCALE", "COMMENT")
_WITHOUT_ROWS = ("ID", "IMAGE", "SCALE", "CURVES", "OUTLINES")  # no rows may follow these
_CURVE_NAME = re.compile(r"((curve|outline)[1-9][0-9]*_)([1-9][0-9]*)")


class _Entry(NamedTuple):
    """``KEY=value`` and the points in the rows up to the next key."""

    key: str
    value: str
    line: int
    points: Array  # (rows, d), none but for keys that announce points


_Rows = tuple[_Entry, str, int]  # an entry without its points, their text, and its lines


def read_tps(path: Path, options: ReadOptions) -> Document:
    """Read all specimens of a TPS file."""
    with collect_disagreements(path, options) as disagree:
        records = _group_records(path, list(_read_entries(path, disagree)))
        specimens = tuple(
            _build_specimen(path, record, k, len(records), options, disagree)
            for k, record in enumerate(records)
        )
        # where specimens have other numbers of landmarks, leniency is no help
        if len({len(specimen.points) for specimen in specimens} - {0}) > 1:
            disagree.strict &= options.incomplete == "error"
            disagree.remedy = f"Finish it, or leave it out: {name_option('incomplete', 'drop')}."
    return Document(specimens)


def write_tps(path: Path, shapes: Shapes) -> None:
    """Write all shapes in pixels, as they were read, with their ``SCALE``; ``NA`` is missing."""
    names = replace_forbidden(shapes.names, r"^\s|\s$|[\r\n\0]", "name")
    curves = _find_curves(shapes)
    scales = shapes.metadata.get("scales") or [None] * len(shapes)
    lines: list[str] = []
    for i, (name, scale) in enumerate(zip(names, scales, strict=True)):
        pixels = None if scale is None else _divide_by_scale(shapes.points[i], scale)
        lines += _format_points(shapes.points[i] if pixels is None else pixels, curves)
        lines += _format_words(shapes.metadata, i, name)
        if pixels is not None:
            lines.append(f"SCALE={scale!r}")
    write_text(path, "\n".join(lines) + "\n")


def _divide_by_scale(points: Array, scale: float) -> Array | None:
    """Find the shortest coordinates whose product with the scale gives the points exactly.

    None if there are none, as for points that were moved since they were read.
    """
    if not (isinstance(scale, float) and math.isfinite(scale) and scale > 0):
        return None
    with np.errstate(all="ignore"):
        quotients = points / scale
        pixels = np.full_like(points, np.nan)
        is_open = ~np.isnan(points)
        rounded = (np.round(quotients, decimals) for decimals in range(13))
        neighbours = (quotients, np.nextafter(quotients, np.inf), np.nextafter(quotients, -np.inf))
        for candidate in (*rounded, *neighbours):
            fits = is_open & (candidate * scale == points)
            pixels[fits] = candidate[fits]
            is_open &= ~fits
            if not is_open.any():
                return pixels
    return None


def _read_entries(path: Path, disagree: Disagree) -> Iterator[_Entry]:
    """Read the keys of a file in order, with their points."""
    store = NumberStore(3 * count_lines(path))
    batch: list[_Rows] = []
    length = 0
    for rows in _read_rows(path, disagree):
        batch.append(rows)
        length += len(rows[1])
        if length > _BATCH:
            yield from _parse_batch(path, batch, store)
            batch, length = [], 0
    yield from _parse_batch(path, batch, store)


def _parse_batch(path: Path, batch: Sequence[_Rows], store: NumberStore) -> Iterator[_Entry]:
    """Parse the rows below many keys at once, or one after the other where some are irregular."""
    points = parse_rows_in_bulk("".join(text for _, text, _ in batch), (2, 3))
    is_regular = points is not None and len(points) == sum(n_lines for _, _, n_lines in batch)
    if points is not None:
        points = store.append(points)
    stop = 0
    for entry, text, n_lines in batch:
        start, stop = stop, stop + n_lines
        if not text:
            yield entry
        elif points is not None and is_regular:
            yield _Entry(entry.key, entry.value, entry.line, points[start:stop])
        else:
            yield entry._replace(points=parse_points(path, text, entry.line + 1))


def _read_rows(path: Path, disagree: Disagree) -> Iterator[_Rows]:
    """Read the keys of a file in order; what stands between must be rows of numbers."""
    budget, line = Budget(path), 1
    for section in _split_sections(path):
        opening, newline, text = section.partition("\n")
        n_lines = text.count("\n")
        key, sign, value = opening.partition("=")
        key = key.strip().upper()
        if not sign:
            _require_no_rows(section, line, "LM=", disagree)
        elif not _KEY.fullmatch(key):
            raise make_format_error(path, "KEY=value or coordinates", repr(opening.strip()), line)
        else:
            if key in _WITHOUT_ROWS:
                _require_no_rows(text, line + 1, "another KEY=value", disagree)
            budget.spend(_KEY_COST, "the number of its keys")
            if key in _LANDMARKS:
                budget.spend_on_specimens(1)
            elif key == "POINTS":
                budget.spend(SPECIMEN_COST, "the number of its curves")
            entry = _Entry(key, value.strip(), line, _NO_POINTS)
            if key not in _WITH_POINTS:
                yield entry, "", 0
            elif text and not text.endswith("\n"):
                yield entry, f"{text}\n", n_lines + 1
            else:
                yield entry, text, n_lines
        line += len(newline) + n_lines


def _split_sections(path: Path) -> Iterator[str]:
    """Yield the lines from each ``KEY=value`` up to the next, and those before the first."""
    pieces: list[str] = []
    for block in read_blocks(path):
        start = end = 0
        while (equals := block.find("=", end)) >= 0:
            key = block.rfind("\n", 0, equals) + 1
            pieces.append(block[start:key])
            yield "".join(pieces)
            pieces, start = [], key
            end = block.find("\n", equals)
            end = len(block) if end < 0 else end
        pieces.append(block[start:])
    yield "".join(pieces)


def _require_no_rows(text: str, first: int, expected: str, disagree: Disagree) -> None:
    if not text.strip():
        return
    for at, line in enumerate(text.split("\n"), start=first):
        if line.strip():
            disagree(at, expected, repr(line.strip()))
            return


def _group_records(path: Path, entries: Sequence[_Entry]) -> list[list[_Entry]]:
    """Group the entries by specimen: landmarks first, or name and scale first."""
    if not any(entry.key in _LANDMARKS for entry in entries):
        raise FormatError(f"{path} has no specimen: expected a line LM=n or LM3=n; found none.")
    before: list[_Entry] = []
    records: list[list[_Entry]] = []
    names_first = _has_names_first(entries)
    for entry in entries:
        if entry.key in _LANDMARKS:
            records.append([entry, *before])
            before = []
        elif names_first:
            before.append(entry)
        elif records:
            records[-1].append(entry)
        elif entry.key in (*_WITHOUT_ROWS, "POINTS"):
            raise make_format_error(path, "LM= first", f"{entry.key}=", entry.line)
    return records


def _has_names_first(entries: Sequence[_Entry]) -> bool:
    """Return whether all specimens open with name, image or scale and end with their rows."""
    keys = [entry.key for entry in entries]
    if keys[0] not in _NAMES or keys[-1] not in _LANDMARKS:
        return False
    return set(keys) <= {*_NAMES, *_LANDMARKS} and all(
        after not in _LANDMARKS for before, after in pairwise(keys) if before in _LANDMARKS
    )


def _build_specimen(
    path: Path, record: Sequence[_Entry], k: int, n: int, options: ReadOptions, disagree: Disagree
) -> Specimen:
    """Build a specimen from its landmarks and curves, multiplied by its ``SCALE``."""
    opening = record[0]
    count, _, name_after_count = opening.value.partition("\t")  # Modan writes the name behind
    landmarks = _check_block(path, opening._replace(value=count), disagree)
    curves = _parse_curves(path, record, disagree)
    blocks = [block for block in (landmarks, *(points for _, points in curves)) if len(block)]
    if len({block.shape[1] for block in blocks}) > 1:
        raise make_format_error(
            path, "landmarks and curves in one dimension", "2-D and 3-D", opening.line
        )
    points = blocks[0] if len(blocks) == 1 else np.concatenate(blocks or [_NO_POINTS])
    scale = _parse_scale(path, record)
    points = mask_missing(points, options.missing)
    if scale is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are refused for all formats
            points = points * scale
    words = {entry.key: entry.value for entry in record if entry.value}
    image, identifier = words.get("IMAGE", ""), words.get("ID", "")
    variables = {_VARIABLES: words[_VARIABLES]} if _VARIABLES in words else None
    metadata = {
        "images": image or None,
        "scales": scale,
        "comments": words.get("COMMENT"),
        "variables": variables,
    }
    return Specimen(
        name=identifier
        or name_after_count.strip()
        or PureWindowsPath(image).stem
        or make_default_name(path, k, n),
        points=points,
        metadata={key: value for key, value in metadata.items() if value is not None},
        curves=tuple(name for names, _ in curves for name in names),
    )


def _check_block(path: Path, entry: _Entry, disagree: Disagree) -> Array:
    """Return the points below a count, reporting a wrong count or dimension."""
    announced = parse_count(path, entry.line, entry.value, f"{entry.key}=")
    points = entry.points
    if len(points) != announced:
        disagree(entry.line, f"{announced} rows after {entry.key}={announced}", str(len(points)))
    if entry.key == "LM3" and len(points) and points.shape[1] != 3:
        raise make_format_error(
            path, "3 coordinates a row after LM3=", str(points.shape[1]), entry.line
        )
    return points


def _parse_curves(
    path: Path, record: Sequence[_Entry], disagree: Disagree
) -> list[tuple[tuple[str, ...], Array]]:
    """Parse the points below ``POINTS``, with names that count curves and outlines separately."""
    if not any(entry.key in _ON_CURVES for entry in record):
        return []
    kind, curves = "curve", []
    announced, present = Counter[str](), Counter[str]()
    for entry in record:
        if entry.key in ("CURVES", "OUTLINES"):
            kind = entry.key[:-1].lower()
            announced[kind] += parse_count(path, entry.line, entry.value, f"{entry.key}=")
        elif entry.key == "POINTS":
            present[kind] += 1
            points = _check_block(path, entry, disagree)
            curves.append((number_labels(f"{kind}{present[kind]}_", len(points)), points))
    for kind, expected in announced.items():
        if expected != present[kind]:
            expectation = f"{expected} times POINTS= after {kind.upper()}S={expected}"
            disagree(record[0].line, expectation, str(present[kind]))
    return curves


def _parse_scale(path: Path, record: Sequence[_Entry]) -> float | None:
    scale = None
    for entry in record:
        if entry.key == "SCALE" and entry.value:
            scale = parse_number(path, entry.line, entry.value)
            if not (math.isfinite(scale) and scale > 0):
                raise make_format_error(path, "a positive SCALE", repr(entry.value), entry.line)
    return scale


def _find_curves(shapes: Shapes) -> list[tuple[str, int]]:
    """Return kind and number of points of each curve after the landmarks, by the points' names.

    Other names than a reader gives to these points are lost.
    """
    matches = [_CURVE_NAME.fullmatch(label) for label in shapes.landmarks]
    m = matches.count(None)
    runs = groupby((match[1], match[2]) for match in matches[m:] if match)
    curves = [(kind, len(list(members))) for (_, kind), members in runs]
    names, counts = list(number_labels("", m)), Counter[str]()
    for kind, size in curves:
        counts[kind] += 1
        names += number_labels(f"{kind}{counts[kind]}_", size)
    if tuple(names) == shapes.landmarks:
        return curves
    warn_of_lost_labels(shapes.landmarks, "tps")
    return []


def _format_points(points: Array, curves: Sequence[tuple[str, int]]) -> list[str]:
    """Format the landmarks, then the curves, those of one kind below their number."""
    rows = map(format_row, points.tolist())
    m = len(points) - sum(size for _, size in curves)
    lines = [f"{'LM' if points.shape[1] == 2 else 'LM3'}={m}", *islice(rows, m)]
    for kind, members in groupby(curves, key=lambda curve: curve[0]):
        sizes = [size for _, size in members]
        lines.append(f"{kind.upper()}S={len(sizes)}")
        for size in sizes:
            lines += [f"POINTS={size}", *islice(rows, size)]
    return lines


def _format_words(metadata: Metadata, shape: int, name: str) -> list[str]:
    """Format the words about a specimen; replace line breaks, which would start a new key."""
    variables = (metadata.get("variables") or {shape: None})[shape] or {}
    fields = (
        ("IMAGE", (metadata.get("images") or {shape: None})[shape]),
        ("ID", variables.get(IDENTIFIER, name)),
        ("COMMENT", (metadata.get("comments") or {shape: None})[shape]),
        (_VARIABLES, variables.get(_VARIABLES)),
    )
    return [f"{key}={' '.join(str(value).split()) or name}" for key, value in fields if value]


FORMATS = (
    Format(
        "tps",
        (".tps",),
        lambda head: bool(_OPENING.search(decode_head(head))),
        read_tps,
        write_tps,
        holds=("images", "comments", "scales"),
    ),
)
