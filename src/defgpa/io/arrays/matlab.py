"""MATLAB files: a cell of d × m matrices, one a shape, and perhaps a cell of visibility.

Recognised, in this order: the struct ``Corresp`` with cells ``ptsImg`` and ``imNames``; the
cells ``D`` and ``V`` (points and visibility); ``points`` with optional ``visible``, ``names``,
``landmarks`` and ``faces`` (from 1, as MATLAB counts), which is also what is written; or else
the only variable that can be a set of shapes, by whatever name. A 3-D array stands for the
cell when the order of its axes is clear or given (``layout``).

Version 7.3 is HDF5 and needs h5py; the versions before need nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from defgpa.arrays import Array, Mask, RawArray
from defgpa.errors import FormatError, import_extra
from defgpa.io.arrays.axes import (
    arrange_matrix,
    arrange_stack,
    choose_variable,
    parse_triangles,
    to_real_numbers,
)
from defgpa.io.arrays.mat_bytes import (
    MAX_DEPTH,
    Sparse,
    Value,
    is_mat5,
    parse_mat4,
    parse_mat5,
)
from defgpa.io.atomic import replace_file
from defgpa.io.files import (
    make_format_error,
    mask_missing,
    read_bytes,
    read_head,
    translate_errors,
)
from defgpa.io.format import Document, Format, ReadOptions, make_document
from defgpa.io.limits import Budget
from defgpa.shapes import Shapes

if TYPE_CHECKING:
    import h5py

_HDF5 = b"\x89HDF\r\n\x1a\n"
_OBJECT_COST = 4000  # in place of time: HDF5 takes a tenth of a millisecond for each


def read_mat(path: Path, options: ReadOptions) -> Document:
    """Read the shapes of a ``.mat`` file in any of the recognised layouts."""
    variables = read_mat_variables(path)
    if options.variable is not None:
        points = variables[choose_variable(path, variables, (), (), options.variable)]
        return _build_document(path, {"points": points}, options)
    correspondences = variables.get("Corresp")
    if isinstance(correspondences, dict) and "ptsImg" in correspondences:
        return _read_image_correspondences(path, correspondences, options)
    if _is_cell_of_matrices(variables.get("D")) and "points" not in variables:
        variables = {"points": variables["D"], "visible": variables.get("V")}
    points = _find_points(path, variables)
    return _build_document(path, {**variables, "points": points}, options)


def write_mat(path: Path, shapes: Shapes) -> None:
    """Write cells ``points`` (d × m), ``visible`` (1 × m) and the names; ``faces`` as a matrix."""
    from scipy.io import savemat

    variables: dict[str, object] = {
        "points": _make_cell([points.T for points in shapes.points]),
        "visible": _make_cell([mask[None] for mask in shapes.visible]),
        "names": _make_cell(shapes.names),
        "landmarks": _make_cell(shapes.landmarks),
    }
    if shapes.faces is not None:
        variables["faces"] = shapes.faces.astype(np.float64) + 1
    with replace_file(path) as temporary, temporary.open("wb") as file:
        savemat(file, variables, do_compression=True, oned_as="row")


def read_mat_variables(path: Path) -> dict[str, Value]:
    """Read the variables of a ``.mat`` file by name, unwrapped."""
    head = read_head(path)
    if head.startswith(b"# Created by Octave"):
        raise FormatError(f"{path} is in Octave's text format. Save it with -v7 instead.")
    if is_hdf5(head):
        return _read_hdf_variables(path)
    if not is_mat5(head) and 0 not in head[:4]:
        raise make_format_error(path, "a MATLAB file", head[:20])
    data = read_bytes(path)
    with translate_errors(path, "MATLAB file"):
        return parse_mat5(data, Budget(path)) if is_mat5(head) else parse_mat4(data)


# What the variables mean


def _read_image_correspondences(
    path: Path, correspondences: Mapping[str, Value], options: ReadOptions
) -> Document:
    """Read ``ptsImg`` (rows 1 and 2 of each matrix are x and y) and ``imNames``, the images."""
    cell = correspondences["ptsImg"]
    if not _is_cell_of_matrices(cell) or any(len(matrix) < 2 for matrix in cell):
        raise FormatError(f"{path}: Corresp.ptsImg must be a cell of matrices with 2 rows or more.")
    stack = [mask_missing(to_real_numbers(path, matrix[:2].T), options.missing) for matrix in cell]
    images = _parse_texts(path, "Corresp.imNames", correspondences.get("imNames"), len(cell)) or ()
    return make_document(
        path, stack, images, shape_metadata=[{"images": image} for image in images]
    )


def _find_points(path: Path, variables: Mapping[str, Value]) -> Value:
    """Find ``points``, or the only variable that can be a set of shapes."""
    if "points" in variables:
        return variables["points"]
    candidates = [name for name, value in variables.items() if _can_be_shapes(value)]
    return variables[choose_variable(path, variables, candidates, (), None)]


def _can_be_shapes(value: Value) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 3 and value.dtype.kind in "fiu" and bool({2, 3} & set(value.shape))
    return _is_cell_of_matrices(value) and all({2, 3} & set(matrix.shape) for matrix in value)


def _is_cell_of_matrices(value: Value) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(isinstance(entry, np.ndarray) and entry.ndim == 2 for entry in value)
    )


def _build_document(path: Path, variables: Mapping[str, Value], options: ReadOptions) -> Document:
    stack = [
        mask_missing(points, options.missing)
        for points in _split_matrices(path, variables, options.layout)
    ]
    n, m = len(stack), len(stack[0])
    names = _parse_texts(path, "names", variables.get("names"), n) or ()
    if variables.get("visible") is not None:
        masks = _parse_visibility(path, variables["visible"], [len(points) for points in stack])
        stack = [
            np.where(visible[:, None], points, np.nan)
            for points, visible in zip(stack, masks, strict=True)
        ]
    labels = _parse_texts(path, "landmarks", variables.get("landmarks"), m)
    faces = variables.get("faces")
    if faces is not None:
        if not isinstance(faces, np.ndarray):
            raise FormatError(f"{path}: 'faces' must be a k × 3 matrix of landmark numbers from 1.")
        faces = parse_triangles(path, to_real_numbers(path, faces) - 1, m)
    return make_document(path, stack, names, labels, faces=faces)


def _split_matrices(path: Path, variables: Mapping[str, Value], layout: str) -> list[Array]:
    """Split points into one (m, d) array per shape."""
    points = variables["points"]
    if isinstance(points, np.ndarray):
        return list(arrange_stack(path, points, layout, preferred=None))
    if not _is_cell_of_matrices(points):
        raise FormatError(f"{path}: 'points' must be a cell of d × m matrices, or a 3-D array.")
    if layout == "auto" and all(len(matrix) in (2, 3) for matrix in points):
        layout = "dmn"  # as documented, even where the matrices could be read both ways
    return [arrange_matrix(path, matrix, layout) for matrix in points]


def _parse_visibility(path: Path, value: Value, counts: Sequence[int]) -> list[Mask]:
    """Parse one mask a shape, from a cell of vectors or diagonals, or from one row a shape."""
    if isinstance(value, np.ndarray) and value.ndim == 2:
        value = list(value if len(value) == len(counts) else value.T)
    if not isinstance(value, list) or len(value) != len(counts):
        raise FormatError(f"{path}: the visibility must be a cell of {len(counts)} vectors.")
    return [_parse_mask(path, entry, m) for entry, m in zip(value, counts, strict=True)]


def _parse_mask(path: Path, entry: Value, m: int) -> Mask:
    """Parse a visibility vector, also where it stands on the diagonal of a matrix."""
    if isinstance(entry, Sparse) and max(entry.size) == m:
        entry = entry.diagonal()
    elif isinstance(entry, np.ndarray) and entry.shape == (m, m) and m > 1:
        off_diagonal = entry[~np.eye(m, dtype=bool)]
        entry = np.diagonal(entry) if not off_diagonal.any() else entry
    if not isinstance(entry, np.ndarray) or entry.size != m or not np.isin(entry, (0, 1)).all():
        raise FormatError(
            f"{path}: the visibility of a shape must be {m} zeros and ones, or a diagonal matrix "
            "of them."
        )
    return np.asarray(entry.ravel() == 1)


def _parse_texts(path: Path, what: str, value: Value, count: int) -> tuple[str, ...] | None:
    if value is None:
        return None
    entries = [value] if isinstance(value, str) else value
    if isinstance(entries, np.ndarray):
        entries = [f"{number:g}" for number in to_real_numbers(path, entries).ravel()]
    if not isinstance(entries, list) or len(entries) != count:
        raise FormatError(f"{path}: '{what}' must be a cell of {count} names.")
    if not all(isinstance(entry, str) for entry in entries):
        raise FormatError(f"{path}: '{what}' must be a cell of names; some entries are not text.")
    return tuple(entries)


def _make_cell(values: Sequence[object]) -> RawArray:
    cell = np.empty((1, len(values)), dtype=object)
    for i, value in enumerate(values):
        cell[0, i] = value
    return cell


# Version 7.3


def _read_hdf_variables(path: Path) -> dict[str, Value]:
    advice = (
        f'{path} is a MATLAB 7.3 file, which needs h5py: pip install "defgpa[matlab]". '
        "Or save it in MATLAB with -v7."
    )
    h5py = import_extra("h5py", advice)
    with translate_errors(path, "MATLAB 7.3 file"), h5py.File(path, "r") as file:
        reader = _HdfReader(file, Budget(path))
        return {name: reader.value(file[name], MAX_DEPTH) for name in _list_members(file)}


def _list_members(group: h5py.Group) -> list[str]:
    """List the members stored in the file itself; links that lead elsewhere are not followed."""
    import h5py

    return [
        name
        for name in group
        if not name.startswith("#") and isinstance(group.get(name, getlink=True), h5py.HardLink)
    ]


class _HdfReader:
    """Reads MATLAB values from HDF5, within a budget."""

    def __init__(self, file: h5py.File, budget: Budget) -> None:
        self._file, self._budget = file, budget

    def value(self, item: h5py.Group | h5py.Dataset, levels: int) -> Value:
        if levels == 0:
            return None
        self._budget.spend(_OBJECT_COST, "the number of its objects")
        if hasattr(item, "keys"):
            if "MATLAB_sparse" in item.attrs:
                return self._read_sparse(item)
            return {name: self.value(item[name], levels - 1) for name in _list_members(item)}
        kind = item.attrs.get("MATLAB_class", b"")
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        if item.attrs.get("MATLAB_empty", 0):
            return {"char": "", "cell": [], "struct": {}}.get(kind, np.empty((0, 0)))
        if item.dtype.kind == "O":
            references = self._read_numbers(item).ravel()  # HDF5 stores MATLAB's arrays transposed
            return [self.value(self._file[ref], levels - 1) for ref in references]
        if kind == "char":
            return self._read_text(item)
        return self._read_numbers(item).T if item.dtype.kind in "fiub" else None

    def _read_numbers(self, item: h5py.Group | h5py.Dataset) -> RawArray:
        if item.is_virtual or item.external:
            raise FormatError(f"{self._file.filename}: {item.name!r} is in other files.")
        self._budget.spend(item.size * max(item.dtype.itemsize, 8), f"{item.name!r}")
        return np.asarray(item[()])

    def _read_text(self, item: h5py.Group | h5py.Dataset) -> Value:
        codes = np.atleast_2d(self._read_numbers(item)).T.astype("<u2")
        rows = [row.tobytes().decode("utf-16-le", errors="replace") for row in codes]
        return rows[0] if len(rows) == 1 else [row.rstrip() for row in rows]

    def _read_sparse(self, group: h5py.Group) -> Value:
        starts = self._read_numbers(group["jc"])
        size = (int(group.attrs["MATLAB_sparse"]), len(starts) - 1)
        rows, values = (
            self._read_numbers(group[key]) if key in group else np.empty(0)
            for key in ("ir", "data")
        )
        return Sparse.of(size, rows, starts, values)


def is_hdf5(head: bytes) -> bool:
    """Return whether the signature of HDF5 stands where it may: at 0, 512, 1024 …"""
    return any(head[offset:].startswith(_HDF5) for offset in (0, 512, 1024, 2048))


FORMATS = (
    Format(
        name="mat",
        suffixes=(".mat",),
        looks_like=lambda head: is_mat5(head) or is_hdf5(head) or head.startswith(b"MATLAB "),
        read=read_mat,
        write=write_mat,
        holds=("faces",),
    ),
)
