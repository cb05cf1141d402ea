"""The estimators: parameters in, an Alignment out, with scikit-learn's manners."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from defgpa._arrays import Array, frozen
from defgpa.alignment import Alignment, checked_eigenvalues, shape_indices
from defgpa.diagnostics import Diagnostics
from defgpa.errors import DefgpaWarning, ShapeError, listed
from defgpa.shapes import Shapes, as_shapes
from defgpa.solve.align import Solution, require_extended, solve
from defgpa.solve.centering import Centering, SoftCentering
from defgpa.solve.cost import DEFAULT_BUDGET
from defgpa.solve.covariance import covariance_prior
from defgpa.solve.linkage import require_linked, shared_landmarks
from defgpa.solve.registration import RidgeRegistration
from defgpa.solve.spectral import EigenSolver
from defgpa.warps import ThinPlateSpline, Warp, WarpModel

ShapesLike = Shapes | ArrayLike | Sequence[ArrayLike]

AMBIGUOUS_GAP = 1e-3  # relative spectral gap below which another reference would do as well
HANDFUL = 0.9  # share of an axis that a handful of landmarks must not carry


class _AlignmentEstimator(BaseEstimator):
    """What all estimators do with the alignment they have made."""

    alignment_: Alignment

    @property
    def reference_(self) -> Array:
        """(m, d): the reference shape."""
        return self._fitted().reference

    @property
    def warps_(self) -> tuple[Warp, ...]:
        """One callable per shape of the fit."""
        return self._fitted().warps

    def transform(self, shapes: ShapesLike) -> Array:
        """(n, m, d): every shape registered onto the reference.

        A shape of the fit goes through its fitted warp, any other is registered.
        """
        alignment = self._fitted()
        given = _new_shapes(shapes)
        known = shape_indices(given, alignment.shapes)
        warps = [
            alignment.register(own) if number is None else alignment.warps[number]
            for own, number in zip(given.points, known, strict=True)
        ]
        return np.stack([warp(own) for warp, own in zip(warps, given.points, strict=True)])

    def score(self, shapes: ShapesLike, y: object = None) -> float:
        """Minus the RMSE of registering the shapes onto the reference: larger is better."""
        residuals = self.transform(shapes) - self.reference_
        seen = ~np.isnan(residuals[..., 0])
        return -float(np.sqrt((residuals[seen] ** 2).sum(axis=1).mean()))

    def _fitted(self) -> Alignment:
        if not hasattr(self, "alignment_"):
            raise NotFittedError(
                f"This {type(self).__name__} has not been fitted yet: call fit(shapes) first."
            )
        return self.alignment_


class DefGPA(_AlignmentEstimator):
    """Deformable generalised Procrustes analysis, in closed form.

    One unknown reference shape and one warp per shape are estimated together; the solution is the
    global optimum, for any warp that is linear in its weights and for any missing landmarks.

    Parameters
    ----------
    warp : WarpModel, optional
        The family of warps; by default ``ThinPlateSpline()``, 5 control points per axis and
        relative smoothing 1e-3.
    scale : sequence of d float, optional
        Λ, the eigenvalues of the reference covariance. By default they are estimated from the
        shapes (Algorithm 1 of the paper).
    centering : Centering, optional
        ``SoftCentering()`` with ν = n/m by default, or ``ExactCentering()``.
    solver : EigenSolver, optional
        ``Dense()`` or ``Iterative()``; by default the first up to 1000 landmarks.
    memory_budget : int
        Bytes that features may occupy before they are streamed block by block.

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
    >>> shapes[3][:5] = np.nan  # five landmarks that were not seen
    >>> model = defgpa.DefGPA(defgpa.ThinPlateSpline(points_per_axis=5)).fit(shapes)
    >>> model.reference_.shape
    (40, 2)
    >>> bool(model.alignment_.rmse_reference < 0.05)
    True
    """

    def __init__(
        self,
        warp: WarpModel | None = None,
        *,
        scale: Sequence[float] | None = None,
        centering: Centering | None = None,
        solver: EigenSolver | None = None,
        memory_budget: int = DEFAULT_BUDGET,
    ) -> None:
        self.warp = warp
        self.scale = scale
        self.centering = centering
        self.solver = solver
        self.memory_budget = memory_budget

    def fit(self, shapes: ShapesLike, y: object = None) -> Self:
        """Align the shapes (Shapes, an (n, m, d) array with NaN, or a list of (m, d) arrays)."""
        self.alignment_ = self._aligned(as_shapes(shapes).require_alignable())
        return self

    def fit_transform(self, shapes: ShapesLike, y: object = None) -> Array:
        """The same as ``fit(shapes).transform(shapes)``."""
        return self.fit(shapes).transform(shapes)

    def _aligned(self, shapes: Shapes) -> Alignment:
        self._check_parameters()
        model = _checked_model(self.warp)
        shared = shared_landmarks(shapes)
        core = shapes if len(shared) == shapes.n_landmarks else _core(shapes, shared)
        require_linked(core)
        require_extended(core)
        eigenvalues = self._eigenvalues(core)
        solution = solve(
            core,
            model,
            eigenvalues,
            SoftCentering() if self.centering is None else self.centering,
            self.solver,
            self.memory_budget,
        )
        warps = tuple(map(Warp, solution.bases, solution.weights))
        reference = _with_lone_landmarks(solution.reference, shapes, shared, warps)
        return Alignment(
            shapes,
            frozen(reference),
            warps,
            frozen(eigenvalues),
            _diagnosed(solution, shapes, core, shared, warps),
            RidgeRegistration(model),
            np.eye(shapes.dim),
        )

    def _check_parameters(self) -> None:
        _require_part(self.centering, "applied", "centering", "SoftCentering() or ExactCentering()")
        _require_part(self.solver, "axes", "solver", "Dense() or Iterative()")
        budget = self.memory_budget
        if not (isinstance(budget, (int, float, np.number)) and budget >= 0):
            raise ValueError(
                "The 'memory_budget' parameter of DefGPA must be a number of bytes. "
                f"Got {budget!r} instead."
            )

    def _eigenvalues(self, shapes: Shapes) -> Array:
        if self.scale is not None:
            return checked_eigenvalues(self.scale, shapes.dim)
        return covariance_prior(shapes.points, shapes.visible, shapes.names)


def _new_shapes(shapes: Any) -> Shapes:
    return shapes if isinstance(shapes, Shapes) else Shapes.specimens(shapes)


def _checked_model(warp: Any) -> WarpModel:
    model = ThinPlateSpline() if warp is None else warp
    if isinstance(model, type) or not callable(getattr(model, "basis", None)):
        raise TypeError(
            "The 'warp' parameter of DefGPA must be a warp model such as ThinPlateSpline() or "
            f"Affine(): an object with a method basis(points). Got {warp!r} instead."
        )
    return model


def _require_part(value: Any, method: str, name: str, examples: str) -> None:
    """A TypeError unless ``value`` is None or an object with this method."""
    if value is not None and (
        isinstance(value, type) or not callable(getattr(value, method, None))
    ):
        raise TypeError(
            f"The '{name}' parameter of DefGPA must be {examples}, or None. Got {value!r} instead."
        )


def _core(shapes: Shapes, shared: Any) -> Shapes:
    """The shapes on the landmarks that at least two of them see."""
    lone = np.setdiff1d(np.arange(shapes.n_landmarks), shared)
    if len(shared) <= shapes.dim:
        raise ShapeError(
            f"Only {len(shared)} landmarks are seen in more than one shape; aligning in "
            f"{shapes.dim}-D needs at least {shapes.dim + 1}."
        )
    return shapes.without(lone)


def _with_lone_landmarks(core: Array, shapes: Shapes, shared: Any, warps: Sequence[Warp]) -> Array:
    """The reference of all landmarks: one seen once stands where its shape's warp puts it."""
    if len(core) == shapes.n_landmarks:
        return core
    reference = np.empty((shapes.n_landmarks, shapes.dim))
    reference[shared] = core
    for j in np.setdiff1d(np.arange(shapes.n_landmarks), shared):
        seer = int(np.argmax(shapes.visible[:, j]))
        reference[j] = warps[seer](shapes.points[seer, j][None])[0]
    return reference


