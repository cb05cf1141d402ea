"""The reference by rigidity: it depends on the eigenspace only, and has the shapes' proportions."""

import numpy as np
import pytest

from defgpa import (
    Affine,
    DefGPA,
    DegenerateShapeError,
    EuclideanGPA,
    FreeForm,
    Polynomial,
    RadialBasis,
    ThinPlateSpline,
    cross_validate,
)
from defgpa.diagnostics.findings import Problem
from defgpa.geometry import Moments, compute_moments, measure_geometry
from defgpa.solvers.proportions import find_sides, fit_rigid_proportions, judge_proportions
from support import (
    EXACT,
    assert_same_shape,
    cheapest_axes,
    left_over,
    moved,
    rotation,
    shared_points,
    smooth_family,
    up_to_rigid,
    warned_of,
)

DIMS = pytest.mark.parametrize("d", [2, 3])
FAMILY_OF_WARPS = {
    "affine": Affine(),
    "spline": ThinPlateSpline(points_per_axis=3),
    "radial": RadialBasis(),
    "free form": FreeForm(),
    "polynomial": Polynomial(),
}
every_family = pytest.mark.parametrize("warp", FAMILY_OF_WARPS.values(), ids=FAMILY_OF_WARPS)


def configuration(d, m=40, seed=0):
    """A shape longer than wide."""
    return np.random.default_rng(seed).normal(size=(m, d)) * np.linspace(3, 1, d)


def similar_images(d, n=6, m=40, missing=0.0, seed=0):
    """Similar images of one shape, with holes; that shape; and the sizes of the images."""
    rng = np.random.default_rng(seed)
    base = configuration(d, m, seed)
    scales = rng.uniform(0.5, 2.0, size=n)
    images = moved(scales[:, None, None] * base, seed)
    images[rng.random((n, m)) < missing] = np.nan
    return images, base, scales


def same_up_to_motion(actual, expected, rtol):
    """The same shape and size, wherever it lies."""
    assert_same_shape(up_to_rigid(actual, expected), expected, rtol=rtol)


def procrustes_distance(points, goal):
    """What the best similarity leaves, relative to the size of the goal; either side."""
    mirrored = points * np.r_[-1.0, np.ones(points.shape[1] - 1)]
    return np.sqrt(max(0.0, min(left_over(points, goal), left_over(mirrored, goal))))


def seen_of(points, axes):
    """What shapes with NaN say about axes."""
    geometry = measure_geometry(points, ~np.isnan(points[..., 0]))
    return compute_moments(axes, geometry)


def orthonormal(points):
    """Centred axes that span a configuration."""
    return np.linalg.qr(points - points.mean(axis=0))[0]


class TestSimilarImages:
    @DIMS
    @every_family
    @pytest.mark.parametrize("missing", [0.0, 0.2], ids=["full", "holes"])
    def test_give_their_shape_at_their_mean_size(self, d, warp, missing):
        images, base, scales = similar_images(d, missing=missing)
        alignment = DefGPA(warp).fit(images).alignment_
        same_up_to_motion(alignment.reference, scales.mean() * base, rtol=1e-9)
        assert alignment.diagnostics.similarity_residual < 1e-7
        assert alignment.findings == ()

    @DIMS
    def test_of_any_proportions(self, d):
        """Also of those that the paper's pairing turns: the shortest axis the cheapest to bend."""
        for stretch in (np.ones(d), np.r_[1.0, np.full(d - 1, 20.0)], np.geomspace(1, 100, d)):
            base = configuration(d) * stretch
            alignment = DefGPA().fit(moved(np.stack([base] * 5))).alignment_
            same_up_to_motion(alignment.reference, base, rtol=1e-9)

    @DIMS
    def test_mirrored_ones_keep_their_side_and_do_not_change_the_frame(self, d):
        images, base, scales = similar_images(d, n=7)
        images[[1, 4], :, 0] *= -1
        with warned_of("mirrored", "'shape_2', 'shape_5'"):
            alignment = DefGPA(Affine()).fit(images).alignment_
        same_up_to_motion(alignment.reference, scales.mean() * base, rtol=1e-9)
        np.testing.assert_array_equal(
            alignment.diagnostics.votes < 0, np.isin(np.arange(7), [1, 4])
        )

    @DIMS
    def test_with_as_many_landmarks_as_a_warp_needs(self, d):
        images, base, scales = similar_images(d, m=d + 1)
        alignment = DefGPA(Affine()).fit(images).alignment_
        same_up_to_motion(alignment.reference, scales.mean() * base, rtol=1e-9)

    def test_flat_in_space(self):
        images, base, scales = similar_images(2)
        flat = np.zeros((*images.shape[:2], 3))
        flat[..., :2] = images
        with warned_of("lie in a plane"):
            alignment = DefGPA(Affine()).fit(moved(flat, seed=3)).alignment_
        moved_points = np.column_stack([scales.mean() * base, np.zeros(len(base))])
        same_up_to_motion(alignment.reference, moved_points, rtol=1e-9)
        np.testing.assert_allclose(
            alignment.eigenvalues[2], 0.0, atol=1e-9 * alignment.eigenvalues[0]
        )

    def test_some_of_which_see_coplanar_landmarks_only(self):
        """They say what they see: two of the three directions."""
        images, base, scales = similar_images(3, n=6)
        base[:15, 2] = 0.5
        images = moved(scales[:, None, None] * base, 5)
        images[:2, 15:] = np.nan
        with warned_of("determine", "'shape_1', 'shape_2'"):
            alignment = DefGPA(Affine()).fit(images).alignment_
        same_up_to_motion(alignment.reference, scales.mean() * base, rtol=1e-7)


