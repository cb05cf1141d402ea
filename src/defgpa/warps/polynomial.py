r"""Polynomial maps of low degree, charged for how they bend.

    warp(x) = Σ_e q_e(u(x)) w_e,      e₁ + … + e_d ≤ degree,

u the coordinates of x in the principal box of the shape and q_e(u) = Π_a P_{e_a}(u_a) products of
Legendre polynomials: the same maps as with monomials u^e, but orthogonal on the box, so that their
columns stay independent where powers nearly coincide. The penalty is the bending averaged over the
box, in the shape's own units (centroid 0, RMS radius 1),

    R = τ · p · mean_box Σ_ab (∂²f / ∂x̂_a ∂x̂_b)²

for p visible points: an exact integral, and zero for affine maps alone. Degree 1 is ``Affine``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.polynomial.legendre import legder, leggauss, legvander

from defgpa.arrays import Array, Index
from defgpa.geometry import Geometry
from defgpa.warps.base import WarpFamily
from defgpa.warps.box import BoxedBasis, make_principal_box
from defgpa.warps.parameters import require_degree, require_number


@dataclass(frozen=True, eq=False)
class PolynomialBasis(BoxedBasis):
    """The polynomials q_e in the box of one shape, or of a stack of shapes."""

    degree: int

    def columns(self, points: Array) -> Array:
        """Return the polynomials, highest degree first, the affine ones last, (…, p, q)."""
        return evaluate_polynomials(self.box.to_local(points), self.degree)

    def column_gradients(self, points: Array) -> Array:
        """Return the derivatives of the columns by each coordinate of the points, (…, p, d, q)."""
        return self.box.chain_gradients(
            evaluate_polynomial_gradients(self.box.to_local(points), self.degree)
        )

    @cached_property
    def energy_matrix(self) -> Array:
        """(…, q, q): the mean bending over the box, in the shape's own units."""
        stretch = (self.scale[..., None] / self.half) ** 2  # (∂u/∂x̂)²
        means = _compute_second_derivative_means(stretch.shape[-1], self.degree)
        total: Array | float = 0.0
        for (a, b), term in means.items():
            total = total + (stretch[..., a] * stretch[..., b])[..., None, None] * term
        return np.asarray(total)


@dataclass(frozen=True, repr=False)
class Polynomial(WarpFamily[PolynomialBasis]):
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

    def bases(self, geometry: Geometry) -> PolynomialBasis:
        """Make the bases of n shapes, stacked."""
        require_degree(self.degree, "degree", "Polynomial", 1, 4)
        require_number(self.smoothing, "smoothing", "Polynomial")
        box = make_principal_box(geometry, padding=0.0)
        # a flat shape has no thickness to measure in: rounding must not look like one
        half = np.where(geometry.extents > 0.0, box.half, box.half.max(axis=-1, keepdims=True))
        return PolynomialBasis(
            int(self.degree),
            middle=box.middle,
            axes=box.axes,
            half=half,
            centre=geometry.centre,
            scale=geometry.size,
            stiffness=self.smoothing * geometry.mass,
        )


@cache
def _compute_second_derivative_means(dim: int, degree: int) -> dict[tuple[int, int], Array]:
    """Compute the (q, q) means over [−1, 1]^d of ∂_ab q_e ∂_ab q_f for axes a ≤ b.

    The products are of degree 2 (degree − 2) at most, so ``degree`` Gauss nodes are exact.
    """
    ticks, shares = leggauss(degree)
    nodes = np.array(list(product(ticks, repeat=dim)))
    weights = np.array(list(product(shares / 2.0, repeat=dim))).prod(axis=1)
    means = {}
    for a, b in combinations_with_replacement(range(dim), 2):
        orders = np.eye(dim, dtype=int)[a] + np.eye(dim, dtype=int)[b]
        second = evaluate_polynomials(nodes, degree, orders.tolist())
        means[a, b] = (1.0 if a == b else 2.0) * (second.T * weights) @ second
    return means


@cache
def make_exponents(dim: int, degree: int) -> Index:
    """Make all exponents (q, d) of total degree at most ``degree``, constant last, affine before.

    Highest degree first, so that the last d + 1 are the affine ones in the order [u 1].
    """
    table = [e for e in product(range(degree + 1), repeat=dim) if sum(e) <= degree]
    ordered = sorted(table, key=lambda e: (-sum(e), [-k for k in e]))
    return np.array(ordered, dtype=np.intp).reshape(len(ordered), dim)


def evaluate_polynomials(u: Array, degree: int, orders: Sequence[int] | None = None) -> Array:
    """Evaluate q_e (…, p, q) of points (…, p, d), or its derivatives of these ``orders``."""
    dim = u.shape[-1]
    columns: Array | float = 1.0
    for axis, order in enumerate(orders or (0,) * dim):
        table = legvander(u[..., axis], degree) @ _compute_derivative(degree, order)
        columns = columns * table[..., make_exponents(dim, degree)[:, axis]]
    return np.asarray(columns)


def evaluate_polynomial_gradients(u: Array, degree: int) -> Array:
    """Evaluate the derivative of each q_e by each coordinate of points (…, p, d), (…, p, d, q)."""
    units = np.eye(u.shape[-1], dtype=int).tolist()
    return np.stack([evaluate_polynomials(u, degree, unit) for unit in units], axis=-2)


@cache
def _compute_derivative(degree: int, order: int) -> Array:
    """Compute the matrix whose column k holds the Legendre coefficients of P_k^(order)."""
    matrix = np.zeros((degree + 1, degree + 1))
    for k, unit in enumerate(np.eye(degree + 1)):
        coefficients = legder(unit, order)
        matrix[: len(coefficients), k] = coefficients
    return matrix