def _diagnosed(
    solution: Solution, shapes: Shapes, core: Shapes, shared: Any, warps: tuple[Warp, ...]
) -> Diagnostics:
    lone = np.setdiff1d(np.arange(shapes.n_landmarks), shared)
    mirrored = tuple(shapes.names[i] for i in np.flatnonzero(solution.votes < 0))
    found = Diagnostics(
        spectrum=solution.spectrum.values,
        gap=_relative_gap(solution.spectrum.values, shapes.dim),
        translation_cost=solution.translation_cost,
        votes=solution.votes,
        mirrored=mirrored,
        condition=solution.condition,
        free_directions=solution.free_directions,
        views=shapes.views,
        lone_landmarks=tuple(shapes.landmarks[j] for j in lone),
        method=solution.spectrum.method,
        storage=solution.storage,
        residuals=solution.spectrum.residuals,
        products=solution.spectrum.products,
        warnings=(),
        warps=warps,
        points=shapes.points,
    )
    messages = tuple(_worries(found, solution, shapes, core))
    for message in messages:
        warnings.warn(message, DefgpaWarning, stacklevel=5)
    return replace(found, warnings=messages)


def _relative_gap(values: Array, dim: int) -> float:
    if len(values) <= dim or not values[dim] > 0:
        return 0.0
    return float((values[dim] - values[dim - 1]) / values[dim])


