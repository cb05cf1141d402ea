r"""Polynomial maps of low degree, charged for how they bend.

    warp(x) = Σ_e q_e(u(x)) w_e,      e₁ + … + e_d ≤ degree,

u the coordinates of x in the principal box of the shape and q_e products of Legendre polynomials,
which are orthogonal there. The penalty is the bending averaged over the box, in the shape's own
units (centroid 0, RMS radius 1),

    R = τ · p · mean_box Σ_ab (∂²f / ∂x̂_a ∂x̂_b)²

for p visible points: an exact integral, and zero for affine maps alone. Degree 1 is ``Affine``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from defgpa._arrays import Array
from defgpa.frames import Frames, frames_of
from defgpa.warps._approximate_inverse import swapped
from defgpa.warps._box import Box, principal_box
from defgpa.warps._legendre import exponents, gauss_nodes, polynomial_derivatives, polynomials
from defgpa.warps._parameters import Parameters, require_degree, require_not_negative
from defgpa.warps._warp import Warp


@dataclass(frozen=True, eq=False)
class PolynomialBasis:
    """The polynomials q_e in the box of one shape, or of a stack of shapes."""

    degree: int
    middle: Array  # (…, d): of the box
    axes: Array  # (…, d, d): its directions, as columns
    half: Array  # (…, d): half its sides
    centre: Array  # (…, d): centroid
    scale: Array  # (…,): RMS radius
    stiffness: Array  # (…,): τ p

    mixing = None

    @property
    def box(self) -> Box:
        """The box the functions live in."""
        return Box(self.middle, self.axes, self.half)

    def columns(self, points: Array) -> Array:
        """(…, p, q): highest degree first, the affine ones last."""
        return polynomials(self.box.local(points), self.degree)

    features = columns

    def column_gradients(self, points: Array) -> Array:
        """(…, p, d, q)."""
        u = self.box.local(points)
        units = np.eye(u.shape[-1], dtype=int)
        by_local = [polynomial_derivatives(u, self.degree, tuple(unit)) for unit in units]
        return self.box.by_point(np.stack(by_local, axis=-2))

    @cached_property
    def energy(self) -> Array:
        """(…, q, q): the mean bending over the box, in the shape's own units."""
        stretch = (self.scale[..., None] / self.box.half) ** 2  # (∂u/∂x̂)²
        total = np.zeros((*self.scale.shape, *_sizes(stretch.shape[-1], self.degree)))
        for (a, b), term in _second_derivative_means(stretch.shape[-1], self.degree).items():
            total += (stretch[..., a] * stretch[..., b])[..., None, None] * term
        return total

    def penalty(self) -> Array:
        """(…, q, q): τ p times the mean bending."""
        return self.stiffness[..., None, None] * self.energy

    def inverted(self, warp: Warp) -> Warp:
        """An approximate inverse: the spline that takes the images of a grid in the box back."""
        return swapped(warp, self.box)

    def __getitem__(self, shape: Any) -> PolynomialBasis:
        return PolynomialBasis(
            self.degree,
            self.middle[shape],
            self.axes[shape],
            self.half[shape],
            self.centre[shape],
            self.scale[shape],
            self.stiffness[shape],
        )


@dataclass(frozen=True, repr=False)
class Polynomial(Parameters):
    """Polynomial warps of total degree 1 to 4.

    Parameters
    ----------
    degree : int
        1 (affine), 2, 3 or 4.
    smoothing : float
        τ, relative and dimensionless: a shape with p visible points is charged τ p times the
        bending of its warp, averaged over the principal box in the shape's own units.

    Notes
    -----
    Translations and all affine maps are free. Beyond the shape a polynomial grows with its degree:
    for points far outside, prefer ``ThinPlateSpline`` or ``FreeForm``.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> Polynomial(degree=3).basis(points).features(points).shape
    (40, 10)
    """

    degree: int = 2
    smoothing: float = 1e-3

    def basis(self, points: Array) -> PolynomialBasis:
        """The polynomials in the box of one shape (p, d)."""
        return self.bases(frames_of(np.asarray(points, dtype=np.float64)))[0]

    def bases(self, frames: Frames) -> PolynomialBasis:
        """The bases of n shapes, stacked."""
        require_degree(self.degree, "degree", "Polynomial", 1, 4)
        require_not_negative(self.smoothing, "smoothing", "Polynomial")
        box = principal_box(frames, padding=0.0)
        # a flat shape has no thickness to measure in: rounding must not look like one
        half = np.where(frames.extents > 0.0, box.half, box.half.max(axis=-1, keepdims=True))
        return PolynomialBasis(
            int(self.degree),
            box.middle,
            box.axes,
            half,
            frames.centre,
            frames.size,
            self.smoothing * frames.count,
        )


def _sizes(dim: int, degree: int) -> tuple[int, int]:
    return (len(exponents(dim, degree)),) * 2


@cache
def _second_derivative_means(dim: int, degree: int) -> dict[tuple[int, int], Array]:
    """For axes a ≤ b the (q, q) mean over [−1, 1]^d of ∂_ab q_e ∂_ab q_f; twice it where a < b.

    The products are of degree 2 (degree − 2) at most, so ``degree`` Gauss nodes are exact.
    """
    nodes, weights = gauss_nodes(dim, degree)
    means = {}
    for a, b in combinations_with_replacement(range(dim), 2):
        orders = np.eye(dim, dtype=int)[a] + np.eye(dim, dtype=int)[b]
        second = polynomial_derivatives(nodes, degree, tuple(orders))
        means[a, b] = (1.0 if a == b else 2.0) * (second.T * weights) @ second
    return means
