"""Predict missing landmarks from the visible ones: the conditional mean of a Gaussian of shapes.

A shape x, brought to the mean μ of the others by a similarity, is modelled as

    x = μ + T a + Σ_k √w_k (x_k − μ) b_k + f + e,

T the infinitesimal similarities, free, so that a pose estimated from the visible landmarks costs
nothing; x_k the other specimens with weights w_k; f a smooth field, the same Gaussian process in
every coordinate, which bends where specimens are too few to tell how; e noise. The covariance is

    C = X Xᵀ + c TTᵀ + v (β K ⊗ I + ρ I),     K_jl = exp(−‖μ_j − μ_l‖² / 2 (ℓ s)²),

v the mean variance of a coordinate, s the RMS radius of μ. Given the visible part y of x − μ, the
missing part is C_hs C_ss⁻¹ y, with covariance C_hh − C_hs C_ss⁻¹ C_sh. The hyperparameters β, ρ, ℓ
and the weights w_k are chosen on holdouts (`defgpa.completion.holdouts`).

A landmark of weight γ < 1, relative to the others, was measured with variance v ρ/γ instead of v ρ:
C_ss gets τ = v ρ (1/γ − 1) more on its diagonal. What a full measurement of it would have shown is
y − τ C_ss⁻¹ y, with covariance τ − τ C_ss⁻¹ τ: the measurement for γ = 1, the prediction from the
other landmarks for γ → 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from defgpa.arrays import Array, Index, Mask, invert_lower, rms, rms_radius
from defgpa.procrustes import SIMILARITY, fit_motions
from defgpa.shapes import Shapes
from defgpa.tangent_space import rotate_onto_mean, scale_to_unit_size
from defgpa.threads import check_interruption

MIN_TRUST = 0.5  # with which a landmark counts as visible where one has to decide


@dataclass(frozen=True)
class Hyperparameters:
    """How much a Gaussian of shapes trusts specimens, smoothness and measurements.

    Attributes
    ----------
    noise : float
        ρ, variance of a measurement over the mean variance of a coordinate.
    smooth : float
        β, the same of the smooth field.
    reach : float
        ℓ, the length scale of the field, in RMS radii of the mean shape.
    nearness : float
        Specimens at a squared distance of this many times the median weigh exp(−½).
    """

    noise: float = 0.05
    smooth: float = 1.0
    reach: float = 0.6
    nearness: float = np.inf


@dataclass(frozen=True, eq=False)
class Estimate:
    """A completed shape, in its own coordinates."""

    points: Array  # (m, d)
    deviation: Array  # (m,): expected distance from the truth, 0 where measured with full weight


@dataclass(frozen=True, eq=False)
class ShapeGaussian:
    """The distribution of shapes that complete specimens (n, m, d) in one pose and size suggest.

    Attributes
    ----------
    specimens : array (n, m, d)
    hyperparameters : Hyperparameters
    excluded : int or None
        A specimen that does not count, because it is the one to be predicted.
    """

    specimens: Array
    hyperparameters: Hyperparameters
    excluded: int | None = None

    def without(self, specimen: int) -> ShapeGaussian:
        """Return the distribution of all other specimens, without computing their moments again."""
        others = replace(self, excluded=specimen)
        vars(others)["_scatter"] = self._scatter
        return others

    @cached_property
    def mean(self) -> Array:
        """(m, d): μ with equal weights."""
        n, mean = len(self.specimens), self._scatter.mean
        if self.excluded is None:
            return mean
        return np.asarray(mean + (mean - self.specimens[self.excluded]) / (n - 1))

    @cached_property
    def deviations(self) -> Array:
        """(q, m, d): X, rows whose sum of squares is the covariance of the specimens.

        With y = Rᵀu the deviation of the excluded one, the others have the covariance
        n/(n − 1) Rᵀ(I − uuᵀ/(n − 1))R, whose root is a rank-one change of R.
        """
        root = self._scatter.root
        if self.excluded is None:
            return root
        n = len(self.specimens)
        u = self._scatter.loadings[self.excluded]
        length = float(u @ u)
        if length == 0.0:
            return np.asarray(np.sqrt(n / (n - 1)) * root)
        shrinkage = (1.0 - np.sqrt(max(0.0, 1.0 - length / (n - 1)))) / length
        y = self.specimens[self.excluded] - self._scatter.mean
        return np.asarray(np.sqrt(n / (n - 1)) * (root - shrinkage * u[:, None, None] * y))

    @cached_property
    def variance(self) -> float:
        """v, the mean variance of a coordinate."""
        return float((self.deviations**2).sum() / self.mean.size)

    @cached_property
    def _scatter(self) -> Scatter:
        return Scatter.of(self.specimens)

    def complete(self, shape: Array, trust: Array | None = None) -> Estimate:
        """Estimate the missing landmarks of a shape (m, d), NaN where missing.

        Those of little ``trust`` (m,), in (0, 1], are moved towards their prediction.
        """
        check_interruption()
        visible = ~np.isnan(shape[:, 0])
        is_measured = visible if trust is None else visible & (trust >= 1.0)
        n_counted = visible.sum() if trust is None else (visible & (trust >= MIN_TRUST)).sum()
        predictors = choose_predictors(self.mean, is_measured)
        predictors = np.union1d(predictors, np.flatnonzero(visible & ~is_measured))
        masses = None if trust is None else trust[visible]
        pose = fit_motions(shape[visible], self.mean[visible], masses, SIMILARITY)
        deviation, prediction = np.zeros(len(shape)), None
        # pose and estimate depend on each other: again where much is missing
        for _ in range(3 if 4 * n_counted < 3 * len(visible) else 1):
            posed = pose(shape)
            if prediction is None or np.isfinite(self.hyperparameters.nearness):
                prediction = self._predict(posed, predictors, ~visible, trust)
            estimates = prediction.apply(posed)
            if trust is not None:
                low, expected, doubt = self._correct(posed, prediction, trust)
                posed[low], deviation[low] = expected, doubt
            posed[~visible], deviation[~visible] = estimates, prediction.deviation
            inverse = pose.inverse()
            points = np.where(is_measured[:, None], shape, inverse(posed))
            pose = fit_motions(points, self.mean, motions=SIMILARITY)
        return Estimate(points, deviation * float(inverse.scale))

    def predict_left_out(self, shape: Array) -> Array:
        """Compute how far every visible landmark is from its prediction by the other visible ones.

        At the size of the specimens, in their pose; NaN where missing. With Q = C⁻¹ of all
        landmarks, that of the visible ones alone is Q_ss − Q_sh Q_hh⁻¹ Q_hs, so that a shape costs
        as much as it is missing. For hyperparameters without nearness.

        Parameters
        ----------
        shape : array (m, d)

        Returns
        -------
        array (m, d)
        """
        check_interruption()
        m, d = shape.shape
        visible = ~np.isnan(shape[:, 0])
        posed = fit_motions(shape[visible], self.mean[visible], motions=SIMILARITY)(shape)
        y = np.where(visible[:, None], posed - self.mean, 0.0).ravel()
        missing = np.repeat(~visible, d)
        Q_h = self._precision[missing]  # (h, md)
        K = np.linalg.solve(Q_h[:, missing], Q_h)
        Qy = self._precision @ y - K.T @ (Q_h @ y)
        projected = np.einsum("hpd,hpe->pde", Q_h.reshape(-1, m, d), K.reshape(-1, m, d))
        Q = np.einsum("pdpe->pde", self._precision.reshape(m, d, m, d)) - projected
        residuals = np.full(shape.shape, np.nan)
        residuals[visible] = np.linalg.solve(Q[visible], Qy.reshape(m, d)[visible, :, None])[..., 0]
        return residuals

    @cached_property
    def _precision(self) -> Array:
        """(md, md): Q = C⁻¹ of all landmarks, A⁻¹ ⊗ I − A⁻¹B M⁻¹ BᵀA⁻¹."""
        m, d = self.mean.shape
        factors = self._factorize(self.mean, np.arange(m))
        AB = factors.AB.transpose(0, 2, 1).reshape(m * d, -1)
        inverse = cho_solve(factors.factor, np.eye(m))
        return np.asarray(np.kron(inverse, np.eye(d)) - AB @ np.linalg.solve(factors.M, AB.T))

    def _predict(
        self, posed: Array, predictors: Index, missing: Mask, trust: Array | None = None
    ) -> _Prediction:
        """Prepare the conditional mean, given specimens weighed by nearness to the posed shape.

        Parameters
        ----------
        posed : array (m, d)
            A shape in the pose of the mean, NaN where missing.
        predictors : array (k,) of int
            The visible landmarks to predict from.
        missing : array (m,) of bool
        trust : array (m,), optional
            How far visible landmarks count.
        """
        factors = self._factorize(posed, predictors, trust)
        v, hyper, d = self.variance, self.hyperparameters, posed.shape[1]
        mean, B = factors.mean, factors.B
        G = (
            v
            * hyper.smooth
            * compute_gaussian_kernel(mean[missing], mean[predictors], factors.width)
        )
        AG = cho_solve(factors.factor, G.T)
        # what B moves at the missing landmarks beyond what the smooth field makes of it already
        p, q = len(predictors), len(B)
        visible_rows = B[:, predictors].transpose(0, 2, 1).reshape(q * d, p)
        deviations = B[:, missing] - (visible_rows @ AG).reshape(q, d, -1).transpose(0, 2, 1)
        flat = deviations.reshape(q, -1)
        spread = (flat * np.linalg.solve(factors.M, flat)).sum(axis=0).reshape(-1, d).sum(axis=1)
        field = v * hyper.smooth - np.einsum("sp,ps->s", G, AG)
        deviation = np.sqrt(spread + d * (np.maximum(field, 0.0) + v * hyper.noise))
        return _Prediction(factors, predictors, missing, G, deviations, deviation)

    def _correct(
        self, posed: Array, prediction: _Prediction, trust: Array
    ) -> tuple[Index, Array, Array]:
        """Compute what full measurements of the predictors of little trust would have shown.

        Returns
        -------
        landmarks : array (l,)
        expected : array (l, d)
            y − τ C⁻¹y.
        deviation : array (l,)
            Their RMS distance from it, the root of the trace of τ − τ C⁻¹ τ.
        """
        factors, predictors = prediction.factors, prediction.predictors
        low = np.flatnonzero(trust[predictors] < 1.0)
        landmarks, d = predictors[low], posed.shape[1]
        excess = self.variance * self.hyperparameters.noise * (1.0 / trust[landmarks] - 1.0)
        y = (posed - factors.mean)[predictors]
        coefficients = np.linalg.solve(factors.M, np.einsum("pqd,pd->q", factors.AB, y))
        AB = factors.AB[low]
        precise = cho_solve(factors.factor, y)[low] - np.einsum("lqd,q->ld", AB, coefficients)
        flat = AB.transpose(1, 0, 2).reshape(len(coefficients), -1)
        explained = (flat * np.linalg.solve(factors.M, flat)).sum(axis=0).reshape(-1, d).sum(axis=1)
        inverse = cho_solve(factors.factor, np.eye(len(predictors))[:, low])[low].diagonal()
        left = d * excess - excess**2 * (d * inverse - explained)
        expected = posed[landmarks] - excess[:, None] * precise
        return landmarks, expected, np.sqrt(np.maximum(left, 0.0))

    def _factorize(self, posed: Array, predictors: Index, trust: Array | None = None) -> _Factors:
        """Factorize C_ss = A ⊗ I + BᵀB by Woodbury's identity."""
        mean, X = self._weigh_specimens(posed, predictors, trust)
        v, hyper = self.variance, self.hyperparameters
        width = hyper.reach * rms_radius(mean)
        A = v * hyper.smooth * compute_gaussian_kernel(mean[predictors], mean[predictors], width)
        noise = 1.0 if trust is None else 1.0 / trust[predictors]
        A[np.diag_indices(len(predictors))] += v * hyper.noise * noise
        # motions of 100 standard deviations are as good as free
        B = np.concatenate([X, 100.0 * np.sqrt(v) * _build_similarity_moves(mean)])
        visible, factor = B[:, predictors], cho_factor(A, lower=True)
        q, p, d = visible.shape
        AB = np.asarray(cho_solve(factor, visible.transpose(1, 0, 2).reshape(p, q * d)))
        AB = AB.reshape(p, q, d)
        flat = AB.transpose(1, 0, 2).reshape(q, p * d)
        M = np.eye(q) + visible.reshape(q, p * d) @ flat.T
        return _Factors(mean, B, width, factor, AB, M)

    def _weigh_specimens(
        self, posed: Array, predictors: Index, trust: Array | None = None
    ) -> tuple[Array, Array]:
        """Compute the weighted mean (m, d) and deviations (q, m, d), √w in them."""
        if not np.isfinite(self.hyperparameters.nearness):
            return self.mean, self.deviations
        specimens = self.specimens
        if self.excluded is not None:
            specimens = np.delete(specimens, self.excluded, axis=0)
        squares = (specimens[:, predictors] - posed[predictors]) ** 2
        if trust is not None:
            squares *= trust[predictors, None]
        squares = squares.sum(axis=(1, 2))
        width = self.hyperparameters.nearness * float(np.median(squares))
        w = np.exp(-0.5 * (squares - squares.min()) / max(width, np.finfo(float).tiny))
        w /= w.sum()
        mean = np.tensordot(w, specimens, 1)
        deviations = np.sqrt(w)[:, None, None] * (specimens - mean)
        return mean, _reduce_rows(deviations)[0]


