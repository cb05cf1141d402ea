"""First pair of singular vectors of many permuted cross-covariances C = XᵀY[π].

Golub–Kahan–Lanczos bidiagonalisation of a block of permutations at once. X and Y are the same for
all of them: a step multiplies by Y, reorders rows and multiplies by X, and no C is formed. On
300 specimens this takes a tenth of the time of decompositions.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from defgpa.arrays import Array, Index, Mask

_MAX_DECOMPOSED = (
    40  # columns of a block for which decompositions take less time than Lanczos steps
)
_MAX_STEPS = 72
_CHECKED_STEPS = 6
_TOLERANCE = 1e-11  # relative: of the residual Cᵀu − σv
_EXHAUSTED = 1e-13  # relative: the length of a new direction that is rounding


def find_first_axes(X: Array, Y: Array, orders: Index) -> tuple[Array, Array]:
    """Find the directions of largest covariance of X and permuted Y.

    Parameters
    ----------
    X, Y : array (n, p), (n, q)
        Centred.
    orders : array (b, n) of int
        Orders of the rows of Y.

    Returns
    -------
    u, v : array (b, p), (b, q)
        The first singular vectors of XᵀY[order], of length 1.
    """
    if X.shape[1] > Y.shape[1]:
        v, u = find_first_axes(Y, X, np.argsort(orders, axis=1))
        return u, v
    if X.shape[1] <= _MAX_DECOMPOSED:
        U, _, Vt = np.linalg.svd(X.T @ Y[orders], full_matrices=False)
        return U[:, :, 0], Vt[:, 0]
    u, v, is_settled = _bidiagonalise(X, Y, orders)
    for k in np.flatnonzero(~is_settled):
        C = X.T @ Y[orders[k]]
        last = len(C) - 1
        u[k] = eigh(C @ C.T, subset_by_index=[last, last])[1][:, 0]
        v[k] = u[k] @ C
        v[k] /= np.linalg.norm(v[k])
    return u, v


def _bidiagonalise(X: Array, Y: Array, orders: Index) -> tuple[Array, Array, Mask]:
    """Return u (b, p), v (b, q) and whether (b,) they have settled.

    Parameters
    ----------
    X, Y : array (n, p), (n, q)
        Centred blocks.
    orders : array (b, n) of int
        Permutations of the rows of Y.
    """
    inverses = np.argsort(orders, axis=1)
    b, p, q = len(orders), X.shape[1], Y.shape[1]
    n_steps = min(_MAX_STEPS, p)
    U, V = np.zeros((b, n_steps, p)), np.zeros((b, n_steps, q))
    B = np.zeros((b, n_steps + 1, n_steps + 1))  # UᵀCV, with alphas on the diagonal
    # any start does that is not orthogonal to the axis: more of the columns that vary more
    start = np.random.default_rng(0).normal(size=q) * np.linalg.norm(Y, axis=0)
    v = np.tile(start / np.linalg.norm(start), (b, 1))
    for k in range(n_steps):
        V[:, k] = v
        u = np.take_along_axis(v @ Y.T, orders, axis=1) @ X
        U[:, k], B[:, k, k] = _orthonormalise(u, U[:, :k], B[:, 0, 0])
        v = np.take_along_axis(U[:, k] @ X.T, inverses, axis=1) @ Y
        v, B[:, k, k + 1] = _orthonormalise(v, V[:, : k + 1], B[:, 0, 0])
        if k % _CHECKED_STEPS == _CHECKED_STEPS - 1 or k == n_steps - 1:
            left, values, right = np.linalg.svd(B[:, : k + 1, : k + 1])
            residual = B[:, k, k + 1] * np.abs(left[:, k, 0])
            is_settled = residual <= _TOLERANCE * values[:, 0]
            if is_settled.all():
                break
    u = (left[:, None, :, 0] @ U[:, : k + 1])[:, 0]
    v = (right[:, :1] @ V[:, : k + 1])[:, 0]
    return u, v, is_settled


def _orthonormalise(x: Array, basis: Array, scale: Array) -> tuple[Array, Array]:
    """Make x (b, p) orthogonal to the rows of bases (b, k, p) and of length 1, or 0.

    Returns
    -------
    x : array (b, p)
    lengths : array (b,)
        Of what was left.
    """
    for _ in range(2):
        x = x - ((basis @ x[:, :, None]).transpose(0, 2, 1) @ basis)[:, 0]
    lengths = np.linalg.norm(x, axis=1)
    lengths = np.where(lengths > _EXHAUSTED * scale, lengths, 0.0)
    divisors = np.where(lengths > 0, lengths, np.inf)
    return x / divisors[:, None], lengths
