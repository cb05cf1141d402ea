"""Generalised least squares: rows made independent by a root of their inverse covariance."""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DefgpaError, ShapeError
from defgpa.statistics.design import Design


def whiten_shapes(model: Design, Y: Array, gls: str) -> Array:
    """Make the rows of Y (n, p) independent; centred as RRPP does where that is asked for."""
    whitened = model.whiten(Y)
    if gls == "rrpp" and Y.shape[1] > len(Y) - 1:
        return np.asarray(whitened - whitened.mean(axis=0))
    return whitened


def find_whitening(covariance: Array | None, n: int, gls: str) -> Array | None:
    """Return W with WᵀW = C⁻¹ for the covariance C (n, n) of the specimens.

    It is symmetric, so that the order of the specimens does not matter; RRPP's is triangular.
    """
    if gls not in ("exact", "rrpp"):
        raise DefgpaError(f"'gls' is 'exact' or 'rrpp'; got {gls!r}.")
    if covariance is None:
        if gls == "rrpp":
            raise DefgpaError("gls='rrpp' needs a 'tree' or a 'covariance' of the shapes.")
        return None
    C = np.asarray(covariance, dtype=np.float64)
    if C.shape != (n, n) or not np.allclose(C, C.T):
        raise ShapeError(f"The covariance of {n} shapes is a symmetric {n} × {n} matrix.")
    values, vectors = np.linalg.eigh(C)
    if values[0] <= 1e-12 * values[-1]:
        raise ShapeError(
            "The covariance of the shapes is singular: two of them are the same to it. Leave one "
            "out, or take the mean of both."
        )
    if gls == "rrpp":
        return np.linalg.inv(np.linalg.cholesky(C))
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)
