"""What shape depends on: sums of squares of tangent coordinates, and chance by permutation.

The terms of a formula enter one after the other; with RSS the residual sum of squares over all
coordinates, a term has

    SS = RSS_reduced − RSS_full,   R² = SS / SS_total,   F = MS / MS_residual,

P is the share of permutations of the reduced model's residuals (the observed order among them)
whose F is as large, and Z the standard score of F among all of them after a Box–Cox
transformation: the definitions of procD.lm in geomorph and RRPP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from defgpa._arrays import Array, Progress, threads_for
from defgpa.errors import ShapeError
from defgpa.notebook import render_table
from defgpa.statistics.design import Design, columns_of, design
from defgpa.statistics.pairwise import PairwiseDistances, pairwise_distances
from defgpa.statistics.permutation import (
    RESIDUAL,
    Permutations,
    Ratios,
    SequentialTerms,
    Terms,
    permuted_ratios,
    pool_ratios,
)
from defgpa.statistics.sample import Analysed, Provenance, build_sample, impute_tangents
from defgpa.statistics.table import Effect, EffectTable, effect


@dataclass(frozen=True, eq=False)
class ProcrustesAnova:
    """A model of shape with its table of effects; prints like R's ``anova``.

    Attributes
    ----------
    formula : str
        What was asked.
    table : EffectTable
        Df, SS, MS, R², F, Z and P of every term, the residuals and the total.
    tangents : array (n, m, d)
        The shapes in the tangent space.
    design : Design
        The columns of the model.
    ratios : Ratios
        Observed and permuted F, one column a term.
    permutations : Permutations
        How many there were, and from which seed.
    provenance : Provenance
        Which coordinates were analysed, and how many landmarks were completed.
    """

    formula: str
    table: EffectTable
    tangents: Array
    design: Design
    ratios: Ratios
    permutations: Permutations
    provenance: Provenance

    def __str__(self) -> str:
        count = self.permutations.count
        head = f"Procrustes analysis of variance: {self.formula}"
        how = f"{count} permutations of the residuals of reduced models, seed"
        return f"{head}\n{self.provenance}\n{how} {self.permutations.seed}\n\n{self.table}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, *rows = self.table.cells()
        return render_table(f"Procrustes analysis of variance: {self.formula}", rows, header)

    def __getitem__(self, term: str) -> Effect:
        """The row of a term."""
        return self.table[term]

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame, indexed by term."""
        return self.table.to_pandas()

    def to_csv(self) -> str:
        """The table as comma-separated text."""
        return self.table.to_csv()

    @cached_property
    def coefficients(self) -> Array:
        """(k, m, d): of the columns of the model; the smallest where columns are aliased."""
        flat = self.tangents.reshape(len(self.tangents), -1)
        weights = np.linalg.pinv(self.design.columns) @ flat
        return weights.reshape(-1, *self.tangents.shape[1:])

    @property
    def fitted(self) -> Array:
        """(n, m, d): the shapes that the model expects."""
        return np.tensordot(self.design.columns, self.coefficients, axes=1)

    @property
    def residuals(self) -> Array:
        """(n, m, d): what the model leaves."""
        return self.tangents - self.fitted

    def predict(self, data: Mapping[str, Any]) -> Array:
        """(k, m, d): the shapes that the model expects for other data, one row each.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = np.array([[0, 0], [4, 0], [4, 3], [0, 3.0]]) + 0.1 * rng.normal(size=(8, 4, 2))
        >>> model = procrustes_anova("shape ~ dose", x, {"dose": np.arange(8.0)})
        >>> model.predict({"dose": [2.5, 20.0]}).shape
        (2, 4, 2)
        """
        return np.tensordot(self.design.rows(data), self.coefficients, axes=1)

    def pairwise(
        self,
        groups: str | Sequence[Any],
        null: str | None = None,
        *,
        progress: Progress | None = None,
    ) -> PairwiseDistances:
        """The distances between the mean shapes of groups, with P and Z.

        Means are those of the model, with numbers among the data held at their own means.

        Parameters
        ----------
        groups : str or sequence
            A factor of the data, several as in ``"species:site"``, or one label per shape.
        null : str, optional
            The formula of the reduced model whose residuals are permuted; by default the terms
            that have none of the factors in them: "all these groups have one mean".
        progress : callable (done, total), optional
            Told how many permutations are done.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = np.array([[0, 0], [4, 0], [4, 3], [0, 3.0]]) + 0.1 * rng.normal(size=(9, 4, 2))
        >>> model = procrustes_anova("shape ~ kind", x, {"kind": list("aaabbbccc")}, 99)
        >>> model.pairwise("kind").names
        ('a', 'b', 'c')
        """
        flat = self.tangents.reshape(len(self.tangents), -1)
        permutations = replace(self.permutations, progress=progress)
        return pairwise_distances(flat, self.design, groups, null, permutations, self.provenance)


