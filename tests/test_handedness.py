"""The reference is on the side of the majority, and the others are named."""

import numpy as np
import pytest
from support import EXACT, assert_same_shape, moved, smooth_family, up_to_rigid

from defgpa import Affine, DefGPA, DefgpaWarning, Shapes, ThinPlateSpline

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
    seen = ~np.isnan(shape[:, 0])
    own, goal = shape[seen], reference[seen]
    straight = np.linalg.norm(up_to_rigid(own, goal) - goal)
    turned = np.linalg.norm(up_to_rigid(own * MIRROR[: own.shape[1]], goal) - goal)
    return straight < turned


@CASES
@pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline(3)])
def test_the_reference_is_on_the_side_of_the_shapes(d, missing, warp):
    points = family(d, missing)
    fitted = DefGPA(warp).fit(points).alignment_
    assert all(same_side(own, fitted.reference) for own in points)
    np.testing.assert_array_equal(fitted.diagnostics.votes, 1)
    assert fitted.diagnostics.mirrored == ()


@CASES
@pytest.mark.parametrize("which", [[0], [3, 5], [0, 1, 2]])
def test_a_mirrored_minority_is_named_whichever_it_is(d, missing, which):
    points = mirrored(family(d, missing), which)
    names = [f"skull {i}" for i in range(7)]
    odd = ", ".join(f"'skull {i}'" for i in which)
    with pytest.warns(DefgpaWarning, match=f"Shape {odd} is mirrored against the majority"):
        fitted = DefGPA().fit(Shapes(points, names=names)).alignment_
    assert fitted.diagnostics.mirrored == tuple(names[i] for i in which)
    expected = np.ones(7)
    expected[which] = -1
    np.testing.assert_array_equal(fitted.diagnostics.votes, expected)
    assert [same_side(own, fitted.reference) for own in points] == (expected > 0).tolist()


@CASES
def test_the_minority_has_no_say_in_the_side_but_fits_as_well(d, missing):
    points = family(d, missing)
    straight = DefGPA().fit(points).alignment_
    with pytest.warns(DefgpaWarning, match="mirrored"):
        mixed = DefGPA().fit(mirrored(points, [0, 4])).alignment_
    assert_same_shape(mixed.reference, straight.reference)
    np.testing.assert_allclose(mixed.rmse_reference, straight.rmse_reference, **EXACT)


@CASES
def test_mirrored_input_gives_a_mirrored_output(d, missing):
    points = family(d, missing)
    straight = DefGPA().fit(points).alignment_
    turned = DefGPA().fit(mirrored(points, slice(None))).alignment_
    assert turned.diagnostics.mirrored == ()
    sides = np.sign(np.sum(straight.reference * turned.reference, axis=0))
    assert np.prod(sides) == -1
    assert_same_shape(turned.reference * sides, straight.reference)


@CASES
def test_an_even_split_still_has_two_sides(d, missing):
    points = mirrored(family(d, missing, n=6), [1, 2, 5])
    with pytest.warns(DefgpaWarning, match="mirrored"):
        fitted = DefGPA().fit(points).alignment_
    votes = fitted.diagnostics.votes
    assert sorted(votes) == [-1, -1, -1, 1, 1, 1]
    assert len(set(votes[[1, 2, 5]])) == 1
    assert [same_side(own, fitted.reference) for own in points] == (votes > 0).tolist()


def sheet(n=9, seed=0, m=60, thickness=0.0):
    """A flat sheet bent both ways, each way equally often."""
    rng = np.random.default_rng(seed)
    flat = rng.uniform(-1, 1, size=(m, 2)) * [2, 1]
    height = np.linspace(-0.3, 0.3, n)[:, None] * (flat[:, 0] ** 2 - 1)
    points = np.dstack([np.broadcast_to(flat, (n, m, 2)), height])
    return moved(points + thickness * rng.normal(size=(n, m, 3)), seed)


def test_a_sheet_that_bends_both_ways_is_not_called_mirrored():
    """The third axis of its reference is how it bends, and half of the shapes bend the other way."""
    fitted = DefGPA(ThinPlateSpline((4, 4, 2), smoothing=1e-2)).fit(sheet(thickness=0.01))
    assert fitted.alignment_.diagnostics.mirrored == ()


def test_a_mirrored_reference_would_fit_as_well():
    """Why a side must be chosen: the cost does not see it."""
    points = family(2)
    fitted = DefGPA().fit(points).alignment_
    turned = fitted.reference * [-1, 1]
    left = [
        np.sum((fitted.registration.warp(own, turned)(own) - turned) ** 2) for own in points
    ]
    np.testing.assert_allclose(
        np.sqrt(np.sum(left) / fitted.n_counted), fitted.rmse_reference, **EXACT
    )
