r"""Keep the reference centred at the origin, by a change of P into a cost whose cheapest axes are.

    soft     P + ν v vᵀ                  charges ν‖Sᵀv‖²
    exact    J P J + (c + 1) v vᵀ/‖v‖²   J = I − v vᵀ/‖v‖²: forbids it; c bounds the spectrum of P

v is the constant vector 1, or what it is in the coordinates of the cost (``metric``). For warps
with free translations, P v = 0, both give the same axes: P's spectrum is at most n, so
ν = n/‖v‖² = n/m lifts the constant vector out of the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from defgpa.arrays import Array
from defgpa.solvers.eigen import Cost, Preconditioner


class Centering(Protocol):
    """A rule that keeps the reference centred."""

    def apply(self, cost: Cost, constant: Array | None = None) -> Cost:
        """Return the cost whose cheapest axes are centred; ``constant`` (…, m) is v, or else 1."""
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

    def apply(self, cost: Cost, constant: Array | None = None) -> Cost:
        """Return P + ν v vᵀ."""
        nu = self.nu
        if nu is not None and not (isinstance(nu, (int, float, np.number)) and 0.0 <= nu < np.inf):
            raise ValueError(
                "The 'nu' parameter of SoftCentering must be a number of at least 0. "
                f"Got {nu!r} instead."
            )
        v = np.ones(cost.n_landmarks) if constant is None else constant
        lift = cost.norm / np.square(v).sum(axis=-1, keepdims=True) if nu is None else nu
        return _SoftlyCentredCost(cost, np.sqrt(lift) * v)


@dataclass(frozen=True)
class ExactCentering:
    """Work in the complement of the constant vector: centred, whatever the warp."""

    def apply(self, cost: Cost, constant: Array | None = None) -> Cost:
        """Return J P J, with the constant vector moved above the whole spectrum."""
        v = np.ones(cost.n_landmarks) if constant is None else constant
        return _ExactlyCentredCost(cost, v / np.linalg.norm(v, axis=-1, keepdims=True))


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
    charge: Array  # (…, m): ν^½ v

    def multiply(self, block: Array) -> Array:
        image = self.cost.multiply(block)
        image += self.charge[:, None] * (self.charge @ block)
        return image

    def dense(self) -> Array:
        matrix = self.cost.dense()
        matrix += self.charge[..., :, None] * self.charge[..., None, :]
        return matrix


@dataclass(frozen=True, eq=False)
class _ExactlyCentredCost(_CentredCost):
    unit: Array  # (…, m): v / ‖v‖

    @property
    def lift(self) -> float:
        """What the constant vector costs: more than any other."""
        return self.norm + 1.0

    def multiply(self, block: Array) -> Array:
        unit = self.unit[:, None]
        along = unit * (self.unit @ block)
        image = self.cost.multiply(block - along)
        return np.asarray(image - unit * (self.unit @ image) + self.lift * along)

    def dense(self) -> Array:
        matrix, row, column = self.cost.dense(), self.unit[..., None, :], self.unit[..., :, None]
        matrix = matrix - column * (row @ matrix)
        matrix = matrix - (matrix @ column) * row
        return np.asarray(matrix + self.lift * column * row)
