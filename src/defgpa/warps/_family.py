r"""What the families of warps share: models, bases, the parameters they take, control points.

A model is a value: ``set_params`` gives another one, so that what was made with the first stays
what it was.

Control points lie where one puts them, or on a grid inside the principal box of a shape: on each
principal axis the interior positions k / (K + 1), k = 1 … K, of the bounding box of the visible
points. The grid does not touch the box, and turns with the shape. On a grid with its own
orthonormal axes the squared distance is a sum over the axes,

    ‖x − c_ijk‖² = (u − a_i)² + (v − b_j)² + (w − c_k)²,

so few squares make all of them. They are differences still: near a control point, where the kernel
has a logarithm or a square root, nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array, Index, Stack, frozen
from defgpa.frames import Frames, frames_of
from defgpa.warps._protocol import FactoredBasis

PointsPerAxis = int | Sequence[int]

_B = TypeVar("_B", bound=Stack)


class Family(Generic[_B]):
    """A model of a family of warps: a frozen dataclass with the manners of scikit-learn."""

    def basis(self, points: Array) -> _B:
        """The basis of one shape with visible points (p, d)."""
        return self.bases(frames_of(np.asarray(points, dtype=np.float64)))[0]

    def bases(self, frames: Frames) -> _B:
        """The bases of n shapes, stacked."""
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by its name; with ``deep`` those of its parts too: kernel__width."""
        own = {one.name: getattr(self, one.name) for one in _parameters_of(self)}
        return {**own, **dict(_inner(own))} if deep else own

    def set_params(self, **params: Any) -> Self:
        """Another model with these parameters; those of its parts as kernel__width."""
        return _replaced(self, params)

    def __repr__(self) -> str:
        """One line: the parameters that are not the default."""
        told = [
            f"{one.name}={_in_short(getattr(self, one.name))}"
            for one in _parameters_of(self)
            if not _is_default(one, getattr(self, one.name))
        ]
        return f"{type(self).__name__}({', '.join(told)})"


class BuiltInBasis(Stack):
    """The basis of one shape, or of a stack: a FactoredBasis and Recombinable, if with itself."""

    def features(self: FactoredBasis, points: Array) -> Array:
        """(…, p, l): the columns, mixed."""
        columns = self.columns(points)
        return columns if self.mixing is None else columns @ self.mixing

    def deflated(self) -> FactoredBasis | None:
        """None: no columns are known that keep more digits."""
        return None

    def in_columns(self: FactoredBasis, weights: Array) -> tuple[FactoredBasis, Array]:
        """This basis and its weights."""
        return self, weights

    def unmixed(self: FactoredBasis) -> FactoredBasis:
        """This basis, whose columns are its features."""
        return self


def own_units(points: Array, centre: Array, scale: Array) -> Array:
    """(…, p, d): x̂ = (x − centre) / scale, the centroid (…, d) and RMS radius (…,) of a shape."""
    return (points - centre[..., None, :]) / scale[..., None, None]


def _parameters_of(value: Any) -> tuple[Field[Any], ...]:
    return fields(value) if is_dataclass(value) and not isinstance(value, type) else ()


