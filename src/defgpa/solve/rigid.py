r"""Rigid Procrustes analysis of many shapes, with holes, is a problem in the rotations alone.

The error is measured in the datum space,

.. math:: \sum_i \sum_{j \text{ seen}} \lVert D_i[j] - (S[j] Z_i^\top + a_i) \rVert^2,
   \qquad Z_i = s_i R_i,

with all :math:`s_i = 1` for rigid motions. Given the :math:`Z_i`, translations and reference
are linear least squares. With :math:`C_i` the centring of what shape i sees, they leave

.. math:: \sum_i \lVert C_i D_i \rVert^2 - \langle B, L^+ B \rangle, \qquad
   B = \sum_i C_i D_i Z_i, \quad L = \sum_i s_i^2 C_i, \quad S = L^+ B,

a smooth function on a product of rotation groups (and scales), descended by second-order steps
:math:`Z_i \exp(\Xi_i)` until its gradient vanishes. Neither its gradient nor its Hessian product
costs more than two passes over the points.

The cost cannot be lowered by shrinking anything: only the product :math:`s_i S` counts. The
overall size of a reference of similarities is therefore free, and set to the mean size of the
shapes (each completed, where it has holes, by its own fit).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from defgpa._arrays import Array, Index, Mask, transposed
from defgpa.errors import DegenerateShapeError, listed
from defgpa.procrustes import RIGID, Motions, pairwise
from defgpa.solve.datum_space import CentredShapes, DatumSpaceFit, fit_in_datum_space
from defgpa.solve.trust_region import descend

_SPECTRAL_UP_TO = 256  # shapes or landmarks: the size of a dense Hermitian eigenproblem

_LARGEST_GROWTH = 3.0  # of log s in one step: beyond, no quadratic model is to be trusted


def rigid_gpa(points: Array, motions: Motions = RIGID) -> DatumSpaceFit:
    """The best reference and one motion per shape, for the datum-space cost.

    Parameters
    ----------
    points : array (n, m, d)
        Shapes, d = 2 or 3, with NaN for landmarks not seen.
    motions : Motions
        RIGID, SIMILARITY, or either with reflections.

    Returns
    -------
    DatumSpaceFit
        The reference is centred and turned like the first shape. For rigid motions the error is the
        same in both spaces; for similarities the reference has the mean size of the shapes.

    Raises
    ------
    DegenerateShapeError
        When the points of a shape, or those it shares with the others, leave its rotation open.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=(9, 2))
    >>> turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> shapes = np.stack([base, base @ turn + 1, base @ turn.T - 2])
    >>> shapes[1, :3] = shapes[2, 5:] = np.nan
    >>> fit = rigid_gpa(shapes)
    >>> bool(fit.rmse_datum < 1e-12)
    True
    >>> bool(np.allclose(shapes[1, 3:] @ fit.matrices[1] + fit.offsets[1], fit.reference[3:]))
    True
    """
    shapes = CentredShapes.of(points)
    algebra = _Algebra.of(motions, shapes.shape[2])
    ties: _Ties = _FullTies(shapes) if shapes.visible is None else _PartialTies(shapes)
    start = _start(points, shapes, motions)
    descent = descend(_Pose.at(shapes, ties, algebra, start))
    pose = descent.point
    Z, S = _in_frame_of_first(pose.Z, pose.reference)
    if motions.scaling:
        Z, S = _at_mean_size(shapes, Z, S)
    inverse = Z / _squared_scales(Z)[:, np.newaxis, np.newaxis]
    return fit_in_datum_space(
        shapes, S, transposed(Z), inverse, descent.iterations, pose.slope
    )


@dataclass(frozen=True, eq=False)
class _Algebra:
    """The directions a motion can move in: Z exp(Σ_k ξ_k E_k)."""

    generators: Array  # (p, d·d): the E_k, flattened
    traces: Array  # (p,): tr(E_k) / d, the rate at which log s changes
    products: Array  # (d·d, p·p): E_k E_l, made symmetric in k and l, flattened

    @classmethod
    def of(cls, motions: Motions, d: int) -> _Algebra:
        E = [_turn(d, j, k) for j in range(d) for k in range(j)]
        if motions.scaling:
            E.append(np.eye(d))
        stack = np.stack(E)
        products = np.einsum("kab,lbc->acklb", stack, stack).sum(axis=-1)
        products = 0.5 * (products + products.swapaxes(2, 3))
        p = len(E)
        traces = np.trace(stack, axis1=1, axis2=2) / d
        return cls(stack.reshape(p, d * d), traces, products.reshape(d * d, p * p))

    @property
    def size(self) -> int:
        """p, the degrees of freedom of one shape."""
        return len(self.traces)

    def element(self, step: Array) -> Array:
        """(n, d, d): Ξ_i = Σ_k ξ_ik E_k."""
        d = round(self.generators.shape[1] ** 0.5)
        return (step @ self.generators).reshape(-1, d, d)

    def exponential(self, step: Array) -> Array:
        """(n, d, d): exp(Ξ_i), by Rodrigues' formula, which holds in 2-D and 3-D."""
        growth = (step @ self.traces)[:, np.newaxis, np.newaxis]
        far = np.clip(growth, -_LARGEST_GROWTH, _LARGEST_GROWTH)
        identity = np.eye(round(self.generators.shape[1] ** 0.5))
        K = self.element(step) - growth * identity
        angle = np.sqrt(0.5 * (K * K).sum(axis=(1, 2)))[:, np.newaxis, np.newaxis]
        bend = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
        return np.exp(far) * (identity + np.sinc(angle / np.pi) * K + bend * (K @ K))


