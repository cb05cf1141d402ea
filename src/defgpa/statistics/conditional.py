"""Where unseen landmarks lie, given those that are seen: the conditional mean of a Gaussian.

A shape x, brought to the mean μ of the others by a similarity, is thought of as

    x = μ + T a + Σ_k √w_k (x_k − μ) b_k + f + e,

T the infinitesimal similarities, free, so that a pose taken from what is seen costs nothing;
x_k the other specimens, weighted by w_k; f a smooth field, the same Gaussian in every coordinate,
which bends where specimens are too few to tell how; e noise. So the covariance is

    C = X Xᵀ + c TTᵀ + v (β K ⊗ I + ρ I),     K_jl = exp(−‖μ_j − μ_l‖² / 2 (ℓ s)²),

v the mean variance of a coordinate, s the RMS radius of μ. Given the seen part y of x − μ, the rest
is C_hs C_ss⁻¹ y, with covariance C_hh − C_hs C_ss⁻¹ C_sh. The dials β, ρ, ℓ and the weights are
chosen by hiding what is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from defgpa._arrays import Array, Index, Mask, inverse_of_lower, rms, rms_radius
from defgpa.procrustes import SIMILARITY, stacked
from defgpa.statistics.tangent import rotated_onto_mean, unit_size


@dataclass(frozen=True)
class Dials:
    """How much a Gaussian of shapes trusts specimens, smoothness and measurements.

    Attributes
    ----------
    noise : float
        ρ, variance of a measurement over the mean variance of a coordinate.
    smooth : float
        β, the same of the smooth field.
    reach : float
        ℓ, how far the field is alike, in RMS radii of the mean shape.
    nearness : float
        Specimens at a squared distance of this many times the median weigh exp(−½).
    """

    noise: float = 0.05
    smooth: float = 1.0
    reach: float = 0.6
    nearness: float = np.inf


@dataclass(frozen=True, eq=False)
class Estimate:
    """A shape without gaps, in its own coordinates."""

    points: Array  # (m, d)
    deviation: Array  # (m,): expected distance from the truth, 0 where seen


@dataclass(frozen=True, eq=False)
class ShapeGaussian:
    """What complete specimens (n, m, d), in one pose and size, say about another."""

    specimens: Array
    dials: Dials

    @cached_property
    def mean(self) -> Array:
        """(m, d): μ with equal weights."""
        return np.asarray(self.specimens.mean(axis=0))

    @cached_property
    def variance(self) -> float:
        """v."""
        return float(self.specimens.var(axis=0).mean())

    def completed(self, own: Array) -> Estimate:
        """A shape (m, d), NaN where not seen, that is none of the specimens."""
        seen = ~np.isnan(own[:, 0])
        asked = asked_landmarks(self.mean, seen)
        pose = stacked(own[seen], self.mean[seen], motions=SIMILARITY)
        deviation = np.zeros(len(own))
        # pose and estimate, each from the other, again where much is hidden
        for _ in range(3 if 4 * seen.sum() < 3 * len(seen) else 1):
            posed = pose(own)
            posed[~seen], deviation[~seen] = self._hidden_part(posed, asked, ~seen)
            back = pose.inverse()
            points = np.where(seen[:, None], own, back(posed))
            pose = stacked(points, self.mean, motions=SIMILARITY)
        return Estimate(points, deviation * float(back.scale))

    def left_out(self, own: Array) -> Array:
        """(m, d): how far every seen landmark is from its prediction by the other seen ones.

        At the size of the specimens, in their pose; NaN where not seen. With Q = C⁻¹ of all
        landmarks, that of the seen ones alone is Q_ss − Q_sh Q_hh⁻¹ Q_hs, so that a shape costs as
        much as it hides. For dials without nearness.
        """
        m, d = own.shape
        seen = ~np.isnan(own[:, 0])
        posed = stacked(own[seen], self.mean[seen], motions=SIMILARITY)(own)
        y = np.where(seen[:, None], posed - self.mean, 0.0).ravel()
        hidden = np.repeat(~seen, d)
        Q_h = self._precision[hidden]  # (h, md)
        K = np.linalg.solve(Q_h[:, hidden], Q_h)
        Qy = self._precision @ y - K.T @ (Q_h @ y)
        across = np.einsum("hpd,hpe->pde", Q_h.reshape(-1, m, d), K.reshape(-1, m, d))
        Q = np.einsum("pdpe->pde", self._precision.reshape(m, d, m, d)) - across
        residuals = np.full(own.shape, np.nan)
        residuals[seen] = np.linalg.solve(Q[seen], Qy.reshape(m, d)[seen, :, None])[..., 0]
        return residuals

    @cached_property
    def _precision(self) -> Array:
        """(md, md): Q = C⁻¹ of all landmarks, A⁻¹ ⊗ I − A⁻¹B M⁻¹ BᵀA⁻¹."""
        m, d = self.mean.shape
        given = self._given(self.mean, np.arange(m))
        AB = given.AB.transpose(0, 2, 1).reshape(m * d, -1)
        inverse = cho_solve(given.factor, np.eye(m))
        return np.asarray(np.kron(inverse, np.eye(d)) - AB @ np.linalg.solve(given.M, AB.T))

    def _hidden_part(self, posed: Array, asked: Index, hidden: Mask) -> tuple[Array, Array]:
        """Conditional mean (h, d) and root mean squared distance from it (h,)."""
        given = self._given(posed, asked)
        v, dials, d = self.variance, self.dials, posed.shape[1]
        mean, B = given.mean, given.B
        G = v * dials.smooth * gaussian_kernel(mean[hidden], mean[asked], given.width)
        AG = cho_solve(given.factor, G.T)
        # what B moves at the hidden landmarks beyond what the smooth field makes of it already
        beyond = B[:, hidden] - np.einsum("ps,qpd->qsd", AG, B[:, asked], optimize=True)
        y = (posed - mean)[asked]
        coefficients = np.linalg.solve(given.M, np.einsum("pqd,pd->q", given.AB, y))
        smooth = G @ cho_solve(given.factor, y)
        found = mean[hidden] + smooth + np.einsum("q,qsd->sd", coefficients, beyond)
        flat = beyond.reshape(len(B), -1)
        spread = (flat * np.linalg.solve(given.M, flat)).sum(axis=0).reshape(-1, d).sum(axis=1)
        field = v * dials.smooth - np.einsum("sp,ps->s", G, AG)
        return found, np.sqrt(spread + d * (np.maximum(field, 0.0) + v * dials.noise))

    def _given(self, posed: Array, asked: Index) -> _Given:
        """What C_ss⁻¹ is made of by Woodbury's identity, C_ss = A ⊗ I + BᵀB."""
        mean, X = self._sample(posed, asked)
        v, dials = self.variance, self.dials
        width = dials.reach * rms_radius(mean)
        A = v * dials.smooth * gaussian_kernel(mean[asked], mean[asked], width)
        A[np.diag_indices(len(asked))] += v * dials.noise
        # motions of 100 standard deviations are as good as free
        B = np.concatenate([X, 100.0 * np.sqrt(v) * _motions(mean)])
        seen, factor = B[:, asked], cho_factor(A, lower=True)
        q, p, d = seen.shape
        AB = np.asarray(cho_solve(factor, seen.transpose(1, 0, 2).reshape(p, q * d)))
        AB = AB.reshape(p, q, d)
        M = np.eye(q) + np.tensordot(seen, AB, axes=([1, 2], [0, 2]))
        return _Given(mean, B, width, factor, AB, M)

    def _sample(self, posed: Array, asked: Index) -> tuple[Array, Array]:
        """Weighted mean (m, d) and deviations (n, m, d), √w in them."""
        n = len(self.specimens)
        w = np.full(n, 1.0 / n)
        if np.isfinite(self.dials.nearness):
            squares = ((self.specimens[:, asked] - posed[asked]) ** 2).sum(axis=(1, 2))
            width = self.dials.nearness * float(np.median(squares))
            w = np.exp(-0.5 * (squares - squares.min()) / max(width, np.finfo(float).tiny))
            w /= w.sum()
        mean = np.tensordot(w, self.specimens, 1)
        return mean, np.sqrt(w)[:, None, None] * (self.specimens - mean)


