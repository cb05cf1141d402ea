"""What to look at before trusting an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.warps import Warp


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Facts about a solve.

    Attributes
    ----------
    spectrum : array
        The smallest eigenvalues of the cost (with the centring term), ascending: the first d
        belong to the axes of the reference.
    gap : float
        (σ_{d+1} − σ_d) / σ_{d+1}: near zero, another reference would do as well as this one.
    cohesion : float
        What affine maps of the reference, shape by shape, leave of the cheapest direction beyond
        it: 1 in a sound set, near 0 where parts of it hang together as by a hinge.
    translation_cost : float
        ‖P1‖: zero for warps with free translations.
    votes : array (n,)
        +1: same side as the reference; −1: mirrored; 0: fits both sides about as well.
    mirrored : tuple of str
        Names of the shapes that are mirrored against the majority.
    condition : array (n,)
        Estimated condition of each shape's regression.
    free_directions : array (n,)
        Directions of each warp that neither data nor penalty determine.
    views : array (m,)
        How many shapes see each landmark.
    lone_landmarks : tuple of str
        Landmarks seen in one shape only: left out of the solve, placed by that shape's warp.
    method, storage : str
        The eigen-solver and how the features were held.
    residuals : array (d,)
        ‖Px − σx‖ of each axis.
    products : int
        Products with P that an iterative solver took.
    settled : bool
        Whether the residuals reached their tolerance.
    warnings : tuple of str
        What the solve warned of.
    """

    spectrum: Array
    gap: float
    translation_cost: float
    votes: Index
    mirrored: tuple[str, ...]
    condition: Array
    free_directions: Index
    views: Index
    lone_landmarks: tuple[str, ...]
    method: str
    storage: str
    residuals: Array
    products: int
    settled: bool
    warnings: tuple[str, ...]
    warps: Sequence[Warp] = field(repr=False)
    points: Array = field(repr=False)
    cohesion: float = 1.0

    @cached_property
    def folds(self) -> Index:
        """(n,): visible landmarks of each shape that lie where its warp folds over."""
        return np.array(
            [
                int(warp.foldovers(own[~np.isnan(own[:, 0])]).sum())
                for warp, own in zip(self.warps, self.points, strict=True)
            ]
        )
