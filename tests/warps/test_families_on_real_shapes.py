"""On real landmarks every family, its smoothing chosen by cross-validation, beats affine maps."""

import pytest

from defgpa import (
    Affine,
    DefGPA,
    FreeForm,
    Polynomial,
    RadialBasis,
    cross_validate,
    select_smoothing,
)
from defgpa.warps import (
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Membrane,
    Multiquadric,
    Polyharmonic,
    WendlandC2,
    WendlandC4,
)
from support import shared_points

MODELS = [
    Polynomial(2),
    Polynomial(3),
    Polynomial(4),
    FreeForm(),
    FreeForm(energy=Membrane()),
    FreeForm(energy=Laplacian()),
    *(
        RadialBasis(kernel)
        for kernel in (
            Gaussian(), Multiquadric(), InverseMultiquadric(), WendlandC2(), WendlandC4(),
            Polyharmonic(3),
        )
    ),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")  # soft warps on few folds: as it may be
@pytest.mark.parametrize("name", ["face2d", "histology2d"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_every_family_predicts_left_out_landmarks_better_than_affine_maps(model, name):
    points = shared_points(name)
    affine = cross_validate(DefGPA(Affine()), points, fold_size=5)
    path = select_smoothing(DefGPA(model), points, grid=[1e-3, 1e-2, 1e-1], fold_size=5)
    assert path.cve.min() < 0.99 * affine.error
