"""Families of warps that are linear in their weights."""

from defgpa.frames import Frames
from defgpa.warps._affine import Affine, AffineBasis
from defgpa.warps._check import WarpCheck, check_warp
from defgpa.warps._family import Grid
from defgpa.warps._free_form import FreeForm, FreeFormBasis
from defgpa.warps._inverse import Invertible, NewtonInverse
from defgpa.warps._lattice import BendingEnergy, Laplacian, LatticeEnergy, Membrane
from defgpa.warps._polynomial import Polynomial, PolynomialBasis
from defgpa.warps._protocol import (
    Basis,
    DifferentiableBasis,
    FactoredBasis,
    Recombinable,
    SparseBasis,
    StackedModel,
    WarpModel,
)
from defgpa.warps._radial import (
    KernelPenalty,
    NativeNorm,
    RadialBasis,
    RadialFunctions,
    WeightRidge,
    landmark_kernel,
)
from defgpa.warps._radial_kernels import (
    DistanceQuantile,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Multiquadric,
    Polyharmonic,
    WendlandC2,
    WendlandC4,
)
from defgpa.warps._thin_plate import (
    DEFAULT_SMOOTHING,
    ThinPlateBasis,
    ThinPlateSpline,
    interpolating_spline,
)
from defgpa.warps._warp import Warp

__all__ = [
    "DEFAULT_SMOOTHING",
    "Affine",
    "AffineBasis",
    "Basis",
    "BendingEnergy",
    "DifferentiableBasis",
    "DistanceQuantile",
    "FactoredBasis",
    "Frames",
    "FreeForm",
    "FreeFormBasis",
    "Gaussian",
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
    "Recombinable",
    "SparseBasis",
    "StackedModel",
    "ThinPlateBasis",
    "ThinPlateSpline",
    "Warp",
    "WarpCheck",
    "WarpModel",
    "WeightRidge",
    "WendlandC2",
    "WendlandC4",
    "check_warp",
    "interpolating_spline",
    "landmark_kernel",
]
