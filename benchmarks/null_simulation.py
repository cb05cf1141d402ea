"""Simulate sets without any effect, and report how often each statistic finds one.

    python benchmarks/null_simulation.py --sets 500
    python benchmarks/null_simulation.py --sets 500 --missing 0.2
    python benchmarks/null_simulation.py --sets 500 --missing 0.2 --imputations 10 \\
        --only anova,allometry,disparity

Specimens are one mean shape with smooth variation, noise, random pose and size; groups and
covariates are drawn independently of shape. For every statistic the share of P ≤ 0.05 and the
Kolmogorov distance of P from the uniform distribution are printed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

from defgpa import statistics
from defgpa.statistics import Sample, build_sample

Array = NDArray[np.float64]
Chances = dict[str, float]  # what is compared -> P
Test = Callable[[Sample, int], Chances]  # of a sample and a seed

N_SPECIMENS, N_LANDMARKS, N_PERMUTATIONS = 24, 10, 199


def simulate_set(seed: int, missing: float, one_group: bool = False) -> Array:
    """Simulate specimens (n, m, 2) without any effect, NaN where missing.

    With ``one_group`` three quarters of what is missing are in the first half of the specimens.
    """
    rng = np.random.default_rng([17, seed])
    mean = np.random.default_rng(3).normal(size=(N_LANDMARKS, 2)) * [3.0, 2.0]
    waves = np.stack([np.sin(mean * k + k) for k in (0.4, 0.8, 1.2)])
    loadings = rng.normal(size=(N_SPECIMENS, 3)) * [0.3, 0.2, 0.1]
    points = (
        mean + np.tensordot(loadings, waves, 1) + 0.1 * rng.normal(size=(N_SPECIMENS, *mean.shape))
    )
    # size must not follow from shape: it is drawn after all have the same one
    points -= points.mean(axis=1, keepdims=True)
    points /= np.linalg.norm(points, axis=(1, 2))[:, None, None]
    angles, sizes = rng.uniform(0, 2 * np.pi, N_SPECIMENS), rng.uniform(0.7, 1.4, N_SPECIMENS)
    cosine, sine = sizes * np.cos(angles), sizes * np.sin(angles)
    turns = np.stack([np.stack([cosine, -sine], 1), np.stack([sine, cosine], 1)], 1)
    points = points @ turns + rng.normal(size=(N_SPECIMENS, 1, 2))
    chance = np.full((N_SPECIMENS, 1), missing)
    if one_group:
        chance *= np.where(np.arange(N_SPECIMENS) < N_SPECIMENS // 2, 1.5, 0.5)[:, None]
    points[rng.random(points.shape[:2]) < chance] = np.nan
    return points


def halves() -> list[str]:
    """Return two groups, the first half of the specimens and the second."""
    return ["a"] * (N_SPECIMENS // 2) + ["b"] * (N_SPECIMENS - N_SPECIMENS // 2)


def add_change(sample: Sample, amounts: Array) -> Sample:
    """Return the sample with a change of shape in one direction, by these amounts (n,)."""
    direction = np.cos(1.7 * np.arange(2 * N_LANDMARKS)).reshape(N_LANDMARKS, 2)
    changed = sample.tangents + 0.05 * amounts[:, None, None] * direction
    return build_sample(sample.shapes.with_points(changed), superimpose=False)


def list_tests(n_imputations: int) -> dict[str, Test]:
    """Return the tests by name: sample and seed to the P of everything they compare."""
    chance = {"n_permutations": N_PERMUTATIONS}
    pooled = {"n_imputations": n_imputations, **chance}

    def anova(sample: Sample, seed: int) -> Chances:
        data = {"k": halves()}
        model = statistics.procrustes_anova("shape ~ k", sample, data, seed=seed, **pooled)
        return {"anova": model["k"].p, "pairwise": model.pairwise("k").p[0, 1]}

    def models(sample: Sample, seed: int) -> Chances:
        data = {"k": halves()}
        small, large = (
            statistics.procrustes_anova(formula, sample, data, seed=seed, **chance)
            for formula in ("shape ~ log(size)", "shape ~ log(size) + k")
        )
        return {"models": statistics.compare_models(small, large).table["added terms"].p}

    def allometry(sample: Sample, seed: int) -> Chances:
        found = statistics.allometry(sample, seed=seed, **pooled)
        return {"allometry": found.anova["log(size)"].p}

    def landmarks(sample: Sample, seed: int) -> Chances:
        found = statistics.landmark_differences(sample, halves(), seed=seed, **chance)
        return {"landmarks": found.p[0]}

    def disparity(sample: Sample, seed: int) -> Chances:
        return {"disparity": statistics.disparity(sample, halves(), seed=seed, **pooled).p[0, 1]}

    def covariation(sample: Sample, seed: int) -> Chances:
        y = np.random.default_rng([5, seed]).normal(size=(N_SPECIMENS, 3))
        return {"covariation": statistics.two_block_pls(sample, y, seed=seed, **chance).p}

    def slopes(sample: Sample, seed: int) -> Chances:
        # both groups change with size in the same way; without any change angles are undefined
        logs = np.random.default_rng([9, seed]).normal(scale=0.3, size=N_SPECIMENS)
        found = statistics.group_allometry(
            add_change(sample, logs), halves(), np.exp(logs), seed=seed, **chance
        )
        return {"slope angle": found.angle_p[0, 1], "slope length": found.length_p[0, 1]}

    def trajectories(sample: Sample, seed: int) -> Chances:
        # both groups change from stage to stage in the same way
        stages = np.arange(N_SPECIMENS) % 3
        found = statistics.trajectories(
            add_change(sample, 0.5 * stages), halves(), stages, seed=seed, **chance
        )
        return {
            "path angle": found.angle_p[0, 1],
            "path length": found.length_p[0, 1],
            "path form": found.form_p[0, 1],
        }

    def classify(sample: Sample, seed: int) -> Chances:
        found = statistics.classify(sample, halves(), 4, seed=seed, **chance)
        return {"mahalanobis": found.mahalanobis_p[0, 1], "procrustes": found.procrustes_p[0, 1]}

    def symmetry(sample: Sample, seed: int) -> Chances:
        who, side = np.arange(N_SPECIMENS) // 4, np.arange(N_SPECIMENS) // 2 % 2
        found = statistics.symmetry(sample, individual=who, side=side, seed=seed, **chance)
        return {"directional": found["side"].p, "fluctuating": found["individual:side"].p}

    def measurement(sample: Sample, seed: int) -> Chances:
        who = np.arange(N_SPECIMENS) // 2
        found = statistics.measurement_error(
            sample, who, np.arange(N_SPECIMENS) % 2, seed=seed, **chance
        )
        return {"measurement": found.table["replicate"].p}

    def signal(sample: Sample, seed: int) -> Chances:
        found = statistics.phylogenetic_signal(sample, make_tree(), seed=seed, scaling=1, **chance)
        return {"signal": found.p}

    def rates(sample: Sample, seed: int) -> Chances:
        evolved = evolve_along_tree(sample, seed)
        found = statistics.evolutionary_rates(evolved, make_tree(), halves(), seed=seed, **chance)
        return {"rates": found.p}

    def pgls(sample: Sample, seed: int) -> Chances:
        evolved = evolve_along_tree(sample, seed)
        data = {"z": np.random.default_rng([5, seed]).normal(size=N_SPECIMENS)}
        model = statistics.procrustes_anova(
            "shape ~ z", evolved, data, seed=seed, tree=make_tree(), **chance
        )
        return {"pgls": model["z"].p}

    def integration(sample: Sample, seed: int) -> Chances:
        blocks = sample.tangents - sample.tangents.mean(axis=0)
        half = N_LANDMARKS // 2
        order = np.random.default_rng([7, seed]).permutation(N_SPECIMENS)
        unrelated = np.concatenate([blocks[:, :half], blocks[order, half:]], axis=1)
        given = build_sample(sample.tangents.mean(axis=0) + unrelated, superimpose=False)
        found = statistics.integration(given, make_modules(None), seed=seed, **chance)
        return {"integration": found.p}

    def modularity(sample: Sample, seed: int) -> Chances:
        modules = make_modules(seed)
        found = statistics.modularity(sample, modules, seed=seed, interval=False, **chance)
        return {"modularity": found.p}

    tests = (
        *(anova, models, allometry, landmarks, disparity, covariation, slopes, trajectories),
        *(classify, symmetry, measurement, signal, rates, pgls, integration, modularity),
    )
    return {test.__name__: test for test in tests}


def make_tree() -> statistics.Phylogeny:
    """Return a random tree of the specimens, the same in all sets."""
    rng = np.random.default_rng(11)
    clades = [(f"shape_{k + 1}", 0.0) for k in range(N_SPECIMENS)]
    age = 0.0
    while len(clades) > 1:
        age += rng.exponential(1.0 / len(clades))
        first, second = (clades.pop(rng.integers(len(clades))) for _ in range(2))
        pair = ",".join(f"{text}:{age - start:.6f}" for text, start in (first, second))
        clades.append((f"({pair})", age))
    return statistics.read_tree(clades[0][0] + ";")


def evolve_along_tree(sample: Sample, seed: int) -> Sample:
    """Return shapes that evolved at one rate by Brownian motion along the tree."""
    tree = make_tree().take(sample.shapes.names)
    steps = np.random.default_rng([4, seed]).normal(size=sample.tangents.shape)
    factor = np.linalg.cholesky(tree.covariance)
    evolved = sample.tangents.mean(axis=0) + 0.01 * np.tensordot(factor, steps, 1)
    return build_sample(sample.shapes.with_points(evolved), superimpose=False)


def make_modules(seed: int | None) -> list[str]:
    """Return two modules of equal size, the first landmarks and the others, or at random."""
    modules = ["a"] * (N_LANDMARKS // 2) + ["b"] * (N_LANDMARKS - N_LANDMARKS // 2)
    return modules if seed is None else list(np.random.default_rng([8, seed]).permutation(modules))


def simulate_p(
    tests: Sequence[Test], n_sets: int, missing: float = 0.0, one_group: bool = False
) -> dict[str, Array]:
    """Return P (n_sets,) of all that tests compare on simulated sets without any effect."""
    values: dict[str, list[float]] = {}
    for seed in range(n_sets):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sample = build_sample(simulate_set(seed, missing, one_group))
            for test in tests:
                for name, p in test(sample, seed).items():
                    values.setdefault(name, []).append(float(p))
    return {name: np.array(chances) for name, chances in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--missing", type=float, default=0.0, help="share of missing landmarks")
    parser.add_argument("--one-group", action="store_true", help="mostly missing in one group")
    parser.add_argument("--imputations", type=int, default=0)
    parser.add_argument("--only", help="names of tests, joined by commas")
    options = parser.parse_args()
    tests = list_tests(options.imputations)
    chosen = [tests[name] for name in (options.only or ",".join(tests)).split(",")]
    values = simulate_p(chosen, options.sets, options.missing, options.one_group)
    for name, p in values.items():
        distance = kstest(p, "uniform").statistic
        print(f"{name:16s} P ≤ 0.05: {np.mean(p <= 0.05):.3f}  Kolmogorov: {distance:.3f}")


if __name__ == "__main__":
    main()
