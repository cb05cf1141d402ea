"""Affine alignment of many shapes, measured where the landmarks were."""

import warnings

import numpy as np
import pytest
from datum_space_support import carry_back, measure_reference_error

from defgpa.errors import DegenerateShapeError
from defgpa.procrustes import fit_motions
from defgpa.solvers.affine import balance_frame, fit_affine, use_frame_of
from defgpa.solvers.datum_space import CentredShapes
from defgpa.solvers.reference_cost import AffineMaps, ReferencePoint
from defgpa.solvers.trust_region import minimise
from support import (
    EXACT,
    PARITY,
    oracle_points,
    read_oracle,
    shared_points,
    smooth_family,
)

SETS = ["syn2d_full", "syn3d_full", "syn2d_partial"]


def affine_copies(base, n, rng):
    d = base.shape[1]
    return base @ (np.eye(d) + 0.4 * rng.normal(size=(n, d, d))) + rng.normal(size=(n, 1, d))


# the numbers others have found


@pytest.mark.parametrize("name", SETS)
def test_reference_equals_that_of_the_published_program(name):
    """Its reference is centred; ours, in the frame of the first shape, lies where that shape is."""
    published = read_oracle(name, "aff_d")
    points = oracle_points(name)
    fit = fit_affine(points)
    np.testing.assert_allclose(fit.rmse_datum, published["rmse_d"], **PARITY)
    np.testing.assert_allclose(measure_reference_error(points, fit), published["rmse_r"], **PARITY)
    centred = fit.reference - fit.reference.mean(axis=0)
    theirs = np.array(published["S"]).T
    np.testing.assert_allclose(centred, theirs - theirs.mean(axis=0), rtol=0, atol=1e-3)


# what makes it the optimum


def test_full_shapes_leave_the_small_singular_values(d):
    points = smooth_family(seed=11, d=d)
    centred = points - points.mean(axis=1, keepdims=True)
    values = np.linalg.svd(np.hstack(list(centred)), compute_uv=False)
    fit = fit_affine(points)
    np.testing.assert_allclose(fit.cost, np.sum(values[d:] ** 2), **EXACT)
    assert fit.iterations == 0


def test_every_map_is_a_regression_on_the_reference(points):
    fit = fit_affine(points)
    for shape, mine in zip(points, carry_back(fit), strict=True):
        visible = ~np.isnan(shape[:, 0])
        regressors = np.column_stack([fit.reference, np.ones(len(shape))])[visible]
        weights, *_ = np.linalg.lstsq(regressors, shape[visible])
        np.testing.assert_allclose(regressors @ weights, mine[visible], **EXACT)


def test_every_landmark_is_a_regression_on_the_maps(points):
    """D_i[j] = S[j] A_i + a_i, solved for S[j] by all shapes that see it."""
    fit = fit_affine(points)
    A = np.linalg.inv(fit.matrices)
    a = -np.squeeze(fit.offsets[:, np.newaxis] @ A, axis=1)
    for j, place in enumerate(fit.reference):
        visible = ~np.isnan(points[:, j, 0])
        stacked_maps = np.hstack(list(A[visible])).T
        solved, *_ = np.linalg.lstsq(stacked_maps, (points[visible, j] - a[visible]).ravel())
        np.testing.assert_allclose(solved, place, **PARITY)


def test_full_shapes_descend_to_the_singular_value_decomposition(d, rng):
    """The way of partial shapes, taken by full ones, ends where the closed form is."""
    points = smooth_family(seed=11, d=d)
    shapes, start = CentredShapes.from_points(points), rng.normal(size=(d, 40))
    point, _ = minimise(ReferencePoint.from_reference(shapes, AffineMaps(), start))
    np.testing.assert_allclose(point.cost, fit_affine(points).cost, **EXACT)


