r"""What sliding makes small.

With x the points of a shape, J the landmarks that slide along directions V, and steps s, the
shape becomes x[J] + sV. Bending energy is :math:`\mathrm{tr}(x^\top L x)`, L the bending matrix of
the interpolating spline on the reference: least where :math:`(U^\top L U)\,s = -U^\top L x`.
The squared distance from the reference r in the pose of the shape is least for
:math:`s = -U^\top (x - r)`, U the directions at length one.

L does not see rotation or translation: a shape slides where it lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from defgpa.arrays import Array, Index, Mask, rms


@dataclass(frozen=True, eq=False)
class Bending:
    """The bending energy of the spline from the reference to the shape."""

    L: Array
    visible: Mask

    def value(self, x: Array) -> float:
        """Compute tr(xᵀLx) of points (m, d), missing ones whatever.

        About the centroid: far from the origin digits would be lost.
        """
        centred = x[self.visible] - x[self.visible].mean(axis=0)
        return float(np.sum(centred * (self.L @ centred)))

    def steps(self, x: Array, J: Index, V: Array) -> Array:
        """Compute the steps (k,), −(UᵀLU)⁻¹ UᵀLx, of landmarks J (k,) along V (k, d)."""
        rank = np.cumsum(self.visible) - 1
        centred, at = x[self.visible] - x[self.visible].mean(axis=0), rank[J]
        system = self.L[np.ix_(at, at)] * (V @ V.T)
        # a little of the mean diagonal, so that steps that cost nothing are not taken
        system[np.arange(len(J)), np.arange(len(J))] += 1e-10 * np.trace(system) / len(J)
        return np.asarray(
            solve(system, -np.sum(V * (self.L @ centred)[at], axis=1), assume_a="pos")
        )


@dataclass(frozen=True, eq=False)
class Distance:
    """The squared distance from the reference brought to the shape by a similarity."""

    target: Array
    visible: Mask

    def value(self, x: Array) -> float:
        """Compute ‖x − r‖²."""
        return float(np.sum((x - self.target)[self.visible] ** 2))

    def steps(self, x: Array, J: Index, V: Array) -> Array:
        """Compute −V·(x − r) / V·V; directions of one point are at right angles to each other."""
        squared = np.sum(V * V, axis=1)
        return -np.sum(V * (x - self.target)[J], axis=1) / np.where(squared > 0, squared, 1.0)


Criterion = Bending | Distance  # what one shape makes small, given the reference


def compute_bending_matrix(reference: Array) -> Array:
    """Compute L (m, m), with yᵀLy the bending energy of the spline that takes the reference to y.

    L = N (±NᵀKN)⁻¹ Nᵀ, N orthonormal and orthogonal to every affine function of the reference.
    """
    centred = reference - reference.mean(axis=0)
    scaled = centred / rms(centred)
    r = cdist(scaled, scaled)
    K = xlogy(r**2, r**2) if reference.shape[1] == 2 else -r
    affine = np.column_stack([scaled, np.ones(len(scaled))])
    N = np.linalg.qr(affine, mode="complete")[0][:, affine.shape[1] :]
    values, vectors = np.linalg.eigh(N.T @ K @ N)
    # coincident points leave directions without a spline
    is_relevant = values > 1e-11 * values.max(initial=0.0)
    root = N @ (vectors[:, is_relevant] / np.sqrt(values[is_relevant]))
    return np.asarray(root @ root.T)
