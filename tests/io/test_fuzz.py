"""No file, however broken, gives anything but shapes or a sentence of ours that names it.

Every reader reads some damaged files; ``make fuzz`` tries as many as there is time for. What broke
a reader once is kept in ``corpus/`` and ``corpus_binary/`` and read again every time.
"""

import random
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fuzz import WORDS, find_fault, find_targets, fuzz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from defgpa.edits import read_edits
from defgpa.errors import FormatError
from defgpa.io import FORMATS, read_shapes, write_shapes
from defgpa.shapes import Shapes

HERE = Path(__file__).parent
CORPUS = [*sorted((HERE / "corpus").iterdir()), *sorted((HERE / "corpus_binary").iterdir())]
TARGETS = find_targets()
SEEDS = [(name, seed) for name, (_, seeds) in sorted(TARGETS.items()) for seed in seeds]
TEXT = ("tps", "nts", "morphologika", "pts", "csv", "csv-long", "csv-points")
ALSO = {"mat": ["h5"], "h5": ["mat"], "r": ["gz"]}  # what is written in the same way
SUFFIXES = {format_.name: format_.suffixes[0] for format_ in FORMATS}
every_seed = pytest.mark.parametrize(("name", "seed"), SEEDS, ids=[seed.name for _, seed in SEEDS])


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_damaged_files_are_read_or_refused_in_a_sentence(name, tmp_path):
    n_files, faults = fuzz(name, seconds=60, seed=1, keep=tmp_path / "kept", max_files=150)
    assert n_files == 150
    assert faults == []


@every_seed
def test_valid_files_are_read_and_recognised(name, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert TARGETS[name][0](seed) is not None
    if name in SUFFIXES and name not in TEXT:
        head = seed.read_bytes()[:4096]
        alike = {format_.name for format_ in FORMATS if format_.looks_like(head)}
        assert name in alike <= {name, *TEXT, *ALSO.get(name, ())}


@every_seed
def test_every_truncation_gives_shapes_or_a_sentence(name, seed, tmp_path):
    data, path = seed.read_bytes(), tmp_path / f"cut{''.join(seed.suffixes)}"
    for cut in range(0, len(data), max(1, len(data) // 100)):
        path.unlink(missing_ok=True)
        path.write_bytes(data[:cut])
        assert find_fault(TARGETS[name][0], path) is None


def test_files_of_any_format_are_told_apart_without_a_suffix(tmp_path):
    rng = random.Random(0)
    texts = [seed.read_bytes() for name, seed in SEEDS if name in TEXT]
    for _ in range(80):
        path = tmp_path / "file"
        path.write_bytes(b"".join(rng.choices(texts, k=rng.randint(0, 3))))
        assert find_fault(read_shapes, path) is None


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
@pytest.mark.parametrize("mismatch", ["error", "warn"])
def test_what_broke_a_reader_once_does_not_break_it_again(path, mismatch):
    for name in (None, *TEXT):
        assert find_fault(partial(read_shapes, format=name, on_mismatch=mismatch), path) is None


NAMES = st.lists(st.sampled_from(WORDS) | st.text(max_size=5), min_size=3, max_size=3, unique=True)


@pytest.mark.parametrize("name", ["tps", "nts", "morphologika", "csv", "csv-long"])
@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(names=NAMES, labels=NAMES, dim=st.sampled_from((2, 3)))
def test_names_of_any_letters_come_back_or_are_noted(tmp_path, name, names, labels, dim):
    points = np.arange(9.0 * dim).reshape(3, 3, dim) / 7
    points[1, 1] = np.nan
    shapes = Shapes.specimens(points, names=names, landmarks=labels)
    path = tmp_path / f"out{SUFFIXES[name]}"
    path.unlink(missing_ok=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write_shapes(shapes, path, format=name)
        again = read_shapes(path)
    np.testing.assert_array_equal(again.points, points)
    assert caught or again == shapes


def test_a_number_of_too_many_digits_in_edits_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "edits.json"
    path.write_text('{"format": "defgpa edits", "version": ' + "1" * 5000 + "}")
    with pytest.raises(FormatError, match="a number of too many digits"):
        read_edits(path)
