"""Pairwise distances between mean shapes of groups, tested by permutation.

With X the columns of the model and rows L for the groups, in which covariates have their means over
all shapes, the mean shapes are L X⁺ Y. Permuting the residuals of a model that does not know the
groups permutes the columns of L X⁺.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import orth

from defgpa.arrays import Array, Index
from defgpa.errors import DefgpaError
from defgpa.formatting import align_columns
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.design import Design, design, strip_markup
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.pairs import PairRows, fill_pairs
from defgpa.statistics.permutation import (
    Permutations,
    compress_columns,
    extract_permuted,
    p_values,
)
from defgpa.statistics.provenance import Provenance

_ALIASED = 1e-9  # relative: the singular value of a column that others explain


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseDistances(PairRows):
    """Distances between the mean shapes of groups.

    Attributes
    ----------
    names : tuple of g str
        The groups.
    distances, z, p : array (g, g)
        Procrustes distance, effect size and P of every pair; z and p are NaN on the diagonal.
    null : str
        The model whose residuals were permuted.
    n_permutations : int
        How often.
    provenance : Provenance
        Which coordinates were analysed.
    """

    _columns = ("a", "b", "distance", "z", "p")
    _attributes = ("names", "distances", "z", "p")

    names: tuple[str, ...]
    distances: Array
    z: Array
    p: Array
    null: str
    n_permutations: int
    provenance: Provenance

    def __str__(self) -> str:
        table = align_columns([("", "distance", "Z", "Pr(>d)"), *self.cells()])
        chance = f"{self.n_permutations} permutations of the residuals of {self.null}"
        return f"Distances between mean shapes\n{self.provenance}\n{chance}\n\n{table}"


def pairwise_distances(
    draws: Sequence[Array],
    model: Design,
    groups: str | Sequence[object],
    null: str | None,
    permutations: Permutations,
    provenance: Provenance,
) -> PairwiseDistances:
    """Measure distances of group means of a fitted model, with residuals of ``null`` permuted.

    ``draws`` are shapes (n, p), one array for each imputation; distances are means over them.
    """
    n = len(draws[0])
    labels, factors = _label_shapes(groups, model)
    names, codes = encode_groups(labels, n, "groups")
    if len(names) < 2:
        raise DefgpaError(f"There must be at least 2 groups to compare; got only {names[0]!r}.")
    columns, held = model.hold_covariates()
    averages = np.stack([held[codes == g].mean(axis=0) for g in range(len(names))])
    scales = np.maximum(np.linalg.norm(columns, axis=0), np.finfo(np.float64).tiny)
    means = averages / scales @ np.linalg.pinv(columns / scales, rcond=_ALIASED)
    terms, reduced = _reduce_model(model, factors, null)
    first, second = np.triu_indices(len(names), 1)
    pooled_observed, pooled_chance = [], []
    for Y in draws:
        centred = compress_columns(Y - Y.mean(axis=0))
        expected = reduced @ (reduced.T @ centred)
        residuals, expected_means = centred - expected, means @ expected

        def measure(orders: Index, E: Array = residuals, constant: Array = expected_means) -> Array:
            shapes = extract_permuted(means, orders, E) + constant
            products = shapes @ shapes.transpose(0, 2, 1)
            lengths = np.diagonal(products, axis1=1, axis2=2)
            squares = lengths[:, first] + lengths[:, second] - 2 * products[:, first, second]
            return np.sqrt(np.maximum(squares, 0.0))

        pooled_observed.append(measure(np.arange(n)[None])[0])
        pooled_chance.append(permutations.each(n, len(names), measure))
    observed, chance = np.mean(pooled_observed, axis=0), np.mean(pooled_chance, axis=0)
    g = len(names)
    z = [effect_size(*pair) for pair in zip(observed, chance.T, strict=True)]
    distances, p = fill_pairs(g, observed, 0.0), fill_pairs(g, p_values(observed, chance))
    return PairwiseDistances(
        names, distances, fill_pairs(g, z), p, terms, permutations.count, provenance
    )


def _label_shapes(
    groups: str | Sequence[object], model: Design
) -> tuple[Sequence[object], tuple[str, ...]]:
    """Return one label per shape, and the factors they are made of."""
    if not isinstance(groups, str):
        return groups, ()
    factors = tuple(name.strip() for name in groups.split(":"))
    for factor in factors:
        if factor not in model.data.columns:
            columns = ", ".join(map(str, model.data.columns))
            raise DefgpaError(f"There is no column {factor!r} to group by. There are: {columns}.")
        if not any(_contains(term, factor) for term in model.terms):
            terms = ", ".join(model.terms)
            raise DefgpaError(
                f"The model knows nothing of {factor!r}, so its groups have one mean. Put it into "
                f"the formula; it has: {terms}."
            )
        if not _is_factor(model, factor):
            raise DefgpaError(
                f"{factor!r} has numbers, so the model takes it as a covariate, which has no "
                f"groups. Write C({factor}) in the formula to compare them."
            )
    values = [model.data[factor].astype(str) for factor in factors]
    return [".".join(row) for row in zip(*values, strict=True)], factors


def _reduce_model(model: Design, factors: Sequence[str], null: str | None) -> tuple[str, Array]:
    """Return the formula of the null model, or of the model without the factors, and its basis.

    The basis (n, q) has orthonormal columns.
    """
    if null is not None:
        formula = null if "~" in null else f"shape ~ {null}"
        return formula, design(formula, model.data, len(model.columns)).basis
    spans = {str(term): span for term, span in model.spec.term_slices.items()}
    is_free = {term: not any(_contains(term, factor) for factor in factors) for term in model.terms}
    terms = [term for term in model.terms if factors and is_free[term]]
    formula = f"shape ~ {' + '.join(terms) or 1}"
    blocks = [model.columns[:, spans[term]] for term in terms]
    return formula, np.asarray(orth(np.hstack([model.intercept, *blocks]), rcond=1e-9))


def _is_factor(model: Design, column: str) -> bool:
    """Return whether a column is of words, or of numbers that ``C(…)`` makes a factor of."""
    is_number = model.data[column].dtype.kind in "iuf"
    return not is_number or column in model.factors


def _contains(term: str, factor: str) -> bool:
    return factor in map(strip_markup, term.split(":"))