@pytest.mark.parametrize("noise", [0.05, 0.5])
@pytest.mark.parametrize("missing", [0.2, 0.4])
def test_no_random_start_ends_lower(d, noise, missing, rng):
    points = affine_copies(rng.normal(size=(40, d)), 14, rng)
    points += noise * rng.normal(size=points.shape)
    points[rng.random(points.shape[:2]) < missing] = np.nan
    best = fit_affine(points).cost
    shapes = CentredShapes.from_points(points)
    descent, _ = minimise(
        ReferencePoint.from_reference(shapes, AffineMaps(), rng.normal(size=(d, 40)))
    )
    assert best <= descent.cost * (1 + 1e-9)


def test_no_random_start_ends_lower_on_real_shapes(rng):
    points = shared_points("face2d")
    best = fit_affine(points).cost
    shapes = CentredShapes.from_points(points)
    for _ in range(5):
        descent, _ = minimise(
            ReferencePoint.from_reference(shapes, AffineMaps(), rng.normal(size=(2, 68)))
        )
        assert best <= descent.cost * (1 + 1e-9)


# what must not matter


def test_rigid_motions_of_the_shapes_change_no_error(points, rng):
    d = points.shape[2]
    turns, _ = np.linalg.qr(rng.normal(size=(len(points), d, d)))
    moved = points @ turns + rng.normal(size=(len(points), 1, d))
    before, after = balance_frame(fit_affine(points)), balance_frame(fit_affine(moved))
    np.testing.assert_allclose(after.cost, before.cost, **EXACT)
    np.testing.assert_allclose(
        measure_reference_error(moved, after), measure_reference_error(points, before), **PARITY
    )


def test_order_of_shapes_changes_nothing_in_the_balanced_frame(points, rng):
    order = rng.permutation(len(points))
    before, after = balance_frame(fit_affine(points)), balance_frame(fit_affine(points[order]))
    np.testing.assert_allclose(after.reference, before.reference, **PARITY)
    np.testing.assert_allclose(after.matrices, before.matrices[order], **PARITY)


@pytest.mark.parametrize(("n", "m"), [(9, 40), (40, 12)])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_large_eigenproblems_give_the_same_answer(n, m, missing):
    points = smooth_family(seed=12, n=n, m=m, d=3, missing=missing)
    complete = fit_affine(points)
    np.testing.assert_allclose(fit_affine(points, max_dense=5).cost, complete.cost, **EXACT)


# frames


def test_first_shape_keeps_its_place_in_its_own_frame(points):
    fit = fit_affine(points)
    np.testing.assert_allclose(fit.matrices[0], np.eye(points.shape[2]), **EXACT)
    np.testing.assert_allclose(fit.offsets[0], 0, **EXACT)


def test_frames_change_no_distance_in_the_datum_space(points):
    fit = fit_affine(points)
    for framed in (use_frame_of(fit, 3), balance_frame(fit)):
        np.testing.assert_allclose(carry_back(framed), carry_back(fit), **EXACT)
        assert framed.cost == fit.cost


def test_balanced_frame_keeps_lengths_on_average(points):
    fit = balance_frame(fit_affine(points))
    A = np.linalg.inv(fit.matrices)
    visible = np.isfinite(points[..., 0]).sum(axis=1)
    mean = np.average(A @ A.transpose(0, 2, 1), axis=0, weights=visible)
    np.testing.assert_allclose(mean, np.eye(points.shape[2]), **EXACT)


def test_balanced_reference_is_centred_on_its_principal_axes(points):
    reference = balance_frame(fit_affine(points)).reference
    scatter = reference.T @ reference
    np.testing.assert_allclose(reference.sum(axis=0), 0, **EXACT)
    np.testing.assert_allclose(scatter, np.diag(np.diag(scatter)), **EXACT)
    assert (np.diff(np.diag(scatter)) < 0).all()


def test_balanced_frame_takes_the_side_of_most_shapes(points):
    fit = balance_frame(fit_affine(points * np.array([-1] + [1] * (points.shape[2] - 1))))
    assert np.sign(np.linalg.det(fit.matrices)).sum() > 0


