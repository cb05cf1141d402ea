"""``defgpa apply``: any points or a mesh through one warp, or back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import in_space_of, read_input
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
_FAR = 0.1  # of the points farther away than the landmarks extend: a note is due


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
@options.reading
@options.writing
@options.speaking
def command(
    result: str,
    shape: str,
    points: str,
    output: str,
    direction: str,
    to_format: str | None,
    console: Console,
) -> None:
    """Send any points or a mesh through one warp of a saved result, or back.

    SHAPE is the name (or number, from 1) of a shape of the fit. POINTS is a mesh (PLY, OBJ, STL,
    OFF, VTK, VTP: faces and colours are kept, texture from OBJ to OBJ), or any landmark file.
    """
    from defgpa.io import load

    refuse_input(Path(output), points, result)
    with console.noting():
        alignment = load(result)
        number = _number(shape, alignment.shapes)
        sent = Sent(console, alignment, number, direction)
        if _are_meshes(Path(points), Path(output)):
            count, lost = sent.mesh(Path(points), Path(output))
        else:
            shapes = read_input([points])
            shapes = in_space_of(shapes, alignment.shapes)
            count, lost = sent.shapes(shapes, Path(output), to_format)
    if lost:
        console.note(f"Points without an inverse image (the warp folds), written as NaN: {lost}.")
    console.say(f"{count} points, {_DIRECTIONS[direction]}, written to {output}")
    console.result(
        {"points": count, "without_image": lost, "output": output, "notes": console.notes}
    )


@dataclass(frozen=True)
class Sent:
    """Points on their way through the warp of one shape, or back."""

    console: Console
    alignment: Alignment
    number: int
    direction: str

    @property
    def warp(self) -> Callable[[Array], Array]:
        """The warp of the shape, or one of its inverses."""
        warp = self.alignment.warps[self.number]
        if self.direction == "forward":
            return warp
        return warp.inverse() if self.direction == "inverse" else warp.exact_inverse()

    @property
    def landmarks(self) -> tuple[str, Array]:
        """Whose landmarks the points should lie among, and these."""
        if self.direction == "forward":
            shapes = self.alignment.shapes
            return repr(shapes.names[self.number]), shapes[self.number]
        return "the reference", self.alignment.reference

    def shapes(self, shapes: Shapes, target: Path, format_name: str | None) -> tuple[int, int]:
        """Move the shapes of landmark files; the number of points, and of those without image."""
        import numpy as np

        self.note_if_far(shapes.points)
        images = np.stack([self.warp(own) for own in shapes])
        written_as(self.console, shapes.with_points(images), target, format_name)
        seen = shapes.visible
        return int(seen.sum()), int((np.isnan(images[..., 0]) & seen).sum())

    def mesh(self, source: Path, target: Path) -> tuple[int, int]:
        """Move a mesh; the same two numbers."""
        import numpy as np

        from defgpa.io.mesh.files import read_mesh, write_mesh
        from defgpa.io.mesh.space import has_texture, state_space, stated_space
        from defgpa.io.mesh.text import rewrite_obj
        from defgpa.io.space import in_space

        mesh = read_mesh(source)
        suffixes = {source.suffix.lower(), target.suffix.lower()}
        rewritten = has_texture(source) and suffixes == {".obj"}
        if has_texture(source) and not rewritten:
            self.console.note(
                f"The texture of {source} is not kept: {target} has none. From .obj to .obj it is."
            )
        unknown = np.asarray(np.isnan(mesh.vertices).any(axis=1))
        if unknown.any():
            self.console.note(f"Vertices of {source} that are NaN, and stay so: {unknown.sum()}.")
        wanted, stated = self.alignment.shapes.metadata.get("space"), stated_space(source)
        if wanted is not None and stated is None:
            self.console.note(
                f"{source} does not say whether it is LPS or RAS; it is taken as {wanted}, like "
                "the fit."
            )
        points = in_space(np.where(unknown[:, None], np.nan, mesh.vertices), stated, wanted)
        self.note_if_far(points)
        vertices: Array = self.warp(points)
        moved = replace(mesh, vertices=vertices)
        if rewritten:
            self._note_if_elsewhere(source, target)
            rewrite_obj(source, target, moved)
        else:
            write_mesh(target, moved)
        if space := wanted or stated:
            state_space(target, space)
        return int((~unknown).sum()), int((np.isnan(vertices[:, 0]) & ~unknown).sum())

    def _note_if_elsewhere(self, source: Path, target: Path) -> None:
        if source.resolve().parent != target.resolve().parent:
            self.console.note(
                f"The texture of {source} is kept; put its materials and images beside {target}."
            )

    def note_if_far(self, points: Array) -> None:
        """Say so where points lie elsewhere than the landmarks, or are of another size."""
        import numpy as np

        whose, landmarks = self.landmarks
        known = points.reshape(-1, points.shape[-1])
        known = known[~np.isnan(known).any(axis=1)]
        if not len(known) or known.shape[1] != landmarks.shape[1]:
            return  # the warp says what is wrong
        low, high = np.nanmin(landmarks, axis=0), np.nanmax(landmarks, axis=0)
        span = np.linalg.norm(high - low)
        far = ((known < low - span) | (known > high + span)).any(axis=1).mean()
        tiny = len(known) > 1 and np.linalg.norm(np.ptp(known, axis=0)) < 0.05 * span
        if far > _FAR or tiny:
            share = f"{far:.0%} of the points lie far from"
            what = share if far > _FAR else "The points are tiny beside"
            self.console.note(
                f"{what} the landmarks of {whose}. Another specimen, other units, another "
                "coordinate system? Where it has no landmarks a warp only continues what it does "
                "at them."
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
    from defgpa.io.mesh import files as _mesh

    suffixes = {suffix for mesh_format in _mesh.FORMATS for suffix in mesh_format.suffixes}
    return {source.suffix.lower(), target.suffix.lower()} <= suffixes
