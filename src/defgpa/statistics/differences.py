"""Differences between two groups: a test per landmark, at a false discovery rate.

The statistic of a landmark is the distance between its two group means; labels are permuted. With
many landmarks some P are small by chance alone: q is the smallest share of false discoveries at
which a landmark would be called different (Benjamini and Hochberg).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, Index, Mask, Progress
from defgpa.diagnostics.findings import warn_about
from defgpa.errors import DefgpaError, format_names
from defgpa.formatting import align_columns, format_column
from defgpa.statistics.dispersion import check_dispersion
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.permutation import Permutations, reaches_observed
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, Sample, build_sample
from defgpa.statistics.table import Rows, format_p_values


@dataclass(frozen=True, eq=False, repr=False)
class LandmarkDifferences(Rows):
    """Two groups landmark by landmark.

    Attributes
    ----------
    groups : (str, str)
        Their names.
    landmarks : tuple of m str
        Labels.
    mean : array (m, d)
        The mean shape of all, at unit size.
    difference : array (m, d)
        Mean of the second group minus mean of the first.
    p, q : array (m,)
        P of every landmark, and the same adjusted for false discoveries.
    provenance : Provenance
        Which coordinates were analysed.
    n_permutations : int
        Of the groups, behind P.
    """

    _columns = ("landmark", "distance", "p", "q")
    _attributes = ("landmarks", "distances", "p", "q")

    groups: tuple[str, str]
    landmarks: tuple[str, ...]
    mean: Array
    difference: Array
    p: Array
    q: Array
    provenance: Provenance
    n_permutations: int

    @property
    def distances(self) -> Array:
        """(m,): how far apart the two means of each landmark are, in units of centroid size."""
        return np.asarray(np.linalg.norm(self.difference, axis=1))

    def significant(self, level: float = 0.05) -> Mask:
        """Return which landmarks (m,) differ, at most this share of them falsely so."""
        return np.asarray(self.q <= level)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the table as text, without a header."""
        chances = (format_p_values(column.tolist()) for column in (self.p, self.q))
        return list(zip(self.landmarks, format_column(self.distances), *chances, strict=True))

    def __str__(self) -> str:
        title = f"{self.groups[0]} and {self.groups[1]}, landmark by landmark"
        chance = f"{self.n_permutations} permutations of the groups"
        table = align_columns([self._columns, *self.cells()])
        return f"{title}\n{self.provenance}\n{chance}\n\n{table}"


def landmark_differences(
    x: Analysed,
    groups: Sequence[object],
    n_permutations: int = 999,
    seed: int = 0,
    *,
    between: tuple[str, str] | None = None,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> LandmarkDifferences:
    """Test which landmarks differ between two groups.

    Parameters
    ----------
    x : Alignment, Shapes or array (n, m, d)
        As in `procrustes_anova`.
    groups : sequence of n labels
        Two different ones, unless ``between`` names two of more.
    n_permutations, seed
        As in `procrustes_anova`.
    between : (str, str), optional
        The groups to compare: the second minus the first. Others are left out.
    space, superimpose, progress
        As in `procrustes_anova`.

    Returns
    -------
    LandmarkDifferences
        Two groups landmark by landmark.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(12, 2)) + 0.01 * rng.normal(size=(20, 12, 2))
    >>> x[10:, 3] += 0.2
    >>> found = landmark_differences(x, ["a"] * 10 + ["b"] * 10)
    >>> bool(found.q[3] < 0.05), int(np.argmax(found.distances))
    (True, 3)
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    names, codes = encode_groups(groups, sample.shapes.n_shapes, "groups")
    if between is not None:
        names, codes, sample = _choose_groups(between, names, codes, sample)
    if len(names) != 2:
        raise DefgpaError(f"Landmarks are compared between 2 groups; got {len(names)}: {names}.")
    sample.warn_of_findings()
    warn_about(check_dispersion([names[code] for code in codes], sample.tangents))
    shapes = sample.shapes
    Y = sample.tangents.reshape(shapes.n_shapes, -1)
    contrast = np.where(codes == 1, 1.0 / (codes == 1).sum(), -1.0 / (codes == 0).sum())
    mean, centred = Y.mean(axis=0), Y - Y.mean(axis=0)
    size = shapes.points.shape[1:]

    difference = (contrast @ centred).reshape(size)
    observed = np.linalg.norm(difference, axis=1)

    def count(orders: Index) -> Array:
        distances = np.linalg.norm((contrast[orders] @ centred).reshape(-1, *size), axis=2)
        return np.asarray(reaches_observed(observed, distances).sum(axis=0)[None])

    counts = permutations.each(shapes.n_shapes, size[0] * size[1], count).sum(axis=0)
    p = (1.0 + counts) / (1.0 + n_permutations)
    return LandmarkDifferences(
        (names[0], names[1]),
        shapes.landmarks,
        mean.reshape(size),
        difference,
        p,
        discovery_rate(p),
        sample.provenance,
        n_permutations,
    )


def _choose_groups(
    between: tuple[str, str], names: tuple[str, ...], codes: Index, sample: Sample
) -> tuple[tuple[str, ...], Index, Sample]:
    """Restrict groups and sample to two of the groups."""
    wanted = tuple(str(name) for name in between)
    if len(set(wanted)) != 2 or not set(wanted) <= set(names):
        raise DefgpaError(
            f"'between' names two of the groups, which are {format_names(names)}; got "
            f"{format_names(wanted)}."
        )
    numbers = [names.index(name) for name in wanted]
    members = np.flatnonzero(np.isin(codes, numbers))
    return wanted, np.where(codes[members] == numbers[0], 0, 1), sample.take(members)


def discovery_rate(p: Array) -> Array:
    """Compute q of every P: the least over larger P of P · m / rank.

    Examples
    --------
    >>> import numpy as np
    >>> discovery_rate(np.array([0.01, 0.04, 0.03, 0.5])).round(4)
    array([0.04  , 0.0533, 0.0533, 0.5   ])
    """
    order = np.argsort(p)
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    q = np.empty_like(p)
    q[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return q
