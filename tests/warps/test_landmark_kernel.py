"""Kernel GPA: radial functions around the landmarks that a shape sees."""

import numpy as np
import pytest

import defgpa
from defgpa import DefGPA, RadialBasis, Shapes
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from defgpa.warps import DistanceQuantile, Gaussian, Multiquadric, landmark_kernel, radial
from support import EXACT, PARITY, smooth_family


def cost_of(points, model):
    return build_cost(measure_geometry(points, ~np.isnan(points[..., 0])), model)


def direct_cost(points, quantile, smoothing):
    """P = μ Π (KΠ + μI)⁻¹ of one shape, dense, as it is written."""
    centred = points - points.mean(axis=0)
    x = centred / np.sqrt((centred**2).sum(axis=1).mean())
    distances = np.linalg.norm(x[:, None] - x, axis=-1)
    sigma = np.quantile(distances[np.triu_indices(len(x), 1)], quantile)
    kernel = np.exp(-(distances**2) / (2 * sigma**2))
    basis, _ = np.linalg.qr(np.column_stack([x, np.ones(len(x))]))
    off, mu = np.eye(len(x)) - basis @ basis.T, smoothing * len(x)
    return mu * off @ np.linalg.inv(kernel @ off + mu * np.eye(len(x)))


def summed_directly(points, quantile, smoothing):
    total = np.zeros((points.shape[1], points.shape[1]))
    for shape in points:
        visible = ~np.isnan(shape[:, 0])
        total[np.ix_(visible, visible)] += direct_cost(shape[visible], quantile, smoothing)
    return total


@pytest.mark.parametrize(
    ("m", "d", "missing"), [(40, 2, 0.0), (40, 2, 0.3), (60, 3, 0.2), (220, 2, 0.1), (560, 2, 0.1)]
)
@pytest.mark.parametrize("smoothing", [1e-1, 1e-3])
@pytest.mark.parametrize("quantile", [0.2, 0.5])
def test_the_cost_is_that_of_kernel_gpa(m, d, missing, smoothing, quantile):
    points = smooth_family(seed=5, n=5, m=m, d=d, missing=missing)
    cost = cost_of(points, landmark_kernel(quantile, smoothing)).dense()
    expected = summed_directly(points, quantile, smoothing)
    np.testing.assert_allclose(cost, expected, rtol=0, atol=1e-2 * PARITY["rtol"])


def test_few_functions_stand_for_many_centres():
    points = smooth_family(seed=5, n=2, m=560)
    cost = cost_of(points, landmark_kernel())
    sizes = [factor.ridge.inverse.shape[-1] for factor in cost.factors]
    assert max(sizes) < 300
    assert not cost.rank_deficiency.any()


def test_many_small_shapes_with_different_holes_share_a_batch():
    points = smooth_family(seed=6, n=12, m=30, missing=0.3)
    assert len(set((~np.isnan(points[..., 0])).sum(axis=1))) > 3
    cost = cost_of(points, landmark_kernel())
    assert len(cost.factors) == 1
    np.testing.assert_allclose(cost.dense(), summed_directly(points, 0.2, 1e-3), **EXACT)


@pytest.mark.parametrize("m", [200, 40], ids=["by pivots", "by eigenvectors"])
def test_a_hidden_landmark_is_no_centre(m):
    """The warp of a shape with holes is that of the shape without them."""
    points = smooth_family(seed=7, n=6, m=m, missing=0.2)
    assert ((~np.isnan(points[..., 0])).sum(axis=1) > radial._MANY_CENTRES).all() == (m == 200)
    for model in (landmark_kernel(), RadialBasis(Multiquadric(), control_points="landmarks")):
        fitted = DefGPA(model).fit(points).alignment_
        for shape, warp in zip(points, fitted.warps, strict=True):
            visible = ~np.isnan(shape[:, 0])
            alone = fitted.register(shape)
            places = 1.3 * shape[visible] + 0.01
            np.testing.assert_allclose(warp(places), alone(places), **PARITY)


def test_the_width_is_that_of_the_visible_landmarks():
    points = smooth_family(seed=8, n=1, m=50)
    points[0, 10:] = np.nan
    model = RadialBasis(Gaussian(DistanceQuantile(0.2)), control_points="landmarks")
    stacked = model.bases(measure_geometry(points, ~np.isnan(points[..., 0])))
    np.testing.assert_allclose(stacked.width[0], model.basis(points[0, :10]).width, **EXACT)


def test_the_width_is_root_two_sigma():
    centres = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    assert DistanceQuantile(0.5, times=2.0).of(centres) == 8.0
    assert landmark_kernel(0.3).kernel.width == DistanceQuantile(0.3, times=np.sqrt(2.0))


def test_coincident_landmarks_are_fine():
    points = smooth_family(seed=9, n=4, m=30)
    points[:, 7] = points[:, 3]
    fitted = DefGPA(landmark_kernel()).fit(points).alignment_
    np.testing.assert_allclose(fitted.reference[7], fitted.reference[3], **PARITY)


def test_kernel_smoothing_is_chosen_by_cross_validation():
    points = smooth_family(seed=10, n=5, m=24, missing=0.1)
    path = defgpa.select_smoothing(DefGPA(landmark_kernel()), points, [1e-8, 1e-3, 1e2], 6)
    assert np.isfinite(path.cve).all()
    assert path.best.warp.control_points == "landmarks"


@pytest.mark.parametrize(
    ("warp", "words"),
    [
        (RadialBasis(control_points="grid"), "'landmarks'. Got 'grid'"),
        (landmark_kernel(quantile=0.0), "'fraction' parameter"),
        (RadialBasis(Gaussian(DistanceQuantile(0.5, times=0.0))), "'times' parameter"),
    ],
)
def test_a_wrong_parameter_is_named(warp, words):
    with pytest.raises(ValueError, match=words):
        warp.basis(np.random.default_rng(0).normal(size=(20, 2)))


def test_too_few_visible_landmarks_for_the_polynomials_are_refused():
    points = smooth_family(seed=11, n=4, m=30)
    points[2, 5:] = np.nan
    model = RadialBasis(control_points="landmarks", polynomial_degree=2)
    with pytest.raises(ValueError, match="needs at least 6 centres"):
        DefGPA(model).fit(points)


def test_the_command_line_knows_it(run, tmp_path):
    defgpa.write_shapes(Shapes(smooth_family(seed=12, n=4, m=20)), tmp_path / "wings.csv")
    words = ["fit", tmp_path / "wings.csv", "--warp", "kernel", "-o", tmp_path / "out"]
    run.succeed(*words)
    assert "drop --points-per-axis" in run.refuse(*words, "--points-per-axis", 5)
