"""One suite for all warps, ours and anybody's: what a linear basis warp owes to the solve."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

import defgpa
from defgpa import Affine, DefGPA, FreeForm, Polynomial, RadialBasis, Shapes, ThinPlateSpline, Warp
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from defgpa.solvers.registration import RidgeRegistration
from defgpa.warps import (
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Membrane,
    Multiquadric,
    Polyharmonic,
    WeightRidge,
    WendlandC2,
    WendlandC4,
    landmark_kernel,
)
from support import (
    EXACT,
    LIMIT,
    assert_same_shape,
    cost_of,
    explicit_cost,
    moved,
    rotation,
    smooth_family,
)

pytestmark = pytest.mark.filterwarnings("ignore:This warp has no free translations")


@dataclass(frozen=True, eq=False)
class WaveBasis:
    centre: np.ndarray
    scale: float
    frequencies: np.ndarray  # (k, d)
    stiffness: float

    def features(self, points):
        x = (points - self.centre) / self.scale
        angles = x @ self.frequencies.T
        return np.column_stack([np.sin(angles), np.cos(angles), x, np.ones(len(x))])

    def penalty(self):
        squares = np.sum(self.frequencies**2, axis=1)
        free = np.zeros(len(self.centre) + 1)
        return self.stiffness * np.diag(np.concatenate([squares**2, squares**2, free]))


@dataclass(frozen=True)
class Waves:
    """A tester's warp: affine maps and a few waves along the coordinate axes."""

    smoothing: float = 1e-3

    def basis(self, points):
        centre = points.mean(axis=0)
        scale = float(np.sqrt(((points - centre) ** 2).sum(axis=1).mean()))
        frequencies = np.vstack([k * np.eye(points.shape[1]) for k in (1.0, 2.0)])
        return WaveBasis(centre, scale, frequencies, self.smoothing * len(points))


@dataclass(frozen=True, eq=False)
class BumpBasis:
    centres: np.ndarray
    width: float
    stiffness: float

    def features(self, points):
        return np.exp(-np.sum(self._grid_offsets(points) ** 2, axis=2) / self.width**2)

    def gradients(self, points):
        slope = -2.0 / self.width**2 * self.features(points)
        return np.swapaxes(slope[..., None] * self._grid_offsets(points), 1, 2)

    def penalty(self):
        return self.stiffness

    def _grid_offsets(self, points):
        return points[:, None] - self.centres


@dataclass(frozen=True)
class Bumps:
    """Another: Gaussians around landmarks, and no affine part. The counter-example."""

    smoothing: float = 1e-3

    def basis(self, points):
        width = float(np.sqrt(points.var(axis=0).sum()))
        return BumpBasis(points[::3], width, self.smoothing * len(points))


@dataclass(frozen=True)
class Promise:
    """A warp and what its family promises."""

    model: object
    translations: bool = True  # are free
    affine: bool = True  # maps are free
    rigid: bool = True  # motions of a shape change nothing
    similarity: bool = True  # nor does its size


PROMISES = {
    "affine": Promise(Affine()),
    "thin plate": Promise(ThinPlateSpline(4)),
    "polynomial 2": Promise(Polynomial(2)),
    "polynomial 3": Promise(Polynomial(3)),
    "free form": Promise(FreeForm(5)),
    "free form, membrane": Promise(FreeForm(4, energy=Membrane())),
    "free form, Laplacian": Promise(FreeForm(4, energy=Laplacian())),
    "Gaussian": Promise(RadialBasis(Gaussian(), 4)),
    "multiquadric": Promise(RadialBasis(Multiquadric(), 4)),
    "inverse multiquadric": Promise(RadialBasis(InverseMultiquadric(), 4)),
    "Wendland C2": Promise(RadialBasis(WendlandC2(), 4)),
    "Wendland C4": Promise(RadialBasis(WendlandC4(), 4)),
    "polyharmonic": Promise(RadialBasis(Polyharmonic(3), 4)),
    "ridge": Promise(RadialBasis(Gaussian(), 4, penalty=WeightRidge())),
    "translations only": Promise(RadialBasis(Gaussian(), 4, polynomial_degree=0), affine=False),
    "no polynomials": Promise(
        RadialBasis(Gaussian(), 4, polynomial_degree=None), translations=False, affine=False
    ),
    "at the landmarks": Promise(landmark_kernel()),
    "at the landmarks, ridge": Promise(
        RadialBasis(WendlandC2(), control_points="landmarks", penalty=WeightRidge())
    ),
    "at the landmarks, multiquadric": Promise(
        RadialBasis(Multiquadric(), control_points="landmarks")
    ),
    "a tester's waves": Promise(Waves(), rigid=False, similarity=False),
    "a tester's bumps": Promise(Bumps(), translations=False, affine=False),
}


