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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from defgpa.arrays import Array, Index
from defgpa.geometry import Geometry
from defgpa.warps.base import SparseBasis, WarpFamily
from defgpa.warps.box import BoxedBasis, make_principal_box
from defgpa.warps.control_points import PointsPerAxis, check_points_per_axis
from defgpa.warps.lattice import (
    BendingEnergy,
    Cells,
    LatticeEnergy,
    build_energy_matrix,
    evaluate_splines,
    find_cells,
    make_lattice_points,
)
from defgpa.warps.parameters import require_number


@dataclass(frozen=True, eq=False)
class FreeFormBasis(BoxedBasis, SparseBasis):
    """The functions of the lattice of one shape, or of a stack of shapes."""

    cells: Cells
    energy: LatticeEnergy

    @property
    def counts(self) -> tuple[int, ...]:
        """Lattice points along each axis."""
        return tuple(count + 3 for count in self.cells)

    @property
    def control_points(self) -> Array:
        """(…, l, d): the lattice points; as weights they give the identity."""
        ticks = [2.0 * make_lattice_points(c) / c - 1.0 for c in self.cells]
        local = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, len(ticks))
        return self.box.to_world(local)

    def columns(self, points: Array) -> Array:
        """Return the functions of the lattice at points (…, p, d), (…, p, l)."""
        u, cell = self._place(points)
        return self._expand_entries(cell, self._evaluate_nearby(u, cell))

    def column_gradients(self, points: Array) -> Array:
        """Return the derivatives of the columns by each coordinate of the points, (…, p, d, l)."""
        u, cell = self._place(points)
        return self._expand_entries(cell[..., None, :], self._evaluate_nearby_slopes(u, cell))

    def sparse_columns(self, points: Array) -> csr_array:
        """Return the columns of one shape (p, d) in compressed rows, 4^d entries each, (p, l)."""
        u, cell = self._place(points)
        return self._build_sparse(cell, self._evaluate_nearby(u, cell))

    def sparse_column_gradients(self, points: Array) -> tuple[csr_array, ...]:
        """Return the slopes (p, l) of the columns of one shape (p, d) by each coordinate."""
        u, cell = self._place(points)
        slopes = self._evaluate_nearby_slopes(u, cell)
        return tuple(self._build_sparse(cell, slopes[:, axis]) for axis in range(len(self.cells)))

    @cached_property
    def energy_matrix(self) -> Array:
        """(…, l, l): the energy in the shape's own units."""
        spacing = 2.0 * self.box.half / self.scale[..., None] / np.array(self.cells)
        return build_energy_matrix(self.energy, self.cells, spacing)

    def _place(self, points: Array) -> tuple[Array, Index]:
        """Return where points lie in the lattice, in units of cells, and the cell, (…, p, d)."""
        u = 0.5 * (self.box.to_local(points) + 1.0) * np.array(self.cells)
        cell = [find_cells(u[..., axis], count) for axis, count in enumerate(self.cells)]
        return u, np.stack(cell, axis=-1)

    def _evaluate_nearby(self, u: Array, cell: Index, by: int | None = None) -> Array:
        """Evaluate the functions of each cell, or their slopes along an axis, (…, p, 4^d)."""
        axes = enumerate(self.cells)
        return _multiply_tensors(
            [evaluate_splines(u[..., a], cell[..., a], count, int(a == by)) for a, count in axes]
        )

    def _evaluate_nearby_slopes(self, u: Array, cell: Index) -> Array:
        """Evaluate the derivatives of the functions of the cell by the point, (…, p, d, 4^d)."""
        slopes = [
            self._evaluate_nearby(u, cell, a) * (0.5 * count) for a, count in enumerate(self.cells)
        ]
        return self.box.chain_gradients(np.stack(slopes, axis=-2))

    def _find_functions(self, cell: Index) -> NDArray[np.int32]:
        """Find the numbers of the functions of a cell (…, d), alike beside the first, (…, 4^d)."""
        corner = np.indices((4,) * len(self.cells)).reshape(len(self.cells), -1)
        offsets = np.ravel_multi_index(tuple(corner), self.counts).astype(np.int32)
        first = np.ravel_multi_index(tuple(np.moveaxis(cell, -1, 0)), self.counts)
        return first.astype(np.int32)[..., None] + offsets

    def _expand_entries(self, cell: Index, entries: Array) -> Array:
        """Put the entries (…, 4^d) in their places among all functions, (…, l)."""
        expanded = np.zeros((*entries.shape[:-1], int(np.prod(self.counts))))
        starts = np.arange(0, expanded.size, expanded.shape[-1]).reshape(*entries.shape[:-1], 1)
        np.put(expanded, starts + self._find_functions(cell), entries)
        return expanded

    def _build_sparse(self, cell: Index, entries: Array) -> csr_array:
        """Build a sparse matrix (p, l) in compressed rows from the entries (p, 4^d)."""
        starts = np.arange(0, entries.size + 1, entries.shape[1], dtype=np.int32)
        shape = (len(entries), int(np.prod(self.counts)))
        return csr_array((entries.ravel(), self._find_functions(cell).ravel(), starts), shape=shape)


@dataclass(frozen=True, repr=False)
class FreeForm(WarpFamily[FreeFormBasis]):
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

    def bases(self, geometry: Geometry) -> FreeFormBasis:
        """Make the bases of n shapes, stacked."""
        require_number(self.smoothing, "smoothing", "FreeForm")
        require_number(self.padding, "padding", "FreeForm")
        box = make_principal_box(geometry, self.padding)
        return FreeFormBasis(
            self._count_cells(geometry.points.shape[-1]),
            self.energy,
            **vars(box),
            centre=geometry.centre,
            scale=geometry.size,
            stiffness=self.smoothing * geometry.mass,
        )

    def _count_cells(self, dim: int) -> Cells:
        counts = check_points_per_axis(self.points_per_axis, dim, "FreeForm")
        if min(counts) < 4:
            raise ValueError(
                "The 'points_per_axis' parameter of FreeForm must be at least 4 on every axis, "
                f"which make one cell of cubic splines. Got {self.points_per_axis!r} instead."
            )
        return tuple(count - 3 for count in counts)


def _multiply_tensors(factors: list[Array]) -> Array:
    """Compute products of one entry of each factor (…, p, K), last axis fastest, (…, p, Π K).

    From the last to the first, so that the inner loops are long.
    """
    *others, product = factors
    for left in reversed(others):
        outer = left[..., :, None] * product[..., None, :]
        product = outer.reshape(*outer.shape[:-2], -1)
    return product
