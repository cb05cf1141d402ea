"""Classify specimens by shape: linear discriminants of shape components, cross-validated.

Linear discriminant analysis needs fewer variables than specimens, so it is given the first
principal components of shape; how many is chosen by cross-validation. Every figure of merit is of
specimens that were left out. Canonical variates are the discriminant axes, drawn as shapes through
the components. Between-group PCA takes the components of the group means; its scores show groups
even in noise unless specimens are left out of the means that they are projected on (Cardini et al.
2019), so cross-validated scores stand beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.diagnostics.findings import warn_about
from defgpa.errors import DefgpaError
from defgpa.formatting import MAX_WIDTH, align_columns
from defgpa.io.text.table import format_csv
from defgpa.statistics.canonical_variates import (
    compute_between_group_scores,
    compute_singular_values,
    compute_variates,
)
from defgpa.statistics.dispersion import check_dispersion
from defgpa.statistics.group_distances import compare_means
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.leave_one_out import assign_unchosen, choose_components, leave_one_out
from defgpa.statistics.pairs import format_pairs, list_pairs
from defgpa.statistics.permutation import Permutations
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample
from defgpa.statistics.table import Row, Rows, Table

_MAX_COMPONENTS = 40
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


def classify(
    x: Analysed,
    groups: Sequence[object],
    n_components: int | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    equal_priors: bool = False,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> Classification:
    """Assign specimens to groups by shape, and measure how well that works.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    groups : sequence of n labels
        At least two groups of two specimens each.
    n_components : int, optional
        Principal components of shape; by default as many as assign most specimens correctly when
        left out, the fewest of equal ones. What is said of a specimen is then by a number that
        was chosen without it.
    n_permutations, seed
        As in `procrustes_anova`.
    equal_priors : bool
        Whether all groups are equally likely beforehand; by default as their sizes say, without the
        specimen that is left out.
    space, superimpose, progress
        As in `procrustes_anova`.

    Returns
    -------
    Classification
        Specimens assigned to groups by shape.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.03 * rng.normal(size=(24, 8, 2))
    >>> x[12:, 2] += 0.2
    >>> found = classify(x, ["a"] * 12 + ["b"] * 12)
    >>> bool(found.accuracy > 0.9), found.confusion.sum()
    (True, np.int64(24))
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    names, codes = encode_groups(groups, sample.shapes.n_shapes, "groups")
    counts = np.bincount(codes)
    if len(names) < 2 or counts.min() < 2:
        small = [name for name, count in zip(names, counts, strict=True) if count < 2]
        reason = f"group {small[0]!r} has one specimen" if small else "there is one group"
        raise DefgpaError(f"Classification needs 2 groups of 2 specimens or more; {reason}.")
    sample.warn_of_findings()
    warn_about(check_dispersion([names[code] for code in codes], sample.tangents))
    tangents = sample.tangents
    scores, components = _compute_components(tangents)
    max_components = min(scores.shape[1], len(codes) - len(names) - 1, _MAX_COMPONENTS)
    if n_components is not None and not 1 <= n_components <= max(max_components, 1):
        raise DefgpaError(
            f"The number of components is 1 to {max_components} here; got {n_components!r}."
        )
    priors = np.full(len(names), 1 / len(names)) if equal_priors else None
    if n_components is None:
        chosen = choose_components(scores, codes, priors, max_components)
        posterior = assign_unchosen(scores, codes, priors, max_components)
    else:
        chosen = n_components
        posterior = leave_one_out(scores[:, :chosen], codes, priors)
    assigned = posterior.argmax(axis=1)
    confusion = np.zeros((len(names),) * 2, dtype=np.intp)
    np.add.at(confusion, (codes, assigned), 1)
    variates = compute_variates(scores[:, :chosen], codes, priors)
    # the regression of shape on a variate is the change that goes with it
    changes = variates.T @ scores[:, :chosen] / np.sum(variates**2, axis=0)[:, None]
    axes = np.tensordot(changes, components[:chosen], 1)
    between, left_out = compute_between_group_scores(tangents, codes)
    distances = compare_means(scores, chosen, codes, permutations)
    accuracy = float((assigned == codes).mean())
    agreement = float((confusion.sum(axis=0) * confusion.sum(axis=1)).sum() / len(codes) ** 2)
    return Classification(
        sample.shapes.names,
        names,
        codes,
        assigned,
        posterior,
        confusion,
        accuracy,
        float(counts.max() / len(codes)),
        (accuracy - agreement) / (1 - agreement) if agreement < 1 else float("nan"),
        chosen,
        variates,
        axes,
        tangents.mean(axis=0),
        compute_singular_values(variates, codes),
        between,
        left_out,
        *distances,
        sample.provenance,
        n_permutations,
    )


def _compute_components(tangents: Array) -> tuple[Array, Array]:
    """Return scores (n, k) and principal components (k, m, d) of tangent coordinates."""
    deviations = (tangents - tangents.mean(axis=0)).reshape(len(tangents), -1)
    U, lengths, axes = np.linalg.svd(deviations, full_matrices=False)
    k = int((lengths > 1e-10 * lengths[0]).sum())
    return U[:, :k] * lengths[:k], axes[:k].reshape(k, *tangents.shape[1:])
