"""Time permutation tests of shape beside the same procedures in base R (rrpp.R).

    OPENBLAS_NUM_THREADS=1 python benchmarks/permutation_tests.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/permutation_tests.py --specimens 60 --landmarks 30

Processor time of coordinates that are superimposed before; the best of several runs. R uses the
BLAS that it finds: set LD_LIBRARY_PATH for another one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time

import numpy as np

from defgpa import statistics
from defgpa.statistics import Sample, build_sample
from peers import time_base_r


def list_tests(sample: Sample, count: int) -> dict[str, Callable[[], object]]:
    """Return ours by the names of rrpp.R."""
    n, m = sample.shapes.n_shapes, sample.shapes.n_landmarks
    data = {"a": [f"{3 * k // n}" for k in range(n)], "b": [f"{k % 2}" for k in range(n)]}
    halves = ["front"] * -(-m // 2) + ["back"] * (m // 2)
    tips = ",".join(f"{name}:1" for name in sample.shapes.names[1:])
    tree = statistics.read_tree(f"({sample.shapes.names[0]}:1,{tips});")
    model = statistics.procrustes_anova("shape ~ a * b", sample, data, count)
    return {
        "anova": lambda: statistics.procrustes_anova("shape ~ a * b", sample, data, count),
        "pairwise": lambda: model.pairwise("a:b"),
        "disparity": lambda: statistics.disparity(sample, "a", "shape ~ b", data, count),
        "pls": lambda: statistics.two_block_pls(sample, None, halves, count),
        "modularity": lambda: statistics.modularity(sample, halves, count, interval=False),
        "signal": lambda: statistics.phylogenetic_signal(
            sample, tree, n_permutations=count, scaling=1.0
        ),
    }


def measure(work: Callable[[], object], n_times: int = 3) -> float:
    """Return the least processor time of several runs, after one to warm up."""
    times = []
    for _ in range(n_times + 1):
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--specimens", type=int, default=300)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--permutations", type=int, default=999)
    options = parser.parse_args()
    n, m, count = options.specimens, options.landmarks, options.permutations
    points = np.random.default_rng(0).normal(size=(m, 3))
    points = points + 0.1 * np.random.default_rng(1).normal(size=(n, m, 3))
    sample = build_sample(statistics.tangent_space(points), superimpose=False)
    tests = list_tests(sample, count)
    blas, peers = time_base_r(n, m, count, list(tests))
    print(f"| test | defgpa, s | base R with {blas}, s | ratio |\n|---|---|---|---|")
    for name, test in tests.items():
        ours = measure(test)
        print(f"| {name} | {ours:.3g} | {peers[name]:.3g} | {peers[name] / ours:.3g} |")


if __name__ == "__main__":
    main()
