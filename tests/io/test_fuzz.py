"""No text, however broken, gives anything but shapes or an error of ours.

What this found once is kept in ``corpus/`` and read again every time.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from defgpa.errors import DefgpaError, DefgpaWarning
from defgpa.io import FORMATS, read_shapes, write_shapes
from defgpa.shapes import Shapes
from io_support import write_anew

CORPUS = sorted(path for path in (Path(__file__).parent / "corpus").iterdir() if path.is_file())
NAMES = ("tps", "nts", "morphologika", "pts", "csv", "csv-long", "csv-points")
SUFFIXES = {format_.name: format_.suffixes[0] for format_ in FORMATS}

SEEDS = {
    "tps": (
        "LM=3\n0.1 2\n3 NA\n-1 -1\nCURVES=1\nPOINTS=2\n1 2\n3 4\nIMAGE=a.jpg\nID=a\nSCALE=0.5\n"
        "LM=3\n1 2\n3 4\n5 6\nOUTLINES=1\nPOINTS=2\n1 2\n3 4\nID=a\nCOMMENT=x\nSCALE=2\n",
        "LM3=2\n1 2 3\n4 5 6\nID=1\nLM=0\nID=2\n",
    ),
    "nts": (
        '"comment\n1 2L 4L 1 9999 DIM=2\nfirst second\nx1 y1 x2 y2\n1 2 3 4\n5 6 9999 8\n',
        "1 3B 3 0 DIM=3\na 1 2 3\nb 4 5 6\nc NA NA NA\n",
        "1 2L 4 0\na b c\nd e\n1 2 3 4 5 6 7 8\n",
    ),
    "morphologika": (
        "[individuals]\n2\n[landmarks]\n2\n[dimensions]\n2\n[names]\na\nb\n[labels]\nsex\n"
        "[labelvalues]\nf\nm\n[groups]\nx 1 y 1\n[rawpoints]\n'#1\n1 2\n3 4\n'#2\n5 6\n? ?\n"
        "[wireframe]\n1 2\n[polygons]\n1 2 2\n[images]\na.jpg\nb.jpg\n",
    ),
    "pts": (
        "version: 1\nn_points: 2\n{\n1 2\n3 4\n}\n",
        "Version 1.0\n3\nS0000 1 2 3\nS0001 9999 9999 9999\nleft eye 4 5 6\n",
    ),
    "csv": (
        "id,group,x1,y1,x2,y2\na,m,1,2,3,4\nb,f,5,6,NA,\n",
        'sep=;\nname;apex_x;apex_y;tip_x;tip_y\n"a;1";1;2;3;4\n',
        "a,1,2,3,4,5,6\nb,1,2,3,4,5,6\n",
        "1.5\t2\t3\n4\t5\t6\n",
        '"","X1.a","X2.a","X1.b","X2.b"\n"1",1,2,3,4\n"2",5,6,7,8\n',
        ",X.a,Y.a,X.b,Y.b\n1,1,2,3,4\n2,5,6,7,8\n",
        ",s,t\nX tip,1,2\nY tip,3,4\nX base,5,6\nY base,7,8\n",
        '"V1" "V2" "V3" "V4"\n"a b" 1 2 3 4\n"c" 5 6 7 8\n',
        "id;sex;1;2;3;4;5;6\na;f;1,5;2;3;4;5;6\nb;m;1;2,5;NA;NA;5;6\n",
        "Var1,Var2,Var3,Freq\np,A,s,1\nq,A,s,2\np,B,s,3\nq,B,s,4\n",
    ),
    "csv-long": ("shape,landmark,x,y,z\na,p,1,2,3\na,q,4,5,6\nb,p,1,2,3\n",),
    "csv-points": ("landmark,x,y\np,1,2\nq,3,4\n", "1 2 3\n4 5 6\n"),
}
ALL_SEEDS = tuple(seed for seeds in SEEDS.values() for seed in seeds)
SCRAPS = (
    "=", "\n", "\r", "\r\n", " ", "\t", ",", ";", '"', "'", "#", "[", "]", "{", "}", "0", "-1",
    "1,5", "9999", "99999999999999999999", "1e999", "-inf", "nan", "NA", "1_0", "1.0D+02", "LM=",
    "LM3=2", "POINTS=1", "SCALE=1e300", "ID=", "DIM=", "DIM=0", "1L", "x1", "y1", "x", "y",
    "shape", "id",
    "[names]", "[rawpoints]", "[groups]", "n_points:", "version: 1", "Version 1.0", "\0", "\x1a",
    "\ufeff", "é", "١", "−", "\u2028", "\x0c", "\xa0", "sep=,", "#N/A", "9" * 400,
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "latin-1")

QUIET = settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def survives(path, **options):
    """Whether reading gives shapes or an error of ours, and no warning that is not ours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = read_shapes(path, **options)
        except DefgpaError as error:
            outcome = error
    assert isinstance(outcome, Shapes) or 10 < len(str(outcome)) < 1500
    assert all(issubclass(warning.category, DefgpaWarning) for warning in caught)


