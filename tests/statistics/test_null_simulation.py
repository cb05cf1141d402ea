"""Without any effect P is uniform: a small version of benchmarks/null_simulation.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from defgpa.statistics import build_sample, trajectories

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "null_simulation.py"
DOCUMENTED = ROOT / "docs" / "groups.md"


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("null_simulation", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.N_PERMUTATIONS = 19  # the fewest with which P can be 0.05
    return module


NAMES = (
    *("anova", "pairwise", "types", "error", "models", "allometry", "landmarks", "disparity"),
    *("covariation", "slopes", "trajectories", "classify", "symmetry", "both_sides"),
    *("measurement", "signal", "rates", "pgls", "integration", "modularity", "effects"),
)


def test_every_simulated_test_is_among_these(simulation):
    assert set(NAMES) == set(simulation.list_tests(0))


@pytest.mark.parametrize("name", NAMES)
def test_p_is_about_uniform_without_an_effect(simulation, name):
    values = simulation.simulate_p([simulation.list_tests(0)[name]], 40)
    page = DOCUMENTED.read_text(encoding="utf-8")
    for label, p in values.items():
        assert 0.3 < p.mean() < 0.7
        assert np.mean(p <= 0.05) <= 0.2
        assert f"| {label} |" in page


def test_missing_landmarks_do_not_make_effects(simulation):
    """With the expected completion, and pooled over drawn ones."""
    once, pooled = simulation.list_tests(0), simulation.list_tests(5)
    tests = [tests[name] for tests in (once, pooled) for name in ("anova", "disparity")]
    for p in simulation.simulate_p(tests, 12, missing=0.2).values():
        assert 0.2 < p.mean() < 0.85
        assert np.mean(p <= 0.05) <= 0.3


def test_a_real_effect_is_found_in_the_simulated_sets(simulation):
    """The test of the test: groups that differ are told apart."""
    points = simulation.simulate_set(0, 0.0)
    points -= points.mean(axis=1, keepdims=True)
    points[: simulation.N_SPECIMENS // 2, ::2] *= 1.5
    sample = simulation.build_sample(points)
    (p,) = simulation.list_tests(0)["anova"](sample, 0).values()
    assert p <= 0.05


@pytest.mark.parametrize(
    ("chance", "lower", "upper"), [("rotations", 0.38, 0.62), ("residuals", 0, 0.35)]
)
def test_angles_of_parallel_trajectories_are_uniform_by_rotations_only(chance, lower, upper):
    """Permuted residuals vary less than errors, so that angles look too large among them."""
    groups, stages = np.repeat([0, 1], 12), np.tile(np.repeat([0, 1, 2], 4), 2)
    rng = np.random.default_rng(5)
    mean, change = rng.normal(size=(2, 10, 2)) * [[[1.0]], [[0.1]]]
    p = []
    for seed in range(40):
        noise = 0.05 * np.random.default_rng([6, seed]).normal(size=(24, 10, 2))
        sample = build_sample(mean + stages[:, None, None] * change + noise, superimpose=False)
        p.append(trajectories(sample, groups, stages, 39, seed, chance=chance).angle_p[0, 1])
    assert lower < np.mean(p) < upper
