"""Body parts followed through a video, in HDF5: DeepLabCut (``.h5``) and SLEAP (``.slp``, ``.h5``).

DeepLabCut stores a table of pandas (in its format "table"; labelled images in its format "fixed")
whose columns are scorer, individual, body part and x, y, likelihood; SLEAP stores frames, the
instances in them and their points, or, in its analysis files, one array ``tracks``. Likelihoods
and scores become landmark weights. Needs h5py.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from defgpa.arrays import Array, RawArray
from defgpa.errors import FormatError, import_extra
from defgpa.io.arrays.axes import arrange_stack, choose_variable
from defgpa.io.arrays.matlab import is_hdf5
from defgpa.io.files import make_format_error, mask_missing, translate_errors
from defgpa.io.format import Document, Format, ReadOptions, Specimen, make_document
from defgpa.io.limits import SPECIMEN_COST, Budget
from defgpa.io.video_frames import (
    TrackedColumn,
    make_deeplabcut_document,
    make_video_document,
)
from defgpa.shapes import Metadata

if TYPE_CHECKING:
    import h5py

_PREDICTED = 1  # instance_type of SLEAP
_Content = tuple[list[TrackedColumn], Array, list[tuple[str, Metadata]]]  # columns, values, frames


def read_tracking_file(path: Path, options: ReadOptions) -> Document:
    """Read a shape for each individual in each frame; of other HDF5 files, their array."""
    advice = f'{path} is an HDF5 file, which needs h5py: pip install "defgpa[matlab]".'
    h5py = import_extra("h5py", advice)
    with translate_errors(path, "HDF5 file"), h5py.File(path, "r") as file:
        budget = Budget(path)
        if "instances" in file and "frames" in file:
            document = make_video_document(path, list(_read_sleap(file, options, budget)))
        elif "tracks" in file and "node_names" in file:
            document = make_video_document(path, list(_read_sleap_analysis(file, options, budget)))
        elif (table := _find_pandas_table(file)) is not None:
            document = make_deeplabcut_document(path, *_read_table(path, table, budget), options)
        elif (frame := _find_pandas_frame(file)) is not None:
            document = make_deeplabcut_document(path, *_read_frame(path, frame, budget), options)
        else:
            return _read_array(path, file, options, budget)
    masked = (
        replace(specimen, points=mask_missing(specimen.points, options.missing))
        for specimen in document.specimens
    )
    return replace(document, specimens=tuple(masked))


# DeepLabCut


def _find_pandas_table(file: h5py.File) -> h5py.Group | None:
    """Find the table of the only group that pandas stored, or None."""
    tables = [
        group["table"] for name in file if hasattr(group := file[name], "keys") and "table" in group
    ]
    return tables[0] if len(tables) == 1 else None


def _find_pandas_frame(file: h5py.File) -> h5py.Group | None:
    """Find the only group in pandas' fixed format, as labelled images are stored, or None."""
    frames = [
        group
        for name in file
        if hasattr(group := file[name], "keys") and {"axis0_level0", "block0_values"} <= set(group)
    ]
    return frames[0] if len(frames) == 1 else None


def _read_table(path: Path, table: h5py.Group, budget: Budget) -> _Content:
    """Read pandas' table format."""
    budget.spend(2 * table.size * table.dtype.itemsize, "its table")
    values = np.asarray(table["values_block_0"], dtype=np.float64)
    index = np.asarray(table["index"]) if "index" in table.dtype.names else np.arange(len(values))
    is_known = index.dtype.kind in "iuS" and index.ndim == 1
    columns = _name_columns(_read_column_names(path, table))
    return columns, values, _name_frames(index if is_known else np.arange(len(values)))


def _read_frame(path: Path, group: h5py.Group, budget: Budget) -> _Content:
    """Read pandas' fixed format."""
    budget.spend(24 * group["block0_values"].size, "its table")
    values = np.asarray(group["block0_values"], dtype=np.float64)
    heads = _read_index(group, "block0_items")
    if any(len(head) not in (3, 4) for head in heads):
        raise make_format_error(path, "columns of scorer, body part and coordinate", "others")
    index = group["axis1"][()] if "axis1" in group else np.empty(0)
    if "axis1_level0" in group:  # folders and image
        index = np.array(["/".join(words) for words in _read_index(group, "axis1")], dtype=object)
    return _name_columns(heads), values, _name_frames(index)


