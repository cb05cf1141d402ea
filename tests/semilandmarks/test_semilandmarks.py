"""Sliding semilandmarks: the formulas, what never rises, what stays, what comes out the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import defgpa
from defgpa import DefgpaError, FormatError, ShapeError, Shapes
from defgpa.meshes import Mesh
from defgpa.semilandmarks import (
    add_slicer_curves,
    find_curves,
    read_sliders,
    read_surface,
    resample_curve,
    slide,
)
from defgpa.semilandmarks.closest import Surface
from defgpa.semilandmarks.criteria import Bending, Distance, compute_bending_matrix
from defgpa.semilandmarks.paths import PatchPath, Splines, make_spline_path
from defgpa.semilandmarks.sliders import join_curves
from defgpa.statistics import tangent_space
from io_support import format_markups, format_tps
from support import EXACT, PARITY, rotation, shared_data, warned_of

BOTH = ["bending", "procrustes"]
both_criteria = pytest.mark.parametrize("by", BOTH)
both_ways = pytest.mark.parametrize("along", ["curve", "tangent"])
SPOTS = np.array([[0, -1, 0.3], [0.7, -0.6, -0.2], [-0.9, -0.4, 0.1]])
CURVE = [0, *range(5, 24), 1]


def arch(t, dim=2):
    """A smooth curve from (−2, 0) to (2, 0)."""
    flat = [-2 * np.cos(t), np.sin(t) + 0.3 * np.sin(2 * t)]
    return np.column_stack([*flat, 0.4 * np.sin(3 * t)][:dim])


def jittered(n=8, count=19, jitter=0.3, dim=2, seed=0):
    """The same shape n times, its curve sampled elsewhere each time, in other poses and sizes."""
    rng = np.random.default_rng(seed)
    step = np.pi / (count + 1)
    spots = SPOTS[:, :dim]
    ends = arch(np.array([0.0, np.pi]), dim)
    points = []
    for _ in range(n):
        t = step * (np.arange(1, count + 1) + jitter * rng.uniform(-1, 1, count))
        shape = np.vstack([ends, spots, arch(t, dim)])
        points.append(rng.uniform(1, 3) * shape @ rotation(rng, dim) + 5 * rng.normal(size=dim))
    return np.stack(points)


def spread(points):
    """RMS distance of the shapes from their mean, at unit size."""
    x = tangent_space(points)
    return float(np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=(1, 2)).mean()))


@pytest.fixture(scope="module")
def larvae():
    with np.load(shared_data("larvae2d.npz"), allow_pickle=False) as archive:
        return archive["points"][:20], archive["sliders"]


# The formulas


@pytest.mark.parametrize("dim", [2, 3])
def test_the_bending_matrix_is_the_block_of_the_inverted_spline_system(dim):
    x = np.random.default_rng(dim).normal(size=(15, dim))
    x -= x.mean(axis=0)
    scaled = x / np.sqrt((x**2).sum(axis=1).mean())
    r = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    K = r**2 * np.log(r**2 + (r == 0)) if dim == 2 else -r
    P = np.column_stack([scaled, np.ones(15)])
    system = np.block([[K, P], [P.T, np.zeros((dim + 1, dim + 1))]])
    np.testing.assert_allclose(compute_bending_matrix(x), np.linalg.inv(system)[:15, :15], **PARITY)


def test_affine_images_have_no_bending_energy():
    x = np.random.default_rng(0).normal(size=(15, 2))
    image = x @ [[2.0, 0.3], [-0.5, 1.0]] + [4.0, 5.0]
    bending = Bending(compute_bending_matrix(x), np.ones(15, dtype=bool))
    assert bending.evaluate(image) < 1e-12
    assert bending.evaluate(image**2) > 1e-3


def sliders_for(seed, m=12, dim=3):
    rng = np.random.default_rng(seed)
    x, reference = rng.normal(size=(2, m, dim))
    J = np.array([2, 3, 3, 7, 9])
    V = np.linalg.qr(rng.normal(size=(5, dim, dim)))[0][:, 0]
    U = np.zeros((dim, m, 5))  # coordinates first: L is the same for all of them
    U[:, J, np.arange(5)] = V.T
    return x, reference, J, V, U.reshape(dim * m, 5)


def test_steps_of_least_bending_are_those_of_the_formula():
    x, reference, J, V, U = sliders_for(1)
    small = compute_bending_matrix(reference)
    L, y = np.kron(np.eye(3), small), x.T.ravel()
    expected = -np.linalg.solve(U.T @ L @ U, U.T @ L @ y)
    actual = Bending(small, np.ones(12, dtype=bool)).find_steps(x, J, V)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_steps_of_least_distance_are_those_of_the_formula():
    x, reference, J, V, U = sliders_for(2)
    actual = Distance(reference, np.ones(12, dtype=bool)).find_steps(x, J, V)
    np.testing.assert_allclose(actual, -U.T @ (x - reference).T.ravel(), **EXACT)


def test_hidden_landmarks_have_no_say():
    x, reference, _, V, _ = sliders_for(3)
    visible = np.ones(12, dtype=bool)
    visible[[0, 5]] = False
    J = np.array([2, 3, 4, 7, 9])
    small = compute_bending_matrix(reference[visible])
    actual = Bending(small, visible).find_steps(x, J, V)
    expected = Bending(small, np.ones(10, dtype=bool)).find_steps(
        x[visible], np.array([1, 2, 3, 5, 7]), V
    )
    np.testing.assert_allclose(actual, expected, **EXACT)


# What never rises, and what stays


@both_criteria
@both_ways
def test_the_criterion_never_rises_while_larvae_slide(larvae, by, along):
    slid = slide(*larvae, by=by, along=along, max_rounds=4)
    before, after = slid.criterion[:, 0], slid.criterion[:, 1]
    assert (after <= before).all()
    assert after[-1].sum() < 0.5 * before[0].sum()
    assert np.diff(after.sum(axis=1)).max(initial=-1.0) <= 0


def test_larvae_keep_their_landmarks_and_their_points_stay_on_the_curve(larvae):
    points, sliders = larvae
    slid = slide(points, sliders, by="procrustes")
    fixed = np.setdiff1d(np.arange(64), sliders[:, 1])
    assert slid.sliders.tolist() == sliders[:, 1].tolist()
    np.testing.assert_array_equal(slid.points[:, fixed], points[:, fixed])
    assert (slid.distances[:, fixed] == 0).all()
    np.testing.assert_allclose(
        slid.distances, np.linalg.norm(slid.points - points, axis=2), **EXACT
    )
    assert spread(slid.points) < 0.7 * spread(points)


def test_procrustes_distance_after_sliding_is_less_by_procrustes_than_by_bending(larvae):
    by_distance, by_bending = (slide(*larvae, by=by, max_rounds=8) for by in BOTH[::-1])
    assert spread(by_distance.points) < spread(by_bending.points)
    assert by_bending.settled
    assert not by_distance.settled


@pytest.mark.parametrize("dim", [2, 3])
@both_criteria
@both_ways
def test_a_curve_sampled_elsewhere_in_each_shape_gives_the_same_shape(dim, by, along):
    points = jittered(dim=dim)
    slid = slide(points, [CURVE], by=by, along=along, max_rounds=60)
    # off the curve by the sagitta of a step, on it by what a spline misses
    assert spread(slid.points) < (0.05 if along == "curve" else 0.1) * spread(points)


def test_the_denser_the_curve_the_more_nearly_the_same_the_shapes():
    spreads = []
    for count in (10, 20, 40):
        points = jittered(n=4, count=count, seed=1)
        curve = [0, *range(5, 5 + count), 1]
        spreads.append(
            spread(slide(points, [curve], by="procrustes", max_rounds=100, tolerance=1e-4).points)
        )
    assert spreads[1] < 0.3 * spreads[0]
    assert spreads[2] < 0.3 * spreads[1]


def test_points_stay_on_a_circle():
    rng = np.random.default_rng(2)
    turns = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    points = []
    for _ in range(6):
        t = turns + 0.08 * rng.uniform(-1, 1, 24)
        t[0] = 0.0
        points.append(
            np.vstack([np.column_stack([np.cos(t), np.sin(t)]), [[0.3, 0.1], [-0.2, 0.4]]])
        )
    for curve in ([*range(24), 0], [*range(24), 0, 1]):  # held at its first point, or nowhere
        slid = slide(points, [curve])
        np.testing.assert_allclose(np.linalg.norm(slid.points[:, :24], axis=2), 1.0, atol=1e-3)
        assert spread(slid.points) < 0.1 * spread(points)
        assert len(slid.sliders) == 23 + (len(curve) == 26)
        assert not slid.findings


# Invariance


@both_criteria
def test_every_shape_slides_where_it_lies(by):
    points = jittered()
    rng = np.random.default_rng(4)
    turns = [rotation(rng, 2) for _ in points]
    turned = np.stack([p @ turn + [30, -7] for p, turn in zip(points, turns, strict=True)])
    slid, elsewhere = (slide(p, [CURVE], by=by, max_rounds=3) for p in (points, turned))
    back = [s @ turn + [30, -7] for s, turn in zip(slid.points, turns, strict=True)]
    np.testing.assert_allclose(elsewhere.points, back, atol=1e-6)


@both_criteria
def test_the_order_of_shapes_and_landmarks_does_not_matter(by):
    points = jittered()
    rng = np.random.default_rng(5)
    rows, columns = rng.permutation(8), rng.permutation(24)
    place = np.argsort(columns)
    curve = [int(place[j]) for j in CURVE]
    slid = slide(points, [CURVE], by=by, max_rounds=3).points[rows][:, columns]
    reordered = slide(points[rows][:, columns], [curve], by=by, max_rounds=3).points
    np.testing.assert_allclose(reordered, slid, atol=1e-6)
    back = slide(points, [CURVE[::-1]], by=by, max_rounds=3).points
    np.testing.assert_allclose(back[rows][:, columns], slid, atol=1e-6)


def test_units_do_not_matter():
    points = jittered()
    small, large = (slide(unit * points, [CURVE], max_rounds=3).points for unit in (1e-3, 1e4))
    np.testing.assert_allclose(large / 1e4, small / 1e-3, atol=1e-6)


# Missing, deformable, coincident


@both_ways
def test_missing_semilandmarks_stay_missing_and_the_others_slide(along):
    points = jittered()
    complete = slide(points, [CURVE], along=along).points
    points[2, [8, 9]] = points[5, 23] = points[4, 0] = np.nan
    slid = slide(points, [CURVE], along=along)
    np.testing.assert_array_equal(slid.visible, ~np.isnan(points[..., 0]))
    assert np.isnan(slid.distances[2, 8])
    assert (slid.criterion[:, 1] <= slid.criterion[:, 0]).all()
    visible = slid.visible[2]
    x, y = slid.points[2][visible], complete[2][visible]
    assert np.linalg.norm(x - y, axis=1).max() < 0.02 * np.ptp(y, axis=0).max()


@pytest.mark.parametrize(
    "estimator", [defgpa.DefGPA(defgpa.Affine()), defgpa.DefGPA(), defgpa.EuclideanGPA()]
)
def test_sliding_alternates_with_any_alignment(estimator):
    points = jittered()
    slid = slide(points, [CURVE], estimator=estimator)
    assert (slid.criterion[:, 1] <= slid.criterion[:, 0]).all()
    assert spread(slid.points) < 0.1 * spread(points)
    assert not hasattr(estimator, "alignment_")


def test_the_first_point_of_a_curve_may_coincide_with_a_landmark():
    points = jittered()
    double = np.concatenate([points, points[:, :2]], axis=1)  # 24 and 25 lie on 0 and 1
    slid = slide(double, [[24, *CURVE[1:-1], 25]]).points
    alone = slide(points, [CURVE]).points
    assert spread(slid) < 0.1 * spread(double)
    np.testing.assert_allclose(slid[:, :24], alone, atol=0.02)


def test_a_landmark_visible_in_one_shape_does_not_slide():
    points = np.concatenate([jittered(), np.full((8, 1, 2), np.nan)], axis=1)
    points[3, 24] = points[3, 4] + 0.1
    slid = slide(points, [CURVE])
    np.testing.assert_array_equal(slid.points[3, 24], points[3, 24])


# Surfaces


def dome(n=4, seed=0, jitter=0.08):
    """Points of a spherical cap, sampled elsewhere in each shape, and six landmarks around it."""
    rng = np.random.default_rng(seed)
    u, v = (g.ravel() for g in np.meshgrid(np.linspace(-0.6, 0.6, 5), np.linspace(-0.6, 0.6, 5)))
    landmarks = np.array(
        [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0.8, 0.6, 0], [-0.6, -0.8, -0.3]],
        dtype=float,
    )
    points = []
    for _ in range(n):
        a, b = u + jitter * rng.uniform(-1, 1, 25), v + jitter * rng.uniform(-1, 1, 25)
        points.append(np.vstack([landmarks, np.column_stack([a, b, np.sqrt(1.0 - (a**2 + b**2))])]))
    return np.stack(points)


def ball(rings=24):
    """A fine mesh of the unit sphere."""
    theta, phi = np.linspace(0, np.pi, rings), np.linspace(0, 2 * np.pi, 2 * rings, endpoint=False)
    t, p = (g.ravel() for g in np.meshgrid(theta, phi, indexing="ij"))
    vertices = np.column_stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)])
    k = np.arange(2 * rings)
    rows = np.arange(rings - 1)[:, None] * 2 * rings
    a, b = rows + k, rows + (k + 1) % (2 * rings)
    c, d = a + 2 * rings, b + 2 * rings
    faces = np.concatenate([np.stack(f, axis=-1).reshape(-1, 3) for f in ((a, c, b), (b, c, d))])
    return Mesh(vertices, faces)


def test_the_plane_of_a_surface_point_is_that_of_it_and_its_four_nearest():
    x = dome(n=1)[0]
    x[20] = np.nan  # not seen: no neighbour
    path = PatchPath(np.array([8, 18]), x[None, [8, 18]])
    for j, actual in zip((8, 18), path.find_directions(path.start, x[None])[0], strict=True):
        near = np.argsort(np.linalg.norm(x - x[j], axis=1))[:5]  # NaN is sorted to the end
        assert j in near
        normal = np.linalg.eigh(np.cov(x[near].T))[1][:, 0]
        np.testing.assert_allclose(actual @ normal, 0.0, atol=1e-9)
        np.testing.assert_allclose(actual @ actual.T, np.eye(2), atol=1e-9)


@both_criteria
def test_patches_slide_in_their_tangent_planes(by):
    points = dome()
    slid = slide(points, surfaces=[range(6, 31)], by=by, max_rounds=5)
    assert (slid.criterion[:, 1] <= slid.criterion[:, 0]).all()
    assert spread(slid.points) < 0.6 * spread(points)
    assert len(slid.sliders) == 25
    np.testing.assert_array_equal(
        slide(points, surfaces=range(6, 31), by=by, max_rounds=5).points, slid.points
    )


@both_criteria
def test_with_a_mesh_points_return_to_it(by):
    points = dome()
    meshes = {f"shape_{k}": ball() for k in range(1, 5)}
    slid = slide(points, surfaces=range(6, 31), by=by, meshes=meshes, max_rounds=8)
    surface = Surface(ball().vertices, ball().faces)
    nearest = surface.find_nearest(slid.points[:, 6:].reshape(-1, 3))[0].reshape(4, 25, 3)
    np.testing.assert_allclose(slid.points[:, 6:], nearest, atol=1e-9)
    assert (slid.criterion[:, 1] <= slid.criterion[:, 0]).all()
    assert spread(slid.points) < 0.35 * spread(points)


def test_points_return_to_the_mesh_even_where_sliding_gains_nothing():
    points = dome(jitter=0.0)
    points[:, 6:] *= 1.01  # hovering above it
    meshes = {f"shape_{k}": ball() for k in range(1, 5)}
    slid = slide(points, surfaces=range(6, 31), meshes=meshes, max_rounds=1)
    inside = slid.points[:, 6:].reshape(-1, 3)
    nearest = Surface(ball().vertices, ball().faces).find_nearest(inside)[0]
    np.testing.assert_allclose(inside, nearest, atol=1e-12)
    np.testing.assert_array_equal(slid.digitised, points)


def test_progress_counts_rounds():
    heard = []
    slid = slide(jittered(), [CURVE], progress=lambda *told: heard.append(told))
    assert heard[0] == (1, 30)
    assert len(heard) in (len(slid.criterion), len(slid.criterion) + 1)


def test_points_of_a_curve_return_to_the_mesh_as_well():
    t = np.linspace(0.3, 2.8, 15)
    rng = np.random.default_rng(6)
    points = dome()
    arcs = []
    for _ in range(4):
        angles = t + 0.05 * rng.uniform(-1, 1, 15)
        angles[[0, -1]] = t[[0, -1]]
        arcs.append(np.column_stack([np.cos(angles), 0.1 * np.sin(angles), np.sin(angles)]))
    arcs = np.stack(arcs)
    points = np.concatenate([points, arcs / np.linalg.norm(arcs, axis=2, keepdims=True)], axis=1)
    meshes = {f"shape_{k}": ball() for k in range(1, 5)}
    slid = slide(points, [range(31, 46)], meshes=meshes)
    inside = slid.points[:, 32:45].reshape(-1, 3)
    surface = Surface(ball().vertices, ball().faces)
    np.testing.assert_allclose(inside, surface.find_nearest(inside)[0], atol=1e-9)


def test_the_nearest_point_of_a_mesh_is_nearer_than_any_sample_of_it():
    rng = np.random.default_rng(7)
    vertices = rng.normal(size=(12, 3)) * [5, 1, 1]  # long and short triangles together
    faces = np.array([rng.choice(12, 3, replace=False) for _ in range(15)])
    points = rng.normal(size=(40, 3)) * 3
    nearest, where = Surface(vertices, faces).find_nearest(points)
    weights = rng.dirichlet([0.5] * 3, size=(15, 3000))
    samples = np.einsum("fsk,fkd->fsd", weights, vertices[faces]).reshape(-1, 3)
    best = np.linalg.norm(points[:, None] - samples, axis=2).min(axis=1)
    distance = np.linalg.norm(points - nearest, axis=1)
    assert (distance <= best + 1e-12).all()
    assert (distance >= best - 0.3).all()
    for point, face in zip(nearest, where, strict=True):  # in its triangle
        share = np.linalg.lstsq(
            np.vstack([vertices[faces[face]].T, np.ones(3)]), np.append(point, 1.0)
        )[0]
        assert share.min() > -1e-9
        np.testing.assert_allclose(share @ vertices[faces[face]], point, atol=1e-9)


# What users are told


def passing_points():
    """In one shape the landmark amid the curve lies where the next but one should be."""
    points = jittered(n=6, jitter=0.02)
    t = np.linspace(0, np.pi, 21)[1:-1]
    odd = t.copy()
    odd[9], odd[10:13] = t[11], t[11] + 0.03 * np.arange(1, 4)
    plain = [
        np.vstack([arch(np.array([0, np.pi])), SPOTS[:, :2], arch(angles)]) for angles in (t, odd)
    ]
    points[:5], points[5] = plain[0], plain[1]
    return points, [[0, *range(5, 15)], [14, *range(15, 24), 1]]


@both_ways
def test_points_that_would_pass_a_fixed_one_are_named(along):
    points, curves = passing_points()
    with warned_of("shape_6", "past"):
        slid = slide(points, curves, by="procrustes", along=along)
    (actual,) = slid.findings
    assert actual.shapes == ("shape_6",)
    assert ("16", "15") in [piece.landmarks for piece in actual.parts]


def test_a_mirrored_shape_is_named():
    points = jittered()
    points[2, :, 0] *= -1
    with warned_of("Mirrored", "shape_3"):
        slid = slide(points, [CURVE], max_rounds=2)
    assert slid.findings[0].shapes == ("shape_3",)


def test_only_points_that_were_apart_can_pass_each_other():
    x = np.array([[0, 0], [1, 0.1], [1, 0.1], [2, 0], [3, 0.2]])
    path = make_spline_path(join_curves([[0, 1, 2, 3, 4]], list("abcde"))[0], x[None])
    assert list(path.find_passing(path.start, x[None])) == []
    moved = path.start + np.array([0, 0, -1.2])
    assert list(path.find_passing(moved, x[None])) == [(0, 2, 3)]
    ring = make_spline_path(join_curves([[0, 1, 3, 4, 0, 1]], list("abcde"))[0], x[None])
    assert list(ring.find_passing(ring.start, x[None])) == []
    for far in (1.3, 9.0):  # past the first, where the ring closes, and past all of them
        moved = ring.start + np.array([0, 0, 0, far])
        assert list(ring.find_passing(moved, x[None])) == [(0, 0, 1)]


def test_shape_whose_curve_is_one_point_stays_and_the_others_slide():
    points = jittered()
    points[3, CURVE[1:-1]] = points[3, CURVE[0]]
    slid = slide(points, [CURVE], by="procrustes", max_rounds=2)
    assert slid.distances[3].max() == 0.0
    assert (np.delete(slid.distances, 3, axis=0).max(axis=1) > 0).all()


def test_stacked_splines_equal_those_of_scipy():
    rng = np.random.default_rng(0)
    splines = [CubicSpline(np.sort(rng.uniform(size=k)), rng.normal(size=(k, 2))) for k in (5, 8)]
    at = rng.uniform(0.0, 1.0, size=(2, 30)).clip(
        [[splines[0].x[0]], [splines[1].x[0]]], [[splines[0].x[-1]], [splines[1].x[-1]]]
    )
    stacked = Splines.stack(splines)
    for values, order in ((stacked(at), 0), (stacked.differentiate(at), 1)):
        expected = np.stack([spline(x, order) for spline, x in zip(splines, at, strict=True)])
        np.testing.assert_allclose(values, expected, **PARITY)


def test_slid_shapes_are_shapes(tmp_path):
    names = [f"larva{k}" for k in range(8)]
    shapes = Shapes(jittered(), names=names, metadata={"groups": list("ababcdcd")})
    slid = slide(shapes, [CURVE])
    assert isinstance(slid, Shapes)
    assert slid.names == tuple(names)
    assert slid.metadata["groups"] == tuple("ababcdcd")
    assert slid.take([0, 1]).names == ("larva0", "larva1")
    defgpa.write_shapes(slid, tmp_path / "slid.tps")
    assert defgpa.read_shapes(tmp_path / "slid.tps") == slid
    with pytest.raises(AttributeError):
        slid.findings = ()
    with pytest.raises(ValueError):
        slid.distances[0, 0] = 1.0


# Where sliders come from


def test_rows_of_a_slider_table_join_into_curves(larvae):
    actual = join_curves(larvae[1], [str(k) for k in range(64)])
    ends = [(int(c.members[0]), int(c.members[-1])) for c in actual]
    assert ends == [(0, 15), (15, 30), (31, 47), (47, 63)]
    assert sum(int(c.sliding.sum()) for c in actual) == 58
    assert not any(c.closed for c in actual)


def test_curves_of_a_tps_file_slide_by_themselves(tmp_path):
    points = jittered(n=5)
    records = []
    for shape in points:
        curve = format_tps([shape[CURVE]]).replace("LM", "CURVES=1\nPOINTS")
        records.append(format_tps([shape[2:5]]) + curve)
    file = tmp_path / "curves.tps"
    file.write_text("".join(records))
    shapes = defgpa.read_shapes(file)
    assert find_curves(shapes) == [list(range(3, 24))]
    slid = slide(shapes)
    assert slid.sliders.tolist() == list(range(4, 23))
    expected = slide(points, [CURVE]).points
    np.testing.assert_allclose(slid.points[:, 4:23], expected[:, 5:], atol=1e-6)


def varied_tps(file):
    """Curves and outlines that every specimen has digitised with other numbers of points."""
    rng = np.random.default_rng(9)
    lines = []
    for k in range(6):
        t = np.sort(np.concatenate([[0.0, np.pi], rng.uniform(0, np.pi, 40 + 3 * k)]))
        turn = np.sort(rng.uniform(0, 2 * np.pi, 60 + k))
        ring = np.column_stack([np.cos(turn), np.sin(turn)]) * 0.3
        for key, points in (("LM", SPOTS[:, :2]), ("CURVES=1\nPOINTS", arch(t)),
                            ("OUTLINES=1\nPOINTS", ring)):  # fmt: skip
            lines += [f"{key}={len(points)}", *(f"{x!r} {y!r}" for x, y in points.tolist())]
        lines.append(f"ID=s{k}")
    file.write_text("\n".join(lines) + "\n")


def test_curves_of_a_tps_file_are_resampled_where_their_points_are_not_equally_many(tmp_path):
    file = tmp_path / "varied.tps"
    varied_tps(file)
    with warned_of("left out", "curve_points=30"):
        assert defgpa.read_shapes(file).n_landmarks == 3
    shapes = defgpa.read_shapes(file, curve_points=12)
    assert shapes.landmarks[3:5] == ("curve1_1", "curve1_2")
    assert shapes.landmarks[-1] == "outline1_12"
    assert shapes.n_landmarks == 27
    curve, ring = shapes.points[:, 3:15], shapes.points[:, 15:]
    ends = np.tile(arch(np.array([0, np.pi])), (6, 1, 1))
    np.testing.assert_allclose(curve[:, [0, -1]], ends, atol=1e-12)
    steps = np.linalg.norm(np.diff(curve, axis=1), axis=2)
    assert np.ptp(steps, axis=1).max() < 0.05 * steps.mean()  # chords of equal arcs
    # the same curve, however it was digitised
    assert np.ptp(curve, axis=0).max() < 0.01
    np.testing.assert_allclose(np.linalg.norm(ring, axis=2), 0.3, atol=0.005)
    around = np.linalg.norm(np.diff(ring, axis=1, append=ring[:, :1]), axis=2)
    assert np.ptp(around, axis=1).max() < 0.05 * around.mean()
    slid = slide(shapes)
    assert len(slid.sliders) == 10 + 12
    for count in (2, 2.5, "many"):
        with pytest.raises(FormatError, match="'curve_points' parameter"):
            defgpa.read_shapes(file, curve_points=count)
    file.write_text("LM=1\n0 0\nCURVES=1\nPOINTS=1\n1 1\nID=lone\n")
    with pytest.raises(FormatError, match=r"'lone'.*curve1 has too few points"):
        defgpa.read_shapes(file, curve_points=5)


@pytest.mark.parametrize(
    "text",
    [
        '"before","slide","after"\n1,2,3\n2,3,4\n',
        '"","before","slide","after"\n"1",1,2,3\n"2",2,3,4\n',
        "before slide after\n1 2 3\n2 3 4\n",
        "V1;V2;V3\r\n1;2;3\r\n2;3;4\r\n",
        "1\t2\t3\n2\t3\t4",
    ],
)
def test_slider_tables_are_read_as_r_writes_them(tmp_path, text):
    file = tmp_path / "sliders.csv"
    file.write_text(text)
    shapes = Shapes.specimens(np.zeros((1, 4, 2)))
    assert read_sliders(file, shapes) == [[0, 1, 2], [1, 2, 3]]


@pytest.mark.parametrize("text", ['"x"\n2\n4\n', '"","x"\n"1",2\n"2",4\n', "2\n4\n"])
def test_tables_of_surface_points_are_read_as_r_writes_them(tmp_path, text):
    file = tmp_path / "surfslide.csv"
    file.write_text(text)
    shapes = Shapes.specimens(np.zeros((1, 4, 3)))
    assert read_surface(file, shapes) == [1, 3]
    file.write_text("5\n")
    with pytest.raises(FormatError, match="line 1: there is no landmark 5"):
        read_surface(file, shapes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("before,slide,after\n1,2\n", "line 2: expected three"),
        ("before,slide,after\n1,2,x\n", "line 2: expected three"),
        ("1,2,9\n", "line 1: there is no landmark 9"),
        ("0,1,2\n", "line 1: expected three"),
        ("1,nan,2\n", "line 1: expected three"),
        ("1,inf,2\n", "line 1: expected three"),
        ("", "is empty"),
        ('{"markups": 3}', "3D Slicer"),
        ('{"markups": [{"type": "Fiducial", "controlPoints": []}]}', "no markup of the type Curve"),
    ],
)
def test_a_damaged_slider_file_is_told_by_line(tmp_path, text, words):
    file = tmp_path / "sliders.csv"
    file.write_text(text)
    with pytest.raises(FormatError, match=words):
        read_sliders(file, Shapes.specimens(np.zeros((1, 4, 2))))


def test_a_slider_file_that_is_not_there_is_refused():
    with pytest.raises(FormatError, match=r"nowhere\.csv cannot be read: No such file"):
        read_sliders("nowhere.csv", Shapes.specimens(np.zeros((1, 4, 2))))


@pytest.mark.parametrize("along", ["curve", "tangent"])
def test_a_shape_may_see_nothing_of_a_curve(along):
    t = np.linspace(0.0, 1.0, 9)
    points = np.stack([arch(t), 1.1 * arch(t) + 0.01, arch(t) + 0.1, 0.9 * arch(t)])
    corners = np.array([[0.0, -1.0], [1.0, -1.0], [0.5, -2.0], [2.0, 0.5]])
    points = np.concatenate([points, np.tile(corners, (4, 1, 1))], axis=1)
    points[2, :9] = np.nan
    slid = defgpa.slide(Shapes(points), curves=[list(range(9))], along=along)
    assert np.isnan(slid.points[2, :9]).all()
    assert np.isfinite(slid.points[[0, 1, 3]]).all()


def markup(points, kind="Curve", labels=None, system="LPS"):
    labels = labels or [f"C-{k}" for k in range(1, len(points) + 1)]
    return format_markups(zip(labels, points, strict=True), system, kind)


def test_curves_of_slicer_name_their_landmarks(tmp_path):
    shapes = Shapes.specimens(np.zeros((1, 5, 3)))
    file = tmp_path / "curve.mrk.json"
    file.write_text(markup(np.zeros((3, 3)), labels=["2", "C-4", "5"]))
    assert read_sliders(file, shapes) == [[1, 3, 4]]
    file.write_text(markup(np.zeros((3, 3)), "ClosedCurve", ["2", "4", "5"]))
    assert read_sliders(file, shapes) == [[1, 3, 4, 1, 3]]
    file.write_text(markup(np.zeros((3, 3)), labels=["2", "C-7", "5"]))
    with pytest.raises(FormatError, match="C-7"):
        read_sliders(file, shapes)


def test_curve_files_of_slicer_join_the_landmarks_resampled(tmp_path):
    rng = np.random.default_rng(8)
    names = ["skull_1", "skull_10", "skull_2"]
    landmarks = rng.normal(size=(3, 5, 3))
    shapes = Shapes.specimens(landmarks, names=names, metadata={"space": "RAS"})
    t = np.linspace(0, np.pi, 30)
    line = np.column_stack([np.cos(t), np.sin(t), t])
    (tmp_path / "skull_1_orbit.mrk.json").write_text(markup(line[::2]))
    (tmp_path / "skull_10_orbit.mrk.json").write_text(markup(2 * line, system="RAS"))
    joined = add_slicer_curves(shapes, tmp_path, 7)
    assert joined.landmarks[5:] == tuple(f"curve1_{k}" for k in range(1, 8))
    assert find_curves(joined) == [list(range(5, 12))]
    np.testing.assert_allclose(joined.points[1, 5], 2 * line[0])
    np.testing.assert_allclose(joined.points[1, 11], 2 * line[-1], atol=1e-12)
    np.testing.assert_allclose(joined.points[0, 5], line[0] * [-1, -1, 1])  # LPS, brought to RAS
    assert np.isnan(joined.points[2, 5:]).all()
    steps = np.linalg.norm(np.diff(joined.points[1, 5:], axis=0), axis=1)
    assert np.ptp(steps) < 1e-3 * steps.mean()
    more = add_slicer_curves(joined, tmp_path, 4)
    assert more.landmarks[12:] == tuple(f"curve2_{k}" for k in range(1, 5))
    with pytest.raises(FormatError, match="named like a shape"):
        add_slicer_curves(shapes, tmp_path / "nowhere", 7)
    (tmp_path / "skull_2.mrk.json").write_text(markup(line, "ClosedCurve"))
    with pytest.raises(FormatError, match="closed"):
        add_slicer_curves(shapes, tmp_path, 7)


def test_a_closed_curve_is_resampled_all_around(tmp_path):
    t = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    (tmp_path / "a.mrk.json").write_text(
        markup(np.column_stack([np.cos(t), np.sin(t), 0 * t]), "ClosedCurve")
    )
    shapes = Shapes.specimens(np.zeros((1, 2, 3)), names=["a"])
    joined = add_slicer_curves(shapes, tmp_path, 8)
    assert joined.landmarks[2] == "outline1_1"
    turns = np.unwrap(np.arctan2(joined.points[0, 2:, 1], joined.points[0, 2:, 0]))
    np.testing.assert_allclose(np.abs(np.diff(turns)), np.pi / 4, atol=0.01)


def test_resampling_passes_over_missing_and_repeated_points():
    line = np.array([[0, 0], [1, 0], [1, 0], [np.nan, np.nan], [3, 0], [4, 0.0]])
    np.testing.assert_allclose(resample_curve(line, 3), [[0, 0], [2, 0], [4, 0]], atol=1e-9)
    with pytest.raises(ShapeError, match="at least 2"):
        resample_curve(line[:1], 3)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"curves": []}, "Nothing slides"),
        ({}, "Nothing slides"),
        ({"curves": [[0, 99, 1]]}, "number 99"),
        ({"curves": [[0, "head", 1]]}, "'head'"),
        ({"curves": [[0, 5, 1], [2, 5, 3]]}, "two curves"),
        ({"curves": [[0, 5, 5, 1]]}, "own neighbour"),
        ({"surfaces": [5, 6, 7]}, "3-D"),
        ({"curves": [CURVE], "by": "magic"}, "'by' parameter"),
        ({"curves": [CURVE], "along": "chord"}, "'along' parameter"),
        ({"curves": [CURVE], "max_rounds": 0}, "max_rounds"),
        ({"curves": [CURVE], "meshes": {"nobody": ball(4)}}, "no such shape"),
    ],
)
def test_what_cannot_slide_is_refused(words, sentence):
    with pytest.raises(DefgpaError, match=sentence):
        slide(jittered(), **words)


def test_a_landmark_slides_on_one_thing_only_and_a_cloud_is_no_surface():
    with pytest.raises(ShapeError, match="surface and along a curve"):
        slide(dome(), [[0, 7, 1]], surfaces=[7, 8])
    with pytest.raises(ShapeError, match="no faces"):
        slide(dome(), surfaces=[7, 8], meshes={"shape_1": Mesh(np.zeros((3, 3)))})


def test_labels_may_name_landmarks_even_where_they_are_numbers():
    shapes = Shapes(jittered())
    by_label = slide(shapes, [[str(j + 1) for j in CURVE]], max_rounds=1)
    np.testing.assert_array_equal(by_label.points, slide(shapes, [CURVE], max_rounds=1).points)


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_a_slider_table_join_whichever_way_they_run(seed):
    labels = [str(k) for k in range(9)]
    rows = [[k, k + 1, k + 2] for k in range(7)]
    expected = join_curves(rows, labels)
    rng = np.random.default_rng(seed)
    mixed = [row[::-1] if rng.random() < 0.5 else row for row in rows]
    actual = join_curves([mixed[k] for k in rng.permutation(7)], labels)
    assert len(actual) == len(expected) == 1
    members = actual[0].members.tolist()
    assert members in (list(range(9)), list(range(9))[::-1])
    assert actual[0].sliding.tolist() == [False, *[True] * 7, False]


def test_the_same_row_both_ways_is_one_slider():
    actual = join_curves([[0, 1, 2], [2, 1, 0]], list("abc"))
    assert [curve.members.tolist() for curve in actual] == [[0, 1, 2]]


def test_sliders_of_tpsutil_stand_below_a_title_and_a_header(tmp_path):
    shapes = Shapes.specimens(np.random.default_rng(0).normal(size=(2, 9, 2)))
    (tmp_path / "sliders.nts").write_text('"Sliders for 3 wings\n1 2 3 0\n1 2 3\n2 3 4\n')
    assert read_sliders(tmp_path / "sliders.nts", shapes) == [[0, 1, 2], [1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"markups": ' + "[" * 100_000, "expected JSON"),
        (
            '{"markups": [{"type": "Curve", "controlPoints": [1]}]}',
            "a list of objects 'controlPoints'",
        ),
        ("1e300,2,3\n", "line 1: expected three landmark numbers"),
        ("x" * 200_000 + ",2,3\n", "line 1: expected three landmark numbers"),
    ],
)
def test_a_hostile_slider_file_gets_one_short_sentence(tmp_path, text, message):
    shapes = Shapes.specimens(np.random.default_rng(0).normal(size=(2, 9, 2)))
    (tmp_path / "sliders.csv").write_text(text)
    with pytest.raises(FormatError, match=message) as error:
        read_sliders(tmp_path / "sliders.csv", shapes)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("d", [2, 3])
def test_bending_with_too_few_landmarks_is_refused_with_the_remedy(d):
    points = np.random.default_rng(0).normal(size=(4, d + 1, d))
    with pytest.raises(defgpa.ShapeError, match=r"at least .* landmarks.*by='procrustes'"):
        defgpa.slide(points, [[0, 1, 2]])
