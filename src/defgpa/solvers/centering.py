r"""Keep the reference centred at the origin, by a change of P into a cost whose cheapest axes are.

    soft     P + ν 1 1ᵀ                charges ν‖Sᵀ1‖²
    exact    J P J + (c + 1) 1 1ᵀ/m    J = I − 1 1ᵀ/m: forbids it; c bounds the spectrum of P

For warps with free translations, P1 = 0, both give the same axes: P's spectrum is at most n,
so ν = n/m lifts the constant vector out of the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from defgpa.arrays import Array
from defgpa.solvers.eigen import Cost, Preconditioner


class Centering(Protocol):
    """A rule that keeps the reference centred."""

    def apply(self, cost: Cost) -> Cost:
        """Return the cost whose cheapest axes are centred."""
        ...


@dataclass(frozen=True)
class SoftCentering:
    """Charge ν‖Sᵀ1‖² for an off-centre reference, the paper's way.

    Parameters
    ----------
    nu : float, optional
        ν; by default n/m, the smallest that is sure to suffice.
    """

    nu: float | None = None

    def apply(self, cost: Cost) -> Cost:
        """Return P + ν 1 1ᵀ."""
        nu = cost.norm / cost.n_landmarks if self.nu is None else self.nu
        if not (isinstance(nu, (int, float, np.number)) and 0.0 <= nu < np.inf):
            raise ValueError(
                "The 'nu' parameter of SoftCentering must be a number of at least 0. "
                f"Got {nu!r} instead."
            )
        return _SoftlyCentredCost(cost, float(nu))


@dataclass(frozen=True)
class ExactCentering:
    """Work in the complement of the constant vector: centred, whatever the warp."""

    def apply(self, cost: Cost) -> Cost:
        """Return J P J, with the constant vector moved above the whole spectrum."""
        return _ExactlyCentredCost(cost)


@dataclass(frozen=True, eq=False)
class _CentredCost:
    """A changed cost, of as many shapes and landmarks as before."""

    cost: Cost

    @property
    def n_landmarks(self) -> int:
        return self.cost.n_landmarks

    @property
    def n_shapes(self) -> int:
        return self.cost.n_shapes

    @property
    def norm(self) -> float:
        return self.cost.norm

    def preconditioner(self) -> Preconditioner:
        return self.cost.preconditioner()


@dataclass(frozen=True, eq=False)
class _SoftlyCentredCost(_CentredCost):
    nu: float

    def multiply(self, block: Array) -> Array:
        image = self.cost.multiply(block)
        image += self.nu * block.sum(axis=0)
        return image

    def dense(self) -> Array:
        return self.cost.dense() + self.nu


@dataclass(frozen=True, eq=False)
class _ExactlyCentredCost(_CentredCost):
    @property
    def lift(self) -> float:
        """What the constant vector costs: more than any other."""
        return self.norm + 1.0

    def multiply(self, block: Array) -> Array:
        mean = block.mean(axis=0)
        image = self.cost.multiply(block - mean)
        return image - image.mean(axis=0) + self.lift * mean

    def dense(self) -> Array:
        matrix = self.cost.dense()
        matrix = matrix - matrix.mean(axis=-2, keepdims=True)
        matrix = matrix - matrix.mean(axis=-1, keepdims=True)
        return matrix + self.lift / self.n_landmarks