def _name_columns(heads: Sequence[tuple[str, ...]]) -> list[TrackedColumn]:
    """Name the columns of pandas: scorer, (individual,) body part, coordinate."""
    return [TrackedColumn(head[1] if len(head) == 4 else "", *head[-2:]) for head in heads]


def _name_frames(index: RawArray) -> list[tuple[str, Metadata]]:
    """Name frames by their numbers, or by their images."""
    if index.dtype.kind in "iu":
        return [(f"frame_{number}", {}) for number in index.tolist()]
    words = [
        word.decode("utf-8", errors="replace") if isinstance(word, bytes) else str(word)
        for word in index.tolist()
    ]
    return [(word, {"images": word}) for word in words]


def _read_index(group: h5py.Group, name: str) -> list[tuple[str, ...]]:
    """Read the entries of an index of several levels: numbers of words in a list per level."""
    levels = []
    for k in range(sum(f"{name}_level{k}" in group for k in range(5))):
        words, numbers = _read_names(group[f"{name}_level{k}"]), group[f"{name}_label{k}"][()]
        levels.append([words[int(number)] for number in numbers])
    return list(zip(*levels, strict=True))


def _read_column_names(path: Path, table: h5py.Group) -> list[tuple[str, ...]]:
    """Read the columns of pandas: tuples of scorer, (individual,) body part, coordinate.

    They are pickled; nothing but lists, tuples and strings is taken out of the pickle.
    """
    stored = table.attrs.get("values_block_0_kind")
    stored = table.parent.attrs.get("non_index_axes") if stored is None else stored
    data = stored.tobytes() if hasattr(stored, "tobytes") else stored
    try:
        names: Any = _PlainUnpickler(io.BytesIO(data if isinstance(data, bytes) else b"")).load()
    except Exception:
        names = None
    if isinstance(names, list) and len(names) == 1 and isinstance(names[0], tuple):
        names = names[0][-1]  # (axis, labels)
    if not isinstance(names, list) or not all(
        isinstance(name, tuple) and len(name) in (3, 4) and all(isinstance(w, str) for w in name)
        for name in names
    ):
        raise FormatError(
            f"{path}: the names of its columns cannot be read. Save the table as .csv in "
            "DeepLabCut (save_as_csv=True)."
        )
    return names


class _PlainUnpickler(pickle._Unpickler):
    """An unpickler of plain lists, tuples and strings: it finds no class and runs no code.

    It is that in Python, since the one in C takes memory for as many objects as a pickle names.
    """

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name} is not read")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError("references are not read")


# SLEAP


def _read_sleap(file: h5py.File, options: ReadOptions, budget: Budget) -> Iterator[Specimen]:
    """Yield the instances of a project; where a frame also has predictions, those of the user."""
    names = ("frames", "instances", "points", "pred_points")
    for name in names:
        if name in file:
            budget.spend(2 * file[name].size * file[name].dtype.itemsize, f"{name!r}")
    stored = {name: file[name][()] for name in names if name in file}
    frames, instances = stored["frames"], stored["instances"]
    labels, tracks = _read_nodes(file), _read_tracks(file)
    for frame in frames:
        start, stop = int(frame["instance_id_start"]), int(frame["instance_id_end"])
        members = instances[start:stop]
        by_hand = members[members["instance_type"] != _PREDICTED]
        for k, instance in enumerate(by_hand if len(by_hand) else members):
            predicted = instance["instance_type"] == _PREDICTED
            span = slice(int(instance["point_id_start"]), int(instance["point_id_end"]))
            rows = stored["pred_points" if predicted else "points"][span]
            budget.spend(SPECIMEN_COST + 16 * len(rows), "the number of its instances")
            points = np.column_stack([rows["x"], rows["y"]]).astype(np.float64)
            points[~rows["visible"].astype(bool)] = np.nan
            track = int(instance["track"])
            animal = tracks[track] if 0 <= track < len(tracks) else ""
            name = f"frame_{int(frame['frame_idx'])}"
            has_several = len(members) > 1
            weights = None
            if predicted and options.weights == "likelihood":
                weights = np.where(np.isnan(points[:, 0]), 0.0, rows["score"]).astype(np.float64)
            yield Specimen(
                f"{animal or k + 1}_{name}" if has_several or animal else name,
                points,
                labels if len(labels) == len(points) else None,
                {"groups": animal} if animal else {},
                weights=weights,
            )