def test_a_stretched_first_shape_spoils_its_frame_but_not_the_balanced_one(points):
    """Why the balanced frame is offered: stretch one shape, and its frame counts errors double."""
    stretched = points.copy()
    stretched[0] *= [5.0] + [0.2] * (points.shape[2] - 1)
    fit = fit_affine(stretched)
    spoilt = measure_reference_error(stretched, fit) / measure_reference_error(
        stretched, use_frame_of(fit, 1)
    )
    assert spoilt > 2
    reframed = use_frame_of(fit_affine(np.roll(stretched, 1, axis=0)), 1)
    np.testing.assert_allclose(
        measure_reference_error(stretched, balance_frame(fit)),
        measure_reference_error(np.roll(stretched, 1, axis=0), balance_frame(reframed)),
        **PARITY,
    )


# what must come back


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_affine_copies_are_recovered(d, missing, rng):
    base = rng.normal(size=(40, d))
    points = affine_copies(base, 9, rng)
    complete = points.copy()
    points[rng.random((9, 40)) < missing] = np.nan
    points[0] = complete[0]
    fit = fit_affine(points)
    np.testing.assert_allclose(fit.rmse_datum, 0, atol=1e-8)
    np.testing.assert_allclose(fit.reference, complete[0], **PARITY)
    np.testing.assert_allclose(carry_back(fit), complete, **PARITY)


def test_copies_of_one_shape_come_back_as_it_is_in_the_balanced_frame(d, rng):
    base = rng.normal(size=(30, d))
    turns, _ = np.linalg.qr(rng.normal(size=(6, d, d)))
    turns[np.linalg.det(turns) < 0, :, 0] *= -1
    reference = balance_frame(fit_affine(base @ turns)).reference
    np.testing.assert_allclose(fit_motions(reference, base)(reference), base, **EXACT)


@pytest.mark.parametrize("name", ["tshirt3d", "turtles3d_partial", "guenons3d", "cactus3d"])
def test_real_sets_converge_in_a_few_steps(name):
    fit = fit_affine(shared_points(name))
    assert fit.gradient_norm < 1e-10
    assert fit.iterations <= 10


# what cannot be aligned


@pytest.mark.parametrize("thickness", [0.0, 1e-9])
def test_a_flat_shape_is_named(d, thickness, rng):
    points = smooth_family(seed=9, d=d)
    points[3, :, 0] = 2 * points[3, :, 1] + 5 + thickness * rng.normal(size=40)
    where = "on one line" if d == 2 else "in one plane"
    with pytest.raises(DegenerateShapeError, match=f"'shape_4' .* {where}"):
        fit_affine(points)


def test_a_shape_with_too_few_landmarks_is_named(d):
    points = smooth_family(seed=9, d=d)
    points[3, d:] = np.nan
    with pytest.raises(DegenerateShapeError, match=rf"'shape_4' has {d} visible landmarks"):
        fit_affine(points)


def test_a_shape_that_has_nothing_to_do_with_the_others_is_named(d, rng):
    """The reference is exact for the others, and orthogonal to this one along one direction."""
    base = rng.normal(size=(30, d))
    points = affine_copies(base, 6, rng)
    strange = rng.normal(size=30)
    explained = np.column_stack([base, np.ones(30)])
    strange -= explained @ np.linalg.lstsq(explained, strange)[0]
    points[4, :, 0] = 1e-3 * strange
    with pytest.raises(DegenerateShapeError, match="onto shape 'shape_5' flattens it"):
        fit_affine(points)


def test_shapes_ten_million_times_their_size_away_end_quietly():
    """What rounding of the coordinates leaves of the relative_gradient is no relative_gradient."""
    for seed in range(6):
        points = smooth_family(seed=seed, n=8, m=300, missing=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            actual = fit_affine(points * 1e-3 + np.array([7e4, -3e4]))
        assert actual.converged
        np.testing.assert_allclose(
            actual.rmse_datum, 1e-3 * fit_affine(points).rmse_datum, rtol=1e-3
        )
