"""Shapes: the landmarks of many specimens, with weights, names and metadata.

A missing landmark is a row of NaN and has weight 0; a landmark of weight 0 is missing. This is the
only place that validates points and weights: the rest of the package trusts them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from defgpa.arrays import Array, Index, Mask, freeze
from defgpa.dataframes import make_data_array, make_data_frame, read_data_frame
from defgpa.errors import ShapeError, format_names
from defgpa.formatting import render_table
from defgpa.geometry import Geometry, measure_geometry

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

PER_SHAPE_METADATA = frozenset({"images", "groups", "scales", "comments", "sources", "variables"})

Metadata = Mapping[str, Any]  # what files and users add to shapes, of any type

_MAX_COORDINATE = 1e60  # its fourth power, and that of its inverse, are finite
_MAX_CACHED_LABELS = 1000
_MAX_HTML_ROWS = 20  # shapes that a notebook lists


class _Fields(TypedDict, total=False):
    """The arguments that make shapes."""

    points: ArrayLike
    weights: ArrayLike | None
    names: Sequence[str]
    landmarks: Sequence[str]
    faces: ArrayLike | None
    metadata: Metadata


class Shapes:
    """Hold m landmarks of each of n shapes in d dimensions, with names; immutable.

    Parameters
    ----------
    points : array (n, m, d), masked array, sequence of n arrays (m, d), or DataFrame (n, m·d)
        Coordinates, d = 2 or 3. A landmark missing in a shape is NaN in all coordinates.
        The columns of a DataFrame are ``x1, y1, x2, …`` or ``apex_x, apex_y, …``.
    weights : array (n, m), optional
        How much each landmark counts: not negative, 1 for all by default. Only their ratios
        matter. A landmark of weight 0 is missing; its coordinates are ignored.
    visible : array (n, m) of bool, optional
        Which landmarks to use; the coordinates of the others are ignored, they are missing.
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
    Shapes(3 shapes, 5 landmarks, 2-D, 1 of 15 missing)
    >>> shapes.visible[1].tolist()
    [True, True, True, True, False]
    >>> shapes.weights[1].tolist()
    [1.0, 1.0, 1.0, 1.0, 0.0]
    """

    points: Array
    n_shapes: int  # n
    n_landmarks: int  # m
    n_dims: int  # d: 2 or 3
    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    faces: Index | None
    metadata: Metadata
    _weights: Array | None

    def __init__(
        self,
        points: ArrayLike | Sequence[ArrayLike],
        *,
        weights: ArrayLike | None = None,
        visible: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        landmarks: Sequence[str] | None = None,
        faces: ArrayLike | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        self._store(points, weights, visible, names, landmarks, faces, metadata)
        self.require_alignable()

    @classmethod
    def specimens(
        cls,
        points: ArrayLike | Sequence[ArrayLike],
        *,
        weights: ArrayLike | None = None,
        visible: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        landmarks: Sequence[str] | None = None,
        faces: ArrayLike | None = None,
        metadata: Metadata | None = None,
    ) -> Shapes:
        """Make shapes as the constructor does, without asking that they can be aligned.

        One shape is enough, a shape may be all missing, and a landmark may be missing in all:
        what a single file holds, or new specimens to be registered. ``fit`` checks the rest.

        Examples
        --------
        >>> Shapes.specimens([[[0.0, 0.0], [1.0, 0.0], [float("nan")] * 2]])
        Shapes(1 shape, 3 landmarks, 2-D, 1 of 3 missing)
        """
        self = cls.__new__(cls)
        self._store(points, weights, visible, names, landmarks, faces, metadata)
        return self

    def _store(
        self,
        points: object,
        weights: ArrayLike | None,
        visible: ArrayLike | None,
        names: Sequence[str] | None,
        landmarks: Sequence[str] | None,
        faces: ArrayLike | None,
        metadata: Metadata | None,
    ) -> None:
        """Validate the arguments of the constructor and set the attributes."""
        if type(points).__name__ == "DataFrame" and hasattr(points, "columns"):  # of pandas
            points, row_names, column_labels = read_data_frame(points)
            names, landmarks = names or row_names, landmarks or column_labels
        if isinstance(points, Shapes) and weights is None:
            weights = points._weights
        coordinates = _convert_points(points)
        _hide_landmarks(coordinates, visible)
        n, m, d = coordinates.shape
        attributes = vars(self)  # since __setattr__ refuses
        attributes.update(n_shapes=n, n_landmarks=m, n_dims=d)
        attributes["names"] = _check_labels(names, n, "name", "shape", "shape_")
        attributes["landmarks"] = _check_labels(landmarks, m, "label", "landmark", "")
        attributes["_weights"] = self._convert_weights(weights, coordinates)
        attributes["points"] = freeze(coordinates)
        self._check_coordinates()
        attributes["faces"] = _check_faces(faces, m)
        attributes["metadata"] = MappingProxyType(_check_metadata(metadata, n))

    def _convert_weights(self, weights: ArrayLike | None, points: Array) -> Array | None:
        """Return (n, m) weights, 0 where points are NaN; write NaN to points of weight 0.

        Raises
        ------
        ShapeError
            If the weights have another size, or one of a landmark with coordinates is negative or
            not finite.
        """
        if weights is None:
            return None
        try:
            values, size = _convert_numbers(weights, "weights"), points.shape[:2]
        except ValueError:  # numpy has its own about rows of unequal length
            raise ShapeError(self._explain_weights(weights)) from None
        if values.shape != size:
            remedy = " Transpose them." if values.shape == size[::-1] else ""
            raise ShapeError(
                f"'weights' must have one number per shape and landmark, {size}; "
                f"got size {values.shape}.{remedy}"
            )
        values[np.isnan(points).all(axis=2)] = 0.0
        is_bad = ~np.isfinite(values) | (values < 0.0)
        if is_bad.any():
            i, j = np.argwhere(is_bad)[0]
            raise ShapeError(
                f"The weight of landmark {self.landmarks[j]!r} of shape {self.names[i]!r} is "
                f"{values[i, j]:g}; weights must be 0 or positive, and finite. Use 0 for a "
                "landmark that should not count."
            )
        points[values == 0.0] = np.nan
        return freeze(values)

    def _explain_weights(self, weights: ArrayLike) -> str:
        """Explain which weight is no number, or which shape has a wrong count of them."""
        table, size = np.asarray(weights, dtype=object), (self.n_shapes, self.n_landmarks)
        problem = f"got {weights!r:.40}"
        if table.shape == size:
            i, j = next(at for at, value in np.ndenumerate(table) if not isinstance(value, Real))
            problem = f"landmark {self.landmarks[j]!r} of shape {self.names[i]!r} has "
            problem += f"{table[i, j]!r:.40}. Use 0 for a landmark that should not count"
        elif table.shape == size[:1]:
            counts = [np.size(row) for row in table]
            i = next((i for i, count in enumerate(counts) if count != self.n_landmarks), 0)
            problem = f"shape {self.names[i]!r} has {counts[i]}"
        return f"'weights' must have one number per shape and landmark, {size}; {problem}."

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Shapes do not change; '{name}' cannot be set. Make new Shapes.")

    @cached_property
    def visible(self) -> Mask:
        """(n, m): where a landmark has coordinates and a positive weight."""
        return freeze(~np.isnan(self.points[..., 0]))

    @property
    def has_weights(self) -> bool:
        """Whether weights were given."""
        return self._weights is not None

    @cached_property
    def weights(self) -> Array:
        """(n, m): the weight of each landmark in each shape, as given; 0 where it is missing.

        Without given weights, 1 where the landmark is visible.
        """
        return freeze(self.visible.astype(np.float64)) if self._weights is None else self._weights

    @cached_property
    def relative_weights(self) -> Array:
        """(n, m): the weights divided by the mean of the positive ones.

        A common factor of all weights has no effect on them, and where all landmarks count the same
        they are exactly 1, as without weights.

        Examples
        --------
        >>> points = np.random.default_rng(0).normal(size=(2, 3, 2))
        >>> Shapes(points, weights=[[1, 1, 2], [0, 2, 4]]).relative_weights.tolist()
        [[0.5, 0.5, 1.0], [0.0, 1.0, 2.0]]
        """
        positive = self.weights[self.visible]
        if not len(positive) or positive.min() == positive.max():
            return freeze(self.visible.astype(np.float64))
        scaled = self.weights / positive.max()  # the sum of large weights could overflow
        return freeze(scaled / scaled[self.visible].mean())

    @cached_property
    def unequal_weights(self) -> Array | None:
        """(n, m): the relative weights, or None where all visible landmarks count the same."""
        if self._weights is None or (self.relative_weights[self.visible] == 1.0).all():
            return None
        return self.relative_weights

    @cached_property
    def geometry(self) -> Geometry:
        """The centroids, sizes and principal axes of the shapes, by their landmark weights."""
        weights = None if self._weights is None else self.relative_weights
        return measure_geometry(self.points, self.visible, weights)

    @cached_property
    def views(self) -> Index:
        """(m,): in how many shapes each landmark is visible."""
        return freeze(self.visible.sum(axis=0))

    @property
    def links(self) -> list[tuple[int, int]]:
        """The links in the metadata as pairs of landmark numbers.

        Chains of landmarks become pairs of neighbours. Numbers that are no landmarks are left out:
        links come from files, and a figure without a line is better than none.

        Examples
        --------
        >>> points = np.random.default_rng(0).normal(size=(2, 5, 2))
        >>> Shapes(points, metadata={"links": [(0, 1, 4), (2, 9)]}).links
        [(0, 1), (1, 4)]
        """
        links, kinds = self.metadata.get("links"), (tuple, list, np.ndarray)
        chains = (
            [link for link in links if isinstance(link, kinds)] if isinstance(links, kinds) else ()
        )
        pairs = [(a, b) for chain in chains for a, b in pairwise(chain)]
        return [(int(a), int(b)) for a, b in pairs if self._is_landmark(a) and self._is_landmark(b)]

    def _is_landmark(self, number: object) -> bool:
        return isinstance(number, (int, np.integer)) and 0 <= int(number) < self.n_landmarks

    def __len__(self) -> int:
        return self.n_shapes

    @overload
    def __getitem__(self, shape: int | str) -> Array: ...

    @overload
    def __getitem__(self, shape: slice | Sequence[int] | list[str] | Index | Mask) -> Shapes: ...

    def __getitem__(
        self, shape: int | str | slice | Sequence[int] | list[str] | Index | Mask
    ) -> Array | Shapes:
        """Return the (m, d) points of a shape, by number or name, or Shapes: ``shapes[0:5]``."""
        if isinstance(shape, (int, str, np.integer)):
            return self.points[self.index(shape)]
        return self.take(np.arange(self.n_shapes)[shape] if isinstance(shape, slice) else shape)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.points)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shapes):
            return NotImplemented
        return (
            self.names == other.names
            and self.landmarks == other.landmarks
            and np.array_equal(self.points, other.points, equal_nan=True)
            and np.array_equal(self.weights, other.weights)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle the fields, so that neither depends on how they are stored."""
        return _restore, (self._fields() | {"metadata": dict(self.metadata)},)

    def __repr__(self) -> str:
        n, m, d = self.points.shape
        n_missing = n * m - int(self.visible.sum())
        counts = f"{n} shape{'s' * (n != 1)}, {m} landmark{'s' * (m != 1)}, {d}-D"
        missing = f"{n_missing} of {n * m} missing" if n_missing else "none missing"
        return f"Shapes({counts}, {missing}{', weighted' * self.has_weights})"

    def _repr_html_(self) -> str:
        n_visible = self.visible.sum(axis=1)
        rows = [
            (name, f"{count} of {self.n_landmarks}")
            for name, count in zip(self.names[:_MAX_HTML_ROWS], n_visible, strict=False)
        ]
        if self.n_shapes > _MAX_HTML_ROWS:
            rows.append((f"and {self.n_shapes - _MAX_HTML_ROWS} more", ""))
        return render_table(repr(self), rows, ("name", "visible landmarks"))

    def index(self, shape: int | str) -> int:
        """Return the number of a shape given by number or name."""
        return find_numbers([shape], self.names, "shape")[0]

    def take(self, shapes: Sequence[int | str] | Index | Mask) -> Shapes:
        """Return only these shapes, by number, name or mask, in this order."""
        numbers = find_numbers(shapes, self.names, "shape")
        metadata = {
            key: tuple(value[i] for i in numbers) if key in PER_SHAPE_METADATA else value
            for key, value in self.metadata.items()
        }
        names = [self.names[i] for i in numbers]
        return self._derive(
            points=self.points[numbers],
            _weights=None if self._weights is None else self._weights[numbers],
            names=_check_labels(names, len(names), "name", "shape", ""),  # of a shape taken twice
            metadata=MappingProxyType(metadata),
        )

    def without(self, landmarks: Sequence[int | str] | Index | Mask) -> Shapes:
        """Leave out landmarks, by number, label or mask, and the faces that use them.

        Examples
        --------
        >>> points = [[[0, 0], [1, 0], [0, 2]], [[0, 0], [1, 0], [0, 3]]]
        >>> shapes = Shapes(points, landmarks=["root", "tip", "edge"])
        >>> shapes.without(["tip"]).landmarks
        ('root', 'edge')
        """
        numbers = find_numbers(landmarks, self.landmarks, "landmark")
        remaining = np.delete(np.arange(self.n_landmarks), numbers)
        faces = self.faces
        if faces is not None:
            new_number = np.full(self.n_landmarks, -1, dtype=np.intp)
            new_number[remaining] = np.arange(len(remaining))
            faces = new_number[faces]
            faces = faces[(faces >= 0).all(axis=1)]
        return self._derive(
            points=self.points.take(remaining, axis=1),
            _weights=None if self._weights is None else self._weights.take(remaining, axis=1),
            landmarks=tuple([self.landmarks[j] for j in remaining]),
            faces=faces,
        )

    def with_points(self, points: ArrayLike) -> Shapes:
        """Replace the coordinates; names, labels, weights and metadata stay.

        A landmark that was missing and has coordinates now gets the mean of the positive weights.
        """
        if self._weights is None:
            return self._replace(points=points)
        mean = float(self._weights[self.visible].mean()) if self.visible.any() else 1.0
        return self._replace(points=points, weights=np.where(self.visible, self._weights, mean))

    def with_weights(self, weights: ArrayLike | None) -> Shapes:
        """Replace the weights, (n, m); None means that all visible landmarks count the same."""
        return self._replace(weights=weights)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas.DataFrame, a row per shape and a column per coordinate: x1, y1, x2, …"""
        return make_data_frame(self.points, self.names, self.landmarks)

    def to_xarray(self) -> xr.DataArray:
        """Return an xarray.DataArray with dimensions specimen, landmark and space."""
        return make_data_array(self.points, self.names, self.landmarks)

    def with_metadata(self, **metadata: object) -> Shapes:
        """Add metadata to that of the shapes, or replace it; remove the keys given as None."""
        merged = {**self.metadata, **metadata}
        present = {key: value for key, value in merged.items() if value is not None}
        return self._derive(metadata=MappingProxyType(_check_metadata(present, self.n_shapes)))

    def _replace(self, **fields: Unpack[_Fields]) -> Shapes:
        """Return the same shapes but for these fields, checked as by the constructor."""
        return Shapes.specimens(**(self._fields() | fields))

    def _derive(self, **attributes: object) -> Shapes:
        """Return the same shapes but for these attributes, which are valid and trusted."""
        shapes = object.__new__(Shapes)
        for name in Shapes.__annotations__:
            value = attributes.get(name, vars(self)[name])
            vars(shapes)[name] = freeze(value) if isinstance(value, np.ndarray) else value
        _require_points(shapes.points)
        n, m, d = shapes.points.shape
        vars(shapes).update(n_shapes=n, n_landmarks=m, n_dims=d)
        return shapes

    def _fields(self) -> _Fields:
        """Return the arguments that make these shapes again."""
        return {
            "points": self.points,
            "weights": self._weights,
            "names": self.names,
            "landmarks": self.landmarks,
            "faces": self.faces,
            "metadata": self.metadata,
        }

    def drop(self, names: Sequence[str]) -> Shapes:
        """Leave out shapes, by name or number.

        Examples
        --------
        >>> points = np.random.default_rng(0).normal(size=(3, 5, 2))
        >>> Shapes(points, names=["a", "b", "c"]).drop(["b"]).names
        ('a', 'c')
        """
        dropped = set(find_numbers(names, self.names, "shape"))
        return self.take([i for i in range(self.n_shapes) if i not in dropped])

    def mirror(self, names: Sequence[str]) -> Shapes:
        """Mirror shapes, by name or number: negate their first coordinate.

        Examples
        --------
        >>> shapes = Shapes.specimens([[[1.0, 2.0]], [[3.0, 4.0]]], names=["a", "b"])
        >>> shapes.mirror(["b"])["b"].tolist()
        [[-3.0, 4.0]]
        """
        points = np.array(self.points)
        mirrored = list(set(find_numbers(names, self.names, "shape")))
        points[mirrored, :, 0] *= -1.0
        return self.with_points(points)

    def require_alignable(self) -> Shapes:
        """Return self if these shapes make a set that can be aligned; raise a ShapeError if not."""
        if "_is_alignable" in vars(self):  # shapes do not change
            return self
        if self.n_shapes < 2:
            raise ShapeError(f"At least 2 shapes are needed to align; got {self.n_shapes}.")
        or_zero_weight = "" if self._weights is None else " or have weight 0"
        is_empty = ~self.visible.any(axis=1)
        if is_empty.any():
            names = format_names(self.names[i] for i in np.flatnonzero(is_empty))
            raise ShapeError(
                f"All landmarks of shape {names} are missing{or_zero_weight}. Drop such shapes."
            )
        if not self.views.all():
            labels = format_names(self.landmarks[j] for j in np.flatnonzero(self.views == 0))
            or_zero_weight = or_zero_weight.replace("have", "has")
            raise ShapeError(
                f"Landmark {labels} is missing{or_zero_weight} in all shapes. Drop such landmarks."
            )
        self.require_computable()
        vars(self)["_is_alignable"] = True
        return self

    def require_computable(self) -> Shapes:
        """Return self if fourth powers of the coordinates are finite; raise a ShapeError if not."""
        # ten times as fast with the landmarks of a coordinate side by side in memory
        by_coordinate = np.ascontiguousarray(self.points.mT)
        highest = np.fmax.reduce(by_coordinate, axis=-1)
        lowest = np.fmin.reduce(by_coordinate, axis=-1)
        reach = np.fmax.reduce(np.maximum(highest, -lowest), axis=1)
        with np.errstate(over="ignore"):
            extent = np.fmax.reduce(highest - lowest, axis=1)
        for values, is_bad, verb in (
            (reach, reach > _MAX_COORDINATE, "reach"),
            (extent, (extent > 0.0) & (extent < 1.0 / _MAX_COORDINATE), "extend over"),
        ):
            if is_bad.any():
                i = int(np.flatnonzero(is_bad)[0])
                raise ShapeError(
                    f"The coordinates of shape {self.names[i]!r} {verb} {values[i]:.0e}: no number "
                    f"beyond {_MAX_COORDINATE:.0e} or below {1 / _MAX_COORDINATE:.0e} can be "
                    "computed with. Use other units."
                )
        return self

    def _check_coordinates(self) -> None:
        """Raise a ShapeError if a landmark is missing in some coordinates only, or infinite."""
        is_nan = np.isnan(self.points)
        is_whole = (is_nan[..., 1:] == is_nan[..., :1]).all()  # ten times as fast as along an axis
        if is_whole and (is_nan | np.isfinite(self.points)).all():
            return
        is_missing = is_nan.all(axis=2)
        for is_bad, problem, remedy in (
            (
                is_nan.any(axis=2) & ~is_missing,
                "is half missing",
                "Give all its coordinates, or NaN for all of them",
            ),
            (
                np.isinf(self.points).any(axis=2),
                "has an infinite coordinate",
                "Use NaN for a missing landmark",
            ),
        ):
            if is_bad.any():
                i, j = np.argwhere(is_bad)[0]
                raise ShapeError(
                    f"Landmark {self.landmarks[j]!r} of shape {self.names[i]!r} {problem}: "
                    f"{self.points[i, j].tolist()}. {remedy}."
                )


def find_numbers(
    wanted: Any, names: Sequence[str], what: str, *, counts_back: bool = True, advice: str = ""
) -> list[int]:
    """Return the numbers of shapes or landmarks given by number from 0, by name, or by a mask.

    Parameters
    ----------
    wanted : iterable of int or str, or of len(names) bool
    names : sequence of str
        Of all shapes, or landmarks.
    what : str
        What they are: "shape" or "landmark".
    counts_back : bool
        Whether -1 is the last one.
    advice : str
        Ends the message about a number that nothing has.

    Raises
    ------
    ShapeError
        For what is none of these, with the names that are nearest.
    """
    if isinstance(wanted, str) or not np.iterable(wanted):
        raise ShapeError(
            f"Give a list of {what}s, by number from 0 or by name. Got {wanted!r:.60} instead."
        )
    members, count = list(wanted), len(names)
    if members and all(isinstance(member, (bool, np.bool_)) for member in members):
        if len(members) != count:
            raise ShapeError(f"A mask has one entry per {what}, {count}; got {len(members)}.")
        return [k for k, member in enumerate(members) if member]
    places = {name: k for k, name in enumerate(names)}
    numbers: list[int] = []
    for member in members:
        if isinstance(member, str) and member in places:
            numbers.append(places[member])
        elif isinstance(member, str):
            near = difflib.get_close_matches(member[:100], names, n=3, cutoff=0.4)
            raise ShapeError(
                f"There is no {what} called {member!r:.60}. "
                f"{'The nearest are' if near else 'There are'}: {format_names(near or names)}."
            )
        elif (
            isinstance(member, bool)
            or not isinstance(member, (int, float, np.integer))
            or member % 1
        ):
            raise ShapeError(
                f"The {what}s must be numbers from 0, or names. Got {member!r:.60} among them."
            )
        elif not (-count if counts_back else 0) <= member < count:
            raise ShapeError(
                f"There is no {what} number {member!s:.20}; they are numbered 0 to {count - 1}."
                f"{advice}"
            )
        else:
            numbers.append(int(member) % count)
    return numbers


def _restore(fields: _Fields) -> Shapes:
    return Shapes.specimens(**fields)


ShapesLike = Shapes | ArrayLike | Sequence[ArrayLike]


def as_shapes(shapes: ShapesLike) -> Shapes:
    """Return Shapes that can be aligned: those given, or made of an array or a list of arrays."""
    return shapes.require_alignable() if isinstance(shapes, Shapes) else Shapes(shapes)


def as_specimens(shapes: ShapesLike) -> Shapes:
    """Return Shapes as they are, or make Shapes of specimens, which need not be alignable."""
    return shapes if isinstance(shapes, Shapes) else Shapes.specimens(shapes)


def _convert_points(points: object) -> Array:
    """Return a float64 copy (n, m, d) of the points, or raise a ShapeError."""
    if isinstance(points, Shapes):
        return np.array(points.points, order="C")
    if isinstance(points, (list, tuple)):
        points = _check_equal_sizes(points)
    if isinstance(points, np.ma.MaskedArray):
        data = _convert_numbers(points.data, "points")
        data[np.ma.getmaskarray(points)] = np.nan
    else:
        data = _convert_numbers(points, "points")
    if data.ndim != 3:
        raise ShapeError(
            "The points must be an array (shapes, landmarks, coordinates), or a list of arrays "
            f"(landmarks, coordinates); got {data.ndim} dimension{'s' * (data.ndim != 1)}, "
            f"size {data.shape}."
        )
    if data.shape[2] not in (2, 3):
        hint = ""
        if data.shape[1] in (2, 3):
            hint = (
                " An array of R (landmarks, coordinates, specimens) is read after "
                "points.transpose(2, 0, 1)."
            )
        raise ShapeError(
            f"Landmarks must have 2 or 3 coordinates; got {data.shape[2]} "
            f"(array of size {data.shape}: shapes, landmarks, coordinates).{hint}"
        )
    _require_points(data)
    data[np.isnan(data)] = np.nan  # one NaN, so that equal shapes are equal byte for byte
    return data


def _require_points(points: Array) -> None:
    """Raise a ShapeError if points (n, m, d) hold no shapes or no landmarks."""
    if not points.size:
        culprit = "landmarks" if len(points) else "shapes"
        raise ShapeError(
            f"There are no {culprit}: got an array of size {points.shape} "
            "(shapes, landmarks, coordinates)."
        )


def _check_equal_sizes(shapes: Sequence[ArrayLike]) -> ArrayLike | Sequence[ArrayLike]:
    """Return a list of (m, d) arrays; raise a ShapeError that names the first of another size."""
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
                f"shape number 0 has {sizes[0]}. Put NaN where a landmark is missing."
            )
    if any(isinstance(shape, np.ma.MaskedArray) for shape in shapes):
        return np.ma.stack(shapes)
    return shapes


def _convert_numbers(values: object, word: str) -> Array:
    """Return a float64 copy; raise a ShapeError if the values are no real numbers."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise ShapeError(f"The {word} must be real numbers; got complex ones.")
    if array.dtype.kind not in "fiubO":
        advice = " Use defgpa.read_shapes to read a file." if word == "points" else ""
        raise ShapeError(f"The {word} must be numbers; got {array.dtype.name}.{advice}")
    try:
        return array.astype(np.float64, order="C")  # sums depend on the order in memory
    except (TypeError, ValueError):
        raise ShapeError(f"The {word} must be numbers; got something else among them.") from None


