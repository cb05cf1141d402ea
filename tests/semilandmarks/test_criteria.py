"""Steps of sliding landmarks, by the criterion they make small."""

import numpy as np

from defgpa.semilandmarks.criteria import Bending, compute_bending_matrix


def test_landmarks_without_a_direction_take_no_step_by_bending():
    """As those of a curve whose points all lie in one place; the matrix was singular."""
    points = np.random.default_rng(0).normal(size=(2, 7, 2))
    criterion = Bending(compute_bending_matrix(points[0]), np.ones(7, dtype=bool))
    directions = np.ones((2, 3, 2))
    directions[1] = 0.0
    steps = criterion.find_steps(points, np.array([1, 2, 4]), directions)
    assert (steps[0] != 0).all()
    np.testing.assert_array_equal(steps[1], 0.0)
