"""Shapes whose warps are eliminated, ready to be aligned: in closed form, or on the dial."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, rms
from defgpa.diagnostics.checks import check_hinge, find_common_landmarks
from defgpa.diagnostics.findings import Problem
from defgpa.procrustes import SIMILARITY, fit_motions, procrustes_distance
from defgpa.shapes import Shapes
from defgpa.solvers.anchored_cost import make_anchored_inverse
from defgpa.solvers.centred_sums import CentredSums
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.deformable import DeformableFit, LocalShapes, fit_deformable
from defgpa.solvers.eigen import Method
from defgpa.solvers.elastic import Anchors, Dial, fit_elastic, scale_to_mean_size
from defgpa.solvers.elastic_warps import (
    ElasticRegistration,
    fit_elastic_warps,
    require_free_linear_maps,
)
from defgpa.solvers.influence import find_reference_without
from defgpa.solvers.registration import RidgeRegistration
from defgpa.solvers.rigid import fit_rigid
from defgpa.warps import WarpModel


@dataclass(frozen=True, eq=False)
class DeformableProblem:
    """Shapes whose warps are eliminated: a fit, and every landmark left out, start from here."""

    shapes: Shapes  # on the landmarks that at least two of them share
    local: LocalShapes
    model: WarpModel
    method: Method
    cost: ResidualCost

    @cached_property
    def fit(self) -> DeformableFit:
        """The fit of all landmarks."""
        return fit_deformable(self.local, self.cost, self.method)

    def align(self, dial: Dial | None = None) -> Alignment:
        """Align the shapes; ``dial`` is of elastic problems."""
        fit, shapes = self.fit, self.shapes
        return Alignment(
            shapes,
            fit.reference,
            self.cost.make_warps(fit.coefficients, shapes.points),
            fit.eigenvalues,
            fit.diagnostics,
            RidgeRegistration(self.model),
            np.eye(shapes.n_dims),
            fit.findings,
        )

    def measure_influence(self, shape: int, landmarks: Index, shapes: Shapes) -> float | None:
        """Measure by how much the reference changes without some landmarks of one shape.

        ``landmarks`` are those of ``shapes``, of which some may be in one shape only. None where
        the other landmarks do not tell.
        """
        shared = find_common_landmarks(shapes)
        if not np.isin(landmarks, shared).all():
            return None
        local = np.searchsorted(shared, landmarks)
        reference = find_reference_without(
            self.local, self.cost, self.method, self.fit.spectrum, shape, local
        )
        return None if reference is None else procrustes_distance(reference, self.fit.reference)

    def scale_penalty(self, factor: float) -> Self:
        """Return the problem whose warps are charged ``factor`` times as much."""
        return replace(self, cost=self.cost.scale_penalty(factor))


@dataclass(frozen=True, eq=False)
class ElasticProblem(DeformableProblem):
    """Shapes to be aligned elastically, with all that does not depend on the rigidity."""

    @cached_property
    def anchors(self) -> Anchors:
        """The shapes that warps are anchored to; the deformable fit tells which are mirrored."""
        geometry, votes = self.local.geometry, self.fit.diagnostics.votes
        require_free_linear_maps(self.cost, geometry, self.shapes.names)
        return Anchors(CentredSums(geometry), np.where(votes < 0, -1.0, 1.0))

    @cached_property
    def starts(self) -> tuple[Array, Array]:
        """(1, m, d) each: the deformable reference, and the rigid mean, mirrored shapes turned."""
        shapes, weights = self.shapes, self.local.geometry.weights
        points = np.array(shapes.points)
        points[self.anchors.side < 0, :, 0] *= -1.0
        rigid = fit_rigid(points, SIMILARITY, shapes.names, weights=weights)
        return self.fit.reference[None], rigid.reference[None]

    def measure_influence(self, shape: int, landmarks: Index, shapes: Shapes) -> None:
        """Return None: an elastic reference without some landmarks takes a new fit."""

    def align(self, dial: Dial | None = None) -> Alignment:
        """Align the shapes at one rigidity; at its soft end no rigid solution is needed."""
        assert dial is not None
        shapes, anchors = self.shapes, self.anchors
        cost, tuning, free = self.cost, self.method.tuning, self.fit
        if dial.firmness == 0.0:  # the deformable alignment, at the size that all of the dial has
            reference = scale_to_mean_size(anchors, free.reference[None])[0]
            warps = cost.make_warps(cost.fit_warps(reference), shapes.points)
            eigenvalues = np.einsum("md,md->d", reference, reference)
            aligned = super().align()
            return replace(aligned, reference=reference, warps=warps, eigenvalues=eigenvalues)
        inverse = make_anchored_inverse(cost, anchors.sums, dial.firmness, tuning.dense_landmarks)
        axes = free.spectrum.axes[None] if free.diagnostics.n_agreed_axes else None
        fit = fit_elastic(anchors, inverse, self.starts, dial, tuning, axes)
        diagnostics, findings = fit.diagnose(0, dial, free.diagnostics.votes, shapes.names)
        reference, departures = fit.reference[0], dial.firmness * fit.departures[0]
        geometry, points = self.local.geometry, shapes.points
        posed = fit_motions(points, reference, motions=SIMILARITY)(points)
        noise = rms((posed - reference)[shapes.visible])
        hinges = check_hinge(
            reference, shapes.visible, shapes.n_dims - 1, noise, shapes.names, tuning
        )
        undetermined = [f for f in free.findings if f.problem is Problem.UNDETERMINED_WARP]
        return Alignment(
            shapes,
            reference,
            fit_elastic_warps(cost, geometry, reference, departures, points),
            np.einsum("md,md->d", reference, reference),
            diagnostics,
            ElasticRegistration(self.model, dial.rigidity, dial.scaling),
            np.eye(shapes.n_dims),
            (*undetermined, *findings, *hinges),
        )
