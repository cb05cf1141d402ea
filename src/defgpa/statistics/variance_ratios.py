"""Ratios of mean squares, as observed and as permuted residuals of reduced models make them.

Y is what was measured, Q the basis of the model before a term, E = Y − QQᵀY what that leaves. Under
the null hypothesis the rows of E are exchangeable, so with a permutation π the term could as well
have met Y* = QQᵀY + E[π]. All sums of squares of Y* are squared lengths of projections of E[π] onto
orthonormal columns, and permuting E is permuting those columns: one small product a permutation.

Where the denominator of F is another term at random (families within kinds), specimens are not
exchangeable: those of a family are alike. In a balanced design what Y has in both terms together,
the rows of SᵀY for an orthonormal basis S, are independent and of one covariance. Chance rotates
these, which is exact for normal variation (Langsrud 2005); RRPP permutes residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.linalg import orth

from defgpa.arrays import Array, Index
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.permutation import (
    Permutations,
    compress_columns,
    extract_permuted,
    p_value,
    require_chance,
)
from defgpa.statistics.two_way import TwoWay

RESIDUAL = -1  # the denominator of a ratio: what all terms together leave
_CONSTANT = 1e-10  # the range of an intercept that is one, but for rounding


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
        """The number of rows."""
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
        if np.ptp(self.intercept) > _CONSTANT:
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
        projected = extract_permuted(self._columns.T, orders, E)
        if not np.isscalar(kept):
            projected = projected + self._columns.T @ kept
        squares = np.einsum("bkp,bkp->bk", projected, projected)
        ends = np.cumsum([0, *self.df])
        parts = [squares[:, start:stop].sum(axis=1) for start, stop in pairwise(ends)]
        sums = np.stack(parts, axis=1) if parts else np.empty((len(orders), 0))
        explained = squares if self._is_sequential else squares[:, ends[-1] :]
        return sums, np.asarray(explained.sum(axis=1))


Terms = ModelTerms | TwoWay


def permute_ratios(
    Y: Array,
    terms: Terms,
    against: Sequence[int],
    permutations: Permutations,
    chance: str = "residuals",
) -> Ratios:
    """Compute F = MS_j / MS_against of every term j, as observed and under chance.

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
    chance : {"residuals", "rotations"}
        How F over the mean square of another term is tested; residuals of all terms are permuted
        where the denominator is what the model leaves.
    """
    require_chance(chance)
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
    permuted = permutations.each(terms.n, width, compute_ratios)
    if chance == "rotations" and isinstance(terms, ModelTerms):
        for j, denominator in enumerate(against):
            if denominator != RESIDUAL:
                permuted[:, j] = _rotate_ratio(Y, terms, j, denominator, permutations)
    sums, explained = terms.sums(Y, identity)
    total = float(np.sum(Y**2))
    residual = max(total - float(explained[0]), 0.0)
    return Ratios(sums[0], residual, total, compute_ratios(identity)[0], permuted)


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


def _rotate_ratio(
    Y: Array, terms: ModelTerms, j: int, against: int, permutations: Permutations
) -> Array:
    """Compute MS_j / MS_against (count,) of Y (n, p) rotated within the space of both terms."""
    columns = [terms.bases[j], terms.bases[against]]
    n_columns = [basis.shape[1] for basis in columns]
    if not all(n_columns):
        return np.full(permutations.count, np.nan)
    S = orth(np.hstack(columns))
    rows, (term, error) = S.T @ Y, (basis.T @ S for basis in columns)

    def rotate(frames: Array) -> Array:
        rotated = frames @ rows
        numerator, denominator = (((X @ rotated) ** 2).sum(axis=(1, 2)) for X in (term, error))
        return np.asarray((numerator / n_columns[0]) / (denominator / n_columns[1]))

    return permutations.each_rotation(len(rows), len(rows), rotate)
