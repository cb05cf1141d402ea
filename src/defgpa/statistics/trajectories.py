"""Trajectory analysis: how groups change shape along the same stages.

A trajectory is the path of the mean shapes of a group through the stages. Two trajectories differ
in length (magnitude), in direction (the angle between their first principal axes, oriented by time)
and, with three stages or more, in form: the Procrustes distance between the paths at unit size.
Chance rotates or permutes the residuals of the model without an interaction of group and stage
(Collyer and Adams 2013; RRPP's ``trajectory.analysis`` permutes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.diagnostics.findings import warn_about
from defgpa.errors import DefgpaError, format_names
from defgpa.formatting import align_columns, format_column
from defgpa.statistics.design import make_orthonormal_bases
from defgpa.statistics.dispersion import check_dispersion
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.pairs import PairRows, fill_pairs, list_pairs
from defgpa.statistics.permutation import (
    Permutations,
    compare_with_chance,
    describe_chance,
    p_values,
)
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample
from defgpa.statistics.table import Row, Table


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(PairRows):
    """Paths of groups through shape space, and how they differ.

    Attributes
    ----------
    groups, stages : tuple of str
    means : array (g, s, m, d)
        Mean shapes of every group at every stage.
    lengths : array (g,)
        Of the paths.
    length_p, angles, angle_p, form_distances, form_p : array (g, g)
        P of the differences of lengths; angles in degrees and distances between the forms of the
        paths, each with P. Forms are NaN with two stages.
    provenance : Provenance
        Which coordinates were analysed.
    n_permutations : int
        Behind every P.
    chance : str
        What chance did to the residuals, see `trajectories`.
    """

    _columns = ("a", "b", "length_difference", "length_p", "angle", "angle_p", "form", "form_p")

    groups: tuple[str, ...]
    stages: tuple[str, ...]
    means: Array
    lengths: Array
    length_p: Array
    angles: Array
    angle_p: Array
    form_distances: Array
    form_p: Array
    provenance: Provenance
    n_permutations: int
    chance: str

    def further_tables(self) -> dict[str, Table]:
        """Return the length of every path, as a table by name."""
        rows = list(zip(self.groups, self.lengths.tolist(), strict=True))
        return {"groups": (("group", "path_length"), rows)}

    def _rows(self) -> list[Row]:
        return list_pairs(
            *(self.groups, np.abs(self.lengths[:, None] - self.lengths), self.length_p),
            *(self.angles, self.angle_p, self.form_distances, self.form_p),
        )

    def cells(self) -> list[tuple[str, ...]]:
        """Return the pairs of groups as text, without a header; form is left out for two stages."""
        return [row[: 7 if len(self.stages) > 2 else 5] for row in super().cells()]

    def __str__(self) -> str:
        named = zip(self.groups, format_column(self.lengths), strict=True)
        paths = align_columns([("", "path length"), *named])
        cells = self.cells()
        header = ("", "length difference", "P", "angle", "P", "form", "P")[: len(cells[0])]
        pairs = align_columns([header, *cells])
        head = f"Trajectories through {len(self.stages)} stages: {', '.join(self.stages)}"
        how = describe_chance(self.n_permutations, self.chance)
        chance = f"{how} of the model without an interaction"
        return f"{head}\n{self.provenance}\n{chance}\n\n{paths}\n\n{pairs}"


def trajectories(
    x: Analysed,
    groups: Sequence[object],
    stages: Sequence[object],
    n_permutations: int = 999,
    seed: int = 0,
    *,
    order: Sequence[object] | None = None,
    chance: str = "rotations",
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> Trajectories:
    """Compare the paths of groups through the same stages.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    groups, stages : sequence of n labels
        Of every specimen; every group has specimens at every stage.
    order : sequence of str, optional
        The stages, from the first to the last. By default numbers are sorted, and words follow in
        the order of their first appearance.
    chance : {"rotations", "residuals"}
        How P is found: residuals of the model without an interaction are rotated at random, or
        permuted, as RRPP does. P of permuted residuals is too small for angles.
    n_permutations, seed, space, superimpose, progress
        As in `procrustes_anova`.

    Returns
    -------
    Trajectories
        Paths of groups through shape space, and how they differ.
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    n = sample.shapes.n_shapes
    names, codes = encode_groups(groups, n, "groups")
    steps, times = _encode_stages(stages, n, order)
    cells = codes * len(steps) + times
    counts = np.bincount(cells, minlength=len(names) * len(steps))
    if len(names) < 2 or len(steps) < 2 or not counts.all():
        raise DefgpaError(
            "Trajectories need at least 2 groups and 2 stages, and specimens of every group at "
            "every stage."
        )
    sample.warn_of_findings()
    warn_about(check_dispersion([str(cell) for cell in cells], sample.tangents))
    Y = sample.tangents.reshape(n, -1)
    extract = np.zeros((len(counts), n))
    extract[cells, np.arange(n)] = 1.0 / counts[cells]
    means = (extract @ Y).reshape(len(names), len(steps), *sample.tangents.shape[1:])
    intercept = np.full((n, 1), n**-0.5)
    bases = make_orthonormal_bases(
        intercept, [np.eye(len(names))[codes], np.eye(len(steps))[times]]
    )
    first, second = np.triu_indices(len(names), 1)

    def measure(paths: Array) -> Array:
        shape = (len(names), len(steps), -1)
        return np.stack([_compare_paths(path.reshape(shape), first, second) for path in paths])

    observed, values = compare_with_chance(
        Y, np.hstack([intercept, *bases]), extract, measure, permutations, chance
    )
    _, angles, forms = np.split(observed, 3)
    length_p, angle_p, form_p = (
        fill_pairs(len(names), p) for p in np.split(p_values(observed, values), 3)
    )
    angles = fill_pairs(len(names), np.degrees(angles), 0.0)
    forms = fill_pairs(len(names), forms, 0.0)
    if len(steps) == 2:  # a path of one step has no form
        forms, form_p = np.full_like(forms, np.nan), np.full_like(forms, np.nan)
    lengths = np.linalg.norm(np.diff(means, axis=1), axis=(2, 3)).sum(axis=1)
    return Trajectories(
        *(names, steps, means, lengths),
        *(length_p, angles, angle_p, forms, form_p),
        *(sample.provenance, n_permutations, chance),
    )


