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
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from defgpa.arrays import Array, Index, Mask, compute_norms
from defgpa.diagnostics.checks import check_descent
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.solution import DescentDiagnostics
from defgpa.geometry import Geometry
from defgpa.procrustes import SIMILARITY, find_nearest_orthogonal
from defgpa.solvers.anchored_cost import Inverse
from defgpa.solvers.centred_sums import THIN, CentredSums, FoldSums
from defgpa.solvers.deformable import choose_signs
from defgpa.solvers.proportions import find_sides, fit_proportions_on_sides
from defgpa.solvers.rigid import fit_rigid
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
    """The shapes that warps are anchored to, and the side each is on.

    A fit has no leading axes …; the folds of a cross-validation, solved in one call, have one.
    """

    sums: CentredSums | FoldSums
    votes: Index  # (…, n): +1, −1 for a shape mirrored against the reference, 0 if it cannot tell

    @classmethod
    def of(cls, geometry: Geometry, reference: Array) -> Anchors:
        """Make the anchors of shapes; the reference (m, d) tells which are mirrored."""
        sums = CentredSums.of(geometry)
        sides = find_sides(sums.moments(reference), np.eye(reference.shape[-1]))
        return cls(sums, sides.votes)

    @property
    def side(self) -> Array:
        """(…, n): +1, or −1 for a shape mirrored against the reference."""
        return np.where(self.votes < 0, -1.0, 1.0)

    def fit_poses(self, reference: Array, scaling: bool) -> tuple[Array, Array]:
        """Fit the best s R (…, n, d, d) of every shape, and compute tr(RᵀD̄ᵀΓS) (…, n)."""
        turn, total = find_nearest_orthogonal(self.sums.cross(reference), self.side)
        scale = total / self.sums.squares if scaling else np.ones_like(total)
        return scale[..., None, None] * turn, total

    def fit_linear_parts(self, reference: Array) -> Array:
        """Compute the linear maps (…, n, d, d) of D̄ nearest to S, scatter⁺ D̄ᵀΓS."""
        return np.asarray(self.sums.inverse_scatters @ self.sums.cross(reference))


@dataclass(frozen=True, eq=False)
class Descent:
    """The end of a descent."""

    reference: Array  # (…, m, d)
    costs: Array  # (rounds, …): after every round, relative to tr SᵀPS or to κ Σ ‖D̄‖²
    change: Array  # (…): of the reference still to come, relative to it
    converged: Mask  # (…)

    @property
    def cost(self) -> Array:
        """(…): the relative cost at the end."""
        return np.asarray(self.costs[-1])


def descend(
    anchors: Anchors, inverse: Inverse, start: Array, dial: Dial, tuning: Tuning = DEFAULT
) -> Descent:
    """Fit poses and reference by turns, from a start (…, m, d).

    Ends where the reference would change by less than 1e-10 of its size if its changes went on to
    fall as they do, or where rounding keeps them or a cost of nothing from falling; or after
    ``tuning.max_rounds``.
    """
    accuracy, rounding, tiny = 1e-10, 1e-7, np.finfo(np.float64).tiny
    reference = start - start.mean(axis=-2, keepdims=True)
    change = left = np.full(start.shape[:-2], np.inf)
    has_converged = np.zeros(start.shape[:-2], dtype=bool)
    costs: list[Array] = []
    pose, _ = anchors.fit_poses(reference, dial.scaling)
    while len(costs) < tuning.max_rounds and not has_converged.all():
        pulled = dial.firmness * anchors.sums.combine(pose)
        # an iterative solve may leave a hundredth of the last change
        better = inverse.solve(pulled, reference, 1e-2 * np.minimum(change, 1.0))
        pose, total = anchors.fit_poses(better, dial.scaling)
        costs.append(
            _compute_relative_cost(
                anchors.sums.squares, total, np.einsum("...md,...md->...", better, pulled), dial
            )
        )
        before, change = change, _compute_relative_change(better, reference, dial.scaling)
        ratio = np.where(np.isfinite(before), change / np.maximum(before, tiny), 1.0)
        bounded_ratio = np.minimum(ratio, 1.0 - 1e-6)
        left = np.where(change < accuracy, change, change * bounded_ratio / (1.0 - bounded_ratio))
        # what an inexact solve leaves must not be taken for the end
        sure = before < rounding
        has_converged |= sure & ((left < accuracy) | ((ratio >= 1.0) & (change < rounding)))
        # the warps explain everything but rounding: any reference is as good
        has_converged |= (ratio >= 1.0) & (costs[-1] < 1e-13)
        reference = better
        if dial.scaling:
            # only the shape counts, and the size may fall to nothing; a power of 2 changes no digit
            size = np.asarray(np.exp2(np.round(np.log2(compute_norms(better)))))[..., None, None]
            reference, pose = better / size, pose / size[..., None]
    return Descent(reference, np.stack(costs), left, has_converged)


