"""Linear discriminants of specimens that are left out, and how many components they need."""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array, Index

_N_FOLDS = 10  # of specimens that the number of components is chosen without


def leave_one_out(scores: Array, codes: Index, priors: Array | None = None) -> Array:
    """Compute the posterior probabilities (n, g) of every specimen from all the others.

    The pooled covariance without a specimen is a rank-one change of the one of all, so that nothing
    is fitted again.

    Parameters
    ----------
    scores : array (n, k)
        On components of shape.
    codes : array (n,) of int
        The group of every specimen.
    priors : array (g,), optional
        Probabilities of the groups; by default their shares of the other specimens.
    """
    membership = np.eye(codes.max() + 1)[codes]
    n, g = membership.shape
    counts = membership.sum(axis=0)
    means = (membership.T @ scores) / counts[:, None]
    deviations = scores - means[codes]
    inverse = np.linalg.pinv(deviations.T @ deviations)
    # without specimen i the scatter loses c/(c − 1) of its square, the mean moves by 1/(c − 1)
    others = np.maximum(counts[codes] - 1, 1)
    shrink = counts[codes] / others
    solved = deviations @ inverse
    leverage = shrink * (solved * deviations).sum(axis=1)
    residuals = scores[:, None] - means
    residuals[np.arange(n), codes] += deviations / others[:, None]
    components = np.einsum("igp,ip->ig", residuals, solved)
    squares = ((residuals @ inverse) * residuals).sum(axis=2)
    squares += (shrink / np.maximum(1 - leverage, 1e-12))[:, None] * components**2
    weights = counts - membership if priors is None else np.tile(priors, (n, 1))
    with np.errstate(divide="ignore"):  # a group of one specimen is empty without it
        logs = np.log(weights / weights.sum(axis=1, keepdims=True)) - 0.5 * squares * (n - 1 - g)
    posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def choose_components(scores: Array, codes: Index, priors: Array | None, most: int) -> int:
    """Choose how many components assign most specimens correctly, the fewest of equal ones.

    Parameters
    ----------
    scores, codes, priors : array (n, k), (n,) of int, (g,) or None
        As in `leave_one_out`.
    most : int
        Components at most.
    """
    counts = range(1, max(min(most, len(codes) - codes.max() - 2), 1) + 1)
    assigned = (leave_one_out(scores[:, :k], codes, priors).argmax(axis=1) for k in counts)
    return int(np.argmax([(groups == codes).sum() for groups in assigned])) + 1


def assign_unchosen(scores: Array, codes: Index, priors: Array | None, most: int) -> Array:
    """Compute posterior probabilities (n, g), the number of components chosen without the specimen.

    Chosen with it, the number flatters: without any difference 60 % of two equal groups are
    assigned correctly.

    Parameters
    ----------
    scores, codes, priors : array (n, k), (n,) of int, (g,) or None
        As in `leave_one_out`.
    most : int
        Components at most.
    """
    posterior = np.empty((len(codes), codes.max() + 1))
    fold = np.empty(len(codes), dtype=np.intp)
    fold[np.argsort(codes, kind="stable")] = np.arange(len(codes)) % _N_FOLDS
    for left_out in range(min(_N_FOLDS, len(codes))):
        kept, rows = fold != left_out, fold == left_out
        k = choose_components(scores[kept], codes[kept], priors, most)
        posterior[rows] = leave_one_out(scores[:, :k], codes, priors)[rows]
    return posterior
