"""The table of specimens: every column by its definition."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import defgpa
from defgpa import (
    Affine,
    DefGPA,
    DefgpaWarning,
    EuclideanGPA,
    FreeForm,
    ShapeError,
    Shapes,
    ThinPlateSpline,
)
from defgpa.statistics import centroid_sizes, procrustes_anova, specimens, tangent_space
from support import EXACT, explicit_cost, shared_points, smooth_family, up_to_affine

COLUMNS = [
    "id", "group", "centroid_size", "landmarks_visible", "rmse_reference", "rmse_datum",
    "bending_energy", "stretch", "mirrored", "procrustes_distance",
]  # fmt: skip


def fitted(points, warp=None, **known):
    return DefGPA(warp or ThinPlateSpline(3)).fit(Shapes(points, **known)).alignment_


def test_the_columns_and_their_order():
    points = smooth_family(seed=1, missing=0.2)
    a = fitted(points, names=[str(i + 1) for i in range(6)], metadata={"groups": "aabbcc"})
    table = specimens(a)
    assert list(table) == COLUMNS
    assert table["id"] == ["1", "2", "3", "4", "5", "6"]
    assert table["group"] == ["a", "a", "b", "b", "c", "c"]
    assert table["landmarks_visible"] == a.shapes.visible.sum(axis=1).tolist()
    assert specimens(a, groups=range(6))["group"] == [0, 1, 2, 3, 4, 5]


def test_groups_are_empty_by_default_and_too_few_are_refused():
    a = fitted(smooth_family(seed=1))
    assert specimens(a)["group"] == [""] * 6
    with pytest.raises(ShapeError, match=r"one group a shape, 6 in all; got 2"):
        specimens(a, groups=["a", "b"])


def test_sizes_are_those_of_the_shapes_where_nothing_is_missing():
    points = smooth_family(seed=2)
    points[3] *= 4.0
    np.testing.assert_allclose(
        specimens(fitted(points))["centroid_size"], centroid_sizes(points), **EXACT
    )


def test_sizes_hardly_change_where_landmarks_are_missing():
    complete = smooth_family(seed=3, n=8, bend=0.05)
    holes = complete.copy()
    holes[1, :12] = np.nan
    actual = specimens(fitted(holes))["centroid_size"]
    np.testing.assert_allclose(actual, centroid_sizes(complete), rtol=0.02)


def test_errors_of_the_specimens_make_up_the_errors_of_the_alignment():
    a = fitted(smooth_family(seed=4, missing=0.2))
    table = specimens(a)
    weights = a.counted.sum(axis=1) / a.n_counted
    for column in ("rmse_reference", "rmse_datum"):
        total = np.sqrt(np.sum(weights * np.square(table[column])))
        assert total == pytest.approx(getattr(a, column))


@pytest.mark.parametrize("warp", [ThinPlateSpline(3), FreeForm(4), Affine()])
def test_bending_is_what_the_cost_holds_besides_the_residuals(warp):
    a = fitted(smooth_family(seed=5, missing=0.1), warp)
    charged = explicit_cost(a.shapes, warp, a.reference) - np.nansum(a.residuals**2)
    np.testing.assert_allclose(sum(specimens(a)["bending_energy"]), charged, rtol=1e-6, atol=1e-9)


def test_stretch_is_one_for_motions_and_the_ratio_for_stretched_copies():
    base = smooth_family(seed=6, n=4, bend=0.0, noise=0.0)
    np.testing.assert_allclose(
        specimens(EuclideanGPA().fit(base).alignment_)["stretch"], 1.0, **EXACT
    )
    shapes = np.stack([base[0] @ np.diag([s, 1.0]) for s in (1.0, 1.1, 3.0)])
    a = fitted(shapes, Affine())
    table = specimens(a)
    matrix = np.linalg.lstsq(
        shapes[2] - shapes[2].mean(axis=0), a.aligned[2] - a.aligned[2].mean(axis=0), rcond=None
    )[0]
    assert table["stretch"][2] == pytest.approx(np.linalg.cond(matrix))
    np.testing.assert_allclose(up_to_affine(shapes[2], a.aligned[2]), a.aligned[2], atol=1e-8)


def test_distances_are_those_of_the_classical_tangent_space():
    points = shared_points("plethodon2d")
    actual = specimens(fitted(points, Affine()))["procrustes_distance"]
    x = tangent_space(points)
    np.testing.assert_allclose(actual, np.linalg.norm(x - x.mean(axis=0), axis=(1, 2)), **EXACT)


def test_a_mirrored_specimen_is_marked_in_the_table():
    points = smooth_family(seed=7, n=7, bend=0.05)
    points[2] *= [-1.0, 1.0]
    with pytest.warns(DefgpaWarning):
        a = fitted(points, Affine())
    assert specimens(a)["mirrored"] == [False, False, True, False, False, False, False]


@pytest.mark.parametrize("name", ["plethodon2d", "mosquito2d", "bones3d"])
@pytest.mark.parametrize("estimator", [EuclideanGPA(scaling=True), DefGPA(Affine()), DefGPA()])
def test_a_saved_result_is_tested_as_its_file_is(tmp_path, name, estimator):
    """What is analysed are the specimens, whatever the warps of the alignment."""
    defgpa.write_shapes(Shapes(shared_points(name)), tmp_path / "shapes.csv")
    shapes = defgpa.read_shapes(tmp_path / "shapes.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)
        defgpa.save(clone(estimator).fit(shapes).alignment_, tmp_path / "result.npz")
    data = {"kind": [str(k % 2) for k in range(shapes.n_shapes)]}
    tables = [
        procrustes_anova("shape ~ log(size) + kind", x, data, 9)
        for x in (shapes, defgpa.load(tmp_path / "result.npz"))
    ]
    for term in ("log(size)", "kind"):
        straight, saved = (table[term].r_squared for table in tables)
        assert saved == pytest.approx(straight, abs=1e-9)
