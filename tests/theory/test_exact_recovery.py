"""Shapes that the warps can explain are explained, to the last digit, with holes in them."""

import numpy as np
import pytest

from defgpa import Affine, DefGPA, ExactCentering, Iterative, ThinPlateSpline, Warp
from support import (
    LIMIT,
    PARITY,
    assert_same_shape,
    every_warp,
    moved,
    rotation,
    up_to_affine,
    up_to_rigid,
)

CASES = pytest.mark.parametrize(("d", "missing"), [(2, 0.0), (3, 0.0), (2, 0.3), (3, 0.25)])


def base_shape(d, seed=0, m=45):
    return np.random.default_rng(seed).normal(size=(m, d)) * np.linspace(3, 1, d)


def with_holes(points, missing, seed=0):
    holes = np.random.default_rng(seed).random(points.shape[:2]) < missing
    holes[:2] = False  # every landmark is seen at least twice
    return np.where(holes[..., None], np.nan, points)


def affine_images(base, n=6, seed=0):
    rng = np.random.default_rng(seed)
    d = base.shape[1]
    return np.stack(
        [
            base @ (np.eye(d) + 0.3 * rng.uniform(-1, 1, size=(d, d))) @ rotation(rng, d)
            + 5 * rng.normal(size=d)
            for _ in range(n)
        ]
    )


@every_warp
@CASES
def test_affine_images_of_one_shape_agree_exactly(warp, d, missing):
    base = base_shape(d)
    result = DefGPA(warp).fit(with_holes(affine_images(base), missing)).alignment_
    # the spline penalty leaves rounding of the size √ε in a residual whose square is minimised
    assert result.rmse_reference < 1e-7
    assert result.rmse_datum < 1e-6
    assert_same_shape(up_to_affine(base, result.reference), result.reference)


@every_warp
@CASES
@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.5, 2.0)])
def test_copies_of_one_rigid_shape_come_back_in_its_proportions(warp, d, missing, scales):
    base = base_shape(d)
    copies = moved(np.stack([base] * 6), scales=scales)
    result = DefGPA(warp).fit(with_holes(copies, missing)).alignment_
    size = np.linalg.norm(copies - copies.mean(axis=1, keepdims=True), axis=(1, 2)).mean()
    centred = base - base.mean(axis=0)
    expected = centred * size / np.linalg.norm(centred)
    # the axes of one shape cost the same: the tie is settled from the data, to √ε
    assert_same_shape(up_to_rigid(expected, result.reference), result.reference, rtol=1e-6)


@CASES
@pytest.mark.parametrize("options", [{}, {"centering": ExactCentering()}, {"solver": Iterative()}])
def test_splines_are_recovered_where_they_are_free(d, missing, options):
    """S is a spline image of every shape: with θ = 0 nothing is left over."""
    reference = base_shape(d, m=60)
    rng = np.random.default_rng(1)
    controls = 8 * rng.uniform(-1, 1, size=(8, d))
    shapes = np.stack([spline_preimage(reference, controls, rng) for _ in range(6)])
    warp = ThinPlateSpline(control_points=controls, theta=0.0)
    result = DefGPA(warp, **options).fit(with_holes(shapes, missing)).alignment_
    assert result.rmse_reference < PARITY["atol"]
    assert_same_shape(
        up_to_affine(reference, result.reference), result.reference, rtol=LIMIT["rtol"]
    )


def spline_preimage(reference, controls, rng):
    """A shape that a mild spline on ``controls`` takes to ``reference``."""
    basis = ThinPlateSpline(control_points=controls).basis(reference)
    images = controls + 0.3 * rng.normal(size=controls.shape)
    weights = np.linalg.solve(basis.features(controls), images)
    sources = Warp(basis, weights).exact_inverse()(reference)
    assert not np.isnan(sources).any()
    return sources


def test_affine_maps_do_not_recover_splines():
    """The counter-example: what a spline bends, an affine map cannot unbend."""
    reference = base_shape(2, m=60)
    rng = np.random.default_rng(1)
    controls = 8 * rng.uniform(-1, 1, size=(8, 2))
    shapes = np.stack([spline_preimage(reference, controls, rng) for _ in range(6)])
    assert DefGPA(Affine()).fit(shapes).alignment_.rmse_reference > 1e-2


@CASES
def test_a_shape_made_of_the_reference_is_registered_exactly(d, missing):
    shapes = affine_images(base_shape(d), n=7)
    fitted = DefGPA().fit(with_holes(shapes[:6], missing)).alignment_
    registered = fitted.register(shapes[6])(shapes[6])
    assert_same_shape(registered, fitted.reference, rtol=1e-7)  # √ε, as above
