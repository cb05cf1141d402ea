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

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
from scipy.sparse import csr_array

from defgpa._arrays import Array, Index
from defgpa.frames import Frames
from defgpa.warps._box import BoxedBasis, principal_box
from defgpa.warps._family import Family, PointsPerAxis, per_axis_counts, require_not_negative
from defgpa.warps._lattice import (
    BendingEnergy,
    Cells,
    LatticeEnergy,
    cells_of,
    energy_matrix,
    lattice_points,
    local_splines,
    spread,
)


@dataclass(frozen=True, eq=False)
class _Place:
    """Where points lie in a lattice, and which of its functions they touch."""

    u: Array  # (…, p, d): from 0 to the number of cells on each axis
    cell: Index  # (…, p, d)
    cells: Cells

    @property
    def dim(self) -> int:
        """Number of axes."""
        return len(self.cells)

    def nearby(self, axis: int, order: int) -> Array:
        """(…, p, 4): the functions of the cell on one axis, or their slopes."""
        return local_splines(self.u[..., axis], self.cell[..., axis], self.cells[axis], order)

    def everywhere(self, axis: int, order: int) -> Array:
        """(…, p, K): all functions of one axis, or their slopes."""
        return spread(self.cell[..., axis], self.nearby(axis, order), self.cells[axis] + 3)

    def sparse(self, entries: Array) -> csr_array:
        """(p, l) from the 4^d entries of each row, which lie alike beside its first function."""
        counts = tuple(count + 3 for count in self.cells)
        first = np.ravel_multi_index(tuple(self.cell.T), counts).astype(np.int32)
        columns = first[:, None] + _neighbours(counts).astype(np.int32)
        starts = np.arange(0, entries.size + 1, entries.shape[1], dtype=np.int32)
        shape = (len(entries), int(np.prod(counts)))
        return csr_array((entries.ravel(), columns.ravel(), starts), shape=shape)


@dataclass(frozen=True, eq=False)
class FreeFormBasis(BoxedBasis):
    """The functions of the lattice of one shape, or of a stack of shapes."""

    cells: Cells
    energy: LatticeEnergy
    middle: Array  # (…, d): of the box
    axes: Array  # (…, d, d): its directions, as columns
    half: Array  # (…, d): half its sides
    centre: Array  # (…, d): centroid
    scale: Array  # (…,): RMS radius
    stiffness: Array  # (…,): τ p

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
        place = self._place(points)
        return _tensor([place.everywhere(axis, 0) for axis in range(place.dim)])

    def column_gradients(self, points: Array) -> Array:
        """(…, p, d, l)."""
        return self.box.by_point(self._by_local(self._place(points).everywhere))

    def sparse_columns(self, points: Array) -> csr_array:
        """(p, l): the same columns for one shape (p, d), 4^d entries a row."""
        place = self._place(points)
        return place.sparse(_tensor([place.nearby(axis, 0) for axis in range(place.dim)]))

    def sparse_column_gradients(self, points: Array) -> tuple[csr_array, ...]:
        """For one shape (p, d), and each coordinate: (p, l), 4^d entries a row."""
        place = self._place(points)
        by_point = self.box.by_point(self._by_local(place.nearby))
        return tuple(place.sparse(by_point[:, axis]) for axis in range(place.dim))

    @cached_property
    def energy_matrix(self) -> Array:
        """(…, l, l): the energy in the shape's own units."""
        spacing = 2.0 * self.box.half / self.scale[..., None] / np.array(self.cells)
        return energy_matrix(self.energy, self.cells, spacing)

    def penalty(self) -> Array:
        """(…, l, l): τ p times the energy."""
        return self.stiffness[..., None, None] * self.energy_matrix

    def _place(self, points: Array) -> _Place:
        u = 0.5 * (self.box.local(points) + 1.0) * np.array(self.cells)
        cell = np.stack(
            [cells_of(u[..., axis], count) for axis, count in enumerate(self.cells)], axis=-1
        )
        return _Place(u, cell, self.cells)

    def _by_local(self, splines: Callable[[int, int], Array]) -> Array:
        """(…, p, d, …): products of splines, differentiated by each coordinate in the box."""
        axes = range(len(self.cells))
        slopes = [
            _tensor([splines(b, int(a == b)) for b in axes]) * (0.5 * self.cells[a]) for a in axes
        ]
        return np.stack(slopes, axis=-2)


@dataclass(frozen=True, repr=False)
class FreeForm(Family[FreeFormBasis]):
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

    def bases(self, frames: Frames) -> FreeFormBasis:
        """The bases of n shapes, stacked."""
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
    """(…, p, Π K): the products of one entry of each factor (…, p, K), the last axis fastest.

    From the last to the first, so that the inner loops are long.
    """
    return reduce(lambda right, left: _outer(left, right), reversed(factors))


def _outer(left: Array, right: Array) -> Array:
    product = left[..., :, None] * right[..., None, :]
    return product.reshape(*product.shape[:-2], -1)


def _neighbours(counts: tuple[int, ...]) -> Index:
    """(4^d,): the places of the functions of a cell, relative to the first of them."""
    corner = np.indices((4,) * len(counts)).reshape(len(counts), -1)
    return np.asarray(np.ravel_multi_index(tuple(corner), counts))
