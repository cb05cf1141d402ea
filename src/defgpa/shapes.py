"""Shapes: many configurations of the same landmarks, some of them not seen.

A landmark that was not seen is a row of NaN; visibility is derived from that and cannot
disagree with it. This is the only place that validates points: behind it, they are trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array, Index, Mask, frozen
from defgpa.errors import ShapeError, listed
from defgpa.tables import frame_of, labelled, read_frame

PER_SHAPE_METADATA = frozenset({"images", "groups", "scales", "comments", "sources", "variables"})

_LARGEST = 1e60  # of coordinates: their fourth powers, and those of what is left, are numbers
_FEW = 1000  # numbered labels that are made once and for all


class Shapes:
    """n configurations of m landmarks in d dimensions, with names; immutable.

    Parameters
    ----------
    points : array (n, m, d), masked array, sequence of n arrays (m, d), or DataFrame (n, m·d)
        Coordinates, d = 2 or 3. A landmark not seen in a shape is NaN in all coordinates.
        The columns of a DataFrame are ``x1, y1, x2, …`` or ``apex_x, apex_y, …``.
    visible : array (n, m) of bool, optional
        Landmarks to count as seen; the coordinates of the others are ignored.
    names : sequence of n str, optional
        One unique name per shape; ``shape_1``, ``shape_2``, … by default.
    landmarks : sequence of m str, optional
        One unique label per landmark; ``1``, ``2``, … by default.
    faces : array (k, 3) of int, optional
        Triangles over the landmarks (0-based), kept for meshes.
    metadata : mapping, optional
        What a file knew besides. ``images``, ``groups``, ``scales``, ``comments``, ``sources``
        and ``variables`` (columns of a table by name) hold one value per shape; anything else is
        about the whole set (``space`` is the anatomical system, ``"LPS"`` or ``"RAS"``).

    Raises
    ------
    ShapeError
        With one sentence that names the shape and landmark and says what to do.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(3, 5, 2))
    >>> points[1, 4] = np.nan
    >>> shapes = Shapes(points, names=["a", "b", "c"])
    >>> shapes
    Shapes(3 shapes, 5 landmarks, 2-D, 1 of 15 not seen)
    >>> shapes.visible[1].tolist()
    [True, True, True, True, False]
    """

    points: Array
    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    faces: Index | None
    metadata: Mapping[str, Any]

    def __init__(
        self,
        points: ArrayLike | Sequence[ArrayLike],
        *,
        visible: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        landmarks: Sequence[str] | None = None,
        faces: ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._store(points, visible, names, landmarks, faces, metadata)
        self.require_alignable()

    @classmethod
    def specimens(
        cls,
        points: ArrayLike | Sequence[ArrayLike],
        *,
        visible: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        landmarks: Sequence[str] | None = None,
        faces: ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Shapes:
        """Like the constructor, for shapes that need not make a set that can be aligned.

        One shape is enough, a shape may be all missing, and a landmark may be seen nowhere:
        what a single file holds, or new specimens to be registered. ``fit`` checks the rest.

        Examples
        --------
        >>> Shapes.specimens([[[0.0, 0.0], [1.0, 0.0], [float("nan")] * 2]])
        Shapes(1 shape, 3 landmarks, 2-D, 1 of 3 not seen)
        """
        self = cls.__new__(cls)
        self._store(points, visible, names, landmarks, faces, metadata)
        return self

    def _store(
        self,
        points: Any,
        visible: ArrayLike | None,
        names: Sequence[str] | None,
        landmarks: Sequence[str] | None,
        faces: ArrayLike | None,
        metadata: Mapping[str, Any] | None,
    ) -> None:
        if _is_frame(points):
            points, rows, heads = read_frame(points)
            names, landmarks = names or rows, landmarks or heads
        stacked = _hide(_stacked(points), visible)
        n, m, _ = stacked.shape
        own = vars(self)  # as attributes they cannot be set
        own["points"] = frozen(stacked)
        own["names"] = _labels(names, n, "name", "shape", "shape_")
        own["landmarks"] = _labels(landmarks, m, "label", "landmark", "")
        self._require_clean_coordinates()
        own["faces"] = _triangles(faces, m)
        own["metadata"] = MappingProxyType(_fitting_metadata(metadata, n))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Shapes do not change; '{name}' cannot be set. Make new Shapes.")

    @property
    def n_shapes(self) -> int:
        """n, the number of shapes."""
        return int(self.points.shape[0])

    @property
    def n_landmarks(self) -> int:
        """m, the number of landmarks."""
        return int(self.points.shape[1])

    @property
    def n_dims(self) -> int:
        """d, the number of coordinates: 2 or 3."""
        return int(self.points.shape[2])

    @cached_property
    def visible(self) -> Mask:
        """(n, m): which shape sees which landmark."""
        return frozen(~np.isnan(self.points[..., 0]))

    @cached_property
    def views(self) -> Index:
        """(m,): how many shapes see each landmark."""
        return frozen(self.visible.sum(axis=0))

    @property
    def links(self) -> list[tuple[int, int]]:
        """The wireframe that came with the shapes as pairs of landmark numbers.

        Its entries may be chains. What does not fit is left out: it comes from files and from
        users, and a picture is no place to fail.

        Examples
        --------
        >>> points = np.random.default_rng(0).normal(size=(2, 5, 2))
        >>> Shapes(points, metadata={"wireframe": [(0, 1, 4), (2, 9)]}).links
        [(0, 1), (1, 4)]
        """
        links = self.metadata.get("wireframe") or ()
        chains = [link for link in links if isinstance(link, (tuple, list, np.ndarray))]
        pairs = [(a, b) for chain in chains for a, b in pairwise(chain)]
        return [(int(a), int(b)) for a, b in pairs if self._is_landmark(a) and self._is_landmark(b)]

    def _is_landmark(self, number: Any) -> bool:
        return isinstance(number, (int, np.integer)) and 0 <= int(number) < self.n_landmarks

    def __len__(self) -> int:
        return self.n_shapes

    @overload
    def __getitem__(self, shape: int | str) -> Array: ...

    @overload
    def __getitem__(self, shape: slice | Sequence[int] | Index | Mask) -> Shapes: ...

    def __getitem__(self, shape: Any) -> Any:
        """The (m, d) points of one shape, by number or by name; or Shapes, ``shapes[0:5]``."""
        if isinstance(shape, (int, str, np.integer)):
            return self.points[self.index(shape if isinstance(shape, str) else int(shape))]
        return self.take(np.arange(self.n_shapes)[shape])

    def __iter__(self) -> Iterator[Array]:
        return iter(self.points)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shapes):
            return NotImplemented
        return (
            self.names == other.names
            and self.landmarks == other.landmarks
            and np.array_equal(self.points, other.points, equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made from what the shapes hold, not from how."""
        return _restored, (self._fields() | {"metadata": dict(self.metadata)},)

    def __repr__(self) -> str:
        n, m, d = self.points.shape
        unseen = n * m - int(self.visible.sum())
        holes = f"{unseen} of {n * m} not seen" if unseen else "all seen"
        return f"Shapes({n} shape{'s' * (n != 1)}, {m} landmark{'s' * (m != 1)}, {d}-D, {holes})"

    def index(self, shape: int | str) -> int:
        """The number of a shape given by number or name."""
        if isinstance(shape, str):
            if shape in self.names:
                return self.names.index(shape)
            raise ShapeError(
                f"There is no shape called {shape!r}. There are: {listed(self.names)}."
            )
        if not -self.n_shapes <= shape < self.n_shapes:
            raise ShapeError(f"There is no shape number {shape}; there are {self.n_shapes}.")
        return int(shape) % self.n_shapes

    def take(self, shapes: Sequence[int] | Index) -> Shapes:
        """Only these shapes, in this order."""
        chosen = [int(i) for i in shapes]
        metadata = {
            key: tuple(value[i] for i in chosen) if key in PER_SHAPE_METADATA else value
            for key, value in self.metadata.items()
        }
        names = [self.names[i] for i in chosen]
        return self._replaced(points=self.points[chosen], names=names, metadata=metadata)

    def without(self, landmarks: Sequence[int] | Index) -> Shapes:
        """All landmarks but these (by number); faces that lose a corner are dropped with them."""
        kept = np.delete(np.arange(self.n_landmarks), np.asarray(landmarks, dtype=np.intp))
        return self._replaced(
            points=self.points[:, kept],
            landmarks=[self.landmarks[j] for j in kept],
            faces=_surviving_faces(self.faces, kept, self.n_landmarks),
        )

    def with_points(self, points: ArrayLike) -> Shapes:
        """Other coordinates for the same shapes and landmarks."""
        return self._replaced(points=points)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with one row a shape and one column a coordinate: x1, y1, x2, …"""
        return frame_of(self.points, self.names, self.landmarks)

    def to_xarray(self) -> Any:
        """An xarray.DataArray with dimensions specimen, landmark and space."""
        return labelled(self.points, self.names, self.landmarks)

    def with_metadata(self, **metadata: Any) -> Shapes:
        """The same shapes, more being known about them; what is None is forgotten."""
        known = {**self.metadata, **metadata}
        kept = {key: value for key, value in known.items() if value is not None}
        return self._replaced(metadata=kept)

    def _replaced(self, **changed: Any) -> Shapes:
        """The same shapes but for these fields."""
        return Shapes.specimens(**self._fields() | changed)

    def _fields(self) -> dict[str, Any]:
        names = ("points", "names", "landmarks", "faces", "metadata")
        return {name: getattr(self, name) for name in names}

    def drop(self, names: Sequence[str]) -> Shapes:
        """All shapes but these, by name.

        Examples
        --------
        >>> points = np.random.default_rng(0).normal(size=(3, 5, 2))
        >>> Shapes(points, names=["a", "b", "c"]).drop(["b"]).names
        ('a', 'c')
        """
        dropped = {self.index(name) for name in names}
        return self.take([i for i in range(self.n_shapes) if i not in dropped])

    def mirror(self, names: Sequence[str]) -> Shapes:
        """The same shapes, these ones (by name) mirrored: their first coordinate negated.

        Examples
        --------
        >>> shapes = Shapes.specimens([[[1.0, 2.0]], [[3.0, 4.0]]], names=["a", "b"])
        >>> shapes.mirror(["b"])["b"].tolist()
        [[-3.0, 4.0]]
        """
        points = np.array(self.points)
        points[[self.index(name) for name in dict.fromkeys(names)], :, 0] *= -1.0
        return self.with_points(points)

    def require_alignable(self) -> Shapes:
        """Self, if these shapes make a set that can be aligned; otherwise a ShapeError."""
        if self.n_shapes < 2:
            raise ShapeError(f"At least 2 shapes are needed to align; got {self.n_shapes}.")
        seen_by = self.visible.sum(axis=1)
        if not seen_by.all():
            empty = [self.names[i] for i in np.flatnonzero(seen_by == 0)]
            raise ShapeError(f"No landmark is seen in shape {listed(empty)}. Drop such shapes.")
        if not self.views.all():
            lost = [self.landmarks[j] for j in np.flatnonzero(self.views == 0)]
            raise ShapeError(f"Landmark {listed(lost)} is seen in no shape. Drop it.")
        return self.require_computable()

    def require_computable(self) -> Shapes:
        """Self, if fourth powers of the coordinates are still numbers; otherwise a ShapeError."""
        across = np.ascontiguousarray(self.points.mT)  # landmarks side by side: ten times as fast
        high, low = np.fmax.reduce(across, axis=-1), np.fmin.reduce(across, axis=-1)
        reach = np.fmax.reduce(np.maximum(high, -low), axis=1)
        with np.errstate(over="ignore"):
            extent = np.fmax.reduce(high - low, axis=1)
        for value, wrong, what in (
            (reach, reach > _LARGEST, "reach"),
            (extent, (extent > 0.0) & (extent < 1.0 / _LARGEST), "extend over"),
        ):
            if wrong.any():
                i = int(np.flatnonzero(wrong)[0])
                raise ShapeError(
                    f"The coordinates of shape {self.names[i]!r} {what} {value[i]:.0e}: no number "
                    f"beyond {_LARGEST:.0e} or below {1 / _LARGEST:.0e} can be computed with. "
                    "Use other units."
                )
        return self

    def _require_clean_coordinates(self) -> None:
        finite = np.isfinite(self.points)
        if finite.all():
            return
        hidden = ~finite[..., 0]
        if (finite != hidden[..., None]).all() and np.isnan(self.points[hidden]).all():
            return
        unknown = np.isnan(self.points)
        for wrong, what, remedy in (
            (
                unknown.any(axis=2) & ~unknown.all(axis=2),
                "is half missing",
                "Give all its coordinates, or NaN for all of them",
            ),
            (
                np.isinf(self.points).any(axis=2),
                "has an infinite coordinate",
                "Use NaN for a landmark that was not seen",
            ),
        ):
            if wrong.any():
                i, j = np.argwhere(wrong)[0]
                raise ShapeError(
                    f"Landmark {self.landmarks[j]!r} of shape {self.names[i]!r} {what}: "
                    f"{self.points[i, j].tolist()}. {remedy}."
                )


def _restored(fields: dict[str, Any]) -> Shapes:
    return Shapes.specimens(**fields)


ShapesLike = Shapes | ArrayLike | Sequence[ArrayLike]


def as_shapes(shapes: ShapesLike) -> Shapes:
    """Shapes as they are, or an array or list of arrays made into Shapes."""
    return shapes if isinstance(shapes, Shapes) else Shapes(shapes)


def landmark_numbers(
    members: Iterable[Any], landmarks: Sequence[str], advice: str = ""
) -> list[int]:
    """Landmarks given by number (from 0) or label as numbers; the advice ends a refusal."""
    place = {label: k for k, label in enumerate(landmarks)}
    numbers = []
    for member in members:
        if isinstance(member, str) and member not in place:
            raise ShapeError(f"There is no landmark called {member!r}.")
        number = place[member] if isinstance(member, str) else member
        if number != int(number) or not 0 <= number < len(landmarks):
            raise ShapeError(
                f"There is no landmark number {number}; they are numbered 0 to "
                f"{len(landmarks) - 1}.{advice}"
            )
        numbers.append(int(number))
    return numbers


def _stacked(points: Any) -> Array:
    """An (n, m, d) float64 copy of whatever holds the points, or a ShapeError."""
    if isinstance(points, Shapes):
        return np.array(points.points)
    if isinstance(points, (list, tuple)):
        points = _equally_long(points)
    if isinstance(points, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(points)
        data = np.array(_numbers(points.data))
        data[masked] = np.nan
    else:
        data = np.array(_numbers(points))
    if data.ndim != 3:
        raise ShapeError(
            "The points must be an array (shapes, landmarks, coordinates), or a list of arrays "
            f"(landmarks, coordinates); got {data.ndim} dimension{'s' * (data.ndim != 1)}, "
            f"size {data.shape}."
        )
    if data.shape[2] not in (2, 3):
        raise ShapeError(
            f"Landmarks must have 2 or 3 coordinates; got {data.shape[2]} "
            f"(array of size {data.shape}: shapes, landmarks, coordinates)."
        )
    if data.shape[0] == 0 or data.shape[1] == 0:
        what = "landmarks" if data.shape[0] else "shapes"
        raise ShapeError(
            f"There are no {what}: got an array of size {data.shape} "
            "(shapes, landmarks, coordinates)."
        )
    data[np.isnan(data)] = np.nan  # one NaN, so that equal shapes are equal byte for byte
    return data


def _equally_long(shapes: Sequence[Any]) -> Any:
    """A list of (m, d) arrays stacked; the first one that does not fit is named."""
    if not shapes:
        raise ShapeError("There are no shapes: got an empty list.")
    sizes = []
    for i, shape in enumerate(shapes):
        try:
            sizes.append(np.shape(shape))
        except ValueError:
            raise ShapeError(
                f"Shape number {i} is not an array (landmarks, coordinates): "
                "its rows have different lengths."
            ) from None
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            raise ShapeError(
                f"All shapes must have the same landmarks: shape number {i} has size {size}, "
                f"shape number 0 has {sizes[0]}. Put NaN where a landmark was not seen."
            )
    if any(isinstance(shape, np.ma.MaskedArray) for shape in shapes):
        return np.ma.stack(shapes)
    return shapes


def _numbers(points: Any) -> Any:
    """The points as real float64, or a ShapeError that says what they are instead."""
    array = np.asarray(points)
    if array.dtype.kind == "c":
        raise ShapeError("The points must be real numbers; got complex ones.")
    if array.dtype.kind not in "fiubO":
        raise ShapeError(
            f"The points must be numbers; got {array.dtype.name}. "
            "Use defgpa.read_shapes to read a file."
        )
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ShapeError("The points must be numbers; got something else among them.") from None


def _hide(points: Array, visible: ArrayLike | None) -> Array:
    """NaN where ``visible`` says a landmark does not count."""
    if visible is None:
        return points
    seen = np.asarray(visible)
    if seen.shape != points.shape[:2]:
        raise ShapeError(
            f"'visible' must have one entry per shape and landmark, {points.shape[:2]}; "
            f"got size {seen.shape}."
        )
    if seen.dtype.kind not in "biuf" or not np.isin(seen, (0, 1)).all():
        raise ShapeError("'visible' must hold only true or false (1 or 0).")
    points[~seen.astype(bool)] = np.nan
    return points


def numbered(prefix: str, count: int) -> tuple[str, ...]:
    """``prefix1``, ``prefix2``, …"""
    if count <= _FEW:
        return _made_before(prefix)[:count]
    return tuple([f"{prefix}{k}" for k in range(1, count + 1)])


@cache
def _made_before(prefix: str) -> tuple[str, ...]:
    return tuple([f"{prefix}{k}" for k in range(1, _FEW + 1)])


def _labels(
    given: Sequence[str] | None, count: int, word: str, owner: str, prefix: str
) -> tuple[str, ...]:
    """``count`` unique strings, the given ones or numbered ones."""
    if given is None:
        return numbered(prefix, count)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ShapeError(f"The {owner} {word}s must be a list of strings; got {given!r}.")
    labels = tuple(map(str, given))
    if len(labels) != count:
        raise ShapeError(
            f"There must be one {word} per {owner}, {count} in all; got {len(labels)}."
        )
    if len(set(labels)) != count:
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ShapeError(f"The {owner} {word}s must be unique; {twice!r} occurs more than once.")
    return labels


def _triangles(faces: ArrayLike | None, m: int) -> Index | None:
    if faces is None:
        return None
    given = np.asarray(faces)
    whole = given.dtype.kind in "iuf" and bool((given == np.rint(given)).all())
    if given.ndim != 2 or given.shape[1] != 3 or not whole:
        raise ShapeError(
            f"'faces' must be (k, 3) landmark numbers; got size {given.shape} of {given.dtype}."
        )
    array = np.array(given, dtype=np.intp)
    if array.size and not (array.min() >= 0 and array.max() < m):
        raise ShapeError(
            f"'faces' must number landmarks 0 to {m - 1}; got {array.min()} to {array.max()}."
        )
    return frozen(array)


def _surviving_faces(faces: Index | None, kept: Index, m: int) -> Index | None:
    if faces is None:
        return None
    renumbered = np.full(m, -1, dtype=np.intp)
    renumbered[kept] = np.arange(len(kept))
    moved = renumbered[faces]
    return moved[(moved >= 0).all(axis=1)]


def _fitting_metadata(metadata: Mapping[str, Any] | None, n: int) -> dict[str, Any]:
    found = dict(metadata or {})
    for key in PER_SHAPE_METADATA & found.keys():
        found[key] = tuple(found[key])
        if len(found[key]) != n:
            raise ShapeError(
                f"metadata {key!r} must have one entry per shape, {n}; got {len(found[key])}."
            )
    return found


def _is_frame(table: Any) -> bool:
    """Whether it is a DataFrame, without loading pandas to find out."""
    return type(table).__name__ == "DataFrame" and hasattr(table, "columns")
