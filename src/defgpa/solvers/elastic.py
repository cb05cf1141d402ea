r"""From rigid to elastic on one dial: the linear part of every warp is tied to a pose.

Shape D is posed, Y = s D̄ R, and the warp may leave its pose at a price: R charges how it bends,
μ how far its linear part departs from the pose,

    min over S, poses, V of   Σ_i ‖Y_i + F_iV_i − S‖² + tr V_iᵀ(R_i + μ L_iᵀL_i)V_i,    L = QᵀF,

with Q an orthonormal basis of the centred points. Where affine maps are free (R a = 0), F is as
good as its part orthogonal to Q and the linear part stands alone: the best V leaves

    tr SᵀP_iS + κ ‖Q_iQ_iᵀS − s_i D̄_iR_i‖²,      κ = μ / (1 + μ),

P_i the very cost of the deformable method. So with P = Σ P_i + κ Σ Q_iQ_iᵀ, by turns:

    given S:          R = polar(D̄ᵀS) on the side of the shape,    s = tr(RᵀD̄ᵀS) / ‖D̄‖²
    given the poses:  S = κ P⁺ Σ s_i D̄_iR_i

P never changes. Without scales (s = 1) that is the cost itself; with them the reference could
shrink to nothing, and what falls is the cost relative to tr SᵀPS,

    1 − κ Σ s_i² ‖D̄_i‖² / tr SᵀPS.

What the warps leave of an axis of S makes it shorter, the less rigid the more; so in the end the
proportions are those of the posed shapes, as in the deformable method: S A with the A nearest to
the poses, and the warps that are best for it. Of thin shapes the deformable method takes more than
d axes X; then it is [S X] A. κ = 1 (μ infinite) and warps that do not bend: the rigid mean, A the
identity. Small κ: near the deformable reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, Index, Mask, compute_norms
from defgpa.diagnostics.checks import check_descent_solution
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.solution import DescentDiagnostics
from defgpa.procrustes import find_nearest_orthogonal
from defgpa.solvers.anchored_cost import Inverse
from defgpa.solvers.centred_sums import THIN, CentredSums
from defgpa.solvers.datum_space import estimate_complete_sizes
from defgpa.solvers.deformable import choose_signs
from defgpa.solvers.proportions import fit_proportions_on_sides
from defgpa.tuning import DEFAULT, Tuning

_SAME_COST = 1e-7  # relative cost by which two ends are the same, iterative solves too


@dataclass(frozen=True)
class Dial:
    """Where between rigid and elastic, and whether sizes are part of the pose."""

    rigidity: float  # μ, from 0 to infinity
    scaling: bool

    @property
    def firmness(self) -> float:
        """κ = μ / (1 + μ)."""
        return 1.0 if np.isinf(self.rigidity) else self.rigidity / (1.0 + self.rigidity)


@dataclass(frozen=True, eq=False)
class Anchors:
    """The shapes that warps are anchored to, on the landmarks of g folds; of one for a fit."""

    sums: CentredSums
    side: Array  # (n,): +1, or −1 for a shape mirrored against the reference

    def fit_poses(self, reference: Array, scaling: bool) -> tuple[Array, Array]:
        """Fit the best s R (g, n, d, d) of every shape, and compute tr(RᵀD̄ᵀΓS) (g, n)."""
        side = np.broadcast_to(self.side, self.sums.squares.shape)
        turn, total = find_nearest_orthogonal(self.sums.cross(reference), side)
        scale = total / self.sums.squares if scaling else np.ones_like(total)
        return scale[..., None, None] * turn, total

    def measure_departures(self, reference: Array, scaling: bool) -> tuple[Array, Array]:
        """Compute the poses s R and by how much free linear maps depart from them, T.

        T = scatter⁺ D̄ᵀΓS − s R, (g, n, d, d) both.
        """
        poses, _ = self.fit_poses(reference, scaling)
        return poses, self.sums.inverse_scatters @ self.sums.cross(reference) - poses


@dataclass(frozen=True, eq=False)
class Descent:
    """The ends of the descents of g folds from one start."""

    reference: Array  # (g, m, d)
    costs: Array  # (rounds, g): after every round, relative to tr SᵀPS or to κ Σ ‖D̄‖²
    change: Array  # (g,): of the reference still to come, relative to it
    converged: Mask  # (g,)


def descend(
    anchors: Anchors, inverse: Inverse, start: Array, dial: Dial, tuning: Tuning = DEFAULT
) -> Descent:
    """Fit poses and reference by turns, from a start (g, m, d).

    Ends where the reference would change by less than 1e-10 of its size if its changes went on to
    fall as they do, or where rounding keeps them or a cost of nothing from falling; or after
    ``tuning.max_rounds``.
    """
    sums, kappa = anchors.sums, dial.firmness
    accuracy, rounding, tiny = 1e-10, 1e-7, np.finfo(np.float64).tiny
    change = left = np.full(len(start), np.inf)
    has_converged = np.zeros(len(start), dtype=bool)
    costs: list[Array] = []
    reference = start - start.mean(axis=1, keepdims=True)
    if dial.scaling:  # only the shape counts, and the size may fall to nothing
        reference /= compute_norms(reference)[:, None, None]
    poses, _ = anchors.fit_poses(reference, dial.scaling)
    while len(costs) < tuning.max_rounds and not has_converged.all():
        pulled = kappa * sums.combine(poses)
        # an iterative solve may leave a hundredth of the last change
        better = inverse.solve(pulled, reference, 1e-2 * np.minimum(change, 1.0))
        poses, total = anchors.fit_poses(better, dial.scaling)
        energy, size = np.einsum("gmd,gmd->g", better, pulled), compute_norms(better)
        if dial.scaling:
            costs.append(1.0 - kappa * (total**2 / sums.squares).sum(axis=1) / energy)
            better, poses = better / size[:, None, None], poses / size[:, None, None, None]
            size = np.ones_like(size)
        else:
            anchored = kappa * sums.squares.sum(axis=1)
            costs.append((energy - 2.0 * kappa * total.sum(axis=1)) / anchored + 1.0)
        before, change = change, compute_norms(better - reference) / size
        ratio = np.where(np.isfinite(before), change / np.maximum(before, tiny), 1.0)
        bounded_ratio = np.minimum(ratio, 1.0 - 1e-6)
        left = np.where(change < accuracy, change, change * bounded_ratio / (1.0 - bounded_ratio))
        # what an inexact solve leaves must not be taken for the end
        sure = before < rounding
        has_converged |= sure & ((left < accuracy) | ((ratio >= 1.0) & (change < rounding)))
        # the warps explain everything but rounding: any reference is as good
        has_converged |= (ratio >= 1.0) & (costs[-1] < 1e-13)
        reference = better
    return Descent(reference, np.stack(costs), left, has_converged)


@dataclass(frozen=True, eq=False)
class ElasticFit:
    """The elastic references of g folds, and how they were found."""

    reference: Array  # (g, m, d): in its principal axes, at the mean size of the shapes
    poses: Array  # (g, n, d, d)
    departures: Array  # (g, n, d, d): of the linear part of each warp from its pose, if it is free
    cost: Array  # (g,): the least of all starts, relative
    excess: Array  # (g,): how much dearer the worst end is, where it is another minimum
    change: Array  # (g,): of the reference still to come
    converged: Mask  # (g,)
    rounds: Index  # (g,)

    def diagnose(
        self, fold: int, dial: Dial, votes: Index, names: Sequence[str]
    ) -> tuple[DescentDiagnostics, tuple[Finding, ...]]:
        """Return the diagnostics of a fold, and what they find."""
        # the linear part of a warp is the pose plus 1 − κ of the departure
        linear = self.poses[fold] + (1.0 - dial.firmness) * self.departures[fold]
        diagnostics = DescentDiagnostics(
            votes=votes,
            condition=np.linalg.cond(linear),
            iterations=int(self.rounds[fold]),
            gradient=float(self.change[fold]),
            converged=bool(self.converged[fold]),
        )
        findings = check_descent_solution(diagnostics, names)
        if self.excess[fold] > 0.0:
            values = {"cost": float(self.cost[fold]), "excess": float(self.excess[fold])}
            findings += (Finding(Problem.STARTS_DISAGREE, values=values),)
        return diagnostics, findings


def fit_elastic(
    anchors: Anchors,
    inverse: Inverse,
    starts: Sequence[Array],
    dial: Dial,
    tuning: Tuning,
    axes: Array | None = None,
) -> ElasticFit:
    """Find the elastic references: the cheapest ends of the descents from the starts (g, m, d).

    Their proportions are those of the poses, with the ``axes`` (g, m, k) of the deformable
    reference where these are more than d.
    """
    ends = [descend(anchors, inverse, start, dial, tuning) for start in starts]
    costs = np.stack([end.costs[-1] for end in ends])
    # the first where others lead as low
    best = (costs <= costs.min(axis=0) + _SAME_COST).argmax(axis=0)
    excess = costs.max(axis=0) - costs.min(axis=0)
    is_other = np.all([end.converged for end in ends], axis=0) & (excess > _SAME_COST)
    reference = np.choose(best[:, None, None], [end.reference for end in ends])
    # S A with the A nearest to the poses, S itself where the shapes are only posed; with further
    # axes X it is [S X] A, where S may lie in the span of X but for rounding
    size, d = compute_norms(reference)[:, None, None], reference.shape[-1]
    columns, thin = reference / size, THIN
    if axes is not None:
        columns, thin = np.concatenate([columns, axes], axis=-1), 100.0 * THIN
    directions, extents, right = np.linalg.svd(columns, full_matrices=False)
    directions *= (extents > thin * extents[:, :1])[:, None, :]
    first = size * extents[:, :, None] * right[:, :, :d]
    moments, side = anchors.sums.moments(directions), anchors.side
    proportions = fit_proportions_on_sides(
        moments, first, side, tuning.max_rounds, scaling=dial.scaling
    )
    reference = directions @ proportions.matrix
    if dial.scaling:
        reference = scale_to_mean_size(anchors, reference)
    # to principal axes, without mirroring
    _, _, right = np.linalg.svd(reference, full_matrices=False)
    reference = reference @ right.mT
    signs = choose_signs(reference)
    signs[:, 0] *= np.sign(np.linalg.det(right) * signs.prod(axis=1))
    reference *= signs[:, None, :]
    return ElasticFit(
        reference,
        *anchors.measure_departures(reference, dial.scaling),
        np.choose(best, costs),
        np.where(is_other, excess, 0.0),
        np.choose(best, [end.change for end in ends]),
        np.choose(best, [end.converged for end in ends]),
        np.array([len(end.costs) for end in ends])[best],
    )


def scale_to_mean_size(anchors: Anchors, reference: Array) -> Array:
    """Scale references (g, m, d) to the mean size of the shapes, completed where landmarks miss."""
    sums = anchors.sums
    sizes = np.sqrt(sums.squares)
    if not sums.is_uniform:
        _, total = anchors.fit_poses(reference, scaling=False)
        visible = np.moveaxis(sums.geometry.visible[:, sums.remaining], 1, 0).astype(np.float64)
        squares = np.einsum("gnmd,gnmd->gn", sums.points, sums.points)
        sizes = estimate_complete_sizes(squares, visible, reference, (sums.squares / total) ** 2)
    size = np.average(sizes, axis=1, weights=sums.mass)
    return np.asarray(reference * (size / compute_norms(reference))[:, None, None])
