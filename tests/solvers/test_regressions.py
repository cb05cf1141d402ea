"""The ridge regression of every shape: its digits, its rank, and the ways it is computed."""

from dataclasses import replace

import numpy as np
import pytest

from defgpa import Affine, DefGPA, FreeForm, Polynomial, RadialBasis, ThinPlateSpline
from defgpa.geometry import measure_geometry
from defgpa.solvers import columns
from defgpa.solvers.columns import (
    _split_landmarks,
    correct_ridge,
    store_column_factor,
    stream_factor,
)
from defgpa.solvers.cost import make_batches
from defgpa.solvers.elimination import (
    POOR_CONDITION,
    append_penalty_rows,
    ridge_from_features,
    ridge_from_normal_matrix,
    store_factor,
)
from defgpa.solvers.sparse_columns import store_sparse_factor
from defgpa.tuning import Tuning
from defgpa.warps import Gaussian, Membrane
from support import EXACT, form_gram, rotation, smooth_family

DIGITS = 1e-12  # of P, whichever way it is computed
TURNS = {"as it is": 0.0, "turned": 1.0, "hardly turned": 1e-6}
FAMILIES = {
    "affine": Affine(),
    "thin plate": ThinPlateSpline(4),
    "polynomial": Polynomial(3),
    "free form": FreeForm(5),
    "membrane": FreeForm(4, energy=Membrane()),
    "Gaussian": RadialBasis(Gaussian(), 4),
}
every_family = pytest.mark.parametrize("warp", FAMILIES.values(), ids=FAMILIES)
every_turn = pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)


def one_batch(warp, points):
    """All shapes as one batch, NaN for what is hidden."""
    (batch,) = make_batches(measure_geometry(points, ~np.isnan(points[..., 0])), warp)
    return batch


def by_singular_values(batch):
    """Σ U Uᵀ of a batch, by the sure way."""
    features = batch.weigh(batch.bases.features(batch.points))
    stacked = append_penalty_rows(features, batch.bases.penalty())
    reached = features @ ridge_from_features(stacked, batch.visible.sum(axis=1)).inverse
    return (reached @ np.swapaxes(reached, 1, 2)).sum(axis=0)


def refused(*_):
    raise AssertionError("singular values were asked for")


@pytest.mark.parametrize("hold", [store_column_factor, stream_factor])
@pytest.mark.parametrize("smoothing", [1e-2, 1e-4, 1e-6, 1e-8])
def test_smoothing_costs_no_digits_and_no_singular_values(hold, smoothing, monkeypatch):
    points = smooth_family(seed=1, n=1, m=600, d=3, missing=0.1)
    batch = one_batch(ThinPlateSpline(6, smoothing=smoothing), points)
    expected = by_singular_values(batch)
    monkeypatch.setattr(columns, "ridge_from_features", refused)
    np.testing.assert_allclose(form_gram(hold(batch)), expected, rtol=0, atol=DIGITS)


def test_columns_without_low_orders_need_no_second_look(monkeypatch):
    """Down to a smoothing of 1e-6 their Gram matrix keeps the digits; that of the kernel not."""
    points = smooth_family(seed=1, n=1, m=600, d=3)
    batch = one_batch(ThinPlateSpline(6, smoothing=1e-6), points)
    monkeypatch.setattr(columns, "refine_ridge", refused)
    assert store_column_factor(batch).ridge.condition[0] < POOR_CONDITION
    with pytest.raises(AssertionError):
        stream_factor(batch)


@pytest.mark.parametrize("counts", [(2, 2), (3, 5), (7, 7), (2, 3, 2), (4, 4, 4)], ids=str)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_columns_without_low_orders_make_the_same_splines(counts, ridge, rng):
    points = smooth_family(seed=1, n=2, m=200, d=len(counts), missing=0.1)
    warp = ThinPlateSpline(counts, smoothing=1e-3, ridge=ridge)
    batch = one_batch(warp, points)
    deflated = batch.deflate()
    columns = deflated.columns()
    assert columns.shape[-1] == np.prod(counts)
    np.testing.assert_allclose(deflated.columns(slice(20, 50)), columns[:, 20:50], **EXACT)
    np.testing.assert_allclose(
        form_gram(store_column_factor(batch)), by_singular_values(batch), **EXACT
    )
    weights = rng.normal(size=(columns.shape[-1], len(counts)))
    plain, coefficients = deflated.bases[1].express_in_columns(weights)
    visible = batch.points[1]
    with_low_orders, without = (
        deflated.bases[1].features(visible) @ weights,
        plain.features(visible) @ coefficients,
    )
    np.testing.assert_allclose(with_low_orders, without, **EXACT)
    if ridge == 0.0:
        bent, charged = plain.penalty(), deflated.bases[1].penalty()
        np.testing.assert_allclose(
            weights.T @ charged @ weights, coefficients.T @ bent @ coefficients, **EXACT
        )
    gradients = deflated.bases[1].column_gradients(visible) @ weights
    np.testing.assert_allclose(gradients, plain.column_gradients(visible) @ coefficients, **EXACT)


