r"""Rigid generalised Procrustes analysis with missing landmarks: a problem in the reference alone.

The error is measured in the datum space,

.. math:: \sum_{ij} \gamma_{ij} \lVert D_i[j] - (S[j] A_i + a_i) \rVert^2,
   \qquad A_i = s_i R_i,

with all :math:`s_i = 1` for rigid motions and :math:`\gamma_{ij} = 0` for a missing landmark. Given
S, the best motion of each shape is one small singular value decomposition; what remains is a
function of the reference (:mod:`defgpa.solvers.reference_cost`), minimised by Newton steps from a
closed-form start until its gradient vanishes.

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
from defgpa.procrustes import MIN_MARGIN, RIGID, Motions
from defgpa.solvers.datum_space import (
    CentredShapes,
    DatumSpaceFit,
    build_fit,
    estimate_complete_sizes,
)
from defgpa.solvers.reference_cost import MotionMaps, ReferencePoint, compute_stiffness
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
        That of the points, where it is known already.
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
    empty = np.flatnonzero(~(shapes.squared_sizes > shapes.rounding**2))
    if len(empty):
        raise DegenerateShapeError(
            f"Shape {shapes.format_names(empty)} has one visible landmark only, or several on "
            "one point: it has no direction. Drop such shapes, or add landmarks."
        )
    family = MotionMaps(motions)
    first = find_start(points, shapes, motions) if start is None else start.T
    point, iterations = minimise(ReferencePoint.from_reference(shapes, family, first))
    correlations = np.einsum("nab,nab->n", point.maps, point.cross) / point.max_moments
    disagreement = 1.0 - correlations @ correlations / len(points)
    if disagreement > (_UNSURE_IF_MIRRORED if motions.reflections else _UNSURE):
        for further in find_further_starts(shapes, motions):
            candidate, more = minimise(ReferencePoint.from_reference(shapes, family, further))
            if candidate.cost < point.cost - _SAME_COST * point.cost_scale:
                point, iterations = candidate, more
    _require_rotations(point)
    # turned like the first shape, and of the mean size of the shapes where sizes are free
    squared_scales = (point.maps**2).sum(axis=(1, 2)) / points.shape[2]
    turn = point.maps[0].T / np.sqrt(squared_scales[0])
    S, maps = turn @ point.reference, turn @ point.maps
    if motions.scaling:
        factor = _measure_mean_size(shapes, S, squared_scales) / np.linalg.norm(S)
        S, maps = factor * S, maps / factor
    return build_fit(shapes, S, maps, iterations, point.relative_gradient)


def _require_rotations(point: ReferencePoint) -> None:
    """Raise a DegenerateShapeError that names the shapes whose rotation is open at the optimum.

    The rotation is determined when the curvature of the cost along every small turn stands out of
    rounding.
    """
    shapes, stiffness = point.shapes, compute_stiffness(point.maps, point.cross)
    rounding = shapes.rounding / np.sqrt(shapes.squared_sizes)
    limits = point.max_moments * np.maximum(rounding, MIN_MARGIN)
    # a number is its eigenvalue
    least = stiffness[..., 0] if stiffness.shape[1] == 1 else np.linalg.eigvalsh(stiffness)
    loose = np.flatnonzero(~(least[:, 0] > limits))
    if len(loose):
        raise DegenerateShapeError(
            f"Shape {shapes.format_names(loose)} can be turned without moving away from the "
            "others: the landmarks it shares with them lie on one "
            f"{'point' if stiffness.shape[1] == 1 else 'line'}, or fit equally well in several "
            "directions. Drop such shapes, or add landmarks."
        )


def _measure_mean_size(shapes: CentredShapes, S: Array, squared_scales: Array) -> float:
    """Compute the mean size of shapes, completed by the images of the reference S (d, m).

    A shape counts by the mean weight of its landmarks.
    """
    sizes = np.sqrt(shapes.squared_sizes)
    if shapes.weights is None:
        return float(sizes.sum() / len(sizes))
    # a landmark of less weight than others of its shape is in part where the reference has it
    largest = shapes.weights.max(axis=1)
    relative = shapes.weights / largest[:, np.newaxis]
    sizes = estimate_complete_sizes(shapes.squared_sizes / largest, relative, S.T, squared_scales)
    return float(np.average(sizes, weights=shapes.totals / (shapes.weights > 0).sum(axis=1)))