def _inner(own: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parameters of the parts, and of their parts."""
    for name, part in own.items():
        inner = {one.name: getattr(part, one.name) for one in _parameters_of(part)}
        yield from ((f"{name}__{key}", value) for key, value in (*inner.items(), *_inner(inner)))


def _replaced(value: Any, params: dict[str, Any]) -> Any:
    """A value with other parameters, the parameters of its parts first."""
    known = [one.name for one in _parameters_of(value)]
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for name, new in params.items():
        part, within, key = name.partition("__")
        if part not in known:
            raise ValueError(
                f"{type(value).__name__} has no parameter {part!r}. Those it has: "
                f"{', '.join(known) or 'none'}."
            )
        if within:
            inner.setdefault(part, {})[key] = new
        else:
            own[part] = new
    for part, wanted in inner.items():
        own[part] = _replaced(own.get(part, getattr(value, part)), wanted)
    return replace(value, **own)


def _is_default(parameter: Field[Any], value: Any) -> bool:
    if parameter.default_factory is not MISSING:
        return bool(value == parameter.default_factory())
    return type(value) is type(parameter.default) and bool(value == parameter.default)


def _in_short(value: Any) -> str:
    if isinstance(value, np.ndarray) or (isinstance(value, list) and np.ndim(value) > 1):
        return f"<{' × '.join(str(size) for size in np.shape(value))} array>"
    return getattr(value, "__name__", None) or repr(value)


def require_number(
    value: Any, name: str, owner: str, kind: str, allowed: Callable[[float], bool]
) -> None:
    """A ValueError in one sentence unless ``value`` is a number that is ``allowed``."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not allowed(float(value)):
        raise ValueError(
            f"The '{name}' parameter of {owner} must be {kind}. Got {value!r} instead."
        )


def require_not_negative(value: Any, name: str, owner: str) -> None:
    """A ValueError unless ``value`` is a finite number of at least zero."""
    kind = "a number of at least 0"
    require_number(value, name, owner, kind, lambda number: 0.0 <= number < np.inf)


def require_positive(value: Any, name: str, owner: str) -> None:
    """A ValueError unless ``value`` is a finite number above zero."""
    require_number(value, name, owner, "a positive number", lambda number: 0.0 < number < np.inf)


def require_degree(value: Any, name: str, owner: str, least: int, most: int) -> None:
    """A ValueError unless ``value`` is a whole number from ``least`` to ``most``."""
    kind = f"a whole number from {least} to {most}"
    require_number(
        value, name, owner, kind, lambda number: number == int(number) and least <= number <= most
    )


def given_points(
    given: ArrayLike | Callable[[Array], ArrayLike], frames: Frames, name: str, owner: str
) -> Array:
    """(n, k, d): points given once for all shapes, or made from the visible points of each."""
    n, _, d = frames.points.shape
    if not callable(given):
        points = _finite_points(given, d, name, owner)
        return np.broadcast_to(points, (n, *points.shape))
    made = [
        _finite_points(given(points[seen]), d, name, owner)
        for points, seen in zip(frames.points, frames.visible, strict=True)
    ]
    counts = {len(points) for points in made}
    if len(counts) > 1:
        raise ValueError(
            f"The '{name}' function of {owner} must make equally many points for every shape. "
            f"Got between {min(counts)} and {max(counts)} of them."
        )
    return np.stack(made)


def _finite_points(given: ArrayLike, dim: int, name: str, owner: str) -> Array:
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != dim or not len(array) or not np.isfinite(array).all():
        raise ValueError(
            f"The '{name}' parameter of {owner} must be finite points (k, {dim}). "
            f"Got an array of size {array.shape} instead."
        )
    return array


def per_axis_counts(points_per_axis: PointsPerAxis, dim: int, owner: str) -> tuple[int, ...]:
    """One count per axis; the longest principal axis first."""
    given = np.asarray(points_per_axis)
    counts = np.tile(given, dim) if given.ndim == 0 else given
    # fewer than two layers lie in a plane, and control points must span the space
    if counts.shape != (dim,) or counts.dtype.kind not in "iu" or counts.min() < 2:
        raise ValueError(
            f"The 'points_per_axis' parameter of {owner} must be a whole number of at least 2, or "
            f"one per axis ({dim} of them). Got {points_per_axis!r} instead."
        )
    return tuple(int(count) for count in counts)


@lru_cache(maxsize=8)
def places(counts: tuple[int, ...]) -> Index:
    """(Π counts, d): where each point of a grid is along each axis; the last changes fastest."""
    return frozen(np.stack(np.unravel_index(np.arange(np.prod(counts)), counts), axis=-1))


@dataclass(frozen=True, eq=False)
class Grid(Stack):
    """The control points of one shape, or of a stack of them, in the shapes' own units."""

    counts: tuple[int, ...]  # points along each axis
    axes: Array  # (…, d, d): columns
    first: Array  # (…, d): the first point, along the axes
    step: Array  # (…, d): from one to the next

    @property
    def points(self) -> Array:
        """(…, k, d): all of them, the last axis changing fastest."""
        along = self.first[..., None, :] + places(self.counts) * self.step[..., None, :]
        return along @ self.axes.mT

    def fill_squared_distances(self, points: Array, out: Array) -> None:
        """‖x − c‖² of points (…, d, p), as (…, k, p): the points side by side in memory."""
        *others, last = self._squares(self.axes.mT @ points)
        for own in others[:0:-1]:
            last = (own[..., :, None, :] + last[..., None, :, :]).reshape(
                *own.shape[:-2], -1, own.shape[-1]
            )
        split = out.reshape(*out.shape[:-2], self.counts[0], -1, out.shape[-1])
        np.add(others[0][..., :, None, :], last[..., None, :, :], out=split)

    def _squares(self, along: Array) -> list[Array]:
        """(…, K, p) for each axis: (u − a_i)² of the points (…, d, p) along the axes."""
        # all axes at once up to the longest: few calls, each of which other threads may wait for
        place = np.arange(max(self.counts))
        ticks = self.first[..., None] + place * self.step[..., None]
        difference = along[..., None, :] - ticks[..., None]
        np.square(difference, out=difference)
        return [difference[..., axis, :count, :] for axis, count in enumerate(self.counts)]


def principal_grid(frames: Frames, counts: tuple[int, ...]) -> Grid:
    """Inside the principal box of every shape, not touching it: at k / (K + 1), k = 1 … K."""
    low, high = frames.box
    size = frames.size[:, None]
    step = (high - low) / (np.array(counts) + 1)
    return Grid(counts, frames.axes, (low + step) / size, step / size)
