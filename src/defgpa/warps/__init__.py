"""Families of warps that are linear in their coefficients."""

from defgpa.geometry import Geometry
from defgpa.warps.affine import Affine, AffineBasis
from defgpa.warps.base import Basis, FactoredBasis, SparseBasis, WarpFamily, WarpModel
from defgpa.warps.check import WarpCheck, check_warp
from defgpa.warps.control_points import Grid
from defgpa.warps.free_form import FreeForm, FreeFormBasis
from defgpa.warps.inverse import Invertible, NewtonInverse
from defgpa.warps.kernels import (
    DistanceQuantile,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Multiquadric,
    Polyharmonic,
    WendlandC2,
    WendlandC4,
)
from defgpa.warps.lattice import BendingEnergy, Laplacian, LatticeEnergy, Membrane
from defgpa.warps.parameters import DEFAULT_SMOOTHING
from defgpa.warps.polynomial import Polynomial, PolynomialBasis
from defgpa.warps.radial import (
    KernelPenalty,
    NativeNorm,
    RadialBasis,
    RadialFunctions,
    WeightRidge,
    landmark_kernel,
)
from defgpa.warps.thin_plate import (
    ThinPlateBasis,
    ThinPlateSpline,
    fit_interpolating_spline,
)
from defgpa.warps.warp import Warp

__all__ = [
    "DEFAULT_SMOOTHING",
    "Affine",
    "AffineBasis",
    "Basis",
    "BendingEnergy",
    "DistanceQuantile",
    "FactoredBasis",
    "FreeForm",
    "FreeFormBasis",
    "Gaussian",
    "Geometry",
    "Grid",
    "InverseMultiquadric",
    "Invertible",
    "Kernel",
    "KernelPenalty",
    "Laplacian",
    "LatticeEnergy",
    "Membrane",
    "Multiquadric",
    "NativeNorm",
    "NewtonInverse",
    "Polyharmonic",
    "Polynomial",
    "PolynomialBasis",
    "RadialBasis",
    "RadialFunctions",
    "SparseBasis",
    "ThinPlateBasis",
    "ThinPlateSpline",
    "Warp",
    "WarpCheck",
    "WarpFamily",
    "WarpModel",
    "WeightRidge",
    "WendlandC2",
    "WendlandC4",
    "check_warp",
    "fit_interpolating_spline",
    "landmark_kernel",
]