def _turn(d: int, j: int, k: int) -> Array:
    """The generator of rotations in the plane of axes j and k."""
    E = np.zeros((d, d))
    E[j, k], E[k, j] = -1.0, 1.0
    return E


class _Ties(Protocol):
    """How the landmarks that shapes share tie them together: the C_i and L, never formed."""

    def inner(self, one: Array, other: Array) -> Array:
        """⟨Y, C_i S⟩ for every shape."""
        ...

    def gathered(self, weights: Array, reference: Array) -> Array:
        """Σ_i w_i C_i S."""
        ...

    def solver(self, weights: Array) -> Callable[[Array], Array]:
        """B ↦ L⁺ B with L = Σ_i w_i C_i, for B with centred columns."""
        ...


@dataclass(frozen=True, eq=False)
class _FullTies:
    """All C_i are the same, and leave what is centred as it is."""

    shapes: CentredShapes

    def inner(self, one: Array, other: Array) -> Array:
        return np.full(len(self.shapes.counts), np.vdot(one, other))

    def gathered(self, weights: Array, reference: Array) -> Array:
        return weights.sum() * reference

    def solver(self, weights: Array) -> Callable[[Array], Array]:
        total = weights.sum()
        return lambda B: B / total


@dataclass(frozen=True, eq=False)
class _PartialTies:
    """L is the Laplacian of the graph in which a shape joins the landmarks it sees."""

    shapes: CentredShapes

    @property
    def visible(self) -> Array:
        assert self.shapes.visible is not None
        return self.shapes.visible

    def inner(self, one: Array, other: Array) -> Array:
        V, counts = self.visible, self.shapes.counts
        means = (self.shapes.means(one) * self.shapes.means(other)).sum(axis=1)
        return V @ (one * other).sum(axis=0) - counts * means

    def gathered(self, weights: Array, reference: Array) -> Array:
        means = self.shapes.means(reference) * weights[:, np.newaxis]
        return reference * (weights @ self.visible) - means.T @ self.visible

    def solver(self, weights: Array) -> Callable[[Array], Array]:
        n, m, _ = self.shapes.shape
        return self._by_landmarks(weights) if m <= n else self._by_shapes(weights)

    def _by_landmarks(self, weights: Array) -> Callable[[Array], Array]:
        """L = diag(c) − UᵀU as an m × m matrix; its null vector 1 is lifted, not met by B."""
        c, U = self._laplacian(weights)
        L = np.diag(c) - U.T @ U + c.mean() / len(c)
        factor = _factored(L)
        return lambda B: cho_solve(factor, B.T, check_finite=False).T

    def _by_shapes(self, weights: Array) -> Callable[[Array], Array]:
        """L⁺ = C⁻¹ + C⁻¹Uᵀ (I − U C⁻¹ Uᵀ)⁺ U C⁻¹, up to constants: n × n only."""
        c, U = self._laplacian(weights)
        scaled = U / c
        null = np.sqrt(weights * self.shapes.counts)
        G = np.eye(len(weights)) - scaled @ U.T + np.outer(null, null) / (null @ null)
        factor = _factored(G)

        def solve(B: Array) -> Array:
            lifted = cho_solve(factor, scaled @ B.T, check_finite=False)
            S = B / c + lifted.T @ scaled
            return S - S.mean(axis=1, keepdims=True)

        return solve

    def _laplacian(self, weights: Array) -> tuple[Array, Array]:
        """c (m,) and U (n, m) with L = diag(c) − UᵀU."""
        V = self.visible
        return weights @ V, V * np.sqrt(weights / self.shapes.counts)[:, np.newaxis]


