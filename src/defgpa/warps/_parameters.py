"""The parameters of a family of warps: told, replaced, printed, and the checks all families make.

A model is a value: ``set_params`` gives another one, so that what was made with the first stays
what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array
from defgpa.frames import Frames


class Parameters:
    """The manners of scikit-learn for a frozen dataclass."""

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
