r"""Radial kernels φ, as functions of s = (r / width)².

A kernel of order 0 is positive definite: K = φ(‖c_i − c_j‖) is a norm of any weights. One of order
k is conditionally so: of weights w that no polynomial of degree below k sees, Qᵀw = 0, which asks
for a polynomial part of at least degree k − 1 beside it. All are signed so that wᵀKw ≥ 0.

    Gaussian               exp(−s)                              order 0
    InverseMultiquadric    1 / √(1 + s)                         order 0
    WendlandC2             (1 − r)⁴ (4r + 1), 0 beyond r = 1       order 0
    WendlandC4             (1 − r)⁶ (35r² + 18r + 3) / 3, likewise  order 0
    Multiquadric           −√(1 + s)                            order 1
    Polyharmonic(k)        ± r^k (k odd), ± r^k log r (k even)    order ⌊k/2⌋ + 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from defgpa.arrays import Array
from defgpa.warps.distances import TINY, compute_squared_distances
from defgpa.warps.parameters import require_degree, require_number


@dataclass(frozen=True)
class DistanceQuantile:
    """A width taken from the centres: this quantile of their pairwise distances.

    Parameters
    ----------
    fraction : float
        Which quantile, above 0 and at most 1.
    times : float
        What it is multiplied with: √2 where the quantile is meant for the σ of exp(−r²/2σ²).

    Examples
    --------
    >>> import numpy as np
    >>> float(DistanceQuantile(0.5).of(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])))
    4.0
    """

    fraction: float = 0.5
    times: float = 1.0

    def of(self, centres: Array) -> Array:
        """Compute the quantile (…,) of the distances within each set of centres (…, k, d)."""
        require_number(
            self.fraction,
            "fraction",
            "DistanceQuantile",
            "a number above 0 and at most 1",
            lambda number: 0.0 < number <= 1.0,
        )
        require_number(
            self.times,
            "times",
            "DistanceQuantile",
            "a positive number",
            lambda number: 0.0 < number < np.inf,
        )
        rows, columns = np.triu_indices(centres.shape[-2], 1)
        if not len(rows):
            return np.ones(centres.shape[:-2])  # a single centre: the shape's own unit
        squared = compute_squared_distances(centres, centres)[..., rows, columns]
        return np.asarray(self.times * np.quantile(np.sqrt(squared), self.fraction, axis=-1))


Width = float | DistanceQuantile


class Kernel(Protocol):
    """A radial function of s = (r / width)²."""

    @property
    def order(self) -> int:
        """0 for a positive definite kernel, k for a conditionally positive definite one."""
        ...

    def widths(self, centres: Array) -> Array:
        """Return the width (…,) for each set of centres (…, k, d), in the units of these."""
        ...

    def values(self, s: Array) -> Array:
        """Return φ."""
        ...

    def slopes(self, s: Array) -> Array:
        """Return dφ/ds, finite everywhere."""
        ...


@dataclass(frozen=True)
class _Scaled:
    """A kernel with a width."""

    width: Width = DistanceQuantile(0.5)

    order = 0

    def widths(self, centres: Array) -> Array:
        """Return the width (…,) as given, or by the rule."""
        if isinstance(self.width, DistanceQuantile):
            widths = self.width.of(centres)
            return np.where(widths > 0.0, widths, 1.0)  # coincident centres: the shape's own unit
        require_number(
            self.width,
            "width",
            type(self).__name__,
            "a positive number (in units of the shape's RMS radius) or a DistanceQuantile",
            lambda number: 0.0 < number < np.inf,
        )
        return np.full(centres.shape[:-2], float(self.width))


@dataclass(frozen=True)
class Gaussian(_Scaled):
    """Gaussian, exp(−(r / width)²): very smooth, decays quickly.

    Parameters
    ----------
    width : float or DistanceQuantile
        In units of the shape's RMS radius, or a quantile of the distances between the centres.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian().values(np.array([0.0, 1.0])).round(3).tolist()
    [1.0, 0.368]
    """

    def values(self, s: Array) -> Array:
        """Return exp(−s)."""
        return np.exp(-s)

    def slopes(self, s: Array) -> Array:
        """Return −exp(−s)."""
        return -np.exp(-s)


@dataclass(frozen=True)
class Multiquadric(_Scaled):
    """−√(1 + (r / width)²): grows like a cone with a rounded tip.

    Parameters
    ----------
    width : float or DistanceQuantile
        In units of the shape's RMS radius, or a quantile of the distances between the centres.

    Examples
    --------
    >>> import numpy as np
    >>> Multiquadric().values(np.array([0.0, 3.0])).tolist()
    [-1.0, -2.0]
    """

    order = 1

    def values(self, s: Array) -> Array:
        """Return −√(1 + s)."""
        return -np.sqrt(1.0 + s)

    def slopes(self, s: Array) -> Array:
        """Return −1 / (2 √(1 + s))."""
        return -0.5 / np.sqrt(1.0 + s)


@dataclass(frozen=True)
class InverseMultiquadric(_Scaled):
    """1 / √(1 + (r / width)²): smooth, forgets slowly.

    Parameters
    ----------
    width : float or DistanceQuantile
        In units of the shape's RMS radius, or a quantile of the distances between the centres.

    Examples
    --------
    >>> import numpy as np
    >>> InverseMultiquadric().values(np.array([0.0, 3.0])).tolist()
    [1.0, 0.5]
    """

    def values(self, s: Array) -> Array:
        """Return 1 / √(1 + s)."""
        return 1.0 / np.sqrt(1.0 + s)

    def slopes(self, s: Array) -> Array:
        """Return −(1 + s)^(−3/2) / 2."""
        return -0.5 * (1.0 + s) ** -1.5


@dataclass(frozen=True)
class WendlandC2(_Scaled):
    """(1 − r)⁴ (4r + 1) with r in widths, zero beyond: compact, twice differentiable.

    Parameters
    ----------
    width : float or DistanceQuantile
        The radius of the support, in units of the shape's RMS radius, or a quantile of the
        distances between the centres.

    Examples
    --------
    >>> import numpy as np
    >>> WendlandC2().values(np.array([0.0, 0.25, 1.0])).tolist()
    [1.0, 0.1875, 0.0]
    """

    width: Width = DistanceQuantile(1.0)

    def values(self, s: Array) -> Array:
        """Return (1 − r)₊⁴ (4r + 1)."""
        r = np.sqrt(s)
        return np.maximum(1.0 - r, 0.0) ** 4 * (4.0 * r + 1.0)

    def slopes(self, s: Array) -> Array:
        """Return −10 (1 − r)₊³."""
        return -10.0 * np.maximum(1.0 - np.sqrt(s), 0.0) ** 3


@dataclass(frozen=True)
class WendlandC4(_Scaled):
    """(1 − r)⁶ (35r² + 18r + 3) / 3 with r in widths, zero beyond: compact, four derivatives.

    Parameters
    ----------
    width : float or DistanceQuantile
        The radius of the support, in units of the shape's RMS radius, or a quantile of the
        distances between the centres.

    Examples
    --------
    >>> import numpy as np
    >>> WendlandC4().values(np.array([0.0, 1.0])).tolist()
    [1.0, 0.0]
    """

    width: Width = DistanceQuantile(1.0)

    def values(self, s: Array) -> Array:
        """Return (1 − r)₊⁶ (35r² + 18r + 3) / 3."""
        r = np.sqrt(s)
        return np.maximum(1.0 - r, 0.0) ** 6 * (35.0 * s + 18.0 * r + 3.0) / 3.0

    def slopes(self, s: Array) -> Array:
        """Return −28/3 (1 − r)₊⁵ (5r + 1)."""
        r = np.sqrt(s)
        return -28.0 / 3.0 * np.maximum(1.0 - r, 0.0) ** 5 * (5.0 * r + 1.0)


@dataclass(frozen=True)
class Polyharmonic:
    """Polyharmonic splines, which have no width: r^k for odd k, r^k log r for even k.

    Parameters
    ----------
    exponent : int
        k, from 1 to 5. The thin-plate spline is 2 in 2-D and 1 in 3-D.

    Notes
    -----
    In 2-D ``Polyharmonic(2)`` with smoothing 4πτ, in 3-D ``Polyharmonic(1)`` with 8πτ, both with
    an affine part, are ``ThinPlateSpline`` with smoothing τ.

    Examples
    --------
    >>> import numpy as np
    >>> Polyharmonic(3).values(np.array([0.0, 4.0])).tolist()
    [0.0, 8.0]
    """

    exponent: int = 2

    @property
    def order(self) -> int:
        """⌊k/2⌋ + 1."""
        require_degree(self.exponent, "exponent", "Polyharmonic", 1, 5)
        return int(self.exponent) // 2 + 1

    def widths(self, centres: Array) -> Array:
        """Return 1: another unit of length only multiplies the norm."""
        return np.ones(centres.shape[:-2])

    @property
    def _sign(self) -> float:
        """(−1)^order: what makes wᵀKw ≥ 0."""
        return -1.0 if self.order % 2 else 1.0

    @property
    def _is_logarithmic(self) -> bool:
        return self.exponent % 2 == 0

    def values(self, s: Array) -> Array:
        """Return ± s^(k/2), times log √s for even k."""
        power = self._sign * s ** (self.exponent / 2)
        if not self._is_logarithmic:
            return np.asarray(power)
        return np.asarray(power * 0.5 * np.log(np.maximum(s, TINY)))

    def slopes(self, s: Array) -> Array:
        """Return ± (k/2) s^(k/2 − 1); for even k ± ½ s^(k/2 − 1) ((k/2) log s + 1)."""
        half = self.exponent / 2
        if self.exponent == 1:
            # the cone's tip: zero, the mean of the one-sided slopes
            power = np.where(s > 0.0, np.maximum(s, TINY) ** -0.5, 0.0)
        else:
            power = s ** (half - 1.0)
        if not self._is_logarithmic:
            return np.asarray(self._sign * half * power)
        logarithm = np.log(np.maximum(s, TINY))
        return np.asarray(self._sign * 0.5 * power * (half * logarithm + 1.0))