@dataclass(frozen=True, eq=False)
class Scatter:
    """Mean and covariance of specimens (n, m, d), in at most as many rows as they have coordinates.

    Attributes
    ----------
    mean : array (m, d)
    root : array (r, m, d)
        R: the covariance is RᵀR, over n.
    loadings : array (n, r)
        u of every specimen: its deviation from the mean is Rᵀu.
    """

    mean: Array
    root: Array
    loadings: Array

    @classmethod
    def of(cls, specimens: Array) -> Scatter:
        """Compute the scatter of specimens (n, m, d)."""
        n = len(specimens)
        mean = specimens.mean(axis=0)
        root, loadings = _reduce_rows((specimens - mean) / np.sqrt(n))
        if loadings is None:
            return cls(mean, root, np.sqrt(n) * (np.eye(n) - 1.0 / n))
        return cls(mean, root, np.sqrt(n) * loadings)


class _Factors(NamedTuple):
    """The covariance of the predictors in factors, by which products with C⁻¹ are cheap."""

    mean: Array  # (m, d)
    B: Array  # (q, m, d): specimens and motions
    width: float  # of the kernel
    factor: tuple[Array, bool]  # of A
    AB: Array  # (p, q, d): A⁻¹B
    M: Array  # (q, q): I + BᵀA⁻¹B


