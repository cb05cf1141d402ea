"""The penalty is the bending of the warp: the integral itself in 3-D, half of it in 2-D.

The integral ∫ ‖∇∇f‖² over the whole plane or space is done by quadrature, around every control
point in polar coordinates, the space shared out among them by smooth weights.
"""

import numpy as np
import pytest

from defgpa import Affine, ThinPlateSpline, Warp
from support import EXACT, LIMIT

CASES = pytest.mark.parametrize(
    ("d", "share"), [(2, 0.5), (3, 1.0)], ids=["2-D: half the integral", "3-D: the integral"]
)


def radial_nodes(count):
    """Nodes and weights on (0, ∞): Gauss–Legendre in t, r = ((1 + t) / (1 − t))²."""
    t, w = np.polynomial.legendre.leggauss(count)
    r = ((1 + t) / (1 - t)) ** 2
    return r, w * 4 * (1 + t) / (1 - t) ** 3


def directions(d):
    """Unit vectors and weights that integrate over the circle or the sphere."""
    if d == 2:
        angle = 2 * np.pi * np.arange(96) / 96
        return np.column_stack([np.cos(angle), np.sin(angle)]), np.full(96, 2 * np.pi / 96)
    z, w = np.polynomial.legendre.leggauss(20)
    angle = 2 * np.pi * np.arange(40) / 40
    ring = np.sqrt(1 - z**2)[:, None]
    x, y = ring * np.cos(angle), ring * np.sin(angle)
    height = np.broadcast_to(z[:, None], x.shape)
    unit = np.stack([x, y, height], axis=-1).reshape(-1, 3)
    return unit, np.repeat(w * 2 * np.pi / 40, 40)


def integral(integrand, centres):
    """∫ over all space, singularities at the centres: each centre takes the part nearest to it."""
    d = centres.shape[1]
    radius, radial = radial_nodes(48)
    unit, angular = directions(d)
    total = 0.0
    for centre in centres:
        points = centre + (radius[:, None, None] * unit).reshape(-1, d)
        weights = np.outer(radial * radius ** (d - 1), angular).ravel()
        nearness = 1 / np.linalg.norm(points[:, None] - centres, axis=2) ** 4
        density = 1 / np.linalg.norm(points - centre, axis=1) ** 4 / nearness.sum(axis=1)
        total += np.sum(weights * density * integrand(points))
    return total


def second_derivatives(warp, points):
    """(p, d, d, d): of every coordinate of a spline, from the kernel differentiated by hand.

    φ = r² log r² has 2(1 + log r²) I + 4 x xᵀ / r²; φ = r has (I − x xᵀ / r²) / r.
    """
    basis, coefficients = warp.basis, warp.column_coefficients[: warp.basis.controls.shape[0]]
    x = (points[:, None] - basis.control_points) / basis.scale
    squared = np.sum(x**2, axis=2)[..., None, None]
    outer, identity = x[..., :, None] * x[..., None, :], np.eye(x.shape[2])
    if x.shape[2] == 2:
        hessian = 2 * (1 + np.log(squared)) * identity + 4 * outer / squared
    else:
        hessian = (identity - outer / squared) / np.sqrt(squared)
    return np.einsum("pkab,kc->pcab", hessian, coefficients) / basis.scale**2


def bent_warp(d, theta=0.7, p=35, seed=0):
    """A spline through control points that were pushed about."""
    rng = np.random.default_rng(seed)
    controls = rng.uniform(-1.5, 1.5, size=(7, d))
    shape = rng.normal(size=(p, d)) + 0.3
    basis = ThinPlateSpline(control_points=controls, theta=theta).basis(shape)
    images = controls + 0.5 * rng.normal(size=controls.shape)
    return Warp(basis, np.linalg.solve(basis.features(controls), images))


@CASES
@pytest.mark.parametrize("seed", [0, 1])
def test_the_penalty_is_the_bending_integral(d, share, seed):
    warp = bent_warp(d, theta=0.7, p=35, seed=seed)
    charged = np.sum(warp.coefficients * (warp.basis.penalty() @ warp.coefficients))
    bending = integral(
        lambda x: np.sum(second_derivatives(warp, x) ** 2, axis=(1, 2, 3)),
        warp.basis.control_points,
    )
    # θ times the number of visible points is what one unit of bending costs
    np.testing.assert_allclose(charged, 0.7 * 35 * share * bending, **LIMIT)


@CASES
def test_second_derivatives_by_hand_are_those_of_the_warp(d, share, rng):
    warp = bent_warp(d)
    points = rng.normal(size=(40, d))
    step = 1e-5
    columns = [
        (warp.jacobian(points + step * axis) - warp.jacobian(points - step * axis)) / (2 * step)
        for axis in np.eye(d)
    ]
    np.testing.assert_allclose(second_derivatives(warp, points), np.stack(columns, -1), **LIMIT)


@CASES
def test_an_affine_map_does_not_bend(d, share, rng):
    points = rng.normal(size=(35, d))
    basis = ThinPlateSpline(3).basis(points)
    image = points @ rng.normal(size=(d, d)) + rng.normal(size=d)
    weights = np.linalg.lstsq(basis.features(points), image, rcond=None)[0]
    np.testing.assert_allclose(np.sum(weights * (basis.penalty() @ weights)), 0, **EXACT)
    np.testing.assert_array_equal(Affine().basis(points).penalty(), 0)


@CASES
@pytest.mark.parametrize("smoothing", [1e-3, 1.0])
def test_the_penalty_is_positive_with_the_affine_maps_as_its_null_space(d, share, smoothing, rng):
    basis = ThinPlateSpline(3, smoothing=smoothing).basis(rng.normal(size=(35, d)))
    values = np.linalg.eigvalsh(basis.penalty())
    np.testing.assert_allclose(values[: d + 1], 0, **EXACT)
    assert (values[d + 1 :] > 0.01 * smoothing).all()
    assert len(values) == 3**d
