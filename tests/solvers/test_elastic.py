"""From rigid to elastic on one dial: what the family promises, statement by statement."""

import warnings

import numpy as np
import pytest

import defgpa
from defgpa import (
    Affine,
    DefGPA,
    DefgpaError,
    ElasticGPA,
    EuclideanGPA,
    FreeForm,
    Polynomial,
    RadialBasis,
    Shapes,
    ThinPlateSpline,
)
from defgpa.diagnostics.findings import Problem
from defgpa.estimators import prepare_problem
from defgpa.geometry import measure_geometry
from defgpa.lone_landmarks import place_lone_landmarks
from defgpa.procrustes import SIMILARITY
from defgpa.solvers import elastic
from defgpa.solvers.anchored_cost import ConjugateGradients, RootInverse, make_anchored_inverse
from defgpa.solvers.centred_sums import CentredSums, orthonormalise
from defgpa.solvers.cost import build_cost
from defgpa.solvers.elastic import (
    Anchors,
    Descent,
    Dial,
    descend,
    fit_elastic,
)
from defgpa.solvers.rigid import fit_rigid
from defgpa.tuning import Tuning
from support import (
    EXACT,
    FAMILIES,
    PARITY,
    ChargedTranslations,
    LinearOnly,
    assert_same_shape,
    full_penalty,
    moved,
    rotation,
    shared_points,
    smooth_family,
    up_to_rigid,
    warned_of,
)

every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
every_scaling = pytest.mark.parametrize("scaling", [True, False], ids=["similarity", "rigid"])
WARPS = {
    "affine": Affine(),
    "spline": ThinPlateSpline(4),
    "radial": RadialBasis(points_per_axis=4),
    "free form": FreeForm(),
    "polynomial": Polynomial(),
}


class Own:
    """A warp of one's own: quadratic in the first coordinate, charged for it."""

    def basis(self, points):
        return self

    def features(self, points):
        return np.column_stack([points, np.ones(len(points)), points[:, 0] ** 2])

    def penalty(self):
        return np.diag([0.0] * 3 + [0.3])


def problem(points, warp, dial):
    """The parts of a fit: anchors on the side of the rigid mean, P itself, and its inverse."""
    shapes = Shapes(points)
    geometry = measure_geometry(shapes.points, shapes.visible)
    start = fit_rigid(shapes.points, SIMILARITY, shapes.names).reference
    basis = orthonormalise(geometry.centred, geometry.scatter)
    cost = build_cost(geometry, warp).dense() + dial.firmness * np.einsum(
        "nmd,npd->mp", basis, basis
    )
    anchors = Anchors(CentredSums(geometry), np.ones(len(shapes)))
    return anchors, RootInverse.of(cost[None]), start[None], cost


@every_family
@pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)
def test_charging_the_linear_part_adds_its_projection_to_the_cost(family, warp):
    """I − F(FᵀF + R + μLᵀL)⁻¹Fᵀ is the deformable cost plus κ QQᵀ, shape by shape."""
    mu = 0.7
    for shape in smooth_family(**family)[:3]:
        points = shape[~np.isnan(shape[:, 0])]
        basis = warp.basis(points)
        features = basis.features(points)
        penalty = full_penalty(basis, features.shape[1])
        q, _ = np.linalg.qr(points - points.mean(axis=0))
        linear = q.T @ (features - features.mean(axis=0))
        stacked = features.T @ features + penalty
        free = np.eye(len(points)) - features @ np.linalg.solve(stacked, features.T)
        charged = np.linalg.solve(stacked + mu * linear.T @ linear, features.T)
        expected = np.eye(len(points)) - features @ charged
        np.testing.assert_allclose(free + mu / (1 + mu) * q @ q.T, expected, **PARITY)


@every_family
@every_scaling
@pytest.mark.parametrize("mu", [0.05, 1.0, np.inf])
def test_the_descent_is_monotone(family, scaling, mu):
    dial = Dial(mu, scaling)
    anchors, inverse, start, _ = problem(smooth_family(bend=0.6, **family), WARPS["spline"], dial)
    rng = np.random.default_rng(0)
    for reference in (start, start + rng.normal(size=start.shape)):
        end = descend(anchors, inverse, reference, dial)
        assert end.converged.all()
        assert (np.diff(end.costs) < 1e-12).all()
        assert 0.0 <= end.costs[-1] < 1.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mu", [0.05, 1.0, np.inf])
