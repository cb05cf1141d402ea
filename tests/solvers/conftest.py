"""Points in the plane and in space, for all solvers."""

import pytest

from support import FAMILIES, smooth_family


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES)
def points(request):
    """Generic points (n, m, d): 2-D and 3-D, full and partial."""
    return smooth_family(**request.param)


@pytest.fixture(params=[2, 3], ids=["2d", "3d"])
def d(request):
    return request.param
