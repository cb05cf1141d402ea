"""Allometry by groups: common and predicted components, slopes compared, size removed.

With X log size and Y tangent coordinates, centred: the common allometric component (CAC) is Y along
YᵀX, whatever the groups (Mitteroecker et al. 2004); the regression score is Y along the coefficient
of size in the model (Drake and Klingenberg 2008); the predicted line is the first principal
component of the fitted values (Adams and Nistri 2010). Slopes of groups differ in length (how much
shape changes with size) and in angle (how); chance permutes the residuals of the model in which all
groups have one slope (Collyer and Adams 2013). The pooled slope is that within groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.errors import DefgpaError, ShapeError
from defgpa.formatting import align_columns, format_column
from defgpa.io.text.table import format_csv
from defgpa.shapes import Shapes
from defgpa.statistics.anova import procrustes_anova
from defgpa.statistics.design import make_orthonormal_bases
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
from defgpa.statistics.shape_model import ProcrustesAnova
from defgpa.statistics.table import Row, Table


@dataclass(frozen=True, eq=False, repr=False)
class GroupAllometry(PairRows):
    """How shape changes with size, in all specimens and in each group.

    Attributes
    ----------
    anova : ProcrustesAnova
        The model ``shape ~ log(size) * group`` with its table.
    shapes : Shapes
        The specimens, completed.
    sizes : array (n,)
    groups : tuple of g str
    codes : array (n,) of int
        The group of every specimen.
    common_component, regression_scores, predicted_line : array (n,)
        CAC, RegScore and PredLine of every specimen.
    pooled_slope : array (m, d)
        Change of shape per unit of log size within groups.
    slopes : array (g, m, d)
        The same of every group.
    lengths : array (g,)
        ‖slope‖.
    length_p, angles, angle_p : array (g, g)
        P of the differences of lengths; angles between slopes in degrees, and P of them.
    chance : str
        What chance did to the residuals for these, see `group_allometry`.
    """

    _columns = ("a", "b", "length_difference", "length_p", "angle", "angle_p")

    anova: ProcrustesAnova
    shapes: Shapes
    sizes: Array
    groups: tuple[str, ...]
    codes: Index
    common_component: Array
    regression_scores: Array
    predicted_line: Array
    pooled_slope: Array
    slopes: Array
    length_p: Array
    angles: Array
    angle_p: Array
    chance: str

    @property
    def provenance(self) -> Provenance:
        """Which coordinates were analysed."""
        return self.anova.provenance

    @property
    def lengths(self) -> Array:
        """(g,): how much the shape of each group changes per unit of log size."""
        return np.asarray(np.linalg.norm(self.slopes, axis=(1, 2)))

    def correct_size(self, size: float | None = None) -> Shapes:
        """Return the shapes corrected to one size by the slopes of their groups.

        Parameters
        ----------
        size : float, optional
            The size to bring all to; the geometric mean by default.

        Returns
        -------
        Shapes
            In the tangent space, at unit centroid size: give them with ``superimpose=False``.
        """
        logs = np.log(self.sizes)
        target = logs.mean() if size is None else float(np.log(size))
        corrected = self.anova.tangents - (logs - target)[:, None, None] * self.pooled_slope
        return self.shapes.with_points(corrected)

    def scores_to_csv(self) -> str:
        """Return a row for each specimen: size, CAC, regression score and predicted line."""
        columns = (self.sizes, self.common_component, self.regression_scores, self.predicted_line)
        figures = np.column_stack(columns).tolist()
        rows = zip(self.shapes.names, self.codes, figures, strict=True)
        heads = ("name", "group", "size", "cac", "regression_score", "predicted_line")
        return format_csv(heads, [(name, self.groups[k], *row) for name, k, row in rows])

    def further_tables(self) -> dict[str, Table]:
        """Return the length of every slope and the analysis of variance, as tables by name."""
        rows = list(zip(self.groups, self.lengths.tolist(), strict=True))
        return {
            "groups": (("group", "slope_length"), rows),
            "anova": (self.anova.table.columns, self.anova.table.to_rows()),
        }

    def _rows(self) -> list[Row]:
        differences = np.abs(self.lengths[:, None] - self.lengths)
        return list_pairs(self.groups, differences, self.length_p, self.angles, self.angle_p)

    def __str__(self) -> str:
        named = zip(self.groups, format_column(self.lengths), strict=True)
        lengths = align_columns([("", "slope length"), *named])
        pairs = align_columns([("", "length difference", "P", "angle", "P"), *self.cells()])
        how = describe_chance(self.anova.permutations.count, self.chance)
        chance = f"Slopes compared: {how} of the model of one common slope"
        return f"{self.anova}\n\n{chance}\n\n{lengths}\n\n{pairs}"


def group_allometry(
    x: Analysed,
    groups: Sequence[object],
    sizes: Sequence[float] | Array | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    name: str = "group",
    chance: str = "rotations",
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> GroupAllometry:
    """Compare how shape changes with size between groups, as geomorph's allometric analyses.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    groups : sequence of n labels
        At least two groups of three specimens of different sizes.
    sizes : array (n,), optional
        Positive; centroid sizes by default.
    name : str
        What the table calls the groups, such as ``"species"``.
    chance : {"rotations", "residuals"}
        How P of lengths and angles is found: residuals of the model of one common slope are rotated
        at random, or permuted, as geomorph does. P of permuted residuals is too small for angles.
    n_permutations, seed, space, superimpose, progress
        As in `procrustes_anova`.

    Returns
    -------
    GroupAllometry
        How shape changes with size, in all specimens and in each group.
    """
    sample = build_sample(x, space=space, superimpose=superimpose)
    n = sample.shapes.n_shapes
    names, codes = encode_groups(groups, n, "groups")
    size = sample.sizes if sizes is None else np.asarray(sizes, dtype=np.float64)
    if size.shape != (n,) or not (np.isfinite(size).all() and (size > 0).all()):
        raise ShapeError(f"There must be one positive size per shape, {n}; got {size.shape}.")
    if len(names) < 2 or np.bincount(codes).min() < 3:
        raise DefgpaError("Slopes are compared between at least 2 groups of 3 specimens or more.")
    logs = np.log(size)
    if min(np.ptp(logs[codes == k]) for k in range(len(names))) < 1e-12:
        raise ShapeError("In one group all specimens have the same size: it has no slope.")
    labels = [names[code] for code in codes]
    term = "".join(c if c.isalnum() else "_" for c in name)  # the name of a column in a formula
    term = term if term.isidentifier() and term not in ("shape", "size") else "group"
    formula = f"shape ~ log(size) * {term}"
    anova = procrustes_anova(
        formula, sample, {"size": size, term: labels}, n_permutations, seed, progress=progress
    )
    Y = anova.tangents.reshape(n, -1)
    centred = Y - Y.mean(axis=0)
    common = logs @ centred
    coefficient = anova.coefficients[1].ravel()
    fitted = anova.fitted.reshape(n, -1)
    axis = np.linalg.svd(fitted - fitted.mean(axis=0), full_matrices=False)[2][0]
    predicted = (fitted - fitted.mean(axis=0)) @ axis
    predicted *= np.sign(predicted @ (logs - logs.mean())) or 1.0
    permutations = Permutations(n_permutations, seed, progress)
    extract = _list_slope_rows(logs, codes)
    slopes = (extract @ Y).reshape(len(names), *anova.tangents.shape[1:])
    within = logs - np.bincount(codes, logs)[codes] / np.bincount(codes)[codes]
    pooled = (within @ Y / (within @ within)).reshape(anova.tangents.shape[1:])
    length_p, angles, angle_p = _compare_slopes(Y, logs, codes, extract, permutations, chance)
    return GroupAllometry(
        anova,
        sample.shapes,
        size,
        names,
        codes,
        centred @ common / np.linalg.norm(common),
        centred @ coefficient / np.linalg.norm(coefficient),
        predicted,
        pooled,
        slopes,
        length_p,
        angles,
        angle_p,
        chance,
    )


def _list_slope_rows(logs: Array, codes: Index) -> Array:
    """Return the rows (g, n) that take coordinates to the slope of each group."""
    rows = np.zeros((int(codes.max()) + 1, len(codes)))
    for group, row in enumerate(rows):
        members = codes == group
        deviations = logs[members] - logs[members].mean()
        row[members] = deviations / (deviations @ deviations)
    return rows


def _compare_slopes(
    Y: Array, logs: Array, codes: Index, extract: Array, permutations: Permutations, chance: str
) -> tuple[Array, Array, Array]:
    """Return P of length differences, angles in degrees, and P of angles, each (g, g).

    Parameters
    ----------
    Y : array (n, p)
        Shapes.
    logs : array (n,)
        Log sizes.
    codes : array (n,) of int
        The group of every specimen.
    extract : array (g, n)
        Rows that take coordinates to the slope of each group.
    """
    n, g = len(codes), len(extract)
    intercept = np.full((n, 1), n**-0.5)
    bases = make_orthonormal_bases(intercept, [logs[:, None], np.eye(g)[codes]])
    Q = np.hstack([intercept, *bases])
    first, second = np.triu_indices(g, 1)

    def measure(slopes: Array) -> Array:
        lengths = np.linalg.norm(slopes, axis=2)
        differences = np.abs(lengths[:, first] - lengths[:, second])
        products = (slopes[:, first] * slopes[:, second]).sum(axis=2)
        cosines = products / (lengths[:, first] * lengths[:, second])
        return np.hstack([differences, np.arccos(np.clip(cosines, -1.0, 1.0))])

    observed, values = compare_with_chance(Y, Q, extract, measure, permutations, chance)
    length_p, angle_p = np.split(p_values(observed, values), 2)
    angles = np.degrees(observed[len(first) :])
    return fill_pairs(g, length_p), fill_pairs(g, angles, 0.0), fill_pairs(g, angle_p)