def _convert_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array of any type; raise a ShapeError if its rows differ in length."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ShapeError(f"'{name}' must be an array; its rows have different lengths.") from None


def _hide_landmarks(points: Array, visible: ArrayLike | None) -> None:
    """Write NaN to the points (n, m, d) where ``visible`` (n, m) is false."""
    if visible is None:
        return
    mask = _convert_array(visible, "visible")
    if mask.shape != points.shape[:2]:
        raise ShapeError(
            f"'visible' must have one entry per shape and landmark, {points.shape[:2]}; "
            f"got size {mask.shape}."
        )
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        raise ShapeError("'visible' must hold only true or false (1 or 0).")
    points[~mask.astype(bool)] = np.nan


def number_labels(prefix: str, count: int) -> tuple[str, ...]:
    """Return ``prefix1``, ``prefix2``, …"""
    if count <= _MAX_CACHED_LABELS:
        return _make_labels_once(prefix, count)
    return tuple([f"{prefix}{k}" for k in range(1, count + 1)])


@lru_cache(maxsize=256)  # specimens have the same landmarks and curves; a file may have many curves
def _make_labels_once(prefix: str, count: int) -> tuple[str, ...]:
    return tuple([f"{prefix}{k}" for k in range(1, count + 1)])


def _check_labels(
    labels: Sequence[str] | None, count: int, word: str, owner: str, prefix: str
) -> tuple[str, ...]:
    """Return ``count`` unique labels, or numbered ones if none are given."""
    if labels is None:
        return number_labels(prefix, count)
    if isinstance(labels, str) or not np.iterable(labels):
        raise ShapeError(f"The {owner} {word}s must be a list of strings; got {labels!r}.")
    labels = tuple(map(str, labels))
    if len(labels) != count:
        raise ShapeError(
            f"There must be one {word} per {owner}, {count} in all; got {len(labels)}."
        )
    if len(set(labels)) != count:
        duplicate = next(label for label in labels if labels.count(label) > 1)
        raise ShapeError(
            f"The {owner} {word}s must be unique; {duplicate!r} occurs more than once."
        )
    return labels


