"""The sets of the paper, read from their authors' archives or folders on your disk."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from defgpa.arrays import Array
from defgpa.datasets._archives import find_file, find_files, open_folder
from defgpa.errors import DefgpaError, FormatError, import_extra
from defgpa.io.arrays.matlab import read_mat, read_mat_variables
from defgpa.io.files import make_format_error
from defgpa.io.format import ReadOptions
from defgpa.io.read import read_shapes
from defgpa.io.text.lines import is_number, parse_numbers, read_text
from defgpa.shapes import Shapes

PathLike = str | os.PathLike[str]


def load_face(path: PathLike) -> Shapes:
    """Load the Face set: 68 landmarks of one face in 10 frames, in pixels, some missing.

    Parameters
    ----------
    path : str or path
        The folder, ``.zip`` or ``.tar.gz`` that holds ``ShapeDataFace.mat``.

    Returns
    -------
    Shapes
        Named ``frame_k`` after the list of frames in the file.

    Examples
    --------
    >>> shapes = load_face("Face.zip")  # doctest: +SKIP
    """
    with open_folder(path) as folder:
        file = find_file(folder, "ShapeDataFace.mat", path)
        document = read_mat(file, ReadOptions())
        frames = read_mat_variables(file).get("framelist")
    n = len(document.specimens)
    if not isinstance(frames, np.ndarray) or frames.size != n:
        frames = np.arange(1, n + 1)
    points = [specimen.points for specimen in document.specimens]
    return Shapes(points, names=[f"frame_{int(k)}" for k in frames.ravel()])


def load_handbag(path: PathLike) -> Shapes:
    """Load the HandBag set: landmarks of a deforming bag in photographs, in pixels.

    Parameters
    ----------
    path : str or path
        The folder, ``.zip`` or ``.tar.gz`` that holds ``correspData2D/GT/Corresp.mat`` and
        ``imageData``.

    Returns
    -------
    Shapes
        With ``metadata["images"]``: the paths of the photographs, in the folder, or within the
        archive if ``path`` is one.

    Examples
    --------
    >>> shapes = load_handbag("HandBag.zip")  # doctest: +SKIP
    """
    return _read_photographs(path)


def load_pillow_cover(path: PathLike) -> Shapes:
    """Load the PillowCover set, laid out as the HandBag set is.

    Parameters
    ----------
    path : str or path
        The folder, ``.zip`` or ``.tar.gz`` that holds ``correspData2D/GT/Corresp.mat`` and
        ``imageData``.

    Returns
    -------
    Shapes
        With ``metadata["images"]``, as of :func:`load_handbag`.
    """
    return _read_photographs(path)


def load_liver(path: PathLike) -> Shapes:
    """Load the Liver set: 4004 vertices of a liver model in several deformations.

    Parameters
    ----------
    path : str or path
        The folder, ``.zip`` or ``.tar.gz`` that holds ``PointClouds/*.txt``, one vertex a line.

    Returns
    -------
    Shapes
        One shape a file, in natural order of the file names.

    Examples
    --------
    >>> shapes = load_liver("Liver.tar.gz")  # doctest: +SKIP
    """
    with open_folder(path) as folder:
        files = find_files(folder, "PointClouds/*.txt", path)
        clouds = [_read_rows(file, width=3) for file in files]
    for file, cloud in zip(files, clouds, strict=True):
        if len(cloud) != len(clouds[0]):
            raise make_format_error(
                file, f"{len(clouds[0])} vertices, as in {files[0].name}", f"{len(cloud)}"
            )
    return Shapes(clouds, names=[file.stem for file in files])


def load_stereo_toy_rug(path: PathLike, frames: Sequence[int] | None = None) -> Shapes:
    """Load the StereoToyRug set: 30 points of a rug, in 3-D by stereo, over many frames.

    Parameters
    ----------
    path : str or path
        The folder, ``.zip`` or ``.tar.gz`` that holds ``X.txt``: three rows a frame (x, y, z),
        one column a point.
    frames : sequence of int, optional
        Which frames, counted from 1; by default those of the paper, 1, 4, …, 598.

    Returns
    -------
    Shapes
        Named ``frame_k``; coordinates times 100, as in the paper.

    Examples
    --------
    >>> shapes = load_stereo_toy_rug("StereoToyRug.zip", frames=range(1, 100))  # doctest: +SKIP
    """
    with open_folder(path) as folder:
        file = find_file(folder, "X.txt", path)
        table = _read_rows(file)
    if len(table) % 3:
        raise make_format_error(file, "three rows a frame", f"{len(table)} rows")
    stack = table.reshape(len(table) // 3, 3, -1).transpose(0, 2, 1)
    chosen = [*range(1, min(len(stack), 598) + 1, 3)] if frames is None else list(frames)
    absent = [k for k in chosen if not 1 <= k <= len(stack)]
    if absent:
        raise FormatError(f"{file} has frames 1 to {len(stack)}; there is no frame {absent[0]}.")
    points = 100.0 * stack[np.array(chosen, dtype=np.intp) - 1]
    return Shapes(points, names=[f"frame_{k}" for k in chosen])


def load_lits(path: PathLike) -> Shapes:
    """Load the LiTS set: 54 landmarks of livers in CT scans, placed with 3D Slicer.

    Parameters
    ----------
    path : str or path
        The folder, ``.zip`` or ``.tar.gz`` that holds one ``.fcsv`` file a scan.

    Returns
    -------
    Shapes
        One shape a scan, in one anatomical system (``metadata["space"]``).

    Examples
    --------
    >>> shapes = load_lits("LiTS/")  # doctest: +SKIP
    """
    with open_folder(path) as folder:
        files = find_files(folder, "*.fcsv", path)
        shapes = read_shapes(files)
        sources = [str(Path(source).relative_to(folder)) for source in shapes.metadata["sources"]]
    return shapes.with_metadata(sources=sources)


def load_topacs(path: PathLike) -> Shapes:
    """Load the TOPACS set: matched points of six clouds, most of them in a few clouds only.

    Parameters
    ----------
    path : str or path
        The folder, ``.zip`` or ``.tar.gz`` that holds ``points0.csv`` … and
        ``CorrespondenceMatrix.txt`` (a row a landmark, a column a cloud, the number of its
        point there from 1, or 0).

    Returns
    -------
    Shapes
        One shape a cloud; landmarks are named by their row, and rows of zeros are left out.

    Examples
    --------
    >>> shapes = load_topacs("TOPACS.zip")  # doctest: +SKIP
    """
    with open_folder(path) as folder:
        matrix = find_file(folder, "CorrespondenceMatrix.txt", path)
        files = find_files(matrix.parent, "points*.csv", path)
        matches = _read_rows(matrix, width=len(files))
        clouds = [_read_rows(file, width=3) for file in files]
    points = np.stack(
        [
            _select_points(matrix, *correspondence)
            for correspondence in zip(files, clouds, matches.T, strict=True)
        ]
    )
    is_visible = ~np.isnan(points[..., 0]).all(axis=0)
    landmarks = [str(row + 1) for row in np.flatnonzero(is_visible)]
    return Shapes(points[:, is_visible], names=[file.stem for file in files], landmarks=landmarks)


def fetch(
    name: str, url: str, known_hash: str | None = None, cache: PathLike | None = None
) -> Path:
    """Download an archive once, and give its path from then on.

    The addresses of the published sets change with their authors' sites and are not known to
    this package: give the ``url`` you found.

    Parameters
    ----------
    name : str
        What to call the file in the cache, without its suffix: ``"liver"``.
    url : str
        Where it is, http(s), ftp or ``doi:``; its suffix is kept.
    known_hash : str, optional
        The SHA-256 the file must have. Without it, whatever arrives is taken.
    cache : str or path, optional
        The folder to keep it in; by default the user's cache folder of this package.

    Returns
    -------
    Path
        Of the file in the cache, for one of the loaders.

    Raises
    ------
    DefgpaError
        If it cannot be downloaded, or is not the file that ``known_hash`` says.

    Examples
    --------
    >>> archive = fetch("liver", url="https://example.org/Liver.zip")  # doctest: +SKIP
    >>> shapes = load_liver(archive)  # doctest: +SKIP
    """
    if not re.fullmatch(r"[\w-]+", name):
        raise DefgpaError(f"The name of a set must be a word, such as 'liver'; got {name!r}.")
    pooch = import_extra("pooch", 'Downloads need pooch: pip install "defgpa[download]".')
    suffix = re.search(r"(\.tar)?\.\w{1,4}$", url.split("?")[0])
    target = f"{name}{suffix[0] if suffix else ''}"
    folder = Path(cache) if cache is not None else Path(pooch.os_cache("defgpa"))
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # without pooch's own messages; one sentence if it fails
    try:
        return Path(pooch.retrieve(url, known_hash, target, folder))
    except Exception as error:  # of requests, urllib3, ftplib, or the hash: pooch has no own
        raise DefgpaError(f"{url} could not be fetched: {error}") from error
    finally:
        logger.setLevel(level)


def _read_photographs(path: PathLike) -> Shapes:
    with open_folder(path) as folder:
        file = find_file(folder, "correspData2D/GT/Corresp.mat", path)
        document = read_mat(file, ReadOptions())
        collection = file.parents[2].relative_to(folder)
    base = Path(path) / collection if Path(path).is_dir() else collection
    names = [specimen.name for specimen in document.specimens]
    images = [name if name.lower().endswith(".bmp") else f"{name}.bmp" for name in names]
    return Shapes(
        [specimen.points for specimen in document.specimens],
        names=names,
        metadata={"images": [str(base / "imageData" / image) for image in images]},
    )


def _read_rows(path: Path, width: int | None = None) -> Array:
    """Read rows of numbers, separated by blanks, commas or semicolons, after at most one header."""
    table: list[list[float]] = []
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        words = re.split(r"[,;\s]+", text.strip(" \t,;"))
        if words == [""] or (not table and not any(map(is_number, words))):
            continue
        expected = width or len(table[0] if table else words)
        if len(words) != expected:
            raise make_format_error(path, f"{expected} numbers", text.strip(), line)
        table.append(parse_numbers(path, line, words))
    if not table:
        raise make_format_error(path, "rows of numbers", "none")
    return np.array(table)


def _select_points(matrix: Path, file: Path, cloud: Array, column: Array) -> Array:
    """Return the points of a cloud by landmark, NaN where the column has 0."""
    if not ((column >= 0) & (column <= len(cloud)) & (column == np.floor(column))).all():
        raise make_format_error(
            matrix, f"numbers of the {len(cloud)} points in {file.name}, or 0", f"{column.max():g}"
        )
    points = np.full((len(column), 3), np.nan)
    is_visible = column > 0
    points[is_visible] = cloud[column[is_visible].astype(np.intp) - 1]
    return points
