"""Warps have the manners of scikit-learn, and stay values."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from defgpa import Affine, DefGPA, FreeForm, Polynomial, RadialBasis, ThinPlateSpline
from defgpa.warps import DEFAULT_SMOOTHING, Gaussian, Membrane, landmark_kernel
from defgpa.warps.parameters import stiffen
from support import smooth_family

MODELS = [
    Affine(),
    ThinPlateSpline(7, smoothing=1e-4),
    ThinPlateSpline(control_points=np.random.default_rng(0).normal(size=(30, 2))),
    RadialBasis(Gaussian(0.7), (4, 5)),
    landmark_kernel(),
    FreeForm(energy=Membrane()),
    Polynomial(3),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


@every_model
def test_parameters_make_the_same_model_again(model):
    again = type(model)(**model.get_params(deep=False))
    assert repr(again) == repr(model)
    copied = clone(model)
    assert type(copied) is type(model)
    assert repr(copied) == repr(model)


@every_model
def test_a_model_prints_in_one_line(model):
    findings = str(model)
    assert "\n" not in findings
    assert len(findings) < 130
    assert findings.startswith(type(model).__name__ + "(")


def test_repr_shows_parameters_that_are_not_the_default():
    assert repr(ThinPlateSpline()) == "ThinPlateSpline()"
    assert repr(ThinPlateSpline(7, smoothing=1e-4)) == (
        "ThinPlateSpline(points_per_axis=7, smoothing=0.0001)"
    )
    assert repr(ThinPlateSpline((5, 5, 2))) == "ThinPlateSpline(points_per_axis=(5, 5, 2))"
    assert repr(ThinPlateSpline(control_points=np.ones((30, 2)))) == (
        "ThinPlateSpline(control_points=<30 × 2 array>)"
    )
    assert repr(RadialBasis(Gaussian(0.7))) == "RadialBasis(kernel=Gaussian(width=0.7))"
    assert repr(ThinPlateSpline(control_points=np.unique)) == (
        "ThinPlateSpline(control_points=unique)"
    )


def test_a_warp_prints_in_one_line():
    warp = DefGPA(ThinPlateSpline(3)).fit(smooth_family(seed=1)).warps_[0]
    assert str(warp) == repr(warp) == "Warp(2-D, 9 functions of ThinPlateBasis)"


def test_other_parameters_make_another_model():
    first = ThinPlateSpline(4)
    changed = first.set_params(smoothing=0.1)
    assert first == ThinPlateSpline(4)
    assert changed == ThinPlateSpline(4, smoothing=0.1)


def test_nested_parameters_are_read_and_set():
    model = RadialBasis(Gaussian(0.7))
    assert model.get_params()["kernel__width"] == 0.7
    assert model.get_params(deep=False).keys() == {
        *("kernel", "points_per_axis", "control_points", "polynomial_degree"),
        *("penalty", "smoothing"),
    }
    assert model.set_params(kernel__width=0.2).kernel == Gaussian(0.2)
    deep = landmark_kernel()
    assert deep.get_params()["kernel__width__fraction"] == 0.2
    narrow = deep.set_params(kernel__width__fraction=0.1, smoothing=1.0)
    assert narrow == landmark_kernel(0.1, 1.0)
    assert deep == landmark_kernel()
    changed_model = model.set_params(kernel=Gaussian(3.0), points_per_axis=4, kernel__width=0.5)
    assert changed_model == RadialBasis(Gaussian(0.5), 4)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"stiffness": 1}, "ThinPlateSpline has no parameter 'stiffness'. Those it has: points"),
        ({"smoothing__unit": 1}, "has no parameter 'unit'. Those it has: none"),
    ],
)
def test_an_unknown_parameter_is_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        ThinPlateSpline(smoothing=0.1).set_params(**wrong)


def test_an_estimator_sets_the_parameters_of_its_warp_and_spoils_nothing():
    warp, points = ThinPlateSpline(4, smoothing=1e-3), smooth_family(seed=2)
    model = DefGPA(warp).fit(points)
    before, alignment = model.reference_, model.alignment_
    assert model.set_params(warp__smoothing=10.0) is model
    assert model.warp == ThinPlateSpline(4, smoothing=10.0)
    assert warp.smoothing == 1e-3
    np.testing.assert_array_equal(  # the old alignment still registers as it did
        alignment.register(points[0])(points[0]),
        DefGPA(warp).fit(points).alignment_.register(points[0])(points[0]),
    )
    assert np.abs(model.fit(points).reference_ - before).max() > 1e-6
    assert DefGPA().set_params(warp__smoothing=0.5).warp == ThinPlateSpline(smoothing=0.5)
    assert DefGPA(warp).get_params()["warp__smoothing"] == 1e-3
    with pytest.raises(ValueError, match="wrap"):
        DefGPA(warp).set_params(wrap__smoothing=1.0)


def test_a_grid_search_chooses_the_smoothing():
    points = smooth_family(seed=3, n=8)
    search = GridSearchCV(DefGPA(ThinPlateSpline(4)), {"warp__smoothing": [1e-3, 1e3]}, cv=2)
    result = search.fit(points)
    assert result.best_params_ == {"warp__smoothing": 1e-3}
    assert result.best_estimator_.warp == ThinPlateSpline(4, smoothing=1e-3)
    nested = GridSearchCV(
        DefGPA(RadialBasis(Gaussian(), 4)), {"warp__kernel__width": [0.5, 2.0]}, cv=2
    )
    assert nested.fit(points).best_estimator_.warp.kernel.width in (0.5, 2.0)


@dataclass(frozen=True)
class Own:
    """A warp of one's own, which imports nothing."""

    smoothing: float = 1e-3

    def basis(self, points):
        return Affine().basis(points)


def test_a_users_warp_needs_no_base_class():
    model = clone(DefGPA(Own(0.5)))
    assert model.warp == Own(0.5)
    assert np.isfinite(model.fit(smooth_family(seed=4)).reference_).all()


@pytest.mark.parametrize(
    ("model", "stiffer"),
    [
        (ThinPlateSpline(), ThinPlateSpline(smoothing=10 * DEFAULT_SMOOTHING)),
        (ThinPlateSpline(smoothing=0.5), ThinPlateSpline(smoothing=5.0)),
        (ThinPlateSpline(theta=2.0), ThinPlateSpline(theta=20.0)),
        (Polynomial(3, smoothing=0.5), Polynomial(3, smoothing=5.0)),
        (Affine(), Affine()),
    ],
)
def test_stiffer_model_has_more_smoothing(model, stiffer):
    assert repr(stiffen(model, 10.0)) == repr(stiffer)
    assert stiffen(model, 1.0) is model


def test_default_smoothing_is_that_of_a_spline_that_states_none():
    points = smooth_family(seed=1, n=2, m=12)[0]
    penalties = [
        model.basis(points).penalty()
        for model in (ThinPlateSpline(), ThinPlateSpline(smoothing=DEFAULT_SMOOTHING))
    ]
    np.testing.assert_array_equal(*penalties)