@st.composite
def damaged(draw, seeds):
    """A valid file with a few pieces cut out, doubled, moved, or put in."""
    text = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        stop = draw(st.integers(start, min(len(text), start + 12)))
        scrap = draw(st.sampled_from(SCRAPS) | st.text(max_size=4))
        kind = draw(st.sampled_from(("cut", "put", "replace", "double", "truncate")))
        if kind == "truncate":
            text = text[:start]
        else:
            middle = {"cut": "", "put": text[start:stop] + scrap, "replace": scrap}.get(
                kind, text[start:stop] * 2
            )
            text = text[:start] + middle + text[stop:]
    return text.encode(draw(st.sampled_from(ENCODINGS)), errors="replace")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder to write one file after the other into."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", NAMES)
@QUIET
@given(data=st.data(), lenient=st.booleans(), missing=st.sampled_from(("marked", "negative", 0)))
def test_damaged_files_are_read_or_refused(place, name, data, lenient, missing):
    path = place / f"file{SUFFIXES[name]}"
    write_anew(path, data.draw(damaged(SEEDS[name])))
    survives(path, on_mismatch="warn" if lenient else "error", missing=missing)
    survives(path, format=name, on_mismatch="warn" if lenient else "error")


@pytest.mark.parametrize("name", NAMES)
@QUIET
@given(data=st.binary(max_size=200) | st.lists(st.sampled_from(SCRAPS)).map(" ".join))
def test_arbitrary_bytes_are_read_or_refused(place, name, data):
    path = place / f"file{SUFFIXES[name]}"
    write_anew(path, data if isinstance(data, bytes) else data.encode())
    survives(path)
    survives(path, format=name)


@QUIET
@given(data=st.lists(st.sampled_from(ALL_SEEDS), max_size=3))
def test_files_of_any_format_are_told_apart_without_a_suffix(place, data):
    path = place / "file"
    write_anew(path, "".join(data).encode())
    survives(path)


WORDS = st.lists(st.sampled_from(SCRAPS) | st.text(max_size=5), min_size=3, max_size=3, unique=True)


@pytest.mark.parametrize("name", ["tps", "nts", "morphologika", "csv", "csv-long"])
@QUIET
@given(names=WORDS, labels=WORDS, dim=st.sampled_from((2, 3)))
def test_whatever_shapes_are_called_they_come_back_or_it_is_said(place, name, names, labels, dim):
    points = np.arange(9.0 * dim).reshape(3, 3, dim) / 7
    points[1, 1] = np.nan
    shapes = Shapes.specimens(points, names=names, landmarks=labels)
    path = place / f"out{SUFFIXES[name]}"
    path.unlink(missing_ok=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write_shapes(shapes, path, format=name)
        again = read_shapes(path)
    np.testing.assert_array_equal(again.points, points)
    assert caught or again == shapes


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
@pytest.mark.parametrize("mismatch", ["error", "warn"])
def test_what_broke_a_reader_once_does_not_break_it_again(path, mismatch):
    survives(path, on_mismatch=mismatch)
    for name in NAMES:
        survives(path, format=name, on_mismatch=mismatch)
