"""A result in one file: npz with a JSON header, no pickle, all of it or none.

The header says what the file is, which version of the format and of the package wrote it, what
the input was (names, SHA-256 of the points) and how the values are laid out over the arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.diagnostics.findings import Finding
from defgpa.errors import DefgpaError, FormatError
from defgpa.io.arrays.numpy import list_archive, read_archive
from defgpa.io.atomic import replace_file
from defgpa.io.files import abbreviate, read_head
from defgpa.io.limits import Budget, open_zip
from defgpa.io.saved.codec import Fields, decode, decode_stack, encode, encode_stack
from defgpa.shapes import Shapes
from defgpa.warps import FactoredBasis, Warp

FORMAT, VERSION = "defgpa-alignment", 2
_FIELDS = ("reference", "eigenvalues", "turn", "registration")  # in this order, as they are
_DAMAGE = (  # what zipfile, zlib, NumPy and JSON make of broken bytes
    *(OSError, ValueError, EOFError, AttributeError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


def save(alignment: Alignment, path: str | os.PathLike[str]) -> None:
    """Write an alignment to one ``.npz`` file that ``defgpa.load`` reads.

    Parameters
    ----------
    alignment : Alignment
        With any built-in warp, or one of your own told of by ``defgpa.register_saved``.
    path : path
        Written beside and renamed: never half a file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import defgpa
    >>> points = np.random.default_rng(0).normal(size=(20, 2)) + np.zeros((4, 1, 1))
    >>> points += 0.1 * np.random.default_rng(1).normal(size=points.shape)
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(points).alignment_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     defgpa.save(a, pathlib.Path(folder) / "result.npz")
    ...     b = defgpa.load(pathlib.Path(folder) / "result.npz")
    >>> bool((b.aligned == a.aligned).all())
    True
    """
    if not isinstance(alignment, Alignment):
        raise DefgpaError(
            f"Only an Alignment can be saved (model.alignment_); got {type(alignment).__name__}."
        )
    arrays: dict[str, Array] = {}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "provenance": _describe_provenance(alignment.shapes),
        "content": _encode_alignment(alignment, arrays),
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with replace_file(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, header=text, **arrays)  # type: ignore[arg-type]


def load(path: str | os.PathLike[str]) -> Alignment:
    """Read an alignment that ``defgpa.save`` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Alignment
        Shapes aligned by warps onto a common reference; immutable.

    Raises
    ------
    FormatError
        If the file is damaged, is something else, or was written by a newer version.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise FormatError(f"Expected the path of a saved result; got {type(path).__name__}.")
    header, arrays = _open_archive(Path(path))
    try:
        return _decode_alignment(header["content"], arrays)
    except FormatError as error:
        raise FormatError(f"{path}: {error}.") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        reason = abbreviate(str(error), 80)
        raise FormatError(f"{path}: the file is damaged ({reason}). Make it again.") from None


def read_header(path: str | os.PathLike[str]) -> Fields:
    """Read the header of a saved result: format, version, provenance, layout.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Mapping[str, Any]
        The fields of the header, by name.
    """
    return _open_archive(Path(path))[0]


def _encode_alignment(alignment: Alignment, arrays: dict[str, Array]) -> dict[str, object]:
    shapes = alignment.shapes
    warps = [_remove_mixing(warp) for warp in alignment.warps]
    offsets = np.stack([np.broadcast_to(w.offset, w.coefficients.shape[1:]) for w in warps])
    runs = groupby((warp.coefficients for warp in warps), key=np.shape)  # of one size
    return {
        "points": encode(shapes.points, arrays),
        "landmark_weights": encode(shapes.weights if shapes.has_weights else None, arrays),
        "names": list(shapes.names),
        "landmarks": list(shapes.landmarks),
        "faces": encode(shapes.faces, arrays),
        "metadata": json.loads(json.dumps(dict(shapes.metadata), default=str)),
        **{key: encode(getattr(alignment, key), arrays) for key in _FIELDS},
        "bases": encode_stack([warp.basis for warp in warps], arrays),
        "weights": [encode(np.stack(list(run)), arrays) for _, run in runs],
        "offsets": encode(offsets, arrays),
        "diagnostics": encode(alignment.diagnostics, arrays),
        "rejection": encode(alignment.rejection, arrays),
        "findings": [finding.to_dict() for finding in alignment.findings],
    }


