"""A few damaged files for every reader; ``make fuzz`` tries as many as there is time for."""

import pytest
from fuzz import find_targets, fuzz


@pytest.mark.parametrize("name", sorted(find_targets()))
def test_damaged_files_are_read_or_refused_in_a_sentence(name, tmp_path):
    n_files, faults = fuzz(name, seconds=0.15, seed=1, keep=tmp_path / "kept")
    assert n_files > 0
    assert faults == []