class _Given(NamedTuple):
    """The covariance of the landmarks that are asked, solved with."""

    mean: Array  # (m, d)
    B: Array  # (q, m, d): specimens and motions
    width: float  # of the kernel
    factor: tuple[Array, bool]  # of A
    AB: Array  # (p, q, d): A⁻¹B
    M: Array  # (q, q): I + BᵀA⁻¹B


def left_out(specimens: Array, dials: Dials) -> tuple[Array, Array]:
    """Every landmark of every specimen from all its others and all other specimens.

    For complete ``specimens`` (n, m, d) in one pose and size: residuals (n, m, d) and expected
    lengths of them (n, m). With Q = C⁻¹, the residual of landmark j is Q_jj⁻¹ (Qy)_j, its
    covariance Q_jj⁻¹. All specimens share A, B and N = M⁻¹; the mean and covariance of the others
    are had by taking n/(n − 1) of the square of specimen i from those of all, so from N
    N_:i N_i: n / (n N_ii − 1). For dials without nearness.
    """
    n, m, d = specimens.shape
    given = ShapeGaussian(specimens, dials)._given(specimens[0], np.arange(m))
    y = (specimens - given.mean) * (n / (n - 1))  # from the mean of the others
    N = np.linalg.inv(given.M)
    AB_N = np.einsum("pqd,qr->prd", given.AB, N, optimize=True)
    inverse = inverse_of_lower(np.tril(given.factor[0])[None])[0]  # A⁻¹ = L⁻ᵀL⁻¹
    base = (inverse**2).sum(axis=0)[:, None, None] * np.eye(d)
    base = base - np.einsum("pqd,pqe->pde", AB_N, given.AB, optimize=True)
    own = AB_N[:, :n]  # (m, n, d)
    taken = n / np.maximum(n * np.diag(N)[:n] - 1.0, np.finfo(np.float64).eps)
    Q = base + np.einsum("pid,pie,i->ipde", own, own, taken, optimize=True)
    BAy = np.einsum("pqd,ipd->iq", given.AB, y, optimize=True)
    along = np.einsum("iq,qi->i", BAy, N[:, :n]) * taken
    coefficients = BAy @ N - along[:, None] * N[:n]
    Ay = cho_solve(given.factor, y.transpose(1, 0, 2).reshape(m, n * d)).reshape(m, n, d)
    Qy = Ay.transpose(1, 0, 2) - np.einsum("pqd,iq->ipd", given.AB, coefficients, optimize=True)
    covariance = np.linalg.inv(Q)
    residuals = np.einsum("ipde,ipe->ipd", covariance, Qy)
    return residuals, np.sqrt(np.einsum("ipdd->ip", covariance))


