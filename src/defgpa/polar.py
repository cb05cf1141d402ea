r"""The orthogonal matrix nearest to each of many small ones.

Of M = U diag(s) Vᵀ it is UVᵀ, reflections included. In two dimensions, with C the cofactors of M,

    M ± C = (s₁ + s₂) UVᵀ,      ± the sign of det M,

and in three it is the limit of Newton's iteration from X = M,

    X ← ½ (γX + X⁻ᵀ/γ),     X⁻ᵀ = C / det X,     γ² = ‖X⁻¹‖ / ‖X‖,

which converges quadratically. That is a few passes over all matrices at once, ten times sooner
than a singular value decomposition of each; nearly singular ones still get that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array
from defgpa._threads import blocks

_SINGULAR = 1e-6  # |det| of a matrix of unit norm: below, the sign of det is left to LAPACK
_MOST_STEPS = 30  # about six are taken
_BLOCK = 2048  # matrices whose entries stay in cache


@dataclass(frozen=True, eq=False)
class Polar:
    """The nearest orthogonal matrices, and what the singular values say about them."""

    rotation: Array  # (…, d, d): UVᵀ
    total: Array  # (…): s₁ + … + s_d
    breadth: Array  # (…): about s₂ / s₁, zero for a matrix of rank one (or zero)


def nearest_orthogonal(stack: Array) -> Polar:
    """Of every matrix of a stack (…, d, d), d = 2 or 3."""
    *lead, d, _ = stack.shape
    matrices = stack.reshape(-1, d, d)
    way = _in_the_plane if d == 2 else _in_space
    rotation, breadth = np.empty_like(matrices), np.empty(len(matrices))
    for part in blocks(len(matrices), _BLOCK):
        # entry by entry, all matrices side by side
        entries = np.ascontiguousarray(np.moveaxis(matrices[part], 0, -1))
        turned, breadth[part] = way(_of_unit_norm(entries))
        rotation[part] = np.moveaxis(turned, -1, 0)
    total = np.einsum("kij,kij->k", rotation, matrices)
    return Polar(rotation.reshape(stack.shape), total.reshape(lead), breadth.reshape(lead))


def nearest_on_side(stack: Array, side: Array) -> tuple[Array, Array]:
    """The R nearest to every M (…, d, d) with det R = side (…), and ⟨R, M⟩ (…)."""
    if stack.shape[-1] == 2:
        (a, b), (c, e) = stack[..., 0, :].T, stack[..., 1, :].T
        along, across = (a + side.T * e).T, (b - side.T * c).T
        total = np.hypot(along, across)
        length = np.where(total > 0.0, total, 1.0)
        cosine, sine = np.where(total > 0.0, along / length, 1.0), across / length
        rows = np.stack([cosine, sine, -side * sine, side * cosine], axis=-1)
        return rows.reshape(stack.shape), total
    turn = nearest_orthogonal(stack).rotation
    wrong = np.linalg.det(turn) * side < 0.0
    if wrong.any():
        left, _, right = np.linalg.svd(stack[wrong])
        left[..., -1] *= (np.linalg.det(left @ right) * side[wrong])[..., None]
        turn[wrong] = left @ right
    return turn, np.asarray(np.einsum("...ij,...ij->...", turn, stack))


def on_both_sides(stack: Array) -> tuple[Array, Array]:
    """(…) the largest ⟨R, M⟩ over the rotations R, and over the reflections, of M (…, d, d).

    The larger of them is s₁ + … + s_d, the other s₁ + … − s_d; rotations have it where det M > 0.
    """
    if stack.shape[-1] == 2:
        (a, b), (c, e) = np.moveaxis(stack, (-2, -1), (0, 1))
        return np.hypot(a + e, b - c), np.hypot(a - e, b + c)
    values = np.linalg.svd(stack, compute_uv=False)
    total = values.sum(axis=-1)
    both = total, total - 2.0 * values[..., -1]
    upright = np.linalg.det(stack) > 0.0
    return np.where(upright, *both), np.where(upright, *both[::-1])


def _in_the_plane(unit: Array) -> tuple[Array, Array]:
    (a, b), (c, e) = unit
    det = a * e - b * c
    side = np.where(det < 0.0, -1.0, 1.0)
    turned = unit + side * np.array([[e, -c], [-b, a]])
    length = np.sqrt(0.5 * _squared_norm(turned))
    return turned / np.where(length > 0.0, length, 1.0), np.abs(det)


def _in_space(unit: Array) -> tuple[Array, Array]:
    cofactors = _cofactors(unit)
    breadth = np.sqrt(_squared_norm(cofactors))
    clear = np.abs((unit[0] * cofactors[0]).sum(axis=0)) > _SINGULAR
    if clear.all():
        return _by_newton(unit), breadth
    turned = np.empty_like(unit)
    turned[..., clear] = _by_newton(unit[..., clear])
    left, _, right = np.linalg.svd(np.moveaxis(unit[..., ~clear], -1, 0))
    turned[..., ~clear] = np.moveaxis(left @ right, 0, -1)
    return turned, breadth


def _by_newton(X: Array) -> Array:
    for _ in range(_MOST_STEPS):
        C = _cofactors(X)
        inverse = C / (X[0] * C[0]).sum(axis=0)
        gamma = np.sqrt(np.sqrt(_squared_norm(inverse) / _squared_norm(X)))
        better = (0.5 * gamma) * X + (0.5 / gamma) * inverse
        X -= better
        change = max(X.max(initial=0.0), -X.min(initial=0.0))
        X = better
        if change < 1e-8:  # the error is its square
            break
    return X


def _cofactors(X: Array) -> Array:
    """Of matrices (3, 3, k): each row the cross product of the other two."""
    C = np.empty_like(X)
    for i in range(3):
        r, s = X[(i + 1) % 3], X[(i + 2) % 3]
        for j in range(3):
            p, q = (j + 1) % 3, (j + 2) % 3
            C[i, j] = r[p] * s[q] - r[q] * s[p]
    return C


def _of_unit_norm(entries: Array) -> Array:
    """By the largest entry first, so that nothing overflows on the way."""
    largest = np.abs(entries).max(axis=(0, 1))
    even = entries / np.where(largest > 0.0, largest, 1.0)
    return even / np.maximum(np.sqrt(_squared_norm(even)), 0.5)


def _squared_norm(entries: Array) -> Array:
    return np.einsum("ijk,ijk->k", entries, entries)
