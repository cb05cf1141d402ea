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
from defgpa.cli._output import mark_written, refuse_input, write_shapes_as

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.arrays import Array
    from defgpa.shapes import Shapes

_IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
_DIRECTIONS = {
    "forward": "shape to reference",
    "inverse": "reference to shape, by the paper's approximate inverse",
    "exact": "reference to shape, solved point by point",
}


@options.command("apply", "defgpa apply result/result.npz wing_07 scan.ply -o scan_aligned.ply")
@click.argument("result", type=click.Path())
@click.argument("shape")
@click.argument("points", type=click.Path())
@options.method_option(
    "--direction",
    type=click.Choice(list(_DIRECTIONS)),
    default="forward",
    show_default=True,
    metavar="NAME",
    help="; ".join(f"{word}: {meaning}" for word, meaning in _DIRECTIONS.items()) + ".",
)
@options.method_option(
    "--rows",
    type=click.Choice(["auto", "up", "down"]),
    default="auto",
    help="Whether y of the landmarks points up or down in the image; auto: up for TPS files.",
)
@options.output_option("FILE", "File for the moved points or image.", required=True)
@options.writing
@options.reading
def command(
    result: str,
    shape: str,
    points: str,
    direction: str,
    rows: str,
    output: str,
    to_format: str | None,
    console: Console,
) -> None:
    """Send points, a mesh or an image through one warp of a saved result, or back.

    SHAPE is the name (or number, from 1) of a shape of the fit. POINTS is a mesh (PLY, OBJ, STL,
    OFF, VTK, VTP: faces and colours are kept, texture from OBJ to OBJ), an image (PNG, JPEG, TIFF:
    it is moved onto the reference, transparent where it has no pixel), or any landmark file.
    """
    import numpy as np

    from defgpa.io import load

    refuse_input(Path(output), points, result)
    with console.note_warnings():
        alignment = load(result)
        number = _find_shape(shape, alignment.shapes)
        if Path(points).suffix.lower() in _IMAGES:
            _apply_to_image(console, alignment, number, points, output, direction, rows)
            return
        warp, owner, landmarks = _choose_map(alignment, number, direction)

        def send(originals: Array) -> Array:
            _note_if_far(console, originals, owner, landmarks)
            return np.stack([warp(original) for original in originals])

        if _are_meshes(Path(points), Path(output)):
            space = alignment.shapes.metadata.get("space")
            originals, moved = _apply_to_mesh(console, Path(points), Path(output), space, send)
            mark_written(output)
        else:
            shapes = match_space(read_input([points]), alignment.shapes)
            originals, moved = shapes.points, send(shapes.points)
            write_shapes_as(console, shapes.with_points(moved), Path(output), to_format)
    finite = ~np.isnan(originals[..., 0])
    count, n_lost = int(finite.sum()), int((np.isnan(moved[..., 0]) & finite).sum())
    if n_lost:
        console.note(f"Points without an inverse image (the warp folds), written as NaN: {n_lost}.")
    console.print_line(f"{count} points, {_DIRECTIONS[direction]}, written to {output}")
    console.print_json(
        {"points": count, "without_image": n_lost, "output": output, "notes": console.notes}
    )


def _apply_to_image(
    console: Console,
    alignment: Alignment,
    number: int,
    source: str,
    target: str,
    direction: str,
    rows: str,
) -> None:
    """Move the photograph of a shape into the plane of the reference."""
    from defgpa.images import Frame, read_image, rows_down, rows_up, warp_image, write_picture

    shapes = alignment.shapes
    if direction != "forward":
        raise click.UsageError("An image goes from the shape to the reference: drop --direction.")
    if Path(target).suffix.lower() not in _IMAGES:
        raise click.BadParameter(f"must end in {', '.join(_IMAGES)}.", param_hint="--output")
    if shapes.n_dims != 2:
        raise click.UsageError("An image needs shapes in the plane; these are 3-D.")
    image = read_image(source)
    is_up = shapes.metadata.get("format") == "tps" if rows == "auto" else rows == "up"
    pixels = (rows_up if is_up else rows_down)(image)
    scale = float((shapes.metadata.get("scales") or {number: None})[number] or 1.0)
    (x, y), (dx, dy) = pixels.origin, pixels.step
    raster = Frame((x * scale, y * scale), pixels.shape, (dx * scale, dy * scale))
    corners = raster.points([[0, 0], [pixels.shape[1], pixels.shape[0]]])
    _note_if_outside(console, corners, shapes[number], shapes.names[number])
    picture = warp_image(image, alignment.warps[number], placement=lambda _: raster)
    write_picture(picture, target)
    mark_written(target)
    height, width = picture.frame.shape
    console.print_line(f"{width} x {height} pixels, shape to reference, written to {target}")
    console.print_json(
        {
            "pixels": [width, height],
            "origin": picture.frame.origin,
            "step": picture.frame.step,
            "output": target,
            "notes": console.notes,
        }
    )