class _Prediction(NamedTuple):
    """The conditional mean of missing landmarks, for any pose of the visible ones."""

    factors: _Factors
    predictors: Index  # (p,): the landmarks that predict
    missing: Mask  # (m,): those that are predicted, h of them
    G: Array  # (h, p): the covariance of the smooth field between both
    beyond: Array  # (q, h, d): what B moves at the missing ones beyond the smooth field
    deviation: Array  # (h,): the RMS distance from the conditional mean

    def apply(self, posed: Array) -> Array:
        """Compute the conditional mean (h, d) of the missing landmarks of a posed shape (m, d)."""
        factors = self.factors
        y = (posed - factors.mean)[self.predictors]
        coefficients = np.linalg.solve(factors.M, np.einsum("pqd,pd->q", factors.AB, y))
        smooth = self.G @ cho_solve(factors.factor, y)
        return factors.mean[self.missing] + smooth + np.tensordot(coefficients, self.beyond, 1)


def predict_left_out(specimens: Array, hyperparameters: Hyperparameters) -> tuple[Array, Array]:
    """Predict every landmark of every specimen from all its others and all other specimens.

    With Q = C⁻¹, the residual of landmark j is Q_jj⁻¹ (Qy)_j, its covariance Q_jj⁻¹. All specimens
    share A, B and N = M⁻¹; leaving out the specimen with the loadings u takes
    N u uᵀN / (n − 1 − uᵀu + uᵀNu) from N. The cost grows linearly with the number of specimens.
    For hyperparameters without nearness.

    Parameters
    ----------
    specimens : array (n, m, d)
        Complete, in one pose and size.
    hyperparameters : Hyperparameters

    Returns
    -------
    residuals : array (n, m, d)
    lengths : array (n, m)
        The expected lengths of the residuals.
    """
    check_interruption()
    n, m, d = specimens.shape
    gaussian = ShapeGaussian(specimens, hyperparameters)
    factors = gaussian._factorize(gaussian.mean, np.arange(m))
    q = len(factors.B)
    loadings = np.zeros((n, q))
    loadings[:, : gaussian._scatter.loadings.shape[1]] = gaussian._scatter.loadings
    y = (specimens - factors.mean) * (n / (n - 1))  # from the mean of the others
    N = np.linalg.inv(factors.M)
    AB = factors.AB.transpose(0, 2, 1).reshape(m * d, q)
    AB_N = AB @ N
    inverse = invert_lower(np.tril(factors.factor[0])[None])[0]  # A⁻¹ = L⁻ᵀL⁻¹
    shared = (inverse**2).sum(axis=0)[:, None, None] * np.eye(d)
    shared = shared - np.einsum(
        "pdq,peq->pde", AB_N.reshape(m, d, q), AB.reshape(m, d, q), optimize=True
    )
    Nu = loadings @ N
    denominators = n - 1 - (loadings**2).sum(axis=1) + (loadings * Nu).sum(axis=1)
    reciprocals = 1.0 / np.maximum(denominators, np.finfo(np.float64).eps)
    ABNu = (Nu @ AB.T).reshape(n, m, d)
    Q = shared + np.einsum("ipd,ipe,i->ipde", ABNu, ABNu, reciprocals, optimize=True)
    BAy = y.reshape(n, m * d) @ AB
    along = (BAy * Nu).sum(axis=1) * reciprocals
    coefficients = BAy @ N - along[:, None] * Nu
    Ay = cho_solve(factors.factor, y.transpose(1, 0, 2).reshape(m, n * d)).reshape(m, n, d)
    Qy = Ay.transpose(1, 0, 2) - (coefficients @ AB.T).reshape(n, m, d)
    covariance = np.linalg.inv(Q)
    residuals = np.einsum("ipde,ipe->ipd", covariance, Qy)
    return residuals, np.sqrt(np.einsum("ipdd->ip", covariance))


