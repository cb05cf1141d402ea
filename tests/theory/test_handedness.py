"""The reference is on the side of the majority, and the others are named."""

import numpy as np
import pytest

from defgpa import Affine, AffineGPA, DefGPA, Shapes, ThinPlateSpline
from defgpa.procrustes import find_nearest_orthogonal
from support import (
    EXACT,
    assert_same_shape,
    left_over,
    moved,
    smooth_family,
    told_among_others,
    up_to_rigid,
    warned_of,
)

CASES = pytest.mark.parametrize(
    ("d", "missing"), [(2, 0.0), (3, 0.0), (2, 0.2), (3, 0.2)], ids=lambda value: str(value)
)
MIRROR = np.array([-1.0, 1.0, 1.0])


def family(d, missing=0.0, n=7, seed=0):
    return smooth_family(seed=seed, n=n, m=45, d=d, missing=missing)


def mirrored(points, which):
    """Some of the shapes mirrored, all of them moved."""
    points = points.copy()
    points[which] *= MIRROR[: points.shape[2]]
    return moved(points, seed=1)


def same_side(shape, reference):
    """Whether a proper rotation brings the shape closer to the reference than a mirrored one."""
    visible = ~np.isnan(shape[:, 0])
    points, goal = shape[visible], reference[visible]
    straight = np.linalg.norm(up_to_rigid(points, goal) - goal)
    turned = np.linalg.norm(up_to_rigid(points * MIRROR[: points.shape[1]], goal) - goal)
    return straight < turned


@CASES
@pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline(3)])
def test_the_reference_is_on_the_side_of_the_shapes(d, missing, warp):
    points = family(d, missing)
    fitted = DefGPA(warp).fit(points).alignment_
    assert all(same_side(shape, fitted.reference) for shape in points)
    np.testing.assert_array_equal(fitted.diagnostics.votes, 1)
    assert fitted.mirrored == ()


@CASES
@pytest.mark.parametrize("which", [[0], [3, 5], [0, 1, 2]])
def test_a_mirrored_minority_is_named_whichever_it_is(d, missing, which):
    points = mirrored(family(d, missing), which)
    names = [f"skull {i}" for i in range(7)]
    odd = ", ".join(f"'skull {i}'" for i in which)
    with warned_of("mirrored against the majority", odd):
        fitted = DefGPA().fit(Shapes(points, names=names)).alignment_
    assert fitted.mirrored == tuple(names[i] for i in which)
    expected = np.ones(7)
    expected[which] = -1
    np.testing.assert_array_equal(fitted.diagnostics.votes, expected)
    assert [same_side(shape, fitted.reference) for shape in points] == (expected > 0).tolist()


@CASES
def test_the_minority_has_no_say_in_the_side_but_fits_as_well(d, missing):
    points = family(d, missing)
    straight = DefGPA().fit(points).alignment_
    with warned_of("mirrored", "'shape_1', 'shape_5'"):
        mixed = DefGPA().fit(mirrored(points, [0, 4])).alignment_
    assert_same_shape(mixed.reference, straight.reference)
    np.testing.assert_allclose(mixed.rmse_reference, straight.rmse_reference, **EXACT)


@CASES
def test_mirrored_input_gives_a_mirrored_output(d, missing):
    points = family(d, missing)
    straight = DefGPA().fit(points).alignment_
    turned = DefGPA().fit(mirrored(points, slice(None))).alignment_
    assert turned.mirrored == ()
    sides = np.sign(np.sum(straight.reference * turned.reference, axis=0))
    assert np.prod(sides) == -1
    assert_same_shape(turned.reference * sides, straight.reference)


@CASES
def test_an_even_split_still_has_two_sides(d, missing):
    points = mirrored(family(d, missing, n=6), [1, 2, 5])
    with warned_of("mirrored"):
        fitted = DefGPA().fit(points).alignment_
    votes = fitted.diagnostics.votes
    assert sorted(votes) == [-1, -1, -1, 1, 1, 1]
    assert len(set(votes[[1, 2, 5]])) == 1
    assert [same_side(shape, fitted.reference) for shape in points] == (votes > 0).tolist()