def _compute_relative_cost(squares: Array, total: Array, energy: Array, dial: Dial) -> Array:
    """Compute the relative cost (…) of S = P⁺B from ‖D̄‖², tr(RᵀD̄ᵀS) and tr SᵀPS.

    Parameters
    ----------
    squares, total : array (…, n)
        ‖D̄‖² and tr(RᵀD̄ᵀS) of every shape.
    energy : array (…)
        tr SᵀPS.
    """
    if dial.scaling:
        return 1.0 - dial.firmness * (total**2 / squares).sum(axis=-1) / energy
    anchored_cost = dial.firmness * squares.sum(axis=-1)
    return (energy - 2.0 * dial.firmness * total.sum(axis=-1) + anchored_cost) / anchored_cost


def _compute_relative_change(better: Array, reference: Array, scaling: bool) -> Array:
    """Compute the relative change (…) of the reference; up to its size where that is free."""
    size = compute_norms(better)
    if scaling:
        return compute_norms(
            better / size[..., None, None] - reference / compute_norms(reference)[..., None, None]
        )
    return np.asarray(compute_norms(better - reference) / size)


def turn_reference(reference: Array) -> Array:
    """Turn references (…, m, d) to their principal axes, without mirroring them."""
    _, _, right = np.linalg.svd(reference, full_matrices=False)
    turned = reference @ right.mT
    signs = choose_signs(turned)
    signs[..., 0] *= np.sign(np.linalg.det(right) * signs.prod(axis=-1))
    return np.asarray(turned * signs[..., None, :])


def set_proportions(
    anchors: Anchors, reference: Array, scaling: bool, max_rounds: int, axes: Array | None = None
) -> Array:
    """Set the proportions of references (…, m, d) by the poses: the S A nearest to them.

    It is S itself where the shapes are only posed. With further ``axes`` X (…, m, k) it is [S X] A,
    where S may lie in the span of X but for rounding.
    """
    size, d = compute_norms(reference)[..., None, None], reference.shape[-1]
    columns, thin = reference / size, THIN
    if axes is not None:
        columns, thin = np.concatenate([columns, axes], axis=-1), 100.0 * THIN
    directions, extents, right = np.linalg.svd(columns, full_matrices=False)
    directions *= (extents > thin * extents[..., :1])[..., None, :]
    start = size * extents[..., None] * right[..., :d]
    moments = anchors.sums.moments(directions)
    proportions = fit_proportions_on_sides(
        moments, start, anchors.side, max_rounds, scaling=scaling
    )
    return np.asarray(directions @ proportions.matrix)


def scale_to_mean_size(anchors: Anchors, reference: Array) -> Array:
    """Scale references (…, m, d) to the mean size of the shapes, completed where landmarks miss."""
    sums = anchors.sums
    _, total = find_nearest_orthogonal(sums.cross(reference), anchors.side)
    sizes = sums.complete_sizes(reference, (sums.squares / total) ** 2)
    size = np.average(sizes, axis=-1, weights=sums.mass)
    return np.asarray(reference * (size / compute_norms(reference))[..., None, None])


