"""From bases to a reference: elimination of the warps, eigenproblem, proportions, mirror side."""

from defgpa.solvers.eigen import (
    Centering,
    Dense,
    EigenSolver,
    ExactCentering,
    Iterative,
    SoftCentering,
)
from defgpa.solvers.robust import Robust

__all__ = [
    "Centering",
    "Dense",
    "EigenSolver",
    "ExactCentering",
    "Iterative",
    "Robust",
    "SoftCentering",
]
