"""Rates of shape evolution, compared between groups of species.

With W whitening the species (WᵀW = C⁻¹, C their covariance under Brownian motion) and E the shapes
minus their phylogenetic mean, the rate of a group g of species in p coordinates is

    σ²_g = mean over i in g of ‖(WE)_i‖² / p

(Adams 2014). The statistic is the largest rate over the smallest. Chance permutes the rows of WE,
which are exchangeable where all species evolve at one rate (Adams & Collyer 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.errors import ShapeError
from defgpa.formatting import align_columns, format_column, format_number
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.pairs import PairRows, list_pairs
from defgpa.statistics.permutation import Permutations, p_value
from defgpa.statistics.phylogeny import Phylogeny
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample
from defgpa.statistics.species import TreeLike, match_tree
from defgpa.statistics.table import Row, Table, format_p
from defgpa.statistics.two_way import build_averaging


@dataclass(frozen=True, eq=False, repr=False)
class EvolutionaryRates(PairRows):
    """Rates of evolution by group of species.

    Attributes
    ----------
    names : tuple of g str
        The groups.
    rates : array (g,)
        σ² of every group, per coordinate and unit of branch length.
    overall : float
        σ² of all species together.
    ratio, z, p : float
        The largest rate over the smallest, its effect size and P.
    pairwise_ratios, pairwise_p : array (g, g)
        Of every pair of groups; NaN on the diagonal.
    counts : array (g,) of int
        Species in every group.
    permuted : array (n_permutations,)
        The ratio under chance.
    provenance : Provenance
        Which coordinates were analysed.
    """

    _columns = ("a", "b", "rate_a", "rate_b", "ratio", "p")

    names: tuple[str, ...]
    rates: Array
    overall: float
    ratio: float
    z: float
    p: float
    pairwise_ratios: Array
    pairwise_p: Array
    counts: Index
    permuted: Array
    provenance: Provenance

    def further_tables(self) -> dict[str, Table]:
        """Return the rate of every group, and the test of all, as tables by name."""
        rows = list(zip(self.names, self.counts.tolist(), self.rates.tolist(), strict=True))
        return {
            "groups": (("group", "n_species", "rate"), rows),
            "test": (("ratio", "z", "p"), [(self.ratio, self.z, self.p)]),
        }

    def _rows(self) -> list[Row]:
        rates = np.meshgrid(self.rates, self.rates, indexing="ij")
        return list_pairs(self.names, *rates, self.pairwise_ratios, self.pairwise_p)

    def __str__(self) -> str:
        head = f"Rates of evolution: ratio {format_number(self.ratio)}, Z {format_number(self.z)}, "
        counts = map(str, self.counts)
        rates = list(zip(self.names, counts, format_column(self.rates), strict=True))
        chance = f"{len(self.permuted)} permutations of the species, whitened along the tree"
        lines = [head + f"P {format_p(self.p)}", str(self.provenance), chance, ""]
        lines.append(align_columns([("", "species", "rate"), *rates]))
        if len(self.names) > 2:
            lines += ["", align_columns([("", "ratio", "P"), *self.cells()])]
        return "\n".join(lines)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the pairs of groups with ratio and P as text, without a header."""
        return [(pair, ratio, p) for pair, _, _, ratio, p in super().cells()]


def evolutionary_rates(
    x: Analysed,
    tree: TreeLike,
    groups: Sequence[object],
    species: Sequence[object] | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    prune: bool = False,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> EvolutionaryRates:
    """Compare the rates of shape evolution of groups of species (``compare.evol.rates``).

    Parameters
    ----------
    x, tree, species, prune
        As in `match_tree`.
    groups : sequence of n
        The group of every specimen; the same for all specimens of a species.
    n_permutations, seed, space, superimpose, progress
        As in `procrustes_anova`.

    Returns
    -------
    EvolutionaryRates
        Rates of evolution by group of species.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(6, 2)) + 0.01 * rng.normal(size=(8, 6, 2))
    >>> shapes[4:] += 0.1 * rng.normal(size=(4, 6, 2))
    >>> tree = "(((a:1,b:1):1,(c:1,d:1):1):1,((e:1,f:1):1,(g:1,h:1):1):1);"
    >>> found = evolutionary_rates(shapes, tree, list("ssssffff"), list("abcdefgh"))
    >>> found.names, bool(found.ratio > 10)
    (('s', 'f'), True)
    """
    permutations = Permutations(n_permutations, seed, progress)
    specimens = build_sample(x, space=space, superimpose=superimpose)
    names, codes = encode_groups(groups, specimens.shapes.n_shapes, "groups")
    sample, phylogeny = match_tree(specimens, tree, species, prune=prune)
    sample.warn_of_findings()
    labels = specimens.shapes.names if species is None else list(map(str, species))
    codes = _select_groups(labels, codes, phylogeny.tips)
    names = tuple(names[k] for k in sorted(set(codes.tolist())))
    codes = np.unique(codes, return_inverse=True)[1]
    if len(names) < 2:
        raise ShapeError(f"Rates are compared between at least 2 groups; there is {names[0]!r}.")
    squares = measure_evolution(sample.tangents.reshape(phylogeny.n_tips, -1), phylogeny)
    means = build_averaging(codes)
    rates = np.asarray(means @ squares)

    def compute_ratios(orders: Index) -> Array:
        return _compare_rates((means @ squares[orders].T).T)

    n, g = len(squares), len(names)
    observed = _compare_rates(rates[None])[0]
    permuted = permutations.each(n, g, compute_ratios)
    largest = permuted.max(axis=(1, 2))
    pairwise_p = np.full((g, g), np.nan)
    for a, b in combinations(range(g), 2):
        pairwise_p[a, b] = pairwise_p[b, a] = p_value(observed[a, b], permuted[:, a, b])
    ratio = float(observed.max())
    np.fill_diagonal(observed, np.nan)
    return EvolutionaryRates(
        names,
        rates,
        float(squares.mean()),
        ratio,
        effect_size(ratio, largest),
        p_value(ratio, largest),
        observed,
        pairwise_p,
        np.bincount(codes),
        largest,
        sample.provenance,
    )


def measure_evolution(Y: Array, tree: Phylogeny) -> Array:
    """Return ‖(WE)_i‖² / p (n,) of every species, from shapes (n, p)."""
    whitened = tree.whitening @ (Y - tree.root_weights @ Y)
    return np.asarray((whitened**2).mean(axis=1))


def _compare_rates(rates: Array) -> Array:
    """Return the ratios (b, g, g) of rates (b, g), the larger over the smaller."""
    quotients = rates[:, :, None] / rates[:, None, :]
    return np.maximum(quotients, 1 / quotients)


def _select_groups(labels: Sequence[str], codes: Index, tips: Sequence[str]) -> Index:
    """Return the group of every tip, which all its specimens share."""
    of_species: dict[str, set[int]] = {}
    for label, code in zip(labels, codes.tolist(), strict=True):
        of_species.setdefault(label, set()).add(code)
    ambiguous = [tip for tip in tips if len(of_species[tip]) > 1]
    if ambiguous:
        raise ShapeError(f"Specimens of the species {ambiguous[0]!r} are in different groups.")
    return np.array([min(of_species[tip]) for tip in tips], dtype=np.intp)
