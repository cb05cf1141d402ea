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
the poses, and the warps that are best for it. κ = 1 (μ infinite) and warps that do not bend: the
rigid mean, A the identity. Small κ: near the deformable reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from defgpa._arrays import Array, Index, Mask, norms
from defgpa.diagnostics.checks import descent_findings
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.solution import DescentDiagnostics
from defgpa.frames import Frames
from defgpa.procrustes import SIMILARITY, find_nearest_orthogonal
from defgpa.solvers.anchored_cost import Inverse
from defgpa.solvers.datum_space import estimate_complete_sizes
from defgpa.solvers.deformable import LocalSets
from defgpa.solvers.eigen import reproducible_signs
from defgpa.solvers.proportions import moments, sides
from defgpa.solvers.rigid import fit_rigid
from defgpa.tuning import DEFAULT, Tuning

_SAME_COST = 1e-7  # relative cost by which two ends are the same, iterative solves too
_THIN = 1e-7  # of the longest extent of a shape: below, it has no such direction


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
    """The centred shapes of a stack of g sets, hidden points zero, and the side each is on."""

    centred: Array  # (g, n, m, d): D̄
    visible: Mask  # (g, n, m)
    votes: Index  # (g, n): +1, −1 for a shape mirrored against the reference, 0 if it cannot tell

    @classmethod
    def of(cls, sets: LocalSets, references: Array) -> Anchors:
        """The anchors of sets; ``references`` (g, m, d) tell who is mirrored."""
        stack = (*sets.visible.shape, sets.n_dims)
        centred, visible = sets.frames.centred.reshape(stack), sets.visible
        found = sides(moments(references, centred, visible), _eyes(references))
        return cls(centred, visible, found.votes)

    @property
    def side(self) -> Array:
        """(g, n): +1, or −1 for a shape mirrored against the reference."""
        return np.where(self.votes < 0, -1.0, 1.0)

    @cached_property
    def rows(self) -> Array:
        """(g, n·d, m): D̄ᵀ of all shapes below each other."""
        g, n, m, d = self.centred.shape
        return np.ascontiguousarray(self.centred.mT).reshape(g, n * d, m)

    @cached_property
    def squares(self) -> Array:
        """(g, n): ‖D̄‖²."""
        return np.einsum("gnmd,gnmd->gn", self.centred, self.centred)

    def cross(self, reference: Array) -> Array:
        """(g, n, d, d): D̄ᵀS."""
        g, n, _, d = self.centred.shape
        return (self.rows @ reference).reshape(g, n, d, d)

    def combined(self, matrices: Array) -> Array:
        """(g, m, d): Σ D̄_i M_i."""
        g, n, _, d = self.centred.shape
        return (matrices.reshape(g, n * d, d).mT @ self.rows).mT

    def poses(self, reference: Array, scaling: bool) -> tuple[Array, Array]:
        """(g, n, d, d) the best s R, and (g, n) tr(RᵀD̄ᵀS)."""
        turn, total = find_nearest_orthogonal(self.cross(reference), self.side)
        scale = total / self.squares if scaling else np.ones_like(total)
        return scale[..., None, None] * turn, total

    def linear_parts(self, reference: Array) -> Array:
        """(g, n, d, d): the linear maps of D̄ nearest to S, scatter⁺ D̄ᵀS."""
        scatter = self.centred.mT @ self.centred
        inverse = np.linalg.pinv(scatter, rcond=_THIN**2, hermitian=True)
        return np.asarray(inverse @ self.cross(reference))


def orthonormal_rows(frames: Frames) -> Array:
    """(n, d, m): Qᵀ of every shape; a direction in which a shape is flat is zero."""
    extents = frames.extents[:, :, None]
    there = extents > _THIN * extents[:, :1]
    along = frames.axes.mT @ frames.centred.mT
    return np.asarray(np.where(there, along / np.where(there, extents, 1.0), 0.0))


@dataclass(frozen=True, eq=False)
class Descent:
    """The end of a descent, for every set of a stack."""

    reference: Array  # (g, m, d)
    costs: Array  # (rounds, g): after every round, relative to tr SᵀPS or to κ Σ ‖D̄‖²
    change: Array  # (g,): of the reference still to come, relative to it
    converged: Mask  # (g,)

    @property
    def cost(self) -> Array:
        """(g,): the relative cost at the end."""
        return np.asarray(self.costs[-1])