class TestOnlyTheEigenspaceCounts:
    @DIMS
    @pytest.mark.parametrize("missing", [0.0, 0.25], ids=["full", "holes"])
    def test_axes_turned_by_hand_give_the_same_reference(self, d, missing, rng):
        points = smooth_family(seed=5, d=d, missing=missing)
        axes = orthonormal(smooth_family(seed=5, d=d)[0])
        expected = axes @ fit_rigid_proportions(seen_of(points, axes)).matrix
        for _ in range(3):
            turned = axes @ np.linalg.qr(rng.normal(size=(d, d)))[0]
            reference = turned @ fit_rigid_proportions(seen_of(points, turned)).matrix
            same_up_to_motion_or_mirror(reference, expected, rtol=1e-9)

    @DIMS
    def test_axes_that_are_not_even_orthonormal_do(self, d, rng):
        """Any basis of the span: A takes the change back."""
        points = smooth_family(seed=6, d=d)
        axes = orthonormal(points[0])
        expected = axes @ fit_rigid_proportions(seen_of(points, axes)).matrix
        skewed = axes @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
        reference = skewed @ fit_rigid_proportions(seen_of(points, skewed)).matrix
        # the start and the size that is kept depend on the basis, the minimum does not
        assert procrustes_distance(reference, expected) < 1e-5

    @DIMS
    def test_exact_ties_change_nothing(self, d, rng):
        """Affine images cost nothing: all d eigenvalues are zero, their axes a matter of chance."""
        base = configuration(d)
        skewed = np.stack([base @ (np.eye(d) + 0.2 * rng.normal(size=(d, d))) for _ in range(6)])
        expected = DefGPA(Affine()).fit(skewed).alignment_
        assert expected.diagnostics.spectrum[d - 1] < 1e-12
        order = rng.permutation(40)
        alignment = DefGPA(Affine()).fit(skewed[:, order]).alignment_
        assert_same_shape(alignment.reference, expected.reference[order], rtol=1e-9)
        again = DefGPA(Affine()).fit(skewed[::-1]).alignment_
        assert_same_shape(again.reference, expected.reference, rtol=1e-9)

    def test_the_reference_is_in_the_span_of_the_cheapest_axes(self, shapes):
        alignment = DefGPA(Affine()).fit(shapes).alignment_
        axes, _ = np.linalg.qr(cheapest_axes(shapes, Affine())[1][:, : shapes.n_dims])
        assert_same_shape(axes @ (axes.T @ alignment.reference), alignment.reference, rtol=1e-9)


def same_up_to_motion_or_mirror(actual, expected, rtol):
    mirrored = actual * np.r_[-1.0, np.ones(actual.shape[1] - 1)]
    distances = [
        np.abs(up_to_rigid(candidate, expected) - expected).max()
        for candidate in (actual, mirrored)
    ]
    assert min(distances) < rtol * np.abs(expected).max()


