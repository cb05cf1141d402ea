"""Sentences on what was fitted and what it means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import TYPE_CHECKING

import numpy as np

from defgpa.alignment import Alignment
from defgpa.diagnostics.findings import group_by_problem
from defgpa.solvers.elastic_warps import ElasticRegistration
from defgpa.solvers.registration import AffineRegistration, MotionRegistration, RidgeRegistration
from defgpa.warps import (
    DEFAULT_SMOOTHING,
    Affine,
    FreeForm,
    Polynomial,
    RadialBasis,
    ThinPlateSpline,
)

if TYPE_CHECKING:
    from defgpa.model_selection import CrossValidation


def format_number(value: float, digits: int = 4) -> str:
    """Format a number with this many significant digits, without exponent if possible."""
    if not np.isfinite(value):
        return "–"
    if isinstance(value, (int, np.integer)) or value == 0:
        return f"{value:,.0f}"
    size = abs(value)
    if size >= 10**digits:
        return f"{value:,.0f}" if size < 1e9 else f"{value:.{digits - 1}e}"
    plain = f"{value:#.{digits}g}".removesuffix(".")
    return plain if size >= 1e-4 else f"{value:.{digits - 1}e}"


def format_percent(share: float) -> str:
    """Format a share as a percentage."""
    if np.isnan(share):
        return "–"
    digits = f"{100 * share:#.2g}".removesuffix(".") if 0 < share < 0.1 else f"{100 * share:.0f}"
    return f"{digits} %"


def describe_fit(alignment: Alignment) -> str:
    """Describe the specimens and the estimates of a fit in one paragraph."""
    shapes = alignment.shapes
    return (
        f"{shapes.n_shapes:,} specimens with {shapes.n_landmarks:,} landmarks in {shapes.n_dims}-D "
        f"({_count_missing(alignment)}) were aligned onto one common reference shape. Each has a "
        f"warp of its own onto it: {describe_warps(alignment.registration)}. "
        f"{_describe_estimation(alignment.registration)}"
    )


def _count_missing(alignment: Alignment) -> str:
    visible = alignment.shapes.visible
    n_missing = visible.size - int(visible.sum())
    if not n_missing:
        return "none missing"
    return f"{n_missing:,} of {visible.size:,} ({format_percent(n_missing / visible.size)}) missing"


def _describe_estimation(registration: object) -> str:
    match registration:
        case RidgeRegistration():
            return (
                "Reference and warps were estimated together, in closed form: there is no better "
                "reference for these warps, and no starting guess it depends on."
            )
        case ElasticRegistration():
            return (
                "Poses, reference and warps were estimated alternately, each in closed form, from "
                "the rigid and from the deformable solution."
            )
    return "Reference and warps were estimated together."


def describe_warps(registration: object) -> str:
    """Say how each shape is brought onto the reference."""
    match registration:
        case MotionRegistration(motions):
            words = ["moved", "turned", *["scaled"] * motions.scaling]
            words += ["mirrored where that fits better"] * motions.reflections
            return f"it is {', '.join(words[:-1])} and {words[-1]}, and not deformed"
        case AffineRegistration():
            return describe_model(Affine())
        case RidgeRegistration(model):
            return describe_model(model)
        case ElasticRegistration(model, rigidity):
            pose = f"drawn to a pose of the shape with rigidity {rigidity:.3g}"
            return f"{describe_model(model)}, {pose}"
    return f"a warp of the kind {type(registration).__name__}"


def describe_model(model: object) -> str:
    """Say in words what a warp model is."""
    match model:
        case Affine():
            return "an affine map, which stretches and shears but does not bend"
        case ThinPlateSpline(theta=theta):
            stiffness = (
                _describe_smoothing(model) if theta is None else f"smoothing θ = {theta:.3g}"
            )
            controls = _describe_controls(model, "control points")
            return f"a thin-plate spline with {controls} and {stiffness}"
        case RadialBasis(kernel=kernel):
            words = f"radial functions ({type(kernel).__name__}) around"
            return (
                f"{words} {_describe_controls(model, 'centres')}, with {_describe_smoothing(model)}"
            )
        case FreeForm():
            points = _count_per_axis(model.points_per_axis, "points")
            smoothing = _describe_smoothing(model)
            return f"a free-form deformation on a lattice of {points}, with {smoothing}"
        case Polynomial():
            return f"a polynomial of degree {model.degree} with {_describe_smoothing(model)}"
    return f"a warp of the kind {type(model).__name__}"


def _describe_smoothing(model: ThinPlateSpline | RadialBasis | FreeForm | Polynomial) -> str:
    tau = DEFAULT_SMOOTHING if model.smoothing is None else model.smoothing
    return f"relative smoothing {tau:.3g}"


def _describe_controls(model: ThinPlateSpline | RadialBasis, what: str) -> str:
    if isinstance(model.control_points, str):
        return "every landmark"
    if model.control_points is not None:
        return f"{what} of its own choice"
    return _count_per_axis(model.points_per_axis, what)


def _count_per_axis(counts: int | Sequence[int] | None, what: str) -> str:
    if not isinstance(counts, Iterable):
        return f"{counts} {what} along each axis"
    return f"{' × '.join(str(count) for count in counts)} {what}"


def list_warnings(alignment: Alignment, cv: CrossValidation | None = None) -> list[str]:
    """List everything that deserves a look before the result is believed, one sentence each."""
    findings = [*alignment.findings, *alignment.foldover_findings]
    if cv is not None and cv.fold_finding is not None:
        findings.append(cv.fold_finding)
    return [str(finding) for finding in group_by_problem(findings)]


def format_code(value: object) -> str:
    """Format the call that makes a model again, without parameters at their defaults."""
    if not is_dataclass(value) or isinstance(value, type):
        return abbreviate(repr(value))
    changed = [
        f"{field.name}={format_code(getattr(value, field.name))}"
        for field in fields(value)
        if not _is_default(field, getattr(value, field.name))
    ]
    return abbreviate(f"{type(value).__name__}({', '.join(changed)})")


def _is_default(field: Field[object], value: object) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    is_same = value is default or (np.ndim(np.asarray(value)) == 0 and value == default)
    return bool(is_same) if default is not MISSING else False


def abbreviate(text: str) -> str:
    """Return the text, or the beginning of one that is too long to be shown."""
    return text if len(text) <= 300 else text[:299] + "…"