def descended(
    anchors: Anchors, inverse: Inverse, start: Array, dial: Dial, tuning: Tuning = DEFAULT
) -> Descent:
    """Poses and reference by turns from a start (g, m, d).

    Ends where the reference would change by less than 1e-10 of its size if its changes went on to
    fall as they do, or where rounding keeps them or a cost of nothing from falling; or after
    ``tuning.most_rounds``.
    """
    accuracy, rounding, tiny = 1e-10, 1e-7, np.finfo(np.float64).tiny
    reference = start - start.mean(axis=-2, keepdims=True)
    change = left = np.full(len(start), np.inf)
    ended = np.zeros(len(start), dtype=bool)
    costs: list[Array] = []
    pose, _ = anchors.poses(reference, dial.scaling)
    while len(costs) < tuning.most_rounds and not ended.all():
        pulled = dial.firmness * anchors.combined(pose)
        # an iterative solve may leave a hundredth of the last change
        better = inverse.solve(pulled, reference, 1e-2 * np.minimum(change, 1.0))
        pose, total = anchors.poses(better, dial.scaling)
        costs.append(_cost(anchors.squares, total, np.einsum("gmd,gmd->g", better, pulled), dial))
        before, change = change, _relative_change(better, reference, dial.scaling)
        falling = np.where(np.isfinite(before), change / np.maximum(before, tiny), 1.0)
        slowly = np.minimum(falling, 1.0 - 1e-6)
        left = np.where(change < accuracy, change, change * slowly / (1.0 - slowly))
        # what an inexact solve leaves must not be taken for the end
        sure = before < rounding
        ended |= sure & ((left < accuracy) | ((falling >= 1.0) & (change < rounding)))
        # the warps explain everything but rounding: any reference is as good
        ended |= (falling >= 1.0) & (costs[-1] < 1e-13)
        reference = better
        if dial.scaling:
            # only the shape counts, and the size may fall to nothing; a power of 2 changes no digit
            size = np.exp2(np.round(np.log2(norms(better))))[:, None, None]
            reference, pose = better / size, pose / size[..., None]
    return Descent(reference, np.stack(costs), left, ended)


def _cost(squares: Array, total: Array, energy: Array, dial: Dial) -> Array:
    """(g,): the relative cost of S = P⁺B, from ‖D̄‖² and tr(RᵀD̄ᵀS) of each shape, and tr SᵀPS."""
    if dial.scaling:
        return 1.0 - dial.firmness * (total**2 / squares).sum(axis=-1) / energy
    whole = dial.firmness * squares.sum(axis=-1)
    return (energy - 2.0 * dial.firmness * total.sum(axis=-1) + whole) / whole


def _relative_change(better: Array, reference: Array, scaling: bool) -> Array:
    """(g,): of the reference; up to its size where that is free."""
    size = norms(better)
    if scaling:
        return norms(better / size[:, None, None] - reference / norms(reference)[:, None, None])
    return np.asarray(norms(better - reference) / size)


def in_principal_axes(reference: Array) -> Array:
    """(g, m, d): turned, never mirrored."""
    _, _, right = np.linalg.svd(reference, full_matrices=False)
    turned = reference @ right.mT
    signs = reproducible_signs(turned)
    signs[:, 0] *= np.sign(np.linalg.det(right) * signs.prod(axis=-1))
    return np.asarray(turned * signs[:, None, :])


def with_proportions(anchors: Anchors, reference: Array, scaling: bool, most_rounds: int) -> Array:
    """(g, m, d): S A nearest to the poses: min over A and poses of Σ ‖S̄_iA − s_iD̄_iR_i‖².

    By turns again, from A the identity, which it is where the shapes are only posed.
    """
    seen = moments(reference, anchors.centred, anchors.visible)
    count = anchors.squares.shape[-1] / seen.axes.shape[-3]
    inverse = np.linalg.pinv(count * seen.axes.sum(axis=-3), hermitian=True)
    matrix = np.array(_eyes(reference))
    for _ in range(most_rounds):
        turn, total = find_nearest_orthogonal(seen.cross.mT @ matrix[:, None], anchors.side)
        scale = total / anchors.squares if scaling else np.ones_like(total)
        better = inverse @ (seen.cross @ (scale[..., None, None] * turn)).sum(axis=1)
        if scaling:
            better *= (norms(reference @ matrix) / norms(reference @ better))[:, None, None]
        change, matrix = norms(better - matrix) / norms(matrix), better
        if (change < 1e-12).all():
            break
    return np.asarray(reference @ matrix)


