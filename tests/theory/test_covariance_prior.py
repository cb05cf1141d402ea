"""How large and in what proportions: the prior on the covariance of the reference."""

import json

import numpy as np
import pytest

from defgpa import DefGPA, DegenerateShapeError, Shapes
from defgpa.geometry import measure_geometry
from defgpa.solvers.covariance_prior import (
    LocalParts,
    complete_by_pairs,
    compute_common_eigenvalues,
    covariance_prior,
)
from support import EXACT, LIMIT, ORACLE, PARITY, moved, oracle_points, smooth_family

DIMS = pytest.mark.parametrize("d", [2, 3])


def prior(points, **ways):
    shapes = Shapes(points)
    return covariance_prior(measure_geometry(shapes.points, shapes.visible), shapes.names, **ways)


def scaled_copies(d, n=8, m=40, missing=0.0, seed=0):
    """Copies of one shape, turned, moved and scaled, with holes; that shape; and the scales."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(m, d)) * np.linspace(3, 1, d)
    scales = rng.uniform(0.5, 2.0, size=n)
    copies = moved(scales[:, None, None] * base, seed)
    copies[rng.random((n, m)) < missing] = np.nan
    return copies, base, scales


def extents(shape):
    return np.linalg.svd(shape - shape.mean(axis=0), compute_uv=False)


@DIMS
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scaled_copies_give_their_proportions_at_their_mean_size(d, missing):
    copies, base, scales = scaled_copies(d, missing=missing)
    np.testing.assert_allclose(np.sqrt(prior(copies)), scales.mean() * extents(base), **EXACT)


@DIMS
def test_mirrored_copies_count_like_the_others(d):
    copies, base, scales = scaled_copies(d, missing=0.3)
    copies[::2, :, 0] *= -1
    np.testing.assert_allclose(np.sqrt(prior(copies)), scales.mean() * extents(base), **EXACT)


def test_the_prior_is_algorithm_1_of_the_paper(full_shapes):
    """Unit singular values side by side, their leading left vector, times the mean length."""
    roots = np.stack([extents(shape) for shape in full_shapes], axis=1)
    lengths = np.linalg.norm(roots, axis=0)
    left, _, _ = np.linalg.svd(roots / lengths)
    expected = np.abs(left[:, 0]) * lengths.mean()
    np.testing.assert_allclose(np.sqrt(prior(full_shapes.points)), expected, **EXACT)
    assert (np.diff(prior(full_shapes.points)) < 0).all()


def test_the_mean_of_lengths_is_not_the_mean_of_squares():
    """Two shapes of sizes 1 and 3 have a reference of size 2, not √5."""
    roots = np.array([[0.8, 0.6], [2.4, 1.8]])
    np.testing.assert_allclose(
        np.sqrt(compute_common_eigenvalues(roots, np.ones(len(roots)))), [1.6, 1.2], **EXACT
    )


def test_the_partial_set_of_the_authors_has_the_right_prior():
    """Their own is 4 % too large: it adds translations for landmarks a shape does not see."""
    expected = json.loads((ORACLE / "syn2d_partial" / "prior_variants.json").read_text())
    roots = np.sqrt(prior(oracle_points("syn2d_partial")))[::-1]
    np.testing.assert_allclose(roots, expected["sqrt_lambda_translation_masked"], **PARITY)
    published = np.array(expected["sqrt_lambda_as_published"])
    assert (np.abs(roots / published - 1) > 0.03).all()


def test_the_prior_does_not_depend_on_where_the_shapes_lie(shapes):
    """Which is what tells the right completion from the published one."""
    np.testing.assert_allclose(prior(moved(shapes.points, far=1e3)), prior(shapes.points), **EXACT)


def in_place(points):
    """The shapes completed, each where it lies."""
    (completed,) = complete_by_pairs(LocalParts([points])).parts
    return completed


@DIMS
def test_completion_follows_its_formula(d):
    """Σ_k γ_kj (s R D_k[j] + t) / Σ_k γ_kj, pair by pair."""
    points = smooth_family(seed=d, n=5, m=30, d=d, missing=0.2)
    shapes = Shapes(points)
    result = in_place(points)
    visible = shapes.visible
    np.testing.assert_allclose(result[visible], points[visible], **EXACT)
    for i, j in np.argwhere(~shapes.visible):
        estimates = []
        for k in np.flatnonzero(shapes.visible[:, j]):
            in_both = shapes.visible[i] & shapes.visible[k]
            estimates.append(similarity(points[k][in_both], points[i][in_both])(points[k, j]))
        np.testing.assert_allclose(result[i, j], np.mean(estimates, axis=0), **EXACT)


def similarity(source, target):
    """The best similarity, reflections allowed."""
    source_mean, target_mean = source.mean(axis=0), target.mean(axis=0)
    left, values, right = np.linalg.svd((source - source_mean).T @ (target - target_mean))
    matrix = values.sum() / np.sum((source - source_mean) ** 2) * left @ right
    return lambda point: (point - source_mean) @ matrix + target_mean


def test_completion_is_a_guess_that_moves_with_each_shape(shapes):
    completed = in_place(shapes.points)
    points = moved(shapes.points, seed=4)
    images = in_place(points)
    for a, b, c, d in zip(completed, images, shapes.points, points, strict=True):
        visible = ~np.isnan(c[:, 0])
        np.testing.assert_allclose(similarity(c[visible], d[visible])(a), b, **EXACT)


@DIMS
@pytest.mark.parametrize("ways", [{}, {"paired": 1}], ids=["pairs", "through one"])
def test_completion_chains_where_two_shapes_do_not_meet(d, ways):
    """The first and the last shape share nothing: what lies between them carries it over."""
    copies, base, scales = scaled_copies(d, n=4, m=40)
    visible = np.zeros((4, 40), dtype=bool)
    for i in range(4):
        visible[i, 8 * i : 8 * i + 16] = True
    copies[~visible] = np.nan
    roots = np.sqrt(prior(copies, **ways))
    np.testing.assert_allclose(roots, scales.mean() * extents(base), **EXACT)


@DIMS
def test_completion_chains_through_collinear_links(d):
    """A pair whose common landmarks lie on a line says nothing; others speak for it."""
    copies, base, scales = scaled_copies(d, n=4, m=40)
    base[:6] = np.outer(np.linspace(-2, 2, 6), np.arange(1.0, d + 1))
    copies = moved(scales[:, None, None] * base, 7)
    copies[0, 6:20] = np.nan
    copies[1, 20:] = np.nan  # shares only the collinear six with the first
    np.testing.assert_allclose(np.sqrt(prior(copies)), scales.mean() * extents(base), **EXACT)


def test_three_common_landmarks_in_space_leave_the_side_open_and_do_not_count():
    """They lie in a plane, and a mirrored similarity fits them as well: d + 1 are needed."""
    copies, base, scales = scaled_copies(3, n=7, m=45)
    visible = np.zeros((7, 45), dtype=bool)
    visible[:, :3] = visible[0] = True
    for i in range(1, 7):
        visible[i, 3 + 7 * (i - 1) : 3 + 7 * i] = True
    copies[~visible] = np.nan
    np.testing.assert_allclose(np.sqrt(prior(copies)), scales.mean() * extents(base), **EXACT)


def test_a_shape_that_meets_the_others_on_a_line_only_is_named():
    copies, base, scales = scaled_copies(2, n=4, m=40)
    base[:6] = np.outer(np.linspace(-2, 2, 6), [1.0, 2.0])
    copies = moved(scales[:, None, None] * base, 7)
    copies[0, 9:] = np.nan  # its last three are not on the line, but nobody else sees them
    copies[1:, 6:9] = np.nan
    with pytest.raises(
        DegenerateShapeError, match=r"'shape_1'.*'shape_4'.*collinear.*proportions="
    ):
        prior(copies)  # nor can the three be carried to the others


class TestManyShapes:
    """Beyond some shapes, one average carried to all instead of n² pairs."""

    @DIMS
    def test_scaled_copies_are_still_exact(self, d):
        n = 140
        copies, base, scales = scaled_copies(d, n=n, missing=0.3)
        np.testing.assert_allclose(np.sqrt(prior(copies)), scales.mean() * extents(base), **EXACT)

    @DIMS
    def test_completion_through_one_shape_agrees_closely_with_the_pairs(self, d):
        points = smooth_family(seed=3, n=40, m=40, d=d, missing=0.25)
        pairs = prior(points)
        through_one = prior(points, paired=1)
        # both are first guesses: they differ by a fraction of the deformation, here 15 %
        np.testing.assert_allclose(through_one, pairs, rtol=0.01)
        assert np.abs(through_one / pairs - 1).max() > LIMIT["rtol"]

    @DIMS
    def test_full_shapes_need_no_completion(self, d):
        points = smooth_family(seed=3, n=20, d=d)
        pairs = prior(points)
        np.testing.assert_array_equal(prior(points, paired=1), pairs)

    @DIMS
    def test_groups_of_shapes_change_nothing(self, d):
        """The most complete shape of all groups is the one that all others go onto."""
        points = smooth_family(seed=3, n=20, m=30, d=d, missing=0.25)
        together = prior(points, paired=1)
        np.testing.assert_allclose(prior(points, paired=1, at_a_time=6), together, **EXACT)


def test_eigenvalues_of_a_fit_with_the_prior_are_those_of_the_prior(shapes):
    estimated = DefGPA(proportions="prior").fit(shapes).alignment_
    np.testing.assert_array_equal(estimated.eigenvalues, prior(shapes.points))
