"""What statistics are made of: complete shapes, from an alignment or as they are.

An alignment carries every landmark of its reference into each shape, ĝ_i = warp_i⁻¹(S): complete
where landmarks are missing, and the smooth part of the variation. Shapes without an alignment are
taken as measured.
"""

from __future__ import annotations

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.screening import mirrored_against
from defgpa.sentences import warn_of
from defgpa.shapes import Shapes
from defgpa.statistics.sizes import ShapesLike
from defgpa.statistics.tangent import tangent_space

Analysed = Alignment | ShapesLike


def complete_shapes(x: Analysed) -> Shapes:
    """The shapes that an analysis is made of; those of an alignment lie on its reference."""
    if isinstance(x, Alignment):
        return x.shapes.with_points(x.carried)
    return x if isinstance(x, Shapes) else Shapes.specimens(x)


def tangents_of(shapes: Shapes, stacklevel: int = 4) -> Array:
    """(n, m, d): tangent coordinates, with a warning where shapes are mirrored against most."""
    x = tangent_space(shapes)
    warn_of(mirrored_against(x.mean(axis=0), shapes), stacklevel=stacklevel)
    return x


def flat_tangents(shapes: Shapes) -> Array:
    """(n, m·d): the same, one row a shape."""
    return tangents_of(shapes, stacklevel=5).reshape(shapes.n_shapes, -1)