def those(chosen):
    """The warps of which this is true, as a parameter of a test."""
    selected = {name: promise for name, promise in PROMISES.items() if chosen(promise)}
    return pytest.mark.parametrize("promise", selected.values(), ids=selected)


every = those(lambda promise: True)
affine = those(lambda promise: promise.affine)
bending = those(lambda promise: promise.affine and hasattr(promise.model, "smoothing"))
rigid = those(lambda promise: promise.rigid)
similar = those(lambda promise: promise.similarity)


@pytest.fixture(params=[(2, 0.0), (2, 0.15), (3, 0.1)], ids=["2d", "2d-partial", "3d-partial"])
def family(request):
    d, missing = request.param
    return Shapes(smooth_family(seed=10 + d, n=5, m=36 + 12 * (d - 2), d=d, missing=missing))


def visible(shapes, i=0):
    return shapes.points[i][shapes.visible[i]]


def fitted_map(model, points, function):
    """The warp of the family that comes closest to a function on the points of a shape."""
    return RidgeRegistration(model).warp(points, function(points))


def smallest(matrix):
    return np.linalg.eigvalsh(matrix).min()


@every
def test_the_cost_is_that_of_the_best_warps(promise, family, rng):
    reference = rng.normal(size=(family.n_landmarks, family.n_dims))
    quadratic = np.sum(reference * (cost_of(family, promise.model) @ reference))
    np.testing.assert_allclose(quadratic, explicit_cost(family, promise.model, reference), **EXACT)


@every
def test_the_spectrum_lies_between_zero_and_the_number_of_shapes(promise, family):
    spectrum = np.linalg.eigvalsh(cost_of(family, promise.model))
    assert spectrum.min() > -EXACT["atol"]
    assert spectrum.max() < family.n_shapes + EXACT["atol"]


@every
def test_all_shapes_at_once_are_the_shapes_one_by_one(promise, family):
    together = cost_of(family, promise.model)
    for i in range(family.n_shapes):
        visible = family.points[i : i + 1], family.visible[i : i + 1]
        cost = build_cost(measure_geometry(*visible), promise.model).dense()
        others = [k for k in range(family.n_shapes) if k != i]
        shape_cost = build_cost(
            measure_geometry(family.points[others], family.visible[others]), promise.model
        )
        np.testing.assert_allclose(cost + shape_cost.dense(), together, **EXACT)


@every
def test_streamed_features_give_the_same_cost(promise, family, rng):
    block = rng.normal(size=(family.n_landmarks, 3))
    streamed = build_cost(measure_geometry(family.points, family.visible), promise.model, budget=0)
    assert streamed.storage.startswith("Streamed")
    np.testing.assert_allclose(
        streamed.multiply(block), cost_of(family, promise.model) @ block, **EXACT
    )


@every
def test_the_constant_vector_costs_nothing_if_and_only_if_translations_are_free(promise, family):
    ones = np.ones(family.n_landmarks)
    charge = np.linalg.norm(cost_of(family, promise.model) @ ones) / np.linalg.norm(ones)
    if promise.translations:
        assert charge < EXACT["atol"]
    else:
        assert charge > 1e-3


