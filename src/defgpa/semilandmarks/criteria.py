r"""Criteria that sliding minimises: Procrustes distance and bending energy.

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
    """The bending energy of the spline from the reference to each shape of a stack."""

    L: Array
    visible: Mask

    def evaluate(self, x: Array) -> Array:
        """Compute tr(xᵀLx), (…), of points (…, m, d), whatever stands for missing ones.

        About the centroid: far from the origin digits would be lost.
        """
        points = self._center(x)
        return np.asarray(np.sum(points * (self.L @ points), axis=(-2, -1)))

    def find_steps(self, x: Array, J: Index, V: Array) -> Array:
        """Compute the steps (…, k), −(UᵀLU)⁻¹ UᵀLx, of landmarks J (k,) along V (…, k, d)."""
        columns = (np.cumsum(self.visible) - 1)[J]
        system = self.L[np.ix_(columns, columns)] * (V @ np.swapaxes(V, -1, -2))
        # a little of the mean diagonal, so that steps that cost nothing are not taken
        diagonal = np.arange(len(J))
        mean = np.trace(system, axis1=-2, axis2=-1)[..., None] / len(J)
        # without any direction, as of points in one place, there is no step to take
        system[..., diagonal, diagonal] += np.where(mean > 0, 1e-10 * mean, 1.0)
        gradient = np.sum(V * (self.L @ self._center(x))[..., columns, :], axis=-1)
        return np.asarray(-solve_each(system, gradient))

    def _center(self, x: Array) -> Array:
        points = x[..., self.visible, :]
        return np.asarray(points - points.mean(axis=-2, keepdims=True))


def solve_each(systems: Array, right: Array) -> Array:
    """Solve positive definite systems (…, k, k) for right sides (…, k)."""
    if systems.ndim == 2:
        return np.asarray(solve(systems, right, assume_a="pos"))
    if len(systems) == 1:  # a large one: Cholesky's factor takes half the time
        return np.asarray(solve(systems[0], right[0], assume_a="pos"))[None]
    return np.asarray(np.linalg.solve(systems, right[..., None])[..., 0], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Distance:
    """The squared distance from the reference brought to each shape of a stack by a similarity."""

    target: Array
    visible: Mask

    def evaluate(self, x: Array) -> Array:
        """Compute ‖x − r‖², (…)."""
        differences = (x - self.target)[..., self.visible, :]
        return np.asarray(np.sum(differences**2, axis=(-2, -1)))

    def find_steps(self, x: Array, J: Index, V: Array) -> Array:
        """Compute the steps −V·(x − r) / V·V along directions V, orthogonal for each point."""
        squared = np.sum(V * V, axis=-1)
        components = np.sum(V * (x - self.target)[..., J, :], axis=-1)
        return np.asarray(-components / np.where(squared > 0, squared, 1.0))


Criterion = Bending | Distance  # what a stack of shapes makes small, given the reference


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
