r"""The proportions of the reference: what the eigenproblem leaves open, closed by rigidity.

The cheapest axes X (m × k, usually k = d) fix the reference up to a k × d matrix, S = X A. Of all
of them take the one nearest to the shapes under similarities,

    min over A, s_i, R_i of  Σ_i ‖s_i D̄_i R_i − X̄_i A‖²,       ‖A‖ fixed.

X̄ and D̄ are the rows that a shape sees, centred. All that a shape has to say fits into

    G = X̄ᵀX̄,    C = X̄ᵀD̄,    q = ‖D̄‖²,

so one pass over the landmarks suffices, and the rest is algebra of k × d matrices. The reference
keeps the paper's constraint: with A = V √Λ Wᵀ, S = (XV) √Λ has orthonormal axes XV and SᵀS = Λ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Index, Mask, transposed
from defgpa.procrustes import nearest_on_side, on_both_sides

_CLEARLY = 4.0  # the other side must leave four times the squared error: twice the RMS
_SIDELESS = 1e-12  # twice the smallest singular value over their sum: below, a shape has no side
_SAME = 1e-6  # a relative residual below is rounding: its square is known to 1e-16
_TINY = np.finfo(np.float64).tiny
_SINGULAR = 1e-10  # reciprocal condition of G below which not all axes are seen


@dataclass(frozen=True, eq=False)
class Moments:
    """What the shapes say about the axes; those of parts of the shapes concatenate.

    The leading axes … are those of a stack of sets of shapes.
    """

    axes: Array  # (…, n, k, k), or (…, 1, k, k) where all shapes see the same: G
    cross: Array  # (…, n, k, d): C
    square: Array  # (…, n): q

    def __getitem__(self, part: Mask | Index) -> Moments:
        return Moments(self.axes[part], self.cross[part], self.square[part])


@dataclass(frozen=True, eq=False)
class Sides:
    """Which side of the reference each shape is on."""

    preferred: Index  # (…, n): +1 the side of the axes, −1 the other, 0 if both are the same
    clear: Mask  # (…, n): whether a shape can tell

    @property
    def votes(self) -> Index:
        """(…, n): +1, −1, or 0 for a shape that cannot tell."""
        return np.where(self.clear, self.preferred, 0)

    @property
    def majority(self) -> Index:
        """(…): +1 or −1, the side of most shapes that can tell, or failing those, of most."""
        told, leaning = np.sign(self.votes.sum(axis=-1)), np.sign(self.preferred.sum(axis=-1))
        side = np.where(told != 0, told, leaning)
        return np.where(side == 0, 1, side)


@dataclass(frozen=True, eq=False)
class Proportions:
    """S = X A, and how well similarities of the shapes agree with it."""

    matrix: Array  # (…, k, d): A
    residual: Array  # (…): of the similarity fit, relative to the size of the reference
    rounds: int
    converged: Mask  # (…)
    determined: Mask  # (…): whether the shapes tell all of A


def moments(axes: Array, centred: Array, visible: Mask) -> Moments:
    """Of shapes (…, n, m, d) about their centroids, hidden points zero, and axes (…, m, k).

    The points are about their means, so the axes need not be for C.
    """
    cross = transposed(axes)[..., None, :, :] @ centred
    square = np.einsum("...md,...md->...", centred, centred)
    return Moments(_scatter(axes, visible), cross, square)


def _scatter(axes: Array, visible: Mask) -> Array:
    """G: Σ x xᵀ of the rows each shape sees, about their mean."""
    k = axes.shape[-1]
    if visible.all():
        centred = axes - axes.mean(axis=-2, keepdims=True)
        return (transposed(centred) @ centred)[..., None, :, :]
    weights = visible.astype(np.float64)
    total = (weights @ axes)[..., None, :]
    products = axes[..., :, None] * axes[..., None, :]
    squares = weights @ products.reshape(*axes.shape[:-1], k * k)
    means = transposed(total) @ total / np.maximum(weights.sum(axis=-1), 1.0)[..., None, None]
    return np.asarray(squares.reshape(*squares.shape[:-1], k, k) - means)


def sides(seen: Moments, matrix: Array) -> Sides:
    r"""Which side each shape is on: the sign of det of its cross-covariance with the reference.

    With singular values s₁ ≥ … ≥ s_d of D̄ᵀX̄A, the best similarity leaves
    1 − (s₁ + … + s_d)² / (‖D̄‖² ‖X̄A‖²) on the preferred side, 1 − (s₁ + … − s_d)² / (…) on the
    other. A sheet that bends both ways prefers a side by chance and slightly; a mirrored specimen
    does so clearly.
    """
    target = transposed(seen.cross) @ matrix[..., None, :, :]
    same, mirrored = on_both_sides(target)
    size = seen.square * _squared_sizes(seen, matrix)
    better, worse = np.maximum(same, mirrored), np.minimum(same, mirrored)
    left = np.maximum(1.0 - better**2 / size, np.finfo(np.float64).eps)
    # of a flat shape both sides are the same but for rounding, which prefers nothing
    preferred = (same - mirrored > _SIDELESS * better).astype(np.intp)
    preferred -= mirrored - same > _SIDELESS * better
    return Sides(preferred, 1.0 - worse**2 / size > _CLEARLY * left)


def _squared_sizes(seen: Moments, matrix: Array) -> Array:
    """(…, n): ‖X̄A‖² of what each shape sees of the reference."""
    return np.einsum(
        "...kd,...kd->...", seen.axes @ matrix[..., None, :, :], matrix[..., None, :, :]
    )


def rigid_proportions(
    seen: Moments, most_rounds: int = 100, accuracy: float = 1e-12
) -> Proportions:
    """Block descent on Σ ‖s D̄ R − X̄ A‖² over similarities (s, R) and A, from the closed form.

    Every shape stays on the side on which it clearly is at the start; the size of A is that of
    the shapes on average, as in Algorithm 1. Where more than d axes are free the closed form may
    have mirrored one part against the others; then all shapes are tried on one side, too.
    """
    matrix = _closed_form(seen)
    found = _descended(seen, matrix, _own_side(seen, matrix), most_rounds, accuracy)
    k, d = matrix.shape[-2:]
    if k <= d:
        return found
    together = _descended(seen, matrix, np.ones_like(seen.square), most_rounds, accuracy)
    apart = together.residual > _CLEARLY * found.residual + _SAME
    return found if apart.all() else _chosen(apart, found, together)


def _chosen(first: Mask, one: Proportions, other: Proportions) -> Proportions:
    """The one where ``first``, the other elsewhere."""
    return Proportions(
        np.where(first[..., None, None], one.matrix, other.matrix),
        np.where(first, one.residual, other.residual),
        max(one.rounds, other.rounds),
        np.where(first, one.converged, other.converged),
        np.where(first, one.determined, other.determined),
    )


def _descended(
    seen: Moments, matrix: Array, side: Array, most_rounds: int, accuracy: float
) -> Proportions:
    """The descent from A, every shape on its ``side`` (…, n)."""
    inverse, determined = _inverse(seen)
    change, rounds = np.full(determined.shape, np.inf), 0
    left = change  # what is still to come, if the changes go on to fall as they do
    while rounds < most_rounds and not (left < accuracy).all():
        turn, scale = _similarities(seen, matrix, side)
        # A ← (Σ G)⁻¹ Σ s C R, rescaled: or all would shrink together
        turned = seen.cross @ (scale[..., None, None] * turn)
        better = inverse @ turned.sum(axis=-3)
        better *= (_norm(matrix) / _norm(better))[..., None, None]
        before = change
        change = _norm(better @ transposed(better) - matrix @ transposed(matrix))
        change /= _norm(matrix) ** 2
        falling = np.where(np.isfinite(before), change / np.maximum(before, _TINY), 1.0)
        falling = np.minimum(falling, 1.0 - 1e-6)
        left = np.where(change < accuracy, change, change * falling / (1.0 - falling))
        matrix, rounds = better, rounds + 1
    _, scale = _similarities(seen, matrix, side)
    positive = (scale > 0.0).all(axis=-1)
    size = (1.0 / np.where(scale > 0.0, scale, 1.0)).mean(axis=-1)
    return Proportions(
        matrix * size[..., None, None],
        _residual(seen, matrix, scale),
        rounds,
        left < accuracy,
        determined & positive,
    )


def _inverse(seen: Moments) -> tuple[Array, Mask]:
    """(Σ G)⁻¹ over the shapes, and whether all axes are seen."""
    n = seen.square.shape[-1]
    total = seen.axes.sum(axis=-3) * (n / seen.axes.shape[-3])
    values, vectors = np.linalg.eigh(total)
    least = _SINGULAR * values[..., -1:]
    reciprocal = np.where(values > least, 1.0 / np.maximum(values, least), 0.0)
    inverse = (vectors * reciprocal[..., None, :]) @ transposed(vectors)
    return inverse, np.asarray((values > least).all(axis=-1))


def judged(seen: Moments, matrix: Array) -> Proportions:
    """Proportions that were stated, and how well similarities of the shapes agree with them."""
    _, scale = _similarities(seen, matrix, _own_side(seen, matrix))
    sure = np.ones(matrix.shape[:-2], dtype=bool)
    return Proportions(matrix, _residual(seen, matrix, scale), 0, sure, sure)


def _closed_form(seen: Moments) -> Array:
    """A with AAᵀ = mean BBᵀ / tr BBᵀ, B = G⁺C: exact for similar images of XA, BBᵀ = AAᵀ / s²."""
    # what a shape does not see of the axes it says nothing about: a trace of ridge makes that zero
    ridge = _SINGULAR * np.einsum("...kk->...", seen.axes)[..., None, None]
    maps = np.linalg.solve(seen.axes + ridge * np.eye(seen.axes.shape[-1]), seen.cross)
    squares = maps @ transposed(maps)
    mean = (squares / np.einsum("...kk->...", squares)[..., None, None]).mean(axis=-3)
    values, vectors = np.linalg.eigh(mean)
    k, d = seen.cross.shape[-2:]
    matrix = np.zeros((*mean.shape[:-2], k, d))
    largest = slice(-min(k, d), None)  # flat shapes have fewer axes than dimensions
    roots = np.sqrt(np.maximum(values[..., None, largest], 0.0))
    matrix[..., : min(k, d)] = vectors[..., largest] * roots
    return matrix


def _own_side(seen: Moments, matrix: Array) -> Array:
    """(…, n): +1, or −1 for a shape that is mirrored against the majority."""
    found = sides(seen, matrix)
    majority = found.majority[..., None]
    return np.where(found.votes == -majority, -majority, majority).astype(np.float64)


def _similarities(seen: Moments, matrix: Array, side: Array) -> tuple[Array, Array]:
    """R (…, n, d, d) and s (…, n) that bring each shape nearest to XA, on its own side."""
    turn, total = nearest_on_side(transposed(seen.cross) @ matrix[..., None, :, :], side)  # D̄ᵀX̄A
    return turn, total / seen.square


def _residual(seen: Moments, matrix: Array, scale: Array) -> Array:
    """√(Σ ‖s D̄ R − X̄A‖² / Σ ‖X̄A‖²): at the best s, ‖X̄A‖² − s² ‖D̄‖² is left of each."""
    whole = np.broadcast_to(_squared_sizes(seen, matrix), scale.shape)
    left = (whole - scale**2 * seen.square).sum(axis=-1)
    return np.asarray(np.sqrt(np.maximum(left, 0.0) / whole.sum(axis=-1)))


def _norm(stack: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("...ij,...ij->...", stack, stack)))