@every
def test_affine_maps_cost_nothing_if_and_only_if_they_are_promised(promise, family):
    for i in range(family.n_shapes):
        points = visible(family, i)
        cost = cost_of(Shapes.specimens(points[None]), promise.model)
        left = np.linalg.norm(cost @ points) / np.linalg.norm(points)
        assert left < EXACT["atol"] if promise.affine else left > 1e-4


@every
def test_the_public_check_says_so(promise, family):
    check = defgpa.check_warp(promise.model, family.points[1])
    assert check.free_translations == promise.translations
    assert check.free_affine == promise.affine
    assert check.rigid_invariance == promise.rigid
    assert check.similarity_invariance == promise.similarity
    assert check.penalty_psd
    assert check.pointwise
    assert check.jacobian_error < LIMIT["rtol"]


@bending
def test_it_explains_at_least_what_affine_maps_explain(promise, family):
    assert smallest(cost_of(family, Affine()) - cost_of(family, promise.model)) > -EXACT["atol"]


@bending
def test_less_smoothing_explains_more(promise, family):
    costs = [cost_of(family, replace(promise.model, smoothing=s)) for s in (1e-4, 1e-2, 1.0)]
    for softer, stiffer in itertools.pairwise(costs):
        assert smallest(stiffer - softer) > -EXACT["atol"]
        assert np.linalg.norm(stiffer - softer) > 1e-2


@bending
def test_it_tends_to_affine_maps_as_the_smoothing_grows(promise, family):
    stiff = replace(promise.model, smoothing=1e9)
    np.testing.assert_allclose(cost_of(family, stiff), cost_of(family, Affine()), **LIMIT)
    expected = DefGPA(Affine()).fit(family).reference_
    assert_same_shape(DefGPA(stiff).fit(family).reference_, expected, rtol=LIMIT["rtol"])


@bending
def test_the_penalty_counts_the_visible_points(promise, family):
    points = visible(family)
    twice = np.vstack([points, points])
    once, more = promise.model.basis(points), promise.model.basis(twice)
    if getattr(promise.model, "control_points", None) == "landmarks":
        assert more.stiffness == 2 * once.stiffness  # of twice as many centres
    else:
        np.testing.assert_allclose(more.penalty(), 2 * once.penalty(), **EXACT)


@rigid
def test_motions_of_each_shape_change_nothing(promise, family):
    images = family.with_points(moved(family.points, seed=3))
    np.testing.assert_allclose(
        cost_of(images, promise.model), cost_of(family, promise.model), **EXACT
    )


@similar
def test_the_size_of_each_shape_changes_nothing(promise, family):
    images = family.with_points(moved(family.points, seed=4, scales=(0.01, 50.0)))
    np.testing.assert_allclose(
        cost_of(images, promise.model), cost_of(family, promise.model), **EXACT
    )


def test_the_counter_example_depends_on_the_pose(family):
    images = family.with_points(moved(family.points, seed=3))
    assert np.linalg.norm(cost_of(images, Waves()) - cost_of(family, Waves())) > 1e-3


@every
def test_the_jacobian_is_the_derivative(promise, family, rng):
    points = visible(family)
    basis = promise.model.basis(points)
    size = basis.features(points).shape[1]
    warp = Warp(basis, rng.normal(size=(size, family.n_dims)))
    # inside, around and far beyond the shape; not on a centre, where a kernel may have a kink
    places = np.vstack([points + 0.0123, 4.0 * points - 3.0 * points.mean(axis=0)])
    step = 1e-5
    columns = [
        (warp(places + step * axis) - warp(places - step * axis)) / (2 * step)
        for axis in np.eye(family.n_dims)
    ]
    expected = np.stack(columns, axis=-1)
    tolerance = LIMIT["rtol"] * np.abs(expected).max()
    np.testing.assert_allclose(warp.jacobian(places), expected, rtol=0, atol=tolerance)


@every
def test_folds_are_where_the_determinant_has_the_wrong_sign(promise, family, rng):
    points = visible(family)
    basis = promise.model.basis(points)
    size = basis.features(points).shape[1]
    warp = Warp(basis, rng.normal(size=(size, family.n_dims)))
    determinant = np.linalg.det(warp.jacobian(points))
    odd = determinant < 0 if np.median(determinant) >= 0 else determinant > 0
    np.testing.assert_array_equal(warp.foldovers(points), odd)


