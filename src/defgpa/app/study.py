"""Compute the shapes of a project: files read, edits applied, superimposed, screened.

Nothing here computes anything itself: every number comes from a public function of the package.
A study does not change; an edit makes a new one that shares what the files hold. Estimators and
statistics are loaded when they are first needed: specimens are on the screen before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from defgpa.app.settings import Reading
from defgpa.app.thread_warnings import collect_notes
from defgpa.arrays import Array
from defgpa.diagnostics import Finding
from defgpa.diagnostics.preparation import flatten_planar, guess_units, prepare_shapes
from defgpa.edits import Action, Edit, apply_edits
from defgpa.errors import DefgpaError, FormatError
from defgpa.io import read_shapes
from defgpa.io.covariates import collect_columns, parse_column, read_covariates
from defgpa.io.missing_codes import find_missing_code
from defgpa.shapes import Shapes

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.completion import Completion

Cell = int | float | str | None  # of a table; None where it is empty

IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
MESHES = (".ply", ".stl", ".obj", ".off", ".vtk", ".vtp")
TABLES = (".csv", ".tsv", ".txt")
SPREADSHEETS = (".xlsx", ".xlsm")
_EXCLUSIONS = (
    Action.EXCLUDE_SPECIMEN,
    Action.INCLUDE_SPECIMEN,
    Action.EXCLUDE_LANDMARK,
    Action.INCLUDE_LANDMARK,
)


class MeanPlace(TypedDict):
    """Where the mean shape lies in the coordinates of one specimen.

    ``x @ matrix + offset`` brings superimposed points there.
    """

    matrix: Array
    offset: Array
    mean: Array


class Estimates(TypedDict):
    """A specimen without gaps (m, d), and how far each estimate may be off (m,)."""

    points: Array
    uncertainty: Array


@dataclass(frozen=True, eq=False)
class Study:
    """The shapes of a project with its edits, and all that is computed of them.

    Attributes
    ----------
    original : Shapes or None
        What the files hold; None where there are none yet, or they cannot be read.
    problem : str
        Why they cannot be read.
    notes : tuple of str
        What was worth a note when they were.
    columns : mapping of str to list
        What is known about each specimen, numbers as such.
    photographs, meshes : mapping of str to Path
        By the name of the specimen.
    sources, tables : tuple of Path
        The files that the shapes and the columns come from.
    incomplete : {"error", "drop"}
        Whether many specimens with too few landmarks are refused or left out.
    edits : tuple of Edit
        The corrections.
    """

    original: Shapes | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    columns: Mapping[str, list[Cell]] = field(default_factory=dict)
    photographs: Mapping[str, Path] = field(default_factory=dict)
    meshes: Mapping[str, Path] = field(default_factory=dict)
    sources: tuple[Path, ...] = ()
    tables: tuple[Path, ...] = ()
    incomplete: str = "error"
    edits: tuple[Edit, ...] = ()

    def with_edits(self, edits: tuple[Edit, ...]) -> Study:
        """Return the same study with other edits."""
        return replace(self, edits=edits)

    @cached_property
    def all_shapes(self) -> Shapes:
        """All specimens and landmarks with the edits but for exclusions."""
        if self.original is None:
            raise DefgpaError(self.problem or "There are no landmarks in this project yet.")
        corrections = [edit for edit in self.edits if edit.action not in _EXCLUSIONS]
        return apply_edits(self.original, corrections)

    @cached_property
    def corrected(self) -> Shapes:
        """The shapes of the files with all edits."""
        if self.original is None:
            raise DefgpaError(self.problem or "There are no landmarks in this project yet.")
        return apply_edits(self.original, self.edits)

    @cached_property
    def _preparation(self) -> tuple[Shapes, list[str]]:
        with collect_notes() as notes:
            return prepare_shapes(self.corrected, self.incomplete), notes

    @property
    def shapes(self) -> Shapes:
        """The shapes to analyse: corrected, without what is excluded or cannot be used."""
        return self._preparation[0]

    @property
    def left_out(self) -> list[str]:
        """What cannot be analysed although nobody excluded it, in sentences."""
        try:
            return self._preparation[1]
        except DefgpaError:
            return []  # told where the shapes are asked for

    @cached_property
    def numbers_in_analysis(self) -> tuple[list[int], list[int]]:
        """The numbers of the specimens and the landmarks that are analysed, in the files."""
        try:
            shapes = self.shapes
        except DefgpaError:
            shapes = self.corrected  # they cannot be analysed as they are; they can be looked at
        specimens, landmarks = set(shapes.names), set(shapes.landmarks)
        return (
            [i for i, name in enumerate(self.all_shapes.names) if name in specimens],
            [j for j, label in enumerate(self.all_shapes.landmarks) if label in landmarks],
        )

    @cached_property
    def columns_in_analysis(self) -> dict[str, list[Cell]]:
        """What is known about the specimens that are analysed."""
        specimens, _ = self.numbers_in_analysis
        return {name: [values[i] for i in specimens] for name, values in self.columns.items()}

    @cached_property
    def superimposition(self) -> Alignment:
        """The shapes superimposed by rotation, size and position: what corrections look at."""
        from defgpa.estimators import EuclideanGPA

        return EuclideanGPA(scaling=True).solve(self.shapes)[0]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What looks wrong with the shapes; computed apart from the quicker superimposition."""
        from defgpa.estimators import EuclideanGPA

        with collect_notes():
            return EuclideanGPA(scaling=True).fit(self.shapes).alignment_.findings

    @cached_property
    def completion(self) -> Completion:
        """The missing landmarks, estimated; once for the page and the statistics."""
        from defgpa.statistics.sample import complete_once

        return complete_once(self.superimposition)

    @cached_property
    def sizes(self) -> list[float | None]:
        """The centroid size of every specimen of the files; None for specimens not analysed."""
        from defgpa.statistics import centroid_sizes

        sizes = dict(zip(self.shapes.names, centroid_sizes(self.superimposition), strict=True))
        return [sizes.get(name) for name in self.all_shapes.names]

    def describe(self) -> dict[str, object]:
        """Return what is in the files, as ``defgpa info`` says it."""
        if self.original is None:
            return {}
        shapes = self.original
        coded = find_missing_code(shapes) if shapes.visible.any() else None
        return {
            "shapes": shapes.n_shapes,
            "landmarks": shapes.n_landmarks,
            "dimension": shapes.n_dims,
            "missing": int((~shapes.visible).sum()),
            "units": guess_units(shapes) if shapes.visible.any() else "unknown",
            "format": shapes.metadata.get("format", ""),
            "space": shapes.metadata.get("space", ""),
            "incomplete": list(shapes.metadata.get("incomplete", ())),
            "not_read": list(shapes.metadata.get("not_read", ())),
            "likely_missing": coded,
            "has_scales": any(scale is not None for scale in shapes.metadata.get("scales", ())),
        }

    def find_mean_place(self, specimen: int) -> MeanPlace | None:
        """Return the mean shape in the coordinates of one specimen of the files.

        It is posed in the L1 norm, so that swapped or misplaced landmarks do not tilt it. None
        where the specimen is not analysed or shows too little.
        """
        from defgpa.solvers.l1_superimposition import fit_similarities_in_l1

        name = self.all_shapes.names[specimen]
        if name not in self.shapes.names:
            return None
        points = self.shapes[name]
        visible = ~np.isnan(points[:, 0])
        mean = self.superimposition.reference
        motion = fit_similarities_in_l1(mean, points[np.newaxis], visible[np.newaxis])
        if not motion.determined[0]:
            return None
        matrix, offset = motion.matrix[0], motion.translation[0]
        return MeanPlace(matrix=matrix, offset=offset, mean=mean @ matrix + offset)

    def find_estimates(self, specimen: int) -> Estimates | None:
        """Return where a specimen of the files is likely to have its missing landmarks.

        None where it is not analysed or misses none.
        """
        name = self.all_shapes.names[specimen]
        if name not in self.shapes.names:
            return None
        i = self.shapes.index(name)
        if self.shapes.visible[i].all():
            return None
        completion = self.completion
        return Estimates(points=completion.shapes.points[i], uncertainty=completion.uncertainty[i])


