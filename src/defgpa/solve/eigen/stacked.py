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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Mask, inverse_of_lower
from defgpa.solve.eigen.solvers import Cost, Preconditioner, Spectrum, lowest_axes

_FEW = 4  # matrices: not worth a stack
_EXTRA = 4  # vectors more than are wanted, for speed: the error falls by σ_k / σ_(k + 5) a step
_ROUNDS = 5  # of two steps each
_SHIFT = 1e-6  # relative to the largest eigenvalue possible: bounds the condition of A + sI
_PRECISION = 1e-11  # residual over gap: the angle by which an axis may be off


@dataclass(frozen=True)
class Stacked:
    """Block inverse iteration on a stack of dense costs; LAPACK for those that are not sure.

    Parameters
    ----------
    clear_gap : float
        Relative gap below which the next eigenvalue and its vector are wanted exactly, as they
        decide what is to be told of the set.
    """

    clear_gap: float = 0.01

    def axes(
        self, cost: Cost, make_preconditioner: Callable[[], Preconditioner], count: int
    ) -> Spectrum:
        """The ``count`` cheapest axes of every cost of the stack."""
        matrices = cost.dense()
        g, m, _ = matrices.shape
        found = Spectrum(
            np.empty((g, m, count)),
            np.empty((g, min(count, m - 1) + 1)),
            np.empty((g, count)),
            np.empty((g, m)),
            np.ones(g, dtype=bool),
            "dense",
            0,
        )
        sure = np.zeros(g, dtype=bool)
        if g >= _FEW and m >= 4 * (count + _EXTRA):
            sure = self._by_inverse_iteration(matrices, found, _SHIFT * cost.n_shapes)
        for i in np.flatnonzero(~sure):
            one = lowest_axes(matrices[i], count)
            found.axes[i], found.values[i] = one.axes, one.values
            found.residuals[i], found.next_vector[i] = one.residuals, one.next_vector
        return found

    def _by_inverse_iteration(self, costs: Array, found: Spectrum, shift: float) -> Mask:
        """Fill in what is found, and tell (g,) whether to believe it."""
        (g, m, _), k = costs.shape, found.n_axes
        shifted = costs + shift * np.eye(m)
        try:
            lower: Array = np.linalg.cholesky(shifted)  # type: ignore[assignment]
        except np.linalg.LinAlgError:
            return np.zeros(g, dtype=bool)
        root = inverse_of_lower(lower)
        inverse = root.mT @ root
        twice = inverse @ inverse
        block = np.random.default_rng(0).normal(size=(m, k + _EXTRA))
        for _ in range(_ROUNDS):
            block = np.linalg.qr(twice @ block)[0]
        image = costs @ block
        values, turn = np.linalg.eigh(block.mT @ image)
        found.axes[...], found.next_vector[...] = (
            block @ turn[..., :k],
            (block @ turn[..., k : k + 1])[..., 0],
        )
        found.residuals[...] = np.linalg.norm(
            image @ turn[..., :k] - found.axes * values[:, None, :k], axis=1
        )
        shares = (values + shift) ** -4.0
        left = np.einsum("gij,gij->g", twice, twice) - shares.sum(axis=1) + shares[:, k]
        next_value = np.maximum(left, np.finfo(np.float64).tiny) ** -0.25 - shift
        found.values[:, :k] = values[:, :k]
        found.values[:, k] = np.minimum(next_value, values[:, k])
        gaps = np.diff(found.values, axis=1)
        precise = found.residuals.max(axis=1) <= _PRECISION * gaps.min(axis=1)
        return np.asarray(precise & (gaps[:, -1] > self.clear_gap * found.values[:, k]))
