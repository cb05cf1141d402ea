"""The public check finds out what a warp does, right or wrong."""

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

from defgpa import Affine, RadialBasis, ShapeError, Shapes, ThinPlateSpline, check_warp
from support import EXACT, ChargedTranslations, LinearOnly, cost_of


@dataclass(frozen=True)
class Own:
    """A warp made of two functions: features(points) and a penalty."""

    function: object = lambda x: np.column_stack([x, np.ones(len(x))])
    charge: object = 0.0
    slopes: object = None

    def basis(self, points):
        return Differentiable(self) if self.slopes is not None else Plain(self)


@dataclass(frozen=True)
class Plain:
    model: Own

    def features(self, points):
        return self.model.function(points)

    def penalty(self):
        return self.model.charge


@dataclass(frozen=True)
class Differentiable(Plain):
    def gradients(self, points):
        return self.model.slopes(points)


@pytest.fixture
def points(rng):
    return rng.normal(size=(50, 2)) * [3, 1] + 5


def test_the_translation_error_is_what_is_left_of_the_constant_vector(points):
    for warp in (Affine(), LinearOnly(), ChargedTranslations()):
        ones = np.ones(len(points))
        cost = cost_of(Shapes.specimens(points[None]), warp)
        expected = np.linalg.norm(cost @ ones) / np.linalg.norm(ones)
        np.testing.assert_allclose(check_warp(warp, points).translation_error, expected, **EXACT)


def test_free_translations_need_the_constant_and_that_it_is_free(points):
    assert check_warp(Affine(), points).free_translations
    assert not check_warp(LinearOnly(), points).free_translations
    assert not check_warp(ChargedTranslations(), points).free_translations


def test_the_condition_is_that_of_the_normal_matrix(points):
    basis = ThinPlateSpline(4).basis(points)
    features = basis.features(points)
    expected = np.linalg.cond(features.T @ features + basis.penalty())
    check = check_warp(ThinPlateSpline(4), points)
    np.testing.assert_allclose(check.condition, expected, rtol=1e-6)
    assert check.free_directions == 0
    assert check.n_features == 16


def test_directions_that_nothing_determines_are_counted(points):
    twice = Own(lambda x: np.column_stack([x, x, np.ones(len(x))]))
    check = check_warp(twice, points)
    assert check.free_directions == 2
    assert check.condition == np.inf


@pytest.mark.parametrize(
    ("charge", "psd", "smallest"),
    [
        (np.diag([2.0, 1.0, 0.0]), True, 0.0),
        (np.diag([2.0, 1.0, -1.0]), False, -0.5),
        (np.array([[1.0, 0.9, 0], [0, 1.0, 0], [0, 0, 1.0]]), False, 0.55 / 1.45),
        (3.0, True, 1.0),
    ],
    ids=["semi-definite", "negative", "not symmetric", "a number"],
)
def test_a_penalty_that_is_not_positive_is_reported(charge, psd, smallest, points):
    check = check_warp(Own(charge=charge), points)
    assert check.penalty_psd == psd
    np.testing.assert_allclose(check.smallest_eigenvalue, smallest, **EXACT)


def test_a_width_in_absolute_units_is_rigid_but_not_similarity_invariant(points):
    size = float(np.sqrt(points.var(axis=0).sum()))

    class Absolute:
        def basis(self, points):
            return RadialBasis(kernel=self.kernel(points)).basis(points)

        def kernel(self, points):
            from defgpa.warps import Gaussian

            return Gaussian(size / np.sqrt(points.var(axis=0).sum()))

    check = check_warp(Absolute(), points)
    assert check.rigid_invariance
    assert not check.similarity_invariance
    assert check.similarity_error > check.rigid_error


def test_features_that_look_at_the_other_points_are_found_out(points):
    centred = Own(lambda x: np.column_stack([x - x.mean(axis=0), np.ones(len(x))]))
    assert not check_warp(centred, points).pointwise
    assert check_warp(Own(), points).pointwise


def test_where_the_jacobian_comes_from(points):
    assert check_warp(Affine(), points).jacobian == "analytic"
    assert check_warp(Own(), points).jacobian == "central differences"


def test_wrong_derivatives_are_found_out(points):
    def right(x):
        return np.broadcast_to(np.eye(2, 3), (len(x), 2, 3))

    check = check_warp(Own(slopes=right), points)
    assert check.jacobian == "analytic"
    assert check.jacobian_error < 1e-6
    assert check_warp(Own(slopes=lambda x: 2 * right(x)), points).jacobian_error > 0.5


def test_hidden_points_are_left_out(points):
    holes = points.copy()
    holes[::5] = np.nan
    assert check_warp(Affine(), holes) == check_warp(
        Affine(), np.delete(points, np.s_[::5], axis=0)
    )


def test_a_check_prints_what_is_free(points):
    text = str(check_warp(LinearOnly(), points))
    lines = {line[2:24].strip(): line[25:] for line in text.splitlines()[1:]}
    assert text.startswith("LinearOnly()\n")
    assert lines["free translations"].startswith("no")
    assert lines["penalty is PSD"].startswith("yes")
    assert lines["jacobian"].startswith("central differences")


def test_it_does_not_change(points):
    check = check_warp(Affine(), points)
    with pytest.raises(FrozenInstanceError):
        check.condition = 1.0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Own(lambda x: x[:, 0]), r"features of Plain must be \(50, l\), one row per point"),
        (Own(lambda x: x[:-1]), r"features of Plain must be \(50, l\), one row per point"),
        (
            Own(lambda x: np.log(x - x.max() - 1) if len(x) else x),
            "features of Plain are not all finite",
        ),
        (Own(charge=np.eye(7)), r"penalty of Plain must be finite and \(3, 3\)"),
        (Own(charge=np.full((3, 3), np.nan)), r"penalty of Plain must be finite and \(3, 3\)"),
    ],
    ids=["a vector", "a row too few", "NaN", "wrong size", "NaN penalty"],
)
def test_what_the_solve_cannot_use_is_told_in_one_sentence(model, message, points):
    with np.errstate(invalid="ignore"), pytest.raises(ShapeError, match=message):
        check_warp(model, points)


def test_too_few_points_are_refused():
    with pytest.raises(ShapeError, match="at least 3 visible points; got 2"):
        check_warp(Affine(), np.eye(2))
    with pytest.raises(ShapeError, match="takes one shape"):
        check_warp(Affine(), np.zeros((3, 5, 2)))
