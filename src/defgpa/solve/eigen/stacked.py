r"""The cheapest axes of many small costs at once.

LAPACK finds the lowest eigenvectors of one matrix at a time, and holds Python's lock while it does.
Here a whole stack is inverted, A + sI = LLᵀ, B = L⁻ᵀL⁻¹, and a few vectors more than are wanted are
multiplied by B² until they span the lowest eigenvectors: block inverse iteration, all of it batched
products that run on several threads.

An iteration could miss an eigenvector. The sum over the whole spectrum, ‖B²‖² = Σ (σ_i + s)⁻⁴,
tells: what is left of it after the vectors found bounds the lowest eigenvalue that was not,

    (σ + s)⁻⁴ ≤ ‖B²‖² − Σ_{found} (θ_i + s)⁻⁴.

Matrices whose axes are not sure by their residual and this bound are left to LAPACK.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from defgpa._arrays import Array, Mask, inverse_of_lower, transposed

_FEW = 4  # matrices: not worth a stack
_EXTRA = 4  # vectors more than are wanted, for speed: the error falls by σ_d / σ_(d + 5) a step
_ROUNDS = 5  # of two steps each
_SHIFT = 1e-6  # relative to the largest eigenvalue possible: bounds the condition of A + sI
_PRECISION = 1e-11  # residual over gap: the angle by which an axis may be off


def cheapest_of_each(costs: Array, n_axes: int, n_shapes: int) -> tuple[Array, Array]:
    """(g, d + 1) lowest eigenvalues and (g, m, d) eigenvectors of symmetric A (g, m, m).

    The spectrum is within [0, n_shapes]. Of the last eigenvalue a lower bound may be returned.
    """
    g, m, _ = costs.shape
    values, axes = np.empty((g, n_axes + 1)), np.empty((g, m, n_axes))
    sure = np.zeros(g, dtype=bool)
    if g >= _FEW and m >= 4 * (n_axes + _EXTRA):
        values, axes, sure = _by_inverse_iteration(costs, n_axes, _SHIFT * n_shapes)
    for i in np.flatnonzero(~sure):
        values[i], vectors = eigh(costs[i], subset_by_index=(0, n_axes), check_finite=False)
        axes[i] = vectors[:, :n_axes]
    return values, axes


def _by_inverse_iteration(costs: Array, d: int, shift: float) -> tuple[Array, Array, Mask]:
    """The same, and (g,) whether to believe it."""
    g, m, _ = costs.shape
    shifted = costs + shift * np.eye(m)
    try:
        lower: Array = np.linalg.cholesky(shifted)  # type: ignore[assignment]
    except np.linalg.LinAlgError:
        return np.empty((g, d + 1)), np.empty((g, m, d)), np.zeros(g, dtype=bool)
    root = inverse_of_lower(lower)
    inverse = transposed(root) @ root
    twice = inverse @ inverse
    block = np.random.default_rng(0).normal(size=(m, d + _EXTRA))
    for _ in range(_ROUNDS):
        block = np.linalg.qr(twice @ block)[0]
    image = costs @ block
    values, turn = np.linalg.eigh(transposed(block) @ image)
    axes, image = block @ turn[..., :d], image @ turn[..., :d]
    residual = np.linalg.norm(image - axes * values[:, None, :d], axis=1).max(axis=1)
    shares = (values + shift) ** -4.0
    left = np.einsum("gij,gij->g", twice, twice) - shares.sum(axis=1) + shares[:, d]
    next_value = np.maximum(left, np.finfo(np.float64).tiny) ** -0.25 - shift
    values = np.column_stack([values[:, :d], np.minimum(next_value, values[:, d])])
    return values, axes, residual <= _PRECISION * np.diff(values, axis=1).min(axis=1)
