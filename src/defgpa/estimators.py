"""Estimators with scikit-learn's interface: parameters in, an Alignment out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from defgpa.alignment import (
    Alignment,
    average,
    check_eigenvalues,
    find_shape_indices,
    make_datum_space_alignment,
    map_to_space,
    register_shape,
)
from defgpa.alignment_problems import DeformableProblem, ElasticProblem
from defgpa.arrays import Array, Index
from defgpa.diagnostics.checks import (
    check_hinge,
    find_common_landmarks,
    keep_common_landmarks,
)
from defgpa.diagnostics.findings import warn_about
from defgpa.diagnostics.rejection import Rejection, check_rejection
from defgpa.diagnostics.screening import add_input_findings
from defgpa.errors import DefgpaError
from defgpa.lone_landmarks import place_lone_landmarks
from defgpa.procrustes import ORTHOGONAL_SIMILARITY, Motions, procrustes_distance
from defgpa.shapes import Shapes, ShapesLike, as_specimens
from defgpa.sklearn_interface import SklearnInterface
from defgpa.solvers.affine import balance_frame, fit_affine
from defgpa.solvers.cost import DEFAULT_BUDGET, build_cost
from defgpa.solvers.deformable import LocalShapes
from defgpa.solvers.eigen import Centering, EigenSolver, Method, SoftCentering
from defgpa.solvers.elastic import Dial
from defgpa.solvers.leverage import (
    find_expected_places,
    invert_for_affine_maps,
    invert_for_similarities,
    predict_landmarks,
)
from defgpa.solvers.proportions import vote_on_sides
from defgpa.solvers.registration import AffineRegistration, MotionRegistration
from defgpa.solvers.residual_scores import WeightedFit
from defgpa.solvers.rigid import fit_rigid
from defgpa.solvers.robust import (
    OF_MAPS,
    OF_WARPS,
    ROUND_GRADIENT,
    Robust,
    estimate_weights,
    fade_shapes,
    predict_by_maps,
    spread_over_landmarks,
)
from defgpa.threads import USUAL_FEATURES, use_threads
from defgpa.tuning import DEFAULT, Tuning
from defgpa.warps import ThinPlateSpline, Warp, WarpModel
from defgpa.warps.parameters import stiffen


class AlignmentEstimator(SklearnInterface):
    """What all estimators have in common; each says only how shapes are aligned."""

    robust: Robust | bool = False
    tuning: Tuning | None = None
    _features_per_landmark = 4  # of affine maps and motions; decides how many threads pay
    _schedule = OF_MAPS  # of the rounds of a robust fit

    def fit(self, shapes: ShapesLike, y: object = None) -> Self:
        """Align the shapes (Shapes, an (n, m, d) array with NaN, or a list of (m, d) arrays)."""
        self.alignment_ = self.align(shapes)
        if self.alignment_.findings:
            warn_about(self.alignment_.findings)
        return self

    def align(self, shapes: ShapesLike) -> Alignment:
        """Align shapes and check them; the findings are in the result, and nothing is warned of.

        The shapes themselves are checked too: exchanged and misplaced landmarks, other units, and
        by how much the reference would change without them.
        """
        if self.robust is not False:
            settings = check_robust(self.robust, type(self).__name__)
            if settings is not None:
                return self._align_robustly(as_specimens(shapes).require_alignable(), settings)
        return self.align_with_problem(shapes)[0]

    def align_with_problem(self, shapes: ShapesLike) -> tuple[Alignment, DeformableProblem | None]:
        """Align shapes by least squares and check them; return the eliminated warps, too.

        Returns
        -------
        Alignment
            As of ``align``.
        DeformableProblem or None
            The warps as they were eliminated, where they were.
        """
        alignment, problem = self.solve(shapes)
        measure = partial(self.measure_influence, alignment, problem)
        return add_input_findings(alignment, self.tuning or DEFAULT, measure), problem

    def solve(self, shapes: ShapesLike) -> tuple[Alignment, DeformableProblem | None]:
        """Align shapes by least squares, without looking for mistakes in them.

        A landmark of one shape only is left out, then placed by its warp. The warps as they were
        eliminated are returned, too, where they were.
        """
        valid = as_specimens(shapes).require_alignable()
        with use_threads(n_values=valid.visible.size * self._features_per_landmark):
            shared = keep_common_landmarks(valid, self.tuning or DEFAULT)
            alignment, problem = self._align_core(shared)
            if shared.n_landmarks < valid.n_landmarks:
                alignment = place_lone_landmarks(alignment, valid)
            return alignment, problem

    def _align_core(self, shapes: Shapes) -> tuple[Alignment, DeformableProblem | None]:
        """Align shapes that are linked by their landmarks and each extended enough."""
        raise NotImplementedError

    def _align_robustly(self, shapes: Shapes, settings: Robust) -> Alignment:
        """Estimate landmark weights, align with them, and keep what they reject in the result."""
        shared = find_common_landmarks(shapes)
        core = keep_common_landmarks(shapes, self.tuning or DEFAULT)

        def fit(weights: Array, stiffness: float, start: Array) -> WeightedFit:
            with use_threads(n_values=core.visible.size * self._features_per_landmark):
                return self._fit_with_weights(core, weights, stiffness, start)

        estimated = estimate_weights(
            core.points, core.relative_weights, fit, settings, self._schedule
        )
        rejection = spread_over_landmarks(estimated, shapes, shared)
        fitted = self.solve(weigh_shapes(shapes, rejection))[0]
        measure = partial(self.measure_influence, fitted, None)
        fitted = add_input_findings(fitted, self.tuning or DEFAULT, measure)
        return self.add_rejection(fitted, shapes, rejection)

    def add_rejection(self, fitted: Alignment, shapes: Shapes, rejection: Rejection) -> Alignment:
        """Add what a robust fit rejected, with the size of its effect, to a fit with its weights.

        Parameters
        ----------
        fitted : Alignment
            By least squares, of the shapes with robust weights (``weigh_shapes``).
        shapes : Shapes
            As they were given.
        rejection : Rejection
        """
        change = None
        if rejection.landmarks.any() or rejection.shapes.any():
            change = self._measure_change(shapes, fitted)
        names, labels = shapes.names, shapes.landmarks
        rejections = check_rejection(rejection, shapes.visible, names, labels, change)
        findings = (*rejections, *fitted.findings)
        return replace(fitted, shapes=shapes, rejection=rejection, findings=findings)

    def _measure_change(self, shapes: Shapes, fitted: Alignment) -> float | None:
        """Return how far least squares of all landmarks move the reference; None if they fail."""
        try:
            unweighted = self.solve(shapes)[0]
        except DefgpaError:
            return None
        shared = (fitted.shapes.views >= 2) & (shapes.views >= 2)
        return procrustes_distance(unweighted.reference[shared], fitted.reference[shared])

    def _fit_with_weights(
        self, shapes: Shapes, weights: Array, stiffness: float, start: Array
    ) -> WeightedFit:
        """Fit shapes with landmark weights (n, m), and predict all landmarks by the warps.

        ``stiffness`` multiplies the smoothing of warps that have one; a descent may begin at
        ``start``, the reference (m, d) of the last weights.
        """
        raise NotImplementedError

    def measure_influence(
        self,
        alignment: Alignment,
        problem: DeformableProblem | None,
        shape: int,
        landmarks: Index,
    ) -> float:
        """Measure by how much the reference would change without some landmarks of a shape.

        Where deformable warps as they were eliminated are given (``problem``), that follows from
        them; otherwise the shapes are fitted without the landmarks.
        """
        shapes = alignment.shapes
        if problem is not None:
            change = problem.measure_influence(shape, landmarks, shapes)
            if change is not None:
                return change
        points = np.array(shapes.points)
        points[shape, landmarks] = np.nan
        refitted = self.solve(shapes.with_points(points))[0]
        shared = (shapes.views >= 2) & (refitted.shapes.views >= 2)
        return procrustes_distance(refitted.reference[shared], alignment.reference[shared])

    def fit_transform(self, shapes: ShapesLike, y: object = None) -> Any:
        """Fit to shapes, then transform them: the same as ``fit(shapes).transform(shapes)``."""
        return self.fit(shapes).transform(shapes)

    @property
    def reference_(self) -> Array:
        """(m, d): the reference shape."""
        return self.alignment_.reference

    @property
    def warps_(self) -> tuple[Warp, ...]:
        """One callable per shape of the fit."""
        return self.alignment_.warps

    def transform(self, shapes: ShapesLike, output: str | None = None) -> Any:
        """Register every shape onto the reference.

        A shape of the fit goes through its fitted warp, any other is registered.

        Parameters
        ----------
        shapes : Shapes, array (n, m, d), list of arrays (m, d) or DataFrame
            Those of the fit, or others.
        output : {"aligned", "superimposed", "back_projected"}, optional
            Which space of the alignment; by default that of the estimator. ``"aligned"`` holds
            what the warps left, so its components are those of the residuals; for the variation
            of shape take ``"superimposed"`` (NaN where missing) or ``"back_projected"``
            (complete).

        Returns
        -------
        ndarray of shape (n_shapes, n_landmarks, n_dims)
            Or (n_shapes, n_landmarks · n_dims), or a DataFrame: see ``set_output``.
        """
        space = output or self.output
        specimens = as_specimens(shapes)
        points = self._transform_points(specimens, space)
        return self._wrap_points(points, specimens.names, space)

    def _transform_points(self, shapes: Shapes, space: str) -> Array:
        """Register shapes; return their points (n, m, d) in a space of the alignment."""
        alignment = self.alignment_
        indices = find_shape_indices(shapes, alignment.shapes)
        warps = [
            register_shape(alignment, points, name) if index is None else alignment.warps[index]
            for points, name, index in zip(shapes.points, shapes.names, indices, strict=True)
        ]
        return map_to_space(space, shapes.points, warps, alignment.reference)

    def score(self, shapes: ShapesLike, y: object = None) -> float:
        """Return minus the RMSE of registering the shapes onto the reference: larger is better.

        Over the landmarks that at least two shapes of the fit have, as in its RMSE.
        """
        specimens = as_specimens(shapes)
        residuals = self._transform_points(specimens, "aligned") - self.reference_
        counts = ~np.isnan(residuals[..., 0]) & (self.alignment_.shapes.views >= 2)
        squares = (residuals[counts] ** 2).sum(axis=1)
        return -float(np.sqrt(average(squares, specimens.unequal_weights, counts)))


class WarpEstimator(AlignmentEstimator):
    """What the estimators have in common that fit a warp of the same family to every shape."""

    warp: WarpModel | None = None
    memory_budget: int
    _features_per_landmark = USUAL_FEATURES
    _schedule = OF_WARPS
    _problem_type = DeformableProblem

    if TYPE_CHECKING:  # a constant or a property of the subclass

        @property
        def dial(self) -> Dial | None:
            """Where between rigid and elastic; None for a method without a dial."""

    def make_method(self, dim: int) -> Method:
        """Check the parameters, and return how shapes in ``dim`` dimensions are fitted."""
        raise NotImplementedError

    def _align_core(self, shapes: Shapes) -> tuple[Alignment, DeformableProblem]:
        problem = self.eliminate_warps(shapes)
        return problem.align(self.dial), problem

    def eliminate_warps(self, shapes: Shapes) -> DeformableProblem:
        """Eliminate the warps of linked shapes; nothing of that depends on the dial."""
        method, model = self.make_method(shapes.n_dims), self.warp_model
        geometry = shapes.geometry.project_to_planes()
        rank = int(geometry.ranks.max())
        local = LocalShapes(
            geometry, shapes.names, shapes.landmarks, geometry.visible, shapes.n_dims, rank
        )
        cost = build_cost(geometry, model, self.memory_budget, method.tuning)
        return self._problem_type(shapes, local, model, method, cost)

    def _fit_with_weights(
        self, shapes: Shapes, weights: Array, stiffness: float, start: Array
    ) -> WeightedFit:
        stiff = clone(self).set_params(warp=stiffen(self.warp_model, stiffness))
        weighted = shapes.with_weights(weights)
        problem = stiff.eliminate_warps(weighted)
        # the deformable fit, also of elastic warps: poses follow stray landmarks of the same shape
        reference, coefficients = problem.fit.reference, problem.fit.coefficients
        places = find_expected_places(reference, shapes.points, weights)
        predicted, leverage = predict_landmarks(problem.cost, coefficients, shapes.points, places)
        # a fit has relative weights
        unit = weighted.relative_weights.sum() / weights.sum()
        return WeightedFit(reference, predicted, unit * leverage)

    @property
    def warp_model(self) -> WarpModel:
        """The warp model in use: the one given, or thin-plate splines; checked."""
        model = ThinPlateSpline() if self.warp is None else self.warp
        if isinstance(model, type) or not callable(getattr(model, "basis", None)):
            raise TypeError(
                f"The 'warp' parameter of {type(self).__name__} must be a warp model such as "
                "ThinPlateSpline() or Affine(): an object with a method basis(points). "
                f"Got {self.warp!r} instead."
            )
        return model


class DefGPA(WarpEstimator):
    """Deformable generalised Procrustes analysis, in closed form.

    One unknown reference shape and one warp per shape are estimated together; the solution is the
    global optimum, for any warp that is linear in its weights and for any missing landmarks.

    Parameters
    ----------
    warp : WarpModel, optional
        The family of warps; by default ``ThinPlateSpline()``, 5 control points per axis and
        relative smoothing 1e-3.
    proportions : {"rigid", "prior"} or sequence of d float
        What closes the choice inside the solved eigenspace. ``"rigid"``: the reference nearest to
        the shapes themselves under similarities. ``"prior"``: the paper's way, Λ by its
        Algorithm 1 and the largest λ on the cheapest axis. Numbers: Λ itself, the eigenvalues of
        the reference covariance, paired as in the paper.
    centering : Centering, optional
        ``SoftCentering()`` with ν = n/m by default, or ``ExactCentering()``.
    solver : EigenSolver, optional
        ``Dense()`` or ``Iterative()``; by default the first up to 500 landmarks.
    memory_budget : int
        Bytes that features may occupy before they are streamed block by block.
    output : {"aligned", "superimposed", "back_projected"}
        What ``transform`` hands on in a pipeline; components of ``"aligned"`` are those of the
        residuals, not of the shapes.
    robust : bool or Robust
        Whether landmark weights are estimated so that gross errors are left out: True, or settings.
    tuning : Tuning, optional
        Thresholds and sizes, for experts.

    Attributes
    ----------
    alignment_ : Alignment
        The result.
    reference_ : array (m, d)
        The reference shape.
    warps_ : tuple of Warp
        One callable per shape.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> base = rng.uniform(-1, 1, size=(40, 2)) * [3, 2]
    >>> shapes = [base + 0.2 * np.sin(base[:, ::-1] + rng.normal(size=2)) for _ in range(8)]
    >>> shapes[3][:5] = np.nan  # five missing landmarks
    >>> model = defgpa.DefGPA(defgpa.ThinPlateSpline(points_per_axis=5)).fit(shapes)
    >>> model.reference_.shape
    (40, 2)
    >>> bool(model.alignment_.rmse_reference < 0.05)
    True
    """

    dial = None

    def __init__(
        self,
        warp: WarpModel | None = None,
        *,
        proportions: str | Sequence[float] = "rigid",
        centering: Centering | None = None,
        solver: EigenSolver | None = None,
        memory_budget: int = DEFAULT_BUDGET,
        output: str = "aligned",
        robust: bool | Robust = False,
        tuning: Tuning | None = None,
    ) -> None:
        self.warp = warp
        self.proportions = proportions
        self.centering = centering
        self.solver = solver
        self.memory_budget = memory_budget
        self.output = output
        self.robust = robust
        self.tuning = tuning

    def make_method(self, dim: int) -> Method:
        """Check the parameters, and return how shapes in ``dim`` dimensions are fitted."""
        centering = SoftCentering() if self.centering is None else self.centering
        if isinstance(centering, type) or not hasattr(centering, "apply"):
            raise TypeError(
                "The 'centering' parameter of DefGPA must be SoftCentering() or ExactCentering(), "
                f"or None. Got {centering!r} instead."
            )
        solver = self.solver
        if solver is not None and (isinstance(solver, type) or not hasattr(solver, "find_axes")):
            raise TypeError(
                "The 'solver' parameter of DefGPA must be Dense() or Iterative(), or None. "
                f"Got {solver!r} instead."
            )
        budget = self.memory_budget
        if not (isinstance(budget, (int, float, np.number)) and budget >= 0):
            raise ValueError(
                "The 'memory_budget' parameter of DefGPA must be a number of bytes. "
                f"Got {budget!r} instead."
            )
        proportions = self.proportions
        if isinstance(proportions, str) and proportions not in ("rigid", "prior"):
            raise ValueError(
                "The 'proportions' parameter of DefGPA must be 'rigid', 'prior', or the "
                f"{dim} eigenvalues of the reference covariance. Got {proportions!r} instead."
            )
        return Method(
            proportions if isinstance(proportions, str) else check_eigenvalues(proportions, dim),
            centering,
            solver,
            self.tuning or DEFAULT,
            by_rigidity=isinstance(proportions, str) and proportions == "rigid",
        )


class ElasticGPA(WarpEstimator):
    """From rigid to elastic on one dial: between EuclideanGPA and DefGPA, and often better.

    Rigid alignment charges every deformation fully, the deformable one charges bending only. Here
    each warp departs from a pose of its shape, and pays for it: for how it bends by the smoothing
    of the warp, for how its linear part stretches and shears by the rigidity.

    Parameters
    ----------
    warp : WarpModel, optional
        The family of warps, one that contains all affine maps and does not charge them; by default
        ``ThinPlateSpline()``. ``Affine()`` is what infinite smoothing would be.
    rigidity : float
        μ, dimensionless, from 0 to infinity; 1 weighs a stretch as much as the residuals. Infinite:
        no warp stretches. Small: the linear part is nearly free. 0: it is free, which is DefGPA,
        at the size of the rest of the dial.
    scaling : bool
        Whether sizes are part of the pose (similarities), and so cost nothing.
    memory_budget : int
        Bytes that features may occupy before they are streamed block by block.
    robust : bool or Robust
        Whether landmark weights are estimated so that gross errors are left out: True, or settings.
        They are those of DefGPA with the same warp, whose residuals tell errors more clearly.
    tuning : Tuning, optional
        Thresholds and sizes, for experts.

    Notes
    -----
    Reference and poses are found by turns, each in closed form, from the rigid mean and from the
    deformable reference; the cheaper end wins. ``ElasticGPA(Affine(), rigidity=inf,
    scaling=False)`` is ``EuclideanGPA()``. With scaling every shape counts alike, whatever its
    size, where ``EuclideanGPA(scaling=True)`` lets large shapes count more: on shapes of one size
    they agree.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=(20, 2)) * [3, 2]
    >>> shapes = base + 0.1 * np.sin(base[:, ::-1] + np.arange(6)[:, None, None])
    >>> model = defgpa.ElasticGPA(rigidity=0.5).fit(shapes)
    >>> model.reference_.shape, model.alignment_.diagnostics.converged
    ((20, 2), True)
    """

    _problem_type = ElasticProblem

    def __init__(
        self,
        warp: WarpModel | None = None,
        rigidity: float = 1.0,
        scaling: bool = True,
        *,
        memory_budget: int = DEFAULT_BUDGET,
        robust: bool | Robust = False,
        tuning: Tuning | None = None,
        output: str = "aligned",
    ) -> None:
        self.warp = warp
        self.rigidity = rigidity
        self.scaling = scaling
        self.memory_budget = memory_budget
        self.robust = robust
        self.tuning = tuning
        self.output = output

    def make_method(self, dim: int) -> Method:
        """Check the parameters, and return how the deformable start of a descent is fitted."""
        return DefGPA(memory_budget=self.memory_budget, tuning=self.tuning).make_method(dim)

    @property
    def dial(self) -> Dial:
        """Where between rigid and elastic; checked."""
        rigidity = self.rigidity
        is_number = isinstance(rigidity, (int, float, np.floating, np.integer))
        if isinstance(rigidity, bool) or not (is_number and rigidity >= 0):
            raise ValueError(
                "The 'rigidity' parameter of ElasticGPA must be a number from 0 to infinity. "
                f"Got {rigidity!r} instead."
            )
        return Dial(float(rigidity), bool(self.scaling))


class EuclideanGPA(AlignmentEstimator):
    """Rigid generalised Procrustes analysis on the datum-space cost, *EUC_d in the paper.

    The benchmark that treats deformation as noise. Missing landmarks are respected, the start is
    in closed form, and second-order steps bring the gradient to zero. Where the shapes disagree so
    much that there may be several minima, or may be mirrored, other starts are tried too.

    Parameters
    ----------
    scaling : bool
        Whether the size of each shape may change too (similarities). The error is still that of
        the shapes as measured, Σ ‖D_i − (s_i S R_iᵀ + a_i)‖²: large ones weigh more than small
        ones, and the reference has their mean size. geomorph's ``gpagen`` brings every shape to
        centroid size 1, then only rotates, and projects onto a tangent plane: that is
        ``defgpa.statistics.tangent_space(shapes)``.
    reflections : bool
        Whether a shape may be mirrored.
    robust : bool or Robust
        Whether landmark weights are estimated so that gross errors are left out: True, or settings.
    output : {"aligned", "superimposed", "back_projected"}
        What ``transform`` hands on in a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(30, 2)) + 0.1 * rng.normal(size=(5, 30, 2))
    >>> a = defgpa.EuclideanGPA().fit(shapes).alignment_
    >>> bool(np.isclose(a.rmse_datum, a.rmse_reference))
    True
    """

    def __init__(
        self,
        scaling: bool = False,
        *,
        reflections: bool = False,
        robust: bool | Robust = False,
        output: str = "aligned",
    ) -> None:
        self.scaling = scaling
        self.reflections = reflections
        self.robust = robust
        self.output = output

    def _fit_with_weights(
        self, shapes: Shapes, weights: Array, stiffness: float, start: Array
    ) -> WeightedFit:
        motions = Motions(bool(self.scaling), bool(self.reflections))
        fit = fit_rigid(shapes.points, motions, shapes.names, shapes.geometry, weights, start)
        return predict_by_maps(fit, shapes.points, weights, invert_for_similarities)

    def _align_core(self, shapes: Shapes) -> tuple[Alignment, None]:
        motions = Motions(bool(self.scaling), bool(self.reflections))
        geometry = shapes.geometry
        fit = fit_rigid(shapes.points, motions, shapes.names, geometry, shapes.unequal_weights)
        votes = vote_on_sides(fit.reference, geometry)
        if not motions.reflections and (votes <= 0).any():
            # a mean of shapes and mirrored shapes is of no side: ask one of those put right
            unit_shapes = shapes.points / geometry.size[:, None, None]
            votes = vote_on_sides(
                fit_rigid(unit_shapes, ORTHOGONAL_SIMILARITY, shapes.names).reference, geometry
            )
        condition = np.ones(shapes.n_shapes)  # all singular values of a motion are its scale
        registration, rank = MotionRegistration(motions), shapes.n_dims - 1
        hinges = check_hinge(
            fit.reference, shapes.visible, rank, fit.rmse_datum, shapes.names, DEFAULT
        )
        alignment = make_datum_space_alignment(shapes, fit, votes, condition, registration, hinges)
        return alignment, None


class AffineGPA(AlignmentEstimator):
    """Affine generalised Procrustes analysis on the datum-space cost, *AFF_d in the paper.

    Full shapes: one singular value decomposition. With missing landmarks: variable projection
    from a closed-form start.

    Parameters
    ----------
    frame : {"first", "balanced"}
        Any affine change of the reference costs the same in the datum space, so a frame has to be
        chosen, and RMSE_r and the cross-validation error are to be read in it. ``"first"``: the
        affine frame of the first shape, as published. ``"balanced"``: one that favours no shape.
    robust : bool or Robust
        Whether landmark weights are estimated so that gross errors are left out: True, or settings.
    output : {"aligned", "superimposed", "back_projected"}
        What ``transform`` hands on in a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(30, 2)) + 0.1 * rng.normal(size=(5, 30, 2))
    >>> defgpa.AffineGPA().fit(shapes).reference_.shape
    (30, 2)
    """

    def __init__(
        self,
        frame: str = "first",
        *,
        robust: bool | Robust = False,
        output: str = "aligned",
    ) -> None:
        self.frame = frame
        self.robust = robust
        self.output = output

    def _fit_with_weights(
        self, shapes: Shapes, weights: Array, stiffness: float, start: Array
    ) -> WeightedFit:
        fit = fit_affine(
            shapes.points, shapes.names, shapes.geometry, weights, start, ROUND_GRADIENT
        )
        return predict_by_maps(balance_frame(fit), shapes.points, weights, invert_for_affine_maps)

    def _align_core(self, shapes: Shapes) -> tuple[Alignment, None]:
        if self.frame not in ("first", "balanced"):
            raise ValueError(
                "The 'frame' parameter of AffineGPA must be 'first' or 'balanced'. "
                f"Got {self.frame!r} instead."
            )
        geometry = shapes.geometry
        fit = fit_affine(shapes.points, shapes.names, geometry, shapes.unequal_weights)
        balanced = balance_frame(fit)
        framed = fit if self.frame == "first" else balanced
        condition = np.linalg.cond(framed.matrices)
        votes = vote_on_sides(framed.reference, geometry)
        # the balanced reference is as large as the shapes, as the errors are
        hinges = check_hinge(
            balanced.reference, shapes.visible, shapes.n_dims, fit.rmse_datum, shapes.names, DEFAULT
        )
        alignment = make_datum_space_alignment(
            shapes, framed, votes, condition, AffineRegistration(), hinges
        )
        return alignment, None


def prepare_problem(estimator: DefGPA | ElasticGPA, shapes: ShapesLike) -> DeformableProblem:
    """Eliminate the warps of shapes, on the landmarks that at least two of them share."""
    valid = as_specimens(shapes).require_alignable()
    with use_threads(n_values=valid.visible.size * estimator._features_per_landmark):
        return estimator.eliminate_warps(keep_common_landmarks(valid, estimator.tuning or DEFAULT))


def check_robust(robust: Any, owner: str) -> Robust | None:
    """Return the settings of a robust fit, or None for least squares."""
    if isinstance(robust, Robust):
        return robust
    if isinstance(robust, (bool, np.bool_)):
        return Robust() if robust else None
    raise ValueError(
        f"The 'robust' parameter of {owner} must be True, False or Robust(...). "
        f"Got {robust!r} instead."
    )


def weigh_shapes(shapes: Shapes, rejection: Rejection) -> Shapes:
    """Give shapes their robust weights; rejected ones have too little to move the reference."""
    weights = np.where(rejection.shapes[:, None], shapes.relative_weights, rejection.weights)
    return shapes.with_weights(fade_shapes(weights, rejection.shapes))
