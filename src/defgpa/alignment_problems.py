"""Shapes whose warps are eliminated, ready to be aligned: in closed form, or on the dial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from defgpa.alignment import Alignment, superimpose
from defgpa.arrays import Array, Index
from defgpa.diagnostics.checks import check_hinge, find_common_landmarks
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.procrustes import procrustes_distance
from defgpa.shapes import Shapes
from defgpa.solvers.anchored_cost import make_anchored_inverse
from defgpa.solvers.centred_sums import orthonormalise, weigh_points
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.deformable import DeformableFit, LocalShapes, fit_deformable
from defgpa.solvers.eigen import Method
from defgpa.solvers.elastic import (
    Anchors,
    Dial,
    Elastic,
    fit_elastic,
    fit_rigid_start,
    scale_soft_reference,
)
from defgpa.solvers.elastic_warps import (
    ElasticRegistration,
    compute_elastic_coefficients,
    project_linear_maps,
)
from defgpa.solvers.influence import find_reference_without
from defgpa.solvers.registration import RidgeRegistration
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

    def align(self) -> Alignment:
        """Align the shapes."""
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

    def scale_penalty(self, factor: float) -> DeformableProblem:
        """Return the problem whose warps are charged ``factor`` times as much."""
        return replace(self, cost=self.cost.scale_penalty(factor))


@dataclass(frozen=True, eq=False)
class ElasticProblem:
    """Shapes to be aligned elastically, with all that does not depend on the rigidity."""

    deformable: DeformableProblem

    @property
    def shapes(self) -> Shapes:
        """The shapes, on the landmarks that at least two of them share."""
        return self.deformable.shapes

    @property
    def local(self) -> LocalShapes:
        """The shapes as the deformable fit takes them."""
        return self.deformable.local

    @property
    def cost(self) -> ResidualCost:
        """P without what anchors the warps."""
        return self.deformable.cost

    @cached_property
    def rows(self) -> Array:
        """(n, d, m): Qᵀ of every shape."""
        geometry = self.local.geometry
        return orthonormalise(geometry.centred, geometry.scatter)

    @cached_property
    def weighted_rows(self) -> Array:
        """(n, d, m): (ΓQ)ᵀ of every shape."""
        return weigh_points(self.rows.mT, self.local.geometry.weights).mT

    @cached_property
    def linear(self) -> Sequence[Array]:
        """UᵀQ of every batch."""
        return project_linear_maps(self.cost, self.rows, self.weighted_rows, self.shapes.names)

    @cached_property
    def anchors(self) -> Anchors:
        """The shapes that warps are anchored to; the deformable fit tells which are mirrored."""
        return Anchors.of(self.local.geometry, self.deformable.fit.reference)

    @cached_property
    def starts(self) -> tuple[Array, Array]:
        """(m, d) each: the deformable reference, and the rigid mean."""
        fit = self.deformable.fit
        votes, weights = fit.diagnostics.votes, self.local.geometry.weights
        rigid = fit_rigid_start(self.shapes.points, votes, self.shapes.names, weights)
        return fit.reference, rigid

    def scale_penalty(self, factor: float) -> ElasticProblem:
        """Return the problem whose warps are charged ``factor`` times as much for bending."""
        return ElasticProblem(self.deformable.scale_penalty(factor))

    def _descend(self, dial: Dial) -> Elastic:
        tuning = self.deformable.method.tuning
        inverse = make_anchored_inverse(
            self.cost, self.weighted_rows, dial.firmness, tuning.dense_landmarks
        )
        fit = self.deformable.fit
        axes = fit.spectrum.axes if fit.diagnostics.n_agreed_axes else None
        return fit_elastic(self.anchors, inverse, self.starts, dial, tuning, axes)

    def align(self, dial: Dial) -> Alignment:
        """Align the shapes at one rigidity; at its soft end no rigid solution is needed."""
        linear = self.linear  # raises where affine maps are not free
        if dial.firmness == 0.0:
            return self._align_softly()
        cost, model, fit = self.deformable.cost, self.deformable.model, self._descend(dial)
        coefficients = compute_elastic_coefficients(cost, linear, self.weighted_rows, fit)
        free = self.deformable.fit.findings
        return Alignment(
            self.shapes,
            fit.reference,
            cost.make_warps(coefficients, self.shapes.points),
            np.einsum("md,md->d", fit.reference, fit.reference),
            fit.facts(),
            ElasticRegistration(model, dial.rigidity, dial.scaling),
            np.eye(self.shapes.n_dims),
            (
                *[finding for finding in free if finding.problem is Problem.UNDETERMINED_WARP],
                *fit.findings(self.shapes.names),
                *self._check_hinges(fit.reference),
            ),
        )

    def _check_hinges(self, reference: Array) -> tuple[Finding, ...]:
        shapes, tuning = self.shapes, self.deformable.method.tuning
        differences = superimpose(shapes.points, reference) - reference
        noise = float(np.sqrt(np.nanmean((differences**2).sum(axis=2))))
        rank = shapes.n_dims - 1
        return check_hinge(reference, shapes.visible, rank, noise, shapes.names, tuning)

    def _align_softly(self) -> Alignment:
        """Return the deformable alignment, at the size that all of the dial has."""
        cost, shapes = self.deformable.cost, self.shapes
        reference = scale_soft_reference(self.local.geometry, self.deformable.fit.reference)
        return replace(
            self.deformable.align(),
            reference=reference,
            warps=cost.make_warps(cost.fit_warps(reference).coefficients, shapes.points),
            eigenvalues=np.einsum("md,md->d", reference, reference),
        )
