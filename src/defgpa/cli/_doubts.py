"""What looks odd in the input, in sentences: all of it for ``info``, the worst of it for a fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from defgpa.cli._console import Console
from defgpa.cli._input import without_empty
from defgpa.errors import listed

if TYPE_CHECKING:
    from defgpa.screening import Screening
    from defgpa.shapes import Shapes


_MANY = 5  # shapes with the same trouble: more of them are one row


def fitting_input(console: Console, shapes: Shapes) -> Shapes:
    """The shapes that a fit can use, with notes on what it will not use and what looks odd."""
    note_likely_code(console, shapes)
    return without_empty(console, shapes)


def note_likely_code(console: Console, shapes: Shapes) -> None:
    """Say so where a number seems to stand for a landmark that was not seen."""
    from defgpa.screening import missing_code

    code = missing_code(shapes)
    if code is not None:
        place = ", ".join([f"{code:g}"] * shapes.dim)
        console.note(
            f"Some landmarks lie at ({place}), away from all others. If that means missing, "
            f"say so: --missing {code:g}"
        )


def sentences(found: Screening, shapes: Shapes) -> Iterator[tuple[str, str]]:
    """Shape and what is odd about it, one sentence each."""
    for name in found.outliers:
        yield name, "is far from all the others"
    yield from _other_sizes({name: found.sizes[shapes.index(name)] for name in found.other_size})
    yield from _mistakes(found)
    for name, pairs in groupby(found.coincident, key=lambda entry: entry[0]):
        yield name, _same_place([(a, b) for _, a, b in pairs])


def _other_sizes(sizes: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Shapes of another size, many of them in one sentence."""
    if len(sizes) <= _MANY:
        for name, size in sizes.items():
            yield name, f"{_times(size)} the usual size: other units?"
        return
    low, high = min(sizes.values()), max(sizes.values())
    span = f"{_times(low)} to {_times(high)} the usual size"
    yield f"{len(sizes)} shapes", f"{span}, such as {listed(sizes, 3)}: other units?"


def _repeated(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Shapes that are copies of others, likewise."""
    if len(pairs) <= _MANY:
        for name, first in pairs:
            yield name, f"has the very coordinates of {first}"
        return
    names = listed([name for name, _ in pairs], 3)
    yield f"{len(pairs)} shapes", f"have the very coordinates of others, such as {names}"


def _mistakes(found: Screening) -> Iterator[tuple[str, str]]:
    """What can hardly be meant."""
    for name in found.mirrored:
        yield name, "fits clearly better mirrored"
    for name, a, b in found.exchanged:
        yield name, f"landmarks {a} and {b} look exchanged"
    for name, label in found.misplaced:
        yield name, f"landmark {label} is far from where the others have it"
    yield from _repeated(found.repeated)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio > 1 else f"1/{1 / ratio:,.0f} of"


def _same_place(pairs: Sequence[tuple[str, str]]) -> str:
    (a, b), rest = pairs[0], len(pairs) - 1
    more = f" (and {rest} more pair{'s' * (rest > 1)})" if rest else ""
    return f"landmarks {a} and {b} have the same place{more}"
