r"""Affine Procrustes analysis in the datum space is a low-rank factorisation.

The error is measured where the landmarks were,

.. math:: \sum_i \sum_{j \text{ seen}} \lVert D_i[j] - (S[j] A_i + a_i) \rVert^2 .

When every shape sees everything, centring removes the translations, and the best
:math:`S\,[A_1 … A_n]` of rank d is the truncated singular value decomposition of
:math:`[D_1 … D_n]`. With holes there is no closed form. But given :math:`S` each shape is a linear
regression,

.. math:: A_i = (S^\top C_i S)^{-1} S^\top C_i D_i,

with :math:`C_i` the centring of what shape i sees, and what is left is a smooth function of the
columns of S: it is descended by second-order steps (variable projection) from a closed-form start,
the directions that are best explained by all shapes, each fitted on what it sees.

Only the span of S and the constant counts. Any affine change of the reference, undone in the
maps, costs the same, so a frame has to be chosen: `in_frame_of` one shape, as in the published
experiments, or `balanced`, which favours none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from defgpa._arrays import Array, inverse_root, one_blas_thread
from defgpa.errors import DegenerateShapeError
from defgpa.solvers.datum.affine_cost import Span
from defgpa.solvers.datum.fit import CentredShapes, DatumSpaceFit, fit_in_datum_space, inverted
from defgpa.solvers.datum.trust_region import descend

_FLAT = 1e-7  # thickness of a shape, relative to its length, that no affine map can rely on


def affine_gpa(points: Array, names: Sequence[str] = (), dense_up_to: int = 1500) -> DatumSpaceFit:
    """The best reference and one affine map per shape, for the datum-space cost.

    Parameters
    ----------
    points : array (n, m, d)
        Shapes, with NaN for landmarks not seen.
    names : sequence of n str, optional
        What errors call the shapes; shape_1, shape_2, … by default.
    dense_up_to : int
        The size of an eigenproblem that is still solved whole.

    Returns
    -------
    DatumSpaceFit
        In the affine frame of the first shape: its map is the identity. `balanced` and
        `in_frame_of` tell the same solution in other frames.

    Raises
    ------
    DegenerateShapeError
        When what a shape sees lies in a plane (in 2-D: on a line), so that no affine map takes it
        to the reference.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=(9, 2))
    >>> shapes = np.stack([base @ rng.normal(size=(2, 2)) + rng.normal(size=2) for _ in range(4)])
    >>> shapes[1, :3] = shapes[2, 5:] = np.nan
    >>> fit = affine_gpa(shapes)
    >>> bool(fit.rmse_datum < 1e-9)
    True
    >>> bool(np.allclose(fit.reference, shapes[0]))
    True
    """
    shapes = CentredShapes.of(points, names)
    _require_extended(shapes)
    if shapes.visible is None:
        axes = _leading_rows(shapes.rows, shapes.shape[2], dense_up_to)
        span, iterations = Span.at(shapes, axes), 0
    else:
        start = _start(shapes, dense_up_to)
        with one_blas_thread:  # products this thin gain nothing from a second thread
            span, iterations = descend(Span.at(shapes, start))
    _require_invertible(span.maps, shapes)
    back = inverted(span.maps)
    fit = fit_in_datum_space(shapes, span.reference, span.maps, back, iterations, span.slope)
    return in_frame_of(fit, 0)


def in_frame_of(fit: DatumSpaceFit, shape: int) -> DatumSpaceFit:
    """The same affine solution in the affine frame of one shape: its map is the identity.

    This is how the published figures are to be read. Errors in the reference space, and the
    cross-validation error, then depend on that shape; those in the datum space do not.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = np.random.default_rng(0).normal(size=(4, 9, 2))
    >>> fit = in_frame_of(affine_gpa(shapes), 2)
    >>> fit.matrices[2].round(9) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    back = inverted(fit.matrices[shape])
    return _changed(fit, back, -fit.offsets[shape] @ back)


