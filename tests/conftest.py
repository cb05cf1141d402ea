"""Fixtures: families of shapes, the command line, and one BLAS thread for all tests."""

import gc
import json

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from defgpa import Shapes
from defgpa.cli import main
from support import FAMILIES, smooth_family


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread():
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(20240229)


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES)
def shapes(request):
    """Generic shapes: 2-D and 3-D, full and partial, from several seeds."""
    return Shapes(smooth_family(**request.param))


@pytest.fixture(
    params=[family for family in FAMILIES.values() if "missing" not in family],
    ids=[name for name in FAMILIES if "partial" not in name],
)
def full_shapes(request):
    return Shapes(smooth_family(**request.param))


@pytest.fixture
def nearby_shapes(shapes):
    """The same shapes close to the origin, so that even warps without translations fit them."""
    offset = 0.5 * np.sin(np.arange(shapes.n_shapes * shapes.n_dims)).reshape(-1, 1, shapes.n_dims)
    centred = shapes.points - np.nanmean(shapes.points, axis=1, keepdims=True)
    return shapes.with_points(centred + offset)


class CommandLine:
    """Run a command, in this process: exit code, standard output, standard error."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        captured = self.capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    def succeed(self, *words):
        """Run a command that must work: standard output, standard error."""
        code, out, err = self(*words)
        assert code == 0, err
        return out, err

    def json(self, *words):
        """Run a command that must work: what it tells machines."""
        return json.loads(self.succeed(*words, "--json")[0])

    def refuse(self, *words):
        """Run a command that must be refused as wrong input: standard error."""
        code, _, err = self(*words)
        assert code == 2, err
        return err


@pytest.fixture
def run(capsys):
    return CommandLine(capsys)


# by the processor time they were measured to take: 66 s to 5 s
LONGEST = (
    "test_site", "test_report_browser", "test_app_browser", "test_project", "test_hostile_inputs",
    "test_cross_validation", "test_report", "test_faults", "test_distributed",
    "test_findings_on_all_routes", "test_known_truth", "test_cli_statistics", "test_robust",
    "test_cli", "test_all_or_nothing", "test_fuzz", "test_warp_conformance", "test_images",
    "test_report_statistics", "test_null_simulation", "test_datum_space_rigid",
    "test_cli_results", "test_cli_phylogeny", "test_hinges",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """The files that take longest begin, so that both workers end at nearly the same time."""
    rank = {name: k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(LONGEST)))


def pytest_collection_finish():
    """What collected tests hold stays to the end: the collector of garbage need not visit it."""
    gc.collect()
    gc.freeze()
