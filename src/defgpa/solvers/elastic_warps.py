r"""The warps of the elastic family: deformable ones, their linear parts drawn to the poses.

The best warp onto S has the weights W of the deformable method, less κ times the linear map T by
which those depart from the pose,

    warp(x) = features(x) @ W − κ (x − x̄) T,       T = scatter⁺ D̄ᵀS − s R.

Affine maps are among the features and free: with D̄ = Q K, their weights are those of the ridge
regression itself, Y UᵀD̄ = Y (UᵀQ) K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DefgpaError, format_names
from defgpa.solvers.centred_sums import CentredSums, orthonormalise, weigh_points
from defgpa.solvers.cost import ResidualCost, build_cost
from defgpa.solvers.elastic import Anchors, Dial, Elastic
from defgpa.solvers.elimination import Factor, StoredFactor
from defgpa.solvers.registration import measure_new_shape
from defgpa.warps import Warp, WarpModel


def project_linear_maps(
    cost: ResidualCost, rows: Array, weighted_rows: Array, names: Sequence[str]
) -> list[Array]:
    """(b, l, d) of every batch: UᵀQ, for rows (n, d, m) of Q; an error unless linear maps are free.

    They are where UUᵀQ = ΓQ, and UUᵀ ≼ Γ: where ‖UᵀQ‖² is QᵀΓQ. ``weighted_rows`` are (ΓQ)ᵀ.
    """
    projections = [_project_batch(factor, rows[factor.batch.shapes].mT) for factor in cost.factors]
    lengths = np.concatenate([np.einsum("bld,bld->bd", batch, batch) for batch in projections])
    left = np.einsum("ndm,ndm->nd", rows, weighted_rows) - lengths
    charged = (left > 1e-6).any(axis=1)
    if charged.any():
        culprits = format_names(names[int(i)] for i in np.flatnonzero(charged))
        raise DefgpaError(
            "The 'warp' parameter of ElasticGPA must contain all affine maps and not charge them: "
            "a pose is one, and the rigidity alone says what departing from it costs. It does not "
            f"for shape {culprits}. Add the coordinates and a constant to its features, with rows "
            "of zeros in its penalty (RadialBasis: polynomial_degree=1)."
        )
    return projections


def _project_batch(factor: Factor, columns: Array) -> Array:
    """Compute U_iᵀX_i (b, l, k), every shape of a batch with columns X_i (b, m, k) of its own."""
    if isinstance(factor, StoredFactor):
        return factor.rows @ columns
    projections = [factor.restrict_to_shape(i).project(x) for i, x in enumerate(columns)]
    return np.concatenate(projections)


def compute_elastic_coefficients(
    cost: ResidualCost, linear: Sequence[Array], weighted_rows: Array, fit: Elastic
) -> list[Array]:
    """Compute the coefficients W − κ Y (UᵀQ) (QᵀΓD̄ T) of every batch, (b, l, d)."""
    assert isinstance(fit.anchors.sums, CentredSums)
    departures = weighted_rows @ fit.anchors.sums.geometry.centred @ fit.departures
    free = cost.fit_warps(fit.reference).coefficients
    return [
        coefficients
        - fit.dial.firmness * factor.ridge.inverse @ (projections @ departures[factor.batch.shapes])
        for coefficients, factor, projections in zip(free, cost.factors, linear, strict=True)
    ]


@dataclass(frozen=True)
class ElasticRegistration:
    """One more shape: its pose, and the warp that departs from it at the same price."""

    model: WarpModel
    rigidity: float
    scaling: bool

    def warp(self, points: Array, reference: Array, weights: Array | None = None) -> Warp:
        """In closed form: the pose depends on the reference alone."""
        geometry = measure_new_shape(points, weights)
        cost, rows = (
            build_cost(geometry, self.model),
            orthonormalise(geometry.centred, geometry.scatter),
        )
        weighted_rows = weigh_points(rows.mT, geometry.weights).mT
        linear = project_linear_maps(cost, rows, weighted_rows, ("given",))
        anchors = Anchors.of(geometry, reference)
        fit = Elastic(reference, anchors, Dial(self.rigidity, self.scaling), ())
        coefficients = compute_elastic_coefficients(cost, linear, weighted_rows, fit)
        return cost.make_warps(coefficients, points[None])[0]
