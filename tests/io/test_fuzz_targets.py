"""A few damaged files for every reader; ``make fuzz`` tries as many as there is time for."""

import pytest
from fuzz import find_targets, fuzz

from defgpa.edits import read_edits
from defgpa.errors import FormatError


@pytest.mark.parametrize("name", sorted(find_targets()))
def test_damaged_files_are_read_or_refused_in_a_sentence(name, tmp_path):
    n_files, faults = fuzz(name, seconds=0.15, seed=1, keep=tmp_path / "kept")
    assert n_files > 0
    assert faults == []


def test_a_number_of_too_many_digits_in_edits_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "edits.json"
    path.write_text('{"format": "defgpa edits", "version": ' + "1" * 5000 + "}")
    with pytest.raises(FormatError, match="a number of too many digits"):
        read_edits(path)
