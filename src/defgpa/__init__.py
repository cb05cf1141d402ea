"""Procrustes analysis with deformations: one reference, one warp per shape, in closed form."""

from defgpa.alignment import Alignment
from defgpa.diagnostics import Diagnostics
from defgpa.errors import (
    DefgpaError,
    DefgpaWarning,
    DegenerateShapeError,
    FormatError,
    NotConvergedError,
    ShapeError,
)
from defgpa.estimators import DefGPA
from defgpa.shapes import Shapes
from defgpa.solve.centering import ExactCentering, SoftCentering
from defgpa.solve.spectral import Dense, Iterative
from defgpa.warps import Affine, ThinPlateSpline, Warp

__version__ = "0.1.0"

__all__ = [
    "Affine",
    "Alignment",
    "DefGPA",
    "DefgpaError",
    "DefgpaWarning",
    "DegenerateShapeError",
    "Dense",
    "Diagnostics",
    "ExactCentering",
    "FormatError",
    "Iterative",
    "NotConvergedError",
    "ShapeError",
    "Shapes",
    "SoftCentering",
    "ThinPlateSpline",
    "Warp",
]
