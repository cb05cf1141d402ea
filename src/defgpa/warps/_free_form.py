r"""Free-form deformations: a lattice of cubic B-splines over the box of the shape.

    warp(x) = Σ_ijk b_i(u) b_j(v) b_k(w) · weight_ijk

u, v, w the coordinates of x in the cells of the lattice, which fills the padded principal box.
The functions sum to one, so translations are free; with every energy here all affine maps are.
Each point touches 4^d functions: warps are evaluated through them alone, and
``sparse_columns`` hands them to the solve.

    R = τ · p · energy

for p visible points; the energy is an exact integral, in the shape's own units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from defgpa._arrays import Array, Index, Mask
from defgpa.warps._box import Box, principal_box
from defgpa.warps._control_points import PointsPerAxis, per_axis_counts
from defgpa.warps._cubic_splines import lattice_points, local_splines, spread
from defgpa.warps._frames import Frames, frames_of
from defgpa.warps._lattice_energies import BendingEnergy, Cells, LatticeEnergy, energy_matrix
from defgpa.warps._parameters import require_not_negative
from defgpa.warps._swap import swapped
from defgpa.warps._warp import Warp


@dataclass(frozen=True, eq=False)
class FreeFormBasis:
    """The functions of the lattice of one shape, or of a stack of shapes."""

    cells: Cells
    energy: LatticeEnergy
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

    @property
    def counts(self) -> tuple[int, ...]:
        """Lattice points along each axis."""
        return tuple(count + 3 for count in self.cells)

    @property
    def control_points(self) -> Array:
        """(…, l, d): the lattice points; as weights they give the identity."""
        ticks = [2.0 * lattice_points(c) / c - 1.0 for c in self.cells]
        local = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, len(ticks))
        return self.box.world(local)

    def columns(self, points: Array) -> Array:
        """(…, p, l)."""
        return _tensor([values for values, _ in self._spread_splines(points)])

    features = columns

    def column_gradients(self, points: Array) -> Array:
        """(…, p, d, l)."""
        splines = self._spread_splines(points)
        by_local = [
            _tensor([pair[int(axis == b)] for b, pair in enumerate(splines)])
            * (0.5 * self.cells[axis])
            for axis in range(len(splines))
        ]
        return self.box.by_point(np.stack(by_local, axis=-2))

    def sparse_columns(self, points: Array) -> csr_array:
        """(p, l): the same columns for one shape (p, d), 4^d entries a row."""
        place, splines = self._local_splines(points)
        return self._sparse(place, _tensor([values for values, _ in splines]))

    def sparse_column_gradients(self, points: Array) -> tuple[csr_array, ...]:
        """For one shape (p, d), and each coordinate: (p, l), 4^d entries a row."""
        place, splines = self._local_splines(points)
        by_local = [
            _tensor([pair[int(axis == b)] for b, pair in enumerate(splines)])
            * (0.5 * self.cells[axis])
            for axis in range(len(splines))
        ]
        by_point = self.box.by_point(np.stack(by_local, axis=-2))
        return tuple(self._sparse(place, by_point[:, axis]) for axis in range(len(splines)))

    @cached_property
    def energy_matrix(self) -> Array:
        """(…, l, l): the energy in the shape's own units."""
        spacing = 2.0 * self.box.half / self.scale[..., None] / np.array(self.cells)
        return energy_matrix(self.energy, self.cells, spacing)

    def penalty(self) -> Array:
        """(…, l, l): τ p times the energy."""
        return self.stiffness[..., None, None] * self.energy_matrix

    def inverted(self, warp: Warp) -> Warp:
        """An approximate inverse: the spline that takes the images of a grid in the box back."""
        return swapped(warp, self.box)

    def _in_cells(self, points: Array) -> Array:
        """(…, p, d): from 0 to the number of cells on each axis."""
        return 0.5 * (self.box.local(points) + 1.0) * np.array(self.cells)

    def _spread_splines(self, points: Array) -> list[tuple[Array, Array]]:
        """On each axis the values and slopes (…, p, K) of all its functions."""
        u = self._in_cells(points)
        splines = []
        for axis, (cells, count) in enumerate(zip(self.cells, self.counts, strict=True)):
            cell, values, slopes = local_splines(u[..., axis], cells)
            splines.append((spread(cell, values, count), spread(cell, slopes, count)))
        return splines

    def _local_splines(self, points: Array) -> tuple[Index, list[tuple[Array, Array]]]:
        """The first function (p,) each point touches; on each axis 4 values and 4 slopes."""
        u = self._in_cells(points)
        found = [local_splines(u[..., axis], cells) for axis, cells in enumerate(self.cells)]
        place = np.ravel_multi_index(tuple(cell for cell, _, _ in found), self.counts)
        return place, [(values, slopes) for _, values, slopes in found]

    def _sparse(self, place: Index, local: Array) -> csr_array:
        """(p, l) from the 4^d entries of each row; they lie alike beside its first function."""
        p, width = local.shape
        columns = (place[:, None] + _neighbours(self.counts)).astype(np.int32)
        starts = np.arange(0, p * width + 1, width)
        shape = (p, int(np.prod(self.counts)))
        return csr_array((local.ravel(), columns.ravel(), starts), shape=shape)

    def __getitem__(self, shape: Any) -> FreeFormBasis:
        return FreeFormBasis(
            self.cells,
            self.energy,
            self.middle[shape],
            self.axes[shape],
            self.half[shape],
            self.centre[shape],
            self.scale[shape],
            self.stiffness[shape],
        )


