"""``defgpa register``: new specimens onto a saved reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from defgpa.cli._console import Console
from defgpa.cli._input import read_input
from defgpa.cli._options import reading, speaking
from defgpa.cli._output import list_files, write_shapes_twice

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.shapes import Shapes


@click.command("register", epilog="Example: defgpa register result/result.npz new/*.tps -o new/")
@click.argument("result", type=click.Path())
@click.argument("source", nargs=-1, required=True, metavar="NEW...")
@click.option("--output", "-o", required=True, type=click.Path(), help="Folder for the results.")
@reading
@speaking
def command(
    result: str,
    source: tuple[str, ...],
    output: str,
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Bring new specimens onto a saved reference, in closed form.

    Landmarks are matched by label where the files carry labels, by position otherwise.
    """
    import numpy as np

    from defgpa.io import load

    console = Console(quiet, as_json)
    with console.noting():
        alignment = load(result)
        shapes = matched(read_input(source, format_, missing, layout, lenient), alignment)
        images = np.stack([alignment.register(own)(own) for own in shapes])
        files = write_shapes_twice(shapes.with_points(images), Path(output), "registered")
    distances = np.linalg.norm(images - alignment.reference, axis=2)
    errors = np.sqrt(np.nanmean(distances**2, axis=1))
    rows = [[name, float(error)] for name, error in zip(shapes.names, errors, strict=True)]
    console.table("Registered", ["shape", "RMSE_r"], rows)
    list_files(console, files)
    console.result(
        {"rmse_reference": dict(rows), "files": files, "notes": console.notes}  # type: ignore[arg-type]
    )


def matched(shapes: Shapes, alignment: Alignment) -> Shapes:
    """The shapes with the landmarks of the reference, in its order."""
    import numpy as np

    from defgpa.errors import ShapeError, listed
    from defgpa.shapes import Shapes as _Shapes

    wanted = alignment.shapes.landmarks
    if shapes.dim != alignment.shapes.dim:
        raise ShapeError(
            f"The new shapes are {shapes.dim}-D, the reference is {alignment.shapes.dim}-D."
        )
    numbered = tuple(str(k) for k in range(1, shapes.n_landmarks + 1))
    if shapes.landmarks == wanted or (
        shapes.landmarks == numbered and shapes.n_landmarks == len(wanted)
    ):
        return _Shapes.specimens(
            shapes.points, names=shapes.names, landmarks=wanted, metadata=shapes.metadata
        )
    strange = [label for label in shapes.landmarks if label not in wanted]
    if strange:
        raise ShapeError(
            f"The reference has no landmark {listed(strange)}; it has {len(wanted)} landmarks: "
            f"{listed(wanted)}."
        )
    points = np.full((shapes.n_shapes, len(wanted), shapes.dim), np.nan)
    points[:, [wanted.index(label) for label in shapes.landmarks]] = shapes.points
    return _Shapes.specimens(points, names=shapes.names, landmarks=wanted, metadata=shapes.metadata)
