"""Files that other programs wrote, beside the project: every digit, and few notes.

``ref_*.flat`` are the arrays as R has them: the size, then all numbers, the first axis fastest.
"""

import warnings

import numpy as np
import pytest

from defgpa import EuclideanGPA
from defgpa.errors import DefgpaWarning
from defgpa.io import read_shapes
from defgpa.io.text.dimension import infer_dimension
from support import SHARED, shared_points

FILES = SHARED / "files"
PRINTED = 1e-13  # R prints 15 digits, and the reference has 17

REFERENCES = {
    "pleth": (
        *("array_direct.csv", "as_table.csv", "two.d.csv", "two.d_csv2.csv", "two.d_table.txt"),
        *("two.d_table_tab.txt", "plethodon.tps", "pleth_morphologika.txt", "plethodon_NA.tps"),
        *("one_table.txt", "one_norow.txt"),
    ),
    "bombus": ("bombus.tps", "bombus_direct.csv"),
    "bone": (
        *("boneLM.tps", "bone_morphoj.txt", "bone_morphologika.txt", "bonepts", "bonefcsv"),
        *("bonejson", "one3d.txt"),
    ),
}
WITH_REFERENCE = [(name, file) for name, files in REFERENCES.items() for file in files]


def found(*parts):
    path = FILES.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not beside the project")
    return path


def reference(name):
    """(n, m, d)"""
    words = found("written_by_R", f"ref_{name}.flat").read_text().split()
    size = tuple(map(int, words[:3]))
    return np.array(words[3:], dtype=float).reshape(size, order="F").transpose(2, 0, 1)


def quietly_read(path, **options):
    """The shapes, and what was said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shapes = read_shapes(path, **options)
    assert {warning.category for warning in caught} <= {DefgpaWarning}
    return shapes, [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("name", "file"), WITH_REFERENCE, ids=lambda value: value)
def test_what_r_wrote_is_what_r_has(name, file):
    shapes, messages = quietly_read(found("written_by_R", file))
    expected = reference(name)[: shapes.n_shapes]
    expected = np.where(shapes.visible[..., None], expected, np.nan)
    np.testing.assert_allclose(shapes.points, expected, rtol=PRINTED)
    assert len(messages) <= 1


@pytest.mark.parametrize(
    ("parts", "size", "first"),
    [
        (("written_by_R", "mantis_meta.csv"), (100, 16, 2), "001"),
        (("written_by_R", "two.d_3d.csv"), (5, 46, 3), "ZXkuhn01Lxcoords"),
        (("written_by_R", "vulpes.csv"), (21, 29, 3), "vulpes_1"),
        (("written_by_R", "bonecsv"), (12, 10, 3), "skull_0001_eu_ma"),
        (("written_by_R", "scallops_specID.tps"), (5, 46, 3), "ZXkuhn01Lxcoords"),
        (("bee", "bee_wings.TPS"), (445, 9, 2), "UCSB_IZC00008208_L"),
        (("mlmorph", "tps-example.tps"), (58, 12, 2), "63001"),
        (("mlmorph", "csv-example.csv"), (58, 12, 2), "63001.jpg"),
        (("orthetrum", "orthetrum_forewing.tps"), (120, 20, 2), "ORTALB001"),
        (("orthetrum", "forewing_2d_20260112.csv"), (120, 20, 2), "ORTALB001"),
        (("modan", "rsos170685_si_002.nts"), (81, 48, 3), "Acanth"),
        (("modan",), (81, 48, 3), "Acanth"),
    ],
)
def test_sets_of_other_programs_are_what_they_are(parts, size, first):
    shapes, messages = quietly_read(found(*parts))
    assert shapes.points.shape == size
    assert shapes.names[0] == first
    assert shapes.visible.all()
    assert len(messages) <= 1


def test_the_same_set_as_tps_and_as_table():
    tps, _ = quietly_read(found("mlmorph", "tps-example.tps"))
    table, _ = quietly_read(found("mlmorph", "csv-example.csv"))
    np.testing.assert_array_equal(tps.points, table.points)


def test_one_unfinished_wing_does_not_block_four_hundred():
    path = found("bee", "archive_bee_wings.TPS")
    shapes, messages = quietly_read(path, incomplete="drop")
    assert shapes.points.shape == (443, 9, 2)
    assert shapes.metadata["incomplete"] == ("UCSB_IZC00055354_L",)
    assert len(messages) == 2


def test_metadata_before_coordinates_are_variables():
    shapes, _ = quietly_read(found("written_by_R", "mantis_meta.csv"), group="sex")
    assert set(shapes.metadata["groups"]) == {"f", "m"}
    assert shapes.metadata["variables"][0] == {"species": "b", "sex": "f"}


SETS = ("bones3d", "face2d", "guenons3d", "larvae2d", "lizards2d", "mosquito2d", "plethodon2d")
SETS = (*SETS, "plethspecies2d", "tshirt3d", "turtles3d_partial", "histology2d")


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("superimposed", [False, True])
def test_real_sets_speak_for_their_dimension(name, superimposed):
    """As they are, and after a superimposition, which makes shapes look alike in any reading."""
    points = shared_points(name)
    points = points[:, ~np.isnan(points).any(axis=(0, 2))]
    n, m, d = points.shape
    points = points[:, : m - m % 6]
    if superimposed:
        points = EuclideanGPA(scaling=True).fit_transform(points) + np.array([0.5, 0.3, 0.9])[:d]
    assert infer_dimension(points.reshape(n, -1)) == d
