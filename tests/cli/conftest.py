"""A file that the commands read."""

import pytest

import defgpa
from defgpa.datasets import load_wings


@pytest.fixture(scope="session")
def wings(tmp_path_factory):
    """Eight wings in a TPS file, which holds no landmark labels."""
    path = tmp_path_factory.mktemp("wings") / "wings.tps"
    few = load_wings().take(range(8))
    defgpa.write_shapes(defgpa.Shapes.specimens(few.points, names=few.names), path)
    return path
