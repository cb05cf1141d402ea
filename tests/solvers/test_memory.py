"""A fit that cannot have the memory it surely takes does not start."""

import os
from pathlib import Path

import numpy as np
import pytest

from defgpa import Affine, DefGPA, ElasticGPA, EuclideanGPA
from defgpa.diagnostics import checks
from defgpa.tuning import Tuning
from support import smooth_family


@pytest.mark.parametrize("method", [DefGPA(Affine()), DefGPA(), EuclideanGPA()], ids=repr)
def test_below_a_limit_that_leaves_blas_no_room_nothing_starts(method, monkeypatch):
    points = smooth_family()
    monkeypatch.setattr(checks, "_get_free_address_space", lambda: 100 << 20)
    with pytest.raises(MemoryError, match=r"at least 134 MB.* leaves 105 MB\. Raise it"):
        method.fit(points)
    monkeypatch.setattr(checks, "_get_free_address_space", lambda: 200 << 20)
    assert np.isfinite(method.fit(points).reference_).all()


@pytest.mark.parametrize("method", [DefGPA, ElasticGPA])
def test_the_room_for_blas_is_as_tuned(method, monkeypatch):
    monkeypatch.setattr(checks, "_get_free_address_space", lambda: 100 << 20)
    tuned = method(Affine(), tuning=Tuning(workspace_bytes=1 << 20))
    assert np.isfinite(tuned.fit(smooth_family()).reference_).all()


def test_more_than_is_free_is_refused(monkeypatch):
    monkeypatch.setattr(checks, "_get_free_address_space", lambda: None)
    monkeypatch.setattr(checks, "_get_free_memory", lambda: 1 << 30)
    checks.require_memory(1 << 30)
    with pytest.raises(MemoryError, match=r"at least 2147 MB, and 1074 MB of memory are free"):
        checks.require_memory(2 << 30)


def test_what_the_limit_leaves_is_counted_from_what_is_taken():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    if before[0] != resource.RLIM_INFINITY or checks._get_free_memory() is None:
        pytest.skip("a limit is set already, or the system does not say what is taken")
    assert checks._get_free_address_space() is None
    try:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 40, before[1]))
        left = checks._get_free_address_space()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert (1 << 39) < left < (1 << 40) - (100 << 20)


def test_what_the_system_says_is_free_is_a_part_of_what_there_is():
    if not Path("/proc/meminfo").exists():
        pytest.skip("the system does not say")
    assert 0 < checks._get_free_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