@dataclass(frozen=True)
class FreeForm:
    """Free-form deformations: cubic B-splines on a lattice over the shape.

    Parameters
    ----------
    points_per_axis : int or sequence of d int
        Lattice points along each principal axis of the shape, the longest axis first; at least 4,
        which make one cell. K points make K − 3 cells, so a lattice of 2K − 3 refines one of K.
    padding : float
        How far the lattice reaches beyond the visible points at each end, in sides of their box.
    energy : LatticeEnergy
        ``BendingEnergy()``, ``Membrane()`` or ``Laplacian()``.
    smoothing : float
        τ, relative and dimensionless: a shape with p visible points is charged τ p times the energy
        of its warp, averaged over the lattice in the shape's own units.

    Notes
    -----
    Beyond the lattice the splines go on along their tangents: warped grids have no holes, and
    affine maps stay affine.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> basis = FreeForm(points_per_axis=6).basis(points)
    >>> basis.features(points).shape
    (40, 36)
    >>> bool(np.allclose(basis.features(points).sum(axis=1), 1))
    True
    """

    points_per_axis: PointsPerAxis = 6
    padding: float = 0.1
    energy: LatticeEnergy = field(default_factory=BendingEnergy)
    smoothing: float = 1e-3

    def basis(self, points: Array) -> FreeFormBasis:
        """The lattice of one shape (p, d)."""
        return self._bases(frames_of(np.asarray(points, dtype=np.float64)))[0]

    def bases(self, points: Array, visible: Mask) -> FreeFormBasis:
        """The bases of n shapes (n, m, d), stacked."""
        return self._bases(Frames(points, visible))

    def _bases(self, frames: Frames) -> FreeFormBasis:
        require_not_negative(self.smoothing, "smoothing", "FreeForm")
        require_not_negative(self.padding, "padding", "FreeForm")
        box = principal_box(frames, self.padding)
        return FreeFormBasis(
            self._cells(frames.points.shape[-1]),
            self.energy,
            box.middle,
            box.axes,
            box.half,
            frames.centre,
            frames.size,
            self.smoothing * frames.count,
        )

    def _cells(self, dim: int) -> Cells:
        counts = per_axis_counts(self.points_per_axis, dim, "FreeForm")
        if min(counts) < 4:
            raise ValueError(
                "The 'points_per_axis' parameter of FreeForm must be at least 4 on every axis, "
                f"which make one cell of cubic splines. Got {self.points_per_axis!r} instead."
            )
        return tuple(count - 3 for count in counts)


def _tensor(factors: list[Array]) -> Array:
    """(…, p, Π K): the products of one entry of each factor (…, p, K), the last axis fastest."""
    return reduce(_outer, factors)


def _outer(left: Array, right: Array) -> Array:
    product = left[..., :, None] * right[..., None, :]
    return product.reshape(*product.shape[:-2], -1)


def _neighbours(counts: tuple[int, ...]) -> Index:
    """(4^d,): the places of the functions of a cell, relative to the first of them."""
    corner = np.indices((4,) * len(counts)).reshape(len(counts), -1)
    return np.asarray(np.ravel_multi_index(tuple(corner), counts))
