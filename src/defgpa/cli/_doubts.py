"""What looks odd in the input, in sentences: all of it for ``info``, the worst of it for a fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from defgpa.cli._console import Console
from defgpa.cli._input import without_empty

if TYPE_CHECKING:
    from defgpa.screening import Screening
    from defgpa.shapes import Shapes

_SCREENED_UP_TO = 5_000_000  # landmarks in all: beyond, a look would take as long as a fit
_MOST_SENTENCES = 3


def fitting_input(console: Console, shapes: Shapes) -> Shapes:
    """The shapes that a fit can use, with notes on what it will not use and what looks odd."""
    note_likely_code(console, shapes)
    shapes = without_empty(console, shapes)
    note_other_sizes(console, shapes)
    return shapes


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


def note_other_sizes(console: Console, shapes: Shapes) -> None:
    """Say so where shapes are in other units than most, it seems."""
    from defgpa.errors import listed
    from defgpa.screening import of_other_size

    odd = of_other_size(shapes)
    if odd:
        console.note(
            f"More than 5 times larger or smaller than most ({len(odd)} of {shapes.n_shapes} "
            f"shapes): {listed(odd)}. Other units? Errors of large shapes outweigh those of small."
        )


def note_mistakes(console: Console, shapes: Shapes, told: Collection[str] = ()) -> None:
    """Say so where a mistake would spoil a fit: one exchanged pair can turn a reference.

    ``told`` are the mirrored shapes that the fit has spoken of.
    """
    from defgpa.errors import ShapeError
    from defgpa.screening import screen

    if shapes.visible.size > _SCREENED_UP_TO:
        return
    try:
        found = screen(shapes)
    except ShapeError:  # the fit says what is wrong, or can do without
        return
    odd = [f"{name!r}: {what}" for name, what in _mistakes(found, told)]
    if odd:
        more = f"; and {len(odd) - _MOST_SENTENCES} more" if len(odd) > _MOST_SENTENCES else ""
        console.note(f"Worth a look, with defgpa info: {'; '.join(odd[:_MOST_SENTENCES])}{more}.")


def sentences(found: Screening, shapes: Shapes) -> Iterator[tuple[str, str]]:
    """Shape and what is odd about it, one sentence each."""
    for name in found.outliers:
        yield name, "is far from all the others"
    for name in found.other_size:
        yield name, f"{_times(found.sizes[shapes.index(name)])} the usual size: other units?"
    yield from _mistakes(found, ())
    for name, pairs in groupby(found.coincident, key=lambda entry: entry[0]):
        yield name, _same_place([(a, b) for _, a, b in pairs])


def _mistakes(found: Screening, told: Collection[str]) -> Iterator[tuple[str, str]]:
    """What can hardly be meant."""
    for name in found.mirrored:
        if name not in told:
            yield name, "fits clearly better mirrored"
    for name, a, b in found.exchanged:
        yield name, f"landmarks {a} and {b} look exchanged"
    for name, label in found.misplaced:
        yield name, f"landmark {label} is far from where the others have it"
    for name, first in found.repeated:
        yield name, f"has the very coordinates of {first}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio > 1 else f"1/{1 / ratio:,.0f} of"


def _same_place(pairs: Sequence[tuple[str, str]]) -> str:
    (a, b), rest = pairs[0], len(pairs) - 1
    more = f" (and {rest} more pair{'s' * (rest > 1)})" if rest else ""
    return f"landmarks {a} and {b} have the same place{more}"
