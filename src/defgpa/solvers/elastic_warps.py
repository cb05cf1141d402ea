r"""The warps of the elastic family: deformable ones, their linear parts drawn to the poses.

The best warp onto S is the deformable one, less κ times the linear map T by which it departs from
the pose. Affine maps are among the features and free, so it is the ridge regression of the shape
onto S − κ D̄T:

    warp(x) = features(x) @ W − κ (x − x̄) T,       T = scatter⁺ D̄ᵀS − s R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DefgpaError, format_names
from defgpa.geometry import Geometry, compute_moments
from defgpa.solvers.centred_sums import CentredSums, orthonormalise
from defgpa.solvers.cost import ResidualCost, build_cost
from defgpa.solvers.elastic import Anchors, Dial
from defgpa.solvers.proportions import find_sides
from defgpa.solvers.registration import measure_new_shape
from defgpa.warps import Warp, WarpModel


def require_free_linear_maps(cost: ResidualCost, geometry: Geometry, names: Sequence[str]) -> None:
    """Raise an error unless linear maps are among the features, and free.

    They are where UUᵀQ = ΓQ, and UUᵀ ≼ Γ: where ‖UᵀQ‖² is QᵀΓQ, Q a basis of the centred points.
    """
    basis = orthonormalise(geometry.centred, geometry.scatter)
    weights = np.ones((1, 1)) if geometry.weights is None else geometry.weights
    masses = np.einsum("nmd,nm->nd", basis**2, np.broadcast_to(weights, basis.shape[:2]))
    projections = [factor.project_each(basis[factor.batch.shapes]) for factor in cost.factors]
    lengths = np.concatenate([np.einsum("bld,bld->bd", batch, batch) for batch in projections])
    is_charged = (masses - lengths > 1e-6).any(axis=1)
    if is_charged.any():
        culprits = format_names(names[int(i)] for i in np.flatnonzero(is_charged))
        raise DefgpaError(
            "The 'warp' parameter of ElasticGPA must contain all affine maps and not charge them: "
            "a pose is one, and the rigidity alone says what departing from it costs. It does not "
            f"for shape {culprits}. Add the coordinates and a constant to its features, with rows "
            "of zeros in its penalty (RadialBasis: polynomial_degree=1)."
        )


def fit_elastic_warps(
    cost: ResidualCost, geometry: Geometry, reference: Array, departures: Array, points: Array
) -> tuple[Warp, ...]:
    """Fit one warp per shape onto S − κ D̄T, for S (m, d) and κT (n, d, d).

    Each knows its landmarks, ``points`` (n, m, d).
    """
    targets = reference - geometry.centred @ departures
    coefficients = [
        factor.ridge.inverse @ factor.project_each(targets[factor.batch.shapes])
        for factor in cost.factors
    ]
    return cost.make_warps(coefficients, points)


@dataclass(frozen=True)
class ElasticRegistration:
    """One more shape: its pose, and the warp that departs from it at the same price."""

    model: WarpModel
    rigidity: float
    scaling: bool

    def warp(self, points: Array, reference: Array, weights: Array | None = None) -> Warp:
        """In closed form: the pose depends on the reference alone."""
        geometry = measure_new_shape(points, weights)
        votes = find_sides(compute_moments(reference, geometry), np.eye(points.shape[1])).votes
        anchors = Anchors(CentredSums(geometry), np.where(votes < 0, -1.0, 1.0))
        _, departures = anchors.measure_departures(reference[None], self.scaling)
        departures = Dial(self.rigidity, self.scaling).firmness * departures[0]
        cost = build_cost(geometry, self.model)
        return fit_elastic_warps(cost, geometry, reference, departures, points[None])[0]
