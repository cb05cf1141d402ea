"""Principal components of shape: the directions in which shapes of unit size differ most.

Tangent coordinates x of the specimens (see `defgpa.statistics.sample`), their mean, and the
eigenvectors of their covariance over n − 1. Of the reference projected back into each specimen,
ĝ_i = warp_i⁻¹(S), they are those of the smooth part of the variation, which the warps follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.extmath import svd_flip

from defgpa.alignment import OUTPUTS, Alignment, find_shape_indices, map_to_space, register_shape
from defgpa.arrays import Array, Index
from defgpa.completion.gaussian import Hyperparameters, ShapeGaussian, compute_trust, fill_gaps
from defgpa.errors import ShapeError, format_names
from defgpa.procrustes import fit_motions
from defgpa.shapes import Shapes, ShapesLike, as_specimens
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, Sample, build_sample, impute_tangents
from defgpa.statistics.sums_of_squares import sum_squares
from defgpa.tangent_space import measure_sizes, scale_to_unit_size


class ShapePCA(TransformerMixin, BaseEstimator):
    """Principal components of shape, after pose and size.

    Parameters
    ----------
    n_components : int, optional
        How many to keep; by default all that vary.
    space : {"superimposed", "back_projected", "aligned"}
        Which space of an alignment: the specimens, completed (the classical analysis); the
        reference projected back into each specimen, only what the warps follow; or what the warps
        leave, whose components are those of the residuals.
    n_imputations : int
        Where landmarks were completed, so many completions are drawn from their uncertainty, and
        their covariances averaged. 0 takes the expected completion alone, which understates the
        variance.
    superimpose : bool
        False for coordinates that have been superimposed before.

    Attributes
    ----------
    scores_ : array (n, k)
        Of the shapes of the fit.
    components_ : array (k, m, d)
        Orthonormal; the largest entry of each is positive.
    explained_variance_ : array (k,)
        Eigenvalues of the covariance over n − 1.
    explained_variance_ratio_ : array (k,)
        Their shares of all the variance.
    mean_ : array (m, d)
        The mean shape, at centroid size 1.
    coordinates_ : array (n, m, d)
        Tangent coordinates of the shapes of the fit.
    sums_of_squares_ : SumsOfSquares or None
        Smooth variation and the rest, of an alignment.
    space_ : str
        The space of an alignment that was analysed; empty for arrays and Shapes.
    provenance_ : Provenance
        Which coordinates were analysed, and how many landmarks were completed.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=(12, 2))
    >>> shapes = base + 0.1 * rng.normal(size=(9, 1, 1)) * np.sin(base) + 0.01 * base[::-1]
    >>> pca = ShapePCA(2).fit(defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_)
    >>> pca.scores_.shape, pca.components_.shape, bool(pca.explained_variance_ratio_[0] > 0.9)
    ((9, 2), (2, 12, 2), True)
    >>> pca.shape_at({1: 2.0}).shape
    (12, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        space: str = "superimposed",
        n_imputations: int = 0,
        superimpose: bool = True,
    ) -> None:
        self.n_components = n_components
        self.space = space
        self.n_imputations = n_imputations
        self.superimpose = superimpose

    def fit(self, shapes: Analysed, y: object = None) -> Self:
        """Analyse an alignment, Shapes, an (n, m, d) array with NaN, a list of (m, d), a Sample."""
        if self.space not in OUTPUTS:
            raise ValueError(
                f"The 'space' parameter of ShapePCA must be one of {format_names(OUTPUTS)}. "
                f"Got {self.space!r} instead."
            )
        self._alignment = shapes if isinstance(shapes, Alignment) else None
        self.space_ = self.space if self._alignment is not None else ""
        self._shapes = (
            shapes.shapes if isinstance(shapes, Alignment | Sample) else as_specimens(shapes)
        )
        if len(self._shapes) < 2:
            raise ShapeError(f"Components need at least 2 shapes; got {len(self._shapes)}.")
        sample, draws = impute_tangents(self._build_sample(shapes), self.n_imputations, seed=0)
        x = sample.tangents
        self.provenance_ = sample.provenance
        self.coordinates_ = x
        self.mean_ = x.mean(axis=0)
        U, sigma, axes = np.linalg.svd(self._pool(draws), full_matrices=False)
        k = self._count_components(int((sigma > 1e-10 * sigma[0]).sum()))  # others are rounding
        axes = svd_flip(U, axes, u_based_decision=False)[1][:k]  # largest entries are positive
        variances = sigma**2 / (len(x) - 1)
        self.components_ = axes.reshape(k, *self.mean_.shape)
        self.explained_variance_ = variances[:k]
        self.explained_variance_ratio_ = variances[:k] / variances.sum()
        self.scores_ = (x - self.mean_).reshape(len(x), -1) @ axes.T
        self.sums_of_squares_ = None if self._alignment is None else sum_squares(self._alignment)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parameters = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "scores_"):
            return parameters
        (n, k), (m, d) = self.scores_.shape, self.mean_.shape
        return f"{parameters} fitted to {n} shapes, {m} landmarks, {d}-D: {k} components"

    def transform(self, shapes: ShapesLike | Alignment) -> Array:
        """Compute the scores (n, k) of shapes, fitted or new, with missing landmarks allowed.

        After a fit to an alignment, new specimens are registered onto its reference first where
        its space asks for that.
        """
        self._require_fitted()
        x = self._compute_deviations(shapes)
        return x.reshape(len(x), -1) @ self.components_.reshape(len(self.components_), -1).T

    def inverse_transform(self, scores: ArrayLike) -> Array:
        """Return the shapes (n, m, d), at unit size, that have these scores (n, k)."""
        self._require_fitted()
        rows = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        if rows.ndim != 2 or rows.shape[1] != len(self.components_):
            raise ValueError(
                f"Scores must be (n, {len(self.components_)}), a column a component; "
                f"got size {rows.shape}."
            )
        return np.asarray(self.mean_ + np.tensordot(rows, self.components_, 1))

    def shape_at(self, deviations: Mapping[int, float]) -> Array:
        """Return the shape (m, d) so many standard deviations along components counted from 1.

        ``{1: 2.0, 3: -1.0}``: two along the first, minus one along the third.
        """
        self._require_fitted()
        scores = np.zeros(len(self.components_))
        for number, deviation in deviations.items():
            k = self._find_components([number])[0]
            scores[k] = deviation * np.sqrt(self.explained_variance_[k])
        return np.asarray(self.inverse_transform(scores)[0])

    def without(
        self, components: Iterable[int], shapes: ShapesLike | Alignment | None = None
    ) -> Array:
        """Project components (counted from 1) out of shapes (n, m, d), at unit size.

        Those of the fit, or others: the opening of a mouth that swamps everything is removed.
        """
        self._require_fitted()
        x = self.coordinates_ - self.mean_ if shapes is None else self._compute_deviations(shapes)
        axes = self.components_[self._find_components(components)]
        projections = np.tensordot(x, axes, axes=([1, 2], [1, 2]))
        return np.asarray(self.mean_ + x - np.tensordot(projections, axes, 1))

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> NDArray[np.object_]:
        """Return ``PC1, PC2, …``; ``residual PC1, …`` where the warps had removed deformation."""
        self._require_fitted()
        heads = () if input_features is None else input_features
        of_residuals = self.space_ == "aligned" or any(str(h).startswith("aligned:") for h in heads)
        word = "residual PC" if of_residuals else "PC"
        return np.array([f"{word}{k + 1}" for k in range(len(self.components_))], dtype=object)

    def _build_sample(self, shapes: Analysed) -> Sample:
        if self.space != "aligned" or not isinstance(shapes, Alignment):
            space = self.space if isinstance(shapes, Alignment) else "superimposed"
            return build_sample(shapes, space=space, superimpose=self.superimpose)
        residual = shapes.shapes.with_points(fill_gaps(shapes.aligned))
        missing = ~shapes.shapes.visible
        n_missing = int(missing.sum())
        method = "statistics" if n_missing else ""
        provenance = Provenance("aligned", len(residual), missing.size, n_missing, method)
        return Sample(residual, measure_sizes(residual.points), provenance)

    def _pool(self, draws: Sequence[Array]) -> Array:
        """Stack the deviations (k n, m d) of all draws, so that their covariances are averaged."""
        rows = []
        for draw in draws:
            posed = draw
            if len(draws) > 1:
                posed = draw @ fit_motions(draw.mean(axis=0), self.mean_).rotation
            rows.append((posed - posed.mean(axis=0)).reshape(len(posed), -1))
        return np.concatenate(rows) / np.sqrt(len(rows))

    def _compute_deviations(self, shapes: ShapesLike | Alignment) -> Array:
        """Compute deviations (n, m, d) from the mean shape, in the tangent space there.

        A shape of the fit is where the fit has it, whatever filled its gaps.
        """
        if shapes is self._alignment and self._alignment is not None:
            return np.asarray(self.coordinates_ - self.mean_)
        if isinstance(shapes, Alignment):
            return self._project(np.asarray(getattr(shapes, self.space)))
        specimens = as_specimens(shapes)
        if specimens.points.shape[1:] != self.mean_.shape:
            raise ShapeError(
                f"These components are of {self.mean_.shape[0]} landmarks in "
                f"{self.mean_.shape[1]}-D; got shapes of size {specimens.points.shape[1:]}."
            )
        indices = find_shape_indices(specimens, self._shapes)
        numbers = np.array([-1 if k is None else k for k in indices])
        is_new = numbers < 0
        deviations = np.empty(specimens.points.shape)
        deviations[~is_new] = (self.coordinates_ - self.mean_)[numbers[~is_new]]
        if is_new.any():
            new = specimens.take(np.flatnonzero(is_new))
            trust = compute_trust(specimens) if self.space_ in ("", "superimposed") else None
            rows = None if trust is None else trust[is_new]
            deviations[is_new] = self._project(self._transform_to_space(new), rows)
        return deviations

    def _project(self, points: Array, trust: Array | None = None) -> Array:
        """Compute x − (x·c) c for shapes, completed, at unit size and rotated onto the mean c."""
        complete = self._complete(points, trust)
        if not self.superimpose:
            return np.asarray(complete - self.mean_)
        shapes = scale_to_unit_size(complete)
        rotated = shapes @ fit_motions(shapes, self.mean_).rotation
        projections = np.einsum("nmd,md->n", rotated, self.mean_)
        return np.asarray(rotated - projections[:, None, None] * self.mean_)

    def _transform_to_space(self, shapes: Shapes) -> Array:
        """Bring new shapes into the space that was analysed, (n, m, d)."""
        if self._alignment is None or self.space_ == "superimposed":
            return shapes.points
        a = self._alignment
        pairs = zip(shapes.points, shapes.names, strict=True)
        warps = [register_shape(a, points, name) for points, name in pairs]
        return map_to_space(self.space_, shapes.points, warps, a.reference)

    def _complete(self, points: Array, trust: Array | None) -> Array:
        """Fill gaps of shapes (n, m, d) by the statistics of the shapes of the fit."""
        is_doubtful = np.isnan(points[..., 0]) if trust is None else trust < 1.0
        numbers = np.flatnonzero(is_doubtful.any(axis=1))
        if not len(numbers):
            return points
        gaussian = ShapeGaussian(self.coordinates_, Hyperparameters())
        complete = np.array(points)
        for i in numbers:
            row = None if trust is None else trust[i]
            complete[i] = gaussian.complete(points[i], row).points
        return complete

    def _count_components(self, available: int) -> int:
        wanted = self.n_components
        if wanted is None:
            return available
        if not isinstance(wanted, (int, np.integer)) or not 1 <= wanted <= available:
            raise ValueError(
                f"The 'n_components' parameter of ShapePCA must be 1 to {available}, as many as "
                f"vary here, or None. Got {wanted!r} instead."
            )
        return int(wanted)

    def _find_components(self, numbers: Iterable[int]) -> Index:
        """Return the indices of components counted from 1."""
        indices = np.array([int(number) - 1 for number in numbers], dtype=np.intp)
        if ((indices < 0) | (indices >= len(self.components_))).any():
            raise ValueError(
                f"Components are counted from 1 to {len(self.components_)}. "
                f"Got {format_names(indices + 1)}."
            )
        return indices

    def _require_fitted(self) -> None:
        if not hasattr(self, "components_"):
            raise NotFittedError("This ShapePCA has not been fitted yet: call fit(shapes) first.")
