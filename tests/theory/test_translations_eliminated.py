"""Affine alignment of full shapes is the classical one of centred shapes."""

import numpy as np

from defgpa import Affine, DefGPA, Shapes
from support import EXACT, assert_same_shape, cost_of, smooth_family


def centred(shapes):
    return shapes.points - np.nanmean(shapes.points, axis=1, keepdims=True)


def classical(shapes):
    """Σ D̄ᵢ (D̄ᵢᵀ D̄ᵢ)⁻¹ D̄ᵢᵀ."""
    return sum(shape @ np.linalg.solve(shape.T @ shape, shape.T) for shape in centred(shapes))


def hat_matrices(shapes):
    """Qᵢ of the affine maps, translations included."""
    for shape in shapes.points:
        design = np.column_stack([shape, np.ones(len(shape))])
        yield design @ np.linalg.solve(design.T @ design, design.T)


def test_the_cost_of_full_shapes_is_n_minus_the_sum_of_their_hat_matrices(full_shapes):
    n, m = full_shapes.n_shapes, full_shapes.n_landmarks
    expected = n * np.eye(m) - sum(hat_matrices(full_shapes))
    np.testing.assert_allclose(cost_of(full_shapes, Affine()), expected, **EXACT)


def test_the_reference_is_made_of_the_top_eigenvectors_of_the_classical_matrix(full_shapes):
    result = DefGPA(Affine(), proportions="prior").fit(full_shapes).alignment_
    values, vectors = np.linalg.eigh(classical(full_shapes))
    top = vectors[:, ::-1][:, : full_shapes.n_dims]
    expected = top * np.sqrt(result.eigenvalues)
    expected *= np.sign(np.sum(expected * result.reference, axis=0))
    assert_same_shape(result.reference, expected)
    n = full_shapes.n_shapes
    np.testing.assert_allclose(
        result.diagnostics.spectrum[: full_shapes.n_dims],
        n - values[::-1][: full_shapes.n_dims],
        **EXACT,
    )


def test_centring_partial_shapes_first_is_not_the_same():
    """The counter-example: shapes that see different landmarks have no common centre."""
    shapes = Shapes(smooth_family(seed=2, missing=0.3))
    filled = np.where(shapes.visible[..., None], centred(shapes), 0.0)
    matrix = sum(shape @ np.linalg.solve(shape.T @ shape, shape.T) for shape in filled)
    _, vectors = np.linalg.eigh(np.diag(shapes.views.astype(float)) - matrix)
    reference = DefGPA(Affine()).fit(shapes).reference_
    axes = reference / np.linalg.norm(reference, axis=0)
    overlap = np.linalg.svd(vectors[:, :2].T @ axes, compute_uv=False)
    assert overlap.min() < 1 - 1e-4