def _check_faces(faces: ArrayLike | None, n_landmarks: int) -> Index | None:
    """Return (k, 3) triangles of landmark numbers, or raise a ShapeError."""
    if faces is None:
        return None
    numbers = _convert_array(faces, "faces")
    is_whole = numbers.dtype.kind in "iuf" and bool((numbers == np.rint(numbers)).all())
    if numbers.ndim != 2 or numbers.shape[1] != 3 or not is_whole:
        raise ShapeError(
            f"'faces' must be (k, 3) landmark numbers; got size {numbers.shape} of {numbers.dtype}."
        )
    triangles = np.array(numbers, dtype=np.intp)
    if triangles.size and not (triangles.min() >= 0 and triangles.max() < n_landmarks):
        raise ShapeError(
            f"'faces' must number landmarks 0 to {n_landmarks - 1}; "
            f"got {triangles.min()} to {triangles.max()}."
        )
    return freeze(triangles)


def _check_metadata(metadata: Metadata | None, n_shapes: int) -> dict[str, Any]:
    """Return a copy with tuples as values per shape; raise a ShapeError if their number is off."""
    if not isinstance(metadata, Mapping | None):
        raise ShapeError(f"'metadata' must be a mapping of names to values; got {metadata!r:.60}.")
    checked = dict(metadata or {})
    for key in PER_SHAPE_METADATA & checked.keys():
        values = tuple(checked[key]) if np.iterable(checked[key]) else None
        if values is None or len(values) != n_shapes:
            got = f"{checked[key]!r:.60}" if values is None else len(values)
            raise ShapeError(
                f"metadata {key!r} must have one entry per shape, {n_shapes}; got {got}."
            )
        checked[key] = values
    return checked