def read_study(paths: Sequence[Path], reading: Reading) -> Study:
    """Read the files of a project: landmarks, tables, photographs and meshes.

    Parameters
    ----------
    paths : sequence of Path
        Landmark files, folders of them, photographs, meshes and tables.
    reading : mapping
        Options of `read_shapes`.
    """
    if not paths:
        return Study()
    with collect_notes() as notes:
        try:
            landmark_files, tables = separate_tables(paths)
            if not landmark_files:
                problem = "None of these files has landmarks. Drop the landmark files here, too."
                return Study(problem=problem, tables=tuple(tables))
            source = [str(path) for path in landmark_files]
            shapes = flatten_planar(
                read_shapes(source[0] if len(source) == 1 else source, **reading)
            )
            columns: dict[str, list[Cell]] = collect_columns(shapes)
            for table in tables:
                read = read_covariates(table, shapes.names)
                columns |= {head: parse_column(words) for head, words in read.items()}
        except DefgpaError as error:
            return Study(problem=_hide_folders(str(error), paths))
    other_files = _list_beside(paths)
    return Study(
        shapes,
        notes=tuple(_hide_folders(note, paths) for note in notes),
        columns=columns,
        photographs=_find_photographs(shapes, other_files),
        meshes=_find_meshes(shapes, other_files, landmark_files),
        sources=tuple(landmark_files),
        tables=tuple(tables),
        incomplete=reading.get("incomplete", "error"),
    )


