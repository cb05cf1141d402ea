"""Permutation tests: permuting the residuals of the reduced model.

Y is what was measured, Q the basis of the model before a term, E = Y − QQᵀY what that leaves. Under
the null hypothesis the rows of E are exchangeable, so with a permutation π the term could as well
have met Y* = QQᵀY + E[π]. All sums of squares of Y* are squared lengths of projections of E[π] onto
orthonormal columns, and permuting E is permuting those columns: one small product a permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import ClassVar, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from defgpa.arrays import Array, Index, Mask, Progress
from defgpa.errors import DefgpaError
from defgpa.threads import map_blocks

Drawn = TypeVar("Drawn", bound=np.ndarray)

RESIDUAL = -1  # the denominator of a ratio: what all terms together leave
_TIES = 1e-10  # relative: a permutation that gives the same groups gives the same ratio


@dataclass(frozen=True, eq=False)
class Ratios:
    """Observed and permuted ratios of mean squares.

    Attributes
    ----------
    sums : array (t,)
        Sums of squares of the terms.
    residual, total : float
        What the full model leaves, and what there is.
    observed : array (t,)
        F of every term, NaN where its denominator is nothing.
    permuted : array (n_permutations, t)
        The same under chance.
    """

    sums: Array
    residual: float
    total: float
    observed: Array
    permuted: Array

    def p(self, term: int) -> float:
        """Compute the share of permutations, the observed one included, that reach its F."""
        return p_value(self.observed[term], self.permuted[:, term])

    def z(self, term: int) -> float:
        """Compute how far the observed F stands out of the permuted ones, see `effect_size`."""
        return effect_size(self.observed[term], self.permuted[:, term])


@dataclass(frozen=True, eq=False)
class ModelTerms:
    """Terms of a linear model, each compared with a reduced model that lacks it.

    All columns are orthonormal within their array, and orthogonal to the intercept.

    Attributes
    ----------
    intercept : array (n, 1)
        Of length 1; constant, unless rows are weighed by a covariance.
    reduced : tuple of arrays (n, r_j)
        The model that term j is added to.
    bases : tuple of arrays (n, df_j)
        B_j: what term j adds to it.
    full : array (n, r)
        The model with all terms.
    """

    intercept: Array
    reduced: tuple[Array, ...]
    bases: tuple[Array, ...]
    full: Array

    @classmethod
    def sequential(cls, intercept: Array, bases: Sequence[Array]) -> ModelTerms:
        """Make sequential (type I) sums of squares: each term after those before it."""
        full = np.hstack([np.empty((len(intercept), 0)), *bases])
        ends = np.cumsum([0, *(basis.shape[1] for basis in bases)])
        reduced = tuple(full[:, :end] for end in ends[:-1])
        return cls(intercept, reduced, tuple(bases), full)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.intercept)

    @property
    def df(self) -> tuple[int, ...]:
        """Degrees of freedom of every term: the columns of its B_j."""
        return tuple(basis.shape[1] for basis in self.bases)

    @property
    def residual_df(self) -> int:
        """Degrees of freedom that the full model leaves."""
        return self.n - 1 - self.full.shape[1]

    @property
    def width(self) -> int:
        """How many numbers a permutation keeps in memory for every row."""
        return self._columns.shape[1]

    @cached_property
    def _is_sequential(self) -> bool:
        return sum(self.df) == self.full.shape[1] and all(
            np.array_equal(basis, self.full[:, end - basis.shape[1] : end])
            for basis, end in zip(self.bases, np.cumsum(self.df), strict=True)
        )

    @cached_property
    def _columns(self) -> Array:
        """The columns that rows are projected onto: those of the terms first, then the others.

        An intercept that is not constant is among them, since it explains some of permuted rows.
        """
        columns = [self.full] if self._is_sequential else [*self.bases, self.full]
        if np.ptp(self.intercept) > _TIES:
            columns.append(self.intercept)
        return np.hstack(columns)

    def center(self, Y: Array) -> Array:
        """Remove the intercept from Y (n, p)."""
        return Y - self.intercept @ (self.intercept.T @ Y)

    def compute_residuals(self, term: int, Y: Array) -> Array:
        """Return what the intercept and the reduced model of a term leave of Y (n, p)."""
        centred, Q = self.center(Y), self.reduced[term]
        return centred - Q @ (Q.T @ centred)

    def sums(self, E: Array, orders: Index, kept: Array | float = 0.0) -> tuple[Array, Array]:
        """Compute the sums of squares of E (n, p) with its rows in each of the orders (b, n).

        The rows of the bases are permuted instead of those of E. ``kept`` (n, p) is added to E
        without being permuted.

        Returns
        -------
        sums : array (b, t)
            ‖B_jᵀE‖² of every term.
        explained : array (b,)
            That of the full model, its intercept included.
        """
        projected = self._columns[orders].transpose(0, 2, 1) @ E
        if not np.isscalar(kept):
            projected += self._columns.T @ kept
        squares = np.einsum("bkp,bkp->bk", projected, projected)
        ends = np.cumsum([0, *self.df])
        parts = [squares[:, start:stop].sum(axis=1) for start, stop in pairwise(ends)]
        sums = np.stack(parts, axis=1) if parts else np.empty((len(orders), 0))
        explained = squares if self._is_sequential else squares[:, ends[-1] :]
        return sums, np.asarray(explained.sum(axis=1))


@dataclass(frozen=True, eq=False)
class TwoWay:
    """Individuals, sides and their interaction as sums over groups, whatever the balance.

    SS of individuals and of cells are those of group means; the side adds one column v, what
    individuals leave of it; the interaction is what the cells have besides.
    """

    width: ClassVar[int] = 64  # about as many numbers as a shape has

    codes: Index
    sides: Index

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.codes)

    @property
    def df(self) -> tuple[int, ...]:
        """k − 1, 1 and k − 1 for k individuals with two sides each."""
        k = int(self.codes.max())
        return k, 1, k

    @cached_property
    def _cells(self) -> csr_array:
        return build_averaging(2 * self.codes + self.sides)

    @cached_property
    def _individuals(self) -> csr_array:
        return build_averaging(self.codes)

    @cached_property
    def _side(self) -> Array:
        """v, of length 1."""
        v = np.where(self.sides == 1, 1.0, -1.0)
        v = v - (self._individuals @ v)[self.codes]
        return np.asarray(v / np.linalg.norm(v))

    @property
    def residual_df(self) -> int:
        """Degrees of freedom of replicates."""
        return self.n - 1 - sum(self.df)

    def center(self, Y: Array) -> Array:
        """Remove the mean from Y (n, p)."""
        return Y - Y.mean(axis=0)

    def compute_residuals(self, before: int, Y: Array) -> Array:
        """Return what a constant, then individuals, then sides leave."""
        left = Y - (Y.mean(axis=0) if before == 0 else (self._individuals @ Y)[self.codes])
        return left - np.outer(self._side, self._side @ left) if before == 2 else left

    def sums(self, E: Array, orders: Index, kept: Array | float = 0.0) -> tuple[Array, Array]:
        """Compute sums of squares (b, 3) of group means and (b,) of all terms together."""
        b, n = orders.shape
        rows = np.ascontiguousarray((E[orders] + kept).transpose(1, 0, 2)).reshape(n, -1)
        grand_squares = n * _sum_squares(rows.mean(axis=0)[None], b).sum(axis=0)
        counts = np.bincount(self.codes)
        individual = counts @ _sum_squares(self._individuals @ rows, b)
        cell_counts = np.bincount(2 * self.codes + self.sides)
        cells = cell_counts @ _sum_squares(self._cells @ rows, b)
        side = _sum_squares((self._side @ rows)[None], b)[0]
        interaction = np.maximum(cells - individual - side, 0.0)
        sums = np.stack([individual - grand_squares, side, interaction], axis=1)
        return sums, np.asarray(sums.sum(axis=1))


def build_averaging(codes: Index) -> csr_array:
    """Build the sparse matrix (g, n) that averages rows over every group."""
    counts = np.bincount(codes)
    n = len(codes)
    return csr_array((1.0 / counts[codes], (codes, np.arange(n))), shape=(len(counts), n))


def _sum_squares(means: Array, b: int) -> Array:
    """Compute squared lengths (g, b) of g means for b orders side by side."""
    return np.asarray((means.reshape(len(means), b, -1) ** 2).sum(axis=2))


Terms = ModelTerms | TwoWay


def permute_ratios(
    Y: Array, terms: Terms, against: Sequence[int], permutations: Permutations
) -> Ratios:
    """Compute F = MS_j / MS_against of every term j, as observed and with permuted residuals.

    Parameters
    ----------
    Y : array (n, p)
        What was measured.
    terms : Terms
        The model.
    against : sequence of int
        For every term, the one whose mean square is the denominator, or RESIDUAL.
    permutations : Permutations
        How many, from which seed.
    """
    Y = compress_columns(terms.center(Y))
    residuals = [terms.compute_residuals(j, Y) for j in range(len(terms.df))]

    def compute_ratios(orders: Index) -> Array:
        columns = []
        for j, E in enumerate(residuals):
            # an error term may be part of the reduced model, as in type III
            kept = 0.0 if against[j] == RESIDUAL else Y - E
            columns.append(_compute_ratio(terms, j, against[j], *terms.sums(E, orders, kept), E))
        return np.stack(columns, axis=1) if columns else np.empty((len(orders), 0))

    identity = np.arange(terms.n)[None]
    # all coordinates of all rows are permuted for sums over groups
    width = max(terms.width, Y.shape[1]) if isinstance(terms, TwoWay) else terms.width
    chance = permutations.each(terms.n, width, compute_ratios)
    sums, explained = terms.sums(Y, identity)
    total = float(np.sum(Y**2))
    residual = max(total - float(explained[0]), 0.0)
    return Ratios(sums[0], residual, total, compute_ratios(identity)[0], chance)


def pool_ratios(ratios: Sequence[Ratios]) -> Ratios:
    """Average sums of squares, observed and permuted F over imputations of the same sample.

    All have been permuted in the same orders, so a row of the mean is the mean F of one order.
    """
    if len(ratios) == 1:
        return ratios[0]
    return Ratios(
        np.mean([each.sums for each in ratios], axis=0),
        float(np.mean([each.residual for each in ratios])),
        float(np.mean([each.total for each in ratios])),
        np.mean([each.observed for each in ratios], axis=0),
        np.mean([each.permuted for each in ratios], axis=0),
    )


def _compute_ratio(
    terms: Terms, j: int, against: int, sums: Array, explained: Array, E: Array
) -> Array:
    """Compute MS_j / MS_against (b,), NaN without degrees of freedom or a denominator.

    ``sums`` (b, t) and ``explained`` (b,) are sums of squares of the permuted residuals E (n, p).
    """
    total = float(np.sum(E**2))
    if against == RESIDUAL:
        df, spent = terms.residual_df, total - explained
    else:
        df, spent = terms.df[against], sums[:, against]
    # less than 1e-13 of all is what rounding leaves of zero
    is_defined = (spent > 1e-13 * total) & (df > 0) & (terms.df[j] > 0)
    numerator = sums[:, j] * max(df, 1)
    denominator = spent * max(terms.df[j], 1)
    undefined = np.full_like(numerator, np.nan)
    return np.divide(numerator, denominator, out=undefined, where=is_defined)


def compare_with_chance(
    Y: Array,
    reduced: Array,
    extract: Array,
    measure: Callable[[Array], Array],
    permutations: Permutations,
    chance: str = "rotations",
) -> tuple[Array, Array]:
    """Measure combinations of shapes as observed, and as chance alone would make them.

    The part that the reduced model explains stays; what it leaves is rotated at random within the
    space of residuals, or permuted. Permuted residuals vary less than errors, by the share of the
    parameters, which makes angles too small; rotations are exact for normal errors (Langsrud 2005).

    Parameters
    ----------
    Y : array (n, p)
        Shapes.
    reduced : array (n, q)
        Orthonormal columns of the model of the null hypothesis, its intercept among them.
    extract : array (r, n)
        The combinations, such as means of groups.
    measure : callable (b, r, p) -> (b, k)
    permutations : Permutations
    chance : {"rotations", "residuals"}

    Returns
    -------
    observed : array (k,)
    chance : array (n_permutations, k)
    """
    n = len(Y)
    Y = compress_columns(Y - Y.mean(axis=0))
    expected = reduced @ (reduced.T @ Y)
    residuals, constant = Y - expected, extract @ expected
    observed = measure((constant + extract @ residuals)[None])[0]
    if chance == "residuals":

        def permute(orders: Index) -> Array:
            # the rows of the combinations in the inverse order, which is as likely
            return measure(extract[:, orders].transpose(1, 0, 2) @ residuals + constant)

        return observed, permutations.each(n, len(extract), permute)
    if chance != "rotations":
        raise DefgpaError(f"'chance' is 'rotations' or 'residuals'; got {chance!r}.")
    space = np.linalg.qr(reduced, mode="complete")[0][:, reduced.shape[1] :]
    left, lengths, _ = np.linalg.svd(extract @ space, full_matrices=False)
    rank = int((lengths > _TIES * lengths.max()).sum())
    mixing, errors = left[:, :rank] * lengths[:rank], space.T @ Y

    def rotate(frames: Array) -> Array:
        return measure(mixing @ (frames.transpose(0, 2, 1) @ errors) + constant)

    return observed, permutations.each_rotation(len(errors), rank, rotate)


def compress_columns(Y: Array) -> Array:
    """Return at most n columns with the same products of rows, hence the same projections."""
    if Y.shape[1] <= len(Y):
        return Y
    return np.asarray(np.linalg.qr(Y.T, mode="r"), dtype=np.float64).T


@dataclass(frozen=True)
class Permutations:
    """Seeded random permutations; the same ones for any number of threads."""

    count: int = 999
    seed: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name, value, minimum in (("n_permutations", self.count, 1), ("seed", self.seed, 0)):
            is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not is_whole or value < minimum:
                raise DefgpaError(
                    f"'{name}' must be a whole number of at least {minimum}. Got {value!r} instead."
                )

    def each(
        self, n: int, width: int, work: Callable[[Index], Array], held: int = 1 << 20
    ) -> Array:
        """Call ``work`` on blocks (b, n) of random orders, and join its results (b, …).

        A block has as many orders as keep ``held`` numbers, ``width`` for each row of each.
        """

        def draw(rng: np.random.Generator, count: int) -> Index:
            return rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)

        return self._run_blocks(n * max(width, 1), draw, work, held)

    def each_rotation(self, size: int, rank: int, work: Callable[[Array], Array]) -> Array:
        """Call ``work`` on blocks (b, size, rank) of columns of random orthogonal matrices."""

        def draw(rng: np.random.Generator, count: int) -> Array:
            return np.linalg.qr(rng.normal(size=(count, size, rank)))[0]

        return self._run_blocks(4 * size * max(rank, 1), draw, work)

    def _run_blocks(
        self,
        width: int,
        draw: Callable[[np.random.Generator, int], Drawn],
        work: Callable[[Drawn], Array],
        held: int = 1 << 20,
    ) -> Array:
        max_block = max(1, held // max(width, 1))
        counts = [min(max_block, self.count - start) for start in range(0, self.count, max_block)]
        seeds = np.random.SeedSequence(self.seed).spawn(len(counts))
        n_done, lock = [0], Lock()

        def run(block: tuple[int, np.random.SeedSequence]) -> Array:
            count, seed = block
            result = work(draw(np.random.default_rng(seed), count))
            with lock:
                n_done[0] += count
                if self.progress is not None:
                    self.progress(n_done[0], self.count)
            return result

        return np.concatenate(map_blocks(run, list(zip(counts, seeds, strict=True))))

    def signs(self, k: int) -> Array:
        """Draw random rows (count, k) of ±1, independent of the orders."""
        rng = np.random.default_rng([self.seed, k])
        return rng.choice([-1.0, 1.0], size=(self.count, k))


def p_value(observed: float, permuted: Array) -> float:
    """Compute P: the share of permuted values, the observed one included, that reach the observed.

    Examples
    --------
    >>> import numpy as np
    >>> p_value(3.0, np.array([1.0, 3.0, 0.5, 2.0]))
    0.4
    """
    if np.isnan(observed):
        return float("nan")
    return float((1 + reaches_observed(observed, permuted).sum()) / (1 + len(permuted)))


def reaches_observed(observed: float | Array, permuted: Array) -> Mask:
    """Return where permuted values are as large as the observed ones, but for rounding."""
    return np.asarray(permuted >= observed - _TIES * np.abs(observed))


def effect_size(observed: float, permuted: Array) -> float:
    """Compute Z: the standard score of the observed value among all, after Box–Cox, as RRPP.

    Mean and variance are those of all values, the observed one among them.
    """
    values = transform_to_normal(observed, permuted)
    if values is None:
        return float("nan")
    return float((values[-1] - values.mean()) / values.std())


def transform_to_normal(observed: float, permuted: Array) -> Array | None:
    """Transform permuted values and, at the end, the observed one by Box–Cox; None if all agree.

    The exponent λ in [−5, 5] is the one under which the permuted values, without the observed one,
    are most nearly normal (largest likelihood). Values are shifted to be positive where one is not.
    """
    values = np.append(permuted, observed)
    values = values[~np.isnan(values)]
    if np.isnan(observed) or len(values) < 3 or np.ptp(values) <= _TIES * np.abs(values).max():
        return None
    if values.min() <= 0:
        values = values - values.min() + 1e-4 * np.ptp(values)
    exponent = fit_box_cox(values[:-1])
    if exponent is None:
        return None
    logs = np.log(values)
    mean = float(logs[:-1].mean())
    return np.asarray(np.exp(exponent * mean) * _transform_box_cox(logs - mean, exponent))


def fit_box_cox(values: Array, max_exponent: float = 5.0) -> float | None:
    """Estimate the exponent λ under which positive values are most nearly normal; None if equal."""
    logs = np.log(values)
    if np.ptp(logs) <= _TIES:
        return None
    logs -= logs.mean()  # about 0: powers neither over- nor underflow

    def minus_log_likelihood(exponent: float) -> float:
        return 0.5 * float(np.log(_transform_box_cox(logs, exponent).var()))

    bounds = (-max_exponent, max_exponent)
    return float(minimize_scalar(minus_log_likelihood, bounds=bounds, method="bounded").x)


def _transform_box_cox(logs: Array, exponent: float) -> Array:
    """Transform values of geometric mean about 1, given by their logarithms: (y^λ − 1) / λ."""
    if abs(exponent) < 1e-3:
        return logs
    return np.asarray(np.expm1(exponent * logs) / exponent)
