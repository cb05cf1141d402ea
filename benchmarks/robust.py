"""How far gross errors bend the reference, with and without a robust fit.

python benchmarks/robust.py [--repeats 3] [--first-repeat 0]
    [--estimator deformable|elastic|affine|rigid] [--sampled] [--only "displaced 10 %"]

Thirteen synthetic families with known truth, 2-D and 3-D, 8 to 60 shapes, 15 to 200 landmarks,
bent and stretched by 4 %. A fraction of the landmarks is displaced by 0.2 to 2 sizes, or exchanged
in pairs within a shape. The table has the error of the reference, over that of a least-squares fit
of the clean shapes: of a least-squares fit, of one to which the wrong landmarks were never shown
(what can be reached at best), and of a robust fit (median, 90th percentile). Then how many errors
were found (recall), how many rejections were errors (precision), and how many sound landmarks were
rejected, in per mille. The last line has the time of a robust fit over that of a plain one.

The deformations of a family add up to nothing, so that all its shapes together tell the truth
better than any share of them, to a method that averages deformations. With ``--sampled`` the shapes
are half of a family twice as large, a sample of a population.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np

import defgpa
from defgpa.datasets import smooth_family
from defgpa.procrustes import procrustes_distance

FAMILIES = [  # n_shapes, n_landmarks, n_dims, bend, noise
    (8, 20, 2, 0.10, 0.010),
    (10, 15, 2, 0.05, 0.010),
    (12, 40, 2, 0.15, 0.010),
    (20, 30, 2, 0.10, 0.005),
    (30, 60, 2, 0.15, 0.010),
    (40, 25, 2, 0.08, 0.015),
    (60, 100, 2, 0.12, 0.010),
    (10, 30, 3, 0.10, 0.010),
    (12, 60, 3, 0.12, 0.010),
    (20, 40, 3, 0.08, 0.010),
    (30, 51, 3, 0.10, 0.010),
    (40, 100, 3, 0.12, 0.008),
    (15, 200, 3, 0.15, 0.010),
]
STRETCH = 0.04  # standard deviation of the entries of a linear map near the identity
CONTAMINATIONS = {
    "clean": ("displaced", 0.0),
    "displaced 2 %": ("displaced", 0.02),
    "displaced 5 %": ("displaced", 0.05),
    "displaced 10 %": ("displaced", 0.10),
    "exchanged 2 %": ("exchanged", 0.02),
    "exchanged 10 %": ("exchanged", 0.10),
}
ESTIMATORS = {
    "deformable": defgpa.DefGPA,
    "elastic": defgpa.ElasticGPA,
    "affine": defgpa.AffineGPA,
    "rigid": lambda **options: defgpa.EuclideanGPA(scaling=True, **options),
}


def contaminate(points, kind, fraction, rng):
    """Return contaminated shapes and a mask of the landmarks that are wrong."""
    points, wrong = points.copy(), np.zeros(points.shape[:2], dtype=bool)
    n_shapes, n_landmarks, n_dims = points.shape
    for shape in range(n_shapes):
        count = rng.binomial(n_landmarks, fraction)
        count -= count % 2 if kind == "exchanged" else 0
        chosen = rng.permutation(n_landmarks)[:count]
        wrong[shape, chosen] = True
        if kind == "exchanged":
            points[shape, chosen] = points[shape, chosen[::-1]]
            continue
        centred = points[shape] - points[shape].mean(axis=0)
        size = np.sqrt((centred**2).sum(axis=1).mean())
        directions = rng.normal(size=(count, n_dims))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        points[shape, chosen] += size * rng.uniform(0.2, 2.0, size=(count, 1)) * directions
    return points, wrong


def make_family(number, repeat, sampled=False):
    """Return the shapes (n, m, d) of a family, or half of one, and the truth (m, d)."""
    n, m, d, bend, noise = FAMILIES[number]
    n_made = 2 * n if sampled else n
    family = smooth_family(n_made, m, d, bend=bend, noise=noise, seed=100 * repeat + number)
    rng = np.random.default_rng([number, repeat, 1])
    stretches = np.eye(d) + STRETCH * rng.normal(size=(n, d, d))
    return family.shapes.points[:n] @ stretches, family.truth


def measure(make_estimator, kind, fraction, repeats, sampled=False):
    """Return errors of the reference (plain, best, robust, over clean) and counts of rejections."""
    ratios, counts = [], np.zeros(4)
    for number, repeat in product(range(len(FAMILIES)), repeats):
        clean, truth = make_family(number, repeat, sampled)
        rng = np.random.default_rng([number, repeat])
        points, wrong = contaminate(clean, kind, fraction, rng)
        robust = make_estimator(robust=True).align(points)
        without = np.where(wrong[..., np.newaxis], np.nan, points)
        fits = [make_estimator().align(shapes) for shapes in (clean, points, without)]
        errors = [procrustes_distance(fit.reference, truth) for fit in (*fits, robust)]
        ratios.append(np.divide(errors[1:], errors[0]))
        rejected = robust.rejection.landmarks | robust.rejection.shapes[:, np.newaxis]
        counts += (wrong & rejected).sum(), wrong.sum(), rejected.sum(), wrong.size
    return np.array(ratios), counts


def time_fits(make_estimator, n_shapes=1000, n_landmarks=100, n_dims=3):
    """Return the processor time of a plain and of a robust fit, the least of three each.

    Each fit has shapes of its own, which remember their geometry.
    """
    points = smooth_family(n_shapes, n_landmarks, n_dims, noise=0.01, seed=1).shapes.points
    times = np.full((3, 2), np.inf)
    for repeat, robust in product(range(3), (False, True)):
        shapes = defgpa.Shapes(points)
        start = time.process_time()
        make_estimator(robust=robust).align(shapes)
        times[repeat, int(robust)] = time.process_time() - start
    return times.min(axis=0)


def main():
    """Print the tables of one estimator."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--first-repeat", type=int, default=0, help="other numbers, other seeds")
    parser.add_argument("--estimator", choices=ESTIMATORS, default="deformable")
    parser.add_argument("--sampled", action="store_true", help="shapes of a larger population")
    parser.add_argument("--only", choices=CONTAMINATIONS, help="one row, without times")
    options = parser.parse_args()
    make_estimator = ESTIMATORS[options.estimator]
    repeats = range(options.first_repeat, options.first_repeat + options.repeats)
    print("| landmarks | least squares | at best | robust (90 %) | recall | precision | false ‰ |")
    print("|---|---|---|---|---|---|---|")
    for name in [options.only] if options.only else CONTAMINATIONS:
        ratios, (hits, n_wrong, n_rejected, n_all) = measure(
            make_estimator, *CONTAMINATIONS[name], repeats, options.sampled
        )
        plain, best, robust = np.median(ratios, axis=0)
        shares = f"{hits / n_wrong:.3f} | {hits / n_rejected:.3f}" if n_wrong else "– | –"
        false = 1000 * (n_rejected - hits) / (n_all - n_wrong)
        upper = np.quantile(ratios[:, 2], 0.9)
        print(
            f"| {name} | {plain:.2f} | {best:.2f} | {robust:.2f} ({upper:.2f}) | {shares} "
            f"| {false:.1f} |",
            flush=True,
        )
    if options.only:
        return
    plain, robust = time_fits(make_estimator)
    print(f"\n1000 × 100 × 3: {plain:.2f} s plain, {robust:.2f} s robust, {robust / plain:.1f} ×")


if __name__ == "__main__":
    main()
