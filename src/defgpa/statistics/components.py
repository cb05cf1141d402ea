"""Principal components of shape: the directions in which shapes of unit size differ most.

Tangent coordinates x of all shapes (see `tangent_space`), their mean, and the eigenvectors of
their covariance over n − 1. For arrays, shapes and superimposed alignments without gaps that is
the classical analysis. Of the carried reference ĝ_i = warp_i⁻¹(S) it is that of the smooth part of
the variation: complete where landmarks are missing, without a model of what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.extmath import svd_flip

from defgpa._arrays import Array, Index
from defgpa.alignment import OUTPUTS, Alignment, in_space, registered, shape_indices
from defgpa.errors import ShapeError, listed
from defgpa.procrustes import stacked
from defgpa.shapes import Shapes, ShapesLike
from defgpa.statistics.conditional import Dials, ShapeGaussian, without_gaps
from defgpa.statistics.tangent import (
    as_specimens,
    centroid_sizes,
    filled,
    tangent_space,
    unit_size,
)


@dataclass(frozen=True)
class SumsOfSquares:
    """How much of the variation is smooth, at unit centroid size.

    Attributes
    ----------
    smooth : float
        Σ ‖ĝ_i − mean‖² in the tangent space of the carried reference.
    rest : float
        Σ ‖D_i − ĝ_i‖² over what is seen: what the warps do not follow.
    """

    smooth: float
    rest: float


class ShapePCA(TransformerMixin, BaseEstimator):
    """Principal components of shape, after pose and size.

    Parameters
    ----------
    n_components : int, optional
        How many to keep; by default all that vary.
    space : {"superimposed", "back_projected", "aligned"}
        Which space of an alignment: what was measured (the classical analysis; gaps are filled
        by statistics), the reference carried into each shape (smooth, complete), or what the
        warps left, whose components are those of the residuals. Arrays and Shapes are taken as
        they are.

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
        What was analysed; empty for arrays and Shapes.

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

    def __init__(self, n_components: int | None = None, *, space: str = "superimposed") -> None:
        self.n_components = n_components
        self.space = space

    def fit(self, shapes: ShapesLike | Alignment, y: object = None) -> Self:
        """Analyse an alignment, Shapes, an (n, m, d) array with NaN, or a list of (m, d)."""
        if self.space not in OUTPUTS:
            raise ValueError(
                f"The 'space' parameter of ShapePCA must be one of {listed(OUTPUTS)}. "
                f"Got {self.space!r} instead."
            )
        self._alignment = shapes if isinstance(shapes, Alignment) else None
        self.space_ = self.space if self._alignment is not None else ""
        self._shapes = shapes.shapes if isinstance(shapes, Alignment) else as_specimens(shapes)
        measured = getattr(shapes, self.space) if self._alignment else self._shapes.points
        x = tangent_space(without_gaps(measured))
        if len(x) < 2:
            raise ShapeError(f"Components need at least 2 shapes; got {len(x)}.")
        self.coordinates_ = x
        self.mean_ = x.mean(axis=0)
        deviations = (x - self.mean_).reshape(len(x), -1)
        U, sigma, axes = np.linalg.svd(deviations, full_matrices=False)
        k = self._how_many(int((sigma > 1e-10 * sigma[0]).sum()))  # others are rounding
        axes = svd_flip(U, axes, u_based_decision=False)[1][:k]  # largest entries are positive
        variances = sigma**2 / (len(x) - 1)
        self.components_ = axes.reshape(k, *self.mean_.shape)
        self.explained_variance_ = variances[:k]
        self.explained_variance_ratio_ = variances[:k] / variances.sum()
        self.scores_ = deviations @ axes.T
        self.sums_of_squares_ = None if self._alignment is None else _sums(self._alignment)
        return self

    def transform(self, shapes: ShapesLike | Alignment) -> Array:
        """(n, k): scores of shapes, those of the fit or new ones, gaps allowed.

        After a fit to an alignment, new specimens are registered onto its reference first where
        its space asks for that.
        """
        self._require_fitted()
        x = self._deviations(shapes)
        return x.reshape(len(x), -1) @ self.components_.reshape(len(self.components_), -1).T

    def inverse_transform(self, scores: ArrayLike) -> Array:
        """(n, m, d): the shapes, at unit size, that have these scores (n, k)."""
        self._require_fitted()
        given = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        if given.ndim != 2 or given.shape[1] != len(self.components_):
            raise ValueError(
                f"Scores must be (n, {len(self.components_)}), a column a component; "
                f"got size {given.shape}."
            )
        return np.asarray(self.mean_ + np.tensordot(given, self.components_, 1))

    def shape_at(self, deviations: Mapping[int, float]) -> Array:
        """(m, d): the shape so many standard deviations along components counted from 1.

        ``{1: 2.0, 3: -1.0}``: two along the first, minus one along the third.
        """
        self._require_fitted()
        scores = np.zeros(len(self.components_))
        for number, many in deviations.items():
            k = self._places([number])[0]
            scores[k] = many * np.sqrt(self.explained_variance_[k])
        return np.asarray(self.inverse_transform(scores)[0])

    def without(
        self, components: Iterable[int], shapes: ShapesLike | Alignment | None = None
    ) -> Array:
        """(n, m, d): shapes, at unit size, with components (counted from 1) projected out.

        Those of the fit, or others: the opening of a mouth that swamps everything is removed.
        """
        self._require_fitted()
        x = self.coordinates_ - self.mean_ if shapes is None else self._deviations(shapes)
        axes = self.components_[self._places(components)]
        along = np.tensordot(x, axes, axes=([1, 2], [1, 2]))
        return np.asarray(self.mean_ + x - np.tensordot(along, axes, 1))

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> NDArray[np.object_]:
        """``PC1, PC2, …``; ``residual PC1, …`` where the warps had removed the deformation."""
        self._require_fitted()
        heads = () if input_features is None else input_features
        of_residuals = self.space_ == "aligned" or any(str(h).startswith("aligned:") for h in heads)
        word = "residual PC" if of_residuals else "PC"
        return np.array([f"{word}{k + 1}" for k in range(len(self.components_))], dtype=object)

    def _deviations(self, shapes: ShapesLike | Alignment) -> Array:
        """(n, m, d): in the tangent space at the mean shape, from the mean.

        A shape of the fit is where the fit has it, whatever filled its gaps.
        """
        if shapes is self._alignment and self._alignment is not None:
            return np.asarray(self.coordinates_ - self.mean_)
        if isinstance(shapes, Alignment):
            return self._projected(np.asarray(getattr(shapes, self.space)))
        given = as_specimens(shapes)
        if given.points.shape[1:] != self.mean_.shape:
            raise ShapeError(
                f"These components are of {self.mean_.shape[0]} landmarks in "
                f"{self.mean_.shape[1]}-D; got shapes of size {given.points.shape[1:]}."
            )
        known = np.array([-1 if k is None else k for k in shape_indices(given, self._shapes)])
        found = np.empty(given.points.shape)
        found[known >= 0] = (self.coordinates_ - self.mean_)[known[known >= 0]]
        if (known < 0).any():
            found[known < 0] = self._projected(
                self._in_space(given.take(np.flatnonzero(known < 0)))
            )
        return found

    def _projected(self, points: Array) -> Array:
        """x − (x·c) c for shapes completed, at unit size and turned onto the mean c."""
        whole = unit_size(self._completed(points))
        turned = whole @ stacked(whole, self.mean_).rotation
        c = self.mean_
        along = np.einsum("nmd,md->n", turned, c)
        return np.asarray(turned - along[:, None, None] * c)

    def _in_space(self, given: Shapes) -> Array:
        """(n, m, d): new shapes to be scored, in the space that was analysed."""
        if self._alignment is None or self.space_ == "superimposed":
            return given.points
        a = self._alignment
        warps = [
            registered(a, own, name) for own, name in zip(given.points, given.names, strict=True)
        ]
        return in_space(self.space_, given.points, warps, a.reference)

    def _completed(self, points: Array) -> Array:
        """Gaps filled by what the shapes of the fit say."""
        gaps = np.asarray(np.isnan(points[..., 0]).any(axis=1))
        if not gaps.any():
            return points
        known = ShapeGaussian(self.coordinates_, Dials())
        whole = np.array(points)
        whole[gaps] = [known.completed(own).points for own in points[gaps]]
        return whole

    def _how_many(self, available: int) -> int:
        wanted = self.n_components
        if wanted is None:
            return available
        if not isinstance(wanted, (int, np.integer)) or not 1 <= wanted <= available:
            raise ValueError(
                f"The 'n_components' parameter of ShapePCA must be 1 to {available}, as many as "
                f"vary here, or None. Got {wanted!r} instead."
            )
        return int(wanted)

    def _places(self, numbers: Iterable[int]) -> Index:
        """Where components counted from 1 are."""
        places = np.array([int(number) - 1 for number in numbers], dtype=np.intp)
        if ((places < 0) | (places >= len(self.components_))).any():
            raise ValueError(
                f"Components are counted from 1 to {len(self.components_)}. "
                f"Got {listed(places + 1)}."
            )
        return places

    def _require_fitted(self) -> None:
        if not hasattr(self, "components_"):
            raise NotFittedError("This ShapePCA has not been fitted yet: call fit(shapes) first.")


def _sums(alignment: Alignment) -> SumsOfSquares:
    x = tangent_space(alignment.back_projected)
    smooth = float(((x - x.mean(axis=0)) ** 2).sum())
    sizes = centroid_sizes(filled(alignment))
    missed = np.nansum((alignment.superimposed - alignment.back_projected) ** 2, axis=(1, 2))
    return SumsOfSquares(smooth, float((missed / sizes**2).sum()))
