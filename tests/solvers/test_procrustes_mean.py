"""The Procrustes mean of an alignment is that of classical GPA, and as true."""

import numpy as np
import pytest

from defgpa import Affine, AffineGPA, DefGPA, ElasticGPA, EuclideanGPA
from support import EXACT, PARITY, assert_same_shape, moved, rotation, smooth_family, up_to_rigid
from truth import classical_mean, known_set, off_by

ESTIMATORS = [DefGPA(), DefGPA(Affine()), ElasticGPA(), EuclideanGPA(scaling=True), AffineGPA()]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n_dims", [2, 3])
def test_mean_of_complete_shapes_is_that_of_classical_gpa(estimator, n_dims):
    points = moved(smooth_family(seed=n_dims, d=n_dims, n=7), scales=(0.3, 3.0))
    mean = estimator.align(points).mean_shape
    assert off_by(mean, classical_mean(points)) < 1e-7


def test_mean_lies_on_the_superimposed_shapes():
    alignment = AffineGPA().align(moved(smooth_family(seed=4), scales=(0.3, 3.0)))
    sizes = np.linalg.norm(
        alignment.superimposed - alignment.superimposed.mean(axis=1, keepdims=True), axis=(1, 2)
    )
    mean = alignment.mean_shape
    np.testing.assert_allclose(np.linalg.norm(mean - mean.mean(axis=0)), sizes.mean(), **EXACT)
    np.testing.assert_allclose(mean.mean(axis=0), alignment.reference.mean(axis=0), **EXACT)
    assert_same_shape(up_to_rigid(mean, alignment.reference), mean)


@pytest.mark.parametrize("n_dims", [2, 3])
def test_mean_of_similar_partial_shapes_is_their_shape(n_dims):
    rng = np.random.default_rng(n_dims)
    truth = rng.normal(size=(20, n_dims))
    points = np.stack([rng.uniform(0.2, 5) * truth @ rotation(rng, n_dims) for _ in range(6)])
    points[rng.random((6, 20)) < 0.4] = np.nan
    points[0] = truth
    mean = EuclideanGPA(scaling=True).align(points).mean_shape
    assert off_by(mean, truth) < 1e-6


@pytest.mark.parametrize(
    ("estimator", "kind", "limit"),
    [(DefGPA(), "affine", 0.02), (DefGPA(Affine()), "coplanar", 0.035)],
    ids=["completed by warps", "warps without an inverse"],
)
def test_mean_of_partial_shapes_is_nearly_that_of_the_complete_ones(estimator, kind, limit):
    errors = []
    for seed in range(6):
        generated = known_set(kind, seed, (25, 40), (9, 14))
        points = generated.points.copy()
        points[np.random.default_rng(seed).random(points.shape[:2]) < 0.3] = np.nan
        mean = estimator.align(points).mean_shape
        errors.append(off_by(mean, classical_mean(generated.points)))
    assert np.median(errors) < limit


def test_mean_moves_with_the_alignment():
    alignment = DefGPA().align(smooth_family(seed=5, missing=0.2))
    rng = np.random.default_rng(0)
    target = 1.0 * alignment.reference @ rotation(rng, 2) + 7
    turned = alignment.posed_like(target)
    goal = up_to_rigid(alignment.mean_shape, turned.mean_shape)
    np.testing.assert_allclose(turned.mean_shape, goal, **PARITY)
