"""Compare the strength of effects between data sets or hypotheses, by their Z.

With y the observed statistic and y* its permuted values, all transformed by Box–Cox so that y* is
most nearly normal, two effects differ by

    z = ((y₁ − mean y₁*) − (y₂ − mean y₂*)) / √(var y₁* + var y₂*),

a standard normal deviate where they are equal (Adams & Collyer 2016, 2019; Collyer et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.stats import norm

from defgpa.arrays import Array
from defgpa.errors import DefgpaError
from defgpa.formatting import align_columns, format_column, format_fixed
from defgpa.statistics.box_cox import transform_to_normal
from defgpa.statistics.pairs import list_pairs
from defgpa.statistics.table import Row, Rows, Table, format_p


class PermutedEffect(Protocol):
    """A result with an observed statistic and its permuted values."""

    @property
    def statistic(self) -> str:
        """The name of the statistic."""

    @property
    def observed(self) -> float:
        """The value of the statistic for the data as they are."""

    @property
    def permuted(self) -> Array:
        """(n_permutations,): the statistic of the permuted data."""

    @property
    def z(self) -> float:
        """The effect size Z of the observed value among the permuted ones."""


@dataclass(frozen=True, eq=False, repr=False)
class EffectSizes(Rows):
    """Effect sizes compared between data sets, by pairs.

    Attributes
    ----------
    names : tuple of k str
        The data sets or hypotheses.
    observed, effect_sizes : array (k,)
        The statistic of each, and its Z.
    z, p : array (k, k)
        Standardised differences, the first minus the second, and their two-sided P.
    statistic : str
        What was permuted.
    deviations, spreads : array (k,)
        How far every statistic lies above the mean of its permuted values, and their standard
        deviation, transformed as above.
    """

    _columns = ("a", "b", "z", "p")

    names: tuple[str, ...]
    observed: Array
    effect_sizes: Array
    z: Array
    p: Array
    statistic: str
    deviations: Array
    spreads: Array

    def further_tables(self) -> dict[str, Table]:
        """Return every statistic with its effect size, as a table by name."""
        columns = (self.names, self.observed.tolist(), self.effect_sizes.tolist())
        return {"effects": (("name", "observed", "z"), list(zip(*columns, strict=True)))}

    def _rows(self) -> list[Row]:
        return list_pairs(self.names, self.z, self.p)

    def __str__(self) -> str:
        columns = (self.names, format_column(self.observed), format_fixed(self.effect_sizes, 4))
        sizes = list(zip(*columns, strict=True))
        pairs = [(f"{a} – {b}", f"{z:.4f}", format_p(p)) for a, b, z, p in self._rows()]
        differences = align_columns([("", "z of the difference", "P"), *pairs])
        head = f"Effect sizes compared: {self.statistic}"
        return f"{head}\n{align_columns([('', 'observed', 'Z'), *sizes])}\n\n{differences}"


def compare_effect_sizes(
    results: Sequence[PermutedEffect], names: Sequence[str] | None = None
) -> EffectSizes:
    """Compare the strength of covariation, modularity or phylogenetic signal.

    geomorph's ``compare.pls``, ``compare.CR`` and ``compare.physignal.z``.

    Parameters
    ----------
    results : sequence of TwoBlockPLS, ModuleTest or PhylogeneticSignal
        At least two, of one kind.
    names : sequence of str, optional
        Of the results; ``1``, ``2``, … by default.

    Returns
    -------
    EffectSizes
        Effect sizes compared between data sets, by pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import integration
    >>> x = np.random.default_rng(0).normal(size=(2, 20, 8, 2))
    >>> results = [integration(own, "aaaabbbb", 99) for own in x]
    >>> compare_effect_sizes(results, ["wild", "reared"]).p.shape
    (2, 2)
    """
    if len(results) < 2:
        raise DefgpaError(f"There must be at least 2 results to compare; got {len(results)}.")
    if names is not None and len(names) != len(results):
        raise DefgpaError(f"There must be {len(results)} names of results; got {len(names)}.")
    deviations, spreads = np.zeros(len(results)), np.zeros(len(results))
    for k, result in enumerate(results):
        values = transform_to_normal(result.observed, result.permuted)
        if values is not None:
            deviations[k], spreads[k] = values[-1] - values.mean(), values.std()
    pooled = np.sqrt(spreads[:, None] ** 2 + spreads**2)
    z = (deviations[:, None] - deviations) / np.where(pooled > 0, pooled, 1.0)
    labels = tuple(map(str, names or range(1, len(results) + 1)))
    observed, sizes = np.array([(result.observed, result.z) for result in results]).T
    p = np.asarray(2 * norm.sf(np.abs(z)))
    return EffectSizes(labels, observed, sizes, z, p, results[0].statistic, deviations, spreads)
