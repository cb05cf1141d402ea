"""Flat landmarks with three coordinates are found, and analysed in the plane."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.spatial.transform import Rotation

from defgpa import DefGPA, DefgpaWarning, EuclideanGPA, ShapeError, Shapes, load, write_shapes
from defgpa.diagnostics.findings import Problem
from defgpa.diagnostics.planarity import check_planarity, project_to_plane
from support import smooth_family

FLAT = smooth_family(seed=4, n=6, m=20)
PARTIAL = smooth_family(seed=5, n=6, m=20, missing=0.2)
SOLID = smooth_family(seed=6, n=6, m=20, d=3)


def put_into_space(points, turned, seed=0):
    """Return plane shapes (n, m, 2) in space: z constant, or each in a plane of its own."""
    lifted = np.concatenate([points, 0.0 * points[..., :1] + 3.0], axis=2)
    if not turned:
        return lifted
    turns = Rotation.random(len(points), random_state=seed).as_matrix()
    return lifted @ turns + np.arange(len(points))[:, None, None]


@pytest.mark.parametrize("points", [FLAT, PARTIAL], ids=["complete", "partial"])
@pytest.mark.parametrize("turned", [False, True], ids=["constant z", "turned"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_flat_shapes_are_found(points, turned, offset):
    finding = check_planarity(Shapes(put_into_space(points, turned) + offset))
    assert finding.problem is Problem.PLANAR_SHAPES


@pytest.mark.parametrize("thickness", [1e-3, 1.0])
def test_shapes_with_a_thickness_are_not_flat(thickness):
    assert check_planarity(Shapes(SOLID * [1.0, 1.0, thickness])) is None


def test_one_solid_shape_is_enough_to_stay_in_space():
    points = put_into_space(FLAT, turned=True)
    points[2] = SOLID[2]
    assert check_planarity(Shapes(points)) is None


def test_plane_shapes_and_lines_are_not_meant():
    assert check_planarity(Shapes(FLAT)) is None
    line = np.linspace(0, 1, 9)[:, None] * np.ones(3)
    assert check_planarity(Shapes([line, 2 * line])) is None


def test_three_landmarks_of_a_shape_do_not_decide():
    points = np.array(SOLID)
    points[0, 3:] = np.nan
    assert check_planarity(Shapes(points)) is None
    flat = put_into_space(FLAT, turned=True)
    flat[0, 3:] = np.nan
    assert check_planarity(Shapes(flat)) is not None


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_coordinates_that_vary_are_kept_as_they_are(axis):
    points = np.insert(PARTIAL, axis, np.where(np.isnan(PARTIAL[..., 0]), np.nan, 5.0), axis=2)
    shapes = Shapes(points, names=list("abcdef"), metadata={"groups": list("xyxyxy")})
    flat = project_to_plane(shapes)
    np.testing.assert_array_equal(flat.points, PARTIAL)
    assert (flat.names, flat.metadata) == (shapes.names, shapes.metadata)


@pytest.mark.parametrize("points", [FLAT, PARTIAL], ids=["complete", "partial"])
def test_distances_are_kept_in_planes_that_are_turned(points):
    flat = project_to_plane(Shapes(put_into_space(points, turned=True)))
    assert flat.n_dims == 2
    for before, after in zip(points, flat.points, strict=True):
        visible = ~np.isnan(before[:, 0])
        np.testing.assert_array_equal(visible, ~np.isnan(after[:, 0]))
        np.testing.assert_allclose(pdist(after[visible]), pdist(before[visible]), rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_shape_is_mirrored_by_the_projection(seed):
    flat = project_to_plane(Shapes(put_into_space(FLAT, turned=True, seed=seed)))
    alignment = EuclideanGPA(scaling=True).align(flat)
    assert not alignment.mirrored
    expected = EuclideanGPA(scaling=True).align(FLAT)
    assert alignment.rmse_reference == pytest.approx(expected.rmse_reference, rel=1e-6)


@pytest.mark.parametrize("points", [FLAT, SOLID], ids=["2-D", "solid"])
def test_shapes_that_are_not_flat_are_refused(points):
    with pytest.raises(ShapeError, match="do not lie in a plane in 3-D"):
        project_to_plane(Shapes(points))


def test_a_fit_of_flat_shapes_in_space_says_so():
    with pytest.warns(DefgpaWarning, match=r"lie in a plane.*project_to_plane"):
        DefGPA().fit(put_into_space(FLAT, turned=False))


@pytest.mark.parametrize("turned", [False, True], ids=["constant z", "turned"])
def test_the_command_line_analyses_flat_shapes_in_the_plane(turned, run, tmp_path):
    write_shapes(Shapes(put_into_space(FLAT, turned)), tmp_path / "flat.csv")
    for command, *words in (["info"], ["fit", "-o", tmp_path / "out", "--method", "deformable"]):
        output = " ".join(run.succeed(command, tmp_path / "flat.csv", *words)[1].split())
        assert "lie in a plane" in output
        assert "They are analysed in the plane." in output
    alignment = load(tmp_path / "out" / "result.npz")
    assert alignment.reference.shape == (20, 2)
    assert not alignment.foldovers.any()
