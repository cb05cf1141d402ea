r"""The metric of the eigenproblem: every landmark counts by its total weight.

P is bounded by C = diag(c), c_j = Σ_i γ_ij the total weight of landmark j: where few shapes have a
landmark, displacing it costs little whatever the shapes say. In the metric C that advantage is
gone,

    P x = σ C x,        0 ≤ σ ≤ 1,

and σ is the share of an axis that the warps do not explain. It is solved as an ordinary problem for
y = (C/n)^½ x, of the matrix (C/n)^-½ P (C/n)^-½; a constant x is y = (C/n)^½ 1. For complete shapes
with equal weights C = nI, and both problems are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from defgpa.arrays import Array
from defgpa.solvers.eigen import Cost, Preconditioner, Spectrum


class WeightedCost(Cost, Protocol):
    """P of landmarks whose total weights are known."""

    @property
    def totals(self) -> Array:
        """(…, m): c, the total weight of each landmark."""
        ...


@dataclass(frozen=True, eq=False)
class LandmarkMetric:
    """The coordinates y = (C/n)^½ x in which the metric C is the identity.

    Several folds of one size have a leading axis ….
    """

    roots: Array  # (…, m): (c/n)^½

    @classmethod
    def of(cls, cost: WeightedCost) -> LandmarkMetric | None:
        """Return the metric of a cost; None where all landmarks have the same total weight."""
        totals = cost.totals
        if (totals == totals[..., :1]).all():
            return None
        return cls(np.sqrt(totals / cost.n_shapes))

    def scale(self, cost: Cost) -> Cost:
        """Return the cost of y."""
        return _ScaledCost(cost, self.roots)

    def restore(self, spectrum: Spectrum) -> Spectrum:
        """Return the spectrum of y with the axes x in its place.

        They are given as orthonormal columns whose first k span the k cheapest x, for every k.
        """
        return LandmarkMetric(self.roots[None]).restore_all([spectrum])[0]

    def restore_all(self, spectra: Sequence[Spectrum]) -> list[Spectrum]:
        """Restore the axes of several folds, whose metrics have one leading axis."""
        columns = np.stack([np.column_stack([s.axes, s.next_vector]) for s in spectra])
        columns = self._restore_columns(columns)
        axes, mixing = np.linalg.qr(columns[..., :-1])
        following = columns[..., -1:]
        beyond = following - axes @ (axes.mT @ following)
        lengths = np.linalg.norm(beyond, axis=-2, keepdims=True)
        # of as many axes as there are landmarks the last is also the next one
        is_new = lengths > 1e-8 * np.linalg.norm(following, axis=-2, keepdims=True)
        beyond = np.where(is_new, beyond / np.where(is_new, lengths, 1.0), 0.0)
        return [
            replace(spectrum, axes=axes[i], next_vector=beyond[i, :, 0], mixing=mixing[i])
            for i, spectrum in enumerate(spectra)
        ]

    def _restore_columns(self, columns: Array) -> Array:
        """Return x of y (…, m, k), moved so that its mean is what its weighted mean was."""
        columns = columns / self.roots[..., None]
        weights = self.roots**2
        means = (weights[..., None, :] @ columns) / weights.sum(axis=-1)[..., None, None]
        return np.asarray(columns - columns.mean(axis=-2, keepdims=True) + means)


@dataclass(frozen=True, eq=False)
class _ScaledCost:
    """(C/n)^-½ P (C/n)^-½."""

    cost: Cost
    roots: Array

    @property
    def n_landmarks(self) -> int:
        return self.cost.n_landmarks

    @property
    def n_shapes(self) -> int:
        return self.cost.n_shapes

    @property
    def norm(self) -> float:
        return float(self.cost.n_shapes)

    def multiply(self, block: Array) -> Array:
        return np.asarray(self.cost.multiply(block / self.roots[:, None]) / self.roots[:, None])

    def dense(self) -> Array:
        matrix, inverse = self.cost.dense(), 1.0 / self.roots
        matrix *= inverse[..., :, None]  # in place: new arrays of many folds take longer
        matrix *= inverse[..., None, :]
        return matrix

    def preconditioner(self) -> Preconditioner:
        return _ScaledInverse(self.cost.preconditioner(), self.roots[:, None])


@dataclass(frozen=True, eq=False)
class _ScaledInverse:
    """(C/n)^½ P⁻¹ (C/n)^½."""

    inverse: Preconditioner
    roots: Array  # (m, 1)

    def start(self, width: int) -> Array:
        return np.asarray(self.roots * self.inverse.start(width))

    def correct(self, residuals: Array) -> Array:
        return np.asarray(self.roots * self.inverse.correct(self.roots * residuals))
