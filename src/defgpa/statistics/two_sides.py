"""The two sides of individuals in one tangent space: their two-way table, Sym and Asym, and chance.

Without directional asymmetry Asym is as likely as −Asym: chance turns the sides of individuals
around, which is exact. Without fluctuating asymmetry Asym of all replicates of configurations with
both sides are exchangeable: chance permutes these, and not the symmetric parts of their errors,
which say nothing of it. For the other terms residuals are permuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.diagnostics.findings import Finding, Problem, warn_about
from defgpa.errors import ShapeError
from defgpa.procrustes import ORTHOGONAL, fit_motions
from defgpa.shapes import Shapes
from defgpa.statistics.anova import effect_table
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.permutation import Permutations, compress_columns
from defgpa.statistics.table import EffectTable
from defgpa.statistics.two_way import TwoWay, build_averaging
from defgpa.statistics.variance_ratios import RESIDUAL, Ratios, permute_ratios
from defgpa.threads import use_threads

_TERMS = ("individual", "side", "individual:side")


def require_once(
    names: Sequence[str],
    codes: Index,
    sides: Index,
    words: Sequence[str],
    replicate: Sequence[object] | None,
) -> None:
    """Raise a ShapeError if a side of an individual is measured twice without a replicate."""
    if replicate is None:
        return
    _, times = encode_groups(replicate, len(codes), "replicate")
    measurements: set[tuple[int, int, int]] = set()
    for key in zip(codes.tolist(), sides.tolist(), times.tolist(), strict=True):
        if key in measurements:
            word = f" {words[key[1]]}" if words[key[1]] else ""
            raise ShapeError(f"Individual {names[key[0]]!r}{word} has the same replicate twice.")
        measurements.add(key)


def mirror_second_side(shapes: Shapes, sides: Index) -> tuple[Array, bool]:
    """Return the shapes with those of the second side mirrored, unless they have been already."""
    points = shapes.points
    motions = fit_motions(points, points[0], motions=ORTHOGONAL)
    handedness = np.where(motions.determined, np.sign(np.linalg.det(motions.rotation)), 0.0)
    votes = [handedness[sides == k].sum() for k in (0, 1)]
    is_mirrored = handedness * np.sign(np.array(votes))[sides] < 0
    if is_mirrored.any():
        names = tuple(compress(shapes.names, is_mirrored))
        warn_about([Finding(Problem.MIRRORED_IN_SIDE, shapes=names)])
    mirror = votes[0] * votes[1] < 0
    flip = np.where((sides == 1)[:, None] & mirror, make_flip(shapes.n_dims), 1.0)
    return points * flip[:, None, :], bool(mirror)


def make_flip(dim: int) -> Array:
    """Return the factors (d,) that mirror coordinates."""
    return np.where(np.arange(dim) == 0, -1.0, 1.0)


def decompose(
    x: Array, codes: Index, sides: Index, permutations: Permutations, copies: int
) -> tuple[EffectTable, Array, Array]:
    """Compute the two-way table, and Sym and Asym of every individual, from mean replicates.

    Of configurations with their mirror images, ``copies`` is 2: sums of squares count them once.

    Parameters
    ----------
    x : array (n, m, d)
        Configurations.
    codes, sides : array (n,) of int
        The individual and the side of each.

    Returns
    -------
    table : EffectTable
    symmetric, asymmetric : array (k, m, d)
    """
    flat = x.reshape(len(x), -1)
    terms = TwoWay(codes, sides)
    with use_threads(n_values=flat.size * permutations.count // 10):
        ratios = permute_ratios(flat, terms, (2, 2, RESIDUAL), permutations)
    means = [np.asarray(build_averaging(codes[sides == k]) @ flat[sides == k]) for k in (0, 1)]
    a, b = (mean.reshape(-1, *x.shape[1:]) for mean in means)
    chance = ratios.permuted.copy()
    chance[:, 1] = _permute_sides((means[0] - means[1]) / 2, ratios.observed[1], permutations)
    if copies == 2 and terms.residual_df:
        chance[:, 2] = _permute_asymmetric(flat, terms, ratios, permutations)
    single = replace(
        ratios,
        sums=ratios.sums / copies,
        residual=ratios.residual / copies,
        total=ratios.total / copies,
        permuted=chance,
    )
    return effect_table(_TERMS, terms, single), (a + b) / 2, (a - b) / 2


def _permute_sides(asymmetric: Array, observed: float, permutations: Permutations) -> Array:
    """Compute F (count,) of the side with Asym (k, p) of random individuals turned around.

    F is k ‖mean Asym‖² over the mean square of what that leaves of Σ ‖Asym‖², in the units of the
    observed one, which weighs individuals by their replicates.
    """
    k = len(asymmetric)
    total = float(np.sum(asymmetric**2))
    signs = np.vstack([np.ones((1, k)), permutations.signs(k)])
    between = np.sum((signs @ asymmetric) ** 2, axis=1) / k
    within = np.maximum(total - between, np.finfo(np.float64).tiny)
    f = (k - 1) * between / within
    return np.asarray(f[1:] * observed / f[0]) if f[0] > 0 else np.full(len(f) - 1, np.nan)


def _permute_asymmetric(
    flat: Array, terms: TwoWay, ratios: Ratios, permutations: Permutations
) -> Array:
    """Compute F (count,) of the interaction with Asym of configurations in random order.

    ``flat`` (2n, p) are configurations and their mirror images. What the interaction and the
    residuals have together stays the same.
    """
    n = len(flat) // 2
    codes = terms.codes[:n]
    asymmetric = (flat[:n] - flat[n:]) / 2
    asymmetric = compress_columns(asymmetric - asymmetric.mean(axis=0))
    averages, counts = build_averaging(codes), np.bincount(codes)
    together = ratios.sums[2] + ratios.residual

    def compute_ratios(orders: Index) -> Array:
        means = np.stack([averages @ asymmetric[order] for order in orders])
        among = 2.0 * ((means**2).sum(axis=2) @ counts)  # of both sides
        within = np.maximum(together - among, np.finfo(np.float64).tiny)
        return np.asarray((among / terms.df[2]) / (within / terms.residual_df))

    return permutations.each(n, asymmetric.shape[1], compute_ratios)
