r"""Affine generalised Procrustes analysis in the datum space: a low-rank factorisation.

The error is measured in the datum space,

.. math:: \sum_{ij} \gamma_{ij} \lVert D_i[j] - (S[j] A_i + a_i) \rVert^2,

with landmark weights :math:`\gamma_{ij}`, 0 for a missing landmark. If all weights are 1, centring
removes the translations, and the best :math:`S\,[A_1 … A_n]` of rank d is the truncated singular
value decomposition of :math:`[D_1 … D_n]`. Otherwise there is no closed form. But given :math:`S`
each shape is a linear regression,

.. math:: A_i = (S^\top C_i S)^{-1} S^\top C_i D_i,

with :math:`C_i` the weighted centring of shape i, and what remains is a smooth function of the
columns of S: it is minimised by Newton steps (variable projection) from a closed-form start, the
directions that affine images of all shapes explain best.

Only the span of S and the constant counts. Any affine change of the reference, undone in the
maps, costs the same, so a frame has to be chosen: `use_frame_of` one shape, as in the published
experiments, or `balance_frame`, which favours none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from defgpa.arrays import Array, compute_inverse_root
from defgpa.errors import DegenerateShapeError
from defgpa.geometry import Geometry
from defgpa.solvers.datum_space import CentredShapes, DatumSpaceFit, build_fit
from defgpa.solvers.reference_cost import AffineMaps, ReferencePoint
from defgpa.solvers.trust_region import TARGET_GRADIENT, minimise
from defgpa.threads import use_threads

_FLAT = 1e-7  # thickness of a shape, relative to its length, that no affine map can rely on


def fit_affine(
    points: Array,
    names: Sequence[str] = (),
    geometry: Geometry | None = None,
    weights: Array | None = None,
    start: Array | None = None,
    target_gradient: float = TARGET_GRADIENT,
    max_dense: int = 1500,
) -> DatumSpaceFit:
    """Fit a reference and one affine map per shape on the datum-space cost.

    Parameters
    ----------
    points : ndarray of shape (n_shapes, n_landmarks, n_dims)
        Shapes, NaN for missing landmarks.
    names : sequence of str, optional
        Names of the shapes for errors; shape_1, shape_2, … by default.
    geometry : Geometry, optional
        Those of the points, where they are known already.
    weights : ndarray of shape (n_shapes, n_landmarks), optional
        Landmark weights; all 1 by default.
    start : ndarray of shape (n_landmarks, n_dims), optional
        A reference near the best one, of other weights; by default a start in closed form.
    target_gradient : float
        Relative norm of the gradient at which the iteration stops.
    max_dense : int
        The largest size of an eigenproblem that is solved by a dense method.

    Returns
    -------
    DatumSpaceFit
        In the affine frame of the first shape: its map is the identity. `balance_frame` and
        `use_frame_of` express the same solution in other frames.

    Raises
    ------
    DegenerateShapeError
        When the visible landmarks of a shape lie in a plane (in 2-D: on a line), so that no affine
        map takes it to the reference.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=(9, 2))
    >>> shapes = np.stack([base @ rng.normal(size=(2, 2)) + rng.normal(size=2) for _ in range(4)])
    >>> shapes[1, :3] = shapes[2, 5:] = np.nan
    >>> fit = fit_affine(shapes)
    >>> bool(fit.rmse_datum < 1e-9)
    True
    >>> bool(np.allclose(fit.reference, shapes[0]))
    True
    """
    shapes = CentredShapes.from_points(points, names, geometry, weights)
    _require_extent(shapes)
    near = _find_start(shapes, max_dense) if start is None else start.T
    with use_threads(1):  # products this thin gain nothing from a second thread
        point = ReferencePoint.from_reference(shapes, AffineMaps(), near)
        iterations = 0
        if shapes.weights is not None:  # without weights, the start is the answer
            point, iterations = minimise(point, target_gradient)
    values = np.linalg.svd(point.maps, compute_uv=False)
    singular = np.flatnonzero(~(values[:, -1] > _FLAT * values[:, 0]))
    if len(singular):
        raise DegenerateShapeError(
            f"The best affine map of the reference onto shape {shapes.format_names(singular)} "
            "flattens it, so that it has no inverse. The shape does not fit the others; drop it."
        )
    fit = build_fit(shapes, point.reference, point.maps, iterations, point.relative_gradient)
    return use_frame_of(fit, 0)


def use_frame_of(fit: DatumSpaceFit, shape: int) -> DatumSpaceFit:
    """Express an affine solution in the affine frame of one shape: its map is the identity.

    The published figures are in the frame of the first. Errors in the reference space, and the
    cross-validation error, then depend on that shape; those in the datum space do not.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = np.random.default_rng(0).normal(size=(4, 9, 2))
    >>> fit = use_frame_of(fit_affine(shapes), 2)
    >>> fit.matrices[2].round(9) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    inverse = np.linalg.inv(fit.matrices[shape])
    return _apply_affine(fit, inverse, -fit.offsets[shape] @ inverse)


