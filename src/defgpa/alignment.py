"""The result of a fit: reference, warps, errors, and the shapes in three spaces.

Aligned: through the warps, deformation removed. Superimposed: by similarity alone, deformation
kept. Back-projected: the reference mapped into each shape by the inverse of its warp,
ĝ = warp⁻¹(S), then moved by the same similarity: complete, and as smooth as the warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Index, Mask, freeze, rms_radius
from defgpa.diagnostics.checks import check_descent_solution
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.rejection import RejectedLandmark, Rejection
from defgpa.diagnostics.solution import DescentDiagnostics, Diagnostics, SpectralDiagnostics
from defgpa.errors import DefgpaError, DegenerateShapeError, ShapeError
from defgpa.formatting import render_table
from defgpa.procrustes import SIMILARITY, Motion, fit_motions
from defgpa.shapes import Shapes, as_specimens
from defgpa.solvers.datum_space import DatumSpaceFit
from defgpa.solvers.procrustes_mean import fit_procrustes_mean
from defgpa.solvers.registration import Registration, RidgeRegistration, make_affine_warps
from defgpa.threads import use_threads
from defgpa.warps import AffineBasis, Warp

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

OUTPUTS = ("aligned", "superimposed", "back_projected")
_NEGLIGIBLE_WEIGHT = 1e-4  # share of the largest weight: below, a landmark has no say


@dataclass(frozen=True, eq=False)
class Alignment:
    """Shapes aligned by warps onto a common reference; immutable.

    Attributes
    ----------
    shapes : Shapes
        What was aligned.
    reference : array (m, d)
        The reference shape.
    warps : tuple of n Warp
        Callables from the space of each shape to the space of the reference.
    eigenvalues : array (d,)
        Λ, the eigenvalues of the reference covariance, largest first.
    diagnostics : Diagnostics
        What to look at before trusting it.
    registration : Registration
        How one more shape is brought onto the reference.
    turn : array (d, d)
        The rotation by which ``posed_like`` has turned the reference.
    findings : tuple of Finding
        What a user should be told, as values; ``fit`` has warned of them.
    rejection : Rejection, optional
        What a robust fit rejected; None for least squares.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> shapes = np.random.default_rng(0).normal(size=(1, 30, 2)) * [3, 2]
    >>> shapes = shapes + 0.1 * np.sin(2 * shapes + np.arange(5)[:, None, None])
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_
    >>> a.aligned.shape
    (5, 30, 2)
    >>> bool(0 < a.rmse_reference < 0.1)
    True
    """

    shapes: Shapes
    reference: Array
    warps: tuple[Warp, ...]
    eigenvalues: Array
    diagnostics: Diagnostics
    registration: Registration
    turn: Array
    findings: tuple[Finding, ...] = ()
    rejection: Rejection | None = None

    def __post_init__(self) -> None:
        self.reference.setflags(write=False)
        self.eigenvalues.setflags(write=False)

    def __repr__(self) -> str:
        findings = f", {len(self.findings)} findings" if self.findings else ""
        return f"Alignment of {self.shapes!r} by {self._method!r}{findings}"

    @property
    def _method(self) -> object:
        """The warp model, or the kind of motion or map of each shape."""
        return getattr(self.registration, "model", self.registration)

    def _repr_html_(self) -> str:
        rows = [
            ("shapes", repr(self.shapes)),
            ("method", repr(self._method)),
            ("RMSE of the warped landmarks", f"{self.rmse_reference:.4g}"),
            ("RMSE in the space of the shapes", f"{self.rmse_datum:.4g}"),
            ("RMS radius of the reference", f"{rms_radius(self.reference):.4g}"),
            *(("finding", str(finding)) for finding in self.findings),
        ]
        return render_table("Alignment", rows)

    @property
    def weights(self) -> Array:
        """(n, m): landmark weights of the fit; those of the shapes, reduced by a robust fit."""
        return self.shapes.weights if self.rejection is None else self.rejection.weights

    @property
    def has_weights(self) -> bool:
        """Whether landmarks count differently."""
        return self.rejection is not None or self.shapes.unequal_weights is not None

    @cached_property
    def trusted_shapes(self) -> Shapes:
        """The shapes with the weights of the fit: landmarks that a robust fit rejected are missing.

        Shapes that it rejected as a whole have the weights that were given.
        """
        if self.rejection is None:
            return self.shapes
        is_whole = self.rejection.shapes[:, None]
        return self.shapes.with_weights(
            np.where(is_whole, self.shapes.relative_weights, self.rejection.weights)
        )

    @property
    def rejected(self) -> tuple[RejectedLandmark, ...]:
        """The landmarks that a robust fit rejected one by one, the largest score first."""
        if self.rejection is None:
            return ()
        names, labels, scores = self.shapes.names, self.shapes.landmarks, self.rejection.scores
        pairs = np.argwhere(self.rejection.landmarks)
        landmarks = [RejectedLandmark(names[i], labels[j], float(scores[i, j])) for i, j in pairs]
        return tuple(sorted(landmarks, key=lambda landmark: -landmark.score))

    @property
    def rejected_shapes(self) -> tuple[str, ...]:
        """The shapes that a robust fit rejected as a whole."""
        if self.rejection is None:
            return ()
        return tuple(self.shapes.names[i] for i in np.flatnonzero(self.rejection.shapes))

    @cached_property
    def aligned(self) -> Array:
        """(n, m, d): every shape through its warp; NaN where a landmark is missing."""
        return freeze(apply_warps(self.shapes.points, self.warps))

    @cached_property
    def superimposed(self) -> Array:
        """(n, m, d): every shape by its similarity onto the reference, deformation kept.

        NaN where a landmark is missing. Use it for shape statistics of what was measured.
        """
        return freeze(self.similarities(self.shapes.points))

    @cached_property
    def similarities(self) -> Motion:
        """The similarity of each shape onto the reference, by its weights, without reflections."""
        shapes = self.trusted_shapes
        return fit_motions(shapes.points, self.reference, shapes.unequal_weights, SIMILARITY)

    @cached_property
    def mean_shape(self) -> Array:
        """(m, d): the Procrustes mean of the superimposed shapes, in the pose of the reference.

        The mean of classical generalised Procrustes analysis: every shape at unit size, rotated
        onto the mean. A missing landmark is taken from the reference projected back into its shape;
        in a shape whose visible landmarks lie nearer to the reference itself it is left out
        instead. The centroid size is the mean of those of the superimposed shapes.

        The reference is what all shapes warp onto most easily; the mean is their average. Use the
        mean where variation is measured from it.

        Examples
        --------
        >>> import numpy as np
        >>> import defgpa
        >>> rng = np.random.default_rng(0)
        >>> shapes = rng.normal(size=(30, 2)) + 0.1 * rng.normal(size=(5, 30, 2))
        >>> defgpa.DefGPA().fit(shapes).alignment_.mean_shape.shape
        (30, 2)
        """
        return freeze(fit_procrustes_mean(self._complete_where_warps_fit(), self.reference))

    def _complete_where_warps_fit(self) -> Array:
        """Fill missing landmarks of the superimposed shapes (n, m, d) whose warp predicts well."""
        visible = self.trusted_shapes.visible
        if visible.all():
            return self.superimposed
        residuals = np.where(visible[..., None], self.superimposed - self.back_projected, 0.0)
        differences = np.where(visible[..., None], self.superimposed - self.reference, 0.0)
        predicts = (residuals**2).sum(axis=(1, 2)) < (differences**2).sum(axis=(1, 2))
        missing = predicts[:, None] & ~visible & np.isfinite(self.back_projected).all(axis=2)
        measured = np.where(visible[..., None], self.superimposed, np.nan)
        return np.where(missing[..., None], self.back_projected, measured)

    @cached_property
    def back_projected(self) -> Array:
        """(n, m, d): the reference projected back into each shape, warp_i⁻¹(S), in its pose.

        Complete where landmarks are missing: the smooth part of the variation.
        """
        return freeze(self.similarities(project_reference_back(self.warps, self.reference)))

    def to_pandas(self, space: str = "superimposed") -> pd.DataFrame:
        """Return the shapes in one of the spaces as a pandas.DataFrame, one row a shape."""
        return self._get_shapes_in(space).to_pandas()

    def to_xarray(self, space: str = "superimposed") -> xr.DataArray:
        """Return the shapes of a space as an xarray.DataArray (specimen, landmark, space)."""
        return self._get_shapes_in(space).to_xarray()

    def _get_shapes_in(self, space: str) -> Shapes:
        points = map_to_space(space, self.shapes.points, self.warps, self.reference)
        return self.shapes.with_points(points)

    @cached_property
    def counted(self) -> Mask:
        """(n, m): the landmarks the error figures count.

        Those visible in two shapes or more: one in a single shape fits perfectly by construction.
        Landmarks that a robust fit rejected do not count.
        """
        counts = self.shapes.visible if self.rejection is None else self.rejection.weights > 0.0
        return freeze(counts & (self.shapes.views >= 2))

    @cached_property
    def residuals(self) -> Array:
        """(n, m): distance of each warped landmark from the reference; NaN where missing."""
        return freeze(np.linalg.norm(self.aligned - self.reference, axis=2))

    @cached_property
    def datum_residuals(self) -> Array:
        """(n, m): distance of each landmark from the reference mapped back by the inverse warp."""
        distances = np.full(self.shapes.visible.shape, np.nan)
        with use_threads():
            for i, warp in enumerate(self.warps):
                points, visible = self.shapes.points[i], self.shapes.visible[i]
                projected = warp.inverse()(self.reference[visible])
                distances[i, visible] = np.linalg.norm(points[visible] - projected, axis=1)
        return freeze(distances)

    @property
    def rmse_reference(self) -> float:
        """RMSE_r = √(Σ ‖warp_i(D_i) − S‖² / κ) over the visible landmarks."""
        return self.compute_rmse(self.residuals)

    @property
    def rmse_datum(self) -> float:
        """RMSE_d = √(Σ ‖D_i − warp_i⁻¹(S)‖² / κ) over the visible landmarks."""
        return self.compute_rmse(self.datum_residuals)

    def compute_rmse(self, distances: Array) -> float:
        """Average distances (n, m) over the landmarks that count, with their weights."""
        squares = distances[self.counted] ** 2
        weights = self.shapes.unequal_weights if self.rejection is None else self.weights
        return float(np.sqrt(average(squares, weights, self.counted)))

    @property
    def n_counted(self) -> int:
        """The number of landmarks that the error figures count, κ."""
        return int(self.counted.sum())

    @cached_property
    def foldovers(self) -> Index:
        """(n,): landmarks of each shape that have weight and lie where its warp folds over.

        Those of a negligible weight, as shapes have that a robust fit rejected, do not count.
        """
        counted = self.weights > _NEGLIGIBLE_WEIGHT * self.weights.max()
        counts = [
            warp.foldovers(points[has_weight]).sum()
            for warp, points, has_weight in zip(
                self.warps, self.shapes.points, counted, strict=True
            )
        ]
        return freeze(np.array(counts, dtype=np.intp))

    @property
    def has_affine_warps(self) -> bool:
        """Whether all warps are similarities or affine maps, which cannot fold over."""
        return all(isinstance(warp.basis, AffineBasis) for warp in self.warps)

    @property
    def spectral(self) -> SpectralDiagnostics | None:
        """The facts of the eigenproblem; None for a fit by descent."""
        diagnostics = self.diagnostics
        return diagnostics if isinstance(diagnostics, SpectralDiagnostics) else None

    @property
    def foldover_findings(self) -> tuple[Finding, ...]:
        """One finding that names the shapes whose warps fold over; none if none does."""
        names = tuple(self.shapes.names[i] for i in np.flatnonzero(self.foldovers))
        values = {"landmarks": float(self.foldovers.sum())}
        return (Finding(Problem.FOLDOVERS, shapes=names, values=values),) if names else ()

    @property
    def mirrored(self) -> tuple[str, ...]:
        """Names of the shapes that are mirrored against the majority."""
        return tuple(self.shapes.names[i] for i in np.flatnonzero(self.diagnostics.votes < 0))

    @property
    def lone_landmarks(self) -> tuple[str, ...]:
        """Landmarks of one shape only: left out of the fit, placed by the warp of that shape."""
        return tuple(self.shapes.landmarks[j] for j in np.flatnonzero(self.shapes.views == 1))

    @overload
    def register(self, points: Shapes) -> tuple[Warp, ...]: ...

    @overload
    def register(self, points: ArrayLike) -> Warp: ...

    def register(self, points: Shapes | ArrayLike) -> Warp | tuple[Warp, ...]:
        """Fit the warp of a new shape onto the reference, in closed form.

        Parameters
        ----------
        points : ndarray of shape (n_landmarks, n_dims), or several shapes
            NaN for missing landmarks.

        Returns
        -------
        Warp
            Or a tuple of warps, for Shapes or an array (n_shapes, n_landmarks, n_dims).

        Examples
        --------
        >>> import numpy as np
        >>> import defgpa
        >>> rng = np.random.default_rng(0)
        >>> base = rng.normal(size=(30, 2)) * [3, 2]
        >>> shapes = base + 0.1 * rng.normal(size=(6, 30, 2))
        >>> a = defgpa.DefGPA(defgpa.Affine()).fit(shapes[:5]).alignment_
        >>> a.register(shapes[5])(shapes[5]).shape
        (30, 2)
        """
        if isinstance(points, Shapes) or np.ndim(np.asarray(points)) == 3:
            shapes = as_specimens(points)
            pairs = zip(shapes.points, shapes.names, strict=True)
            return tuple(register_shape(self, shape, name) for shape, name in pairs)
        shape, visible = self._check_points(points)
        # as in the fit, a landmark of one shape only does not count
        shared = visible & (self.shapes.views >= 2)
        chosen = shared if shared.sum() > shape.shape[1] else visible
        return self.registration.warp(shape[chosen], self.reference[chosen])

    def posed_like(self, points: ArrayLike) -> Alignment:
        """Turn and move the solution to the pose of ``points`` (m, d)."""
        shape, visible = self._check_points(points)
        motion = fit_motions(self.reference[visible], shape[visible])
        if not motion.determined:
            raise DegenerateShapeError("The points to pose like are collinear: no pose to take.")
        turn = motion.rotation
        return self._apply_affine(turn, motion.translation, self.turn @ turn, self.eigenvalues)

    def rescaled(self, eigenvalues: ArrayLike) -> Alignment:
        """Give the reference another covariance Λ, and refit the warps.

        Λ never enters the eigenproblem and the coefficients are linear in the reference, so this is
        exact: each principal axis of the reference is stretched, and the warps with it.
        """
        if not isinstance(self.registration, RidgeRegistration):
            raise DefgpaError("Only a deformable alignment can be rescaled axis by axis.")
        values = check_eigenvalues(eigenvalues, len(self.eigenvalues))
        if not (self.eigenvalues > 0).all():
            raise DegenerateShapeError("A flat reference cannot be stretched across its plane.")
        stretch = (self.turn.T * np.sqrt(values / self.eigenvalues)) @ self.turn
        # the warps, linear in the unposed reference, carry where the pose has put its origin
        origin = np.broadcast_to(self.warps[0].offset, values.shape)
        return self._apply_affine(stretch, origin - origin @ stretch, self.turn, values)

    def _apply_affine(
        self, matrix: Array, offset: Array, turn: Array, eigenvalues: Array
    ) -> Alignment:
        """Follow all warps by y ↦ y @ matrix + offset.

        Parameters
        ----------
        matrix, offset, turn : array (d, d), (d,), (d, d)
            The affine map, and the rotation of the pose after it.
        eigenvalues : array (d,)
            Those of the covariance of the reference afterwards.
        """
        warps = tuple(warp.compose_affine(matrix, offset) for warp in self.warps)
        return replace(
            self,
            reference=self.reference @ matrix + offset,
            warps=warps,
            eigenvalues=np.array(eigenvalues),
            turn=turn,
        )

    def _check_points(self, points: ArrayLike) -> tuple[Array, Mask]:
        """Return the points (m, d) and visible landmarks (m,) of a shape that can be registered."""
        shape = Shapes.specimens([points]).require_computable().points[0]
        if shape.shape != self.reference.shape:
            raise ShapeError(
                f"A shape for this reference has {len(self.reference)} landmarks in "
                f"{self.reference.shape[1]}-D (NaN where missing); got size {shape.shape}."
            )
        visible = ~np.isnan(shape[:, 0])
        if visible.sum() <= shape.shape[1]:
            raise DegenerateShapeError(
                f"The shape has {int(visible.sum())} visible landmarks; registering it in "
                f"{shape.shape[1]}-D needs at least {shape.shape[1] + 1}."
            )
        return shape, visible


def apply_warps(points: Array, warps: Sequence[Warp]) -> Array:
    """Apply the warp of every shape to its points (n, m, d); missing landmarks stay NaN."""
    return np.stack([warp(shape) for warp, shape in zip(warps, points, strict=True)])


def project_reference_back(warps: Sequence[Warp], reference: Array) -> Array:
    """Map the reference into every shape by its inverse warp: ĝ_i = warp_i⁻¹(S), (n, m, d)."""
    with use_threads():
        return np.stack([warp.inverse()(reference) for warp in warps])


def back_project(points: Array, warps: Sequence[Warp], reference: Array) -> Array:
    """Project the reference back into every shape, superimposed like it (n, m, d)."""
    pose = fit_motions(points, reference, motions=SIMILARITY)
    return np.asarray(pose(project_reference_back(warps, reference)))


def map_to_space(output: str, points: Array, warps: Sequence[Warp], reference: Array) -> Array:
    """Map shapes (n, m, d) to one of the spaces, by its name."""
    if output == "superimposed":  # nothing is mirrored: a specimen of the other side keeps its own
        return np.asarray(fit_motions(points, reference, motions=SIMILARITY)(points))
    if output == "back_projected":
        return back_project(points, warps, reference)
    if output == "aligned":
        return apply_warps(points, warps)
    raise ValueError(
        f"The 'output' parameter must be 'aligned' (through the warps, deformation removed), "
        f"'superimposed' (by similarity, deformation kept) or 'back_projected' (the reference, "
        f"projected back into each shape). Got {output!r} instead."
    )


def register_shape(alignment: Alignment, points: Array, name: str) -> Warp:
    """Fit the warp of a new shape; errors name the shape."""
    try:
        return alignment.register(points)
    except DefgpaError as error:
        raise type(error)(f"Shape {name!r} cannot be registered. {error}") from None


def check_eigenvalues(eigenvalues: ArrayLike, n_dims: int) -> Array:
    """Return d positive eigenvalues, the largest first, or raise a ValueError."""
    array = np.asarray(eigenvalues)
    values = array.astype(np.float64) if array.dtype.kind in "iuf" else np.full(1, np.nan)
    if values.shape != (n_dims,) or not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(
            f"The eigenvalues of the reference covariance must be {n_dims} positive numbers. "
            f"Got {eigenvalues!r} instead."
        )
    return np.sort(values)[::-1]


def find_shape_indices(shapes: Shapes, fitted: Shapes) -> Sequence[int | None]:
    """Find the index of each shape among fitted ones with the very same points, or None."""
    if np.array_equal(shapes.points, fitted.points, equal_nan=True):
        return range(len(fitted))  # a shape that is there twice goes through its own warp
    indices = {points.tobytes(): i for i, points in enumerate(fitted.points)}
    return [indices.get(points.tobytes()) for points in shapes.points]


def average(values: Array, weights: Array | None, chosen: Mask) -> float:
    """Average the values of chosen landmarks (n, m), with their weights (n, m) where there are."""
    return float(
        np.mean(values) if weights is None else np.average(values, weights=weights[chosen])
    )


def make_datum_space_alignment(
    shapes: Shapes,
    fit: DatumSpaceFit,
    votes: Index,
    condition: Array,
    registration: Registration,
    findings: tuple[Finding, ...],
) -> Alignment:
    """Make the alignment of a datum-space fit; ``condition`` (n,) is that of each affine map."""
    facts = DescentDiagnostics(
        votes=votes,
        condition=condition,
        iterations=fit.iterations,
        gradient=fit.gradient_norm,
        converged=fit.converged,
    )
    centred = fit.reference - fit.reference.mean(axis=0)
    eigenvalues = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    return Alignment(
        shapes,
        fit.reference,
        make_affine_warps(fit.matrices, fit.offsets),
        np.maximum(eigenvalues, 0.0),
        facts,
        registration,
        np.eye(shapes.n_dims),
        (*check_descent_solution(facts, shapes.names), *findings),
    )
