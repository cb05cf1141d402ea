"""``defgpa apply``: any points or a mesh through one warp, or back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console
from defgpa.cli._input import in_space_of, read_input
from defgpa.cli._options import reading, speaking, writing
from defgpa.cli._output import refuse_input, written_as

if TYPE_CHECKING:
    from defgpa._arrays import Array
    from defgpa.alignment import Alignment
    from defgpa.shapes import Shapes

_DIRECTIONS = {
    "forward": "shape to reference",
    "inverse": "reference to shape, by the paper's approximate inverse",
    "exact": "reference to shape, solved point by point",
}
_MESH_SPACE = re.compile(rb"SPACE=(LPS|RAS)")  # in the header of meshes that 3D Slicer wrote


@click.command(
    "apply", epilog="Example: defgpa apply result/result.npz wing_07 scan.ply -o scan_aligned.ply"
)
@click.argument("result", type=click.Path())
@click.argument("shape")
@click.argument("points", type=click.Path())
@click.option("--output", "-o", required=True, type=click.Path(), help="File for the moved points.")
@click.option(
    "--direction",
    type=click.Choice(list(_DIRECTIONS)),
    default="forward",
    show_default=True,
    help="; ".join(f"{word}: {meaning}" for word, meaning in _DIRECTIONS.items()) + ".",
)
@reading
@writing
@speaking
def command(
    result: str,
    shape: str,
    points: str,
    output: str,
    direction: str,
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    to_format: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Send any points or a mesh through one warp of a saved result, or back.

    SHAPE is the name (or number, from 1) of a shape of the fit. POINTS is a mesh (PLY, OBJ, STL,
    OFF, VTK, VTP: faces and colours are kept), or any landmark file.
    """
    from defgpa.io import load

    console = Console(quiet, as_json)
    refuse_input(Path(output), points, result)
    with console.noting():
        alignment = load(result)
        warp = _directed(alignment, shape, direction)
        if _are_meshes(Path(points), Path(output)):
            count, lost = _moved_mesh(console, warp, alignment, Path(points), Path(output))
        else:
            shapes = read_input([points], format_, missing, layout, lenient)
            shapes = in_space_of(shapes, alignment.shapes)
            count, lost = _moved_shapes(warp, shapes, Path(output), to_format)
    if lost:
        console.note(f"{lost} points have no inverse image (the warp folds there): written as NaN.")
    console.say(f"{count} points, {_DIRECTIONS[direction]}, written to {output}")
    console.result(
        {"points": count, "without_image": lost, "output": output, "notes": console.notes}
    )


def _directed(alignment: Alignment, shape: str, direction: str) -> Callable[[Array], Array]:
    """The warp of a shape, or one of its inverses."""
    warp = alignment.warps[_number(shape, alignment.shapes)]
    maps: dict[str, Any] = {
        "forward": lambda: warp,
        "inverse": warp.inverse,
        "exact": warp.exact_inverse,
    }
    found: Callable[[Array], Array] = maps[direction]()
    return found


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
    from defgpa.io.mesh import files as _mesh

    suffixes = {suffix for mesh_format in _mesh.FORMATS for suffix in mesh_format.suffixes}
    return {source.suffix.lower(), target.suffix.lower()} <= suffixes


def _moved_mesh(
    console: Console,
    warp: Callable[[Array], Array],
    alignment: Alignment,
    source: Path,
    target: Path,
) -> tuple[int, int]:
    """Move a mesh; the number of its points, and of those without an image."""
    import numpy as np

    from defgpa.io.mesh import files as _mesh
    from defgpa.io.space import in_space

    mesh = _mesh.read_mesh(source)
    wanted = alignment.shapes.metadata.get("space")
    vertices: Array = warp(in_space(mesh.vertices, _space_of(console, source, wanted), wanted))
    _mesh.write_mesh(target, replace(mesh, vertices=vertices))
    return len(vertices), int(np.isnan(vertices[:, 0]).sum())


def _space_of(console: Console, mesh: Path, wanted: str | None) -> str | None:
    """The anatomical space that a mesh states; said where it does not and the fit has one."""
    from defgpa.io.files import file_head

    stated = _MESH_SPACE.search(file_head(mesh))
    if stated is None and wanted is not None:
        console.note(
            f"{mesh} does not say whether it is LPS or RAS; it is taken as {wanted}, like the fit."
        )
    return None if stated is None else stated[1].decode()


def _moved_shapes(
    warp: Callable[[Array], Array], shapes: Shapes, target: Path, format_name: str | None
) -> tuple[int, int]:
    """Move the shapes of landmark files; the same two numbers."""
    import numpy as np

    images = np.stack([warp(own) for own in shapes])
    written_as(shapes.with_points(images), target, format_name)
    seen = shapes.visible
    return int(seen.sum()), int((np.isnan(images[..., 0]) & seen).sum())
