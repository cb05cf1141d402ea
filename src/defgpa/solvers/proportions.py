r"""The proportions of the reference: what the eigenproblem leaves open, closed by rigidity.

The cheapest axes X (m × k, usually k = d) fix the reference up to a k × d matrix, S = X A. Of all
of them take the one nearest to the shapes under similarities,

    min over A, s_i, R_i of  Σ_i ‖s_i D̄_i R_i − X̄_i A‖²,       ‖A‖ fixed.

X̄ and D̄ are the visible rows of a shape, centred. All that a shape has to say fits into

    G = X̄ᵀX̄,    C = X̄ᵀD̄,    q = ‖D̄‖²,

so one pass over the landmarks suffices, and the rest is algebra of k × d matrices. The reference
keeps the paper's constraint: with A = V √Λ Wᵀ, S = (XV) √Λ has orthonormal axes XV and SᵀS = Λ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from defgpa.arrays import Array, Index, Mask, Stack, compute_norms, join_stacks
from defgpa.geometry import Geometry, Moments, compute_moments
from defgpa.procrustes import find_nearest_orthogonal
from defgpa.solvers.eigen import Method

FLAT = 1e-7  # of the longest extent of the reference: an axis below is rounding
_CLEAR_RATIO = 4.0  # the other side must leave four times the squared error: twice the RMS
_SIDELESS = 1e-12  # twice the smallest singular value over their sum: below, a shape has no side
_SINGULAR = 1e-10  # reciprocal condition of G below which not all axes are determined
_ACCURACY = 1e-12  # of A, to which the descent comes
_N_PLAIN_ROUNDS = 10  # rounds before the descent is extrapolated
_MEMORY = 8  # rounds that are extrapolated


@dataclass(frozen=True, eq=False)
class Sides:
    """Which side of the reference each shape is on."""

    votes: Index  # (…, n): +1 the side of the axes, −1 the other, 0 for a shape that cannot tell
    majority: Index  # (…): +1 or −1, the side of most shapes that can tell, or else of most
    chosen: Array  # (…, n): the side of the majority, or the other if a shape clearly is on it


@dataclass(frozen=True, eq=False)
class Proportions(Stack):
    """S = X A, and how well similarities of the shapes agree with it."""

    matrix: Array  # (…, k, d): A
    residual: Array  # (…): of the similarity fit, relative to the size of the reference
    rounds: int
    converged: Mask  # (…)
    determined: Mask  # (…): whether the shapes tell all of A
    side: Array  # (…, n): +1 or −1, the side of A that each shape was fitted on
    firmness: (
        Array  # (…): share of a step away from A that is felt, 0 at a hinge; 1 if not measured
    )


def choose_proportions(
    moments: Moments, method: Method, get_prior: Callable[[], Array]
) -> tuple[Proportions, Array]:
    """Choose A of S = X A: by rigidity, or √Λ on the axes, the largest on the cheapest; and Λ.

    ``get_prior`` estimates Λ (d,) by Algorithm 1 of the paper.
    """
    n_axes = moments.cross.shape[-2]
    if not method.by_rigidity:
        prior = isinstance(method.proportions, str)
        eigenvalues = np.asarray(get_prior() if prior else method.proportions)
        return judge_proportions(moments, pair_with_axes(eigenvalues, n_axes)), eigenvalues
    rigid = fit_rigid_proportions(moments, method.tuning.max_rounds)
    if n_axes > rigid.matrix.shape[-1]:
        rigid = measure_stability(moments, rigid)
    matrix = turn_to_principal_axes(rigid.matrix)
    if not rigid.determined:
        matrix = pair_with_axes(get_prior(), n_axes)
    return replace(rigid, matrix=matrix), np.einsum("kd,kd->d", matrix, matrix)


def pair_with_axes(eigenvalues: Array, n_axes: int) -> Array:
    """Return A (k, d) of the paper's pairing, √λ of the largest extent on the cheapest axis."""
    stretch = np.diag(np.sqrt(eigenvalues))
    matrix = np.zeros((n_axes, len(eigenvalues)))
    count = min(matrix.shape)
    matrix[:count] = stretch[:count]
    return matrix