def at_mean_size(anchors: Anchors, reference: Array) -> Array:
    """(g, m, d): as large as the shapes are on average, each completed where it has holes."""
    _, total = anchors.poses(reference, scaling=True)
    seen, scales = anchors.visible.astype(np.float64), (anchors.squares / total) ** 2
    sizes = estimate_complete_sizes(anchors.squares, seen, reference, scales)
    return np.asarray(reference * (sizes.mean(axis=-1) / norms(reference))[:, None, None])


def soft_end(sets: LocalSets, reference: Array) -> Array:
    """(g, m, d): deformable references as large as those of the rest of the dial."""
    return at_mean_size(Anchors.of(sets, reference), reference)


@dataclass(frozen=True, eq=False)
class Elastic:
    """The references of a stack of sets, and how they were found."""

    reference: Array  # (g, m, d): in its principal axes, at the mean size of the shapes
    anchors: Anchors
    dial: Dial
    ends: tuple[Descent, ...]  # of the descent from every start

    @property
    def best(self) -> Index:
        """(g,): the start that led to the least cost; the first where others lead as low."""
        costs = np.stack([end.cost for end in self.ends])
        return np.asarray((costs <= costs.min(axis=0) + _SAME_COST).argmax(axis=0))

    @property
    def excess(self) -> Array:
        """(g,): how much dearer the worst end is than the best, where it is another minimum."""
        costs = np.stack([end.cost for end in self.ends])
        excess = costs.max(axis=0) - costs.min(axis=0)
        sure = np.all([end.converged for end in self.ends], axis=0)
        return np.asarray(np.where(sure & (excess > _SAME_COST), excess, 0.0))

    @cached_property
    def departures(self) -> Array:
        """(g, n, d, d): T, what the linear part of each warp would depart from its pose if free."""
        pose, _ = self.anchors.poses(self.reference, self.dial.scaling)
        return np.asarray(self.anchors.linear_parts(self.reference) - pose)

    @cached_property
    def condition(self) -> Array:
        """(g, n): of the linear part of each warp, the pose plus 1 − κ of the departure."""
        free = self.anchors.linear_parts(self.reference)
        return np.linalg.cond(free - self.dial.firmness * self.departures)

    def facts(self, which: int) -> DescentDiagnostics:
        """What to look at before trusting the fit of one set."""
        end = self.ends[self.best[which]]
        return DescentDiagnostics(
            votes=self.anchors.votes[which],
            condition=self.condition[which],
            iterations=len(end.costs),
            gradient=float(end.change[which]),
            converged=bool(end.converged[which]),
        )

    def findings(self, which: int, names: Sequence[str]) -> tuple[Finding, ...]:
        """What the fit of one set should be told of."""
        found = descent_findings(self.facts(which), names)
        if not self.excess[which] > 0.0:
            return found
        costs = {"cost": self.ends[self.best[which]].cost[which], "excess": self.excess[which]}
        figures = {name: float(value) for name, value in costs.items()}
        return (*found, Finding(Problem.STARTS_DISAGREE, values=figures))


def elastic_gpa(
    sets: LocalSets, inverse: Inverse, starts: Sequence[Array], dial: Dial, tuning: Tuning
) -> Elastic:
    """The elastic references of a stack of sets, from the starts (g, m, d); the cheapest end.

    The first start tells which shapes are mirrored.
    """
    anchors = Anchors.of(sets, starts[0])
    ends = tuple(descended(anchors, inverse, start, dial, tuning) for start in starts)
    open_ = Elastic(ends[0].reference, anchors, dial, ends)
    reference = np.stack([end.reference for end in ends])[open_.best, np.arange(len(ends[0].cost))]
    reference = with_proportions(anchors, reference, dial.scaling, tuning.most_rounds)
    if dial.scaling:
        reference = at_mean_size(anchors, reference)
    return replace(open_, reference=in_principal_axes(reference))


def rigid_start(points: Array, side: Array, names: Sequence[str] = ()) -> Array:
    """(m, d): the mean of similarities of shapes (n, m, d) with NaN, mirrored ones mirrored."""
    turned = points.copy()
    turned[side < 0.0, :, 0] *= -1.0
    return fit_rigid(turned, SIMILARITY, names).reference


def _eyes(references: Array) -> Array:
    g, _, d = references.shape
    return np.broadcast_to(np.eye(d), (g, d, d))