def _factored(matrix: Array) -> tuple[Array, bool]:
    try:
        return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)  # type: ignore[no-any-return]
    except LinAlgError:
        raise DegenerateShapeError(
            "The shapes fall apart into groups that share no landmark, so that nothing fixes one "
            "group against the other. Align each group on its own, or add landmarks that link them."
        ) from None


@dataclass(frozen=True, eq=False)
class _Pose:
    """All motions at once, with the reference that is best for them: a point of the descent."""

    shapes: CentredShapes
    ties: _Ties
    algebra: _Algebra
    Z: Array  # (n, d, d)
    weights: Array  # (n,): s_i²
    solve: Callable[[Array], Array]  # L⁺
    reference: Array  # (d, m): Sᵀ
    cost: float

    @classmethod
    def at(
        cls,
        shapes: CentredShapes,
        ties: _Ties,
        algebra: _Algebra,
        Z: Array,
        solve: Callable[[Array], Array] | None = None,
    ) -> _Pose:
        weights = _squared_scales(Z)
        solve = ties.solver(weights) if solve is None else solve
        B = shapes.combined(Z)
        S = solve(B)
        cost = float(shapes.spreads.sum() - np.vdot(B, S))
        return cls(shapes, ties, algebra, Z, weights, solve, S, cost)

    @cached_property
    def alignment(self) -> Array:
        """(n, d, d): M_i = Z_iᵀ D_iᵀ S; symmetric where the rotation of shape i is best."""
        return transposed(self.Z) @ self.shapes.against(self.reference)

    @cached_property
    def sizes(self) -> Array:
        """(n,): s_i² ‖C_i S‖², which equals tr M_i where the scale of shape i is best."""
        spread = self.ties.inner(self.reference, self.reference)
        return self.weights * np.maximum(spread, np.finfo(np.float64).tiny)

    @cached_property
    def gradient(self) -> Array:
        """(n, p)."""
        M = self.alignment.reshape(len(self.Z), -1)
        pull = M @ self.algebra.generators.T
        return -2 * (pull - self.sizes[:, np.newaxis] * self.algebra.traces)

    @cached_property
    def slope(self) -> float:
        """The torque on each shape over its lever, ‖D_i‖ s_i ‖C_i S‖; their RMS."""
        lever = 2 * np.sqrt(self.shapes.spreads * self.sizes)
        torque = np.sqrt((self.gradient**2).sum(axis=1))
        return float(np.sqrt(np.mean((torque / lever) ** 2)))

    @cached_property
    def cost_scale(self) -> float:
        return float(self.shapes.spreads.sum())

    @cached_property
    def blocks(self) -> Array:
        """(n, p, p): the Hessian while the reference is held still."""
        p, tau = self.algebra.size, self.algebra.traces
        M = self.alignment.reshape(len(self.Z), -1)
        still = -2 * (M @ self.algebra.products).reshape(-1, p, p)
        return still + 4 * self.sizes[:, np.newaxis, np.newaxis] * np.outer(tau, tau)

    @cached_property
    def _inverse_blocks(self) -> Array:
        """What the slope of each shape is preconditioned with; always positive definite."""
        try:
            np.linalg.cholesky(self.blocks)
        except np.linalg.LinAlgError:
            # far from a minimum a block can curve downwards: its size counts, not its sign
            values, vectors = np.linalg.eigh(self.blocks)
            size = np.abs(values)
            size = np.maximum(size, 0.1 * size.max(axis=1, keepdims=True))
            return (vectors / size[:, np.newaxis]) @ transposed(vectors)
        return np.linalg.inv(self.blocks)

    @property
    def first_radius(self) -> float:
        """Half a radian for every shape, in the metric of the preconditioner."""
        return float(0.5 * np.sqrt(np.abs(self.alignment).sum()))

    def curved(self, step: Array) -> Array:
        """Blocks of the shapes, less what the reference gives by following them."""
        growth = self.weights * (step @ self.algebra.traces)
        change = self.shapes.combined(self.Z @ self.algebra.element(step))
        change -= 2 * self.ties.gathered(growth, self.reference)
        follow = self.solve(change)
        pull = (transposed(self.Z) @ self.shapes.against(follow)).reshape(len(step), -1)
        swell = 2 * self.weights * self.ties.inner(follow, self.reference)
        given = pull @ self.algebra.generators.T - swell[:, np.newaxis] * self.algebra.traces
        return np.einsum("ikl,il->ik", self.blocks, step) - 2 * given

    def preconditioned(self, slope: Array) -> Array:
        return np.einsum("ikl,il->ik", self._inverse_blocks, slope)

    def moved(self, step: Array) -> _Pose:
        Z = self.Z @ self.algebra.exponential(step)
        constant = self.solve if not self.algebra.traces.any() else None
        return _Pose.at(self.shapes, self.ties, self.algebra, Z, constant)