def _decode_alignment(content: Fields, arrays: Mapping[str, Array]) -> Alignment:
    shapes = Shapes.specimens(
        decode(content["points"], arrays),
        weights=decode(content.get("landmark_weights"), arrays),
        names=content["names"],
        landmarks=content["landmarks"],
        faces=decode(content["faces"], arrays),
        metadata=content["metadata"],
    )
    bases = decode_stack(content["bases"], arrays, shapes.n_shapes)
    coefficients = [
        matrix for node in content["weights"] for matrix in _decode_numbers(node, arrays)
    ]
    offsets = _decode_numbers(content["offsets"], arrays)
    warps = tuple(map(Warp, bases, coefficients, offsets, shapes.points))
    if len(warps) != shapes.n_shapes:
        raise FormatError(f"the coefficients of {len(warps)} warps for {shapes.n_shapes} shapes")
    _require_sizes(content, arrays, shapes)
    fields = ("diagnostics", *_FIELDS)
    values = {key: decode(content[key], arrays) for key in fields}
    findings = tuple(Finding.from_dict(finding) for finding in content["findings"])
    rejection = decode(content.get("rejection"), arrays)
    return Alignment(shapes=shapes, warps=warps, findings=findings, rejection=rejection, **values)


def _decode_numbers(node: Any, arrays: Mapping[str, Array]) -> Array:
    values = decode(node, arrays)
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        raise FormatError("the coefficients of the warps are no numbers")
    if not np.isfinite(values).all():
        raise FormatError("the coefficients of the warps are not finite")
    return values


def _require_sizes(content: Fields, arrays: Mapping[str, Array], shapes: Shapes) -> None:
    """Require a reference and axes of finite numbers, of the size of the shapes."""
    m, d = shapes.n_landmarks, shapes.n_dims
    for key, size in (("reference", (m, d)), ("eigenvalues", (d,)), ("turn", (d, d))):
        array = np.asarray(decode(content[key], arrays))
        if array.shape != size or array.dtype.kind != "f":
            raise FormatError(f"{key!r} should be {size} numbers, and is {array.shape}")
        if not np.isfinite(array).all():
            raise FormatError(f"{key!r} has entries that are not finite")


def _remove_mixing(warp: Warp) -> Warp:
    """Express a warp in its cheap columns: the mixing, l × l per shape, need not be stored."""
    if not isinstance(warp.basis, FactoredBasis):
        return warp
    return Warp(warp.basis.unmix(), warp.column_coefficients, warp.offset)


def _describe_provenance(shapes: Shapes) -> dict[str, object]:
    from defgpa import __version__

    return {
        "package": f"defgpa {__version__}",
        "numpy": np.__version__,
        "sha256_of_points": hashlib.sha256(shapes.points.tobytes()).hexdigest(),
        "sources": [str(source) for source in shapes.metadata.get("sources", ())],
    }


def _open_archive(path: Path) -> tuple[Fields, Mapping[str, Array]]:
    if path.is_dir():
        raise FormatError(f"{path} is a folder: name the result in it, {path / 'result.npz'}.")
    if not path.is_file():
        raise FormatError(f"{path}: there is no such file.")
    if not read_head(path).startswith(b"PK"):
        raise FormatError(f"{path}: not a result saved by defgpa (such as result.npz).")
    try:
        with open_zip(path) as archive:
            budget = Budget(path)
            arrays = read_archive(path, archive, list_archive(archive), budget)
        text = arrays.pop("header").tobytes()
        budget.spend(25 * len(text), "its header")  # bytes that a character of JSON can become
        header = json.loads(text)
    except FormatError:
        raise
    except KeyError:
        raise FormatError(f"{path}: not a result saved by defgpa (it has no header).") from None
    except _DAMAGE as error:
        raise FormatError(
            f"{path}: not a result saved by defgpa, or damaged. Make it again."
        ) from error
    _require_readable(path, header)
    return header, arrays


def _require_readable(path: Path, header: object) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FormatError(f"{path}: not a result saved by defgpa.")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FormatError(
            f"{path}: written by a newer defgpa (format version {version}; this one reads up to "
            f"{VERSION}). Upgrade: pip install -U defgpa."
        )
