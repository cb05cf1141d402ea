"""Specimens assigned to groups: how often that is right, canonical variates, distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.formatting import MAX_WIDTH, align_columns
from defgpa.io.text.table import format_csv
from defgpa.statistics.pairs import format_pairs, list_pairs
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.table import Row, Rows, Table

_DISTANCES = ("a", "b", "mahalanobis", "mahalanobis_p", "procrustes", "procrustes_p")


@dataclass(frozen=True, eq=False, repr=False)
class Classification(Rows):
    """Specimens assigned to groups by shape.

    Attributes
    ----------
    names : tuple of n str
        The specimens.
    groups : tuple of g str
        The groups.
    true, assigned : array (n,) of int
        The group of every specimen, and the one it is assigned to when it is left out.
    posterior : array (n, g)
        Probability of every group, when the specimen is left out.
    confusion : array (g, g) of int
        Specimens of the group of the row assigned to that of the column.
    accuracy, chance_level, kappa : float
        Share of correct assignments, that of always guessing the largest group, and agreement
        beyond the one expected by chance (Cohen).
    n_components : int
        Principal components of shape that were used.
    variates : array (n, k)
        Canonical variates, at unit variance within groups.
    axes : array (k, m, d)
        The change of shape per unit of each canonical variate.
    mean : array (m, d)
        The mean shape, whose variates are 0.
    singular_values : array (k,)
        Of the canonical variates, as MASS's ``lda``: √ of between over within variance.
    between_scores, between_scores_left_out : array (n, k)
        Scores of between-group PCA, and the same of specimens left out of the means.
    mahalanobis, procrustes, mahalanobis_p, procrustes_p : array (g, g)
        Distances between group means, and P by permuting the groups.
    provenance : Provenance
        Which coordinates were analysed.
    n_permutations : int
        Of the groups, behind P of distances.
    """

    _columns = ("name", "group", "assigned", "probability")

    names: tuple[str, ...]
    groups: tuple[str, ...]
    true: Index
    assigned: Index
    posterior: Array
    confusion: Index
    accuracy: float
    chance_level: float
    kappa: float
    n_components: int
    variates: Array
    axes: Array
    mean: Array
    singular_values: Array
    between_scores: Array
    between_scores_left_out: Array
    mahalanobis: Array
    procrustes: Array
    mahalanobis_p: Array
    procrustes_p: Array
    provenance: Provenance
    n_permutations: int

    @property
    def shares(self) -> Array:
        """(k,): the share of the variance between groups that each canonical variate has."""
        return self.singular_values**2 / np.sum(self.singular_values**2)

    def further_tables(self) -> dict[str, Table]:
        """Return the confusion table, its accuracy, and the canonical variates, by name."""
        return {
            "confusion": (
                ("group", *(f"as_{group}" for group in self.groups)),
                [(g, *row) for g, row in zip(self.groups, self.confusion.tolist(), strict=True)],
            ),
            "accuracy": (
                ("n_components", "accuracy", "chance_level", "kappa"),
                [(self.n_components, self.accuracy, self.chance_level, self.kappa)],
            ),
            "variates": (
                ("variate", "singular_value", "share"),
                [
                    (k, value, share)
                    for k, (value, share) in enumerate(
                        zip(self.singular_values.tolist(), self.shares.tolist(), strict=True), 1
                    )
                ],
            ),
        }

    def _rows(self) -> list[Row]:
        best = self.posterior.max(axis=1)
        return [
            (name, self.groups[a], self.groups[b], float(p))
            for name, a, b, p in zip(self.names, self.true, self.assigned, best, strict=True)
        ]

    def __str__(self) -> str:
        head = (
            f"Classification by {self.n_components} component{'s' * (self.n_components > 1)} of "
            "shape, leaving one out: "
            f"{self.accuracy:.1%} correct (chance level {self.chance_level:.1%}), "
            f"kappa {self.kappa:.3f}"
        )
        rows = [
            (name, *map(str, row)) for name, row in zip(self.groups, self.confusion, strict=True)
        ]
        heads = self.groups
        if sum(map(len, heads)) + max(map(len, heads)) + len(heads) > MAX_WIDTH:
            heads = tuple(str(k) for k in range(1, len(heads) + 1))
            rows = [
                (f"{k} {name}", *counts) for k, (name, *counts) in zip(heads, rows, strict=True)
            ]
        table = align_columns([("", *heads), *rows])
        pairs = align_columns([("", "Mahalanobis", "P", "Procrustes", "P"), *self.distance_cells()])
        meaning = "Rows: groups of the specimens; columns: how they were classified"
        chance = f"Distances between groups, with {self.n_permutations} permutations of the groups"
        return f"{head}\n{self.provenance}\n\n{meaning}\n{table}\n\n{chance}\n{pairs}"

    def scores_to_csv(self) -> str:
        """Return a row for each specimen: canonical variates, posterior probabilities, bgPCA.

        Posterior probabilities and components between groups are those of the specimen left out.
        """
        parts = [self.variates, self.posterior, self.between_scores_left_out]
        heads = [
            *("name", "group"),
            *(f"variate_{k + 1}" for k in range(self.variates.shape[1])),
            *(f"probability_{group}" for group in self.groups),
            *(f"between_group_{k + 1}" for k in range(self.between_scores_left_out.shape[1])),
        ]
        rows = zip(self.names, self.true, np.hstack(parts).tolist(), strict=True)
        return format_csv(heads, [(name, self.groups[k], *row) for name, k, row in rows])

    def distances_to_csv(self) -> str:
        """Return a row for each pair of groups: Mahalanobis and Procrustes distances with P."""
        return format_csv(_DISTANCES, self._list_distances())

    def distance_cells(self) -> list[tuple[str, ...]]:
        """Return the distances between groups as text, without a header."""
        return format_pairs(_DISTANCES, self._list_distances())

    def _list_distances(self) -> list[Row]:
        matrices = (self.mahalanobis, self.mahalanobis_p, self.procrustes, self.procrustes_p)
        return list_pairs(self.groups, *matrices)