def separate_tables(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Tell landmark files from tables of covariates, as spreadsheets are; images are neither.

    Meshes are landmarks only where nothing else has any. A table beside other landmark files is
    one of covariates; among tables alone, those without coordinates are.
    """
    spreadsheets = [path for path in paths if path.suffix.lower() in SPREADSHEETS]
    files = [path for path in paths if path.suffix.lower() not in (*IMAGES, *SPREADSHEETS)]
    meshes = [path for path in files if path.suffix.lower() in MESHES]
    tables = [path for path in files if path.suffix.lower() in TABLES]
    others = [path for path in files if path not in meshes and path not in tables]
    text = [path for path in tables if path.suffix.lower() == ".txt"]
    if not others or text:  # .txt may be either
        candidates = tables if not others else text
        with_points = [path for path in candidates if _has_landmarks(path)]
        others += with_points
        tables = [path for path in tables if path not in with_points]
    if not others:
        others = meshes
    return others, [*tables, *spreadsheets]


def _has_landmarks(path: Path) -> bool:
    try:
        with collect_notes():  # the file is read again, with the options that were chosen
            read_shapes(path, incomplete="drop")
    except FormatError:
        return False
    return True


def _hide_folders(text: str, paths: Sequence[Path]) -> str:
    """Return a message that names files without the folders that they lie in."""
    for folder in {str(path.parent) for path in paths}:
        text = text.replace(f"{folder}/", "").replace(f"{folder}\\", "")
    return text


def _list_beside(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the photographs and meshes among the files, and beside those that are links.

    A symbolic link that leads out of its folder is not followed.
    """
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in paths)
    files_by_stem: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.iterdir()):
            is_wanted = path.suffix.lower() in (*IMAGES, *MESHES) and path.is_file()
            if is_wanted and path.resolve().is_relative_to(folder.resolve()):
                files_by_stem.setdefault(path.name.casefold(), path)
    return files_by_stem


def _find_photographs(shapes: Shapes, beside: Mapping[str, Path]) -> dict[str, Path]:
    if shapes.n_dims != 2:
        return {}
    by_stem = {Path(name).stem: path for name, path in beside.items() if _is_image(path)}
    photographs = {}
    images = shapes.metadata.get("images") or [None] * shapes.n_shapes
    for name, image in zip(shapes.names, images, strict=True):
        file = str(image or "").replace("\\", "/").rpartition("/")[2].casefold()
        path = beside.get(file) or by_stem.get(file) or by_stem.get(name.casefold())
        if path is not None and _is_image(path):
            photographs[name] = path
    return photographs


def _find_meshes(
    shapes: Shapes, beside: Mapping[str, Path], landmark_files: Sequence[Path]
) -> dict[str, Path]:
    if shapes.n_dims != 3:
        return {}
    by_stem = {
        Path(name).stem: path
        for name, path in beside.items()
        if path.suffix.lower() in MESHES and path not in landmark_files
    }
    sources = shapes.metadata.get("sources") or [""] * shapes.n_shapes
    meshes = {}
    for name, source in zip(shapes.names, sources, strict=True):
        stem = Path(str(source)).name.casefold().partition(".")[0]
        path = by_stem.get(name.casefold()) or by_stem.get(stem)
        if path is not None:
            meshes[name] = path
    return meshes


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGES
