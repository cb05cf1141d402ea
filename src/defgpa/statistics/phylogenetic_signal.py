"""Phylogenetic signal: whether relatives resemble each other as Brownian motion would have it.

With C the covariance of the species under Brownian motion, a the phylogenetic mean of the shapes Y
and E = Y − 1a,

    K = (tr EᵀE / tr EᵀC⁻¹E) / ((tr C − n / 1ᵀC⁻¹1) / (n − 1))

is 1 on average under Brownian motion, and smaller where relatives are less alike (Blomberg et al.
2003; Kmult of Adams 2014). P permutes the shapes among the tips.

Z compares the strength of the signal between data sets (Collyer, Baken & Adams 2022). Relatedness
is scaled by λ, C_λ = λC + (1 − λ) diag C, and Z is the standard score of the log-likelihood of the
shapes among those of permuted shapes, for the λ with the largest Z. The likelihood is that of the
first phylogenetically aligned components. With n − 1 of them it is the same for every permutation,
so there are at most n − 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline

from defgpa.arrays import Array, Index, Progress
from defgpa.errors import DefgpaError
from defgpa.formatting import format_number
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.permutation import Permutations, compress_columns, p_value
from defgpa.statistics.phylogeny import Phylogeny
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed
from defgpa.statistics.species import TreeLike, match_tree
from defgpa.statistics.table import Row, Rows, format_p

_SCALINGS = np.linspace(0.1, 1.0, 10)
_NEGLIGIBLE = 1e-4  # of the first component: the standard deviation of one that is left out


@dataclass(frozen=True, eq=False, repr=False)
class PhylogeneticSignal(Rows):
    """Phylogenetic signal of shape.

    Attributes
    ----------
    k, p : float
        Kmult, and the share of permutations that reach it.
    z, z_p : float
        Effect size of the likelihood, and its P. Components and scaling are chosen for the observed
        order of the shapes, so this P is too small without signal: test with the P of K, and
        compare data sets with Z.
    scaling : float
        λ, from 0 (no signal) to 1 (Brownian motion).
    n_components : int
        Phylogenetically aligned components in the likelihood.
    observed : float
        The log-likelihood.
    permuted, permuted_k : array (n_permutations,)
        Log-likelihoods and K under chance.
    species : tuple of n str
        The tips.
    provenance : Provenance
        Which coordinates were analysed.
    """

    _columns = ("k", "p", "z", "z_p", "scaling", "n_species", "n_components")

    k: float
    p: float
    z: float
    z_p: float
    scaling: float
    n_components: int
    observed: float
    permuted: Array
    permuted_k: Array
    species: tuple[str, ...]
    provenance: Provenance

    @property
    def statistic(self) -> str:
        """The name of the statistic that is compared between data sets."""
        return "likelihood along the tree"

    def _rows(self) -> list[Row]:
        count = len(self.species)
        return [(self.k, self.p, self.z, self.z_p, self.scaling, count, self.n_components)]

    def __str__(self) -> str:
        return (
            f"Phylogenetic signal of {len(self.species)} species: K {format_number(self.k)}, "
            f"P {format_p(self.p)}\n{self.provenance}\n{len(self.permuted)} permutations of "
            f"the shapes among the tips\nEffect size Z {format_number(self.z, unknown='none')} "
            f"(likelihood of {self.n_components} components, λ {self.scaling:.3g})"
        )


def phylogenetic_signal(
    x: Analysed,
    tree: TreeLike,
    species: Sequence[object] | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    scaling: float | None = None,
    n_components: int | None = None,
    prune: bool = False,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> PhylogeneticSignal:
    """Measure and test the phylogenetic signal of shape (``physignal``, ``physignal.z``).

    Parameters
    ----------
    x, tree, species, prune
        As in `match_tree`.
    n_permutations, seed, space, superimpose, progress
        As in `procrustes_anova`.
    scaling : float, optional
        λ of the likelihood behind Z, between 0 and 1; by default the one with the largest Z.
    n_components : int, optional
        Phylogenetically aligned components in that likelihood; by default all that vary, at most
        two fewer than species.

    Returns
    -------
    PhylogeneticSignal
        Phylogenetic signal of shape.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mean, side = rng.normal(size=(2, 6, 2))
    >>> steps = np.array([0, 0.01, 1, 1.01, 2, 2.01, 3, 3.01])[:, None, None]
    >>> tree = "(((a:1,b:1):9,(c:1,d:1):9):1,((e:1,f:1):9,(g:1,h:1):9):1);"
    >>> signal = phylogenetic_signal(mean + 0.1 * steps * side, tree, list("abcdefgh"))
    >>> bool(signal.k > 1), bool(signal.p < 0.05)
    (True, True)
    """
    if scaling is not None and not 0 < scaling <= 1:
        raise DefgpaError(f"The 'scaling' of relatedness is between 0 and 1; got {scaling!r}.")
    permutations = Permutations(n_permutations, seed, progress)
    sample, phylogeny = match_tree(
        x, tree, species, prune=prune, space=space, superimpose=superimpose
    )
    sample.warn_of_findings()
    n = phylogeny.n_tips
    Y = compress_columns((sample.tangents - sample.tangents.mean(axis=0)).reshape(n, -1))
    k, permuted_k = permute_signal(Y, phylogeny, permutations)
    aligned = align_to_tree(Y, phylogeny.covariance, n_components)
    chosen = _choose_scaling(aligned, phylogeny, permutations) if scaling is None else scaling
    silent = replace(permutations, progress=None)
    likelihood, likelihoods = _permute_likelihood(aligned, phylogeny, chosen, silent)
    return PhylogeneticSignal(
        k,
        p_value(k, permuted_k),
        effect_size(likelihood, likelihoods),
        p_value(likelihood, likelihoods),
        chosen,
        aligned.shape[1],
        likelihood,
        likelihoods,
        permuted_k,
        phylogeny.tips,
        sample.provenance,
    )


def permute_signal(Y: Array, tree: Phylogeny, permutations: Permutations) -> tuple[float, Array]:
    """Compute K of shapes (n, p), centred, and (n_permutations,) of shapes permuted among the tips.

    Both traces need only the products of shapes G = YYᵀ, whose rows and columns are permuted.
    """
    n, weights = tree.n_tips, tree.root_weights
    precision, G = np.linalg.inv(tree.covariance), Y @ Y.T
    total, spread = precision.sum(), float(np.trace(G))
    expected = (np.trace(tree.covariance) - n / total) / (n - 1)

    def compute_k(orders: Index) -> Array:
        permuted_weights = np.empty((len(orders), n))
        np.put_along_axis(permuted_weights, orders, weights, axis=1)
        root = ((permuted_weights @ G) * permuted_weights).sum(axis=1)  # squared length of a
        traces = np.array([np.vdot(precision, G[order][:, order]) for order in orders])
        return np.asarray((spread + n * root) / (traces - total * root) / expected)

    observed = float(compute_k(np.arange(n)[None])[0])
    return observed, permutations.each(n, 1, compute_k)


def align_to_tree(Y: Array, covariance: Array, n_components: int | None = None) -> Array:
    """Return the scores (n, k) of centred shapes on phylogenetically aligned components."""
    axes = np.linalg.svd(covariance @ Y, full_matrices=False)[2]
    scores = Y @ axes.T
    deviations = scores.std(axis=0)
    available = min(int((deviations > _NEGLIGIBLE * deviations[0]).sum()), len(Y) - 2)
    if n_components is not None and not 1 <= n_components <= available:
        raise DefgpaError(
            f"'n_components' is 1 to {available}, as many as vary, and at most two fewer than "
            f"species; got {n_components!r}."
        )
    return np.asarray(scores[:, : n_components or available])


def _choose_scaling(Y: Array, tree: Phylogeny, permutations: Permutations) -> float:
    """Choose λ with the largest Z, by a spline through those of ten values."""
    fewer = replace(permutations, count=max(permutations.count // 10, 100), progress=None)
    sizes = [effect_size(*_permute_likelihood(Y, tree, scaling, fewer)) for scaling in _SCALINGS]
    if np.isnan(sizes).any():
        return 1.0
    between = np.linspace(_SCALINGS[0], _SCALINGS[-1], 91)
    return float(between[np.argmax(CubicSpline(_SCALINGS, sizes)(between))])


def _permute_likelihood(
    Y: Array, tree: Phylogeny, scaling: float, permutations: Permutations
) -> tuple[float, Array]:
    """Compute the log-likelihood of Y (n, p), and those (n_permutations,) of permuted rows.

    Of YᵀMY, M the precision C⁻¹ centred about the root, only the determinant is needed. With
    Y = QT and N the other centred directions, |YᵀMY| = |T|² |NᵀCN| / |M⁻¹|, M⁻¹ that of centred
    vectors (Jacobi's identity of complementary minors): the smaller of Q and N is permuted.
    """
    n, p = Y.shape
    C = scaling * tree.covariance + (1 - scaling) * np.diag(np.diag(tree.covariance))
    precision = np.linalg.inv(C)
    of_root = precision.sum(axis=0)
    log_volume = np.linalg.slogdet(C)[1]
    constant = n * p * np.log(2 * np.pi) + p * log_volume + n * p - n * p * np.log(n)
    frame, T = np.linalg.qr(np.hstack([np.ones((n, 1)), Y]), mode="complete")
    constant += 2 * n * float(np.log(np.abs(np.diag(T)[1:])).sum())
    directions = frame[:, 1 : p + 1]
    form = precision - np.outer(of_root, of_root) / of_root.sum()
    if p > n // 2:
        directions, form = frame[:, p + 1 :], C
        constant -= n * (log_volume + np.log(of_root.sum() / n))

    def compute_likelihood(orders: Index) -> Array:
        permuted = directions[orders]
        volumes = np.linalg.slogdet(permuted.transpose(0, 2, 1) @ (form @ permuted))[1]
        return np.asarray(-0.5 * (constant + n * volumes))

    observed = float(compute_likelihood(np.arange(n)[None])[0])
    width = 2 * directions.shape[1]
    return observed, permutations.each(n, width, compute_likelihood)
