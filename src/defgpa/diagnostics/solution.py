"""Diagnostics of a solution: figures to look at before trusting an alignment."""

from __future__ import annotations

from dataclasses import dataclass

from defgpa.arrays import Array, Index


@dataclass(frozen=True, eq=False)
class SpectralDiagnostics:
    """Facts about a deformable solve.

    Attributes
    ----------
    spectrum : array (k + 1,)
        The smallest eigenvalues of the cost (with the centring term), ascending. The first k
        belong to the axes that the reference is made of; usually k = d.
    gap : float
        (σ_{k+1} − σ_k) / σ_{k+1}: near zero, another reference would do as well as this one.
    cohesion : float
        How much of the cheapest direction beyond the reference is a deformation: 1 in a sound
        set, near 0 where it moves parts that hang together as by a hinge.
    translation_cost : float
        ‖P1‖: zero for warps with free translations.
    offset, extent : float
        Distance of the reference from the origin, and its largest coordinate.
    votes : array (n,)
        +1: same side as the reference; −1: mirrored; 0: fits both sides about as well.
    condition : array (n,)
        Estimated condition of each shape's regression.
    free_directions : array (n,)
        Directions of each warp that neither data nor penalty determine.
    residuals : array (k,)
        ‖Px − σx‖ of each axis.
    converged : bool
        Whether the residuals reached their tolerance.
    proportions : str
        Where Λ comes from: "rigid", "prior" or "given".
    excess : float
        Relative excess of the cost tr SᵀPS over the optimum for the same Λ.
    similarity_residual : float
        What the best similarities of the shapes onto the reference leave, relative to its size.
    looseness : float
        Standard error of the reference along the direction that similarities determine least,
        relative to its size: large where rigidity cannot hold parts together.
    rounds : int
        Of the descent for the proportions; 0 where there was none.
    proportions_converged, proportions_determined : bool
        Whether that descent ended, and whether the shapes tell all proportions.
    n_dims : int
        d; more axes than that were free where k > d, and rigidity chose among them.
    method, storage : str
        The eigen-solver and how the features were held.
    n_products : int
        Products with P that an iterative solver took; 0 for a dense one.
    n_agreed_axes : int
        Axes beyond d that cost about as much as the dearest of d and that the shapes agree on: the
        reference takes part in them, so that a thin direction is not lost to a bend.
    """

    spectrum: Array
    gap: float
    cohesion: float
    translation_cost: float
    offset: float
    extent: float
    votes: Index
    condition: Array
    free_directions: Index
    residuals: Array
    converged: bool
    excess: float
    similarity_residual: float
    looseness: float
    proportions_converged: bool
    proportions_determined: bool
    proportions: str
    n_dims: int
    rounds: int
    method: str
    storage: str
    n_products: int
    n_agreed_axes: int = 0

    @property
    def n_axes(self) -> int:
        """The number of axes that the reference is made of, k."""
        return int(self.residuals.shape[-1])

    def __repr__(self) -> str:
        return (
            f"SpectralDiagnostics(gap={self.gap:.3g}, cohesion={self.cohesion:.3g}, "
            f"converged={self.converged}, method={self.method!r}, storage={self.storage!r})"
        )


@dataclass(frozen=True, eq=False)
class DescentDiagnostics:
    """Facts about a fit by descent: rigid, affine or elastic.

    Attributes
    ----------
    votes : array (n,)
        +1: same side as the reference; −1: mirrored; 0: fits both sides about as well.
    condition : array (n,)
        Condition of the linear part of each shape's map.
    iterations : int
        Steps of the descent; 0 where the closed form is the answer.
    gradient : float
        What is left of the gradient, relative to its terms.
    converged : bool
        Whether it ended on flat ground.
    """

    votes: Index
    condition: Array
    iterations: int
    gradient: float
    converged: bool


Diagnostics = SpectralDiagnostics | DescentDiagnostics