def balance_frame(fit: DatumSpaceFit) -> DatumSpaceFit:
    r"""Express an affine solution in the frame that favours no shape.

    The maps :math:`A_i` from the reference into the shapes are made as rigid as they can be
    together, :math:`\sum_i w_i A_i A_i^\top / \sum_i w_i = I` with the total landmark weights
    :math:`w_i`, so that lengths in the reference are lengths in the shapes, on average; the
    reference is centred, with its longest axis first. Errors in the two spaces are then comparable,
    whatever the first shape looks like.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = np.random.default_rng(0).normal(size=(4, 9, 2))
    >>> A = np.linalg.inv(balance_frame(fit_affine(shapes)).matrices)
    >>> np.mean(A @ A.transpose(0, 2, 1), axis=0).round(9) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    A = np.linalg.inv(fit.matrices)
    metric = np.einsum("i,ikl->kl", fit.totals / fit.totals.sum(), A @ A.mT)
    G = np.linalg.cholesky(metric)
    mean = fit.reference.mean(axis=0)
    centred = (fit.reference - mean) @ G
    axes = np.linalg.svd(centred, full_matrices=False)[2].T
    # the sign of an axis is free: the landmark farthest along it is made positive
    along = centred @ axes
    axes = axes * np.sign(along[np.abs(along).argmax(axis=0), np.arange(len(axes))])
    # and the last one on the side of most shapes
    if np.sign(np.linalg.det(fit.matrices @ (G @ axes))).sum() < 0:
        axes[:, -1] *= -1
    return _apply_affine(fit, G @ axes, -mean @ G @ axes)


def _apply_affine(fit: DatumSpaceFit, linear: Array, offset: Array) -> DatumSpaceFit:
    """Apply x ↦ x @ linear + offset to the reference and the maps onto it."""
    return replace(
        fit,
        reference=fit.reference @ linear + offset,
        matrices=fit.matrices @ linear,
        offsets=fit.offsets @ linear + offset,
    )


def _find_start(shapes: CentredShapes, max_dense: int) -> Array:
    r"""Find the directions (d, m) that affine images of all shapes explain best.

    Without weights they are the leading singular vectors of the shapes. With weights, and with
    :math:`\Pi_i` the projection onto the columns of :math:`[D_i\ 1]` in their metric, they maximise
    :math:`\sum_i \lVert \Pi_i x \rVert^2 / \sum_j c_j x_j^2`, with c_j the total weight of
    landmark j: the constant comes first, with the value 1, then the reference.
    """
    n, d, m = shapes.coordinates.shape
    if shapes.weights is None:
        return _find_leading_rows(shapes.rows, d, max_dense)
    rows = shapes.rows.reshape(n, d, m)
    whitened = compute_inverse_root(rows @ shapes.coordinates.mT, 0.0).mT @ rows
    constants = shapes.weights / np.sqrt(shapes.totals)[:, np.newaxis]
    totals = shapes.weights.sum(axis=0)
    basis = np.concatenate([whitened.reshape(n * d, m), constants]) / np.sqrt(totals)
    # the constant direction √c is projected out instead of searched for
    constant = np.sqrt(totals / totals.sum())
    basis -= np.outer(basis @ constant, constant)
    return _find_leading_rows(basis, d, max_dense) / np.sqrt(totals)


def _find_leading_rows(rows: Array, count: int, max_dense: int) -> Array:
    """Find the leading right singular vectors (count, m) of a (q, m) matrix, the longest first."""
    q, m = rows.shape
    if min(q, m) > max_dense:
        operator = LinearOperator((m, m), matvec=lambda x: rows.T @ (rows @ x), dtype=np.float64)
        vectors = eigsh(operator, k=count, v0=np.ones(m), which="LA")[1]
    elif m <= q:
        vectors = eigh(rows.T @ rows, subset_by_index=(m - count, m - 1))[1]
    else:
        vectors = rows.T @ eigh(rows @ rows.T, subset_by_index=(q - count, q - 1))[1]
    # a subspace iteration, as a Gram matrix has half the digits only
    Q = np.linalg.qr(rows.T @ (rows @ vectors))[0]
    _, _, axes = np.linalg.svd(rows @ Q, full_matrices=False)
    return np.ascontiguousarray((Q @ axes.T).T)


def _require_extent(shapes: CentredShapes) -> None:
    """Raise a DegenerateShapeError that names shapes too flat for an affine map."""
    n, d, m = shapes.coordinates.shape
    eigenvalues = np.linalg.eigvalsh(shapes.rows.reshape(n, d, m) @ shapes.coordinates.mT)
    n_visible = np.full(n, m) if shapes.weights is None else (shapes.weights > 0).sum(axis=1)
    is_flat = ~(eigenvalues[:, 0] > _FLAT**2 * eigenvalues[:, -1]) | (n_visible <= d)
    if is_flat.any():
        flat = np.flatnonzero(is_flat)
        raise DegenerateShapeError(
            f"Shape {shapes.format_names(flat)} has {n_visible[flat[0]]} visible landmarks, which "
            f"lie {'on one line' if d == 2 else 'in one plane'} or nearly so; an affine map in "
            f"{d}-D needs at least {d + 1} that do not. Drop such shapes, or use a rigid model."
        )