def test_in_the_plane_nothing_is_better_than_an_eigenvalue_says(seed, mu):
    """There s R is one complex number, and the least relative cost is 1 − λ_max in closed form."""
    points = smooth_family(seed=seed, n=5, m=12, bend=0.8, noise=0.1, missing=0.1)
    dial = Dial(mu, True)
    anchors, inverse, start, cost = problem(points, ThinPlateSpline(3), dial)
    plane = anchors.sums.geometry.centred[..., 0] + 1j * anchors.sums.geometry.centred[..., 1]
    unit = (plane / np.sqrt(anchors.sums.squares[0])[:, None]).T
    gain = dial.firmness * unit.conj().T @ np.linalg.pinv(cost, rcond=1e-12) @ unit
    end = descend(anchors, inverse, start, dial)
    np.testing.assert_allclose(end.costs[-1], 1.0 - np.linalg.eigvalsh(gain)[-1], **EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_a_search_over_all_rotations_finds_nothing_better(seed):
    """In space and without scales, from many places: B ↦ −κ² tr Bᵀ P⁺ B over the rotations."""
    from scipy.optimize import minimize
    from scipy.spatial.transform import Rotation

    points = smooth_family(seed=seed, n=4, m=9, d=3, bend=0.5, noise=0.1)
    dial = Dial(1.0, False)
    anchors, inverse, start, cost = problem(points, ThinPlateSpline(2), dial)
    pinv, complete = np.linalg.pinv(cost, rcond=1e-12), dial.firmness * anchors.sums.squares.sum()

    def left(vectors):
        turns = Rotation.from_rotvec(vectors.reshape(-1, 3)).as_matrix()
        pulled = dial.firmness * np.einsum("nmd,nde->me", anchors.sums.geometry.centred, turns)
        return 1.0 - np.sum(pulled * (pinv @ pulled)) / complete

    rng = np.random.default_rng(seed)
    actual = min(minimize(left, rng.normal(size=12) * 2).fun for _ in range(6))
    assert descend(anchors, inverse, start, dial).costs[-1] < actual + 1e-9


@pytest.mark.parametrize("mu", [0.1, np.inf])
def test_a_search_over_all_references_finds_nothing_better(mu):
    """With scales and holes: 1 − κ Σ (nuclear norm of D̄ᵀS)² / ‖D̄‖² / tr SᵀPS over S itself."""
    from scipy.optimize import minimize

    points = smooth_family(seed=1, n=4, m=8, d=3, bend=0.5, noise=0.1)
    points[1, :2] = points[3, 6] = np.nan
    dial = Dial(mu, True)
    anchors, inverse, start, cost = problem(points, ThinPlateSpline(2, smoothing=0.1), dial)

    def left(flat):
        S = flat.reshape(8, 3)
        S = S - S.mean(axis=0)
        turn, values, right = np.linalg.svd(anchors.sums.geometry.centred.swapaxes(1, 2) @ S)
        values[:, -1] *= np.linalg.det(turn @ right)  # no shape is mirrored
        gain = (values.sum(axis=1) ** 2 / anchors.sums.squares[0]).sum()
        return 1.0 - dial.firmness * gain / np.sum(S * (cost @ S))

    end = descend(anchors, inverse, start, dial)
    np.testing.assert_allclose(left(end.reference.ravel()), end.costs[-1, 0], **EXACT)
    rng = np.random.default_rng(0)
    ends = [minimize(left, start.ravel() + rng.normal(size=24)).fun for _ in range(4)]
    assert end.costs[-1] < min(ends) + 1e-9
    assert min(ends) < end.costs[-1] + 1e-6  # the search did get there


@every_family
def test_the_rigid_end_is_rigid_alignment(family):
    points = smooth_family(bend=0.4, **family)
    rigid = EuclideanGPA().fit(points).alignment_
    alignment = ElasticGPA(Affine(), np.inf, scaling=False).fit(points).alignment_
    np.testing.assert_allclose(
        up_to_rigid(alignment.reference, rigid.reference), rigid.reference, rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(alignment.rmse_datum, rigid.rmse_datum, rtol=1e-8)
    # no warp stretches
    for warp, shape in zip(alignment.warps, points, strict=True):
        jacobian = warp.jacobian(shape[~np.isnan(shape[:, 0])][:1])[0]
        np.testing.assert_allclose(jacobian @ jacobian.T, np.eye(len(jacobian)), atol=1e-8)


@pytest.mark.parametrize("d", [2, 3])
def test_the_rigid_end_with_scaling_is_that_of_shapes_of_one_size(d):
    points = smooth_family(seed=d, d=d, bend=0.4)
    points -= points.mean(axis=1, keepdims=True)
    points /= np.linalg.norm(points, axis=(1, 2), keepdims=True)
    rigid = EuclideanGPA(scaling=True).fit(points).alignment_
    alignment = ElasticGPA(Affine(), np.inf).fit(points).alignment_
    assert_same_shape(up_to_rigid(alignment.reference, rigid.reference), rigid.reference, rtol=1e-8)


@pytest.mark.parametrize(
    "warp",
    [ThinPlateSpline(smoothing=1e12), RadialBasis(smoothing=1e12), FreeForm(smoothing=1e9),
     Polynomial(smoothing=1e12), defgpa.warps.landmark_kernel(smoothing=1e12)],
    ids=["spline", "radial", "free form", "polynomial", "kernel"],
)  # fmt: skip
def test_stiff_warps_of_every_family_are_rigid(warp):
    points = smooth_family(seed=2, bend=0.4, missing=0.2)
    rigid = EuclideanGPA().fit(points).alignment_
    alignment = ElasticGPA(warp, np.inf, scaling=False).fit(points).alignment_
    turned = up_to_rigid(alignment.reference, rigid.reference)
    np.testing.assert_allclose(turned, rigid.reference, rtol=0, atol=1e-8)
    np.testing.assert_allclose(alignment.rmse_reference, rigid.rmse_reference, rtol=1e-8)


@pytest.mark.parametrize("d", [2, 3])
def test_the_soft_end_of_affine_images_is_the_deformable_reference(d):
    rng = np.random.default_rng(d)
    base = rng.normal(size=(20, d)) * np.linspace(2, 1, d)
    points = np.stack([base @ (np.eye(d) + 0.2 * rng.normal(size=(d, d))) for _ in range(6)])
    points = moved(points)
    free = DefGPA(Affine()).fit(points).reference_
    actual = ElasticGPA(Affine(), 1e-7).fit(points).reference_
    size = np.linalg.norm(free) / np.linalg.norm(actual)
    assert_same_shape(up_to_rigid(size * actual, free), free, rtol=1e-5)


def test_the_soft_end_is_far_nearer_to_the_deformable_reference_than_the_rigid_end():
    points = smooth_family(seed=5, bend=0.5, noise=0.02)

    def distance(mu):
        free = DefGPA(ThinPlateSpline(4)).fit(points).reference_
        elastic = ElasticGPA(ThinPlateSpline(4), mu).fit(points).reference_
        elastic, free = elastic / np.linalg.norm(elastic), free / np.linalg.norm(free)
        return np.linalg.norm(up_to_rigid(elastic, free) - free)

    assert distance(1e-3) < 0.2 * distance(np.inf)
    np.testing.assert_allclose(distance(1e-4), distance(1e-3), rtol=0.1)  # no flattening below


@every_family
def test_without_rigidity_it_is_the_deformable_method_at_the_mean_size(family):
    points = smooth_family(bend=0.4, **family)
    free = DefGPA(ThinPlateSpline(4)).fit(points).alignment_
    alignment = ElasticGPA(ThinPlateSpline(4), 0).fit(points).alignment_
    near = ElasticGPA(ThinPlateSpline(4), 1e-6).fit(points).alignment_
    size = np.linalg.norm(alignment.reference) / np.linalg.norm(free.reference)
    np.testing.assert_allclose(alignment.reference, size * free.reference, **EXACT)
    np.testing.assert_allclose(alignment.aligned, size * free.aligned, **EXACT)
    np.testing.assert_allclose(alignment.rmse_datum, free.rmse_datum, **EXACT)
    np.testing.assert_allclose(
        np.linalg.norm(alignment.reference), np.linalg.norm(near.reference), rtol=1e-3
    )
    assert (
        alignment.diagnostics.spectrum is not None
    )  # the facts of a closed form, not of a descent
    new_shape = smooth_family(**{**family, "seed": 20})[0]
    expected = size * free.register(new_shape)(new_shape)
    np.testing.assert_allclose(alignment.register(new_shape)(new_shape), expected, **EXACT)


@every_family
def test_warps_minimise_the_charged_departure_from_their_pose(family):
    """Of ‖Y + FV − S‖² + tr Vᵀ(R + μLᵀL)V, solved apart from the package's way."""
    points, warp, mu = smooth_family(**family), ThinPlateSpline(3), 0.4
    alignment = ElasticGPA(warp, mu).fit(points).alignment_
    for shape, actual in zip(alignment.shapes.points, alignment.warps, strict=True):
        visible = ~np.isnan(shape[:, 0])
        data, goal = shape[visible], alignment.reference[visible]
        centred = data - data.mean(axis=0)
        left, values, right = np.linalg.svd(centred.T @ (goal - goal.mean(axis=0)))
        pose = values.sum() / np.sum(centred**2) * centred @ left @ right + goal.mean(axis=0)
        basis = warp.basis(data)
        features = basis.features(data)
        q, _ = np.linalg.qr(centred)
        linear = q.T @ features
        normal = features.T @ features + basis.penalty() + mu * linear.T @ linear
        departure = np.linalg.solve(normal, features.T @ (goal - pose))
        np.testing.assert_allclose(actual(data), pose + features @ departure, **PARITY)


@every_family
def test_each_shape_may_be_moved_and_scaled(family):
    points = smooth_family(**family)
    model = ElasticGPA(ThinPlateSpline(3), 0.5)
    reference = model.fit(points).reference_
    of_moved = model.fit(moved(points, scales=(0.5, 2.0))).reference_
    size = np.linalg.norm(reference) / np.linalg.norm(of_moved)
    assert_same_shape(up_to_rigid(size * of_moved, reference), reference, rtol=1e-7)


@every_scaling
def test_the_order_of_shapes_and_landmarks_does_not_matter(scaling):
    points = smooth_family(missing=0.2)
    rng = np.random.default_rng(0)
    shapes, landmarks = rng.permutation(len(points)), rng.permutation(points.shape[1])
    model = ElasticGPA(ThinPlateSpline(3), 0.5, scaling)
    reference = model.fit(points).reference_
    reordered = model.fit(points[shapes][:, landmarks]).reference_
    assert_same_shape(reordered, reference[landmarks], rtol=1e-8)


@every_scaling
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("mu", [0.01, 1.0, np.inf])
def test_similar_images_are_recovered_exactly(scaling, d, mu):
    base = np.random.default_rng(0).normal(size=(15, d)) * np.linspace(2, 1, d)
    sizes = (0.5, 2.0) if scaling else (1.0, 1.0)
    points = moved(np.stack([base] * 5), scales=sizes)
    points[2, :3] = points[4, 6] = np.nan
    alignment = ElasticGPA(rigidity=mu, scaling=scaling).fit(points).alignment_
    actual = (
        alignment.reference
        * np.linalg.norm(base - base.mean(0))
        / np.linalg.norm(alignment.reference)
    )
    assert_same_shape(up_to_rigid(actual, base), base, rtol=1e-8)
    assert alignment.rmse_reference < 1e-8
    assert alignment.rmse_datum < 1e-6


def test_the_reference_is_as_large_as_the_shapes():
    points = smooth_family(missing=0.0)
    sizes = np.linalg.norm(points - points.mean(axis=1, keepdims=True), axis=(1, 2))
    reference = ElasticGPA(rigidity=0.2).fit(points).reference_
    np.testing.assert_allclose(np.linalg.norm(reference), sizes.mean(), **EXACT)


@pytest.mark.parametrize("mu", [0, 0.2, np.inf])
def test_with_holes_it_is_as_large_as_the_whole_shapes_would_be(mu):
    base = np.random.default_rng(1).normal(size=(15, 2)) * [2, 1]
    base -= base.mean(axis=0)
    scales = np.array([0.5, 1.0, 2.0, 3.0])
    points = moved(scales[:, None, None] * base)
    points[0, :4] = points[3, 7:9] = np.nan
    reference = ElasticGPA(rigidity=mu).fit(points).reference_
    expected = scales.mean() * np.linalg.norm(base)
    np.testing.assert_allclose(np.linalg.norm(reference), expected, rtol=1e-8)


@every_scaling
@pytest.mark.parametrize("mu", [0.1, 1.0, np.inf])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_dense_and_iterative_solves_agree(scaling, mu, missing):
    points = smooth_family(seed=3, m=60, d=3, bend=0.4, missing=missing)
    warp = ThinPlateSpline(3)
    dense = ElasticGPA(warp, mu, scaling).fit(points).alignment_
    never = ElasticGPA(warp, mu, scaling, tuning=Tuning(dense_landmarks=10)).fit(points).alignment_
    assert_same_shape(never.reference, dense.reference, rtol=1e-8)
    assert_same_shape(never.aligned, dense.aligned, rtol=1e-8)
    assert never.diagnostics.converged


def test_nothing_of_landmarks_squared_is_formed_beyond_the_dense_size():
    points = smooth_family(m=30)
    shapes = Shapes(points)
    geometry = measure_geometry(shapes.points, shapes.visible)
    cost, sums = build_cost(geometry, ThinPlateSpline(3)), CentredSums(geometry)
    assert isinstance(make_anchored_inverse(cost, sums, 0.5, 30), RootInverse)
    assert isinstance(make_anchored_inverse(cost, sums, 0.5, 29), ConjugateGradients)


def test_a_cost_that_leaves_directions_free_has_its_smallest_solution():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(9, 4))
    half -= half.mean(axis=0)
    cost = half @ half.T
    pulled = cost @ rng.normal(size=(9, 2))
    for matrix in (cost, cost + 1e-16 * np.eye(9)):
        made = RootInverse.of(matrix[None]).solve(pulled[None], pulled[None], np.ones(1))[0]
        np.testing.assert_allclose(made, np.linalg.pinv(cost, rcond=1e-10) @ pulled, **PARITY)


def test_warps_that_explain_everything_are_said_to_be_undetermined():
    points = smooth_family(n=5, m=12, noise=0.05)
    with warned_of("neither landmarks nor penalty determine"):
        model = ElasticGPA(ThinPlateSpline(smoothing=0.0)).fit(points)
    assert model.alignment_.diagnostics.converged


@pytest.mark.parametrize("warp", [*WARPS.values(), Own()], ids=[*WARPS, "own"])
def test_every_family_with_free_affine_maps_serves(warp):
    points = smooth_family(missing=0.1, bend=0.4)
    alignment = ElasticGPA(warp, 0.5).fit(points).alignment_
    rigid = ElasticGPA(Affine(), np.inf).fit(points).alignment_
    assert alignment.rmse_reference < rigid.rmse_reference
    for warp_of, shape in zip(alignment.warps, points, strict=True):
        visible = shape[~np.isnan(shape[:, 0])]
        np.testing.assert_allclose(warp_of.exact_inverse()(warp_of(visible)), visible, **PARITY)


@pytest.mark.parametrize(
    "warp",
    [
        LinearOnly(),
        ChargedTranslations(),
        RadialBasis(defgpa.warps.Gaussian(), polynomial_degree=None),
    ],
    ids=["no translations", "charged", "no polynomials"],
)
def test_a_warp_without_free_affine_maps_is_refused(warp):
    with pytest.raises(DefgpaError, match="must contain all affine maps and not charge them"):
        ElasticGPA(warp).fit(smooth_family(n=4) + 3.0)


@pytest.mark.parametrize("rigidity", [-1, -0.1, np.nan, "stiff", True, None])
def test_a_rigidity_that_is_none_is_refused(rigidity):
    with pytest.raises(ValueError, match="'rigidity' parameter of ElasticGPA must be"):
        ElasticGPA(rigidity=rigidity).fit(smooth_family())


@pytest.mark.parametrize("mu", [0.1, np.inf])
def test_a_mirrored_specimen_keeps_its_side(mu):
    points = smooth_family(seed=4, d=3, n=6)
    turned = points.copy()
    turned[2, :, 1] *= -1.0
    with warned_of("mirrored", "shape 3"):
        actual = ElasticGPA(rigidity=mu).fit(
            Shapes(turned, names=[f"shape {i}" for i in range(1, 7)])
        )
    plain = ElasticGPA(rigidity=mu).fit(points)
    assert actual.alignment_.mirrored == ("shape 3",)
    assert_same_shape(up_to_rigid(actual.reference_, plain.reference_), plain.reference_, rtol=1e-7)
    np.testing.assert_allclose(
        actual.alignment_.rmse_reference, plain.alignment_.rmse_reference, rtol=1e-6
    )
    # and so does one that comes later
    warp = actual.alignment_.register(turned[2])
    assert_same_shape(warp(turned[2]), actual.alignment_.aligned[2], rtol=1e-7)


def test_registering_a_shape_of_the_fit_gives_its_warp():
    points = smooth_family(missing=0.2)
    for scaling in (True, False):
        alignment = ElasticGPA(rigidity=0.3, scaling=scaling).fit(points).alignment_
        posed = alignment.posed_like(points[1])
        for a in (alignment, posed):
            assert_same_shape(a.register(points[3])(points[3]), a.aligned[3], rtol=1e-7)


def test_several_rigidities_share_what_they_can_and_give_what_each_gives_alone():
    points = smooth_family(missing=0.1, bend=0.4)
    points[1:, 5] = np.nan  # one landmark that one shape alone sees
    problem = prepare_problem(ElasticGPA(ThinPlateSpline(3)), points)
    for mu in (0.0, 0.1, np.inf):
        alone = ElasticGPA(ThinPlateSpline(3), mu).solve(points)[0]
        actual = place_lone_landmarks(problem.align(Dial(mu, True)), Shapes(points))
        np.testing.assert_array_equal(actual.reference, alone.reference)
        np.testing.assert_array_equal(actual.aligned, alone.aligned)
        assert actual.findings == alone.findings


def test_an_elastic_alignment_works_with_the_other_functions(tmp_path):
    points = smooth_family(seed=2, n=6, m=25, missing=0.1, bend=0.3)
    model = ElasticGPA(ThinPlateSpline(3), 0.5).fit(points)
    a = model.alignment_
    np.testing.assert_array_equal(model.transform(points), a.aligned)
    assert np.isfinite(model.transform(points, "back_projected")).all()
    np.testing.assert_allclose(-model.score(points), a.rmse_reference, **EXACT)
    assert np.isfinite(defgpa.complete(a).shapes.points).all()
    assert defgpa.ShapePCA(2).fit(a).scores_.shape == (6, 2)
    defgpa.report.write_report(a, tmp_path / "report.html")
    assert "rigidity 0.5" in (tmp_path / "report.html").read_text()
    # a bright spot at a landmark comes to lie where the warp puts it
    shift = points[1][np.isfinite(points[1, :, 0])].min(axis=0) - 1.0
    image = np.zeros((160, 160))
    number = int(np.flatnonzero(np.isfinite(points[1, :, 0]))[0])
    x, y = np.rint(10.0 * (points[1, number] - shift)).astype(int)
    image[y - 2 : y + 3, x - 2 : x + 3] = 1.0
    in_pixels = Shapes(10.0 * (points - shift))
    b = ElasticGPA(ThinPlateSpline(3), 0.5).fit(in_pixels).alignment_
    picture = defgpa.warp_image(image, b.warps[1])
    centre = np.argwhere(np.nan_to_num(picture.pixels) > 0.5).mean(axis=0)[::-1]
    np.testing.assert_allclose(picture.origin + centre, b.aligned[1, number], atol=1.5)


def test_the_elastic_estimator_is_cloned_and_checks_its_parameters():
    from sklearn.base import clone

    model = ElasticGPA(ThinPlateSpline(3), 0.5, False)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    copy.set_params(warp__smoothing=1e-2, rigidity=2.0)
    assert (copy.warp.smoothing, copy.rigidity, model.warp.smoothing) == (1e-2, 2.0, None)
    with pytest.raises(TypeError, match="'warp' parameter of ElasticGPA"):
        ElasticGPA(ThinPlateSpline).fit(smooth_family())


def test_a_descent_that_is_cut_short_says_so():
    points = smooth_family(bend=0.8)
    with warned_of("descent ended after 1 steps"):
        model = ElasticGPA(tuning=Tuning(max_rounds=1)).fit(points)
    assert not model.alignment_.diagnostics.converged


def test_starts_that_end_in_different_places_are_a_finding(monkeypatch):
    points = smooth_family(bend=0.4)
    anchors, inverse, start, _ = problem(points, ThinPlateSpline(3), Dial(1.0, True))

    def fit_from(*costs):
        sure = np.ones(1, bool)
        ends = iter([Descent(start, np.array([[end]]), np.zeros(1), sure) for end in costs])
        monkeypatch.setattr(elastic, "descend", lambda *_: next(ends))
        fit = fit_elastic(anchors, inverse, [start] * len(costs), Dial(1.0, True), Tuning())
        return fit.diagnose(0, Dial(1.0, True), np.ones(len(points), int), "abc")[1]

    assert fit_from(0.2, 0.2) == ()
    (actual,) = fit_from(0.3, 0.2)
    assert actual.problem is Problem.STARTS_DISAGREE
    np.testing.assert_allclose(actual.values["excess"], 0.1, **EXACT)
    np.testing.assert_allclose(actual.values["cost"], 0.2, **EXACT)
    assert "of cost 0.3 and 0.2" in str(actual)


def test_the_cheaper_of_two_descents_is_taken():
    points = smooth_family(bend=0.4)
    dial = Dial(1.0, True)
    anchors, inverse, start, _ = problem(points, ThinPlateSpline(3), dial)
    few = Tuning(max_rounds=1)
    rng = np.random.default_rng(0)
    far = start + rng.normal(size=start.shape)
    ends = [descend(anchors, inverse, each, dial, few) for each in (start, far)]
    assert ends[1].costs[-1] > ends[0].costs[-1]
    only = fit_elastic(anchors, inverse, [start], dial, few)
    for starts in ([start, far], [far, start]):
        fit = fit_elastic(anchors, inverse, starts, dial, few)
        np.testing.assert_array_equal(fit.reference, only.reference)


def test_flat_shapes_in_space_are_aligned_in_their_plane():
    flat = smooth_family(n=5, d=2, bend=0.3)
    rng = np.random.default_rng(0)
    solid = np.stack([np.pad(shape, ((0, 0), (0, 1))) @ rotation(rng, 3) for shape in flat])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", defgpa.DefgpaWarning)  # directions that nothing determines
        actual = ElasticGPA(Affine(), 0.5).fit(solid).reference_
    plane = ElasticGPA(Affine(), 0.5).fit(flat).reference_
    assert np.abs(actual[:, 2]).max() < 1e-6 * np.abs(actual).max()
    # the plane has no side in space
    gram = np.linalg.norm(actual[:, None, :2] - actual[None, :, :2], axis=2)
    expected = np.linalg.norm(plane[:, None] - plane[None], axis=2)
    np.testing.assert_allclose(gram, expected, atol=1e-6)


TABLE = {
    "plethodon2d": (1, 1e-2, 1.0, 8.73),
    "plethspecies2d": (1, 1e-2, 10.0, 2.87),
    "face2d": (2, 1e-4, 0.1, 6.42),
    "histology2d": (4, 1e-3, 0.1, 2.50),
}


@pytest.mark.parametrize("name", TABLE)
def test_real_sets_are_predicted_as_the_prototype_did(name):
    fold_size, smoothing, rigidity, expected = TABLE[name]
    points = shared_points(name)
    model = ElasticGPA(ThinPlateSpline(smoothing=smoothing), rigidity)
    cv = defgpa.cross_validate(model, points, fold_size, refit=True)
    size = np.sqrt((cv.reference**2).sum(axis=1).mean())
    np.testing.assert_allclose(100 * cv.error / size, expected, rtol=0.02)


@pytest.mark.parametrize(
    "warp", [defgpa.warps.landmark_kernel(), ThinPlateSpline(4)], ids=["kernel", "tps"]
)
def test_conjugate_gradients_come_to_an_end(warp, monkeypatch):
    """Features reproduce translations but for rounding, which nothing but centring removes."""
    points = smooth_family(seed=4, n=4, m=600, missing=0.1)
    geometry = measure_geometry(points, ~np.isnan(points[..., 0]))
    cost, basis = build_cost(geometry, warp), orthonormalise(geometry.centred, geometry.scatter)
    made = make_anchored_inverse(cost, CentredSums(geometry), 0.5, dense=10)
    products, multiply = [], ConjugateGradients.multiply
    monkeypatch.setattr(
        ConjugateGradients, "multiply", lambda own, x: products.append(1) or multiply(own, x)
    )
    target = np.random.default_rng(0).normal(size=(600, 2))
    target -= target.mean(axis=0)
    actual = made.solve(target[None], target[None], np.full(1, 1e-12))[0]
    assert len(products) < 250
    image = cost.multiply(actual) + 0.5 * np.einsum("nmd,ndk->mk", basis, basis.mT @ actual)
    left = image - image.mean(axis=0) - target
    assert np.linalg.norm(left) < 1e-8 * np.linalg.norm(target)  # flat kernels: nearly singular