@affine
def test_a_fitted_warp_does_not_fold_on_gentle_shapes(promise, family):
    for warp, shape in zip(DefGPA(promise.model).fit(family).warps_, family.points, strict=True):
        assert not warp.foldovers(shape[~np.isnan(shape[:, 0])]).any()


@every
def test_the_exact_inverse_inverts(promise, family):
    points = visible(family)
    centre = points.mean(axis=0)
    turn = rotation(np.random.default_rng(5), family.n_dims)
    warp = fitted_map(promise.model, points, lambda x: 0.5 * np.sin(x - centre) + 3.0 * x @ turn)
    returned = warp.exact_inverse()(warp(points))
    is_visible = ~np.isnan(returned[:, 0])
    np.testing.assert_allclose(warp(returned[is_visible]), warp(points)[is_visible], **EXACT)
    if promise.affine:
        np.testing.assert_allclose(returned, points, **EXACT)


@every
def test_the_approximate_inverse_nearly_inverts(promise, family):
    points = visible(family)
    centre, size = points.mean(axis=0), np.abs(points - points.mean(axis=0)).max()
    warp = fitted_map(promise.model, points, lambda x: x + 0.1 * np.sin(x - centre))
    if promise.affine:
        error = np.linalg.norm(warp.inverse()(warp(points)) - points, axis=1)
        assert np.sqrt(np.mean(error**2)) < 0.01 * size
    else:  # far from the centres such a warp forgets where it is; but it answers everywhere
        assert np.isfinite(warp.inverse()(warp(points))).all()


@every
def test_warps_are_finite_everywhere_and_leave_nan_alone(promise, family):
    warp = DefGPA(promise.model).fit(family).warps_[0]
    far = 20.0 * family.points[0]
    images = warp(far)
    np.testing.assert_array_equal(np.isnan(images), np.isnan(far))
    assert np.isfinite(images[family.visible[0]]).all()


@every
def test_no_points_have_no_images(promise, family):
    warp, dim = DefGPA(promise.model).fit(family).warps_[0], family.n_dims
    assert warp(np.empty((0, dim))).shape == (0, dim)
    assert warp.jacobian(np.empty((0, dim))).shape == (0, dim, dim)
    assert warp.foldovers(np.empty((0, dim))).shape == (0,)


@every
def test_soft_and_exact_centring_agree_if_translations_are_free(promise, family):
    soft = DefGPA(promise.model).fit(family).reference_
    exact = DefGPA(promise.model, centering=defgpa.ExactCentering()).fit(family).reference_
    np.testing.assert_allclose(exact.mean(axis=0), 0, **EXACT)
    if promise.translations:
        assert_same_shape(soft, exact)


@every
def test_an_alignment_comes_back_from_its_file(promise, family, tmp_path):
    for kind in (Waves, WaveBasis, Bumps, BumpBasis):
        defgpa.register_saved(kind, name=f"test.{kind.__name__}")
    made = DefGPA(promise.model).fit(family).alignment_
    defgpa.save(made, tmp_path / "result.npz")
    result = defgpa.load(tmp_path / "result.npz")
    grid = 2.0 * visible(family, 1)
    for ours, theirs in zip(result.warps, made.warps, strict=True):
        assert_same_shape(ours(grid), theirs(grid))
        assert_same_shape(ours.inverse()(grid), theirs.inverse()(grid))
        # the saved basis knows its penalty too, in whatever coordinates it keeps
        assert np.isclose(charge(ours), charge(theirs), **EXACT)
    new_shape = family.points[2]
    assert_same_shape(result.register(new_shape)(grid), made.register(new_shape)(grid))


def charge(warp):
    """tr(WᵀRW)."""
    penalty = np.asarray(warp.basis.penalty())
    if penalty.ndim == 0:
        penalty = float(penalty) * np.eye(len(warp.coefficients))
    return np.sum(warp.coefficients * (penalty @ warp.coefficients))
