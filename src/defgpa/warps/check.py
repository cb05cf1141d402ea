r"""Check that a warp model has the properties the theory asks for.

For one shape with features F and penalty R, P = I − F (FᵀF + R)⁻¹ Fᵀ is what the best warp leaves
of a target. Everything is read from it:

    free translations      P 1 = 0
    free affine maps       P x = 0
    invariance             P is the same after the shape has been moved (turned, scaled)

P acts on a few columns at a time, so the shape may be large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, rms_radius, symmetrise
from defgpa.errors import ShapeError
from defgpa.warps.base import Basis, FactoredBasis, WarpModel
from defgpa.warps.warp import Warp

FREE = 1e-7  # share of a target left over, below which it counts as reached for nothing
SAME = 1e-6  # change of P under a motion, below which it counts as none


@dataclass(frozen=True)
class WarpCheck:
    """What ``check_warp`` found.

    Attributes
    ----------
    name : str
        The model.
    n_features : int
        l, the number of weights per coordinate.
    free_translations, translation_error : bool, float
        Whether P1 = 0, and ‖P1‖ / ‖1‖. Where it is not, the reference is centred by the soft
        constraint only, or by ``ExactCentering``.
    free_affine, affine_error : bool, float
        Whether all affine maps cost nothing, and the worst share that one leaves over.
    penalty_psd, smallest_eigenvalue : bool, float
        Whether the penalty is symmetric and positive semi-definite, and its smallest eigenvalue
        relative to the largest.
    condition : float
        Of FᵀF + R; infinite where some direction is neither seen nor charged.
    free_directions : int
        How many such directions there are.
    rigid_invariance, rigid_error : bool, float
        Whether P stays the same when the shape is turned and moved, and the change relative to P.
    similarity_invariance, similarity_error : bool, float
        The same when it is scaled as well.
    pointwise : bool
        Whether the features of a point depend on that point alone.
    jacobian, jacobian_error : str, float
        ``"analytic"`` or ``"central differences"``, and how far the two differ.
    """

    name: str
    n_features: int
    free_translations: bool
    translation_error: float
    free_affine: bool
    affine_error: float
    penalty_psd: bool
    smallest_eigenvalue: float
    condition: float
    free_directions: int
    rigid_invariance: bool
    rigid_error: float
    similarity_invariance: bool
    similarity_error: float
    pointwise: bool
    jacobian: str
    jacobian_error: float

    def __str__(self) -> str:
        free = "" if not self.free_directions else f", {self.free_directions} free directions"
        lines = [
            ("features", f"{self.n_features}"),
            ("free translations", _format_verdict(self.free_translations, self.translation_error)),
            ("free affine maps", _format_verdict(self.free_affine, self.affine_error)),
            ("penalty is PSD", _format_verdict(self.penalty_psd, self.smallest_eigenvalue)),
            ("condition", f"{self.condition:.1e}{free}"),
            ("rigid invariance", _format_verdict(self.rigid_invariance, self.rigid_error)),
            (
                "similarity invariance",
                _format_verdict(self.similarity_invariance, self.similarity_error),
            ),
            ("features are pointwise", "yes" if self.pointwise else "no"),
            ("jacobian", f"{self.jacobian} ({self.jacobian_error:.1e})"),
        ]
        return "\n".join([self.name, *(f"  {label:<23}{value}" for label, value in lines)])


def check_warp(model: WarpModel, points: ArrayLike) -> WarpCheck:
    """Check the properties of a warp model, built-in or a user's, on one shape.

    Parameters
    ----------
    model : WarpModel
        Any object with ``basis(points)``.
    points : array (p, d)
        A shape of the kind it is meant for; rows of NaN are left out.

    Returns
    -------
    WarpCheck
        ``print`` it for a summary.

    Raises
    ------
    ShapeError
        If the features or the penalty are not what the solve can use: wrong sizes, NaN.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = defgpa.check_warp(defgpa.Affine(), points)
    >>> found.free_translations, found.similarity_invariance, found.jacobian
    (True, True, 'analytic')
    """
    shape = _check_points(points)
    basis = model.basis(shape)
    features, penalty = _check_features(basis, shape), _check_penalty(basis, shape)
    solved = _Regression(features, penalty)
    translation = solved.compute_max_residual(np.ones((len(shape), 1)))
    affine = solved.compute_max_residual(shape - shape.mean(axis=0))
    values = np.linalg.eigvalsh(symmetrise(penalty))
    smallest = float(values[0] / max(np.abs(values).max(), np.finfo(np.float64).tiny))
    rigid, similar = (
        _compute_invariance_error(model, shape, solved, scales) for scales in ((1, 1), (0.05, 20))
    )
    analytic = isinstance(basis, FactoredBasis) or hasattr(basis, "gradients")
    return WarpCheck(
        name=repr(model),
        n_features=features.shape[1],
        free_translations=translation < FREE,
        translation_error=translation,
        free_affine=max(affine, translation) < FREE,
        affine_error=max(affine, translation),
        penalty_psd=smallest > -FREE and bool(np.allclose(penalty, penalty.T)),
        smallest_eigenvalue=smallest,
        condition=solved.condition,
        free_directions=solved.free_directions,
        rigid_invariance=rigid < SAME,
        rigid_error=rigid,
        similarity_invariance=similar < SAME,
        similarity_error=similar,
        pointwise=_is_pointwise(basis, shape, features),
        jacobian="analytic" if analytic else "central differences",
        jacobian_error=_compute_jacobian_error(basis, shape, features.shape[1]),
    )


class _Regression:
    """The best warp of one shape, by the singular values of [F; √R]."""

    def __init__(self, features: Array, penalty: Array) -> None:
        values, vectors = np.linalg.eigh(symmetrise(penalty))
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        left, sizes, _ = np.linalg.svd(np.vstack([features, root]), full_matrices=False)
        floor = 8 * (len(features) + len(root)) * np.finfo(np.float64).eps * sizes[0]
        self._range = left[: len(features), sizes > floor]  # U, with P = I − U Uᵀ
        self.free_directions = int((sizes <= floor).sum())
        with np.errstate(divide="ignore"):
            self.condition = float((sizes[0] / np.where(sizes > floor, sizes, 0.0)[-1]) ** 2)

    def apply_residual_form(self, targets: Array) -> Array:
        """Multiply P with the targets (p, k)."""
        return targets - self._range @ (self._range.T @ targets)

    def compute_max_residual(self, targets: Array) -> float:
        """Return the largest ‖P t‖ / ‖t‖ of the columns t."""
        left = np.linalg.norm(self.apply_residual_form(targets), axis=0)
        return float((left / np.linalg.norm(targets, axis=0)).max())


def _compute_invariance_error(
    model: WarpModel, shape: Array, regression: _Regression, scales: tuple[float, float]
) -> float:
    """Return how much P changes when the shape is turned, moved and scaled, relative to P."""
    rng = np.random.default_rng(0)
    p, d = shape.shape
    size = rms_radius(shape)
    probes = rng.normal(size=(p, 6))  # products with a few columns stand for all of P
    before = regression.apply_residual_form(probes)
    change = 0.0
    for scale in np.geomspace(*scales, 3):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        turn[:, 0] *= np.sign(np.linalg.det(turn))
        moved_shape = scale * shape @ turn + 3.0 * size * rng.normal(size=d)
        basis = model.basis(moved_shape)
        moved = _Regression(_check_features(basis, moved_shape), _check_penalty(basis, moved_shape))
        change = max(change, float(np.linalg.norm(moved.apply_residual_form(probes) - before)))
    return change / max(float(np.linalg.norm(before)), np.finfo(np.float64).tiny)


def _is_pointwise(basis: Basis, shape: Array, features: Array) -> bool:
    half = np.asarray(basis.features(shape[::2]), dtype=np.float64)
    return half.shape == features[::2].shape and bool(
        np.allclose(half, features[::2], rtol=1e-9, atol=1e-9 * np.abs(features).max())
    )


def _compute_jacobian_error(basis: Basis, shape: Array, size: int) -> float:
    """Return the difference of a warp's Jacobian from central differences, relative to its size."""
    warp = Warp(basis, np.random.default_rng(0).normal(size=(size, shape.shape[1])))
    # a kernel may have a kink at its centre, which may be a point of the shape
    between = 0.5 * (shape + np.roll(shape, 1, axis=0))
    jacobians, measured = warp.jacobian(between), warp.estimate_jacobian(between)
    scale = max(float(np.linalg.norm(measured)), np.finfo(np.float64).tiny)
    return float(np.linalg.norm(jacobians - measured)) / scale


