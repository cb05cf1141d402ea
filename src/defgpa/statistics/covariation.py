"""Two-block partial least squares: how two sets of variables vary together.

With X and Y centred, the singular value decomposition of their cross-covariance
S = XᵀY / (n − 1) = U D Vᵀ gives pairs of axes with the largest covariance (Rohlf and Corti 2000).
r-PLS is the correlation of the scores XU₁ and YV₁; chance permutes the specimens of one block. Z is
its standard score among the permuted ones (`compare_effect_sizes` compares it between data sets).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Progress
from defgpa.errors import DefgpaError, ShapeError
from defgpa.formatting import align_columns, format_column, format_number
from defgpa.io.text.table import format_csv
from defgpa.shapes import Shapes
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.cross_covariance import find_first_scores
from defgpa.statistics.partition import Partition, parse_partition
from defgpa.statistics.permutation import Permutations, p_value
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, Sample, build_sample
from defgpa.statistics.table import Row, Rows, Table, format_p

LANCZOS_NUMBERS = 128  # that the axes of a permutation take, for every row


@dataclass(frozen=True, eq=False, repr=False)
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
    x_center, y_center : array (p,), (q,)
        The means of the blocks.
    x_size, y_size : tuple of int
        (m, d) of a block of landmarks, or (q,) of a table of numbers.
    permuted : array (n_permutations,)
        r-PLS under chance.
    blocks : pair of str
        The names of the blocks, for figures.
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
    x_center: Array
    y_center: Array
    x_size: tuple[int, ...]
    y_size: tuple[int, ...]
    permuted: Array
    blocks: tuple[str, str]
    provenance: Provenance

    @property
    def statistic(self) -> str:
        """The name of the statistic that is permuted."""
        return "r-PLS of {} and {}".format(*self.blocks)

    @property
    def observed(self) -> float:
        """r-PLS, under the name that all tests of covariation have."""
        return self.r

    @property
    def shares(self) -> Array:
        """(k,): the squared covariance of every pair of axes, as a share of all."""
        return np.asarray(self.singular_values**2 / (self.singular_values**2).sum())

    def predict(self, score: float, axis: int = 1, block: str = "x") -> Array:
        """Return the shape (m, d), or numbers (q,), of a score along an axis counted from 1.

        ``predict(result.x_scores[:, 0].max())`` is the shape of the x block at the upper end.
        """
        if block not in ("x", "y") or not 1 <= axis <= len(self.singular_values):
            raise DefgpaError(
                f"'block' is 'x' or 'y', and 'axis' is 1 to {len(self.singular_values)}; got "
                f"{block!r} and {axis!r}."
            )
        center, axes, size = (
            (self.x_center, self.x_axes, self.x_size)
            if block == "x"
            else (self.y_center, self.y_axes, self.y_size)
        )
        return np.asarray((center + score * axes[axis - 1]).reshape(size))

    def scores_to_csv(self, names: Sequence[str]) -> str:
        """Return the scores of the first pair of axes as comma-separated text, by specimen."""
        pairs = np.column_stack([self.x_scores[:, 0], self.y_scores[:, 0]]).tolist()
        rows = [(name, *pair) for name, pair in zip(names, pairs, strict=True)]
        return format_csv(("name", "x_score", "y_score"), rows)

    def further_tables(self) -> dict[str, Table]:
        """Return r-PLS of the first pair of axes and its test, as a table by name."""
        return {"test": (("r_pls", "z", "p"), [(self.r, self.z, self.p)])}

    def _rows(self) -> list[Row]:
        pairs = zip(self.singular_values, self.shares, strict=True)
        return [(k, float(value), float(share)) for k, (value, share) in enumerate(pairs, 1)]

    def __str__(self) -> str:
        head = f"Two-block PLS: r {self.r:.5f}, Z {format_number(self.z)}, P {format_p(self.p)}"
        axes, values, shares = zip(*self._rows()[:8], strict=True)
        cells = (map(str, axes), format_column(values), (f"{share:.1%}" for share in shares))
        rows = zip(*cells, strict=True)
        table = align_columns([("axis", "singular value", "squared covariance"), *rows])
        chance = f"{len(self.permuted)} permutations of the specimens of one block"
        return f"{head}\n{self.provenance}\n{chance}\n\n{table}"


def two_block_pls(
    x: Analysed,
    y: Analysed | None = None,
    partition: Partition | None = None,
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

    Returns
    -------
    TwoBlockPLS
        Two blocks of variables and the axes along which they vary together.

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
    blocks, names = _split_blocks(sample, y, partition)
    require_specimens(sample)
    n = sample.shapes.n_shapes
    (X, x_axes), (Y, y_axes) = (
        reduce_columns((block - block.mean(axis=0)).reshape(n, -1)) for block in blocks
    )
    U, D, Vt = np.linalg.svd(X.T @ Y / (n - 1), full_matrices=False)
    rank = max(1, int((1e-12 * D[0] < D).sum()))
    x_axes, y_axes = U.T[:rank] @ x_axes, Vt[:rank] @ y_axes
    signs = np.sign(x_axes[np.arange(rank), np.abs(x_axes).argmax(axis=1)])  # of its largest entry
    r = float(correlate_permuted(X, Y, np.arange(n)[None])[0])
    permuted = permutations.each(
        n, LANCZOS_NUMBERS, lambda orders: correlate_permuted(X, Y, orders)
    )
    return TwoBlockPLS(
        r,
        effect_size(r, permuted),
        p_value(r, permuted),
        D[:rank],
        X @ U[:, :rank] * signs,
        Y @ Vt[:rank].T * signs,
        x_axes * signs[:, None],
        y_axes * signs[:, None],
        blocks[0].mean(axis=0).ravel(),
        blocks[1].mean(axis=0).ravel(),
        blocks[0].shape[1:],
        blocks[1].shape[1:],
        permuted,
        names,
        sample.provenance,
    )


def require_specimens(sample: Sample) -> None:
    """Raise a DefgpaError if there are too few specimens for a correlation."""
    if sample.shapes.n_shapes < 3:
        raise DefgpaError(
            f"Covariation needs at least 3 specimens; there are {sample.shapes.n_shapes}."
        )


def _split_blocks(
    sample: Sample, y: Analysed | None, partition: Partition | None
) -> tuple[tuple[Array, Array], tuple[str, str]]:
    """Return the two blocks, landmarks (n, m, d) or numbers (n, q), and their names."""
    tangents = sample.tangents
    if y is not None:
        second = _read_block(y, len(tangents))
        return (tangents, second), ("shape", "numbers" if second.ndim == 2 else "other landmarks")
    assert partition is not None  # the caller has asked for one of the two
    names, codes = parse_partition(partition, sample.shapes.landmarks)
    if len(names) != 2:
        raise DefgpaError(f"Two-block PLS has 2 sets of landmarks; got {len(names)}.")
    return (tangents[:, codes == 0], tangents[:, codes == 1]), (names[0], names[1])


def _read_block(y: Analysed, n: int) -> Array:
    """Return the second block: a table of numbers (n, q), or tangent coordinates (n, m, d)."""
    if isinstance(y, (Alignment, Shapes, Sample)) or np.ndim(np.asarray(y)) == 3:
        block = build_sample(y).tangents
    else:
        try:
            block = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError("The second block must be a table of numbers, or shapes.") from None
        block = block[:, None] if block.ndim == 1 else block
    if block.ndim not in (2, 3) or len(block) != n or not np.isfinite(block).all():
        raise ShapeError(
            f"The second block must have {n} rows, one per specimen, of finite numbers; got size "
            f"{block.shape}."
        )
    if np.ptp(block, axis=0).max() == 0:
        raise ShapeError("The second block does not vary: there is nothing to covary with.")
    return block


def correlate_permuted(X: Array, Y: Array, orders: Index) -> Array:
    """Compute r-PLS (b,) of centred blocks (n, p) and (n, q), Y with its rows in orders (b, n)."""
    x, y = find_first_scores(X, Y, orders)
    lengths = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return np.asarray((x * y).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny))


def reduce_columns(block: Array) -> tuple[Array, Array]:
    """Factor a block (n, p) into scores (n, k) and orthonormal axes (k, p), k its rank.

    Scores have the same products of rows as the block, and at most n columns.
    """
    U, lengths, axes = np.linalg.svd(block, full_matrices=False)
    varying = lengths > 1e-12 * lengths[0]
    return U[:, varying] * lengths[varying], axes[varying]
