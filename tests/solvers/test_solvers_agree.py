"""Dense or iterative, stored, as columns or streamed: one answer."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from defgpa import Affine, DefGPA, Dense, Iterative, Shapes, ThinPlateSpline
from defgpa.geometry import measure_geometry
from defgpa.solvers.columns import store_column_factor, stream_factor
from defgpa.solvers.cost import build_cost
from defgpa.solvers.davidson import find_bottom_eigenpairs
from defgpa.solvers.elimination import store_factor
from defgpa.threads import map_blocks, use_threads
from defgpa.tuning import DEFAULT, Tuning
from support import (
    EXACT,
    ChargedTranslations,
    assert_same_alignment,
    assert_same_shape,
    cost_of,
    smooth_family,
    warned_of,
)

AGREED = 1e-8  # relative: what the issue of accuracy · gap leaves, and columns lose to conditioning

DATA = {
    "2d": {"seed": 20, "m": 120, "d": 2, "n": 8},
    "3d": {"seed": 21, "m": 150, "d": 3, "n": 8},
    "2d-partial": {"seed": 22, "m": 120, "d": 2, "n": 8, "missing": 0.3},
    "3d-partial": {"seed": 23, "m": 150, "d": 3, "n": 8, "missing": 0.3},
}
WARPS = {
    "affine": Affine(),
    "spline": ThinPlateSpline(4),
    "soft spline": ThinPlateSpline(4, smoothing=1e-5),
}
every_model = pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)
STORAGES = {"stored": store_factor, "columns": store_column_factor, "streamed": stream_factor}
NAMES = {"stored": "StoredFactor", "columns": "StoredFactor", "streamed": "StreamedFactor"}
every_storage = pytest.mark.parametrize("storage", STORAGES)


COLUMNS = Tuning(dense_landmarks=1, few_features=0)


def cost_held(shapes, warp, options):
    """The cost with its features held as the options of an estimator say."""
    budget, tuning = options["memory_budget"], options.get("tuning", DEFAULT)
    return build_cost(measure_geometry(shapes.points, shapes.visible), warp, budget, tuning)


def find_factorisation(shapes, warp, options):
    """Return the function that factorises the batches under such options."""
    with patch("defgpa.solvers.cost.map_blocks", wraps=map_blocks) as mapped:
        cost_held(shapes, warp, options)
    return mapped.call_args.args[0]


@pytest.fixture(params=DATA.values(), ids=DATA)
def many(request):
    return Shapes(smooth_family(**request.param))


@pytest.fixture
def held():
    """Make the cost hold its features in a given way, whatever their size."""

    def hold(storage):
        if storage == "columns":
            return {"memory_budget": 1 << 30, "tuning": COLUMNS}
        if storage == "streamed":
            return {"memory_budget": 0, "tuning": Tuning(block_bytes=8 * 40_000)}
        return {"memory_budget": 1 << 30}

    return hold


@every_model
@every_storage
def test_the_cost_is_the_same_however_its_features_are_held(warp, storage, many, held, rng):
    expected = cost_of(many, warp)
    actual = cost_held(many, warp, held(storage))
    assert find_factorisation(many, warp, held(storage)) is STORAGES[storage]
    np.testing.assert_allclose(actual.dense(), expected, rtol=0, atol=AGREED)
    block = rng.normal(size=(many.n_landmarks, 3))
    np.testing.assert_allclose(actual.multiply(block), expected @ block, rtol=0, atol=AGREED)


@every_model
@every_storage
@pytest.mark.parametrize("threads", [1, 2])
def test_products_add_up_block_by_block_of_landmarks(warp, storage, threads, many, held, rng):
    """As where there are too many landmarks for an image of every batch."""
    expected = cost_of(many, warp)
    options = held(storage)
    blocks = replace(
        options.get("tuning", DEFAULT),
        block_bytes=8 * 2_000,
        whole_image_landmarks=0,
        thread_blocks=threads,
    )
    actual = cost_held(many, warp, options | {"tuning": blocks})
    assert actual._landmarks_at_a_time < many.n_landmarks
    block = rng.normal(size=(many.n_landmarks, 3))
    with use_threads(threads):
        image = actual.multiply(block)
        coefficients = actual.fit_warps(block)
    np.testing.assert_allclose(image, expected @ block, rtol=0, atol=AGREED)
    at_once = cost_held(many, warp, options).fit_warps(block)
    for by_blocks, whole in zip(coefficients, at_once, strict=True):
        np.testing.assert_allclose(by_blocks, whole, **EXACT)


@every_model
@every_storage
@pytest.mark.parametrize("solver", [Dense(), Iterative()], ids=["dense", "iterative"])
def test_the_alignment_is_the_same_however_it_is_found(warp, storage, solver, many, held):
    expected = DefGPA(warp, solver=Dense()).fit(many).alignment_
    alignment = DefGPA(warp, solver=solver, **held(storage)).fit(many).alignment_
    assert alignment.diagnostics.storage == NAMES[storage]
    assert_same_alignment(alignment, expected, rtol=AGREED)


@every_storage
def test_the_alignment_of_a_users_warp_is_the_same_however_it_is_found(storage, many, held):
    class MyAffine(ChargedTranslations):
        def penalty(self):
            return np.diag([1e-3] * many.n_dims + [0.0])

    expected = DefGPA(MyAffine()).fit(many).alignment_
    options = held(storage)
    for solver in (Dense(), Iterative()):
        alignment = DefGPA(MyAffine(), solver=solver, **options).fit(many).alignment_
        assert alignment.diagnostics.storage == NAMES[storage]
        assert_same_shape(alignment.reference, expected.reference, rtol=AGREED)
        assert_same_shape(alignment.aligned, expected.aligned, rtol=AGREED)


@every_storage
def test_shapes_that_cholesky_fails_on_are_the_same_in_every_way(storage, held):
    """No smoothing: the sure way is taken, by singular values or by QR block after block."""
    shapes = Shapes(smooth_family(seed=24, m=150, n=6, missing=0.2))
    warp = ThinPlateSpline(8, theta=0.0)
    expected = cost_of(shapes, warp)
    actual = cost_held(shapes, warp, held(storage))
    assert actual.condition.max() > 1e7
    # columns times a small matrix lose what its condition, about 1e7, amplifies
    np.testing.assert_allclose(actual.dense(), expected, rtol=0, atol=1e-6)


@every_storage
def test_free_directions_are_counted_in_every_way(storage, held):
    points = np.zeros((5, 60, 3))
    points[..., :2] = smooth_family(seed=25, n=5, m=60)
    shapes = Shapes(points)
    actual = cost_held(shapes, Affine(), held(storage))
    np.testing.assert_array_equal(actual.rank_deficiency, 1)


def test_the_default_solver_and_storage_depend_on_the_size():
    points = smooth_family(seed=26, m=60)
    assert DefGPA().fit(points).alignment_.diagnostics.method == "dense"
    fewer = Tuning(dense_landmarks=59)
    actual = DefGPA(tuning=fewer).fit(points).alignment_.diagnostics
    assert (actual.method, actual.storage) == ("iterative", "StoredFactor")
    budget = 8 * 6 * 60 * 25
    options = {"memory_budget": budget, "tuning": fewer}
    assert find_factorisation(Shapes(points), ThinPlateSpline(), options) is store_column_factor
    assert (
        find_factorisation(Shapes(points), ThinPlateSpline(), {"memory_budget": budget})
        is store_factor
    )
    actual = DefGPA(tuning=fewer, memory_budget=budget - 1).fit(points).alignment_.diagnostics
    assert actual.storage == "StreamedFactor"
    actual = DefGPA(tuning=fewer, memory_budget=budget).fit(points).alignment_.diagnostics
    assert actual.storage == "StoredFactor"


def test_few_features_are_stored_even_for_many_landmarks():
    points = smooth_family(seed=26, m=60)
    model = DefGPA(Affine(), solver=Iterative(), tuning=Tuning(dense_landmarks=1))
    actual = model.fit(points).alignment_.diagnostics
    assert actual.storage == "StoredFactor"


class TestIterating:
    def test_iterations_stop_after_tens_of_products(self, many):
        """A good start and a good idea of the inverse: tens of products, not hundreds."""
        actual = DefGPA(solver=Iterative()).fit(many).alignment_.diagnostics
        assert actual.n_products < 100

    def test_noise_in_the_products_is_not_mistaken_for_a_residual(self, held):
        """Columns of soft splines lose digits; what is left is rounding, and no reason to go on."""
        shapes = Shapes(smooth_family(seed=7, n=8, m=300))
        options = held("columns")
        warp = ThinPlateSpline(5, smoothing=1e-7)
        alignment = DefGPA(warp, solver=Iterative(), **options).fit(shapes).alignment_
        assert alignment.diagnostics.converged
        assert alignment.diagnostics.n_products < 200
        assert_same_shape(
            alignment.reference, DefGPA(warp, solver=Dense()).fit(shapes).reference_, rtol=AGREED
        )

    def test_too_few_products_are_warned_of(self):
        shapes = Shapes(smooth_family(**DATA["3d-partial"]))
        with warned_of("stopped after", "products", "Dense()"):
            alignment = DefGPA(solver=Iterative(max_products=1)).fit(shapes).alignment_
        assert not alignment.diagnostics.converged

    def test_a_tiny_gap_is_solved_or_reported_as_not_converged(self, rng):
        """The d-th and the next eigenvalue a millionth apart: the right axes, or a warning."""
        m, d = 200, 2
        basis, _ = np.linalg.qr(rng.normal(size=(m, m)))
        for gap in (1e-3, 1e-6, 1e-9, 0.0):
            values = np.concatenate([[0.1, 0.2, 0.2 + gap], np.linspace(1, 5, m - 3)])
            matrix = (basis * values) @ basis.T
            actual = find_bottom_eigenpairs(
                lambda x, a=matrix: a @ x,
                lambda r: r,
                rng.normal(size=(m, 5)),
                count=d,
                norm=5.0,
                accuracy=1e-10,
                max_products=400,
            )
            np.testing.assert_allclose(actual.values[:d], values[:d], rtol=0, atol=1e-8)
            moved = 1 - np.linalg.norm(basis[:, :d].T @ actual.vectors[:, :d], axis=0).min()
            assert moved < 1e-6 or gap < 1e-6 or not actual.converged
            residual = matrix @ actual.vectors - actual.vectors * actual.values
            np.testing.assert_allclose(
                np.linalg.norm(residual, axis=0), actual.residuals, rtol=0, atol=1e-12
            )

    @pytest.mark.parametrize("n_start", [1, 5])
    def test_start_columns_that_depend_on_each_other_are_replaced(self, rng, n_start):
        """As those of the preconditioner do where many axes of few landmarks are wanted."""
        matrix = np.diag(np.arange(1.0, 13.0))
        actual = find_bottom_eigenpairs(
            lambda x: matrix @ x,
            lambda r: r,
            np.repeat(rng.normal(size=(12, 1)), n_start, axis=1),
            count=7,
            norm=12.0,
            accuracy=1e-10,
            max_products=400,
        )
        np.testing.assert_allclose(actual.values[:7], np.arange(1, 8), **EXACT)

    @pytest.mark.parametrize("storage", ["stored", "columns"])
    def test_an_ambiguous_reference_is_reported_by_both_solvers(self, storage, held):
        """Splines that interpolate explain any reference: there is no gap to find."""
        points = smooth_family(seed=31, n=4, m=25)
        options, warp = held(storage), ThinPlateSpline(5, theta=0.0)
        for solver in (Dense(), Iterative()):
            with warned_of("gap is nearly zero"):
                DefGPA(warp, solver=solver, **options).fit(points)

    @pytest.mark.parametrize(
        "points",
        [
            *(smooth_family(seed=27, n=4, m=m) for m in (3, 4, 5, 8)),
            np.stack([smooth_family(seed=28, d=3)[0]] * 4),
        ],
        ids=["3 landmarks", "4 landmarks", "5 landmarks", "8 landmarks", "copies"],
    )
    def test_very_few_landmarks_and_copies_of_one_shape_are_no_trouble(self, points):
        dense, iterative = (
            DefGPA(Affine(), solver=solver).fit(points) for solver in (Dense(), Iterative())
        )
        assert_same_shape(iterative.reference_, dense.reference_, rtol=AGREED)


class TestSoftWarpsThroughHoles:
    """No shape stands for the others: the cheap inverse is a poor one."""

    warp = ThinPlateSpline(5, smoothing=1e-6)

    @pytest.fixture
    def soft(self):
        return Shapes(smooth_family(seed=32, n=10, m=600, d=3, missing=0.2))

    @pytest.fixture
    def expected(self, soft):
        return DefGPA(self.warp, solver=Dense()).fit(soft).alignment_

    def test_iterations_get_there_all_the_same(self, soft, expected):
        alignment = DefGPA(self.warp, solver=Iterative()).fit(soft).alignment_
        assert alignment.diagnostics.method == "iterative"
        assert alignment.diagnostics.n_products > Tuning().max_products
        assert_same_alignment(alignment, expected, rtol=AGREED)

    def test_by_default_moderate_sets_are_solved_whole(self, soft, expected):
        alignment = DefGPA(self.warp).fit(soft).alignment_
        assert alignment.diagnostics.method == "dense"
        assert_same_alignment(alignment, expected, rtol=AGREED)

    def test_by_default_large_sets_are_not(self, soft, expected):
        alignment = DefGPA(self.warp, tuning=Tuning(moderate_landmarks=599)).fit(soft).alignment_
        assert alignment.diagnostics.method == "iterative"
        assert_same_alignment(alignment, expected, rtol=AGREED)

    def test_the_patience_of_a_stated_solver_is_the_users(self, soft):
        with warned_of("stopped after", "products", "Dense()"):
            alignment = DefGPA(self.warp, solver=Iterative(max_products=200)).fit(soft).alignment_
        assert 200 <= alignment.diagnostics.n_products < 250


class TestPreconditioner:
    def test_where_features_are_few_it_is_the_inverse(self, many, rng):
        cost = build_cost(measure_geometry(many.points, many.visible), Affine())
        shift = 1e-4 * many.n_shapes
        matrix = cost.dense() + shift * np.eye(many.n_landmarks)
        block = rng.normal(size=(many.n_landmarks, 2))
        np.testing.assert_allclose(
            cost.preconditioner().correct(block), np.linalg.solve(matrix, block), rtol=1e-6
        )

    @pytest.mark.parametrize("limit", [0, 10**6])
    def test_exact_or_representative_the_answer_is_the_same(self, limit, many):
        """n shapes, or one that stands for all: only the number of products differs."""
        expected = DefGPA(solver=Dense()).fit(many).reference_
        tuning = Tuning(exact_inverse_features=limit)
        actual = DefGPA(solver=Iterative(), tuning=tuning).fit(many)
        assert_same_shape(actual.reference_, expected, rtol=AGREED)

    def test_the_representative_inverse_helps(self):
        """Without it thousands of products would be needed, with it tens."""
        shapes = Shapes(smooth_family(seed=29, n=10, m=400))
        model = DefGPA(solver=Iterative(), tuning=Tuning(exact_inverse_features=0))
        assert model.fit(shapes).alignment_.diagnostics.n_products < 80

    def test_a_second_shape_tells_soft_directions_apart(self):
        """One shape takes what it can bend for free; another one may not."""
        shapes = Shapes(smooth_family(seed=31, n=6, m=700, d=3))
        warp, patient = (
            ThinPlateSpline(5, smoothing=1e-6),
            Tuning(nearly_free=0.0, max_products=1000),
        )
        preconditioned = DefGPA(warp, solver=Iterative()).solve(shapes)[0]
        alone = DefGPA(warp, solver=Iterative(), tuning=patient).solve(shapes)[0]
        assert preconditioned.diagnostics.n_products < 0.9 * alone.diagnostics.n_products
        assert_same_shape(preconditioned.reference, alone.reference, rtol=AGREED)


@pytest.mark.parametrize("changed", [{"cache_bytes": 0}, {"row_bytes": 0}], ids=str)
def test_however_much_is_made_or_read_landmarks_at_a_time_the_product_is_the_same(changed, rng):
    points = smooth_family(seed=32, n=5, m=600, missing=0.1)
    geometry = measure_geometry(points, ~np.isnan(points[..., 0]))
    block = rng.normal(size=(600, 3))
    usual = Tuning(batch_bytes=1 << 18, few_bytes=0)
    tunings = [usual, replace(usual, **changed)]
    costs = [build_cost(geometry, ThinPlateSpline(), tuning=tuning) for tuning in tunings]
    assert len(costs[0].factors) > 1
    expected = costs[0].dense() @ block
    for cost in costs:
        np.testing.assert_allclose(cost.multiply(block), expected, **EXACT)
