"""The public names are a contract: each is there, documented, and listed once."""

from __future__ import annotations

import importlib
import inspect

import pytest

import defgpa

CONTRACT = [
    "Affine", "AffineGPA", "Alignment", "DefGPA", "Dense", "EuclideanGPA", "ExactCentering",
    "FreeForm", "Iterative", "RadialBasis", "Shapes", "SoftCentering", "ThinPlateSpline", "Warp",
    "check_warp", "compare", "cross_validate", "intensity_deviation", "load", "read_shapes",
    "save", "select_smoothing", "slide", "warp_image", "write_shapes",
]  # fmt: skip


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


PACKAGES = [
    "defgpa",
    *(
        f"defgpa.{name}"
        for name in (
            *("completion", "datasets", "images", "io", "model_selection", "semilandmarks"),
            *("statistics", "warps"),
        )
    ),
]


@pytest.mark.parametrize("package", PACKAGES)
def test_public_functions_list_what_they_take_and_return(package):
    module = importlib.import_module(package)
    lacking = []
    for name in module.__all__:
        function = getattr(module, name)
        if not inspect.isfunction(function):
            continue
        signature, docstring = inspect.signature(function), inspect.getdoc(function)
        if signature.parameters and "\nParameters\n-----" not in docstring:
            lacking.append(f"{name}: Parameters")
        if signature.return_annotation != "None" and "\nReturns\n-----" not in docstring:
            lacking.append(f"{name}: Returns")
    assert lacking == []


# of numpydoc's checks those that find a wrong or incomplete docstring; examples and "See Also" are
# not asked of every name, and the attributes of a result are documented as such
NUMPYDOC_CODES = {
    *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),
    *("SS01", "SS02", "SS03", "SS04", "SS05", "PR02", "PR03", "PR05", "PR06", "PR07", "PR10"),
    *("RT01", "RT03", "YD01"),
}
FUNCTION_CODES = {"PR01"}  # parameters of a result's constructor are its attributes


@pytest.mark.parametrize("package", [*PACKAGES, "defgpa.plot", "defgpa.report"])
def test_numpydoc_finds_no_fault_in_public_names(package):
    validation = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed")
    module = importlib.import_module(package)
    faults = []
    for name in module.__all__:
        value = getattr(module, name)
        if not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        codes = NUMPYDOC_CODES | (FUNCTION_CODES if inspect.isfunction(value) else set())
        errors = validation.validate(f"{package}.{name}")["errors"]
        faults += [f"{name}: {code} {message}" for code, message in errors if code in codes]
    assert faults == []
