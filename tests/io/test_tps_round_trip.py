"""A TPS file that is read and written has the same fields, so landmarks stay on their image."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning
from defgpa.io import read_shapes, write_shapes
from support import SHARED

FILES = sorted((SHARED / "files").rglob("*.[tT][pP][sS]")) if SHARED.exists() else []


def split_fields(path):
    """(key, value, rows of numbers) of every field but unknown ones, in the order of specimens."""
    records = []
    for piece in re.split(r"(?m)^(?=LM3?\s*=)", path.read_text(encoding="latin-1"))[1:]:
        fields = {}
        for key, value, body in re.findall(
            r"(?m)^(\w+)\s*=([^\n]*)((?:\n(?!\w+\s*=)[^\n]*)*)", piece
        ):
            words = body.replace("NA", "nan").split()
            number = re.fullmatch(r"[-+.\deE]+", value.strip())
            fields.setdefault(key.upper(), []).append(
                (float(value) if number and key.upper() != "ID" else value.strip(), words)
            )
        records.append(fields)
    return records


def list_names(record):
    """Return what a specimen may be called: its identifier, and its image without the ending."""
    titles = [*record.get("ID", []), *record.get("IMAGE", [])]
    return {Path(str(title)).stem for title, _ in titles}


def require_equal_fields(first, second):
    assert len(first) == len(second)
    for single, two in zip(first, second, strict=True):
        assert single.keys() == two.keys()
        for key in single:
            for (value, words), (another, other_words) in zip(single[key], two[key], strict=True):
                assert value == another
                np.testing.assert_array_equal(
                    np.array(words, dtype=float), np.array(other_words, dtype=float)
                )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_real_files_keep_every_field(path, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)
        shapes = read_shapes(path, incomplete="drop", on_mismatch="warn")
        write_shapes(shapes, tmp_path / "again.tps")
    dropped = set(shapes.metadata.get("incomplete", ()))
    records = [record for record in split_fields(path) if not dropped & list_names(record)]
    assert len(records) == len(shapes)
    require_equal_fields(records, split_fields(tmp_path / "again.tps"))


TPS = (
    "LM=2\n10 20\n30.5 NA\nCURVES=1\nPOINTS=3\n1 2\n3 4\n5 6.25\n"
    "IMAGE=a.jpg\nID=7\nVARIABLES=sex=m;age=3\nSCALE=0.0123\n"
    "LM=2\n1 2\n3 4\nCURVES=1\nPOINTS=3\n1 2\n3 4\n5 6\n"
    "IMAGE=b.jpg\nID=9\nCOMMENT=no scale\n"
)


def test_pixels_scale_and_curves_are_written_as_they_were_read(tmp_path):
    (tmp_path / "a.tps").write_text(TPS.replace("30.5 NA", "30.5 8"))
    with pytest.warns(DefgpaWarning, match="have no SCALE"):
        shapes = read_shapes(tmp_path / "a.tps")
    assert shapes.points[0, 0].tolist() == [10 * 0.0123, 20 * 0.0123]
    assert shapes.metadata["variables"] == ({"VARIABLES": "sex=m;age=3"}, None)
    write_shapes(shapes, tmp_path / "b.tps")
    require_equal_fields(split_fields(tmp_path / "a.tps"), split_fields(tmp_path / "b.tps"))
    with pytest.warns(DefgpaWarning, match="have no SCALE"):
        assert read_shapes(tmp_path / "b.tps").points.tolist() == shapes.points.tolist()


def test_shapes_that_were_moved_are_written_to_the_last_digit(tmp_path):
    (tmp_path / "a.tps").write_text(TPS.replace("30.5 NA", "30.5 8"))
    with pytest.warns(DefgpaWarning, match="have no SCALE"):
        shapes = read_shapes(tmp_path / "a.tps")
    moved = shapes.with_points(shapes.points * np.pi + 1 / 3)
    write_shapes(moved, tmp_path / "b.tps")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)
        np.testing.assert_array_equal(read_shapes(tmp_path / "b.tps").points, moved.points)


def test_long_blocks_are_parsed_like_short_ones(tmp_path):
    points = np.random.default_rng(0).normal(size=(2, 3000, 2))
    rows = ["\n".join(f"{x!r} {y!r}" for x, y in shape.tolist()) for shape in points]
    text = "".join(f"LM=3000\n{block}\nID={k}\n" for k, block in enumerate(rows))
    (tmp_path / "a.tps").write_text(text)
    np.testing.assert_array_equal(read_shapes(tmp_path / "a.tps").points, points)
    broken = text.replace("\n", "\n1 2 3\n", 1)
    (tmp_path / "a.tps").write_text(broken.replace("LM=3000", "LM=3001", 1))
    with pytest.raises(ValueError, match=r"line 3: expected 3 coordinates; found"):
        read_shapes(tmp_path / "a.tps")