class TestCost:
    """S keeps the paper's constraint, and is nearly as cheap as what is cheapest under it."""

    @pytest.mark.parametrize("proportions", ["rigid", "prior"])
    def test_the_reference_is_in_its_principal_axes(self, shapes, proportions):
        alignment = DefGPA(proportions=proportions).fit(shapes).alignment_
        square = alignment.reference.T @ alignment.reference
        np.testing.assert_allclose(square, np.diag(alignment.eigenvalues), atol=1e-9 * square[0, 0])
        assert (np.diff(alignment.eigenvalues) <= 0).all()

    def test_for_ordinary_shapes_it_costs_little_more(self, shapes):
        assert DefGPA().fit(shapes).alignment_.diagnostics.excess < 1.0

    def test_the_similarity_residual_is_what_similarities_leave(self, shapes):
        alignment = DefGPA().fit(shapes).alignment_
        left = total = 0.0
        for shape, visible in zip(shapes.points, shapes.visible, strict=True):
            target = alignment.reference[visible] - alignment.reference[visible].mean(axis=0)
            left += left_over(shape[visible], target) * np.sum(target**2)
            total += np.sum(target**2)
        expected = np.sqrt(left / total)
        np.testing.assert_allclose(alignment.diagnostics.similarity_residual, expected, rtol=1e-7)

    def test_no_proportions_nearby_leave_less(self, shapes, rng):
        """Σ ‖s D R − X A‖² / ‖XA‖² is stationary at A for similarities of least squares in s."""
        axes = DefGPA().fit(shapes).reference_
        axes = axes / np.linalg.norm(axes, axis=0)
        moments = seen_of(shapes.points, axes)
        proportions = fit_rigid_proportions(moments)
        step = 1e-4 * np.linalg.norm(proportions.matrix)
        nearby = [
            judge_proportions(moments, proportions.matrix + step * change).residual
            for change in rng.normal(size=(10, *proportions.matrix.shape))
        ]
        assert (np.array(nearby) > proportions.residual - 1e-6).all()

    def test_the_descent_converges_and_says_so(self, shapes):
        diagnostics = DefGPA().fit(shapes).alignment_.diagnostics
        assert diagnostics.proportions == "rigid"
        assert diagnostics.proportions_converged
        assert diagnostics.proportions_determined
        assert 0 < diagnostics.rounds <= 100 if shapes.n_dims == 3 else diagnostics.rounds == 0


class TestInThePlane:
    """Similarities of the plane are complex numbers, and the proportions an eigenvector."""

    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize(("mirrored", "width"), [((), 2), ((), 4), ((1, 4), 2)], ids=str)
    def test_the_descent_ends_there(self, missing, mirrored, width, rng):
        points = smooth_family(seed=5, n=7, m=30, bend=0.1, missing=missing)
        points[list(mirrored), :, 0] *= -1
        complete = smooth_family(seed=5, n=7, m=30, bend=0.1)[0]
        axes = orthonormal(np.hstack([complete, rng.normal(size=(30, width - 2))]))
        moments = seen_of(points, axes)
        proportions = fit_rigid_proportions(moments)
        assert proportions.rounds == 0
        assert proportions.converged
        side = np.ones(7)
        side[list(mirrored)] = -1
        total = np.broadcast_to(moments.axes, (7, width, width)).sum(axis=0)
        matrix = proportions.matrix
        for _ in range(3):  # A ← (Σ G)⁻¹ Σ s C R leaves it where it is, but for its size
            better = np.zeros_like(matrix)
            for cross, square, sign in zip(moments.cross, moments.square, side, strict=True):
                u, _, vt = np.linalg.svd(cross.T @ matrix)
                u[:, -1] *= sign * np.linalg.det(u @ vt)
                better += np.sum((u @ vt) * (cross.T @ matrix)) / square * cross @ u @ vt
            better = np.linalg.solve(total, better)
            better *= np.linalg.norm(proportions.matrix) / np.linalg.norm(better)
            np.testing.assert_allclose(
                better, proportions.matrix, rtol=0, atol=1e-9 * np.abs(better).max()
            )
            matrix = better

    def test_no_other_proportions_leave_less(self, rng):
        points = smooth_family(seed=6, n=5, m=30, bend=0.3, missing=0.2)
        moments = seen_of(points, orthonormal(np.nan_to_num(points[0])))
        min_residual = fit_rigid_proportions(moments).residual
        for _ in range(50):
            assert judge_proportions(moments, rng.normal(size=(2, 2))).residual > min_residual


