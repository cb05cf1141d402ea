"""Files of one text."""

import pytest

from defgpa.io import read_shapes


@pytest.fixture
def read_text(tmp_path):
    """Return a function that reads a text, or bytes, as if a file of that name held it."""

    def read(name, text, **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_shapes(path, **options)

    return read