def turn_to_principal_axes(matrix: Array) -> Array:
    """Return V √Λ (k, d) of A = V √Λ Wᵀ: the same reference in its principal axes."""
    left, extents, _ = np.linalg.svd(matrix, full_matrices=False)
    extents = np.where(extents > FLAT * extents[0], extents, 0.0)
    turned = np.zeros_like(matrix)
    turned[:, : len(extents)] = left * extents
    return turned


def find_sides(moments: Moments, matrix: Array) -> Sides:
    r"""Find the side each shape is on: the sign of det of its cross-covariance with the reference.

    With singular values s₁ ≥ … ≥ s_d of D̄ᵀX̄A, the best similarity leaves
    1 − (s₁ + … + s_d)² / (‖D̄‖² ‖X̄A‖²) on the preferred side, 1 − (s₁ + … − s_d)² / (…) on the
    other. A sheet that bends both ways prefers a side by chance and slightly; a mirrored specimen
    does so clearly.
    """
    target = moments.cross.mT @ matrix[..., None, :, :]
    # the largest ⟨R, D̄ᵀX̄A⟩ over the rotations R, and over the reflections
    if target.shape[-1] == 2:
        (a, b), (c, e) = np.moveaxis(target, (-2, -1), (0, 1))
        same, mirrored = np.hypot(a + e, b - c), np.hypot(a - e, b + c)
    else:
        values = np.linalg.svd(target, compute_uv=False)
        larger = values.sum(axis=-1)
        smaller, upright = larger - 2.0 * values[..., -1], np.linalg.det(target) > 0.0
        same, mirrored = np.where(upright, larger, smaller), np.where(upright, smaller, larger)
    spread = matrix[..., None, :, :]
    size = moments.square * np.einsum("...kd,...kd->...", moments.axes @ spread, spread)
    better, worse = np.maximum(same, mirrored), np.minimum(same, mirrored)
    left = np.maximum(1.0 - better**2 / size, np.finfo(np.float64).eps)
    # of a flat shape both sides are the same but for rounding, which prefers nothing
    preferred = (same - mirrored > _SIDELESS * better).astype(np.intp)
    preferred -= mirrored - same > _SIDELESS * better
    votes = np.where(1.0 - worse**2 / size > _CLEAR_RATIO * left, preferred, 0)
    clear, preferred_side = np.sign(votes.sum(axis=-1)), np.sign(preferred.sum(axis=-1))
    majority = np.where(clear != 0, clear, preferred_side)
    majority = np.where(majority == 0, 1, majority)
    majority_side = majority[..., None]
    return Sides(
        votes,
        majority,
        np.where(votes == -majority_side, -majority_side, majority_side).astype(np.float64),
    )


def fit_rigid_proportions(moments: Moments, max_rounds: int = 300) -> Proportions:
    """Minimise Σ ‖s D̄ R − X̄ A‖² over similarities (s, R) and A.

    In the plane by one eigenvector, in space by block descent from a closed form. Every shape stays
    on the side on which it clearly is in that closed form; the size of A is that of the shapes on
    average, as in Algorithm 1. Where more than d axes are free the closed form may have mirrored
    one part against the others; then all shapes are tried on one side, too.
    """
    matrix = _solve_closed_form(moments)
    k, d = matrix.shape[-2:]
    sides, same_side = find_sides(moments, matrix), np.ones_like(moments.square)
    if k <= d:
        return fit_proportions_on_sides(moments, matrix, sides.chosen, max_rounds)
    matrix[..., 0] *= sides.majority[..., None]
    side = sides.chosen * sides.majority[..., None]
    on_own_sides = fit_proportions_on_sides(moments, matrix, side, max_rounds)
    if (side == same_side).all():
        return on_own_sides
    on_one_side = fit_proportions_on_sides(moments, matrix, same_side, max_rounds)
    # a relative residual below 1e-6 is rounding: its square is known to 1e-16
    has_mirrored = on_one_side.residual > _CLEAR_RATIO * on_own_sides.residual + 1e-6
    ways = join_stacks([on_one_side[None], on_own_sides[None]])
    return ways[(has_mirrored.astype(int), *np.indices(has_mirrored.shape))]


