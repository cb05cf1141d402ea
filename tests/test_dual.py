"""Where every shape sees every landmark, the axes come from the features as well as from P."""

import numpy as np
import pytest

from defgpa import DefGPA, Dense, ExactCentering, Iterative, Shapes, SoftCentering, ThinPlateSpline
from defgpa._threads import own_threads
from defgpa.solve.deformable import dual as module
from defgpa.solve.deformable import sampled_inverse as sampling
from defgpa.solve.deformable.cost import eliminated_cost
from defgpa.solve.deformable.dual import dual_cost
from defgpa.solve.deformable.sampled_inverse import sampled_inverse
from defgpa.tuning import Tuning
from defgpa.warps import Frames
from support import (
    EXACT,
    ChargedTranslations,
    assert_same_alignment,
    assert_same_shape,
    cost_of,
    smooth_family,
    warned_of,
)

AGREED = 1e-8
DATA = {
    "2d": {"seed": 20, "m": 120, "d": 2, "n": 8},
    "3d": {"seed": 21, "m": 150, "d": 3, "n": 8},
    "fewer features than landmarks": {"seed": 22, "m": 700, "d": 2, "n": 5},
}
WARPS = {"spline": ThinPlateSpline(4), "soft spline": ThinPlateSpline(4, smoothing=1e-5)}
every_warp = pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)
COLUMNS = Tuning(dense_landmarks=1, few_features=0)
every_budget = pytest.mark.parametrize("budget", [0, 1 << 30], ids=["streamed", "columns"])


@pytest.fixture(params=DATA.values(), ids=DATA)
def full(request):
    return Shapes(smooth_family(**request.param))


@pytest.fixture(autouse=True)
def whatever_the_size(monkeypatch):
    """As for dense shapes, although these are small enough to check."""
    monkeypatch.setattr(module, "_TALL", 0.01)
    monkeypatch.setattr(module, "_SAMPLE", 10**6)


@pytest.fixture
def told(monkeypatch):
    """What came of every attempt: axes, or None."""
    found = []
    axes = module.DualCost.axes

    def told_axes(self, solver, dim):
        found.append(axes(self, solver, dim))
        return found[-1]

    monkeypatch.setattr(module.DualCost, "axes", told_axes)
    return found


def cost_of_dense(shapes, warp, budget=1 << 30):
    return eliminated_cost(Frames.of(shapes.points, shapes.visible), warp, budget, COLUMNS)


def space_of(shapes, warp, centering=None, budget=1 << 30):
    cost = cost_of_dense(shapes, warp, budget)
    return dual_cost(cost, (centering or SoftCentering()).applied(cost))


def matrix_of(space):
    return space.multiply(np.eye(len(space.constant)))


@every_warp
@every_budget
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [7, 10**6])
def test_it_multiplies_by_the_gram_matrix_of_all_features(
    warp, budget, threads, rows, full, rng, monkeypatch
):
    space = space_of(full, warp, budget=budget)
    features = np.vstack([factor.transposed_rows() for factor in space.factors])
    constant = features @ np.ones(full.n_landmarks)
    matrix = full.n_shapes * np.eye(len(features)) - features @ features.T
    matrix += full.n_shapes * np.outer(constant, constant) / (constant @ constant)
    block = rng.normal(size=(len(features), 3))
    width = sum(factor.combine.shape[1] * len(factor.combine) for factor in space.factors)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 8 * rows * width)
    with own_threads(threads):
        np.testing.assert_allclose(space.multiply(block), matrix @ block, rtol=0, atol=AGREED)


@pytest.mark.parametrize("centering", [SoftCentering(), SoftCentering(nu=0.0), ExactCentering()])
def test_its_smallest_eigenvalues_are_those_of_the_centred_cost(centering, full):
    """All of them below n; the others of P are n, which no warp can lower."""
    space = space_of(full, ThinPlateSpline(4), centering)
    ours = np.linalg.eigvalsh(matrix_of(space))
    cost = cost_of_dense(full, ThinPlateSpline(4))
    theirs = np.linalg.eigvalsh(centering.applied(cost).dense())
    count = min(len(ours), len(theirs), 20)
    np.testing.assert_allclose(ours[:count], theirs[:count], rtol=0, atol=AGREED)


@every_warp
@every_budget
@pytest.mark.parametrize(
    "centering",
    [SoftCentering(), SoftCentering(nu=3.0), ExactCentering()],
    ids=["soft", "softer", "exact"],
)
def test_the_alignment_is_the_same(warp, budget, centering, full, told):
    expected = DefGPA(warp, centering=centering, solver=Dense()).fit(full).alignment_
    model = DefGPA(
        warp, centering=centering, solver=Iterative(), tuning=COLUMNS, memory_budget=budget
    )
    found = model.fit(full).alignment_
    assert len(told) == 1
    assert told[0] is not None
    assert_same_alignment(found, expected, rtol=AGREED)


def test_without_a_lift_the_constant_vector_is_an_axis(full):
    """Whatever is asked for: ν = 0 does not centre, here as little as anywhere."""
    space = space_of(full, ThinPlateSpline(4), SoftCentering(nu=0.0))
    axes = space.axes(Iterative(), full.dim).axes
    constant = np.full(full.n_landmarks, full.n_landmarks**-0.5)
    np.testing.assert_allclose(np.linalg.norm(axes.T @ constant), 1.0, rtol=1e-7)


