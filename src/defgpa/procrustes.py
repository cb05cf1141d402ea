r"""The best motion between two point sets is one small singular value decomposition.

With row vectors, a motion is :math:`x \mapsto s\,xR + t`. Let both sets be centred on the
landmarks they share, and :math:`H = X^\top Y = U \Sigma V^\top`. The rotation that brings
:math:`X` closest to :math:`Y` is :math:`R = U\,\mathrm{diag}(1, …, 1, \pm 1)\,V^\top` (the sign
makes it a rotation; without it, reflections are allowed), the scale is
:math:`\mathrm{tr}(R^\top H) / \lVert X \rVert^2`, and the translation joins the centroids.

Everything is needed only through the moments of the two sets, so a stack of pairs costs a few
matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Mask, Stack
from defgpa.errors import DegenerateShapeError, ShapeError


@dataclass(frozen=True)
class Motions:
    """A family of motions: rotation and translation, perhaps with scaling and reflection.

    Parameters
    ----------
    scaling : bool
        Whether the size may change too (similarities).
    reflections : bool
        Whether a mirror image is as good as the original.
    """

    scaling: bool = False
    reflections: bool = False

    def find_nearest(self, cross: Array) -> tuple[Array, Array]:
        """Find the R of the family with the largest tr(RᵀH), for every H, and its margin.

        The margin (…) says by how much R is the only one: it is the least singular value that
        two of its signs depend on, σ_{d−1} ± σ_d for rotations, and σ_d with reflections.
        """
        U, sigma, Vt = np.linalg.svd(cross)
        if self.reflections:
            return U @ Vt, sigma[..., -1]
        sign = np.where(np.linalg.det(U) * np.linalg.det(Vt) < 0, -1.0, 1.0)
        U[..., -1] *= sign[..., np.newaxis]
        return U @ Vt, sigma[..., -2] + sign * sigma[..., -1]


def find_nearest_orthogonal(stack: Array, side: Array) -> tuple[Array, Array]:
    """Find the orthogonal R nearest to every M (…, d, d) with det R = side (…), and ⟨R, M⟩ (…)."""
    if stack.shape[-1] == 2:
        diagonal = stack[..., 0, 0] + side * stack[..., 1, 1]
        off_diagonal = stack[..., 0, 1] - side * stack[..., 1, 0]
        total = np.hypot(diagonal, off_diagonal)
        is_zero = total == 0.0
        length = total + is_zero
        cosine, sine = (diagonal + is_zero) / length, off_diagonal / length
        turn = np.empty(stack.shape)
        turn[..., 0, 0], turn[..., 0, 1] = cosine, sine
        turn[..., 1, 0], turn[..., 1, 1] = -side * sine, side * cosine
        return turn, total
    if stack.shape[-1] == 3 and side.size >= _MIN_ITERATED:
        turn = _iterate_to_orthogonal(stack, side)
    else:
        turn = _turn_by_svd(stack, side)
    return turn, np.asarray(np.einsum("...ij,...ij->...", turn, stack))


def _turn_by_svd(stack: Array, side: Array) -> Array:
    """Find the nearest orthogonal matrices of the sides (…) from singular vectors."""
    left, _, right = np.linalg.svd(stack)
    left[..., -1] *= (np.linalg.det(left @ right) * side)[..., np.newaxis]
    return np.asarray(left @ right)


def _iterate_to_orthogonal(stack: Array, side: Array) -> Array:
    """Find the nearest orthogonal matrices of many M (…, 3, 3), some times faster than by an SVD.

    Newton's iteration X ← (γX + X⁻ᵀ/γ) / 2 from M ends at its polar factor, whose determinant has
    the sign of det M. The matrices whose side is the other one, or that are nearly singular, go
    through the SVD.
    """
    matrices, sides = stack.reshape(-1, 9), side.ravel()
    turns = np.empty((len(sides), 3, 3))
    for start in range(0, len(sides), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        x = np.ascontiguousarray(matrices[chunk].T)
        change = np.full_like(x, np.inf)
        with np.errstate(all="ignore"):
            x /= np.sqrt(np.einsum("jn,jn->n", x, x) / 3.0)
            inverse, det = _invert_transpose(x)
            by_svd = ~(det * sides[chunk] > 1e-6)
            for _ in range(_MAX_NEWTON):
                if np.abs(change).max() > 0.1:  # γ = 1 would do from there on
                    scale = np.einsum("jn,jn->n", inverse, inverse)
                    gamma = np.sqrt(np.sqrt(scale / np.einsum("jn,jn->n", x, x)))
                    change = (0.5 * gamma - 1.0) * x + (0.5 / gamma) * inverse
                else:
                    change = 0.5 * (inverse - x)
                x = x + change
                if (by_svd | (np.abs(change).max(axis=0) < 1e-8)).all():
                    break  # the next change would be the square of this one
                inverse, _ = _invert_transpose(x)
        turns[chunk] = x.T.reshape(-1, 3, 3)
        by_svd |= ~(np.abs(change).max(axis=0) < 1e-8)
        if by_svd.any():
            numbers = start + np.flatnonzero(by_svd)
            turns[numbers] = _turn_by_svd(matrices[numbers].reshape(-1, 3, 3), sides[numbers])
    return turns.reshape(stack.shape)


def _invert_transpose(x: Array) -> tuple[Array, Array]:
    """Compute X⁻ᵀ (9, n) and det X (n,) of 3 × 3 matrices X (9, n), each entry a row."""
    a, b, c, d, e, f, g, h, i = x
    inverse = np.empty_like(x)
    inverse[0], inverse[1], inverse[2] = e * i - f * h, f * g - d * i, d * h - e * g
    inverse[3], inverse[4], inverse[5] = c * h - b * i, a * i - c * g, b * g - a * h
    inverse[6], inverse[7], inverse[8] = b * f - c * e, c * d - a * f, a * e - b * d
    det = a * inverse[0] + b * inverse[1] + c * inverse[2]
    inverse /= det
    return inverse, det


RIGID = Motions()
SIMILARITY = Motions(scaling=True)
ORTHOGONAL = Motions(reflections=True)
ORTHOGONAL_SIMILARITY = Motions(scaling=True, reflections=True)

_MIN_ITERATED = 150  # matrices from which on Newton's iteration is faster than so many SVDs
_CHUNK = 1536  # matrices whose iteration stays in the cache: with fewer, calls take the time
_MAX_NEWTON = 12  # rounds; matrices of condition 1e6 take seven
MIN_MARGIN = 1e-10  # of a rotation, relative to the sizes of both shapes: less is chance


@dataclass(frozen=True, eq=False)
class Motion(Stack):
    """The map x ↦ scale · x @ rotation + translation, or a stack of such maps.

    Attributes
    ----------
    rotation : array (…, d, d)
        Orthogonal matrices.
    scale : array (…)
        Positive numbers; ones for a motion that keeps sizes.
    translation : array (…, d)
        Where the origin goes.
    determined : array (…) of bool
        Whether the points left only one best motion. Where they did not, the motion is one
        of several equally good ones, or the identity if there was nothing to align.
    """

    rotation: Array
    scale: Array
    translation: Array
    determined: Mask

    def __call__(self, points: ArrayLike) -> Array:
        """Move points (…, p, d); the leading axes match those of the stack."""
        matrix = self.scale[..., np.newaxis, np.newaxis] * self.rotation
        images = np.asarray(points, dtype=np.float64) @ matrix
        return images + self.translation[..., np.newaxis, :]

    @property
    def matrix(self) -> Array:
        """(…, d, d): scale · rotation."""
        return self.scale[..., np.newaxis, np.newaxis] * self.rotation

    def inverse(self) -> Motion:
        """Return the motion back: y ↦ (y − translation) @ rotationᵀ / scale."""
        rotation = self.rotation.mT
        translation = -np.squeeze(self.translation[..., np.newaxis, :] @ rotation, axis=-2)
        scale = self.scale
        return Motion(rotation, 1.0 / scale, translation / scale[..., np.newaxis], self.determined)


def fit_rigid(source: ArrayLike, target: ArrayLike) -> Motion:
    """Find the rotation and translation that bring one shape closest to another.

    Parameters
    ----------
    source, target : array (m, d)
        The same landmarks in two shapes; a row of NaN in either is left out.

    Returns
    -------
    Motion
        With ``target ≈ source @ rotation + translation``; callable on points.

    Raises
    ------
    DegenerateShapeError
        When the shared landmarks leave the rotation open: fewer than d of them, or all on
        one point (in 3-D: on one line).

    Examples
    --------
    >>> import numpy as np
    >>> corner = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> motion = fit_rigid(corner, corner @ quarter + [5.0, 7.0])
    >>> bool(np.allclose(motion.rotation, quarter))
    True
    >>> motion(corner[1:2]).round(9)
    array([[5., 9.]])
    """
    return _fit_one_motion(source, target, RIGID)


def fit_similarity(source: ArrayLike, target: ArrayLike) -> Motion:
    """Find the rotation, scale and translation that bring one shape closest to another.

    Parameters, errors and result are those of `fit_rigid`, with
    ``target ≈ scale * source @ rotation + translation``.

    Examples
    --------
    >>> import numpy as np
    >>> corner = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> round(float(fit_similarity(corner, 3 * corner + 1).scale), 9)
    3.0
    """
    return _fit_one_motion(source, target, SIMILARITY)


def fit_motions(
    source: Array, target: Array, weights: Array | Mask | None = None, motions: Motions = RIGID
) -> Motion:
    """Find the best motion of every pair in two stacks of shapes; nothing is raised.

    Parameters
    ----------
    source, target : array (…, m, d)
        Stacks that broadcast against each other; NaN rows are left out.
    weights : array (…, m), optional
        Landmark weights, or which landmarks are visible.
    motions : Motions
        The family to search: RIGID, SIMILARITY, ORTHOGONAL or ORTHOGONAL_SIMILARITY.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = np.random.default_rng(0).normal(size=(4, 6, 3))
    >>> motion = fit_motions(shapes, shapes[0])
    >>> motion.rotation.shape, motion.determined.tolist()
    ((4, 3, 3), [True, True, True, True])
    """
    if weights is None and not (np.isnan(source).any() or np.isnan(target).any()):
        return _find_best_motion(_compute_complete_moments(source, target), motions)
    masses = (~(np.isnan(source[..., 0]) | np.isnan(target[..., 0]))).astype(np.float64)
    if weights is not None:
        masses = masses * weights
    count = masses.sum(axis=-1)
    divisor = np.where(count > 0, count, 1.0)[..., np.newaxis]
    column = masses[..., np.newaxis]
    x, y = (np.where(column > 0, points, 0.0) for points in (source, target))
    x_reach, y_reach = (np.abs(points).max(axis=(-1, -2), initial=0.0) for points in (x, y))
    # sums over landmarks as products: far faster than a reduction along a middle axis
    x_mean, y_mean = ((column.mT @ points)[..., 0, :] / divisor for points in (x, y))
    x, y = x - x_mean[..., np.newaxis, :], y - y_mean[..., np.newaxis, :]
    weighted = column * x
    x_spread = np.einsum("...md,...md->...", weighted, x)
    y_spread = np.einsum("...md,...md->...", column * y, y)
    cross = weighted.mT @ y
    moments = _Moments(count, x_mean, y_mean, cross, x_spread, y_spread, x_reach, y_reach)
    return _find_best_motion(moments, motions)


def procrustes_distance(source: Array, target: Array) -> float:
    """Return the distance of two shapes (m, d) after the best similarity or reflection: 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> shape = np.random.default_rng(0).normal(size=(9, 2))
    >>> round(procrustes_distance(shape, 3 * shape[:, ::-1] + 1), 6)
    0.0
    """
    a, b = source - source.mean(axis=0), target - target.mean(axis=0)
    total = np.linalg.svd(a.T @ b, compute_uv=False).sum()
    cosine = total / (np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.sqrt(max(0.0, 1.0 - cosine**2)))


@dataclass(frozen=True, eq=False)
class _Moments:
    """What the best motion depends on, each a stack; missing landmarks weigh nothing."""

    count: Array  # (…) landmarks that count, or their total weight
    source_mean: Array  # (…, d)
    target_mean: Array  # (…, d)
    cross: Array  # (…, d, d): H, about the means
    source_spread: Array  # (…): ‖X‖², about its mean
    target_spread: Array  # (…)
    source_reach: Array  # (…): the largest coordinate as written, which rounding goes with
    target_reach: Array  # (…)


def _compute_complete_moments(source: Array, target: Array) -> _Moments:
    """Return the moments where nothing is missing; each set is read once, however often paired."""
    (x, x_mean, x_spread), (y, y_mean, y_spread) = _center(source), _center(target)
    cross = x.mT @ y
    batch_shape = cross.shape[:-2]
    numbers = x_spread, y_spread, _find_largest_coordinate(source), _find_largest_coordinate(target)
    mean = (*batch_shape, source.shape[-1])
    return _Moments(
        np.full(batch_shape, float(source.shape[-2])),
        np.broadcast_to(x_mean, mean),
        np.broadcast_to(y_mean, mean),
        cross,
        *(np.broadcast_to(values, batch_shape) for values in numbers),
    )


def _center(shapes: Array) -> tuple[Array, Array, Array]:
    """Return (…, m, d) points about their mean, (…, d) the mean, (…) the spread about it."""
    # a sum over landmarks as a product: far faster than a reduction along a middle axis
    mean = np.ones(shapes.shape[-2]) @ shapes / shapes.shape[-2]
    points = shapes - mean[..., np.newaxis, :]
    flat = points.reshape(*points.shape[:-2], -1)
    return points, mean, np.einsum("...k,...k->...", flat, flat)


def _find_best_motion(moments: _Moments, motions: Motions) -> Motion:
    """Find the motion of the family with the least squared distance, from the moments."""
    rotation, margin = motions.find_nearest(moments.cross)
    scale = np.ones_like(moments.count)
    if motions.scaling:
        traces = (rotation * moments.cross).sum(axis=(-1, -2))
        np.divide(traces, moments.source_spread, out=scale, where=traces > 0)
    rotated_mean = np.squeeze(moments.source_mean[..., np.newaxis, :] @ rotation, axis=-2)
    translation = moments.target_mean - scale[..., np.newaxis] * rotated_mean
    # The margin of the rotation must stand out of rounding. The coordinates as written are blurred
    # by it, the more the farther they lie from the origin; H = XᵀY is blurred by the blur of X
    # times the size of Y, and the other way round.
    x_size, y_size = np.sqrt(moments.source_spread), np.sqrt(moments.target_spread)
    # so many rounding errors of the largest coordinate count as nothing
    eps = 32 * np.finfo(np.float64).eps * np.sqrt(moments.count)
    x_blur, y_blur = eps * moments.source_reach, eps * moments.target_reach
    noise = x_blur * y_size + y_blur * x_size
    is_sharp: Mask = margin > np.maximum(noise, MIN_MARGIN * x_size * y_size)
    determined = is_sharp & (x_size > x_blur) & (y_size > y_blur)
    return Motion(rotation, scale, translation, determined)


def _find_largest_coordinate(points: Array) -> Array:
    """Return the largest coordinate of every shape; missing rows are no larger than others."""
    largest: Array = np.abs(points).max(axis=(-1, -2), initial=0.0)
    return largest


def _fit_one_motion(source: ArrayLike, target: ArrayLike, motions: Motions) -> Motion:
    """Find the best motion of one pair, or raise an error that says why there is none."""
    x, y = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape:
        raise ShapeError(
            "source and target must be two arrays (landmarks, coordinates) of the same size; "
            f"got {x.shape} and {y.shape}."
        )
    motion = fit_motions(x, y, motions=motions)
    if not motion.determined:
        raise DegenerateShapeError(_explain_degeneracy(x, y))
    return motion


def _explain_degeneracy(x: Array, y: Array) -> str:
    """Say in one sentence why two shapes leave more than one best motion."""
    d = x.shape[1]
    shared = int((~np.isnan(x[:, 0]) & ~np.isnan(y[:, 0])).sum())
    flat = ["on one point", "on one line"][d - 2]
    return (
        f"A rotation in {d}-D needs at least {d} shared landmarks that do not all lie {flat} "
        f"(or nearly so), in both shapes; these two shapes share {shared}, and they leave more "
        "than one best motion. Add landmarks both shapes see."
    )
