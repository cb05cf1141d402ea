"""The built-in types a saved result may hold, under names that outlive refactoring."""

from __future__ import annotations

from defgpa.io._codec import register_saved
from defgpa.procrustes import Motions
from defgpa.solve.registration import AffineRegistration, MotionRegistration, RidgeRegistration
from defgpa.warps import (
    Affine,
    AffineBasis,
    BendingEnergy,
    DistanceQuantile,
    FreeForm,
    FreeFormBasis,
    Gaussian,
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
_BASES = (AffineBasis, FreeFormBasis, PolynomialBasis, RadialFunctions, ThinPlateBasis)
_KERNELS = (Gaussian, InverseMultiquadric, Multiquadric, Polyharmonic, WendlandC2, WendlandC4)
_PARTS = (BendingEnergy, DistanceQuantile, Laplacian, Membrane, NativeNorm, WeightRidge)

_REGISTRATIONS = (AffineRegistration, MotionRegistration, Motions, RidgeRegistration)

for _kind in (*_WARPS, *_BASES, *_KERNELS, *_PARTS, *_REGISTRATIONS):
    register_saved(_kind, name=_kind.__name__)