def balanced(fit: DatumSpaceFit) -> DatumSpaceFit:
    r"""The same affine solution in the frame that favours no shape.

    The maps :math:`A_i` from the reference into the shapes are made as rigid as they can be
    together, :math:`\tfrac1n \sum_i A_i A_i^\top = I`, so that lengths in the reference are lengths
    in the shapes, on average; the reference is centred, with its longest axis first. Errors in the
    two spaces are then comparable, whatever the first shape looks like.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = np.random.default_rng(0).normal(size=(4, 9, 2))
    >>> A = np.linalg.inv(balanced(affine_gpa(shapes)).matrices)
    >>> np.mean(A @ A.transpose(0, 2, 1), axis=0).round(9) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    A = inverted(fit.matrices)
    metric = np.mean(A @ A.mT, axis=0)
    G = np.linalg.cholesky(metric)
    centred = (fit.reference - fit.reference.mean(axis=0)) @ G
    G = G @ _principal_axes(centred, G, fit.matrices)
    return _changed(fit, G, -fit.reference.mean(axis=0) @ G)


def _changed(fit: DatumSpaceFit, linear: Array, offset: Array) -> DatumSpaceFit:
    """The reference moved by x ↦ x @ linear + offset, and the maps with it."""
    return replace(
        fit,
        reference=fit.reference @ linear + offset,
        matrices=fit.matrices @ linear,
        offsets=fit.offsets @ linear + offset,
    )


def _principal_axes(centred: Array, G: Array, matrices: Array) -> Array:
    """(d, d): the axes of the reference, the longest first, on the side most shapes are on."""
    axes = np.linalg.svd(centred, full_matrices=False)[2].T
    # the sign of an axis is free: the landmark farthest along it is made positive
    along = centred @ axes
    axes = axes * np.sign(along[np.abs(along).argmax(axis=0), np.arange(len(axes))])
    if np.sign(np.linalg.det(matrices @ (G @ axes))).sum() < 0:
        axes[:, -1] *= -1
    return axes


def _start(shapes: CentredShapes, dense_up_to: int) -> Array:
    r"""(d, m): the directions best explained by affine images of all shapes.

    With :math:`\Pi_i` the projection onto the columns of :math:`[D_i\ 1]`, it maximises
    :math:`\sum_i \lVert \Pi_i x \rVert^2 / \sum_j c_j x_j^2`, with c_j the views of landmark j: the
    constant comes first, with the value 1, then the reference.
    """
    assert shapes.visible is not None
    n, m, d = shapes.shape
    stack = shapes.rows.reshape(n, d, m)
    whitened = inverse_root(stack @ stack.mT, 0.0).mT @ stack
    constants = shapes.visible / np.sqrt(shapes.counts)[:, np.newaxis]
    views = shapes.visible.sum(axis=0)
    basis = np.concatenate([whitened.reshape(n * d, m), constants]) / np.sqrt(views)
    # the constant direction √c is known, and its share is taken out instead of searched for
    known = np.sqrt(views / views.sum())
    basis -= np.outer(basis @ known, known)
    return _leading_rows(basis, d, dense_up_to) / np.sqrt(views)


def _leading_rows(rows: Array, count: int, dense_up_to: int) -> Array:
    """(count, m): the leading right singular vectors of a (q, m) matrix, the longest first."""
    q, m = rows.shape
    if min(q, m) > dense_up_to:
        operator = LinearOperator((m, m), matvec=lambda x: rows.T @ (rows @ x), dtype=np.float64)
        vectors = eigsh(operator, k=count, v0=np.ones(m), which="LA")[1]
    elif m <= q:
        vectors = eigh(rows.T @ rows, subset_by_index=(m - count, m - 1))[1]
    else:
        vectors = rows.T @ eigh(rows @ rows.T, subset_by_index=(q - count, q - 1))[1]
    return _refined(rows, vectors[:, ::-1])


def _refined(rows: Array, vectors: Array) -> Array:
    """One round of subspace iteration: a Gram matrix knows small axes to half the digits only."""
    Q = np.linalg.qr(rows.T @ (rows @ vectors))[0]
    _, _, axes = np.linalg.svd(rows @ Q, full_matrices=False)
    return np.ascontiguousarray((Q @ axes.T).T)


def _require_extended(shapes: CentredShapes) -> None:
    """A DegenerateShapeError that names shapes too flat for an affine map."""
    n, _, d = shapes.shape
    stack = shapes.rows.reshape(n, d, -1)
    values = np.linalg.eigvalsh(stack @ stack.mT)
    flat = np.flatnonzero(~(values[:, 0] > _FLAT**2 * values[:, -1]) | (shapes.counts <= d))
    if len(flat):
        raise DegenerateShapeError(
            f"Shape {shapes.named(flat)} sees {int(shapes.counts[flat[0]])} landmarks, which lie "
            f"{'on one line' if d == 2 else 'in one plane'} or nearly so; an affine map in {d}-D "
            f"needs at least {d + 1} that do not. Drop such shapes, or use a rigid model."
        )


def _require_invertible(maps: Array, shapes: CentredShapes) -> None:
    """A DegenerateShapeError that names shapes onto which the reference collapses."""
    values = np.linalg.svd(maps, compute_uv=False)
    lost = np.flatnonzero(~(values[:, -1] > _FLAT * values[:, 0]))
    if len(lost):
        raise DegenerateShapeError(
            f"The best affine map of the reference onto shape {shapes.named(lost)} flattens it, "
            "so that there is no way back. The shape does not fit the others; drop it."
        )
