"""Two-block partial least squares: how two sets of variables vary together.

With X and Y centred, the singular value decomposition of their cross-covariance
S = XᵀY / (n − 1) = U D Vᵀ gives pairs of axes with the largest covariance (Rohlf and Corti 2000).
r-PLS is the correlation of the scores XU₁ and YV₁; chance permutes the specimens of one block. Z is
its standard score among the permuted ones, and compares effects between data sets: the difference
of two r-PLS, each in units of its own permuted spread (Adams and Collyer 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from defgpa._arrays import Array, Index, Progress
from defgpa.errors import DefgpaError, ShapeError
from defgpa.statistics.partition import parse_partition
from defgpa.statistics.permutation import Permutations, compressed, effect_size, p_value
from defgpa.statistics.sample import Analysed, Provenance, Sample, build_sample
from defgpa.statistics.table import Rows
from defgpa.tables import figure, lined_up


@dataclass(frozen=True, eq=False)
class TwoBlockPLS(Rows):
    """Two blocks of variables and the axes along which they vary together.

    Attributes
    ----------
    r : float
        r-PLS, the correlation of the first pair of scores.
    z, p : float
        Effect size and P of it.
    singular_values : array (k,)
        Covariances of the pairs of scores.
    x_scores, y_scores : array (n, k)
        Of the specimens.
    x_axes, y_axes : array (k, p), (k, q)
        Orthonormal; of shape, flattened coordinates.
    permuted : array (n_permutations,)
        r-PLS under chance.
    provenance : Provenance
        Which coordinates were analysed.
    """

    _columns = ("axis", "singular_value", "share")

    r: float
    z: float
    p: float
    singular_values: Array
    x_scores: Array
    y_scores: Array
    x_axes: Array
    y_axes: Array
    permuted: Array
    provenance: Provenance

    @property
    def observed(self) -> float:
        """r-PLS, under the name that all tests of covariation have."""
        return self.r

    @property
    def shares(self) -> Array:
        """(k,): the squared covariance of every pair of axes, as a share of all."""
        return np.asarray(self.singular_values**2 / (self.singular_values**2).sum())

    def _rows(self) -> list[tuple[Any, ...]]:
        pairs = zip(self.singular_values, self.shares, strict=True)
        return [(k, float(value), float(share)) for k, (value, share) in enumerate(pairs, 1)]

    def __str__(self) -> str:
        head = f"Two-block PLS: r {self.r:.5f}, Z {figure(self.z)}, P {figure(self.p)}"
        rows = [(str(k), figure(v), f"{share:.1%}") for k, v, share in self._rows()[:8]]
        table = lined_up([("axis", "singular value", "share"), *rows])
        return f"{head}\n{self.provenance}\n\n{table}"

    __repr__ = __str__


def two_block_pls(
    x: Analysed,
    y: Any = None,
    partition: Any = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> TwoBlockPLS:
    """Find how two sets of variables vary together, as geomorph's ``two.b.pls``.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    y : array (n, q), DataFrame, Alignment or Shapes, optional
        Numbers that describe the same specimens, or their shapes by other landmarks.
    partition : sequence of m labels, or mapping of module to landmarks, optional
        Instead of y: two sets of the landmarks of x, superimposed together.
    n_permutations, seed, space, superimpose, progress
        As in `procrustes_anova`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(size=20)
    >>> x = rng.normal(size=(8, 2)) + 0.01 * rng.normal(size=(20, 8, 2))
    >>> x[:, 3, 0] += age
    >>> found = two_block_pls(x, age[:, None])
    >>> bool(found.r > 0.9), found.p
    (True, 0.001)
    """
    if (y is None) == (partition is None):
        raise DefgpaError("Two-block PLS needs either a second block 'y' or a 'partition'.")
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    sample.warn_of_findings()
    blocks = _split_blocks(sample, y, partition)
    X, Y = (block - block.mean(axis=0) for block in blocks)
    n = len(X)
    U, D, Vt = np.linalg.svd(X.T @ Y / (n - 1), full_matrices=False)
    rank = max(1, int((1e-12 * D[0] < D).sum()))
    U, D, Vt = _fix_signs(U[:, :rank], D[:rank], Vt[:rank])
    r = correlate_blocks(X, Y)
    permuted = permute_correlation(X, Y, permutations)
    return TwoBlockPLS(
        r,
        effect_size(r, permuted),
        p_value(r, permuted),
        D,
        X @ U,
        Y @ Vt.T,
        U.T,
        Vt,
        permuted,
        sample.provenance,
    )


def _split_blocks(sample: Sample, y: Any, partition: Any) -> tuple[Array, Array]:
    n = sample.shapes.n_shapes
    tangents = sample.tangents
    if partition is not None:
        names, codes = parse_partition(partition, sample.shapes.landmarks)
        if len(names) != 2:
            raise DefgpaError(f"Two-block PLS has 2 sets of landmarks; got {len(names)}.")
        return tangents[:, codes == 0].reshape(n, -1), tangents[:, codes == 1].reshape(n, -1)
    return tangents.reshape(n, -1), _read_block(y, n)


def _read_block(y: Any, n: int) -> Array:
    """Return the second block (n, q): a table of numbers, or the tangent coordinates of shapes."""
    values = y
    if hasattr(y, "to_numpy"):
        values = y.to_numpy(dtype=np.float64)
    elif hasattr(y, "shapes") or hasattr(y, "landmarks") or np.ndim(y) == 3:
        values = build_sample(y).tangents.reshape(-1, np.prod(build_sample(y).tangents.shape[1:]))
    try:
        block = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError("The second block must be a table of numbers, or shapes.") from None
    block = block[:, None] if block.ndim == 1 else block
    if block.ndim != 2 or len(block) != n or not np.isfinite(block).all():
        raise ShapeError(
            f"The second block must have {n} rows, one per specimen, of finite numbers; got size "
            f"{block.shape}."
        )
    if np.ptp(block, axis=0).max() == 0:
        raise ShapeError("The second block does not vary: there is nothing to covary with.")
    return block


def correlate_blocks(X: Array, Y: Array) -> float:
    """Compute r-PLS of two centred blocks (n, p) and (n, q)."""
    U, _, Vt = np.linalg.svd(X.T @ Y, full_matrices=False)
    x, y = X @ U[:, 0], Y @ Vt[0]
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def permute_correlation(X: Array, Y: Array, permutations: Permutations) -> Array:
    """Compute r-PLS (n_permutations,) with the specimens of Y in random orders."""
    X, Y = compressed(X), compressed(Y)
    # fewer columns make the decomposition smaller, products stay the same
    X, Y = _drop_empty_columns(X), _drop_empty_columns(Y)

    def correlate(orders: Index) -> Array:
        crosses = np.einsum("np,bnq->bpq", X, Y[orders], optimize=True)
        U, _, Vt = np.linalg.svd(crosses, full_matrices=False)
        x = np.einsum("np,bp->bn", X, U[:, :, 0])
        y = np.einsum("bnq,bq->bn", Y[orders], Vt[:, 0])
        lengths = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
        return np.asarray((x * y).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny))

    width = max(X.shape[1], Y.shape[1])
    return permutations.each(len(X), width, correlate)


def _drop_empty_columns(X: Array) -> Array:
    lengths = np.linalg.norm(X, axis=0)
    return X[:, lengths > 1e-12 * lengths.max()]


def _fix_signs(U: Array, D: Array, Vt: Array) -> tuple[Array, Array, Array]:
    """Make the largest entry of every x axis positive."""
    signs = np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])])
    return U * signs, D, Vt * signs[:, None]


@dataclass(frozen=True, eq=False)
class EffectSizes(Rows):
    """Effect sizes compared between data sets, by pairs."""

    _columns = ("a", "b", "z", "p")

    names: tuple[str, ...]
    effect_sizes: Array
    z: Array  # (k, k): standardised differences
    p: Array  # (k, k), two-sided

    def _rows(self) -> list[tuple[Any, ...]]:
        first, second = np.triu_indices(len(self.names), 1)
        return [
            (self.names[i], self.names[j], float(self.z[i, j]), float(self.p[i, j]))
            for i, j in zip(first, second, strict=True)
        ]

    def __str__(self) -> str:
        sizes = [(name, figure(z)) for name, z in zip(self.names, self.effect_sizes, strict=True)]
        pairs = [(f"{a} – {b}", figure(z), figure(p)) for a, b, z, p in self._rows()]
        own = lined_up([("", "Z"), *sizes])
        return f"{own}\n\n{lined_up([('', 'Z difference', 'P'), *pairs])}"

    __repr__ = __str__


def compare_effect_sizes(results: Sequence[Any], names: Sequence[str] | None = None) -> EffectSizes:
    """Compare the strength of covariation or modularity between data sets or hypotheses.

    With y the observed value and y* the permuted ones, after Box–Cox, two effects differ by
    |(y₁ − mean y₁*) − (y₂ − mean y₂*)| / √(var y₁* + var y₂*), a standard normal deviate
    (Adams and Collyer 2016, 2019; geomorph's ``compare.pls``, ``compare.CR``).

    Parameters
    ----------
    results : sequence of TwoBlockPLS, Integration or Modularity
        At least two.
    names : sequence of str, optional
        Of the results; ``1``, ``2``, … by default.
    """
    if len(results) < 2:
        raise DefgpaError(f"There must be at least 2 results to compare; got {len(results)}.")
    deviations = np.array([result.observed - result.permuted.mean() for result in results])
    spreads = np.array([result.permuted.std() for result in results])
    z = np.abs(deviations[:, None] - deviations) / np.sqrt(spreads[:, None] ** 2 + spreads**2)
    labels = tuple(map(str, names or range(1, len(results) + 1)))
    sizes = np.array([result.z for result in results])
    return EffectSizes(labels, sizes, z, np.asarray(2 * norm.sf(z)))
