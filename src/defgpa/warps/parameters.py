"""The parameters of a warp model: reading, replacing, showing and checking them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any

import numpy as np

DEFAULT_SMOOTHING = 1e-3  # where a warp model states neither a smoothing nor a theta


def get_parameters(model: object, deep: bool = True) -> dict[str, object]:
    """Return the parameters of a dataclass by name; with ``deep`` also ``kernel__width``."""
    values = {field.name: getattr(model, field.name) for field in _get_fields(model)}
    if not deep:
        return values
    nested = {
        f"{name}__{key}": inner
        for name, value in values.items()
        for key, inner in get_parameters(value).items()
    }
    return values | nested


def replace_parameters(model: Any, parameters: dict[str, object]) -> Any:
    """Return a copy of a dataclass with other parameters, nested ones as ``kernel__width``."""
    names = [field.name for field in _get_fields(model)]
    changes: dict[str, object] = {}
    nested: dict[str, dict[str, object]] = {}
    for parameter, value in parameters.items():
        name, is_nested, key = parameter.partition("__")
        if name not in names:
            raise ValueError(
                f"{type(model).__name__} has no parameter {name!r}. Those it has: "
                f"{', '.join(names) or 'none'}."
            )
        if is_nested:
            nested.setdefault(name, {})[key] = value
        else:
            changes[name] = value
    for name, inner in nested.items():
        changes[name] = replace_parameters(changes.get(name, getattr(model, name)), inner)
    return replace(model, **changes)


def stiffen(model: Any, factor: float) -> Any:
    """Return the warp model with its smoothing multiplied, or itself where it has none.

    A model that states neither ``smoothing`` nor ``theta`` has the default smoothing.
    """
    names = {field.name for field in _get_fields(model)} & {"smoothing", "theta"}
    if not names or factor == 1.0:
        return model
    values = {name: getattr(model, name) for name in names if getattr(model, name) is not None}
    scaled = {name: factor * value for name, value in values.items()}
    return replace(model, **scaled or {"smoothing": factor * DEFAULT_SMOOTHING})


def format_model(model: Any) -> str:
    """Return one line that makes the model: its name and the parameters that are not default."""
    arguments = []
    for field in fields(model):
        value, default = getattr(model, field.name), field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if type(value) is type(default) and value == default:
            continue
        if isinstance(value, np.ndarray) or (isinstance(value, list) and np.ndim(value) > 1):
            text = f"<{' × '.join(str(size) for size in np.shape(value))} array>"
        else:
            text = getattr(value, "__name__", None) or repr(value)
        arguments.append(f"{field.name}={text}")
    return f"{type(model).__name__}({', '.join(arguments)})"


def _get_fields(value: object) -> tuple[Field[object], ...]:
    return fields(value) if is_dataclass(value) and not isinstance(value, type) else ()


def require_number(
    value: object,
    name: str,
    owner: str,
    description: str = "a number of at least 0",
    is_allowed: Callable[[float], bool] = lambda number: 0.0 <= number < np.inf,
) -> None:
    """Raise a ValueError unless ``value`` is a number within bounds, by default not negative."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.number))
        or not is_allowed(float(value))
    ):
        raise ValueError(
            f"The '{name}' parameter of {owner} must be {description}. Got {value!r} instead."
        )


def require_degree(value: object, name: str, owner: str, minimum: int, maximum: int) -> None:
    """Raise a ValueError unless ``value`` is a whole number from ``minimum`` to ``maximum``."""
    require_number(
        value,
        name,
        owner,
        f"a whole number from {minimum} to {maximum}",
        lambda number: number == int(number) and minimum <= number <= maximum,
    )
