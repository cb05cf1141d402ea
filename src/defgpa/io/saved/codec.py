"""Values to JSON and arrays, and back: how a result is stored without pickle.

Frozen dataclasses are stored field by field under a registered name; numbers, strings, None,
lists and arrays as what they are. Many values of one kind (the warps of 10,000 shapes) are
stored as one stack. Nothing in a file can name anything but what is registered here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from defgpa import warps
from defgpa.arrays import Array
from defgpa.diagnostics.rejection import Rejection
from defgpa.diagnostics.solution import DescentDiagnostics, SpectralDiagnostics
from defgpa.errors import DefgpaError, FormatError
from defgpa.procrustes import Motions
from defgpa.solvers.elastic_warps import ElasticRegistration
from defgpa.solvers.registration import AffineRegistration, MotionRegistration, RidgeRegistration

Fields = Mapping[str, Any]  # of a value that is saved: numbers, text, arrays, further values


class _Codec(NamedTuple):
    """What a file calls a type, and how its values become fields and come back."""

    name: str
    to_fields: Callable[[Any], Fields]
    from_fields: Callable[[Fields], object]


_BY_NAME: dict[str, _Codec] = {}
_BY_TYPE: dict[type, _Codec] = {}


def register_saved(
    kind: type,
    *,
    name: str | None = None,
    to_fields: Callable[[Any], Fields] | None = None,
    from_fields: Callable[[Fields], object] | None = None,
) -> None:
    """Register how a user's own type (a warp model, a basis) is saved and loaded.

    Parameters
    ----------
    kind : type
        A dataclass, or any class if both functions are given.
    name : str, optional
        What the file calls it; by default the class's qualified name.
    to_fields : callable, optional
        From a value to a mapping of numbers, strings, arrays, lists or registered values.
    from_fields : callable, optional
        Back again.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Shear:
    ...     amount: float = 0.0
    >>> register_saved(Shear, name="example.Shear")
    """
    if not is_dataclass(kind) and (to_fields is None or from_fields is None):
        raise TypeError(
            f"{kind.__name__} is not a dataclass: give both to_fields and from_fields to "
            "register_saved."
        )
    init_fields = fields(kind) if is_dataclass(kind) else ()
    codec = _Codec(
        name or f"{kind.__module__}.{kind.__qualname__}",
        to_fields
        or (lambda value: {f.name: getattr(value, f.name) for f in init_fields if f.init}),
        from_fields or (lambda values: kind(**values)),
    )
    _BY_NAME[codec.name] = codec
    _BY_TYPE[kind] = codec


def encode(value: object, arrays: dict[str, Array]) -> object:
    """Encode a value as JSON; arrays are put into ``arrays`` and named in the JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        key = f"array_{len(arrays)}"
        arrays[key] = value
        return {"array": key}
    if isinstance(value, (list, tuple)):
        return {"list": [encode(item, arrays) for item in value]}
    codec = _find_codec(value)
    items = codec.to_fields(value).items()
    return {"type": codec.name, "fields": {key: encode(item, arrays) for key, item in items}}


def decode(node: Any, arrays: Mapping[str, Array]) -> Any:
    """Decode the JSON that ``encode`` made."""
    if not isinstance(node, dict):
        return node
    if "array" in node:
        array = arrays[node["array"]]
        if array.dtype.kind not in "fiub":
            raise FormatError(f"an array of {array.dtype} stands where numbers are expected")
        return array
    if "list" in node:
        return tuple(decode(item, arrays) for item in node["list"])
    codec = _find_codec_by_name(node.get("type"))
    return codec.from_fields({key: decode(item, arrays) for key, item in node["fields"].items()})


def encode_stack(values: list[object], arrays: dict[str, Array]) -> object:
    """Encode a sequence of values; runs of one type and size become stacked arrays."""
    runs = [list(run) for _, run in groupby(values, key=_describe_layout)]
    return {"runs": [_encode_run(run, arrays) for run in runs]}


def decode_stack(node: Any, arrays: Mapping[str, Array], expected: int) -> list[Any]:
    """Decode the values that ``encode_stack`` was given, as many as there must be."""
    values: list[Any] = []
    counts = [run.get("count", 1) for run in node["runs"]]
    if min(counts, default=0) < 1 or sum(counts) != expected:
        raise FormatError(f"{sum(counts)} warps for {expected} shapes")
    for run in node["runs"]:
        if "count" not in run:
            values.append(decode(run, arrays))
            continue
        codec = _find_codec_by_name(run["type"])
        stacked = {key: decode(item, arrays) for key, item in run["fields"].items()}
        shared = {key: decode(item, arrays) for key, item in run.get("shared", {}).items()}
        for k in range(run["count"]):
            fields_of_shape = {
                key: None if item is None else item[k] for key, item in stacked.items()
            }
            values.append(codec.from_fields({**fields_of_shape, **shared}))
    return values