def _note_if_outside(console: Console, corners: Array, landmarks: Array, name: str) -> None:
    """Note landmarks outside the image, as of another image or with y pointing the other way."""
    import numpy as np

    low, high = corners.min(axis=0), corners.max(axis=0)
    finite = landmarks[~np.isnan(landmarks).any(axis=1)]
    n_outside = int(((finite < low) | (finite > high)).any(axis=1).sum())
    if n_outside:
        console.note(
            f"{n_outside} of {len(finite)} landmarks of {name!r} lie outside this image. Is it the "
            "image of this specimen, at its full size? --rows up|down says where y points."
        )


def _choose_map(
    alignment: Alignment, number: int, direction: str
) -> tuple[Callable[[Array], Array], str, Array]:
    """Return the warp of a shape or its inverse, the name of its domain, and landmarks there."""
    warp = alignment.warps[number]
    if direction == "forward":
        return warp, repr(alignment.shapes.names[number]), alignment.shapes[number]
    inverse = warp.inverse() if direction == "inverse" else warp.exact_inverse()
    return inverse, "the reference", alignment.reference


def _apply_to_mesh(
    console: Console, source: Path, target: Path, space: str | None, send: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Move a mesh; return its vertices (1, p, d) in the space of the fit, and their images."""
    import numpy as np

    from defgpa.io.anatomical_space import convert_space
    from defgpa.io.mesh.files import (
        has_texture,
        read_mesh,
        read_space,
        write_mesh,
        write_space,
    )
    from defgpa.io.mesh.text import rewrite_obj

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
    declared = read_space(source)
    if space is not None and declared is None:
        console.note(
            f"{source} does not say whether it is LPS or RAS; it is taken as {space}, like the fit."
        )
    vertices = np.where(unknown[:, None], np.nan, mesh.vertices)
    originals = convert_space(vertices, declared, space)[None]
    images = send(originals)
    moved = replace(mesh, vertices=images[0])
    if rewritten:
        if source.resolve().parent != target.resolve().parent:
            console.note(
                f"The texture of {source} is kept; put its materials and images beside {target}."
            )
        rewrite_obj(source, target, moved)
    else:
        write_mesh(target, moved)
    if space := space or declared:
        write_space(target, space)
    return originals, images


def _note_if_far(console: Console, points: Array, owner: str, landmarks: Array) -> None:
    """Say so where points lie elsewhere than the landmarks, or are of another size."""
    import numpy as np

    finite = points.reshape(-1, points.shape[-1])
    finite = finite[~np.isnan(finite).any(axis=1)]
    if not len(finite) or finite.shape[1] != landmarks.shape[1]:
        return  # the warp says what is wrong
    low, high = np.nanmin(landmarks, axis=0), np.nanmax(landmarks, axis=0)
    span = np.linalg.norm(high - low)
    outside_share = ((finite < low - span) | (finite > high + span)).any(axis=1).mean()
    is_tiny = len(finite) > 1 and np.linalg.norm(np.ptp(finite, axis=0)) < 0.05 * span
    if outside_share > 0.1 or is_tiny:
        share = f"{outside_share:.0%} of the points lie far from"
        problem = share if outside_share > 0.1 else "The points are tiny beside"
        console.note(
            f"{problem} the landmarks of {owner}. Another specimen, other units, another "
            "coordinate system? Away from landmarks a warp only continues what it does at them."
        )


def _find_shape(word: str, shapes: Shapes) -> int:
    """Return the index of a shape given by name or by number, counted from 1."""
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