def procrustes_anova(
    formula: str,
    x: Analysed,
    data: Mapping[str, Any] | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    space: str = "superimposed",
    superimpose: bool = True,
    n_imputations: int = 0,
    progress: Progress | None = None,
) -> ProcrustesAnova:
    """Test which factors and covariates shape depends on, as geomorph's ``procD.lm``.

    Parameters
    ----------
    formula : str
        ``"shape ~ species * site"``, ``"shape ~ log(size) + sex"``: as in R, read by the package
        formulaic. ``size`` is the centroid size unless the data have a column of that name;
        ``C(x)`` makes a factor of numbers.
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed, and the result says how many.
    data : mapping of str to sequence, or DataFrame
        One row per shape, in their order. What the files of the shapes say besides (``group``,
        the columns of a table) is known without.
    n_permutations : int
        Random orders, besides the observed one.
    seed : int
        Of the random orders: the same seed, the same P.
    space : {"superimposed", "back_projected"}
        The specimens in their classical tangent space, whatever warps an alignment has; or its
        reference projected back into each, which holds only what the warps follow.
    superimpose : bool
        False for coordinates that have been superimposed before.
    n_imputations : int
        Where landmarks were completed, so many completions are drawn from their uncertainty: SS,
        R² and F are means over them, and P and Z are those of the mean F. 0 takes the expected
        completion alone, which understates the variance.
    progress : callable (done, total), optional
        Told how many permutations are done.

    Returns
    -------
    ProcrustesAnova
        Prints as a table; ``to_pandas``, ``predict``, ``pairwise``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.array([[0, 0], [4, 0], [4, 3], [0, 3.0]]) + 0.1 * rng.normal(size=(12, 4, 2))
    >>> x[6:, 2] += 1.0
    >>> model = procrustes_anova("shape ~ kind", x, {"kind": list("aaaaaabbbbbb")})
    >>> model["kind"].df, bool(model["kind"].p < 0.01), bool(model["kind"].r_squared > 0.5)
    (1, True, True)
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    n = sample.shapes.n_shapes
    user_columns = {} if data is None else {str(key): np.asarray(data[key]) for key in data}
    columns = {"size": sample.sizes, **columns_of(sample.shapes), **user_columns}
    model = design(formula, columns, n)
    rank = model.basis.shape[1]
    if rank >= n:
        raise ShapeError(
            f"The model has {rank} parameters for {n} shapes, so nothing is left to compare its "
            "terms with. Leave out terms, or factors with a level for every shape."
        )
    sample.warn_of_findings()
    terms = SequentialTerms(model.bases, n)
    against = [RESIDUAL] * len(model.bases)
    sample, tangents = impute_tangents(sample, n_imputations, seed)
    with threads_for(sample.tangents.size * rank * n_permutations // 100):
        ratios = pool_ratios(
            [permuted_ratios(x.reshape(n, -1), terms, against, permutations) for x in tangents]
        )
    table = effect_table(model.terms, terms, ratios)
    return ProcrustesAnova(
        formula, table, sample.tangents, model, ratios, permutations, sample.provenance
    )


def effect_table(names: Sequence[str], terms: Terms, ratios: Ratios) -> EffectTable:
    """The rows of the terms, of the residuals where there are any, and of the total."""
    total = float(ratios.sums.sum()) + ratios.residual
    rows = [
        effect(name, df, float(ss), total, float(ratios.observed[k]), ratios.z(k), ratios.p(k))
        for k, (name, df, ss) in enumerate(zip(names, terms.df, ratios.sums, strict=True))
    ]
    left = terms.n - 1 - sum(terms.df)
    if left:
        rows.append(effect("Residuals", left, ratios.residual, total))
    return EffectTable((*rows, Effect("Total", terms.n - 1, total)))
