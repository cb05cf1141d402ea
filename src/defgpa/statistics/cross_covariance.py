"""First pair of singular vectors of many permuted cross-covariances C = XᵀY[π].

Golub–Kahan–Lanczos bidiagonalisation of a block of permutations at once. X and Y are the same for
all of them: a step multiplies by Y, reorders rows and multiplies by X, and no C is formed. On
300 specimens this takes an eighth of the time of decompositions.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal

from defgpa.arrays import Array, Index, Mask

_MAX_DECOMPOSED = 24  # columns of a block for which decompositions take less time
_MAX_STEPS = 72
_CHECKED_STEPS = 6
_TOLERANCE = 1e-7  # relative, of the residual Cᵀu − σv: r-PLS is then right to about 1e-9
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
    alphas, betas = np.zeros((b, n_steps)), np.zeros((b, n_steps))
    # any start does that is not orthogonal to the axis: more of the columns that vary more
    start = np.random.default_rng(0).normal(size=q) * np.linalg.norm(Y, axis=0)
    v = np.tile(start / np.linalg.norm(start), (b, 1))
    for k in range(n_steps):
        V[:, k] = v
        u = np.take_along_axis(v @ Y.T, orders, axis=1) @ X
        U[:, k], alphas[:, k] = _orthonormalise(u, U[:, :k], alphas[:, 0])
        v = np.take_along_axis(U[:, k] @ X.T, inverses, axis=1) @ Y
        v, betas[:, k] = _orthonormalise(v, V[:, : k + 1], alphas[:, 0])
        if k % _CHECKED_STEPS == _CHECKED_STEPS - 1 or k == n_steps - 1:
            left, right, value = _find_first_pair(alphas[:, : k + 1], betas[:, : k + 1])
            is_settled = betas[:, k] * np.abs(left[:, k]) <= _TOLERANCE * value
            if is_settled.all():
                break
    u = (left[:, None] @ U[:, : k + 1])[:, 0]
    v = (right[:, None] @ V[:, : k + 1])[:, 0]
    return u, v, is_settled


def _orthonormalise(x: Array, basis: Array, scale: Array) -> tuple[Array, Array]:
    """Make x (b, p) orthogonal to the rows of bases (b, k, p) and of length 1, or 0.

    Returns
    -------
    x : array (b, p)
    lengths : array (b,)
        Of what was left.
    """
    x = x - ((basis @ x[:, :, None]).transpose(0, 2, 1) @ basis)[:, 0]
    lengths = np.linalg.norm(x, axis=1)
    lengths = np.where(lengths > _EXHAUSTED * scale, lengths, 0.0)
    return x / np.where(lengths > 0, lengths, np.inf)[:, None], lengths


def _find_first_pair(alphas: Array, betas: Array) -> tuple[Array, Array, Array]:
    """Find the largest singular value of bidiagonal matrices B, and its vectors.

    Parameters
    ----------
    alphas, betas : array (b, k)
        The diagonal of B, and what stands right of it; the last of betas is beyond B.

    Returns
    -------
    left, right : array (b, k)
    value : array (b,)
    """
    scale = np.maximum(alphas[:, :1], np.finfo(np.float64).tiny)
    a, c = alphas / scale, betas[:, :-1] / scale
    diagonals, beside = a**2, a[:, 1:] * c  # of the tridiagonal BBᵀ
    diagonals[:, :-1] += c**2
    last = a.shape[1] - 1
    pairs = [
        eigh_tridiagonal(*entries, select="i", select_range=(last, last))
        for entries in zip(diagonals, beside, strict=True)
    ]
    left = np.stack([vectors[:, 0] for _, vectors in pairs])
    right = a * left
    right[:, 1:] += c * left[:, :-1]
    lengths = np.linalg.norm(right, axis=1)
    value = lengths * scale[:, 0]
    return left, right / np.maximum(lengths, np.finfo(np.float64).tiny)[:, None], value
