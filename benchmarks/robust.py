"""How far gross errors bend the reference, with and without a robust fit.

python benchmarks/robust.py [--repeats 3] [--estimator deformable|elastic|affine|rigid]

Thirteen synthetic families with known truth, 2-D and 3-D, 8 to 60 shapes, 15 to 200 landmarks. A
fraction of the landmarks is displaced by 0.2 to 2 sizes, or exchanged in pairs within a shape. The
table has the error of the reference, over that of a least-squares fit of the clean shapes (median
and 90th percentile), and how many errors were found (recall), how many rejections were errors
(precision), and how many sound landmarks of clean sets were rejected, in per mille.
"""

from __future__ import annotations

import argparse
import warnings

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


def measure(make_estimator, kind, fraction, n_repeats):
    """Return ratios of reference errors (plain, robust) and counts of rejections."""
    ratios, counts = [], np.zeros(4)
    for number, (n, m, d, bend, noise) in enumerate(FAMILIES):
        for repeat in range(n_repeats):
            family = smooth_family(n, m, d, bend=bend, noise=noise, seed=100 * repeat + number)
            rng = np.random.default_rng([number, repeat])
            clean = np.array(family.shapes.points)
            points, wrong = contaminate(clean, kind, fraction, rng)
            base = make_estimator().fit(clean).reference_
            plain = make_estimator().fit(points).reference_
            robust = make_estimator(robust=True).fit(points).alignment_
            error = [procrustes_distance(x, family.truth) for x in (base, plain, robust.reference)]
            ratios.append((error[1] / error[0], error[2] / error[0]))
            rejected = robust.weights < 0.25
            counts += (wrong & rejected).sum(), wrong.sum(), rejected.sum(), wrong.size
    return np.array(ratios), counts


def main():
    """Print the table of one estimator."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="deformable")
    options = parser.parse_args()
    warnings.simplefilter("ignore", defgpa.DefgpaWarning)
    print("| landmarks | least squares | robust (90 %) | recall | precision | false ‰ |")
    print("|---|---|---|---|---|---|")
    for name, (kind, fraction) in CONTAMINATIONS.items():
        ratios, (hits, n_wrong, n_rejected, n_all) = measure(
            ESTIMATORS[options.estimator], kind, fraction, options.repeats
        )
        plain, robust = np.median(ratios, axis=0)
        share = f"{hits / n_wrong:.2f} | {hits / n_rejected:.2f}" if n_wrong else "– | –"
        false = 1000 * (n_rejected - hits) / n_all
        upper = np.quantile(ratios[:, 1], 0.9)
        print(f"| {name} | {plain:.2f} | {robust:.2f} ({upper:.2f}) | {share} | {false:.1f} |")


if __name__ == "__main__":
    main()