def _encode_stages(
    stages: Sequence[object], n: int, order: Sequence[object] | None
) -> tuple[tuple[str, ...], Index]:
    """Return the names of stages in the order of the path, and each specimen's stage (n,)."""
    names, codes = encode_groups(stages, n, "stages")
    if order is not None:
        path = tuple(map(str, order))
        if sorted(path) != sorted(names):
            raise DefgpaError(
                f"The order of the stages must name each of {format_names(names)} once; got "
                f"{', '.join(path)}."
            )
    else:
        path = _sort_numbers(names)
    return path, np.array([path.index(name) for name in names])[codes]


def _sort_numbers(names: tuple[str, ...]) -> tuple[str, ...]:
    """Sort names that are all numbers; return others unchanged."""
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return names


def _compare_paths(paths: Array, first: Index, second: Index) -> Array:
    """Return differences of lengths, angles and form distances of pairs of paths (g, s, p).

    Parameters
    ----------
    paths : array (g, s, p)
        Shapes of every group at every stage.
    first, second : array (k,) of int
        The groups of every pair.

    Returns
    -------
    array (3k,)
    """
    lengths = np.linalg.norm(np.diff(paths, axis=1), axis=2).sum(axis=1)
    centred = paths - paths.mean(axis=1, keepdims=True)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:, 0]
    along = np.einsum("gp,gp->g", axes, paths[:, -1] - paths[:, 0])
    axes = axes * np.where(along < 0, -1.0, 1.0)[:, None]
    cosines = np.clip((axes[first] * axes[second]).sum(axis=1), -1.0, 1.0)
    forms = centred / np.maximum(np.linalg.norm(centred, axis=(1, 2)), 1e-300)[:, None, None]
    # ‖A − BR‖² = 2 − 2 Σσ over rotations R of shape space, of which there are dimensions enough
    overlap = np.linalg.svd(_make_cross_factors(forms, first, second), compute_uv=False).sum(axis=1)
    distances = np.sqrt(np.maximum(2.0 - 2.0 * overlap, 0.0))
    return np.concatenate([np.abs(lengths[first] - lengths[second]), np.arccos(cosines), distances])


def _make_cross_factors(forms: Array, first: Index, second: Index) -> Array:
    """Return matrices with the singular values of AᵀB for pairs of forms (s, p), small ones.

    Parameters
    ----------
    forms : array (g, s, p)
        Centred paths of unit size.
    first, second : array (k,) of int
        The groups of every pair.

    Returns
    -------
    array (k, s, s)
    """
    factors = [np.linalg.qr(form.T)[1].T for form in forms]  # form = factor · orthonormal rows
    return np.stack([factors[i].T @ factors[j] for i, j in zip(first, second, strict=True)])
