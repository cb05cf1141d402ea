"""Repeatability: the share of variance between individuals, and measurement error.

With r replicates an individual, MS among individuals and MS within them, over the coordinates of a
landmark or of all of them together:

    s² = (MS_individual − MS_within) / r,    R = s² / (s² + MS_within).

Where individuals have different numbers of replicates, r is (N − Σ n_i² / N) / (k − 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import ShapeError
from defgpa.formatting import align_columns, format_column, format_fixed
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample
from defgpa.statistics.table import Effect, EffectTable, Rows, Table, effect


@dataclass(frozen=True, eq=False, repr=False)
class Repeatability(Rows):
    """Repeatability over all landmarks and of each.

    Attributes
    ----------
    overall : float
        R over all coordinates.
    per_landmark : array (m,)
        R of every landmark; below 0 where replicates differ more than individuals do.
    error : array (m,)
        √MS_within of every landmark: how far a measurement lies from the individual's mean, in
        units of centroid size.
    table : EffectTable
        Individuals and what is within them.
    replicates : float
        r.
    mean, landmarks
        The mean shape (m, d) at unit size and the labels of its landmarks.
    deviations : array (n, m, d)
        Every measurement from the mean of its individual.
    provenance : Provenance
        Which coordinates were analysed.
    """

    _columns = ("landmark", "repeatability", "error")
    _attributes = ("landmarks", "per_landmark", "error")

    overall: float
    per_landmark: Array
    error: Array
    table: EffectTable
    replicates: float
    mean: Array
    landmarks: tuple[str, ...]
    deviations: Array
    provenance: Provenance

    def further_tables(self) -> dict[str, Table]:
        """Return overall repeatability and the analysis of variance, as tables by name."""
        return {
            "overall": (("repeatability", "replicates"), [(self.overall, self.replicates)]),
            "anova": (self.table.columns, self.table.to_rows()),
        }

    def cells(self) -> list[tuple[str, ...]]:
        """Return the landmarks as text, without a header."""
        figures = (format_fixed(self.per_landmark, 4), format_column(self.error))
        return list(zip(self.landmarks, *figures, strict=True))

    def __str__(self) -> str:
        head = (
            f"Repeatability {self.overall:.4f} over all landmarks, {self.replicates:g} replicates"
        )
        landmarks = align_columns([self._columns, *self.cells()])
        return f"{head}\n{self.provenance}\n\n{self.table}\n\n{landmarks}"


def repeatability(
    x: Analysed,
    individual: Sequence[object],
    *,
    space: str = "superimposed",
    superimpose: bool = True,
) -> Repeatability:
    """Estimate the share of shape variation that is of the individuals, from replicates.

    Parameters
    ----------
    x : Alignment, Shapes or array (n, m, d)
        As in `procrustes_anova`.
    individual : sequence of n labels
        Individual of each shape.
    space, superimpose
        As in `procrustes_anova`.

    Returns
    -------
    Repeatability
        Repeatability over all landmarks and of each.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> who = np.repeat(np.arange(8), 2)
    >>> wings = rng.normal(size=(6, 2)) + 0.1 * rng.normal(size=(8, 6, 2))
    >>> found = repeatability(wings[who] + 0.001 * rng.normal(size=(16, 6, 2)), who)
    >>> bool(found.overall > 0.99), found.replicates
    (True, 2.0)
    """
    sample = build_sample(x, space=space, superimpose=superimpose)
    shapes = sample.shapes
    names, codes = encode_groups(individual, shapes.n_shapes, "individual")
    counts = np.bincount(codes)
    n, k = len(codes), len(names)
    if k < 2 or n == k:
        raise ShapeError(
            f"Repeatability needs at least 2 individuals and some measured more than once; got "
            f"{n} shapes of {k}. Check that individuals are written alike in all their replicates."
        )
    r = float((n - (counts**2).sum() / n) / (k - 1))
    sample.warn_of_findings()
    tangents = sample.tangents
    means = np.stack([tangents[codes == code].mean(axis=0) for code in range(k)])
    mean = tangents.mean(axis=0)
    among = np.einsum("k,kmd->m", counts.astype(np.float64), (means - mean) ** 2)
    deviations = tangents - means[codes]
    within = (deviations**2).sum(axis=(0, 2))
    return Repeatability(
        overall=float(_compute_repeatability(among.sum() / (k - 1), within.sum() / (n - k), r)),
        per_landmark=_compute_repeatability(among / (k - 1), within / (n - k), r),
        error=np.sqrt(within / (n - k)),
        table=_make_table(float(among.sum()), float(within.sum()), k, n),
        replicates=r,
        mean=mean,
        landmarks=shapes.landmarks,
        deviations=deviations,
        provenance=sample.provenance,
    )


def _compute_repeatability(among: Array | float, within: Array | float, r: float) -> Array:
    """Compute R = s² / (s² + MS_within), 0 where nothing varies at all."""
    variance = np.subtract(among, within) / r
    total = np.asarray(variance + within)
    return np.asarray(np.divide(variance, total, out=np.zeros_like(total), where=total > 0))


def _make_table(among: float, within: float, k: int, n: int) -> EffectTable:
    total = among + within
    f = (among / (k - 1)) / (within / (n - k)) if within > 0 else float("nan")
    return EffectTable(
        (
            effect("individual", k - 1, among, total, f),
            effect("Residuals", n - k, within, total),
            Effect("Total", n - 1, total),
        )
    )
