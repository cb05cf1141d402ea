"""A robust fit is nearly as good as one to which gross errors were never shown.

The measures of benchmarks/robust.py on a part of its families: median over the families of the
error of the reference, over that of a least-squares fit of the clean shapes; errors found (recall);
rejections that are errors (precision).
"""

from typing import NamedTuple

import numpy as np
import pytest

from defgpa import DefGPA, EuclideanGPA
from defgpa.datasets import smooth_family
from defgpa.procrustes import procrustes_distance

FAMILIES = [  # n_shapes, n_landmarks, n_dims, bend, noise
    (8, 20, 2, 0.10, 0.010),
    (20, 30, 2, 0.10, 0.005),
    (10, 30, 3, 0.10, 0.010),
    (30, 51, 3, 0.10, 0.010),
]


class Outcome(NamedTuple):
    ratio: float
    recall: float
    precision: float
    false_share: float


def spoil(points, kind, fraction, rng):
    """Displace landmarks by 0.2 to 2 sizes or exchange pairs; return points and what is wrong."""
    points, wrong = np.array(points), np.zeros(points.shape[:2], dtype=bool)
    for shape, mask in zip(points, wrong, strict=True):
        count = 2 * (rng.binomial(len(shape), fraction) // 2)
        chosen = rng.permutation(len(shape))[:count]
        mask[chosen] = True
        if kind == "exchanged":
            shape[chosen] = shape[chosen[::-1]]
            continue
        directions = rng.normal(size=(count, shape.shape[1]))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        shape[chosen] += rng.uniform(0.2, 2.0, size=(count, 1)) * directions
    return points, wrong


def measure(kind, fraction):
    ratios, n_hits, n_wrong, n_rejected, n_sound = [], 0, 0, 0, 0
    for number, (n, m, d, bend, noise) in enumerate(FAMILIES):
        family = smooth_family(n, m, d, bend=bend, noise=noise, seed=number)
        rng = np.random.default_rng(number)
        clean = family.shapes.points @ (np.eye(d) + 0.04 * rng.normal(size=(n, d, d)))
        points, wrong = spoil(clean, kind, fraction, rng)
        robust = DefGPA(robust=True).align(points)
        errors = [
            procrustes_distance(alignment.reference, family.truth)
            for alignment in (robust, DefGPA().align(clean))
        ]
        ratios.append(errors[0] / errors[1])
        rejected = robust.rejection.landmarks | robust.rejection.shapes[:, None]
        n_hits, n_wrong = n_hits + (rejected & wrong).sum(), n_wrong + wrong.sum()
        n_rejected, n_sound = n_rejected + rejected.sum(), n_sound + (~wrong).sum()
    return Outcome(
        np.median(ratios),
        n_hits / max(n_wrong, 1),
        n_hits / max(n_rejected, 1),
        (n_rejected - n_hits) / n_sound,
    )


def test_nothing_is_lost_on_clean_shapes():
    outcome = measure("displaced", 0.0)
    assert outcome.ratio <= 1.01
    assert outcome.false_share <= 0.002


@pytest.mark.parametrize(
    ("kind", "fraction", "max_ratio"),
    [("displaced", 0.05, 1.1), ("displaced", 0.1, 1.1), ("exchanged", 0.1, 1.15)],
)
def test_gross_errors_are_found_and_cost_little(kind, fraction, max_ratio):
    outcome = measure(kind, fraction)
    assert outcome.ratio <= max_ratio
    assert outcome.recall >= 0.97
    assert outcome.precision >= 0.95
    assert outcome.false_share <= 0.002


def test_similarities_do_nearly_as_well_as_without_the_errors():
    """Deformation is noise for them, so a tenth of the landmarks costs a least-squares fit, too."""
    ratios = []
    for number, (n, m, d, bend, noise) in enumerate(3 * FAMILIES):
        family = smooth_family(n, m, d, bend=bend, noise=noise, seed=number)
        rng = np.random.default_rng(number)
        points, wrong = spoil(family.shapes.points, "displaced", 0.1, rng)
        hidden = np.where(wrong[..., None], np.nan, points)
        robust = EuclideanGPA(scaling=True, robust=True).align(points)
        without = EuclideanGPA(scaling=True).align(hidden)
        errors = [procrustes_distance(a.reference, family.truth) for a in (robust, without)]
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) <= 1.2


def test_robust_fit_takes_at_most_fifteen_weighted_fits(monkeypatch):
    fitted = []
    fit_weighted = DefGPA._fit_with_weights
    monkeypatch.setattr(
        DefGPA, "_fit_with_weights", lambda *args: fitted.append(1) or fit_weighted(*args)
    )
    family = smooth_family(12, 40, 2, bend=0.15, noise=0.01, seed=1)
    points, _ = spoil(family.shapes.points, "exchanged", 0.1, np.random.default_rng(0))
    DefGPA(robust=True).align(points)
    assert 5 < len(fitted) + 1 <= 15  # and the one of the result
