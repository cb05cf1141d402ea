"""Compare nested models of shape: what the terms of one add to the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DefgpaError
from defgpa.statistics.design import make_orthonormal_bases
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.shape_model import ProcrustesAnova
from defgpa.statistics.table import Effect, EffectRows, EffectTable, effect
from defgpa.statistics.variance_ratios import RESIDUAL, ModelTerms, permute_ratios


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(EffectRows):
    """What a model of shape explains beyond a smaller one.

    Attributes
    ----------
    reduced, full : str
        The formulas.
    table : EffectTable
        The added terms, the residuals of the full model, and the total.
    permuted : array (n_permutations,)
        F of the added terms under chance.
    provenance : Provenance
        Which coordinates were analysed.
    """

    reduced: str
    full: str
    table: EffectTable
    permuted: Array
    provenance: Provenance

    def __str__(self) -> str:
        head = f"{self.full}, compared with {self.reduced}\n{self.provenance}"
        chance = f"{len(self.permuted)} permutations of the residuals of {self.reduced}"
        return f"{head}\n{chance}\n\n{self.table}"


def compare_models(reduced: ProcrustesAnova, full: ProcrustesAnova) -> ModelComparison:
    """Test what the full model explains beyond the reduced one, as RRPP's ``anova(fit1, fit2)``.

    The residuals of the reduced model are permuted, as often and from the same seed as those of the
    full model.

    Parameters
    ----------
    reduced, full : ProcrustesAnova
        Of the same specimens; every term of the reduced model is one of the full model's space.

    Returns
    -------
    ModelComparison
        Prints as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import procrustes_anova
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(6, 2)) + 0.1 * rng.normal(size=(12, 6, 2))
    >>> data = {"a": list("xy") * 6, "b": list("uuv") * 4}
    >>> small, large = (procrustes_anova(f"shape ~ {f}", x, data, 99) for f in ("a", "a * b"))
    >>> [row.df for row in compare_models(small, large).table]
    [2, 8, 11]
    """
    if reduced.tangents.shape != full.tangents.shape or not np.allclose(
        reduced.tangents, full.tangents
    ):
        raise DefgpaError("Models are compared on the same specimens and coordinates.")
    if (reduced.design.whitening is None) != (full.design.whitening is None):
        raise DefgpaError("Models are compared with the same covariance of specimens.")
    small, large = reduced.design.basis, full.design.basis
    if np.linalg.norm(small - large @ (large.T @ small)) > 1e-8 * np.sqrt(small.shape[1]):
        raise DefgpaError(
            f"The model {reduced.formula!r} is not part of {full.formula!r}: nothing to compare."
        )
    intercept = full.design.intercept
    before, added = make_orthonormal_bases(intercept, [small[:, 1:], large[:, 1:]])
    terms = ModelTerms(intercept, (before,), (added,), np.hstack([before, added]))
    if not added.shape[1]:
        raise DefgpaError("Both models have the same columns: nothing to compare.")
    Y = full.design.whiten(full.tangents.reshape(len(full.tangents), -1))
    ratios = permute_ratios(Y, terms, [RESIDUAL], full.permutations)
    f, z, p = float(ratios.observed[0]), ratios.z(0), ratios.p(0)
    table = EffectTable(
        (
            effect("added terms", added.shape[1], float(ratios.sums[0]), ratios.total, f, z, p),
            effect("Residuals", terms.residual_df, ratios.residual, ratios.total),
            Effect("Total", terms.n - 1, ratios.total),
        )
    )
    return ModelComparison(
        *(reduced.formula, full.formula, table, ratios.permuted[:, 0], full.provenance)
    )