def _encode_run(run: list[object], arrays: dict[str, Array]) -> object:
    if len(run) == 1 or _describe_layout(run[0])[1] is None:
        return encode(run[0], arrays)
    codec = _find_codec(run[0])
    members = [codec.to_fields(value) for value in run]
    shared = {key: item for key, item in members[0].items() if _is_common(item)}
    stacked = {
        key: None if item is None else np.stack([np.asarray(member[key]) for member in members])
        for key, item in members[0].items()
        if key not in shared
    }
    node = {key: encode(item, arrays) for key, item in stacked.items()}
    shared_values = {key: encode(item, arrays) for key, item in shared.items()}
    return {"type": codec.name, "count": len(run), "fields": node, "shared": shared_values}


def _describe_layout(value: object) -> tuple[object, ...]:
    """Return a key that values must share to be stacked; (id, None) for those that cannot be.

    Arrays are stacked if their sizes agree; anything else (a kernel, a degree) must be the same.
    """
    codec = _find_codec(value)
    layout: list[tuple[str, object]] = []
    for key, item in codec.to_fields(value).items():
        if not _is_common(item):
            layout.append((key, None if item is None else np.shape(item)))
            continue
        arrays: dict[str, Array] = {}
        layout.append((key, json.dumps(encode(item, arrays))))
        if arrays:
            return (id(value), None)
    return (codec.name, tuple(layout))


def _is_common(item: object) -> bool:
    return item is not None and not isinstance(item, (np.ndarray, np.generic))


def _find_codec_by_name(name: object) -> _Codec:
    if name not in _BY_NAME:
        raise FormatError(
            f"the file holds a {name!r}, which is not known here: import the package "
            "that defines it (and registers it with defgpa.register_saved) before loading"
        )
    return _BY_NAME[name]


def _find_codec(value: object) -> _Codec:
    codec = _BY_TYPE.get(type(value))
    if codec is None:
        raise DefgpaError(
            f"A {type(value).__name__} cannot be saved: tell how with defgpa.register_saved."
        )
    return codec


# The built-in types a saved result may hold, under names that outlive refactoring

_BUILT_IN = (
    *(warps.Affine, warps.FreeForm, warps.Polynomial, warps.RadialBasis, warps.ThinPlateSpline),
    *(warps.AffineBasis, warps.FreeFormBasis, warps.PolynomialBasis, warps.RadialFunctions),
    *(warps.Gaussian, warps.InverseMultiquadric, warps.Multiquadric, warps.Polyharmonic),
    *(warps.WendlandC2, warps.WendlandC4),
    *(warps.BendingEnergy, warps.DistanceQuantile, warps.Laplacian, warps.Membrane),
    *(warps.NativeNorm, warps.WeightRidge),
    *(AffineRegistration, ElasticRegistration, MotionRegistration, Motions, RidgeRegistration),
    *(DescentDiagnostics, SpectralDiagnostics, Rejection),
)
_SPLINE = ("controls", "centre", "scale", "mixing", "stiffness")
_GRID = ("counts", "axes", "first", "step")


def _split_spline(basis: warps.ThinPlateBasis) -> Fields:
    """Split a spline into its arrays and those of its grid, so that many can be stacked."""
    values = {key: getattr(basis, key) for key in _SPLINE}
    return values | {key: getattr(basis.grid, key, None) for key in _GRID}


def _build_spline(values: Fields) -> warps.ThinPlateBasis:
    arguments = {key: values[key] for key in _SPLINE}
    arguments |= {key: np.asarray(arguments[key]) for key in ("scale", "stiffness")}
    grid = warps.Grid(*(values[key] for key in _GRID)) if values["counts"] is not None else None
    mixing = arguments.pop("mixing")
    basis = warps.ThinPlateBasis(**arguments, ridge=None if mixing is None else 0.0, grid=grid)
    if mixing is not None:  # to the last digit
        vars(basis)["mixing"] = mixing
    return basis


register_saved(
    warps.ThinPlateBasis, name="ThinPlateBasis", to_fields=_split_spline, from_fields=_build_spline
)
for _kind in _BUILT_IN:
    register_saved(_kind, name=_kind.__name__)