def _check_points(points: ArrayLike) -> Array:
    try:
        array = np.asarray(points).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise ShapeError("check_warp takes one shape (p, d) of numbers.") from None
    if array.ndim != 2:
        raise ShapeError(f"check_warp takes one shape (p, d); got an array of size {array.shape}.")
    visible = array[~np.isnan(array).any(axis=1)]
    if len(visible) <= array.shape[1]:
        raise ShapeError(
            f"check_warp needs a shape with at least {array.shape[1] + 1} visible points; "
            f"got {len(visible)}."
        )
    return visible


def _check_features(basis: Basis, shape: Array) -> Array:
    features = np.asarray(basis.features(shape), dtype=np.float64)
    if features.ndim != 2 or len(features) != len(shape):
        raise ShapeError(
            f"The features of {type(basis).__name__} must be ({len(shape)}, l), one row per point; "
            f"got size {features.shape}."
        )
    if not np.isfinite(features).all():
        raise ShapeError(f"The features of {type(basis).__name__} are not all finite.")
    return features


def _check_penalty(basis: Basis, shape: Array) -> Array:
    size = np.shape(basis.features(shape[:1]))[1]
    penalty = np.asarray(basis.penalty(), dtype=np.float64)
    if penalty.ndim == 0:
        return float(penalty) * np.eye(size)
    if penalty.shape != (size, size) or not np.isfinite(penalty).all():
        raise ShapeError(
            f"The penalty of {type(basis).__name__} must be finite and ({size}, {size}), one row "
            f"per feature; got size {penalty.shape}."
        )
    return penalty


def _format_verdict(holds: bool, error: float) -> str:
    return f"{'yes' if holds else 'no':<4}({error:.1e})"