class TestAlgebra:
    @DIMS
    def test_moments_are_sums_over_what_a_shape_sees(self, d, rng):
        points = smooth_family(seed=4, n=3, m=20, d=d, missing=0.3)
        axes = rng.normal(size=(20, d))
        moments = seen_of(points, axes)
        for i, shape in enumerate(points):
            visible = ~np.isnan(shape[:, 0])
            x, y = (
                axes[visible] - axes[visible].mean(axis=0),
                shape[visible] - shape[visible].mean(axis=0),
            )
            np.testing.assert_allclose(moments.axes[i], x.T @ x, **EXACT)
            np.testing.assert_allclose(moments.cross[i], x.T @ y, **EXACT)
            np.testing.assert_allclose(moments.square[i], np.sum(y**2), **EXACT)

    @DIMS
    def test_a_stack_of_sets_is_solved_like_each_of_them(self, d):
        sets = [smooth_family(seed=s, n=4, m=20, d=d, missing=0.1) for s in range(3)]
        axes = [orthonormal(configuration(d, 20, s)) for s in range(3)]
        each = [seen_of(*pair) for pair in zip(sets, axes, strict=True)]
        fields = ("axes", "cross", "square")
        together = Moments(
            *(np.stack([getattr(moments, name) for moments in each]) for name in fields)
        )
        proportions = fit_rigid_proportions(together)
        for i, moments in enumerate(each):
            alone = fit_rigid_proportions(moments)
            np.testing.assert_allclose(
                proportions.matrix[i] @ proportions.matrix[i].T,
                alone.matrix @ alone.matrix.T,
                rtol=1e-9,
            )
            np.testing.assert_allclose(proportions.residual[i], alone.residual, rtol=1e-9)

    @DIMS
    def test_more_axes_than_dimensions_may_be_chosen_among(self, d, rng):
        """Similar images of XA, with X wider than A: found again out of the larger space."""
        images, base, scales = similar_images(d, missing=0.2)
        wide = orthonormal(np.hstack([base, rng.normal(size=(40, 2))]))
        proportions = fit_rigid_proportions(seen_of(images, wide), max_rounds=2000)
        assert proportions.converged
        same_up_to_motion_or_mirror(wide @ proportions.matrix, scales.mean() * base, rtol=1e-8)

    def test_sides_are_those_of_the_determinant(self, rng):
        base = configuration(3)
        turns = [rotation(rng, 3) for _ in range(4)]
        points = np.stack([base @ turn for turn in turns])
        points[2, :, 1] *= -1
        sides = find_sides(seen_of(points, orthonormal(base)), orthonormal(base).T @ base)
        np.testing.assert_array_equal(sides.votes, [1, 1, -1, 1])
        assert sides.majority == 1


class TestWhereTheyCannotBeTold:
    def test_a_direction_that_no_shape_sees_extended_is_not_determined(self, rng):
        axes = np.zeros((20, 2))
        axes[:10, 0], axes[10:, 1] = rng.normal(size=(2, 10))
        points = rng.normal(size=(3, 20, 2))
        points[:, 10:] = np.nan
        assert not fit_rigid_proportions(seen_of(points, axes)).determined

    def test_too_few_rounds_are_reported_as_not_converged(self):
        points = smooth_family(seed=3, d=3, missing=0.2)
        moments = seen_of(points, orthonormal(configuration(3)))
        assert not fit_rigid_proportions(moments, max_rounds=1).converged


class TestParameter:
    def test_scale_says_what_to_write_instead(self):
        with pytest.raises(TypeError, match=r"no 'scale'.*proportions=\[.*proportions='prior'"):
            DefGPA(scale=[2.0, 1.0])

    def test_other_words_are_refused(self, shapes):
        with pytest.raises(ValueError, match=r"'rigid', 'prior'.*'stiff'"):
            DefGPA(proportions="stiff").fit(shapes)

    def test_the_prior_is_not_even_asked_for_under_rigidity(self):
        """Landmarks that link the groups lie on a line: Algorithm 1 must give up, rigidity not."""
        base = configuration(2, 50)
        base[22:28] = np.outer(np.linspace(-1, 1, 6), [1.0, 0.5])
        points = np.stack([base] * 8)
        points[:4, 28:] = points[4:, :22] = np.nan
        with pytest.raises(DegenerateShapeError, match="proportions="):
            DefGPA(Affine(), proportions="prior").fit(points)
        with warned_of("free", "rigidity"):
            alignment = DefGPA(Affine()).fit(points).alignment_
        same_up_to_motion(alignment.reference, base, rtol=1e-6)
        problems = {finding.problem for finding in alignment.findings}
        assert problems == {Problem.FREE_DIRECTIONS, Problem.REPEATED_SHAPE}


REAL = {
    "guenons3d": (10, 5),
    "lizards2d": (3, 2),
    "plethodon2d": (1, 1),
    "bones3d": (2, 1),
    "face2d": (1, 4),
    "tshirt3d": (1, 40),
    "histology2d": (1, 8),
}
LARGE = {"tshirt3d", "face2d"}  # the deformation itself is


def real(name):
    every, fold_size = REAL[name]
    return shared_points(name)[::every], fold_size


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline()], ids=["affine", "spline"])
@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
class TestOnRealShapes:
    def test_the_reference_is_near_the_mean_shape(self, name, warp):
        points, _ = real(name)
        mean = EuclideanGPA(scaling=True).fit(points).reference_
        reference = DefGPA(warp).fit(points).reference_
        published = DefGPA(warp, proportions="prior").fit(points).reference_
        distance = procrustes_distance(reference, mean)
        assert distance <= procrustes_distance(published, mean) + 1e-3
        assert name in LARGE or distance < 0.06

    def test_left_out_landmarks_are_predicted_no_worse(self, name, warp):
        points, fold_size = real(name)
        fold_size = max(fold_size, points.shape[1] // 12)

        def relative(proportions):
            model = DefGPA(warp, proportions=proportions)
            validation = cross_validate(model, points, fold_size=fold_size)
            return validation.error / np.linalg.norm(validation.reference)

        assert relative("rigid") <= relative("prior")
