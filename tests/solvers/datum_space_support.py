"""What a fit in the datum space makes of shapes and of its reference."""

import numpy as np


def move_into_reference(points, fit):
    """Return the shapes, (n, m, d), moved onto the reference."""
    return points @ fit.matrices + fit.offsets[:, np.newaxis]


def carry_back(fit):
    """Return the reference in every shape, (n, m, d)."""
    return (fit.reference - fit.offsets[:, np.newaxis]) @ np.linalg.inv(fit.matrices)


def measure_reference_error(points, fit):
    """Return the RMS distance of the moved shapes from the reference."""
    residual = move_into_reference(points, fit) - fit.reference
    return np.sqrt(np.nanmean(np.sum(residual**2, axis=2)))
