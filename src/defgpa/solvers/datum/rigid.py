r"""Rigid Procrustes analysis of many shapes, with holes, is a problem in the rotations alone.

The error is measured in the datum space,

.. math:: \sum_i \sum_{j \text{ seen}} \lVert D_i[j] - (S[j] Z_i^\top + a_i) \rVert^2,
   \qquad Z_i = s_i R_i,

with all :math:`s_i = 1` for rigid motions. Given the :math:`Z_i`, translations and reference
are linear least squares. With :math:`C_i` the centring of what shape i sees, they leave

.. math:: \sum_i \lVert C_i D_i \rVert^2 - \langle B, L^+ B \rangle, \qquad
   B = \sum_i C_i D_i Z_i, \quad L = \sum_i s_i^2 C_i, \quad S = L^+ B,

a smooth function on a product of rotation groups (and scales), descended by second-order steps
:math:`Z_i \exp(\Xi_i)` until its gradient vanishes. Neither its gradient nor its Hessian product
costs more than two passes over the points.

The cost cannot be lowered by shrinking anything: only the product :math:`s_i S` counts. The
overall size of a reference of similarities is therefore free, and set to the mean size of the
shapes (each completed, where it has holes, by its own fit).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa._arrays import Array, one_blas_thread
from defgpa.errors import DegenerateShapeError
from defgpa.frames import Frames
from defgpa.procrustes import LEAST_MARGIN, ORTHOGONAL, RIGID, Motions
from defgpa.solvers.datum.fit import (
    CentredShapes,
    DatumSpaceFit,
    against,
    completed_sizes,
    fit_in_datum_space,
)
from defgpa.solvers.datum.rigid_cost import Algebra, Pose, squared_scales
from defgpa.solvers.datum.starts import first_pose, other_starts
from defgpa.solvers.datum.trust_region import descend


def rigid_gpa(
    points: Array,
    motions: Motions = RIGID,
    names: Sequence[str] = (),
    frames: Frames | None = None,
) -> DatumSpaceFit:
    """The best reference and one motion per shape, for the datum-space cost.

    Parameters
    ----------
    points : array (n, m, d)
        Shapes, d = 2 or 3, with NaN for landmarks not seen.
    motions : Motions
        RIGID, SIMILARITY, or either with reflections.
    names : sequence of n str, optional
        What errors call the shapes; shape_1, shape_2, … by default.
    frames : Frames, optional
        Those of the points, where they are known already.

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
    >>> fit = rigid_gpa(shapes)
    >>> bool(fit.rmse_datum < 1e-12)
    True
    >>> bool(np.allclose(shapes[1, 3:] @ fit.matrices[1] + fit.offsets[1], fit.reference[3:]))
    True
    """
    with one_blas_thread:  # products this thin gain nothing from a second thread
        return _aligned(points, CentredShapes.of(points, names, frames), motions)


def _aligned(points: Array, shapes: CentredShapes, motions: Motions) -> DatumSpaceFit:
    """A closed-form start (more where it is in doubt), a descent, a frame to tell its end in."""
    _require_size(shapes)
    algebra = Algebra.of(motions, shapes.shape[2])
    pose, steps = _descended(shapes, algebra, first_pose(points, shapes, motions), motions)
    # shapes that differ so much may have other minima; any may be on the wrong side of a mirror
    if pose.disagreement > (1e-3 if motions.reflections else 0.05):
        for start in other_starts(shapes, motions):
            other, more = _descended(shapes, algebra, start, motions)
            # lower by less, it is the same place
            if other.cost < pose.cost - 1e-10 * pose.cost_scale:
                pose, steps = other, more
    _require_turned(pose)
    # turned like the first shape: R_1 = I
    R = pose.Z[0] / np.sqrt(squared_scales(pose.Z[:1]))
    Z, S = pose.Z @ R.T, R @ pose.reference
    if motions.scaling:
        Z, S = _at_mean_size(shapes, Z, S)
    inverse = Z / squared_scales(Z)[:, np.newaxis, np.newaxis]
    return fit_in_datum_space(shapes, S, Z.mT, inverse, steps, pose.slope)


def _descended(
    shapes: CentredShapes, algebra: Algebra, start: Array, motions: Motions
) -> tuple[Pose, int]:
    """The end of a descent from motions (n, d, d), and its steps; on the best sides if open."""
    pose, steps = descend(Pose.at(shapes, algebra, start))
    return _on_best_sides(pose, steps) if motions.reflections else (pose, steps)


def _require_size(shapes: CentredShapes) -> None:
    """A DegenerateShapeError that names the shapes that are one point."""
    empty = np.flatnonzero(~(shapes.spreads > shapes.blur**2))
    if len(empty):
        raise DegenerateShapeError(
            f"Shape {shapes.named(empty)} sees one landmark only, or several on one point: it has "
            "no direction. Drop such shapes, or add landmarks."
        )


def _require_turned(pose: Pose) -> None:
    """A DegenerateShapeError that names the shapes whose rotation is open at the optimum.

    The rotation is determined when the torque against every small turn stands out of rounding.
    """
    d = pose.Z.shape[-1]
    p = d * (d - 1) // 2
    rounding = np.maximum(pose.shapes.blur / np.sqrt(pose.shapes.spreads), LEAST_MARGIN)
    least = 2 * pose.levers * rounding
    if p == 1 and (pose.blocks[:, 0, 0] > least).all():
        return
    stiffness = pose.blocks[:, :p, :p] - least[:, np.newaxis, np.newaxis] * np.eye(p)
    try:
        np.linalg.cholesky(stiffness)
    except np.linalg.LinAlgError:
        loose = np.flatnonzero(np.linalg.eigvalsh(stiffness)[:, 0] <= 0)
        raise DegenerateShapeError(
            f"Shape {pose.shapes.named(loose)} can be turned without moving away from the others: "
            f"the landmarks it shares with them lie on one {'point' if d == 2 else 'line'}, or fit "
            "equally well in several directions. Drop such shapes, or add landmarks."
        ) from None


def _on_best_sides(pose: Pose, steps: int) -> tuple[Pose, int]:
    """Mirror the shapes that would fit better so, and descend again, until none would.

    Steps turn shapes but cannot mirror them. Every mirroring lowers the cost, so this ends.
    """
    while True:
        R, margin = ORTHOGONAL.nearest(against(pose.shapes.rows, pose.reference))
        clear = margin > 1e-9 * pose.levers / np.sqrt(pose.weights)
        wrong = clear & (np.linalg.det(R) * np.linalg.det(pose.Z) < 0)
        if not wrong.any():
            return pose, steps
        mirrored = R * np.sqrt(pose.weights)[:, np.newaxis, np.newaxis]
        Z = np.where(wrong[:, np.newaxis, np.newaxis], mirrored, pose.Z)
        pose, more = descend(Pose.at(pose.shapes, pose.algebra, Z))
        steps += more


def _at_mean_size(shapes: CentredShapes, Z: Array, S: Array) -> tuple[Array, Array]:
    """The same solution with the reference as large as the shapes are on average."""
    sizes = np.sqrt(shapes.spreads)
    if shapes.visible is not None:
        sizes = completed_sizes(shapes.spreads, shapes.visible, S.T, squared_scales(Z))
    factor = sizes.mean() / np.linalg.norm(S)
    return Z / factor, S * factor
