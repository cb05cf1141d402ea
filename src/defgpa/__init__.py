"""Procrustes analysis with deformations: one reference, one warp per shape, in closed form.

Names are loaded when they are first used, so that ``import defgpa`` and ``defgpa --help`` answer
at once; matplotlib, plotly, pandas and dask are loaded only by what needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOME = {
    "alignment": ["Alignment"],
    "completion": ["complete"],
    "datasets": [],
    "diagnostics": ["Diagnostics"],
    "edits": ["apply_edits"],
    "errors": [
        "DefgpaError",
        "DefgpaWarning",
        "DegenerateShapeError",
        "FormatError",
        "NotConvergedError",
        "ShapeError",
    ],
    "estimators": ["AffineGPA", "DefGPA", "ElasticGPA", "EuclideanGPA"],
    "exports": ["export"],
    "model_selection": ["compare", "cross_validate", "select_smoothing"],
    "images": ["common_frame", "intensity_deviation", "warp_image"],
    "io": ["load", "read_shapes", "register_saved", "save", "write_shapes"],
    "meshes": ["warp_mesh", "warp_points"],
    "semilandmarks": ["slide"],
    "shapes": ["Shapes"],
    "statistics": ["ShapePCA"],
    "solvers": ["Dense", "ExactCentering", "Iterative", "Robust", "SoftCentering"],
    "warps": [
        "Affine",
        "FreeForm",
        "Polynomial",
        "RadialBasis",
        "ThinPlateSpline",
        "Warp",
        "check_warp",
    ],
}
_MODULE_OF = {name: f"defgpa.{module}" for module, names in _HOME.items() for name in names}
_MODULES = {*_HOME, "distributed", "plot", "procrustes", "report", "screening"}

__all__ = [*sorted(_MODULE_OF)]

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.completion import complete
    from defgpa.diagnostics.solution import Diagnostics
    from defgpa.edits import apply_edits
    from defgpa.errors import (
        DefgpaError,
        DefgpaWarning,
        DegenerateShapeError,
        FormatError,
        NotConvergedError,
        ShapeError,
    )
    from defgpa.estimators import AffineGPA, DefGPA, ElasticGPA, EuclideanGPA
    from defgpa.exports import export
    from defgpa.images import common_frame, intensity_deviation, warp_image
    from defgpa.io import load, read_shapes, register_saved, save, write_shapes
    from defgpa.meshes import warp_mesh, warp_points
    from defgpa.model_selection import compare, cross_validate, select_smoothing
    from defgpa.semilandmarks import slide
    from defgpa.shapes import Shapes
    from defgpa.solvers import Dense, ExactCentering, Iterative, Robust, SoftCentering
    from defgpa.statistics import ShapePCA
    from defgpa.warps import (
        Affine,
        FreeForm,
        Polynomial,
        RadialBasis,
        ThinPlateSpline,
        Warp,
        check_warp,
    )


def __getattr__(name: str) -> object:
    """Load a public name or module on first use."""
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"defgpa.{name}")
    raise AttributeError(f"module 'defgpa' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *sorted(_MODULES), "__version__"]
