r"""Find the reference without some landmarks of one shape, without fitting the warps again.

Leaving the landmarks J out of shape i replaces its residual form by

    P_i − P_i[:, J] P_i[J, J]⁻¹ P_i[J, :],

which has zero rows at J and is the Schur complement elsewhere: P changes by a matrix of rank |J|.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.diagnostics.checks import require_linkage
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.deformable import LocalShapes, fit_reference
from defgpa.solvers.eigen import Cost, Method, Preconditioner, Spectrum
from defgpa.solvers.leave_out import SINGULAR, compute_residual_rows


@dataclass(frozen=True, eq=False)
class ReducedCost(Cost):
    """P − Wᵀ W̃ for the cost of shapes, one of which has lost some landmarks."""

    cost: ResidualCost  # of all landmarks
    rows: Array  # (|J|, m): W = P_i[J, :]
    solved: Array  # (|J|, m): W̃ = P_i[J, J]⁻¹ W

    def multiply(self, block: Array) -> Array:
        """Compute P' X for X (m, k)."""
        return np.asarray(self.cost.multiply(block) - self.rows.T @ (self.solved @ block))

    def dense(self) -> Array:
        """Return P' itself, (m, m)."""
        return np.asarray(self.cost.dense() - self.rows.T @ self.solved)

    def preconditioner(self) -> Preconditioner:
        """Return an approximation of P⁻¹."""
        return self.cost.preconditioner()


def find_reference_without(
    local: LocalShapes,
    cost: ResidualCost,
    method: Method,
    spectrum: Spectrum,
    shape: int,
    landmarks: Index,
) -> Array | None:
    """Find the reference (m, d) that shapes have without some landmarks of one of them.

    Parameters
    ----------
    local : LocalShapes
    cost : ResidualCost
        P of the shapes.
    method : Method
        Proportions, centring and eigen-solver.
    spectrum : Spectrum
        Of the fit with all landmarks.
    shape : int
        Which shape loses landmarks.
    landmarks : ndarray of int
        Which landmarks it loses.

    Returns
    -------
    ndarray of shape (m, d) or None
        None where the rest of the shape does not determine its warp, or a landmark would be left
        in one shape only.

    Raises
    ------
    ShapeError
        If the shapes are not linked without these landmarks.
    """
    geometry = local.geometry
    visible = geometry.visible.copy()
    visible[shape, landmarks] = False
    rows = compute_residual_rows(cost, landmarks)[shape]
    inner = rows[:, landmarks]
    is_lone = (visible.sum(axis=0) < 2).any()
    if is_lone or not np.linalg.eigvalsh(inner)[0] > SINGULAR:
        return None
    require_linkage(visible, local.names, local.n_dims)
    points = np.where(visible[..., None], geometry.points, np.nan)
    weights = geometry.weights
    masses = (local.visible if weights is None else weights)[shape, landmarks]
    if weights is not None:
        weights = np.where(visible, weights, 0.0)
    geometry = measure_geometry(points, visible, weights).project_to_planes()
    remaining = replace(local, geometry=geometry, visible=visible)
    totals = np.array(cost.totals)
    totals[landmarks] -= masses
    solved = np.linalg.solve(inner, rows)
    reduced = ReducedCost(totals, cost.n_shapes, cost, rows, solved)
    start = np.column_stack([spectrum.axes, spectrum.next_vector])
    return fit_reference(remaining, reduced, method, start).reference