@pytest.fixture
def small_sample(monkeypatch):
    """So that the start is not the solution."""
    monkeypatch.setattr(module, "_PATIENCE", 1000)
    monkeypatch.setattr(sampling, "_sample_size", lambda m, features: 60)


@every_warp
@pytest.mark.usefixtures("small_sample")
def test_the_axes_are_orthonormal_and_the_residuals_bound_theirs(warp, full):
    space = space_of(full, warp)
    found = space.axes(Iterative(accuracy=1e-4), full.dim)
    np.testing.assert_allclose(found.axes.T @ found.axes, np.eye(full.dim), **EXACT)
    cost = SoftCentering().applied(cost_of_dense(full, warp)).dense()
    left = cost @ found.axes - found.axes * found.values[: full.dim]
    # those of the vectors before they were made orthonormal: that changes them by as much
    assert (np.linalg.norm(left, axis=0) <= 2 * found.residuals.max() + 1e-12).all()
    assert found.residuals.max() > 1e-12, "nothing to bound"


@every_warp
def test_a_sample_of_all_landmarks_gives_the_inverse(warp, full, rng, monkeypatch):
    monkeypatch.setattr(sampling, "_sample_size", lambda m, features: m)
    space = space_of(full, warp)
    inverse = sampled_inverse(space.factors, full.n_shapes, space.constant, space.lift)
    shifted = matrix_of(space) + 1e-4 * full.n_shapes * np.eye(len(space.constant))
    block = rng.normal(size=(len(shifted), 2))
    np.testing.assert_allclose(shifted @ inverse.correct(block), block, rtol=0, atol=1e-6)


def test_a_small_sample_costs_products_and_no_digits(full, monkeypatch, told):
    expected = DefGPA(solver=Dense()).fit(full).reference_
    monkeypatch.setattr(module, "_PATIENCE", 1000)
    products = []
    for size in (full.n_landmarks, 60, 15):
        monkeypatch.setattr(sampling, "_sample_size", lambda m, features, size=size: size)
        found = DefGPA(solver=Iterative(), tuning=COLUMNS).fit(full)
        assert_same_shape(found.reference_, expected, rtol=AGREED)
        products.append(found.alignment_.diagnostics.n_products)
    assert all(told)
    assert products[0] < products[1] < products[2]


class TestWhereItDoesNotApply:
    @pytest.mark.usefixtures("small_sample")
    def test_it_gives_way_when_it_takes_too_long(self, full, monkeypatch, told):
        monkeypatch.setattr(module, "_PATIENCE", 1)
        expected = DefGPA(solver=Dense()).fit(full).reference_
        found = DefGPA(solver=Iterative(), tuning=COLUMNS).fit(full)
        assert told == [None]
        assert found.alignment_.diagnostics.converged
        assert_same_shape(found.reference_, expected, rtol=AGREED)

    def test_it_gives_way_when_hardly_any_warp_is_left(self, full, told):
        """All but translations dear: the axes are then hardly seen through the features."""

        class Stiff(ChargedTranslations):
            def penalty(self):
                return np.diag([1e9] * full.dim + [0.0])

        with warned_of("gap is nearly zero"):
            DefGPA(Stiff(), solver=Iterative(), tuning=COLUMNS).fit(full)
        assert told == [None]

    def test_a_landmark_is_missing(self, full):
        points = np.array(full.points)
        points[0, 3] = np.nan
        assert space_of(Shapes(points), ThinPlateSpline(4)) is None

    def test_translations_are_charged(self, full):
        """However little: 1ᵀP1 tells."""

        class Charged(ChargedTranslations):
            def penalty(self):
                return np.diag([0.0] * full.dim + [1e-6])

        centred = SoftCentering().applied(cost_of_dense(full, Charged()))
        assert np.linalg.norm(cost_of(full, Charged()).sum(axis=1)) > 1e-10
        assert dual_cost(cost_of_dense(full, Charged()), centred) is None

    def test_centring_is_of_ones_own(self, full):
        cost = cost_of_dense(full, ThinPlateSpline(4))
        assert dual_cost(cost, cost) is None

    @pytest.mark.parametrize(
        ("holder", "limit", "value"),
        [(sampling, "LARGEST", 10), (module, "_TALL", 10.0), (module, "_SAMPLE", 0.1)],
    )
    def test_there_are_too_many_features(self, holder, limit, value, full, monkeypatch):
        monkeypatch.setattr(holder, limit, value)
        assert space_of(full, ThinPlateSpline(4)) is None


def test_landmarks_in_a_crowd_are_no_trouble(rng, told):
    """Most landmarks of the sample then see one spot, and few see the rest."""
    crowd = smooth_family(seed=23, m=400, d=2, n=5)
    crowd[:, 30:] = crowd[:, :1] + 1e-3 * crowd[:, 30:]
    shapes = Shapes(crowd)
    expected = DefGPA(solver=Dense()).fit(shapes).reference_
    assert_same_shape(
        DefGPA(solver=Iterative(), tuning=COLUMNS).fit(shapes).reference_, expected, rtol=1e-6
    )
    assert told[0] is not None


def test_threads_change_nothing(full):
    space = space_of(full, ThinPlateSpline(4), budget=0)
    found = []
    for threads in (1, 2):
        with own_threads(threads):
            found.append(space.axes(Iterative(), full.dim).axes)
    np.testing.assert_array_equal(*found)
