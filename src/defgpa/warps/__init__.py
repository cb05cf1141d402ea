"""Families of warps that are linear in their weights."""

from defgpa.warps._affine import Affine, AffineBasis
from defgpa.warps._inverse import NewtonInverse
from defgpa.warps._protocol import Basis, FactoredBasis, StackedModel, WarpModel
from defgpa.warps._thin_plate import ThinPlateBasis, ThinPlateSpline
from defgpa.warps._warp import Warp

__all__ = [
    "Affine",
    "AffineBasis",
    "Basis",
    "FactoredBasis",
    "NewtonInverse",
    "StackedModel",
    "ThinPlateBasis",
    "ThinPlateSpline",
    "Warp",
    "WarpModel",
]