def scale_soft_reference(geometry: Geometry, reference: Array) -> Array:
    """Scale a deformable reference (m, d) to the size of the rest of the dial."""
    return scale_to_mean_size(Anchors.of(geometry, reference), reference)


@dataclass(frozen=True, eq=False)
class Elastic:
    """The elastic reference, and how it was found."""

    reference: Array  # (…, m, d): in its principal axes, at the mean size of the shapes
    anchors: Anchors
    dial: Dial
    ends: tuple[Descent, ...]  # of the descent from every start

    @property
    def best(self) -> Index:
        """(…): the start that led to the least cost; the first where others lead as low."""
        costs = np.stack([end.cost for end in self.ends])
        return np.asarray((costs <= costs.min(axis=0) + _SAME_COST).argmax(axis=0))

    @property
    def excess(self) -> Array:
        """(…): how much dearer the worst end is than the best, where it is another minimum."""
        costs = np.stack([end.cost for end in self.ends])
        excess = costs.max(axis=0) - costs.min(axis=0)
        sure = np.all([end.converged for end in self.ends], axis=0)
        return np.asarray(np.where(sure & (excess > _SAME_COST), excess, 0.0))

    @cached_property
    def departures(self) -> Array:
        """(…, n, d, d): T, what the linear part of each warp would depart from its pose if free."""
        pose, _ = self.anchors.fit_poses(self.reference, self.dial.scaling)
        return np.asarray(self.anchors.fit_linear_parts(self.reference) - pose)

    @cached_property
    def condition(self) -> Array:
        """(…, n): of the linear part of each warp, the pose plus 1 − κ of the departure."""
        free = self.anchors.fit_linear_parts(self.reference)
        return np.linalg.cond(free - self.dial.firmness * self.departures)

    def facts(self, fold: tuple[int, ...] = ()) -> DescentDiagnostics:
        """Return the diagnostics of the fit, or of one of its folds."""
        end = self.ends[int(self.best[fold])]
        return DescentDiagnostics(
            votes=self.anchors.votes[fold],
            condition=self.condition[fold],
            iterations=len(end.costs),
            gradient=float(end.change[fold]),
            converged=bool(end.converged[fold]),
        )

    def findings(self, names: Sequence[str], fold: tuple[int, ...] = ()) -> tuple[Finding, ...]:
        """Return the findings of the fit, or of one of its folds."""
        end = self.ends[int(self.best[fold])]
        findings = check_descent(
            self.anchors.votes[fold],
            bool(end.converged[fold]),
            len(end.costs),
            float(end.change[fold]),
            names,
        )
        if not self.excess[fold] > 0.0:
            return findings
        costs = {"cost": end.cost[fold], "excess": self.excess[fold]}
        figures = {name: float(value) for name, value in costs.items()}
        return (*findings, Finding(Problem.STARTS_DISAGREE, values=figures))


def fit_elastic(
    anchors: Anchors,
    inverse: Inverse,
    starts: Sequence[Array],
    dial: Dial,
    tuning: Tuning,
    axes: Array | None = None,
) -> Elastic:
    """Find the elastic reference: the cheapest end of the descents from the starts (…, m, d).

    Its proportions are those of the poses, with the ``axes`` (…, m, k) of the deformable reference
    where these are more than d.
    """
    ends = tuple(descend(anchors, inverse, start, dial, tuning) for start in starts)
    open_ = Elastic(ends[0].reference, anchors, dial, ends)
    reference = np.choose(open_.best[..., None, None], [end.reference for end in ends])
    reference = set_proportions(anchors, reference, dial.scaling, tuning.max_rounds, axes)
    if dial.scaling:
        reference = scale_to_mean_size(anchors, reference)
    return replace(open_, reference=turn_reference(reference))


def fit_rigid_start(
    points: Array, side: Index, names: Sequence[str] = (), weights: Array | None = None
) -> Array:
    """Return the mean (m, d) of similarities of shapes (n, m, d), mirrored ones mirrored."""
    turned = points.copy()
    turned[side < 0, :, 0] *= -1.0
    return fit_rigid(turned, SIMILARITY, names, weights=weights).reference
