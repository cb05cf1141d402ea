"""``defgpa apply``: any points or a mesh through one warp, or back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import match_space, read_input
from defgpa.cli._output import refuse_input, write_shapes_as

if TYPE_CHECKING:
    from defgpa._arrays import Array
    from defgpa.alignment import Alignment
    from defgpa.shapes import Shapes

_DIRECTIONS = {
    "forward": "shape to reference",
    "inverse": "reference to shape, by the paper's approximate inverse",
    "exact": "reference to shape, solved point by point",
}


@options.command("apply", "defgpa apply result/result.npz wing_07 scan.ply -o scan_aligned.ply")
@click.argument("result", type=click.Path())
@click.argument("shape")
@click.argument("points", type=click.Path())
@options.option(
    "--direction",
    type=click.Choice(list(_DIRECTIONS)),
    default="forward",
    show_default=True,
    metavar="NAME",
    group=options.METHOD,
    help="; ".join(f"{word}: {meaning}" for word, meaning in _DIRECTIONS.items()) + ".",
)
@options.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="File for the moved points or image.",
)
@options.writing
@options.reading
def command(
    result: str,
    shape: str,
    points: str,
    direction: str,
    output: str,
    to_format: str | None,
    console: Console,
) -> None:
    """Send any points or a mesh through one warp of a saved result, or back.

    SHAPE is the name (or number, from 1) of a shape of the fit. POINTS is a mesh (PLY, OBJ, STL,
    OFF, VTK, VTP: faces and colours are kept, texture from OBJ to OBJ), or any landmark file.
    """
    import numpy as np

    from defgpa.io import load

    refuse_input(Path(output), points, result)
    with console.noting():
        alignment = load(result)
        warp, whose, landmarks = _way(alignment, _number(shape, alignment.shapes), direction)

        def send(given: Array) -> Array:
            _note_if_far(console, given, whose, landmarks)
            return np.stack([warp(own) for own in given])

        if _are_meshes(Path(points), Path(output)):
            space = alignment.shapes.metadata.get("space")
            given, images = _mesh(console, Path(points), Path(output), space, send)
        else:
            shapes = match_space(read_input([points]), alignment.shapes)
            given, images = shapes.points, send(shapes.points)
            write_shapes_as(console, shapes.with_points(images), Path(output), to_format)
    known = ~np.isnan(given[..., 0])
    count, lost = int(known.sum()), int((np.isnan(images[..., 0]) & known).sum())
    if lost:
        console.note(f"Points without an inverse image (the warp folds), written as NaN: {lost}.")
    console.say(f"{count} points, {_DIRECTIONS[direction]}, written to {output}")
    console.result(
        {"points": count, "without_image": lost, "output": output, "notes": console.notes}
    )


def _way(
    alignment: Alignment, number: int, direction: str
) -> tuple[Callable[[Array], Array], str, Array]:
    """The warp of a shape or one of its inverses; whose landmarks points should be among; these."""
    warp = alignment.warps[number]
    if direction == "forward":
        return warp, repr(alignment.shapes.names[number]), alignment.shapes[number]
    back = warp.inverse() if direction == "inverse" else warp.exact_inverse()
    return back, "the reference", alignment.reference


def _mesh(
    console: Console, source: Path, target: Path, space: str | None, send: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Move a mesh; its vertices (1, p, d) in the space of the fit, and their images."""
    import numpy as np

    from defgpa.io.mesh.files import (
        has_texture,
        read_mesh,
        read_space,
        write_mesh,
        write_space,
    )
    from defgpa.io.mesh.text import rewrite_obj
    from defgpa.io.space import convert_space

    mesh = read_mesh(source)
    suffixes = {source.suffix.lower(), target.suffix.lower()}
    rewritten = has_texture(source) and suffixes == {".obj"}
    if has_texture(source) and not rewritten:
        console.note(
            f"The texture of {source} is not kept: {target} has none. From .obj to .obj it is."
        )
    unknown = np.asarray(np.isnan(mesh.vertices).any(axis=1))
    if unknown.any():
        console.note(f"Vertices of {source} that are NaN, and stay so: {unknown.sum()}.")
    stated = read_space(source)
    if space is not None and stated is None:
        console.note(
            f"{source} does not say whether it is LPS or RAS; it is taken as {space}, like the fit."
        )
    given = convert_space(np.where(unknown[:, None], np.nan, mesh.vertices), stated, space)[None]
    images = send(given)
    moved = replace(mesh, vertices=images[0])
    if rewritten:
        if source.resolve().parent != target.resolve().parent:
            console.note(
                f"The texture of {source} is kept; put its materials and images beside {target}."
            )
        rewrite_obj(source, target, moved)
    else:
        write_mesh(target, moved)
    if space := space or stated:
        write_space(target, space)
    return given, images


def _note_if_far(console: Console, points: Array, whose: str, landmarks: Array) -> None:
    """Say so where points lie elsewhere than the landmarks, or are of another size."""
    import numpy as np

    known = points.reshape(-1, points.shape[-1])
    known = known[~np.isnan(known).any(axis=1)]
    if not len(known) or known.shape[1] != landmarks.shape[1]:
        return  # the warp says what is wrong
    low, high = np.nanmin(landmarks, axis=0), np.nanmax(landmarks, axis=0)
    span = np.linalg.norm(high - low)
    far = ((known < low - span) | (known > high + span)).any(axis=1).mean()
    tiny = len(known) > 1 and np.linalg.norm(np.ptp(known, axis=0)) < 0.05 * span
    if far > 0.1 or tiny:
        share = f"{far:.0%} of the points lie far from"
        what = share if far > 0.1 else "The points are tiny beside"
        console.note(
            f"{what} the landmarks of {whose}. Another specimen, other units, another coordinate "
            "system? Where it has no landmarks a warp only continues what it does at them."
        )


def _number(word: str, shapes: Shapes) -> int:
    """The place of a shape that is given by its name or, from 1, its number."""
    if word in shapes.names or not (word.isascii() and word.isdigit()):
        return shapes.index(word)
    if not 1 <= int(word) <= shapes.n_shapes:
        raise click.BadParameter(
            f"there is no shape number {word}, nor one called so; there are {shapes.n_shapes}.",
            param_hint="SHAPE",
        )
    return int(word) - 1


def _are_meshes(source: Path, target: Path) -> bool:
    from defgpa.io.mesh.files import FORMATS

    suffixes = {suffix for mesh_format in FORMATS for suffix in mesh_format.suffixes}
    return {source.suffix.lower(), target.suffix.lower()} <= suffixes