@pytest.mark.parametrize("hold", [store_column_factor, stream_factor])
def test_a_rank_is_judged_block_of_landmarks_by_block(hold):
    points, _ = flat(1e-16, TURNS["turned"], m=200)
    batch = replace(one_batch(ThinPlateSpline(4), points), tuning=Tuning(block_bytes=8 * 4_000))
    assert len(_split_landmarks(batch)) > 3
    factor = hold(batch)
    np.testing.assert_array_equal(factor.ridge.rank_deficiency, 1)
    np.testing.assert_allclose(form_gram(factor), by_singular_values(batch), **EXACT)


def test_one_poor_shape_does_not_change_the_others(rng):
    """The last shape sees a dense patch only: its features are nearly dependent."""
    points = smooth_family(seed=2, n=3, m=400, d=2)
    points[2, 12:] = np.nan
    batch = one_batch(ThinPlateSpline(6, smoothing=3e-3), points)
    alone = store_column_factor(batch[:2])
    together = store_column_factor(batch)
    np.testing.assert_array_equal(together.ridge.inverse[:2], alone.ridge.inverse)
    np.testing.assert_allclose(form_gram(together), by_singular_values(batch), rtol=0, atol=DIGITS)


def nearly_dependent(rng, share):
    features = rng.normal(size=(2, 60, 8))
    features[..., 7] = features[..., 6] + share * features[..., 7]
    return features


def test_a_second_factor_gives_the_lost_digits_back(rng):
    features = nearly_dependent(rng, 1e-5)
    gram, penalty = np.swapaxes(features, 1, 2) @ features, np.zeros((2, 8, 8))
    first = ridge_from_normal_matrix(gram, penalty)
    assert (first.condition > POOR_CONDITION).all()
    reached = features @ first.inverse
    corrected = correct_ridge(first, np.swapaxes(reached, 1, 2) @ reached, penalty)
    np.testing.assert_array_equal(corrected.condition, first.condition)

    def off(ridge):
        reached = features @ ridge.inverse
        exact = np.linalg.qr(features)[0]
        difference = reached @ np.swapaxes(reached, 1, 2) - exact @ np.swapaxes(exact, 1, 2)
        return np.abs(difference).max()

    assert off(corrected) < 1e-10
    assert off(corrected) < 0.01 * off(first)


def test_a_second_factor_does_not_hide_a_free_direction(rng):
    features = nearly_dependent(rng, 1e-9)
    gram, penalty = np.swapaxes(features, 1, 2) @ features, np.zeros((2, 8, 8))
    first = ridge_from_normal_matrix(gram + 1e-13 * np.eye(8), penalty)
    reached = features @ first.inverse
    corrected = correct_ridge(first, np.swapaxes(reached, 1, 2) @ reached, penalty)
    assert np.isinf(corrected.condition).all()


def flat(noise, turn, m=60, n=4):
    """Shapes in a plane, but for noise, each turned in its own way; and their normals."""
    points = np.zeros((n, m, 3))
    points[..., :2] = smooth_family(seed=15, n=n, m=m)
    points[..., 2] = noise * np.random.default_rng(1).normal(size=(n, m))
    normals = np.tile([0.0, 0.0, 1.0], (n, 1))
    for i in range(n if turn else 0):
        rng = np.random.default_rng(i)
        motion = (
            rotation(rng, 3)
            if turn == 1.0
            else np.linalg.qr(np.eye(3) + turn * rng.normal(size=(3, 3)))[0]
        )
        points[i], normals[i] = points[i] @ motion, normals[i] @ motion
    return points, normals