def _squared_scales(Z: Array) -> Array:
    """(n,): s_i² of Z_i = s_i R_i."""
    squares: Array = (Z * Z).sum(axis=(1, 2))
    return squares / Z.shape[-1]


def _start(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """(n, d, d): a first Z_i for every shape, in closed form."""
    n, m, d = shapes.shape
    if shapes.visible is not None:
        return _grown_start(points, shapes, motions)
    if d == 2 and min(n, m) <= _SPECTRAL_UP_TO and not motions.reflections:
        return _spectral_start(shapes, motions)
    return _first_shape_start(points, shapes, motions)


def _spectral_start(shapes: CentredShapes, motions: Motions) -> Array:
    """In the plane a similarity is a complex number, and the cost of all is a Hermitian form.

    Its leading eigenvector is the optimum for similarities; of unit modulus, a start for rotations.
    """
    D = shapes.rows[0::2] + 1j * shapes.rows[1::2]
    n, m = D.shape
    if n <= m:
        z = np.linalg.eigh(D @ D.conj().T)[1][:, -1].conj()
    else:
        z = D.conj() @ np.linalg.eigh(D.T @ D.conj())[1][:, -1]
    _require_turned(np.abs(z) > 1e-12 * np.abs(z).max(), shapes)
    if not motions.scaling:
        z /= np.abs(z)
    return np.stack([z.real, z.imag, -z.imag, z.real], axis=1).reshape(n, 2, 2)


def _first_shape_start(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """Every shape onto the first."""
    d = shapes.shape[2]
    cross = shapes.against(shapes.rows[:d])
    Z, margin = motions.nearest(cross)
    _require_turned(margin > 1e-12 * np.sqrt(shapes.spreads * shapes.spreads[0]), shapes)
    if motions.scaling:
        Z = Z * ((Z * cross).sum(axis=(1, 2)) / shapes.spreads[0])[:, np.newaxis, np.newaxis]
    return Z


def _grown_start(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """Shapes join a growing reference, those that share most with it first."""
    n, m, d = points.shape
    seen = ~np.isnan(points[..., 0])
    first = int(np.argmax(seen.sum(axis=1)))
    Z = np.broadcast_to(np.eye(d), (n, d, d)).copy()
    # shapes are moved about their own centroids, so that far origins cost no digits
    local = points - shapes.centroids[:, np.newaxis]
    total = np.where(seen[first][:, np.newaxis], local[first], 0.0)
    views = seen[first].astype(np.float64)
    waiting = np.delete(np.arange(n), first)
    while len(waiting):
        reference = np.divide(total, views[:, np.newaxis], where=views[:, np.newaxis] > 0, out=np.full_like(total, np.nan))
        motion = pairwise(local[waiting], reference[np.newaxis], motions)[:, 0]
        shared = (seen[waiting] & (views > 0)).sum(axis=1) * motion.determined
        joins = (shared > 0) & (2 * shared >= shared.max())
        if not joins.any():
            raise DegenerateShapeError(_unlinked(waiting, seen, views > 0, d))
        chosen = waiting[joins]
        Z[chosen] = motion.rotation[joins] / motion.scale[joins][:, np.newaxis, np.newaxis]
        moved = motion[joins](local[chosen])
        total += np.where(seen[chosen][..., np.newaxis], moved, 0.0).sum(axis=0)
        views += seen[chosen].sum(axis=0)
        waiting = waiting[~joins]
    return Z


def _unlinked(waiting: Index, seen: Mask, reached: Mask, d: int) -> str:
    shared = (seen[waiting] & reached).sum(axis=1)
    return (
        f"Shape number {listed(waiting)} cannot be turned against the others: it shares "
        f"{int(shared.max())} landmarks with them at most, where {d}-D needs at least {d} that do "
        f"not all lie on one {'point' if d == 2 else 'line'}. Drop such shapes, or add landmarks."
    )


def _require_turned(turned: Mask, shapes: CentredShapes) -> None:
    """A DegenerateShapeError that names the shapes whose rotation is open."""
    if turned.all():
        return
    n, _, d = shapes.shape
    gram = shapes.rows.reshape(n, d, -1)
    values = np.linalg.svd(gram, compute_uv=False)
    flat = np.flatnonzero(values[:, -2] <= 1e-12 * values.max(axis=1))
    culprits = flat if len(flat) else np.flatnonzero(~turned)
    raise DegenerateShapeError(
        f"Shape number {listed(culprits)} cannot be turned against the others: its landmarks all "
        f"lie on one {'point' if d == 2 else 'line'}, or match them equally well in several "
        "directions. Drop such shapes, or add landmarks."
    )


def _in_frame_of_first(Z: Array, S: Array) -> tuple[Array, Array]:
    """The same solution, turned like the first shape: R_1 = I."""
    R = Z[0] / np.sqrt(_squared_scales(Z[:1]))
    return Z @ R.T, R @ S


def _at_mean_size(shapes: CentredShapes, Z: Array, S: Array) -> tuple[Array, Array]:
    """The same solution with the reference as large as the shapes are on average."""
    factor = _completed_sizes(shapes, Z, S).mean() / np.linalg.norm(S)
    return Z / factor, S * factor


def _completed_sizes(shapes: CentredShapes, Z: Array, S: Array) -> Array:
    """(n,): centroid sizes, with what a shape does not see taken from its fit S Z_iᵀ + a_i.

    About the centroid of what it sees, a shape of squared size p has hidden points
    h_j = (S[j] − S̄_i) Z_iᵀ; about its own, the whole has p + Σ‖h_j‖² − ‖Σ h_j‖² / m.
    """
    if shapes.visible is None:
        return np.sqrt(shapes.spreads)
    m = S.shape[1]
    mean, hidden = shapes.means(S), (m - shapes.counts)[:, np.newaxis]
    # S is centred: what is hidden sums to minus what is seen
    total = -shapes.counts[:, np.newaxis] * mean
    squares = (1 - shapes.visible) @ (S * S).sum(axis=0)
    about = squares - 2 * (total * mean).sum(axis=1) + hidden[:, 0] * (mean * mean).sum(axis=1)
    shift = ((total - hidden * mean) ** 2).sum(axis=1) / m
    return np.sqrt(shapes.spreads + _squared_scales(Z) * (about - shift))
