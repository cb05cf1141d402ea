"""Files of one text."""

import warnings

import pytest

from defgpa.errors import DefgpaWarning
from defgpa.io import read_shapes


@pytest.fixture
def read_text(tmp_path):
    """Return a function that reads a text, or bytes, as if a file of that name held it."""

    def read(name, text, **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_shapes(path, **options)

    return read


@pytest.fixture
def read(read_text):
    """Return a function that reads a text, or rows of cells, with the notes about it."""

    def read_rows(rows, name="set.csv", mark=",", **options):
        text = rows if isinstance(rows, str) else "\n".join(mark.join(map(str, r)) for r in rows)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DefgpaWarning)
            shapes = read_text(name, text, **options)
        return shapes, [str(warning.message) for warning in caught]

    return read_rows
