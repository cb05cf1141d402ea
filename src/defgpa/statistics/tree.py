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
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import DefgpaError, ShapeError, listed, needed


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
    def _shared(self) -> Array:
        """(n + k, n + k): the length of the path from the root that two nodes share."""
        count = len(self.parents)
        on_path = np.zeros((count, count))  # whether the branch of the column leads to the row
        for node in range(count):
            place = node
            while place >= 0:
                on_path[node, place] = 1.0
                place = int(self.parents[place])
        return (on_path * self.lengths) @ on_path.T

    @property
    def covariance(self) -> Array:
        """(n, n): C of the tips under Brownian motion."""
        return self._shared[: self.n_tips, : self.n_tips]

    def root_weights(self) -> Array:
        """Return the weights (n,) of the tips in the state of the root, which sum to 1."""
        weights = np.linalg.solve(self.covariance, np.ones(self.n_tips))
        return np.asarray(weights / weights.sum())

    def estimate_ancestors(self, Y: Array) -> Array:
        """Estimate the states (k, p) of the internal nodes from those of the tips (n, p)."""
        root = self.root_weights() @ Y
        cross = self._shared[self.n_tips :, : self.n_tips]
        return np.asarray(root + cross @ np.linalg.solve(self.covariance, Y - root))

    @property
    def edges(self) -> Index:
        """(e, 2): parent and child of every branch."""
        children = np.flatnonzero(self.parents >= 0)
        return np.column_stack([self.parents[children], children])

    def match(self, names: Sequence[str], prune: bool = False) -> Phylogeny:
        """Return the tree with its tips in the order of the names.

        Parameters
        ----------
        names : sequence of str
            Each a tip of the tree, once.
        prune : bool
            Whether tips without a name are left out; otherwise they are an error.
        """
        wanted = [str(name) for name in names]
        repeated = [name for name in wanted if wanted.count(name) > 1]
        if repeated:
            raise ShapeError(
                f"The name {repeated[0]!r} is there more than once, and a tip only once: give the "
                "groups whose mean shapes belong to the tips."
            )
        place = {tip: k for k, tip in enumerate(self.tips)}
        absent = [name for name in wanted if name not in place]
        if absent:
            raise ShapeError(
                f"The tree has no tip {listed(absent)}; its tips: {listed(self.tips)}."
            )
        extra = [tip for tip in self.tips if tip not in set(wanted)]
        if extra and not prune:
            raise ShapeError(
                f"The tips {listed(extra)} of the tree are no specimens. Prune them (prune=True)."
            )
        return self._restrict([place[name] for name in wanted])

    def _restrict(self, tips: Sequence[int]) -> Phylogeny:
        """Keep some tips in this order, and the nodes at which their paths part."""
        needed_nodes: dict[int, set[int]] = {}
        for tip in tips:
            child, node = tip, int(self.parents[tip])
            while node >= 0:
                needed_nodes.setdefault(node, set()).add(child)
                child, node = node, int(self.parents[node])
        inner = sorted(node for node, children in needed_nodes.items() if len(children) > 1)
        nodes = [*tips, *inner]
        number = {node: k for k, node in enumerate(nodes)}
        parents, lengths = [], []
        for node in nodes:
            length, place = float(self.lengths[node]), int(self.parents[node])
            while place >= 0 and place not in number:
                length += float(self.lengths[place])
                place = int(self.parents[place])
            parents.append(number.get(place, -1))
            lengths.append(length if place >= 0 else 0.0)
        names = tuple(self.tips[tip] for tip in tips)
        return Phylogeny(names, np.array(parents, dtype=np.intp), np.array(lengths))


def read_tree(source: str | PathLike[str]) -> Phylogeny:
    """Read a tree from a Newick or NEXUS file, or from Newick text.

    Parameters
    ----------
    source : path or str
        A file, or ``"(a:1,(b:1,c:1):1);"``. Of several trees the first is taken.

    Examples
    --------
    >>> tree = read_tree("(a:2,(b:1,c:1):1);")
    >>> tree.tips, tree.covariance.tolist()
    (('a', 'b', 'c'), [[2.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    """
    dendropy = needed(
        "dendropy", "Trees need the package dendropy: pip install 'defgpa[phylogeny]'."
    )
    text = str(source)
    is_text = ";" in text and "(" in text
    if not is_text:
        try:
            text = Path(source).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise DefgpaError(f"The tree {source} cannot be read: {error.strerror}.") from None
    schema = "nexus" if text.lstrip()[:6].upper() == "#NEXUS" else "newick"
    name = "The tree" if is_text else f"{source}: the tree"
    try:
        trees = dendropy.TreeList.get(
            data=text, schema=schema, preserve_underscores=True, rooting="default-rooted"
        )
    except Exception as error:  # dendropy has no common class of errors
        raise DefgpaError(f"{name} is no {schema} tree ({type(error).__name__}).") from None
    if not len(trees):
        raise DefgpaError(f"{name} is empty.")
    return _convert(trees[0], name)


def _convert(tree: Any, name: str) -> Phylogeny:
    """Number the nodes of a dendropy tree: tips first, then inner nodes from the root on."""
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
