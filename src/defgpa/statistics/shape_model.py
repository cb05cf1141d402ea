"""A linear model of shape: its table of effects, what it expects, and the means of its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from defgpa.arrays import Array, Progress
from defgpa.errors import DefgpaError
from defgpa.formatting import MAX_WIDTH, render_table
from defgpa.statistics.design import Design
from defgpa.statistics.pairwise import PairwiseDistances, pairwise_distances
from defgpa.statistics.permutation import Permutations
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Sample, impute_tangents
from defgpa.statistics.table import EffectRows, EffectTable
from defgpa.statistics.variance_ratios import Ratios


@dataclass(frozen=True, eq=False, repr=False)
class ProcrustesAnova(EffectRows):
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
    sample : Sample
        The specimens, from which imputations are drawn.
    ss_type : int
        The type of the sums of squares.
    error : mapping of str to str
        The terms whose F has another denominator than the residuals, and that denominator.
    gls : str
        How generalised least squares centre the shapes, see `procrustes_anova`.
    chance : str
        How terms with an error term are tested, see `procrustes_anova`.
    """

    formula: str
    table: EffectTable
    tangents: Array
    design: Design
    ratios: Ratios
    permutations: Permutations
    sample: Sample
    ss_type: int = 1
    error: Mapping[str, str] = field(default_factory=dict)
    gls: str = "exact"
    chance: str = "rotations"

    @property
    def provenance(self) -> Provenance:
        """Which coordinates were analysed, and how many landmarks were completed."""
        return self.sample.provenance

    def __str__(self) -> str:
        count, kind = self.permutations.count, "I" * self.ss_type
        head = f"Procrustes analysis of variance, type {kind} sums of squares:"
        head += f"{' ' if len(head) + len(self.formula) < MAX_WIDTH else chr(10)}{self.formula}"
        test = f"{count} permutations of the residuals of reduced models, seed"
        lines = [head, str(self.provenance), f"{test} {self.permutations.seed}", *self.design.notes]
        if self.design.whitening is not None:
            test = ", centred as RRPP 2.1 does" if self.gls == "rrpp" else ""
            lines.append(f"Generalised least squares, with the covariance of the specimens{test}")
        how = "rotated" if self.chance == "rotations" else "with residuals permuted"
        lines += [
            f"F of {term} is over the mean square of {self.error[term]}, P by both {how}"
            for term in self.error
        ]
        return "\n".join([*lines, "", str(self.table)])

    def _repr_html_(self) -> str:
        header, *rows = self.table.cells()
        return render_table(f"Procrustes analysis of variance: {self.formula}", rows, header)

    @property
    def has_centroid_size(self) -> bool:
        """Whether ``size`` is the centroid size, and not a column of the data of that name."""
        size = np.asarray(self.design.data["size"])
        return size.dtype.kind in "iuf" and np.allclose(size, self.sample.sizes, rtol=1e-6, atol=0)

    @cached_property
    def coefficients(self) -> Array:
        """(k, m, d): of the columns of the model; the smallest where columns are aliased."""
        flat = self.design.whiten(self.tangents.reshape(len(self.tangents), -1))
        coefficients = np.linalg.pinv(self.design.whiten(self.design.columns)) @ flat
        return coefficients.reshape(-1, *self.tangents.shape[1:])

    @property
    def fitted(self) -> Array:
        """(n, m, d): the shapes that the model expects."""
        return np.tensordot(self.design.columns, self.coefficients, axes=1)

    @property
    def residuals(self) -> Array:
        """(n, m, d): what the model leaves."""
        return self.tangents - self.fitted

    def predict(self, data: Mapping[str, object]) -> Array:
        """Predict the shapes (k, m, d) for other data, one row of it each.

        Examples
        --------
        >>> import numpy as np
        >>> from defgpa.statistics import procrustes_anova
        >>> rng = np.random.default_rng(0)
        >>> x = np.array([[0, 0], [4, 0], [4, 3], [0, 3.0]]) + 0.1 * rng.normal(size=(8, 4, 2))
        >>> model = procrustes_anova("shape ~ dose", x, {"dose": np.arange(8.0)})
        >>> model.predict({"dose": [2.5, 20.0]}).shape
        (2, 4, 2)
        """
        return np.tensordot(self.design.rows(data), self.coefficients, axes=1)

    def pairwise(
        self,
        groups: str | Sequence[object],
        null: str | None = None,
        *,
        progress: Progress | None = None,
    ) -> PairwiseDistances:
        """Return the distances between the mean shapes of groups, with P and Z.

        Means are those of the model, with covariates of the formula held at their means, as RRPP
        does: of ``log(size)``, the mean logarithm. Where the model pools imputations, distances are
        their means, as observed and as permuted.

        Parameters
        ----------
        groups : str or sequence
            A factor of the data, several as in ``"species:site"``, or one label per shape.
        null : str, optional
            The formula of the reduced model whose residuals are permuted; by default the terms
            that have none of the factors in them: "all these groups have one mean".
        progress : callable (done, total), optional
            Called with the number of permutations that are done.

        Examples
        --------
        >>> import numpy as np
        >>> from defgpa.statistics import procrustes_anova
        >>> rng = np.random.default_rng(0)
        >>> x = np.array([[0, 0], [4, 0], [4, 3], [0, 3.0]]) + 0.1 * rng.normal(size=(9, 4, 2))
        >>> model = procrustes_anova("shape ~ kind", x, {"kind": list("aaabbbccc")}, 99)
        >>> model.pairwise("kind").names
        ('a', 'b', 'c')
        """
        if self.design.whitening is not None:
            raise DefgpaError("Pairwise distances are for models without a covariance of shapes.")
        permutations = replace(self.permutations, progress=progress)
        n_imputations = self.provenance.n_imputations
        _, draws = impute_tangents(self.sample, n_imputations, permutations.seed)
        flat = [tangents.reshape(len(tangents), -1) for tangents in draws]
        return pairwise_distances(flat, self.design, groups, null, permutations, self.provenance)
