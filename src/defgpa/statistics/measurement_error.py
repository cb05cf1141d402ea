"""Measurement error: what replicates differ by, systematically and at random.

In ``shape ~ subject + replicate`` the replicate is systematic error (one observer or session
differs from another in the same way for all subjects), the residual is random error. Chance
permutes replicates within subjects (Collyer and Adams 2024; geomorph's ``gm.measurement.error``).
η² is the share of the systematic part in all error, the signal-to-noise ratio is SS over that of
the random error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.errors import DefgpaError, ShapeError
from defgpa.formatting import format_number
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.design import make_orthonormal_bases
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.permutation import Permutations, compress_columns, p_value
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample
from defgpa.statistics.table import Effect, EffectRows, EffectTable, Table, effect

_ROUNDING = 1e-13  # relative: a sum of squares that is nothing


@dataclass(frozen=True, eq=False, repr=False)
class MeasurementError(EffectRows):
    """Systematic and random error of replicates.

    Attributes
    ----------
    table : EffectTable
        Subject, replicate (systematic error) and residuals (random error).
    eta_squared : float
        The share of systematic error in all error.
    signal_to_noise : float
        SS of subjects over that of random error.
    replicates : tuple of str
        Their names.
    offsets : array (r, m, d)
        How every replicate differs from the mean of all.
    permuted : array (n_permutations,)
        F of the replicate under chance.
    provenance : Provenance
        Which coordinates were analysed.
    """

    table: EffectTable
    eta_squared: float
    signal_to_noise: float
    replicates: tuple[str, ...]
    offsets: Array
    permuted: Array
    provenance: Provenance

    def further_tables(self) -> dict[str, Table]:
        """Return the shares of systematic and random error, as a table by name."""
        figures = (self.eta_squared, self.signal_to_noise)
        return {"shares": (("systematic_share", "signal_to_noise"), [figures])}

    def __str__(self) -> str:
        head = (
            f"Measurement error of {len(self.replicates)} replicates: systematic share "
            f"{self.eta_squared:.1%}, signal to noise {format_number(self.signal_to_noise)}"
        )
        chance = f"{len(self.permuted)} permutations of the replicates within subjects"
        return f"{head}\n{self.provenance}\n{chance}\n\n{self.table}"


def measurement_error(
    x: Analysed,
    subject: Sequence[object],
    replicate: Sequence[object],
    n_permutations: int = 999,
    seed: int = 0,
    *,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> MeasurementError:
    """Separate systematic from random measurement error.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    subject, replicate : sequence of n labels
        Who, and by which observer, device or session; every subject once by each.
    n_permutations, seed, space, superimpose, progress
        As in `procrustes_anova`.

    Returns
    -------
    MeasurementError
        Systematic and random error of replicates.
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    n = sample.shapes.n_shapes
    subjects, codes = encode_groups(subject, n, "subject")
    replicates, sessions = encode_groups(replicate, n, "replicate")
    cells = np.bincount(
        codes * len(replicates) + sessions, minlength=len(subjects) * len(replicates)
    )
    if len(subjects) < 2 or len(replicates) < 2 or not (cells == 1).all():
        raise DefgpaError(
            "Measurement error needs at least 2 subjects and 2 replicates, and every subject once "
            f"in each; got {n} shapes of {len(subjects)} subjects in {len(replicates)} replicates. "
            "Both sides of an individual are subjects of their own."
        )
    sample.warn_of_findings()
    order = np.lexsort([sessions, codes])  # subject by subject, its replicates in order
    Y = compress_columns((sample.tangents - sample.tangents.mean(axis=0)).reshape(n, -1))[order]
    blocks = [np.eye(len(subjects))[codes[order]], np.eye(len(replicates))[sessions[order]]]
    subject_bases, occasion_bases = make_orthonormal_bases(np.full((n, 1), n**-0.5), blocks)
    total, among = float((Y**2).sum()), float(((subject_bases.T @ Y) ** 2).sum())
    within = Y - subject_bases @ (subject_bases.T @ Y)
    s, r = len(subjects), len(replicates)
    df_error = (s - 1) * (r - 1)

    def compute_f(systematic: Array) -> Array:
        return (systematic / (r - 1)) / ((total - among - systematic) / df_error)

    def permute_within_subjects(orders: Index) -> Array:
        # the rows of every subject stay together, in the order in which they come in a random one
        places = np.argsort(orders // r, axis=1, kind="stable")
        shuffled = np.take_along_axis(orders, places, axis=1)
        projected = occasion_bases.T @ within[shuffled]
        return compute_f((projected**2).sum(axis=(1, 2)))

    systematic = float(((occasion_bases.T @ within) ** 2).sum())
    random_error = total - among - systematic
    if random_error <= _ROUNDING * total:
        raise ShapeError(
            "The replicates of every subject are the same, or differ by the same amount: there is "
            "no random error to measure. Check that the replicates are measurements of their own."
        )
    chance = permutations.each(n, within.shape[1], permute_within_subjects)
    f = float(compute_f(np.array(systematic)))
    table = EffectTable(
        (
            effect("subject", s - 1, among, total, (among / (s - 1)) / (random_error / df_error)),
            effect(
                "replicate", r - 1, systematic, total, f, effect_size(f, chance), p_value(f, chance)
            ),
            effect("Residuals", df_error, random_error, total),
            Effect("Total", n - 1, total),
        )
    )
    mean = sample.tangents.mean(axis=0)
    offsets = np.stack([sample.tangents[sessions == k].mean(axis=0) - mean for k in range(r)])
    share = systematic / (systematic + random_error)
    noise = among / random_error
    return MeasurementError(table, share, noise, replicates, offsets, chance, sample.provenance)
