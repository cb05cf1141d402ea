"""Phylogenetic components of shape: species and their ancestors in morphospace.

With Y the shapes of the species, C their covariance under Brownian motion, and a the phylogenetic
mean (the shape of the root):

- phylomorphospace: principal components of Y about its mean, with the tree drawn through the most
  likely shapes of the ancestors (Rohlf 2002);
- phylogenetic PCA: eigenvectors of (Y − 1a)ᵀC⁻¹(Y − 1a) / (n − 1), the rates of evolution
  (Revell 2009);
- phylogenetically aligned components (PaCA): right singular vectors of CᵀY, centred, along which
  shape covaries most with relatedness (Collyer & Adams 2021). Their variances are the squared
  singular values, scaled to the variance of the shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import svd_flip

from defgpa.arrays import Array
from defgpa.errors import DefgpaError, format_names
from defgpa.formatting import align_columns, format_column
from defgpa.statistics.phylogeny import Phylogeny
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed
from defgpa.statistics.species import TreeLike, match_tree
from defgpa.statistics.table import Row, Rows, Table

METHODS = ("phylomorphospace", "phylogenetic", "aligned")
_TITLES = {
    "phylomorphospace": "Phylomorphospace",
    "phylogenetic": "Phylogenetic principal components",
    "aligned": "Phylogenetically aligned components",
}


@dataclass(frozen=True, eq=False, repr=False)
class PhylogeneticComponents(Rows):
    """Components of shape, with the scores and shapes of species and their ancestors.

    Attributes
    ----------
    method : {"phylomorphospace", "phylogenetic", "aligned"}
        What the components are.
    tree : Phylogeny
        Its tips in the order of the species.
    scores, ancestor_scores : array (n, c), (k, c)
        Of the species, and of the internal nodes, the root first.
    components : array (c, m, d)
        Orthonormal; the largest entry of each is positive.
    variances : array (c,)
        Of the components: rates of evolution for "phylogenetic".
    shapes, ancestors : array (n, m, d), (k, m, d)
        Of the species, and the most likely ones of the internal nodes.
    center : array (m, d)
        The shape whose scores are 0: the mean, or the root for "phylogenetic".
    links : list of (int, int)
        Landmarks to join by a line.
    provenance : Provenance
        Which coordinates were analysed.
    """

    method: str
    tree: Phylogeny
    scores: Array
    ancestor_scores: Array
    components: Array
    variances: Array
    shapes: Array
    ancestors: Array
    center: Array
    links: list[tuple[int, int]]
    provenance: Provenance

    @property
    def shares(self) -> Array:
        """(c,): the variances as shares of all."""
        return np.asarray(self.variances / self.variances.sum())

    @property
    def node_scores(self) -> Array:
        """(n + k, c): scores of all nodes of the tree, tips first."""
        return np.concatenate([self.scores, self.ancestor_scores])

    @property
    def ancestor_names(self) -> list[str]:
        """Names of the internal nodes: ``root``, ``node_2``, ``node_3``, …"""
        return ["root", *(f"node_{k}" for k in range(2, len(self.ancestors) + 1))]

    @property
    def _columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("node", *(f"component_{k + 1}" for k in range(self.scores.shape[1])))

    def further_tables(self) -> dict[str, Table]:
        """Return the variance along every component, as a table by name."""
        numbers = range(1, len(self.variances) + 1)
        rows = list(zip(numbers, self.variances.tolist(), self.shares.tolist(), strict=True))
        return {"variances": (("component", "variance", "share"), rows)}

    def _rows(self) -> list[Row]:
        names = [*self.tree.tips, *self.ancestor_names]
        return [(name, *row) for name, row in zip(names, self.node_scores.tolist(), strict=True)]

    def __str__(self) -> str:
        n, k = len(self.shapes), len(self.ancestors)
        figures = zip(format_column(self.variances[:8]), self.shares[:8], strict=True)
        rows = [(str(c), value, f"{share:.1%}") for c, (value, share) in enumerate(figures, 1)]
        table = align_columns([("component", "variance", "share"), *rows])
        head = f"{_TITLES[self.method]} of {n} species and {k} ancestors"
        return f"{head}\n{self.provenance}\n\n{table}"


def phylogenetic_components(
    x: Analysed,
    tree: TreeLike,
    species: Sequence[object] | None = None,
    *,
    method: str = "phylomorphospace",
    prune: bool = False,
    space: str = "superimposed",
    superimpose: bool = True,
) -> PhylogeneticComponents:
    """Compute components of the shapes of species, with those of their ancestors.

    Parameters
    ----------
    x, tree, species, prune
        As in `match_tree`.
    method : {"phylomorphospace", "phylogenetic", "aligned"}
        Principal components with the tree in them, phylogenetic PCA (generalised least squares),
        or phylogenetically aligned components: geomorph's ``gm.prcomp`` with ``phy``, with
        ``GLS = TRUE``, and with ``align.to.phy = TRUE``.
    space, superimpose
        As in `procrustes_anova`.

    Returns
    -------
    PhylogeneticComponents
        Components of shape, with the scores and shapes of species and their ancestors.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = np.random.default_rng(0).normal(size=(4, 6, 2))
    >>> tree = "((a:1,b:1):1,(c:1,d:1):1);"
    >>> found = phylogenetic_components(shapes, tree, list("abcd"))
    >>> found.scores.shape, found.ancestors.shape
    ((4, 3), (3, 6, 2))
    """
    if method not in METHODS:
        raise DefgpaError(f"The 'method' is one of {format_names(METHODS)}; got {method!r}.")
    sample, phylogeny = match_tree(
        x, tree, species, prune=prune, space=space, superimpose=superimpose
    )
    sample.warn_of_findings()
    n, shape = phylogeny.n_tips, sample.tangents.shape[1:]
    Y = sample.tangents.reshape(n, -1)
    ancestors = phylogeny.estimate_ancestors(Y)
    center = ancestors[0] if method == "phylogenetic" else Y.mean(axis=0)
    weighting = {
        "phylomorphospace": np.eye(n),
        "phylogenetic": phylogeny.whitening,
        "aligned": phylogeny.covariance,
    }[method]
    U, lengths, axes = np.linalg.svd(weighting @ (Y - center), full_matrices=False)
    axes = svd_flip(U, axes, u_based_decision=False)[1]
    n_components = _count_varying(lengths)
    variances = lengths[:n_components] ** 2 / (n - 1)
    if method == "aligned":
        variances *= ((Y - center) ** 2).sum() / (lengths**2).sum()
    return PhylogeneticComponents(
        method,
        phylogeny,
        (Y - center) @ axes[:n_components].T,
        (ancestors - center) @ axes[:n_components].T,
        axes[:n_components].reshape(n_components, *shape),
        variances,
        sample.tangents,
        ancestors.reshape(-1, *shape),
        center.reshape(shape),
        sample.shapes.links,
        sample.provenance,
    )


def _count_varying(lengths: Array) -> int:
    """Count the components that vary: the others are rounding."""
    return int((lengths > 1e-10 * lengths[0]).sum())