def _read_nodes(file: h5py.File) -> tuple[str, ...]:
    """Read the names of the body parts in the order of the points."""
    text = file["metadata"].attrs.get("json", b"{}") if "metadata" in file else b"{}"
    metadata = json.loads(text.decode() if isinstance(text, bytes) else str(text))
    nodes = [str(node.get("name", "")) for node in metadata.get("nodes", [])]
    skeletons = metadata.get("skeletons") or [{}]
    order = [node.get("id") for node in skeletons[0].get("nodes", [])]
    if sorted(order, key=str) == sorted(range(len(nodes)), key=str):
        return tuple(nodes[k] for k in order)
    return tuple(nodes)


def _read_tracks(file: h5py.File) -> list[str]:
    if "tracks_json" not in file:
        return []
    tracks = (json.loads(track) for track in file["tracks_json"][()])
    return [str(track[-1] if isinstance(track, list) else track) for track in tracks]


def _read_sleap_analysis(
    file: h5py.File, options: ReadOptions, budget: Budget
) -> Iterator[Specimen]:
    """Yield the individuals of ``tracks`` (tracks, 2, nodes, frames), frame by frame."""
    size = file["tracks"].shape
    if len(size) != 4 or size[1] not in (2, 3):
        raise FormatError(f"{file.filename}: expected 'tracks' with 4 axes; found size {size}.")
    budget.spend(32 * int(np.prod(size)), "'tracks'")
    budget.spend_on_specimens(size[0] * size[3])
    tracks: Array = np.asarray(file["tracks"][()], dtype=np.float64).transpose(0, 3, 2, 1)
    labels = _read_names(file["node_names"])
    animals = _read_names(file["track_names"]) if "track_names" in file else ()
    scores: RawArray | None = None
    if options.weights == "likelihood" and "point_scores" in file:
        scores = np.asarray(file["point_scores"][()], dtype=np.float64).transpose(0, 2, 1)
        scores = scores if scores.shape == tracks.shape[:3] else None
    has_several = len(tracks) > 1
    for i, track in enumerate(tracks):
        animal = animals[i] if i < len(animals) and has_several else ""
        for k, points in enumerate(track):
            points[np.isnan(points).any(axis=1)] = np.nan
            metadata: Metadata = {"groups": animal} if animal else {}
            yield Specimen(
                f"{animal or i + 1}_frame_{k}" if has_several else f"frame_{k}",
                points,
                labels if len(labels) == len(points) else None,
                metadata,
                weights=None if scores is None else np.nan_to_num(scores[i, k]),
            )


# Any other file


def _read_array(path: Path, file: h5py.File, options: ReadOptions, budget: Budget) -> Document:
    """Read the one array of a file that can be a set of shapes, or the variable asked for."""
    arrays = {
        name: file[name]
        for name in file
        if getattr(file[name], "ndim", 0) == 3 and file[name].dtype.kind in "fiu"
    }
    name = choose_variable(path, arrays, list(arrays), ("points",), options.variable)
    budget.spend(16 * arrays[name].size, f"{name!r}")
    stack = arrange_stack(path, np.asarray(arrays[name][()]), options.layout, preferred="nmd")
    return make_document(path, mask_missing(stack, options.missing))


def _read_names(dataset: h5py.Dataset) -> tuple[str, ...]:
    names: Sequence[str | bytes] = np.asarray(dataset[()]).ravel().tolist()
    return tuple(
        name.decode("utf-8", errors="replace") if isinstance(name, bytes) else str(name)
        for name in names
    )


FORMATS = (
    Format(
        name="h5",
        suffixes=(".h5", ".hdf5", ".slp"),
        looks_like=is_hdf5,
        read=read_tracking_file,
        write=None,
    ),
)