def sheets(n=10, seed=0, m=60, bent=0.0):
    """A sheet that bends now this way, now that, and on average by ``bent``."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, size=(2, m))
    modes = np.stack([x**2 - 1 / 3, y**2 - 1 / 3, x * y, np.sin(3 * x), np.sin(3 * y)])
    height = (bent * np.eye(5)[0] + 0.1 * rng.normal(size=(n, 5))) @ modes
    flat = np.broadcast_to(np.column_stack([2 * x, y]), (n, m, 2))
    return moved(np.dstack([flat, height]), seed)


@pytest.mark.filterwarnings("ignore:Mirrored:defgpa.DefgpaWarning")
@pytest.mark.parametrize("seed", range(4))
def test_a_shape_has_a_side_when_the_other_leaves_four_times_as_much(seed):
    """A bent sheet prefers one side of the reference by chance; only clear cases count."""
    # the mean of sheets that bend both ways is flat, and none of them has a side
    model = DefGPA(ThinPlateSpline((5, 5, 2)))
    assert not model.fit(sheets(seed=seed)).alignment_.diagnostics.votes.any()
    points = sheets(seed=seed, bent=0.25)
    fitted = model.fit(points).alignment_
    straight = np.array([left_over(shape, fitted.reference) for shape in points])
    turned = np.array([left_over(shape * MIRROR, fitted.reference) for shape in points])
    expected = np.where(turned > 4 * straight, 1, np.where(straight > 4 * turned, -1, 0))
    np.testing.assert_array_equal(fitted.diagnostics.votes, expected)
    assert 0 < np.sum(expected == 0) < len(points)
    assert expected.sum() >= 0


def test_a_sheet_bent_exactly_the_other_way_is_a_mirrored_one():
    """The counter-example: there is nothing else that a mirrored specimen could be."""
    sheet = sheets(n=1)[0]
    points = np.stack([sheet] * 3 + [sheet * [-1, 1, 1]])
    with warned_of("mirrored", "'shape_4'"):
        DefGPA(ThinPlateSpline((5, 5, 2))).fit(moved(points))


@pytest.mark.parametrize("seed", range(3))
def test_where_no_shape_can_tell_most_preferences_decide(seed):
    """Shapes of noise fit either side about as badly, but five of them cannot be evenly split."""
    points = np.random.default_rng(seed).normal(size=(5, 60, 3))
    alignment = DefGPA(Affine()).fit(points).alignment_
    fit = DefGPA(Affine()).fit(points * MIRROR).alignment_
    np.testing.assert_array_equal(alignment.diagnostics.votes, 0)
    assert sum(same_side(shape, alignment.reference) for shape in points) >= 3
    assert sum(same_side(shape, fit.reference) for shape in points * MIRROR) >= 3


@pytest.mark.parametrize("seed", range(4))
def test_flat_shapes_in_space_have_no_side_whatever_the_proportions(seed):
    flat = np.zeros((6, 45, 3))
    flat[..., :2] = family(2, n=6)
    model = DefGPA(Affine(), proportions=[9.0, 4.0, 1.0])
    with told_among_others("lie in a plane"):
        expected = model.fit(flat).reference_
    with told_among_others("lie in a plane"):
        alignment = model.fit(moved(flat, seed)).alignment_
    assert_same_shape(alignment.reference[:, :2], expected[:, :2])
    np.testing.assert_array_equal(alignment.diagnostics.votes, 0)


def test_a_mirrored_reference_would_fit_as_well():
    """Why a side must be chosen: the cost does not see it."""
    points = family(2)
    fitted = DefGPA().fit(points).alignment_
    turned = fitted.reference * [-1, 1]
    left = [
        np.sum((fitted.registration.warp(shape, turned)(shape) - turned) ** 2) for shape in points
    ]
    np.testing.assert_allclose(
        np.sqrt(np.sum(left) / fitted.n_counted), fitted.rmse_reference, **EXACT
    )


@pytest.mark.parametrize("d", [2, 3])
def test_what_a_rotation_and_a_reflection_reach(d, rng):
    """max ⟨R, M⟩ = s₁ + … ± s_d, the plus for rotations where det M > 0."""
    stack = rng.normal(size=(50, d, d))
    stack[:5, :, 0] = 0.0  # flat: both reach the same
    upright, mirrored = (
        find_nearest_orthogonal(stack, np.full(50, side))[1] for side in (1.0, -1.0)
    )
    left, values, right = np.linalg.svd(stack)
    turned = np.linalg.det(left @ right)
    signs = np.where(turned[:, None] > 0, [1.0, -1.0], [-1.0, 1.0])
    larger_sum = values[:, :-1].sum(axis=1)
    np.testing.assert_allclose(upright, larger_sum + signs[:, 0] * values[:, -1], **EXACT)
    np.testing.assert_allclose(mirrored, larger_sum + signs[:, 1] * values[:, -1], **EXACT)
    np.testing.assert_allclose(upright[:5], mirrored[:5], **EXACT)


@pytest.mark.parametrize("d", [2, 3])
def test_votes_of_an_affine_fit_do_not_depend_on_how_far_the_origin_is(d):
    """Its reference is as far from the origin as the first shape."""
    points = family(d, missing=0.2)
    points[3, :, 0] *= -1.0
    votes = AffineGPA().align(points + 1e9).diagnostics.votes
    np.testing.assert_array_equal(votes, np.where(np.arange(7) == 3, -1, 1))
