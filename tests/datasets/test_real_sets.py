"""Real sets run with the default settings, and are warned of only where there is cause."""

from functools import cache

import numpy as np
import pytest

from defgpa import Affine, DefGPA, Dense, ThinPlateSpline
from defgpa.diagnostics.findings import Problem
from support import EXACT, left_over, moved, shared_points, warned_of


@cache
def aligned(name):
    """The alignment with the default settings, made once."""
    return DefGPA().fit(shared_points(name)).alignment_


QUIET = pytest.mark.parametrize(
    "name", ["face2d", "histology2d", "turtles3d_partial", "guenons3d", "cactus3d"]
)


@QUIET
def test_the_default_settings_give_a_sound_alignment_and_no_warning(name):
    points, fitted = shared_points(name), aligned(name)
    diagnostics, visible = fitted.diagnostics, ~np.isnan(points[..., 0])
    # the fossils were measured in other units, 40 to 2,400 times larger
    expected = {Problem.OTHER_SIZE} if name == "turtles3d_partial" else set()
    assert {finding.problem for finding in fitted.findings} == expected
    assert fitted.mirrored == ()
    assert diagnostics.gap > 0.1
    assert diagnostics.translation_cost < 1e-9 * np.sqrt(points.shape[1]) * len(points)
    assert not diagnostics.free_directions.any()
    np.testing.assert_array_equal(fitted.foldovers, 0)
    size = np.sqrt(fitted.eigenvalues.sum() / points.shape[1])
    assert 0 < fitted.rmse_reference < 0.2 * size
    assert 0 < fitted.rmse_datum < 0.2 * size
    np.testing.assert_array_equal(np.isnan(fitted.aligned[..., 0]), ~visible)
    np.testing.assert_allclose(
        fitted.reference.T @ fitted.reference,
        np.diag(fitted.eigenvalues),
        rtol=0,
        atol=1e-9 * fitted.eigenvalues.max(),
    )


@pytest.mark.parametrize("warp", [None, ThinPlateSpline((5, 5, 2)), Affine()])
def test_the_bent_cloth_has_one_mirrored_frame_and_it_is_named(warp):
    points = shared_points("tshirt3d")
    with warned_of("mirrored", "'shape_10'"):
        fitted = DefGPA(warp, proportions="prior").fit(points).alignment_
    assert fitted.mirrored == ("shape_10",)
    frame, goal = points[9], fitted.reference
    assert left_over(frame, goal) > 4 * left_over(frame * [-1, 1, 1], goal)


@pytest.mark.parametrize("warp", [None, ThinPlateSpline((5, 5, 2)), Affine()])
def test_by_rigidity_the_cloth_is_flatter_and_none_of_its_frames_clearly_mirrored(warp):
    """A flat mean has hardly two sides: the tenth frame leaves 2.6 times as much, not four."""
    points = shared_points("tshirt3d")
    fitted = DefGPA(warp).fit(points).alignment_
    assert fitted.mirrored == ()
    assert fitted.eigenvalues[2] < 0.01 * fitted.eigenvalues[0]
    frame, goal = points[9], fitted.reference
    ratio = left_over(frame, goal) / left_over(frame * [-1, 1, 1], goal)
    np.testing.assert_allclose(ratio, 2.6, atol=0.1)


def test_two_layers_of_control_points_serve_a_nearly_flat_shape():
    points = shared_points("tshirt3d")
    fitted = DefGPA(ThinPlateSpline((5, 5, 2))).fit(points).alignment_
    assert {len(warp.basis.control_points) for warp in fitted.warps} == {50}
    assert fitted.rmse_reference < 0.05 * np.sqrt(fitted.eigenvalues.sum() / 85)


def test_the_large_mesh_takes_the_iterative_solver_and_the_dense_one_agrees():
    points = shared_points("cactus3d")[:, ::4]
    iterative = DefGPA().fit(points).alignment_
    dense = DefGPA(solver=Dense()).fit(points).alignment_
    assert iterative.diagnostics.method == "iterative"
    np.testing.assert_allclose(
        iterative.reference, dense.reference, rtol=0, atol=1e-8 * np.abs(dense.reference).max()
    )


@pytest.mark.parametrize("name", ["turtles3d_partial", "guenons3d", "histology2d"])
def test_real_sets_moved_shape_by_shape_give_the_same_reference(name):
    points = shared_points(name)[:60]
    alignment = DefGPA().fit(points).alignment_
    far = float(np.nanstd(points))
    fit = DefGPA().fit(moved(points, far=far)).alignment_
    np.testing.assert_allclose(
        fit.reference, alignment.reference, rtol=0, atol=1e-9 * np.abs(alignment.reference).max()
    )
    np.testing.assert_allclose(fit.rmse_datum, alignment.rmse_datum, rtol=EXACT["rtol"])
