r"""Find the axes of folds of large shapes in the coordinates of their features.

With Ũ = C^-½ U of all n shapes beside each other (m, nl), C^-½ P C^-½ = I − ŨŨᵀ, and its cheapest
axes are Ũy for the last eigenvectors y of ŨᵀŨ = Q diag(g) Qᵀ. Leaving the landmarks J out changes
little of that: the axes Ũ_K y of what remains solve

    (ŨᵀŨ − Ũ_JᵀŨ_J) y = λ (I − BᵀB) y,        B = blockdiag(Γ_iJ^-½ U_iJ),

since P_i' = Γ_K − U_iK (I − U_iJᵀ Γ_J⁻¹ U_iJ)⁻¹ U_iKᵀ. With y = Q L z and the symmetric
L = (I − BᵀB)^-½ this is an eigenproblem of a diagonal matrix changed by a low rank. Its products
cost nothing next to those with U, and g itself is the preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa.arrays import Array, Index, symmetrise
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.davidson import Eigenpairs, find_bottom_eigenpairs
from defgpa.solvers.eigen import Iterative, Spectrum, stack_spectra
from defgpa.solvers.elimination import StoredFactor
from defgpa.solvers.leave_out import SINGULAR, LeftOutFeatures

MAX_FEATURES = 2500  # of all shapes: beyond, ŨᵀŨ takes longer than iterations on the landmarks
SHIFT = 1e-4  # keeps the preconditioner finite on the constant vector


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """P of large shapes in the eigenvectors of ŨᵀŨ."""

    cost: ResidualCost
    weights: Array  # (n, m): Γ

    @staticmethod
    def can_hold(cost: ResidualCost) -> bool:
        """Return whether the features of all shapes are stored, and fewer than the landmarks."""
        if not all(isinstance(factor, StoredFactor) for factor in cost.factors):
            return False
        n_features = sum(factor.ridge.inverse[:, 0].size for factor in cost.factors)
        return n_features <= min(MAX_FEATURES, cost.n_landmarks)

    @cached_property
    def rows(self) -> Array:
        """(nl, m): Ũᵀ."""
        stacked = np.vstack([factor.stack_rows() for factor in self.cost.factors])
        return np.asarray(stacked / np.sqrt(self.cost.totals))

    @cached_property
    def decomposition(self) -> tuple[Array, Array]:
        """(nl,) and (nl, nl): g and Q."""
        return np.linalg.eigh(symmetrise(self.rows @ self.rows.T))

    @cached_property
    def blocks(self) -> list[Array]:
        """(b, l, nl) of every batch: the rows of Q of its features."""
        sizes = [factor.ridge.inverse.shape[::2] for factor in self.cost.factors]
        blocks = np.split(self.decomposition[1], np.cumsum([b * l for b, l in sizes])[:-1])
        return [block.reshape(b, l, -1) for block, (b, l) in zip(blocks, sizes, strict=True)]

    @cached_property
    def constant(self) -> Array:
        """(nl,): QᵀŨᵀ C^½ 1."""
        return np.asarray(self.decomposition[1].T @ (self.rows @ np.sqrt(self.cost.totals)))

    def find_axes(self, folds: LeftOutFeatures, count: int, solver: Iterative) -> Spectrum:
        """Find the ``count`` cheapest axes of C_K^-½ P' C_K^-½ of g folds, the constant one aside.

        For warps with free translations. The eigenvalues are those of P' where all landmarks have
        the same total weight, and else n times as large, as in ``find_cheapest_axes``.
        """
        g, size = folds.landmarks.shape
        changes = np.concatenate(
            [
                rows.mT.reshape(len(block), g * size, -1) @ block
                for rows, block in zip(folds.rows, self.blocks, strict=True)
            ]
        ).reshape(self.cost.n_shapes, g, size, -1)
        pairs, columns = [], []
        for fold in range(g):
            change = _FoldChange.of(self, folds.landmarks[fold], changes[:, fold])
            eigenpairs = change.find_eigenpairs(count, solver)
            pairs.append(eigenpairs)
            columns.append(change.spread(eigenpairs.vectors[:, : count + 1]))
        vectors = self.decomposition[1] @ np.hstack(columns)
        axes = (vectors.T @ self.rows).reshape(g, count + 1, -1)
        spectra, totals = [], self.cost.totals
        scale = totals[0] if (totals == totals[0]).all() else self.cost.n_shapes
        for fold, eigenpairs in enumerate(pairs):
            remaining_axes = axes[fold][:, folds.remaining[fold]].T
            remaining_axes = remaining_axes / np.linalg.norm(remaining_axes, axis=0)
            spectra.append(
                Spectrum(
                    np.ascontiguousarray(remaining_axes[:, :count]),
                    scale * eigenpairs.values[: count + 1],
                    scale * eigenpairs.residuals[:count],
                    remaining_axes[:, count],
                    eigenpairs.converged,
                    "iterative",
                    eigenpairs.n_products,
                )
            )
        return stack_spectra(spectra)


@dataclass(frozen=True, eq=False)
class _FoldChange:
    """What leaving landmarks out changes: I − L (diag(g) − AᵀA) L + ccᵀ, L = I + BᵀB."""

    values: Array  # (nl,): g
    common: Array  # (n_left_out, nl): A = Ũ_J Q
    single: Array  # (n·n_left_out, nl): B
    constant: Array  # (nl,): c, the constant vector, of unit length

    @classmethod
    def of(cls, space: FeatureSpace, landmarks: Index, rows: Array) -> _FoldChange:
        """Make the change of one fold from the rows U_iJ Q (n, n_left_out, nl)."""
        masses, totals = space.weights[:, landmarks], space.cost.totals[landmarks]
        roots = np.sqrt(np.where(masses > 0.0, masses, 1.0))[..., None]
        common = rows.sum(axis=0) / np.sqrt(totals)[:, None]
        rows = rows / roots
        # rows of different shapes are orthogonal, as Q is
        shares, turn = np.linalg.eigh(rows @ rows.mT)
        shares = np.clip(shares, 0.0, 1.0 - SINGULAR)
        inflation = np.full_like(shares, 0.5)  # ((1 − h)^-½ − 1) / h, and its limit at h = 0
        np.divide(1.0 / np.sqrt(1.0 - shares) - 1.0, shares, out=inflation, where=shares > 1e-8)
        single = (np.sqrt(inflation)[..., None] * (turn.mT @ rows)).reshape(-1, rows.shape[-1])
        constant = space.constant - common.T @ np.sqrt(totals)
        constant = constant + single.T @ (single @ constant)
        values, _ = space.decomposition
        return cls(values, common, single, constant / np.linalg.norm(constant))

    def spread(self, block: Array) -> Array:
        """Compute L Z (nl, k)."""
        return np.asarray(block + self.single.T @ (self.single @ block))

    def multiply(self, block: Array) -> Array:
        """Compute the product with Z (nl, k)."""
        spread = self.spread(block)
        inner = self.values[:, None] * spread - self.common.T @ (self.common @ spread)
        return np.asarray(
            block - self.spread(inner) + self.constant[:, None] * (self.constant @ block)
        )

    def correct(self, residuals: Array) -> Array:
        """Multiply residuals by the inverse of the problem of all landmarks."""
        return np.asarray(residuals / (1.0 + SHIFT - self.values)[:, None])

    def find_eigenpairs(self, count: int, solver: Iterative) -> Eigenpairs:
        """Find the cheapest axes, from those of all landmarks on."""
        size = len(self.values)
        start = np.zeros((size, count + 3))
        start[np.arange(size - 1, size - count - 3, -1), np.arange(count + 2)] = 1.0
        start[:, -1] = np.random.default_rng(0).normal(size=size)  # nothing is missed by symmetry
        return find_bottom_eigenpairs(
            self.multiply, self.correct, start, count, 1.0, solver.accuracy, solver.max_products
        )
