"""``defgpa apply``: any points or a mesh through one warp, or back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console
from defgpa.cli._options import speaking

if TYPE_CHECKING:
    from defgpa._arrays import Array

_DIRECTIONS = {
    "forward": "shape to reference",
    "inverse": "reference to shape, by the paper's approximate inverse",
    "exact": "reference to shape, solved point by point",
}


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
@speaking
def command(
    result: str, shape: str, points: str, output: str, direction: str, quiet: bool, as_json: bool
) -> None:
    """Send any points or a mesh through one warp of a saved result, or back.

    SHAPE is the name (or number, from 1) of a shape of the fit. POINTS is a mesh (PLY, OBJ, STL,
    OFF, VTK, VTP: faces and colours are kept), or any landmark file.
    """
    from defgpa.io import load

    console = Console(quiet, as_json)
    with console.noting():
        alignment = load(result)
        warp = alignment.warps[_number(shape, alignment.shapes)]
        maps: dict[str, Any] = {
            "forward": lambda: warp,
            "inverse": warp.inverse,
            "exact": warp.exact_inverse,
        }
        count, lost = _moved(maps[direction](), Path(points), Path(output))
    if lost:
        console.note(f"{lost} points have no inverse image (the warp folds there): written as NaN.")
    console.say(f"{count} points, {_DIRECTIONS[direction]}, written to {output}")
    console.result(
        {"points": count, "without_image": lost, "output": output, "notes": console.notes}
    )


def _number(word: str, shapes: Any) -> int:
    if word not in shapes.names and word.isdigit():
        return int(shapes.index(int(word) - 1)) if int(word) > 0 else int(shapes.index(word))
    return int(shapes.index(word))


def _moved(warp: Any, source: Path, target: Path) -> tuple[int, int]:
    """Move a mesh or landmark file; the number of points, and of those without an image."""
    import numpy as np

    from defgpa.io import _mesh, read_shapes, write_shapes

    meshes = {suffix for mesh_format in _mesh.FORMATS for suffix in mesh_format.suffixes}
    if {source.suffix.lower(), target.suffix.lower()} <= meshes:
        from dataclasses import replace

        mesh = _mesh.read_mesh(source)
        vertices: Array = warp(mesh.vertices)
        _mesh.write_mesh(target, replace(mesh, vertices=vertices))
        return len(vertices), int(np.isnan(vertices[:, 0]).sum())
    shapes = read_shapes(source)
    images = np.stack([warp(own) for own in shapes])
    write_shapes(shapes.with_points(images), target)
    seen = shapes.visible
    return int(seen.sum()), int((np.isnan(images[..., 0]) & seen).sum())
