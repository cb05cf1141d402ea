"""The Procrustes mean of an alignment is that of classical GPA, and as true."""

import numpy as np
import pytest

from defgpa import Affine, AffineGPA, DefGPA, ElasticGPA, EuclideanGPA
from support import EXACT, PARITY, assert_same_shape, moved, rotation, smooth_family, up_to_rigid
from truth import Known, base, images, known_set, off_by

ESTIMATORS = [DefGPA(), DefGPA(Affine()), ElasticGPA(), EuclideanGPA(scaling=True), AffineGPA()]


def classical_mean(points, rounds=80):
    """The mean of unit-size shapes rotated onto it, by the textbook's alternation."""
    shapes = points - points.mean(axis=1, keepdims=True)
    shapes = shapes / np.linalg.norm(shapes, axis=(1, 2), keepdims=True)
    mean = shapes[0]
    for _ in range(rounds):
        mean = np.mean([up_to_rigid(shape, mean) for shape in shapes], axis=0)
        mean = mean / np.linalg.norm(mean)
    return mean


def nearly_flat(rng):
    truth = base(rng, 30, 3) * [1, 1, 0.03]
    return Known("nearly flat", images(rng, truth, 10, affine=0.03, bend=0.03), truth)


def elongated(rng):
    truth = base(rng, 30, 2) * [8, 1]
    return Known("elongated", images(rng, truth, 10, affine=0.03, bend=0.1), truth)


def hinged(rng):
    truth = base(rng, 30, 2) * [2, 1]
    shapes = []
    for _ in range(10):
        angle, shape = 0.4 * rng.normal(), truth.copy()
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        shape[truth[:, 0] > 0] = truth[truth[:, 0] > 0] @ turn
        shapes.append(shape + 0.01 * rng.normal(size=truth.shape))
    return Known("hinged", moved(np.array(shapes), seed=1, scales=(0.5, 2.0)), truth)


CLASSES = {
    "plain": lambda rng: known_set("plain", int(rng.integers(1000))),
    "affine": lambda rng: known_set("affine", int(rng.integers(1000))),
    "strongly affine": lambda rng: known_set("strongly affine", int(rng.integers(1000))),
    "coplanar": lambda rng: known_set("coplanar", int(rng.integers(1000))),
    "nearly flat": nearly_flat,
    "elongated": elongated,
    "hinged": hinged,
}


@pytest.mark.parametrize("kind", CLASSES)
def test_mean_is_as_true_as_that_of_classical_gpa(kind):
    ratios = []
    for seed in range(5):
        generated = CLASSES[kind](np.random.default_rng(seed))
        mean = ESTIMATORS[seed].align(generated.points).mean_shape
        classical = classical_mean(generated.points)
        ratios.append(off_by(mean, generated.truth) / off_by(classical, generated.truth))
    assert np.exp(np.mean(np.log(ratios))) <= 1.001


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


def test_mean_of_partial_shapes_is_nearly_that_of_the_complete_ones():
    errors = []
    for seed in range(6):
        generated = known_set("affine", seed, (25, 40), (9, 14))
        points = generated.points.copy()
        points[np.random.default_rng(seed).random(points.shape[:2]) < 0.3] = np.nan
        mean = DefGPA().align(points).mean_shape
        errors.append(off_by(mean, classical_mean(generated.points)))
    assert np.median(errors) < 0.02


def test_shapes_whose_warp_cannot_be_inverted_leave_missing_landmarks_out():
    errors = []
    for seed in range(6):
        generated = known_set("coplanar", seed, (25, 40), (9, 14))
        points = generated.points.copy()
        points[np.random.default_rng(seed).random(points.shape[:2]) < 0.3] = np.nan
        mean = DefGPA(Affine()).align(points).mean_shape
        errors.append(off_by(mean, generated.truth))
    assert np.median(errors) < 0.035


def test_mean_moves_with_the_alignment():
    alignment = DefGPA().align(smooth_family(seed=5, missing=0.2))
    rng = np.random.default_rng(0)
    target = 1.0 * alignment.reference @ rotation(rng, 2) + 7
    turned = alignment.posed_like(target)
    goal = up_to_rigid(alignment.mean_shape, turned.mean_shape)
    np.testing.assert_allclose(turned.mean_shape, goal, **PARITY)
