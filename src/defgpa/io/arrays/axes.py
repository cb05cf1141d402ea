"""Which axis of a bare array is what: shapes n, landmarks m, coordinates d.

Landmarks have 2 or 3 coordinates, so an axis of that length gives itself away, unless another
one has such a length too; then only the user knows (the ``layout`` option).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from defgpa.arrays import Array, Index, RawArray
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError
from defgpa.io.files import list_names
from defgpa.io.text.lines import warn

ORDERS = {"nmd": (0, 1, 2), "mdn": (2, 0, 1), "dmn": (2, 1, 0)}  # which axes are n, m and d


def choose_variable(
    path: Path,
    variables: Mapping[str, object],
    candidates: Sequence[str],
    usual_names: Sequence[str],
    requested: str | None,
) -> str:
    """Choose the variable of a file that holds the shapes.

    Parameters
    ----------
    path : path
        The file, for complaints.
    variables : mapping
        All variables by name.
    candidates : sequence of str
        Those that can be a set of shapes.
    usual_names : sequence of str
        Names that are taken where several can.
    requested : str, optional
        The one asked for (``ReadOptions.variable``).
    """
    if requested is not None:
        if requested not in variables:
            names = list_names(variables) or "no variables"
            raise FormatError(f"{path} has no variable {requested!r}; it holds {names}.")
        return requested
    usual_names = (
        candidates if len(candidates) == 1 else [name for name in usual_names if name in candidates]
    )
    if usual_names:
        return usual_names[0]
    if candidates:
        example = name_option("variable", candidates[0])
        raise FormatError(
            f"{path}: {list_names(candidates)} can each be a set of shapes. Choose one: {example}."
        )
    raise FormatError(
        f"{path}: expected an array of shapes, landmarks and coordinates; "
        f"found {list_names(variables) or 'no variables'}."
    )


def arrange_stack(path: Path, array: RawArray, layout: str, preferred: str | None) -> Array:
    """Arrange a 3-D array in any layout, or a 2-D array of one shape, as (n, m, d) float64.

    ``preferred`` is the layout the format documents, taken when several are possible.
    """
    numbers = to_real_numbers(path, array)
    if numbers.ndim == 2:
        return arrange_matrix(path, numbers, layout)[None]
    if numbers.ndim != 3:
        raise FormatError(
            f"{path}: expected an array with 3 axes (shapes, landmarks, coordinates); "
            f"found size {numbers.shape}."
        )
    chosen = layout if layout != "auto" else infer_layout(path, numbers.shape, preferred)
    stack = np.transpose(numbers, ORDERS[chosen])
    _require_points(path, stack.shape, chosen, numbers.shape)
    return np.ascontiguousarray(stack)


def arrange_matrix(path: Path, array: RawArray, layout: str) -> Array:
    """Arrange the matrix of one shape as (m, d), transposed if the layout or its size says so."""
    numbers = to_real_numbers(path, array)
    if numbers.ndim != 2:
        raise FormatError(
            f"{path}: expected a matrix of landmarks and coordinates; found size {numbers.shape}."
        )
    is_transposed = layout == "dmn" or (layout == "auto" and numbers.shape[1] not in (2, 3))
    matrix = numbers.T if is_transposed else numbers
    _require_points(path, matrix.shape, layout, numbers.shape)
    return np.ascontiguousarray(matrix)


def to_real_numbers(path: Path, array: RawArray) -> Array:
    """Convert an array to float64, if it holds real numbers."""
    if array.dtype.kind not in "fiub":
        kind = "complex numbers" if array.dtype.kind == "c" else f"'{array.dtype}'"
        raise FormatError(f"{path}: expected an array of real numbers; found {kind}.")
    with np.errstate(over="ignore"):  # a quadruple too large becomes infinite, and is refused
        return array.astype(np.float64)


def parse_triangles(path: Path, faces: RawArray, m: int) -> Index:
    """Parse (k, 3) landmark numbers from 0, if that is what the faces are."""
    numbers = to_real_numbers(path, faces)
    if numbers.size == 0:
        return np.empty((0, 3), dtype=np.intp)
    if numbers.ndim != 2 or numbers.shape[1] != 3:
        raise FormatError(f"{path}: expected faces of size (k, 3); found size {numbers.shape}.")
    outside = ~((numbers >= 0) & (numbers < m) & (numbers == np.floor(numbers)))
    if outside.any():
        raise FormatError(
            f"{path}: expected faces that number {m} landmarks; found {numbers[outside][0]:g} "
            f"(the first is 0)."
        )
    return numbers.astype(np.intp)


def parse_links(links: RawArray, first: int, m: int) -> dict[str, object]:
    """Parse pairs of joined landmarks, if rows are pairs of numbers of m, from ``first`` on."""
    pairs = links.ndim == 2 and links.shape[1] == 2
    if not pairs or not np.isin(links, np.arange(first, first + m)).all():
        return {}
    return {"links": tuple((int(a) - first, int(b) - first) for a, b in links)}


def infer_layout(path: Path, size: tuple[int, ...], preferred: str | None) -> str:
    """Infer the order of the axes of an array with three of them, by their lengths."""
    layouts_by_size = [name for name, (_, _, d) in ORDERS.items() if size[d] in (2, 3)]
    if preferred in layouts_by_size:
        if preferred == "nmd" and "mdn" in layouts_by_size and size[0] > 3:
            warn(
                f"{path}: an array of size {size} is taken as {size[0]} shapes with {size[1]} "
                f"landmarks in {size[2]}-D. If they are {size[2]} shapes with {size[0]} landmarks "
                f"in {size[1]}-D, give {name_option('layout', 'mdn')}."
            )
        return str(preferred)
    if len(layouts_by_size) == 1:
        return layouts_by_size[0]
    if layouts_by_size:
        layouts = " or ".join(name_option("layout", layout) for layout in layouts_by_size)
        raise FormatError(
            f"{path}: the axes of an array of size {size} can be shapes (n), landmarks (m) and "
            f"coordinates (d) in several orders. Give {layouts}."
        )
    raise FormatError(
        f"{path}: expected an array with an axis of 2 or 3 coordinates; found size {size}."
    )


def _require_points(
    path: Path, size: tuple[int, ...], layout: str, file_size: tuple[int, ...]
) -> None:
    if size[-1] not in (2, 3) or 0 in size:
        assumed = "" if layout == "auto" else f" with layout {layout!r}"
        raise FormatError(
            f"{path}: expected landmarks of 2 or 3 coordinates; found size {file_size}{assumed}."
        )
