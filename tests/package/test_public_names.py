"""The public names are a contract: each is there, documented, and listed once."""

from __future__ import annotations

import pytest

import defgpa

CONTRACT = [
    "Affine",
    "AffineGPA",
    "Alignment",
    "DefGPA",
    "EuclideanGPA",
    "FreeForm",
    "RadialBasis",
    "Shapes",
    "ThinPlateSpline",
    "check_warp",
    "compare",
    "cross_validate",
    "intensity_deviation",
    "load",
    "read_shapes",
    "save",
    "select_smoothing",
    "slide",
    "warp_image",
    "write_shapes",
]


@pytest.mark.parametrize("name", sorted({*CONTRACT, *defgpa.__all__}))
def test_every_public_name_is_there_and_documented(name):
    value = getattr(defgpa, name)
    assert name in defgpa.__all__
    assert len(value.__doc__.strip().splitlines()[0]) > 10


def test_the_design_names_are_listed():
    assert set(CONTRACT) <= set(defgpa.__all__)
    assert set(defgpa.__all__) <= set(dir(defgpa))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = defgpa.nonsense
