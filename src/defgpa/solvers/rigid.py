r"""Rigid generalised Procrustes analysis with missing landmarks: a problem in the rotations alone.

The error is measured in the datum space,

.. math:: \sum_{ij} \gamma_{ij} \lVert D_i[j] - (S[j] Z_i^\top + a_i) \rVert^2,
   \qquad Z_i = s_i R_i,

with all :math:`s_i = 1` for rigid motions and :math:`\gamma_{ij} = 0` for a missing landmark. Given
the :math:`Z_i`, translations and reference are linear least squares. With :math:`C_i` the weighted
centring of shape i, they leave

.. math:: \sum_i \lVert C_i D_i \rVert^2 - \langle B, L^+ B \rangle, \qquad
   B = \sum_i C_i D_i Z_i, \quad L = \sum_i s_i^2 C_i, \quad S = L^+ B,

a smooth function on a product of rotation groups (and scales), minimised by Newton steps
:math:`Z_i \exp(\Xi_i)` until its gradient vanishes. Neither its gradient nor its Hessian product
costs more than two passes over the points.

Only the product :math:`s_i S` counts, so the cost does not fall by shrinking. The overall size of a
reference of similarities is therefore free, and set to the mean size of the shapes (estimated from
the fit for a shape with missing landmarks).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DegenerateShapeError
from defgpa.geometry import Geometry
from defgpa.procrustes import MIN_MARGIN, ORTHOGONAL, RIGID, Motions
from defgpa.solvers.datum_space import (
    CentredShapes,
    DatumSpaceFit,
    build_fit,
    cross_products,
    estimate_complete_sizes,
)
from defgpa.solvers.rigid_cost import MotionAlgebra, RigidPoint, compute_squared_scales
from defgpa.solvers.rigid_starts import find_further_starts, find_start
from defgpa.solvers.trust_region import minimise
from defgpa.threads import use_threads

# disagreement of the shapes above which there may be other minima; any may be mirrored
_UNSURE, _UNSURE_IF_MIRRORED = 0.05, 1e-3
_SAME_COST = 1e-10  # relative; a minimum that is lower by less is the same one


@use_threads(1)  # products this thin gain nothing from a second thread
def fit_rigid(
    points: Array,
    motions: Motions = RIGID,
    names: Sequence[str] = (),
    geometry: Geometry | None = None,
    weights: Array | None = None,
    start: Array | None = None,
) -> DatumSpaceFit:
    """Fit a reference and one motion per shape on the datum-space cost.

    Parameters
    ----------
    points : ndarray of shape (n_shapes, n_landmarks, n_dims)
        Shapes in 2-D or 3-D, NaN for missing landmarks.
    motions : Motions
        RIGID, SIMILARITY, or either with reflections.
    names : sequence of str, optional
        Names of the shapes for errors; shape_1, shape_2, … by default.
    geometry : Geometry, optional
        Those of the points, where they are known already.
    weights : ndarray of shape (n_shapes, n_landmarks), optional
        Landmark weights; all 1 by default.
    start : ndarray of shape (n_landmarks, n_dims), optional
        A reference near the best one, of other weights; by default a start in closed form.

    Returns
    -------
    DatumSpaceFit
        The reference is centred and turned like the first shape. For rigid motions the error is the
        same in both spaces; for similarities the reference has the mean size of the shapes.

    Raises
    ------
    DegenerateShapeError
        When the points of a shape, or those it shares with the others, leave its rotation open.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=(9, 2))
    >>> turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> shapes = np.stack([base, base @ turn + 1, base @ turn.T - 2])
    >>> shapes[1, :3] = shapes[2, 5:] = np.nan
    >>> fit = fit_rigid(shapes)
    >>> bool(fit.rmse_datum < 1e-12)
    True
    >>> bool(np.allclose(shapes[1, 3:] @ fit.matrices[1] + fit.offsets[1], fit.reference[3:]))
    True
    """
    shapes = CentredShapes.from_points(points, names, geometry, weights)
    shapes.require_size()
    first = find_start(points, shapes, motions, start)
    point, iterations = _minimise_from(first, shapes, motions)
    if point.disagreement > (_UNSURE_IF_MIRRORED if motions.reflections else _UNSURE):
        for further in find_further_starts(shapes, motions):
            candidate, more = _minimise_from(further, shapes, motions)
            if candidate.cost < point.cost - _SAME_COST * point.cost_scale:
                point, iterations = candidate, more
    _require_rotations(point)
    Z, S = _turn_like_first_shape(point)
    if motions.scaling:
        Z, S = _scale_to_mean_size(shapes, Z, S)
    inverse = Z / compute_squared_scales(Z)[:, np.newaxis, np.newaxis]
    return build_fit(shapes, S, Z.mT, inverse, iterations, point.relative_gradient)


def _minimise_from(start: Array, shapes: CentredShapes, motions: Motions) -> tuple[RigidPoint, int]:
    """Minimise the cost from motions (n, d, d); return the minimum and the number of iterations."""
    algebra = MotionAlgebra.from_motions(motions, shapes.shape[2])
    point, iterations = minimise(RigidPoint.from_motions(shapes, algebra, start))
    return _mirror_where_better(point, iterations) if motions.reflections else (point, iterations)


def _mirror_where_better(point: RigidPoint, iterations: int) -> tuple[RigidPoint, int]:
    """Mirror the shapes that would fit better so, and minimise again, until none would.

    Steps rotate shapes but cannot mirror them. Every mirroring lowers the cost, so this ends.
    """
    while True:
        R, margin = ORTHOGONAL.find_nearest(cross_products(point.shapes.rows, point.reference))
        clear = margin > 1e-9 * point.max_moments / np.sqrt(point.squared_scales)
        wrong = clear & (np.linalg.det(R) * np.linalg.det(point.Z) < 0)
        if not wrong.any():
            return point, iterations
        mirrored = R * np.sqrt(point.squared_scales)[:, np.newaxis, np.newaxis]
        Z = np.where(wrong[:, np.newaxis, np.newaxis], mirrored, point.Z)
        point, more = minimise(RigidPoint.from_motions(point.shapes, point.algebra, Z))
        iterations += more


def _turn_like_first_shape(point: RigidPoint) -> tuple[Array, Array]:
    """Rotate the solution so that the first shape keeps its orientation, R_1 = I."""
    R = point.Z[0] / np.sqrt(point.squared_scales[0])
    return point.Z @ R.T, R @ point.reference


def _scale_to_mean_size(shapes: CentredShapes, Z: Array, S: Array) -> tuple[Array, Array]:
    """Scale the solution so that the reference has the mean size of the shapes.

    A shape counts by the mean weight of its landmarks.
    """
    sizes = np.sqrt(shapes.squared_sizes)
    if shapes.weights is not None:
        # a landmark of less weight than others of its shape is in part where the reference has it
        largest = shapes.weights.max(axis=1)
        sizes = estimate_complete_sizes(
            shapes.squared_sizes / largest,
            shapes.weights / largest[:, np.newaxis],
            S.T,
            compute_squared_scales(Z),
        )
    factor = np.average(sizes, weights=shapes.totals / shapes.n_visible) / np.linalg.norm(S)
    return Z / factor, S * factor


def _require_rotations(point: RigidPoint) -> None:
    """Raise a DegenerateShapeError that names the shapes whose rotation is open at the optimum.

    The rotation is determined when the curvature of the cost along every small turn stands out of
    rounding.
    """
    d = point.Z.shape[-1]
    n_angles = d * (d - 1) // 2
    rounding = point.shapes.rounding / np.sqrt(point.shapes.squared_sizes)
    min_curvature = 2 * point.max_moments * np.maximum(rounding, MIN_MARGIN)
    if n_angles == 1 and (point.hessian_blocks[:, 0, 0] > min_curvature).all():
        return
    curvature = point.hessian_blocks[:, :n_angles, :n_angles]
    excess = curvature - min_curvature[:, np.newaxis, np.newaxis] * np.eye(n_angles)
    try:
        np.linalg.cholesky(excess)
    except np.linalg.LinAlgError:
        loose = np.flatnonzero(np.linalg.eigvalsh(excess)[:, 0] <= 0)
        raise DegenerateShapeError(
            f"Shape {point.shapes.format_names(loose)} can be turned without moving away from the "
            f"others: the landmarks it shares with them lie on one {'point' if d == 2 else 'line'},"
            " or fit equally well in several directions. Drop such shapes, or add landmarks."
        ) from None