def measure_stability(moments: Moments, proportions: Proportions) -> Proportions:
    """Measure 1 − μ (…), μ the largest share of a step away from A that a round leaves.

    At A, the end of the descent, a round undoes a step but for its share along each eigenvector of
    its derivative. Turns of A are no steps: their eigenvalues are one. Of no more than d axes all
    steps are felt.
    """
    *batch_shape, k, d = proportions.matrix.shape
    matrix, descent = _normalise(proportions.matrix), _Descent.of(moments, proportions.side)
    columns, size = [], 1e-5  # of A, by which its neighbourhood is felt
    # the steps along a row of A in one call
    for steps in size * np.eye(k * d).reshape(k, d, *np.ones_like(batch_shape), k, d):
        image, opposite_image = descent.run_round(matrix + np.stack([steps, -steps]))
        columns.extend((image - opposite_image).reshape(d, *batch_shape, k * d) / (2.0 * size))
    shares = -np.sort(-np.linalg.eigvals(np.stack(columns, axis=-1)).real, axis=-1)
    firmness = np.clip(1.0 - shares[..., d * (d - 1) // 2], 0.0, 1.0)
    return replace(proportions, firmness=firmness)


def fit_proportions_on_sides(
    moments: Moments,
    matrix: Array,
    side: Array,
    max_rounds: int = 300,
    scaling: bool = True,
) -> Proportions:
    """Find the A nearest to the shapes, each on its ``side`` (…, n).

    In space by descent from ``matrix`` (…, k, d); in the plane at once. Without ``scaling`` the
    shapes keep their sizes, and so do A and its start.
    """
    descent = _Descent.of(moments, side, scaling)
    if matrix.shape[-1] == 2 and scaling:
        matrix, rounds = descent.solve_in_plane(), 0
        converged = np.ones(descent.determined.shape, dtype=bool)
    else:
        matrix, rounds, converged = _descend(descent, matrix, max_rounds)
    _, scale = descent.fit_similarities(matrix)
    positive = (scale > 0.0).all(axis=-1)
    size = np.average(1.0 / np.where(scale > 0.0, scale, 1.0), axis=-1, weights=moments.mass)
    return Proportions(
        matrix * size[..., None, None],
        descent.measure_residual(matrix),
        rounds,
        converged,
        descent.determined & positive,
        side,
        np.ones(descent.determined.shape),
    )


def _descend(descent: _Descent, matrix: Array, max_rounds: int) -> tuple[Array, int, Mask]:
    """Descend from a matrix A; return the last A, the number of rounds, and whether it ended.

    Some plain rounds suffice but for parts that hang loosely together, where every further one
    comes a little nearer; from then on the last rounds are extrapolated.
    """
    change, rounds = np.full(descent.determined.shape, np.inf), 0
    converged = np.zeros(descent.determined.shape, dtype=bool)
    matrix = descent.fix_size(matrix)
    size = compute_norms(matrix)
    steps: list[tuple[Array, Array]] = []  # each A, and what a round changes in it
    while rounds < max_rounds and not converged.all():
        better = descent.run_round(matrix)
        before, change = change, compute_norms(better - matrix) / size
        # an extrapolated descent has some ten changes of a round still to come
        left = _estimate_remaining(change, before) if rounds < _N_PLAIN_ROUNDS else 10.0 * change
        converged |= left < _ACCURACY
        if rounds + _MEMORY >= _N_PLAIN_ROUNDS:
            steps = [*steps[-_MEMORY:], (matrix, better - matrix)]
        ahead = better if rounds < _N_PLAIN_ROUNDS else _extrapolate(descent, steps)
        matrix, rounds = np.where(converged[..., None, None], better, ahead), rounds + 1
    return matrix, rounds, converged


@dataclass(frozen=True, eq=False)
class _Descent:
    """Alternate the best similarities for A and the best A for them, all shapes in a product."""

    moments: Moments
    onto: Array  # (…, n d, k): Cᵀ of all shapes below each other
    white: Array  # (…, k, k): W with W Wᵀ = (Σ G)⁻¹, zero along axes that no shape sees
    side: Array  # (…, n)
    scaling: bool  # whether shapes change their sizes
    determined: Mask  # (…): whether the shapes determine all axes

    @classmethod
    def of(cls, moments: Moments, side: Array, scaling: bool = True) -> _Descent:
        """Prepare the descent of shapes each on its ``side`` (…, n)."""
        *batch_shape, n, k, d = moments.cross.shape
        values, vectors = np.linalg.eigh(moments.axes.sum(axis=-3) * (n / moments.axes.shape[-3]))
        clear = values > _SINGULAR * values[..., -1:]
        roots = np.where(clear, 1.0 / np.sqrt(np.where(clear, values, 1.0)), 0.0)
        onto = np.ascontiguousarray(moments.cross.mT).reshape(*batch_shape, n * d, k)
        white = vectors * roots[..., None, :]
        return cls(moments, onto, white, side, scaling, np.asarray(clear.all(axis=-1)))

    @cached_property
    def back(self) -> Array:
        """(…, k, n d): (Σ G)⁻¹ C of all shapes beside each other."""
        return np.asarray(self.white @ (self.onto @ self.white).mT)

    def solve_in_plane(self) -> Array:
        r"""Find the best A at once: similarities of the plane are complex numbers.

        With points z = x + iy, X̄ᵀz = c, and a = A₁ + iA₂ the best factor of a shape is cᴴa / q, and

            Σ ‖X̄a‖² − |cᴴa|² / q  =  aᴴ (Σ G − Σ c cᴴ / q) a

        is left: a is the eigenvector of Σ c cᴴ / q in the metric Σ G with the largest eigenvalue.
        """
        x, y = self.onto[..., ::2, :], self.onto[..., 1::2, :]
        points = (x + 1j * self.side[..., None] * y) @ self.white  # (…, n, k): cᵀW
        fitted = (points / self.moments.square[..., None]).mT @ points.conj()
        leading = self.white @ np.linalg.eigh(fitted)[1][..., -1:]
        return np.concatenate([leading.real, leading.imag], axis=-1)

    def fit_similarities(self, matrix: Array) -> tuple[Array, Array]:
        """Fit R (…, n, d, d) and s (…, n) that bring each shape nearest to XA, on its side.

        For one A (…, k, d), or several of them, with further axes in front.
        """
        *batch_shape, _, d = matrix.shape
        target = (self.onto @ matrix).reshape(*batch_shape, -1, d, d)  # D̄ᵀX̄A
        turn, total = find_nearest_orthogonal(target, np.broadcast_to(self.side, target.shape[:-2]))
        return turn, total / self.moments.square if self.scaling else np.ones_like(total)

    def run_round(self, matrix: Array) -> Array:
        """Compute the next A, (Σ G)⁻¹ Σ s C R."""
        turn, scale = self.fit_similarities(matrix)
        turn *= scale[..., None, None]
        rows = turn.reshape(*matrix.shape[:-2], -1, matrix.shape[-1])
        return self.fix_size(self.back @ rows)

    def fix_size(self, matrix: Array) -> Array:
        """Bring A to size 1 where shapes change their sizes, or all would shrink together."""
        return _normalise(matrix) if self.scaling else matrix

    def measure_residual(self, matrix: Array) -> Array:
        """Compute √(Σ ‖s D̄ R − X̄A‖² / Σ ‖X̄A‖²) (…)."""
        turn, scale = self.fit_similarities(matrix)
        spread = matrix[..., None, :, :]
        sizes = np.einsum("...kd,...kd->...", self.moments.axes @ spread, spread)  # ‖X̄A‖²
        sizes = np.broadcast_to(sizes, scale.shape)
        left = sizes - scale**2 * self.moments.square
        if not self.scaling:
            total = (self.onto @ matrix).reshape(turn.shape)
            left = sizes + self.moments.square - 2.0 * np.einsum("...ij,...ij->...", turn, total)
        squares = np.maximum(left.sum(axis=-1), 0.0)
        return np.asarray(np.sqrt(squares / sizes.sum(axis=-1)))


def _estimate_remaining(change: Array, before: Array) -> Array:
    """Estimate the change still to come, if changes go on to fall as they do."""
    falling = np.where(np.isfinite(before), change / np.maximum(before, np.finfo(float).tiny), 1.0)
    falling = np.minimum(falling, 1.0 - 1e-6)
    return np.asarray(change * falling / (1.0 - falling))


def _extrapolate(descent: _Descent, steps: Sequence[tuple[Array, Array]]) -> Array:
    """Extrapolate by Anderson's mixing: combine the last rounds so that their changes f cancel,

        A + f − (ΔA + Δf) γ,    γ = Δf⁺ f,

    where it leaves no more than one more round would.
    """
    matrices, changes = (np.stack(part, axis=-1) for part in zip(*steps, strict=True))
    shape, count = matrices.shape[:-1], matrices.shape[-1]
    matrices, changes = (part.reshape(*shape[:-2], -1, count) for part in (matrices, changes))
    undamped = matrices[..., -1] + changes[..., -1]
    differences = np.diff(changes, axis=-1)
    weights = np.linalg.pinv(differences, rcond=1e-10) @ changes[..., -1:]
    ahead = undamped - ((np.diff(matrices, axis=-1) + differences) @ weights)[..., 0]
    candidates = [vector.reshape(shape) for vector in (undamped, ahead)]
    left = [descent.measure_residual(candidate) for candidate in candidates]
    return np.where((left[1] > left[0])[..., None, None], *candidates)


def judge_proportions(moments: Moments, matrix: Array) -> Proportions:
    """Measure how well similarities of the shapes agree with given proportions A."""
    side = find_sides(moments, matrix).chosen
    residual = _Descent.of(moments, side).measure_residual(matrix)
    sure = np.ones(matrix.shape[:-2], dtype=bool)
    return Proportions(matrix, residual, 0, sure, sure, side, np.ones(sure.shape))


def measure_agreement(moments: Moments, matrix: Array) -> Array:
    """Measure how surely the shapes have a part along each axis, in squared standard errors (…, k).

    A = Σ (Σ G)⁻¹ s C R is the sum of what every shape adds to it, and (Σ G)⁻¹ (s C R − G A) is what
    that differs from its share: the sum of their squares is the squared standard error of A.
    """
    descent = _Descent.of(moments, find_sides(moments, matrix).chosen)
    turn, scale = descent.fit_similarities(matrix)
    posed = moments.cross @ (scale[..., None, None] * turn)
    n = moments.cross.shape[-3]
    white = descent.white[..., None, :, :]
    errors = white @ (white.mT @ (posed - moments.axes @ matrix[..., None, :, :]))
    squares = np.square(errors).sum(axis=(-3, -1)) * n / max(1, n - 1)
    tiny = np.finfo(np.float64).tiny
    return np.asarray(np.square(matrix).sum(axis=-1) / np.maximum(squares, tiny))


def _solve_closed_form(moments: Moments) -> Array:
    """Compute A with AAᵀ = mean BBᵀ / tr BBᵀ, B = G⁺C: exact for similar images of XA."""
    # what a shape does not see of the axes it says nothing about: a trace of ridge makes that zero
    ridge = _SINGULAR * np.einsum("...kk->...", moments.axes)[..., None, None]
    maps = np.linalg.solve(moments.axes + ridge * np.eye(moments.axes.shape[-1]), moments.cross)
    squares = maps @ maps.mT
    shares = squares / np.einsum("...kk->...", squares)[..., None, None]
    # each shape counts by its mean landmark weight, where there are weights
    mass = None if moments.mass is None else moments.mass[..., None, None]
    mean = (
        shares.mean(axis=-3) if mass is None else (mass * shares).sum(axis=-3) / mass.sum(axis=-3)
    )
    values, vectors = np.linalg.eigh(mean)
    k, d = moments.cross.shape[-2:]
    matrix = np.zeros((*mean.shape[:-2], k, d))
    largest = slice(-min(k, d), None)  # flat shapes have fewer axes than dimensions
    roots = np.sqrt(np.maximum(values[..., None, largest], 0.0))
    matrix[..., : min(k, d)] = vectors[..., largest] * roots
    return matrix


def _normalise(stack: Array) -> Array:
    """Scale every matrix of a stack to size 1."""
    return stack / compute_norms(stack)[..., None, None]


def vote_on_sides(reference: Array, geometry: Geometry) -> Index:
    """(n,): +1 with the majority, −1 mirrored against it, 0 for a shape that cannot tell."""
    # about its mean, so that a distant origin costs no digits
    moments = compute_moments(reference - reference.mean(axis=0), geometry)
    sides = find_sides(moments, np.eye(reference.shape[1]))
    return np.asarray(sides.votes * sides.majority)
