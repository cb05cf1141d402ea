"""The built-in types a saved result may hold, under names that outlive refactoring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from defgpa.diagnostics import DescentDiagnostics, SpectralDiagnostics
from defgpa.io.saved.codec import register_saved
from defgpa.procrustes import Motions
from defgpa.solve.datum.elastic_warps import ElasticRegistration
from defgpa.solve.registration import AffineRegistration, MotionRegistration, RidgeRegistration
from defgpa.warps import (
    Affine,
    AffineBasis,
    BendingEnergy,
    DistanceQuantile,
    FreeForm,
    FreeFormBasis,
    Gaussian,
    Grid,
    InverseMultiquadric,
    Laplacian,
    Membrane,
    Multiquadric,
    NativeNorm,
    Polyharmonic,
    Polynomial,
    PolynomialBasis,
    RadialBasis,
    RadialFunctions,
    ThinPlateBasis,
    ThinPlateSpline,
    WeightRidge,
    WendlandC2,
    WendlandC4,
)

_WARPS = (Affine, FreeForm, Polynomial, RadialBasis, ThinPlateSpline)
_BASES = (AffineBasis, FreeFormBasis, PolynomialBasis, RadialFunctions)
_KERNELS = (Gaussian, InverseMultiquadric, Multiquadric, Polyharmonic, WendlandC2, WendlandC4)
_PARTS = (BendingEnergy, DistanceQuantile, Laplacian, Membrane, NativeNorm, WeightRidge)

_FACTS = (DescentDiagnostics, SpectralDiagnostics)
_REGISTRATIONS = (
    AffineRegistration,
    ElasticRegistration,
    MotionRegistration,
    Motions,
    RidgeRegistration,
)

_SPLINE = ("controls", "centre", "scale", "mixing", "stiffness")
_GRID = ("counts", "axes", "first", "step")


def _spline_fields(basis: ThinPlateBasis) -> dict[str, Any]:
    """The arrays of a spline and of its grid side by side, so that those of many can be stacked."""
    own = {key: getattr(basis, key) for key in _SPLINE}
    return own | {key: getattr(basis.grid, key, None) for key in _GRID}


def _spline(values: Mapping[str, Any]) -> ThinPlateBasis:
    own = {key: values[key] for key in _SPLINE}
    own |= {key: np.asarray(own[key]) for key in ("scale", "stiffness")}
    grid = Grid(*(values[key] for key in _GRID)) if values["counts"] is not None else None
    mixing = own.pop("mixing")
    basis = ThinPlateBasis(**own, ridge=None if mixing is None else 0.0, grid=grid)
    if mixing is not None:  # to the last digit
        vars(basis)["mixing"] = mixing
    return basis


register_saved(ThinPlateBasis, name="ThinPlateBasis", to_fields=_spline_fields, from_fields=_spline)
for _kind in (*_WARPS, *_BASES, *_KERNELS, *_PARTS, *_REGISTRATIONS, *_FACTS):
    register_saved(_kind, name=_kind.__name__)