@every_family
@every_turn
@pytest.mark.parametrize("noise", [0.0, 1e-17, 1e-15])
@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
def test_flat_shapes_are_flat_however_they_lie(warp, turn, noise):
    points, normals = flat(noise, turn)
    fitted = DefGPA(warp).fit(points).alignment_
    np.testing.assert_array_equal(fitted.diagnostics.free_directions, 1)
    for shape, normal, through in zip(points, normals, fitted.warps, strict=True):
        # what the data do not determine is not extrapolated
        assert np.abs(through(shape + 1e-3 * normal) - through(shape)).max() < 1e-3


@every_turn
@pytest.mark.parametrize(
    "hold", [store_factor, store_column_factor, stream_factor, store_sparse_factor]
)
def test_flat_shapes_are_flat_however_their_features_are_held(hold, turn):
    points, _ = flat(1e-16, turn, m=200)
    warp = FreeForm(5) if hold is store_sparse_factor else ThinPlateSpline(4)
    batch = one_batch(warp, points)
    factor = hold(batch)
    np.testing.assert_array_equal(factor.ridge.rank_deficiency, 1)
    np.testing.assert_allclose(form_gram(factor), by_singular_values(batch), **EXACT)


@every_turn
def test_thin_is_not_flat(turn):
    points, _ = flat(1e-8, turn)
    for warp in FAMILIES.values():
        factor = store_factor(one_batch(warp, points))
        np.testing.assert_array_equal(factor.ridge.rank_deficiency, 0)


@pytest.mark.parametrize("smoothing", [1e3, 1e9, 1e15])
def test_heavy_smoothing_costs_the_free_columns_no_digits(smoothing):
    """Columns charged 1e15 times as much as the others weigh leave P that of affine maps."""
    points = smooth_family(seed=3, n=3, m=40)
    stiff = form_gram(store_factor(one_batch(ThinPlateSpline(4, smoothing=smoothing), points)))
    batch = one_batch(Affine(), points)
    np.testing.assert_allclose(
        stiff, form_gram(store_factor(batch)), rtol=0, atol=max(1e-13, 10.0 / smoothing)
    )


def test_short_columns_of_ones_own_features_are_not_taken_for_rounding(rng):
    """Features in any units from a millionth up: each is as good as the others."""
    features = rng.normal(size=(1, 50, 5))
    scaled = features * [1e-6, 1e-3, 1.0, 1e3, 1e6]
    penalty = np.zeros((1, 5, 5))
    plain, second = (
        ridge_from_features(append_penalty_rows(rows, penalty), np.array([50.0]))
        for rows in (features, scaled)
    )
    np.testing.assert_array_equal(second.rank_deficiency, 0)
    first, two = features @ plain.inverse, scaled @ second.inverse
    np.testing.assert_allclose(
        two @ np.swapaxes(two, 1, 2), first @ np.swapaxes(first, 1, 2), rtol=0, atol=DIGITS
    )


@every_family
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_beyond_reason_change_nothing(warp, scale):
    points = smooth_family(seed=4, n=4, m=70, d=3)
    batches = (one_batch(warp, scaled) for scaled in (points, scale * points))
    plain, scaled = (form_gram(store_factor(batch)) for batch in batches)
    np.testing.assert_allclose(scaled, plain, **EXACT)


@pytest.mark.parametrize("theta", [1e-3, 10.0])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_an_absolute_smoothing_means_affine_or_none_at_such_units(theta, scale):
    points = smooth_family(seed=4, n=4, m=70)
    limit = Affine() if scale < 1.0 else ThinPlateSpline(3, smoothing=0.0)
    batches = (one_batch(w, scale * points) for w in (ThinPlateSpline(3, theta=theta), limit))
    actual, expected = (form_gram(store_factor(batch)) for batch in batches)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
def test_a_cost_that_is_nothing_but_rounding_is_solved_all_the_same(degree, seed):
    """A polynomial takes five points anywhere: P is zero."""
    angles = 2 * np.pi * np.arange(5) / 5
    pentagon = np.column_stack([np.cos(angles), np.sin(angles)])
    points = pentagon + 1e-12 * np.random.default_rng(seed).normal(size=(4, 5, 2))
    fitted = DefGPA(Polynomial(degree, smoothing=0.0)).fit(points).alignment_
    assert np.isfinite(fitted.reference).all()
    assert fitted.rmse_reference < 1e-6