def compute_gaussian_kernel(x: Array, y: Array, width: float) -> Array:
    """Compute exp(−‖x − y‖² / 2 width²) (p, q) between points (p, d) and (q, d)."""
    return np.asarray(np.exp(-0.5 * cdist(x, y, "sqeuclidean") / width**2))


def choose_predictors(mean: Array, visible: Mask) -> Index:
    """Choose visible landmarks to estimate from: all, or near ones and some all over the shape."""
    numbers = np.flatnonzero(visible)
    if len(numbers) <= 600 or visible.all():
        return numbers
    distance = cdist(mean[numbers], mean[~visible]).min(axis=1)
    nearest = numbers[np.argsort(distance, kind="stable")[:400]]
    remaining = np.setdiff1d(numbers, nearest)
    return np.union1d(nearest, remaining[:: max(1, len(remaining) // 200)])


def fill_gaps(points: Array) -> Array:
    """Estimate the missing landmarks of shapes (n, m, d) with the default hyperparameters."""
    complete = fill_with_mean(points) if np.isnan(points).any() else points
    # of 4 specimens or fewer no statistics can be made
    if len(points) <= 4:
        return complete
    return refill_gaps(complete, points, Hyperparameters(), rounds=3)


def compute_trust(shapes: Shapes) -> Array | None:
    """Return how far every landmark (n, m) counts: its weight over the mean of all, at most 1.

    None where all count the same.
    """
    weights = shapes.unequal_weights
    return None if weights is None else np.clip(weights, 1e-6, 1.0)


def refill_gaps(
    complete: Array,
    points: Array,
    hyperparameters: Hyperparameters,
    rounds: int,
    trust: Array | None = None,
) -> Array:
    """Estimate missing landmarks again, those of each shape from all other shapes.

    Parameters
    ----------
    complete : array (n, m, d)
        With earlier estimates.
    points : array (n, m, d)
        The same, NaN where missing.
    hyperparameters : Hyperparameters
    rounds : int
        How often, since the estimates of one shape enter those of the others.
    trust : array (n, m), optional
        How far visible landmarks count.

    Returns
    -------
    array (n, m, d)
    """
    is_doubtful = np.isnan(points[..., 0]) if trust is None else trust < 1.0
    partial = np.flatnonzero(is_doubtful.any(axis=1))
    for _ in range(rounds if len(partial) else 0):
        specimens = rotate_onto_mean(scale_to_unit_size(complete))
        gaussian = ShapeGaussian(specimens, hyperparameters)
        complete = np.array(points)
        for i in partial:
            row = None if trust is None else trust[i]
            complete[i] = gaussian.without(int(i)).complete(points[i], row).points
    return complete


def fill_with_mean(points: Array, trust: Array | None = None) -> Array:
    """Fill gaps of shapes (n, m, d) by the mean of each landmark, posed by a similarity."""
    visible = ~np.isnan(points[..., :1])
    most_complete = points[int((visible[..., 0] if trust is None else trust).sum(axis=1).argmax())]
    mean = np.where(np.isnan(most_complete), np.nanmean(most_complete, axis=0), most_complete)
    complete = points
    for _ in range(20):
        pose = fit_motions(points, mean, trust, SIMILARITY)
        filling = pose.inverse()(np.broadcast_to(mean, points.shape))
        complete = blend(points, filling, trust)
        mean = pose(complete).mean(axis=0)
    return complete


def blend(points: Array, filling: Array, trust: Array | None) -> Array:
    """Fill gaps of points (n, m, d), and move those of little trust (n, m) towards the filling."""
    complete = np.where(np.isnan(points), filling, points)
    if trust is None:
        return complete
    moved = filling + trust[..., None] * (complete - filling)
    return np.where(trust[..., None] < 1.0, moved, complete)


def _reduce_rows(deviations: Array) -> tuple[Array, Array | None]:
    """Return at most m·d rows (r, m, d) with the same covariance, and the loadings (n, r) on them.

    Few rows are returned as they are, without loadings.
    """
    n, m, d = deviations.shape
    if n <= m * d:
        return deviations, None
    flat = deviations.reshape(n, m * d)
    values, axes = np.linalg.eigh(flat.T @ flat)
    varying = values > 1e-14 * max(values[-1], np.finfo(float).tiny)
    lengths, axes = np.sqrt(values[varying]), axes[:, varying]
    return (lengths[:, None] * axes.T).reshape(-1, m, d), flat @ (axes / lengths)


def _build_similarity_moves(mean: Array) -> Array:
    """Build translations, growth and rotations of the mean: (1 + d(d+1)/2, m, d), each of RMS 1.

    Zero where the mean does not move: on a line of space it does not turn about that line.
    """
    m, d = mean.shape
    centred = mean - mean.mean(axis=0)
    moves = [np.broadcast_to(axis, (m, d)) for axis in np.eye(d)] + [centred]
    for a in range(d):
        for b in range(a + 1, d):
            generator = np.zeros((d, d))
            generator[a, b], generator[b, a] = 1.0, -1.0
            moves.append(centred @ generator)
    return np.stack([move / (rms(move) or 1.0) for move in moves])
