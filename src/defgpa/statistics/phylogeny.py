"""Phylogenetic trees: the covariance of species under Brownian motion, and ancestral states.

Under Brownian motion the covariance of two nodes is the length of the path that they share from the
root. With C that of the tips, c that of the internal nodes with the tips, and a the generalised
least-squares mean (the root), the most likely states of the internal nodes are

    1a + c C⁻¹ (Y − 1a),      a = (1ᵀC⁻¹1)⁻¹ 1ᵀC⁻¹Y      (Schluter et al. 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.errors import DefgpaError, ShapeError, import_extra

if TYPE_CHECKING:
    import dendropy

_MAX_TIPS = 20_000  # their covariance takes 3.2 GB, and reading takes time as their square


@dataclass(frozen=True, eq=False)
class Phylogeny:
    """A rooted tree with branch lengths.

    Nodes are numbered: the n tips first, then the internal nodes from the root on.

    Attributes
    ----------
    tips : tuple of n str
        Names.
    parents : array (n + k,) of int
        The parent of every node; −1 for the root.
    lengths : array (n + k,)
        Of the branch above every node; 0 for the root.
    """

    tips: tuple[str, ...]
    parents: Index
    lengths: Array

    @property
    def n_tips(self) -> int:
        """The number of tips."""
        return len(self.tips)

    @cached_property
    def shared_paths(self) -> Array:
        """(n + k, n + k): the length of the path from the root that two nodes share."""
        count = len(self.parents)
        leads_to = np.zeros((count, count))  # whether the branch of a column leads to the row
        for node in range(count):
            branch = node
            while branch >= 0:
                leads_to[node, branch] = 1.0
                branch = int(self.parents[branch])
        return np.asarray((leads_to * self.lengths) @ leads_to.T)

    @cached_property
    def covariance(self) -> Array:
        """(n, n): C of the tips under Brownian motion."""
        C = self.shared_paths[: self.n_tips, : self.n_tips]
        values = np.linalg.eigvalsh(C)
        if values[0] <= 1e-12 * values[-1]:
            raise ShapeError(
                "The covariance of the species is singular: two tips of the tree are not apart, or "
                "branches have no length. Leave one of them out, or give the branches lengths."
            )
        return C

    @cached_property
    def root_weights(self) -> Array:
        """(n,): the weights of the tips in the state of the root; they sum to 1."""
        weights = np.linalg.solve(self.covariance, np.ones(self.n_tips))
        return np.asarray(weights / weights.sum())

    @cached_property
    def whitening(self) -> Array:
        """(n, n): W, symmetric, with WᵀW = C⁻¹: WY evolves independently from row to row."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T)

    def estimate_ancestors(self, Y: Array) -> Array:
        """Estimate the states (k, p) of internal nodes, the root first, from the tips (n, p)."""
        root = self.root_weights @ Y
        cross = self.shared_paths[self.n_tips :, : self.n_tips]
        return np.asarray(root + cross @ np.linalg.solve(self.covariance, Y - root))

    @property
    def branches(self) -> Index:
        """(e, 2): parent and child of every branch."""
        children = np.flatnonzero(self.parents >= 0)
        return np.column_stack([self.parents[children], children])

    def take(self, names: Sequence[str]) -> Phylogeny:
        """Return the tree of these tips, in this order; branches without forks are joined."""
        place = {tip: k for k, tip in enumerate(self.tips)}
        return self._restrict([place[name] for name in names])

    def _restrict(self, tips: Sequence[int]) -> Phylogeny:
        """Keep some tips in this order, and the nodes at which their paths part."""
        children: dict[int, set[int]] = {}
        for tip in tips:
            child, node = tip, int(self.parents[tip])
            while node >= 0:
                children.setdefault(node, set()).add(child)
                child, node = node, int(self.parents[node])
        inner = sorted(node for node, below in children.items() if len(below) > 1)
        nodes = [*tips, *inner]
        number = {node: k for k, node in enumerate(nodes)}
        parents, lengths = [], []
        for node in nodes:
            length, ancestor = float(self.lengths[node]), int(self.parents[node])
            while ancestor >= 0 and ancestor not in number:
                length += float(self.lengths[ancestor])
                ancestor = int(self.parents[ancestor])
            parents.append(number.get(ancestor, -1))
            lengths.append(length if ancestor >= 0 else 0.0)
        names = tuple(self.tips[tip] for tip in tips)
        return Phylogeny(names, np.array(parents, dtype=np.intp), np.array(lengths))


def read_tree(source: str | PathLike[str]) -> Phylogeny:
    """Read a tree from a Newick or NEXUS file, or from Newick text.

    Parameters
    ----------
    source : path or str
        A file, or ``"(a:1,(b:1,c:1):1);"``. Of several trees the first is taken.

    Returns
    -------
    Phylogeny
        A rooted tree with branch lengths.

    Examples
    --------
    >>> tree = read_tree("(a:2,(b:1,c:1):1);")
    >>> tree.tips, tree.covariance.tolist()
    (('a', 'b', 'c'), [[2.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    """
    dendropy = import_extra(
        "dendropy", 'Trees need the package dendropy: pip install "defgpa[phylogeny]".'
    )
    text = str(source)
    is_text = ";" in text and "(" in text
    if not is_text:
        try:
            text = Path(source).read_text(encoding="utf-8-sig", errors="replace")
        except OSError as error:
            raise DefgpaError(f"The tree {source} cannot be read: {error.strerror}.") from None
    schema = "NEXUS" if text.lstrip()[:6].upper() == "#NEXUS" else "Newick"
    name = "The tree" if is_text else f"{source}: the tree"
    n_tips = 1 + max(statement.count(",") for statement in text.split(";"))
    if n_tips > _MAX_TIPS:
        raise DefgpaError(f"{name} has about {n_tips:,} tips; at most {_MAX_TIPS:,} can be read.")
    try:
        trees = dendropy.TreeList.get(
            data=text, schema=schema.lower(), preserve_underscores=True, rooting="default-rooted"
        )
    except Exception:  # dendropy has no common class of errors
        raise DefgpaError(
            f"{name} is no {schema} tree: check its parentheses, names and lengths, and that it "
            "ends with a semicolon."
        ) from None
    if not len(trees):
        raise DefgpaError(f"{name} is empty.")
    return _convert(trees[0], name)


def _convert(tree: dendropy.Tree, name: str) -> Phylogeny:
    """List the nodes of a dendropy tree: tips first, then inner nodes from the root on."""
    tips = list(tree.leaf_node_iter())
    inner = [node for node in tree.preorder_node_iter() if not node.is_leaf()]
    labels = [tip.taxon.label if tip.taxon is not None else "" for tip in tips]
    if len(tips) < 3 or not all(labels) or len(set(labels)) < len(labels):
        raise DefgpaError(f"{name} must have at least 3 tips with different names.")
    nodes = [*tips, *inner]
    number = {id(node): k for k, node in enumerate(nodes)}
    parents = [number[id(n.parent_node)] if n.parent_node is not None else -1 for n in nodes]
    lengths = [n.edge.length if n.parent_node is not None else 0.0 for n in nodes]
    if any(length is None or not length >= 0 for length in lengths):
        raise DefgpaError(f"{name} must have a length of at least 0 for every branch.")
    return Phylogeny(tuple(labels), np.array(parents, dtype=np.intp), np.array(lengths, float))
