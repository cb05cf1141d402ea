"""The constants the theorems do not see, by value."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from defgpa import Affine, DefGPA, ExactCentering, SoftCentering, ThinPlateSpline, Warp
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from support import EXACT, cheapest_axes, cost_of, rotation, visible_parts

DIMS = pytest.mark.parametrize("d", [2, 3])


def kernel(a, b):
    """r² log r² in 2-D, −r in 3-D."""
    squared = cdist(a, b, "sqeuclidean")
    return xlogy(squared, squared) if a.shape[1] == 2 else -np.sqrt(squared)


def paper_hat(points, controls, theta):
    """B (BᵀB + 8π θ p Ē)⁻¹ Bᵀ in the letters of the paper: bordered inverse and bending matrix."""
    inverse = np.linalg.inv(kernel(controls, controls))
    C = np.column_stack([controls, np.ones(len(controls))])
    affine = np.linalg.solve(C.T @ inverse @ C, C.T @ inverse)
    bending = inverse - inverse @ C @ affine
    features = kernel(points, controls) @ bending
    features += np.column_stack([points, np.ones(len(points))]) @ affine
    normal = features.T @ features + 8 * np.pi * theta * len(points) * bending
    return features @ np.linalg.solve(normal, features.T)


@pytest.mark.parametrize("theta", [0.01, 1.0])
def test_the_cost_is_that_of_the_papers_formulas_with_8_pi_and_the_visible_count(theta, shapes):
    warp = ThinPlateSpline(3, theta=theta)
    expected = np.diag(shapes.views.astype(float))
    for points, visible in visible_parts(shapes):
        expected[np.ix_(visible, visible)] -= paper_hat(
            points, warp.basis(points).control_points, theta
        )
    np.testing.assert_allclose(cost_of(shapes, warp), expected, **EXACT)


@DIMS
@pytest.mark.parametrize("p", [31, 62])
def test_a_spline_is_charged_8_pi_theta_p_times_its_bending(d, p, rng):
    points, controls = rng.normal(size=(p, d)), rng.normal(size=(8, d))
    images = rng.normal(size=(8, d))
    basis = ThinPlateSpline(control_points=controls, theta=0.3).basis(points)
    weights = np.linalg.solve(basis.features(controls), images)

    C = np.column_stack([controls, np.ones(8)])
    zero = np.zeros((d + 1, d + 1))
    bordered = np.block([[kernel(controls, controls), C], [C.T, zero]])
    w = np.linalg.solve(bordered, np.vstack([images, np.zeros((d + 1, d))]))[:8]
    bending = np.sum(w * (kernel(controls, controls) @ w))
    charged = np.sum(weights * (basis.penalty() @ weights))
    np.testing.assert_allclose(charged, 8 * np.pi * 0.3 * p * bending, **EXACT)


@DIMS
def test_relative_smoothing_is_theta_over_the_size_to_the_four_minus_d(d, rng):
    points = 7 * rng.normal(size=(50, d))
    size = np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1)))
    relative = ThinPlateSpline(3, smoothing=0.02).basis(points)
    absolute = ThinPlateSpline(3, theta=0.02 * size ** (4 - d)).basis(points)
    np.testing.assert_allclose(relative.penalty(), absolute.penalty(), **EXACT)


def test_the_defaults_are_five_points_and_a_thousandth(shapes):
    expected = ThinPlateSpline(points_per_axis=5, smoothing=1e-3)
    np.testing.assert_array_equal(cost_of(shapes, ThinPlateSpline()), cost_of(shapes, expected))
    np.testing.assert_array_equal(
        DefGPA().fit(shapes).reference_, DefGPA(expected).fit(shapes).reference_
    )


@DIMS
def test_the_internal_ridge_stands_on_the_diagonal_of_the_kernel_matrix(d, rng):
    """In the shape's own units: of RMS radius 1 about the origin, they are those of the data."""
    points = rng.normal(size=(40, d))
    points -= points.mean(axis=0)
    points /= np.sqrt(np.mean(np.sum(points**2, axis=1)))
    controls, images = rng.normal(size=(8, d)), rng.normal(size=(8, d))
    basis = ThinPlateSpline(control_points=controls, theta=0.3, ridge=0.4).basis(points)

    C = np.column_stack([controls, np.ones(8)])
    softened = kernel(controls, controls) + 0.4 * np.eye(8)
    bordered = np.block([[softened, C], [C.T, np.zeros((d + 1, d + 1))]])
    solved = np.linalg.solve(bordered, np.vstack([images, np.zeros((d + 1, d))]))
    columns = np.column_stack([kernel(points, controls), points, np.ones(40)])
    expected = columns @ solved
    weights = np.linalg.lstsq(basis.features(points), expected, rcond=None)[0]
    np.testing.assert_allclose(Warp(basis, weights)(points), expected, **EXACT)
    charged = np.sum(weights * (basis.penalty() @ weights))
    bending = np.sum(solved[:8] * (softened @ solved[:8]))
    np.testing.assert_allclose(charged, 8 * np.pi * 0.3 * 40 * bending, **EXACT)


