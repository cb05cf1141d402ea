"""Simulate sets without any effect, and report how often each statistic finds one.

    python benchmarks/null_simulation.py --sets 500 --missing 0 0.2
    python benchmarks/null_simulation.py --sets 500 --missing 0.2 --imputations 10 \\
        --only anova,allometry,disparity

Specimens are one mean shape with smooth variation, noise, random pose and size; groups and
covariates are drawn independently of shape. Printed is the table of docs/groups.md: for every
statistic the share of P ≤ 0.05 and the Kolmogorov distance of P from the uniform distribution.
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
        return {"`procrustes_anova`": model["k"].p}

    def pairwise(sample: Sample, seed: int) -> Chances:
        data = {"k": list("abc") * (N_SPECIMENS // 3), "z": draw_covariate(seed)}
        model = statistics.procrustes_anova("shape ~ z + k", sample, data, seed=seed, **pooled)
        return {"`pairwise`, three groups and a covariate": model.pairwise("k").p[0, 1]}

    def types(sample: Sample, seed: int) -> Chances:
        rng = np.random.default_rng([12, seed])  # groups of unequal size that go with each other
        data = {"k": halves(), "site": rng.permutation(["u"] * 8 + ["v"] * (N_SPECIMENS - 8))}
        rows = {}
        for number in (2, 3):
            model = statistics.procrustes_anova(
                "shape ~ k * site", sample, data, seed=seed, ss_type=number, **pooled
            )
            rows[f"`procrustes_anova(ss_type={number})`, factor"] = model["k"].p
        return rows | {"`procrustes_anova`, interaction": model["k:site"].p}

    def error(sample: Sample, seed: int) -> Chances:
        # six families differ in any direction; the two kinds that they belong to do not
        families = np.arange(N_SPECIMENS) // 4
        steps = np.random.default_rng([13, seed]).normal(size=(6, N_LANDMARKS, 2))
        related = sample.shapes.with_points(sample.tangents + 0.02 * steps[families])
        data = {"k": halves(), "family": [f"family {number}" for number in families]}
        model = statistics.procrustes_anova(
            *("shape ~ k + k:family", build_sample(related, superimpose=False), data),
            **{"seed": seed, "error": {"k": "k:family"}, **chance},
        )
        return {"`procrustes_anova(error=)`": model["k"].p}

    def models(sample: Sample, seed: int) -> Chances:
        data = {"k": halves()}
        small, large = (
            statistics.procrustes_anova(formula, sample, data, seed=seed, **chance)
            for formula in ("shape ~ log(size)", "shape ~ log(size) + k")
        )
        return {"`compare_models`": statistics.compare_models(small, large).table["added terms"].p}

    def allometry(sample: Sample, seed: int) -> Chances:
        result = statistics.allometry(sample, seed=seed, **pooled)
        return {"`allometry`": result.anova["log(size)"].p}

    def landmarks(sample: Sample, seed: int) -> Chances:
        result = statistics.landmark_differences(sample, halves(), seed=seed, **chance)
        return {"`landmark_differences`": result.p[0]}

    def disparity(sample: Sample, seed: int) -> Chances:
        about_mean, about_model = (
            statistics.disparity(sample, halves(), formula, seed=seed, **pooled)
            for formula in ("shape ~ 1", "shape ~ log(size)")
        )
        return {
            "`disparity`": about_mean.p[0, 1],
            "`disparity`, about log size": about_model.p[0, 1],
        }

    def covariation(sample: Sample, seed: int) -> Chances:
        y = np.random.default_rng([5, seed]).normal(size=(N_SPECIMENS, 3))
        return {"`two_block_pls`": statistics.two_block_pls(sample, y, seed=seed, **chance).p}

    def slopes(sample: Sample, seed: int) -> Chances:
        # both groups change with size in the same way; without any change angles are undefined
        logs = np.random.default_rng([9, seed]).normal(scale=0.3, size=N_SPECIMENS)
        result = statistics.group_allometry(
            add_change(sample, logs), halves(), np.exp(logs), seed=seed, **chance
        )
        return {
            "`group_allometry`, angles": result.angle_p[0, 1],
            "`group_allometry`, lengths": result.length_p[0, 1],
        }

    def trajectories(sample: Sample, seed: int) -> Chances:
        # both groups change from stage to stage in the same way
        stages = np.arange(N_SPECIMENS) % 3
        result = statistics.trajectories(
            add_change(sample, 0.5 * stages), halves(), stages, seed=seed, **chance
        )
        return {
            "`trajectories`, angles": result.angle_p[0, 1],
            "`trajectories`, lengths": result.length_p[0, 1],
            "`trajectories`, forms": result.form_p[0, 1],
        }

    def classify(sample: Sample, seed: int) -> Chances:
        result = statistics.classify(sample, halves(), 4, seed=seed, **chance)
        return {
            "`classify`, Mahalanobis distance": result.mahalanobis_p[0, 1],
            "`classify`, Procrustes distance": result.procrustes_p[0, 1],
        }

    def symmetry(sample: Sample, seed: int) -> Chances:
        pairs = np.arange(N_SPECIMENS)
        once = statistics.symmetry(
            sample, individual=pairs // 2, side=pairs % 2, seed=seed, **chance
        )
        twice = statistics.symmetry(
            sample, individual=pairs // 4, side=pairs // 2 % 2, seed=seed, **chance
        )
        return {
            "`symmetry`, directional": once["side"].p,
            "`symmetry`, fluctuating": twice["individual:side"].p,
            "`symmetry`, directional in size": once.size_table["side"].p,
            "`symmetry`, fluctuating in size": twice.size_table["individual:side"].p,
        }

    def both_sides(sample: Sample, seed: int) -> Chances:
        # the second half of the landmarks mirrors the first, but for errors of measurement
        half = sample.tangents[np.arange(N_SPECIMENS) // 2 * 2, : N_LANDMARKS // 2] + [0.5, 0.0]
        pairs_of_sides = np.concatenate([half, half * [-1.0, 1.0]], axis=1)
        pairs_of_sides += 0.01 * np.random.default_rng([14, seed]).normal(size=pairs_of_sides.shape)
        pairs = [(j, j + N_LANDMARKS // 2) for j in range(N_LANDMARKS // 2)]
        result = statistics.symmetry(
            pairs_of_sides, pairs, individual=np.arange(N_SPECIMENS) // 2, seed=seed, **chance
        )
        return {
            "`symmetry(pairs=)`, directional": result["side"].p,
            "`symmetry(pairs=)`, fluctuating": result["individual:side"].p,
        }

    def measurement(sample: Sample, seed: int) -> Chances:
        who = np.arange(N_SPECIMENS) // 2
        result = statistics.measurement_error(
            sample, who, np.arange(N_SPECIMENS) % 2, seed=seed, **chance
        )
        return {"`measurement_error`": result.table["replicate"].p}

    def signal(sample: Sample, seed: int) -> Chances:
        result = statistics.phylogenetic_signal(sample, make_tree(), seed=seed, scaling=1, **chance)
        return {"`phylogenetic_signal`": result.p}

    def rates(sample: Sample, seed: int) -> Chances:
        evolved = evolve_along_tree(sample, seed)
        result = statistics.evolutionary_rates(evolved, make_tree(), halves(), seed=seed, **chance)
        return {"`evolutionary_rates`": result.p}

    def pgls(sample: Sample, seed: int) -> Chances:
        evolved = evolve_along_tree(sample, seed)
        data = {"z": draw_covariate(seed)}
        model = statistics.procrustes_anova(
            "shape ~ z", evolved, data, seed=seed, tree=make_tree(), **chance
        )
        return {"`procrustes_anova(tree=)`": model["z"].p}

    def integration(sample: Sample, seed: int) -> Chances:
        blocks = sample.tangents - sample.tangents.mean(axis=0)
        half = N_LANDMARKS // 2
        order = np.random.default_rng([7, seed]).permutation(N_SPECIMENS)
        unrelated = np.concatenate([blocks[:, :half], blocks[order, half:]], axis=1)
        independent = build_sample(sample.tangents.mean(axis=0) + unrelated, superimpose=False)
        result = statistics.integration(independent, make_modules(None), seed=seed, **chance)
        return {"`integration`": result.p}

    def modularity(sample: Sample, seed: int) -> Chances:
        modules = make_modules(seed)
        result = statistics.modularity(sample, modules, seed=seed, interval=False, **chance)
        return {"`modularity`": result.p}

    def effects(sample: Sample, seed: int) -> Chances:
        # two data sets of one population
        chosen = np.random.default_rng([15, seed]).permutation(N_SPECIMENS).reshape(2, -1)
        modules = make_modules(None)
        fits = [
            statistics.integration(sample.take(rows), modules, seed=seed, **chance)
            for rows in chosen
        ]
        return {"`compare_effect_sizes`, r-PLS": statistics.compare_effect_sizes(fits).p[0, 1]}

    tests = (
        *(anova, pairwise, types, error, models, allometry, landmarks, disparity, covariation),
        *(slopes, trajectories, classify, symmetry, both_sides, measurement),
        *(signal, rates, pgls, integration, modularity, effects),
    )
    return {test.__name__: test for test in tests}


def draw_covariate(seed: int) -> Array:
    """Draw a number for every specimen, independent of its shape."""
    return np.random.default_rng([5, seed]).normal(size=N_SPECIMENS)


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
    tests: Sequence[Test],
    n_sets: int,
    missing: float = 0.0,
    one_group: bool = False,
    first_seed: int = 0,
) -> dict[str, Array]:
    """Return P (n_sets,) of all that tests compare on simulated sets without any effect."""
    values: dict[str, list[float]] = {}
    for seed in range(first_seed, first_seed + n_sets):
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
    parser.add_argument(
        "--missing", type=float, nargs="+", default=[0.0], help="shares of missing landmarks"
    )
    parser.add_argument("--one-group", action="store_true", help="mostly missing in one group")
    parser.add_argument("--imputations", type=int, default=0)
    parser.add_argument("--first-seed", type=int, default=0, help="of the sets; others for others")
    parser.add_argument("--only", help="names of tests, joined by commas")
    options = parser.parse_args()
    tests = list_tests(options.imputations)
    chosen = [tests[name] for name in (options.only or ",".join(tests)).split(",")]
    columns = [
        simulate_p(chosen, options.sets, missing, options.one_group, options.first_seed)
        for missing in options.missing
    ]
    heads = [f"{missing:.0%} missing: P ≤ 0.05 | distance" for missing in options.missing]
    print("|".join(["", " test ", *(f" {head} " for head in heads), ""]))
    print("|---" * (1 + 2 * len(heads)) + "|")
    for name in columns[0]:
        chances = [values[name] for values in columns]
        cells = [
            f" {np.mean(p <= 0.05):.1%} | {kstest(p, 'uniform').statistic:.3f} " for p in chances
        ]
        print("|".join(["", f" {name} ", *cells, ""]))


if __name__ == "__main__":
    main()
