"""Export an alignment to files of other programs.

3D Slicer's SlicerMorph reloads a folder of tables; R reads arrays p × k × n (``readRDS``) or tables
for geomorph's ``arrayspecs``; MorphoJ reads tab-separated text; viewers read meshes. Landmarks
that had to be estimated, because a program takes no gaps, are listed in ``estimated.csv``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.completion import Completion, complete
from defgpa.dataframes import name_coordinates
from defgpa.errors import ShapeError, format_names, import_extra
from defgpa.io.atomic import replace_file, write_text
from defgpa.io.text.table import format_csv, guard_formula
from defgpa.meshes import Mesh, warp_mesh, write_mesh
from defgpa.procrustes import fit_similarity
from defgpa.shapes import Shapes, number_labels
from defgpa.statistics import ShapePCA, centroid_sizes, specimens
from defgpa.statistics.specimens import label_groups
from defgpa.warps import fit_interpolating_spline


def export(alignment: Alignment, folder: str | Path, to: str) -> list[Path]:
    """Write the files that another program opens, and return their paths in order.

    Parameters
    ----------
    alignment : Alignment
        Any; in 3-D for SlicerMorph.
    folder : path
        Where to; made if it is not there.
    to : {"slicermorph", "r", "morphoj"}
        ``"slicermorph"``: the results folder of its GPA module (unit centroid size; eigenvalues
        over n, as it does). ``"r"``: ``shapes``, ``superimposed``, ``back_projected`` and
        ``aligned`` as arrays with dimension names (``readRDS("superimposed.rds")``) and as tables
        (``arrayspecs(as.matrix(read.csv("superimposed.csv", row.names = 1)), p, k)``), NaN where
        missing, and ``specimens.csv``. ``"morphoj"``: the shapes as measured, tab-separated.

    Returns
    -------
    list[Path]
        The files written.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> from tempfile import TemporaryDirectory
    >>> shapes = np.random.default_rng(0).normal(size=(1, 9, 2)) + [[[0, 0]], [[1, 1]]]
    >>> a = defgpa.EuclideanGPA().fit(shapes).alignment_
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in defgpa.export(a, folder, to="morphoj")]
    ['morphoj.txt', 'classifiers.txt']
    """
    writers = {"slicermorph": _write_slicermorph, "r": _write_r, "morphoj": _write_morphoj}
    if to not in writers:
        raise ValueError(
            f"The 'to' parameter of export must be one of {format_names(writers)}. Got {to!r} "
            "instead."
        )
    return writers[to](alignment, Path(folder))


def build_component_meshes(
    alignment: Alignment,
    mesh: Mesh | None = None,
    components: Iterable[int] = (1, 2),
    deviations: Sequence[float] = (-2.0, 2.0),
    space: str = "superimposed",
) -> dict[str, Mesh]:
    """Build meshes that many standard deviations along principal components, by name.

    Parameters
    ----------
    alignment : Alignment
        In 3-D.
    mesh : Mesh, optional
        In the space of the reference; it follows the landmarks by a thin-plate spline. By default
        the landmarks themselves, with the faces of the shapes.
    components : iterable of int
        Counted from 1.
    deviations : sequence of float
        How far along each.
    space : str
        As in ``ShapePCA``.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(12, 3)) + 0.1 * rng.normal(size=(6, 12, 3))
    >>> a = defgpa.EuclideanGPA().fit(shapes).alignment_
    >>> list(build_component_meshes(a, components=[1]))
    ['PC1_-2SD', 'PC1_+2SD']
    """
    _require_3d(alignment, "A mesh")
    pca = ShapePCA(space=space).fit(alignment)
    S = alignment.reference
    # from the unit size and pose of the components to those of the reference
    to_reference = fit_similarity(pca.mean_, S)
    meshes = {}
    for number in components:
        for deviation in deviations:
            ends = to_reference(pca.shape_at({number: deviation}))
            meshes[f"PC{number}_{deviation:+g}SD"] = _build_component_mesh(S, ends, mesh, alignment)
    return meshes


def write_component_meshes(
    alignment: Alignment, folder: str | Path, suffix: str = ".ply", **options: Any
) -> list[Path]:
    """Write the meshes of ``build_component_meshes`` as files."""
    files = []
    for name, mesh in build_component_meshes(alignment, **options).items():
        files.append(Path(folder) / f"{name}{suffix}")
        write_mesh(files[-1], mesh)
    return files


def _build_component_mesh(S: Array, ends: Array, mesh: Mesh | None, alignment: Alignment) -> Mesh:
    if mesh is None:
        faces = alignment.shapes.faces
        return Mesh(ends) if faces is None else Mesh(ends, faces)
    knots = slice(None, None, -(-len(S) // 500))  # a spline through more is no different
    return warp_mesh(mesh, fit_interpolating_spline(S[knots], ends[knots]))


# SlicerMorph


def _write_slicermorph(alignment: Alignment, folder: Path) -> list[Path]:
    _require_3d(alignment, "SlicerMorph's results folder")
    completion = complete(alignment)
    pca = ShapePCA().fit(completion.shapes)
    x, names = pca.coordinates_, completion.shapes.names
    n, m, _ = x.shape
    landmarks = number_labels("LM ", m)
    coordinates = [f"{landmark}_{axis}" for landmark in landmarks for axis in "XYZ"]
    components = number_labels("PC ", len(pca.components_))
    distances = np.linalg.norm(x - pca.mean_, axis=(1, 2))
    sizes = centroid_sizes(completion.shapes)
    flat = x.reshape(n, -1)
    vectors = pca.components_.reshape(len(components), -1).T
    values = pca.explained_variance_ * (n - 1) / n
    tables: dict[str, tuple[Sequence[str], Iterable[Sequence[object]]]] = {
        "outputData.csv": (
            ["Sample_name", "proc_dist", "centroid", *coordinates],
            _transpose_columns(names, distances, sizes, *flat.T),
        ),
        "meanShape.csv": (["", "X", "Y", "Z"], _transpose_columns(landmarks, *pca.mean_.T)),
        "eigenvector.csv": (["", *components], _transpose_columns(coordinates, *vectors.T)),
        "eigenvalues.csv": ([], _transpose_columns(components, values)),
        "pcScores.csv": (["Sample_name", *components], _transpose_columns(names, *pca.scores_.T)),
    }
    files = [_write_table(folder / name, head, rows) for name, (head, rows) in tables.items()]
    log = folder / "analysis.json"
    write_text(
        log, json.dumps(_build_gpa_log(folder, names, m), indent=2, ensure_ascii=False) + "\n"
    )
    return [*files, log, *_write_estimates_if_any(completion, folder)]


def _build_gpa_log(folder: Path, names: Sequence[str], m: int) -> dict[str, object]:
    now = datetime.now()
    return {
        "GPALog": [
            {
                "Date": f"{now:%Y-%m-%d}",
                "Time": f"{now:%H:%M:%S}",
                "InputPath": "",
                "OutputPath": folder.as_posix(),
                "Files": list(names),
                "LMFormat": "",
                "NumberLM": m,
                "ExcludedLM": [],
                "Boas": False,
                "MeanShape": "meanShape.csv",
                "Eigenvalues": "eigenvalues.csv",
                "Eigenvectors": "eigenvector.csv",
                "OutputData": "outputData.csv",
                "PCScores": "pcScores.csv",
                "SemiLandmarks": [],
                "CovariatesFile": "",
            }
        ]
    }


# R


def _write_r(alignment: Alignment, folder: Path) -> list[Path]:
    spaces = {
        "shapes": alignment.shapes.points,
        "superimposed": alignment.superimposed,
        "back_projected": alignment.back_projected,
        "aligned": alignment.aligned,
    }
    files = []
    for name, points in spaces.items():
        shapes = alignment.shapes.with_points(points)
        files.append(_write_rds(folder / f"{name}.rds", shapes))
        files.append(_write_table(folder / f"{name}.csv", *_build_wide_table(shapes)))
    columns = specimens(alignment)
    return [
        *files,
        _write_table(
            folder / "specimens.csv", list(columns), _transpose_columns(*columns.values())
        ),
    ]


def _write_rds(path: Path, shapes: Shapes) -> Path:
    """Write an array p × k × n (landmarks, coordinates, specimens) with dimension names."""
    rdata = import_extra("rdata", 'Files of R are written by rdata: pip install "defgpa[r]".')
    array = shapes.points.transpose(1, 2, 0)
    heads = (shapes.landmarks, tuple("XYZ"[: shapes.n_dims]), shapes.names)

    def add_dimension_names(_: _Named, converter: Any) -> Any:
        built = converter.convert_to_r_object(np.ravel(array, order="F"))
        names = [np.array(labels, dtype=object) for labels in heads]
        size = np.array(array.shape, dtype=np.int32)
        built.attributes = converter.convert_to_r_attributes({"dim": size, "dimnames": names})
        built.info.attributes = True
        return built

    with replace_file(path) as temporary:
        constructors = {_Named: add_dimension_names}
        rdata.write_rds(temporary, _Named(), compression=None, constructor_dict=constructors)
        # without the time, which gzip would put into its header
        temporary.write_bytes(gzip.compress(temporary.read_bytes(), mtime=0))
    return path


class _Named:
    """What stands for an array with dimension names, which rdata does not write by itself."""


# MorphoJ


def _write_morphoj(alignment: Alignment, folder: Path) -> list[Path]:
    completion = complete(alignment)
    shapes = completion.shapes
    groups = label_groups(alignment, None) or [""] * len(shapes)
    rows = _transpose_columns(shapes.names, groups)
    return [
        _write_table(folder / "morphoj.txt", *_build_wide_table(shapes), "\t"),
        _write_table(folder / "classifiers.txt", ["id", "group"], rows, "\t"),
        *_write_estimates_if_any(completion, folder),
    ]


# What they share


def write_estimates(completion: Completion, path: Path) -> Path:
    """Write every estimated landmark: shape, landmark, uncertainty, and whether it is far."""
    shapes, i, j = completion.shapes, *np.nonzero(completion.estimated)
    names, labels = [shapes.names[k] for k in i], [shapes.landmarks[k] for k in j]
    rows = _transpose_columns(names, labels, completion.uncertainty[i, j], completion.far[i, j])
    write_text(path, format_csv(["id", "landmark", "uncertainty", "far"], rows, "NA"))
    return path


def _write_estimates_if_any(completion: Completion, folder: Path) -> list[Path]:
    if not completion.estimated.any():
        return []
    return [write_estimates(completion, folder / "estimated.csv")]


def _write_table(
    path: Path, head: Sequence[str], rows: Iterable[Sequence[object]], between: str = ","
) -> Path:
    """Write a table in UTF-8; numbers with every digit, an unknown one ``NA``.

    Words that a spreadsheet would run are guarded, but not between tabs: MorphoJ alone reads those.
    """
    format_cell = str if between == "\t" else guard_formula
    write_text(path, format_csv(head, rows, "NA", between, format_cell))
    return path


def _build_wide_table(shapes: Shapes) -> tuple[list[str], Iterable[Sequence[object]]]:
    """Build the head and rows of a table, x1, y1, x2, … per specimen, as for arrayspecs."""
    heads = name_coordinates(number_labels("", shapes.n_landmarks), shapes.n_dims)
    return ["id", *heads], _transpose_columns(
        shapes.names, *shapes.points.reshape(len(shapes), -1).T
    )


def _transpose_columns(*columns: object) -> Iterable[Sequence[object]]:
    """Build the rows of a table from its columns."""
    return zip(
        *(column.tolist() if isinstance(column, np.ndarray) else column for column in columns),
        strict=True,
    )


def _require_3d(alignment: Alignment, what: str) -> None:
    if alignment.shapes.n_dims != 3:
        raise ShapeError(
            f"{what} is in 3-D, and these shapes are {alignment.shapes.n_dims}-D. "
            "Export to='r' or to='morphoj' instead."
        )