def _worries(found: Diagnostics, solution: Solution, shapes: Shapes, core: Shapes) -> list[str]:
    """What a user should be told, one sentence each."""
    checks: list[Callable[[], str | None]] = [
        lambda: _lone_worry(found),
        lambda: _mirror_worry(found),
        lambda: _free_worry(found, shapes),
        lambda: _gap_worry(found, solution, shapes.n_shapes),
        lambda: _handful_worry(solution, core),
        lambda: _unsettled_worry(solution),
    ]
    return [message for check in checks if (message := check()) is not None]


def _lone_worry(found: Diagnostics) -> str | None:
    if not found.lone_landmarks:
        return None
    return (
        f"Landmark {listed(found.lone_landmarks)} is seen in one shape only and tells nothing "
        "about the reference: it was left out of the solve and placed by that shape's warp."
    )


def _mirror_worry(found: Diagnostics) -> str | None:
    if not found.mirrored:
        return None
    return (
        f"Shape {listed(found.mirrored)} is mirrored against the majority. If that is not "
        "meant, negate one coordinate of it, or check for swapped left and right landmarks."
    )


def _free_worry(found: Diagnostics, shapes: Shapes) -> str | None:
    free = np.flatnonzero(found.free_directions)
    if not len(free):
        return None
    return (
        f"The warp of shape {listed(shapes.names[i] for i in free)} has directions that neither "
        "its landmarks nor the penalty determine (flat or coincident points, or no smoothing); "
        "the smallest was taken. More smoothing or fewer control points would settle them."
    )


def _gap_worry(found: Diagnostics, solution: Solution, n: int) -> str | None:
    values = solution.spectrum.values
    d = solution.axes.shape[1]
    if len(values) <= d:
        return None
    rounding = 1e3 * np.finfo(np.float64).eps * n
    if found.gap > AMBIGUOUS_GAP and values[d] - values[d - 1] > rounding:
        return None
    return (
        f"The spectral gap is nearly zero ({values[d - 1]:.3g} against {values[d]:.3g}): another "
        "reference would do as well. Use a stiffer warp, or check how the shapes are linked."
    )


def _handful_worry(solution: Solution, core: Shapes) -> str | None:
    """An axis that lives on a few landmarks is an artefact of how they are seen."""
    few = core.dim + 1
    if core.n_landmarks < 4 * few:
        return None
    mass = np.partition(solution.axes**2, -few, axis=0)[-few:]
    if not (mass.sum(axis=0) > HANDFUL).any():
        return None
    axis = int(np.argmax(mass.sum(axis=0)))
    carriers = np.argsort(-np.abs(solution.axes[:, axis]))[:few]
    return (
        f"Axis {axis + 1} of the reference is carried by landmarks "
        f"{listed(core.landmarks[j] for j in carriers)} alone: they are weakly tied to the "
        "others. Check them, or leave them out."
    )


def _unsettled_worry(solution: Solution) -> str | None:
    spectrum = solution.spectrum
    if spectrum.settled:
        return None
    return (
        f"The iterative solver stopped after {spectrum.products} products with a residual of "
        f"{spectrum.residuals.max():.3g}: the reference may be inaccurate. Use "
        "Iterative(most_products=...) or Dense()."
    )