@pytest.mark.parametrize(
    ("sides", "counts"),
    [((8, 4), (3, 3)), ((8, 4), (5, 2)), ((9, 6, 3), (2, 2, 2)), ((9, 6, 3), (4, 3, 2))],
)
def test_control_points_stand_inside_the_principal_box_at_k_over_k_plus_one(sides, counts, rng):
    """A box with its corners, turned and moved: its own axes are the principal ones."""
    d = len(sides)
    corners = np.array(np.meshgrid(*[[0, side] for side in sides], indexing="ij"))
    inside = rng.uniform(0.3, 0.7, size=(5, d)) * sides
    mirrored = sides - inside  # keeps the centroid in the middle
    spread = np.vstack([corners.reshape(d, -1).T] * 20 + [inside, mirrored])
    turn, shift = rotation(rng, d), rng.normal(size=d)
    steps = [np.arange(1, k + 1) * side / (k + 1) for k, side in zip(counts, sides, strict=True)]
    expected = np.array(np.meshgrid(*steps, indexing="ij")).reshape(d, -1).T

    basis = ThinPlateSpline(counts).basis(spread @ turn + shift)
    result = (basis.control_points - shift) @ turn.T
    assert len(result) == np.prod(counts)
    # the few points inside tilt the principal axes by a little, known to 1 %
    nearest = cdist(result, expected).min(axis=1)
    assert nearest.max() < 0.02 * sides[0]
    assert cdist(result, expected).min(axis=0).max() < 0.02 * sides[0]


@DIMS
def test_control_points_of_points_in_their_own_axes_stand_there_exactly(d, rng):
    sides = np.array([9.0, 6.0, 3.0])[:d]
    points = np.array(np.meshgrid(*[[0, side] for side in sides], indexing="ij"))
    points = points.reshape(d, -1).T
    result = ThinPlateSpline(3).basis(points).control_points
    steps = [np.array([0.25, 0.5, 0.75]) * side for side in sides]
    expected = np.array(np.meshgrid(*steps, indexing="ij")).reshape(d, -1).T
    np.testing.assert_allclose(cdist(result, expected).min(axis=0), 0, **EXACT)
    np.testing.assert_allclose(cdist(result, expected).min(axis=1), 0, **EXACT)


def test_control_points_ignore_missing_landmarks(shapes):
    bases = ThinPlateSpline(3).bases(
        measure_geometry(np.nan_to_num(shapes.points, nan=99.0), shapes.visible)
    )
    for i, (points, _) in enumerate(visible_parts(shapes)):
        alone = ThinPlateSpline(3).basis(points).control_points
        # principal axes are known up to their sign: the points are, as a set
        gap = cdist(bases[i].control_points, alone)
        np.testing.assert_allclose(gap.min(axis=0), 0, **EXACT)
        np.testing.assert_allclose(gap.min(axis=1), 0, **EXACT)


def test_soft_centering_adds_nu_to_every_entry(shapes):
    cost = build_cost(measure_geometry(shapes.points, shapes.visible), Affine())
    for nu, expected in ((None, shapes.n_shapes / shapes.n_landmarks), (0.3, 0.3)):
        added = SoftCentering(nu).apply(cost).dense() - cost.dense()
        np.testing.assert_allclose(added, expected, **EXACT)


def test_exact_centering_lifts_the_constant_vector_above_the_spectrum(shapes):
    cost = build_cost(measure_geometry(shapes.points, shapes.visible), Affine())
    lifted = ExactCentering().apply(cost).dense() @ np.ones(shapes.n_landmarks)
    np.testing.assert_allclose(lifted, shapes.n_shapes + 1, **EXACT)


def test_every_axis_but_the_first_has_its_heavier_tail_on_the_positive_side(shapes):
    """The first takes what is left: the sign that puts the reference on the side of the shapes."""
    reference = DefGPA().fit(shapes).reference_
    assert (np.sum(reference[:, 1:] ** 3, axis=0) > 0).all()


def test_error_figures_are_per_landmark_over_the_visible_ones(shapes):
    fitted = DefGPA().fit(shapes).alignment_
    squares, back, count = 0.0, 0.0, 0
    for warp, (points, visible) in zip(fitted.warps, visible_parts(shapes), strict=True):
        squares += np.sum((warp(points) - fitted.reference[visible]) ** 2)
        back += np.sum((warp.inverse()(fitted.reference[visible]) - points) ** 2)
        count += len(points)
    np.testing.assert_allclose(fitted.rmse_reference, np.sqrt(squares / count), **EXACT)
    np.testing.assert_allclose(fitted.rmse_datum, np.sqrt(back / count), **EXACT)
    assert fitted.n_counted == count


def test_the_gap_is_relative_to_the_first_eigenvalue_left_out(shapes):
    diagnostics = DefGPA().fit(shapes).alignment_.diagnostics
    d = shapes.n_dims
    expected = (diagnostics.spectrum[d] - diagnostics.spectrum[d - 1]) / diagnostics.spectrum[d]
    np.testing.assert_allclose(diagnostics.gap, expected, **EXACT)
    sigma, _ = cheapest_axes(shapes, ThinPlateSpline())
    np.testing.assert_allclose(diagnostics.spectrum[: d + 1], sigma[: d + 1], **EXACT)