def _motions(mean: Array) -> Array:
    """(1 + d(d+1)/2, m, d): translations, growth and rotations of the mean, each of RMS 1."""
    m, d = mean.shape
    centred = mean - mean.mean(axis=0)
    moves = [np.broadcast_to(axis, (m, d)) for axis in np.eye(d)] + [centred]
    for a in range(d):
        for b in range(a + 1, d):
            turn = np.zeros((d, d))
            turn[a, b], turn[b, a] = 1.0, -1.0
            moves.append(centred @ turn)
    return np.stack([move / rms(move) for move in moves])


def gaussian_kernel(x: Array, y: Array, width: float) -> Array:
    """(p, q): exp(−‖x − y‖² / 2 width²)."""
    return np.asarray(np.exp(-0.5 * cdist(x, y, "sqeuclidean") / width**2))


def asked_landmarks(mean: Array, seen: Mask) -> Index:
    """The seen landmarks an estimate is made from: all, or the near ones and some all over."""
    known = np.flatnonzero(seen)
    if len(known) <= 600 or seen.all():
        return known
    distance = cdist(mean[known], mean[~seen]).min(axis=1)
    near = known[np.argsort(distance, kind="stable")[:400]]
    rest = np.setdiff1d(known, near)
    return np.union1d(near, rest[:: max(1, len(rest) // 200)])


def without_gaps(points: Array) -> Array:
    """Shapes (n, m, d), NaN where not seen, with estimates there; what is seen is untouched."""
    whole = _filled_with_mean(points) if np.isnan(points).any() else points
    # of 4 specimens or fewer no statistics can be made
    return refilled(whole, points, Dials(), rounds=3) if len(points) > 4 else whole


def refilled(whole: Array, points: Array, dials: Dials, rounds: int) -> Array:
    """Shapes (n, m, d) whose estimates are made anew, each shape's from all the others'.

    ``points`` are the same with NaN where not seen.
    """
    partial = np.flatnonzero(np.isnan(points[..., 0]).any(axis=1))
    for _ in range(rounds if len(partial) else 0):
        specimens = rotated_onto_mean(unit_size(whole))
        whole = np.array(points)
        for i in partial:
            others = ShapeGaussian(np.delete(specimens, i, axis=0), dials)
            whole[i] = others.completed(points[i]).points
    return whole


def _filled_with_mean(points: Array) -> Array:
    """The mean over those that see a landmark, brought to every shape by a similarity."""
    seen = ~np.isnan(points[..., :1])
    fullest = points[int(seen.sum(axis=1).argmax())]
    mean = np.where(np.isnan(fullest), np.nanmean(fullest, axis=0), fullest)
    whole = points
    for _ in range(20):
        pose = stacked(points, mean, motions=SIMILARITY)
        whole = np.where(seen, points, pose.inverse()(np.broadcast_to(mean, points.shape)))
        mean = pose(whole).mean(axis=0)
    return whole
