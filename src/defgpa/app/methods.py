"""The methods one can choose: as settings, as estimators and as Python.

Estimators are loaded when one is made, so that the server answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

from defgpa.errors import DefgpaError

if TYPE_CHECKING:
    from defgpa.estimators import AlignmentEstimator

KINDS = ("rigid", "affine", "elastic", "deformable")


@dataclass(frozen=True)
class Method:
    """A method of alignment, as a project remembers it.

    Attributes
    ----------
    kind : {"rigid", "affine", "elastic", "deformable"}
        Which estimator.
    scaling : bool
        Of rigid alignment: whether specimens are brought to one size.
    points_per_axis : int
        Control points of the splines.
    smoothing, rigidity : float
        Of elastic and deformable alignment.
    """

    kind: str = "rigid"
    scaling: bool = True
    points_per_axis: int = 5
    smoothing: float = 1e-3
    rigidity: float = 1.0

    def __post_init__(self) -> None:
        numbers = (self.smoothing, self.rigidity)
        is_sound = (
            self.kind in KINDS
            and isinstance(self.scaling, bool)
            and isinstance(self.points_per_axis, int)
            and 2 <= self.points_per_axis <= 12
            and all(isinstance(x, int | float) and 0.0 <= x < float("inf") for x in numbers)
        )
        if not is_sound:
            raise DefgpaError(f"There is no such method of alignment: {asdict(self)!r}.")

    @classmethod
    def from_dict(cls, values: object) -> Method:
        """Make the method that settings describe; unknown fields are refused."""
        names = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or not set(values) <= names:
            raise DefgpaError(f"There is no such method of alignment: {values!r}.")
        return cls(**values)

    def to_dict(self) -> dict[str, object]:
        """Return the fields as settings hold them."""
        return asdict(self)

    @property
    def estimator(self) -> AlignmentEstimator:
        """The estimator, not fitted."""
        from defgpa.estimators import DefGPA, ElasticGPA, EuclideanGPA
        from defgpa.warps import Affine, ThinPlateSpline

        warp = ThinPlateSpline(points_per_axis=self.points_per_axis, smoothing=self.smoothing)
        match self.kind:
            case "rigid":
                return EuclideanGPA(scaling=self.scaling)
            case "affine":
                return DefGPA(Affine())
            case "elastic":
                return ElasticGPA(warp, rigidity=self.rigidity)
        return DefGPA(warp)

    @property
    def python(self) -> str:
        """The Python expression that makes the estimator."""
        warp = (
            f"defgpa.ThinPlateSpline(points_per_axis={self.points_per_axis}, "
            f"smoothing={self.smoothing!r})"
        )
        return {
            "rigid": f"defgpa.EuclideanGPA(scaling={self.scaling})",
            "affine": "defgpa.DefGPA(defgpa.Affine())",
            "elastic": f"defgpa.ElasticGPA({warp}, rigidity={self.rigidity!r})",
            "deformable": f"defgpa.DefGPA({warp})",
        }[self.kind]

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        scaling = f"{'with' if self.scaling else 'without'} scaling"
        details = {"rigid": f", {scaling}", "affine": ""}
        return self.kind + details.get(self.kind, f", {self.points_per_axis} points per axis")

    @property
    def sentence(self) -> str:
        """What it is, in words."""
        spline = f"thin-plate splines, {self.points_per_axis} points per axis"
        return {
            "rigid": f"rigid alignment ({'with' if self.scaling else 'without'} scaling)",
            "affine": "affine alignment",
            "elastic": f"elastic alignment ({spline}, smoothing {self.smoothing:.3g}, "
            f"rigidity {self.rigidity:.3g})",
            "deformable": f"deformable alignment ({spline}, smoothing {self.smoothing:.3g})",
        }[self.kind]


def describe_estimator(estimator: AlignmentEstimator) -> Method | None:
    """Return the method (settings of the page) of an estimator; None if there is none like it."""
    from defgpa.estimators import DefGPA, ElasticGPA, EuclideanGPA
    from defgpa.warps import Affine, ThinPlateSpline

    if isinstance(estimator, EuclideanGPA):
        return Method("rigid", scaling=bool(estimator.scaling))
    if not isinstance(estimator, DefGPA | ElasticGPA):
        return None
    warp = ThinPlateSpline() if estimator.warp is None else estimator.warp
    if isinstance(warp, Affine):
        return Method("affine")
    points = getattr(warp, "points_per_axis", None)
    if not isinstance(points, int):
        return None
    smoothing = getattr(warp, "smoothing", None)  # None stands for the default
    value = Method.smoothing if smoothing is None else float(smoothing)
    method = Method("deformable", points_per_axis=points, smoothing=value)
    if isinstance(estimator, ElasticGPA):
        return replace(method, kind="elastic", rigidity=min(float(estimator.rigidity), 1e300))
    return method
