"""Match specimens, or the mean shapes of species, with the tips of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

import numpy as np

from defgpa.arrays import Index, RawArray
from defgpa.errors import ShapeError, format_names
from defgpa.io.covariates import Columns, collect_columns
from defgpa.shapes import Shapes
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.phylogeny import Phylogeny, read_tree
from defgpa.statistics.sample import Analysed, Sample, build_sample

TreeLike = Phylogeny | str | PathLike[str]


def average_species(
    x: Analysed,
    species: Sequence[object],
    data: Columns | None = None,
    *,
    space: str = "superimposed",
    superimpose: bool = True,
) -> Sample:
    """Average the specimens of every species: one mean shape, size and row of data each.

    Means are those of the tangent coordinates of all specimens. Numbers among the data are
    averaged; words are kept where they are the same in all specimens of a species.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    species : sequence of n
        The species of every specimen.
    data : mapping of str to sequence of n, optional
        What is known of the specimens, besides what their files say.
    space, superimpose
        As in `procrustes_anova`.

    Returns
    -------
    Sample
        One shape per species, named by it, in order of first appearance.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(6, 5, 2))
    >>> average_species(x, list("aabbcc")).shapes.names
    ('a', 'b', 'c')
    """
    sample = build_sample(x, space=space, superimpose=superimpose)
    names, codes = encode_groups(species, sample.shapes.n_shapes, "species")
    members = [np.flatnonzero(codes == k) for k in range(len(names))]
    columns = _average_columns(collect_columns(sample.shapes, data), members)
    shapes = Shapes.specimens(
        np.stack([sample.tangents[rows].mean(axis=0) for rows in members]),
        names=names,
        landmarks=sample.shapes.landmarks,
        faces=sample.shapes.faces,
        metadata={"links": sample.shapes.links, "variables": columns},
    )
    sizes = np.array([sample.sizes[rows].mean() for rows in members])
    return Sample(shapes, sizes, replace(sample.provenance, n_species=len(names)))


def _average_columns(columns: Columns, members: Sequence[Index]) -> tuple[dict[str, str], ...]:
    """Return the cells of every species: means of numbers, and words that its specimens share."""
    cells: list[dict[str, str]] = [{} for _ in members]
    for head, values in columns.items():
        column = np.asarray(values, dtype=object)
        averages = [_average(column[rows]) for rows in members]
        if None not in averages:
            for cell, average in zip(cells, averages, strict=True):
                cell[head] = str(average)
    return tuple(cells)


def _average(values: RawArray) -> str | float | None:
    try:
        return float(np.mean(values.astype(np.float64)))
    except (TypeError, ValueError):
        words = set(map(str, values))
        return words.pop() if len(words) == 1 else None


def match_tree(
    x: Analysed,
    tree: TreeLike,
    species: Sequence[object] | None = None,
    *,
    prune: bool = False,
    space: str = "superimposed",
    superimpose: bool = True,
) -> tuple[Sample, Phylogeny]:
    """Match specimens or species with the tips of a tree, by name.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        One specimen per tip, named as the tip; or several per species.
    tree : Phylogeny, path or Newick text
        With branch lengths; see `read_tree`.
    species : sequence of n, optional
        The species of every specimen, where mean shapes belong to the tips.
    prune : bool
        Whether tips without a specimen, and specimens without a tip, are left out; otherwise
        either is an error.
    space, superimpose
        As in `procrustes_anova`.

    Returns
    -------
    sample : Sample
        One shape per tip.
    tree : Phylogeny
        Its tips in the order of the sample, and spelt as there: Newick has underscores for blanks.
    """
    phylogeny = tree if isinstance(tree, Phylogeny) else read_tree(tree)
    sample = build_sample(x, space=space, superimpose=superimpose)
    if species is None:
        phylogeny = _spell_tips(phylogeny, sample.shapes.names)
        members = match_names(sample.shapes.names, phylogeny, prune)
        if len(members) < sample.shapes.n_shapes:
            sample = sample.take(members)
        return sample, phylogeny.take(sample.shapes.names)
    names, codes = encode_groups(species, sample.shapes.n_shapes, "species")
    phylogeny = _spell_tips(phylogeny, names)
    is_kept = np.isin(codes, match_names(names, phylogeny, prune))
    if not is_kept.all():
        sample = sample.take(np.flatnonzero(is_kept))
    sample = average_species(sample, [names[code] for code in codes[is_kept]])
    return sample, phylogeny.take(sample.shapes.names)


def _spell_tips(tree: Phylogeny, names: Sequence[str]) -> Phylogeny:
    """Spell tips as the names that differ from them in blanks and underscores only."""
    spelling: dict[str, str | None] = {}
    for name in names:
        plain = name.replace("_", " ")
        spelling[plain] = None if plain in spelling else name  # two names are not to be told apart
    tips = [
        tip if tip in names else spelling.get(tip.replace("_", " ")) or tip for tip in tree.tips
    ]
    return replace(tree, tips=tuple(tips)) if len(set(tips)) == len(tips) else tree


def match_names(names: Sequence[str], tree: Phylogeny, prune: bool) -> list[int]:
    """Return the numbers of the names that are tips of the tree; all of them, unless pruned."""
    tips = set(tree.tips)
    numbers = [k for k, name in enumerate(names) if name in tips]
    absent = [name for name in names if name not in tips]
    extra = [tip for tip in tree.tips if tip not in set(names)]
    if prune and not numbers:
        raise ShapeError(
            f"The tree and the specimens have no name in common: its tips are "
            f"{format_names(tree.tips)}, they are {format_names(names)}."
        )
    if absent and not prune:
        raise ShapeError(
            f"The tree has no tip called {format_names(absent)}; its tips "
            f"{'without a specimen ' if extra else ''}are {format_names(extra or tree.tips)}. Give "
            "the species of the specimens, correct the names, or prune."
        )
    if extra and not prune:
        raise ShapeError(
            f"There is no specimen called {format_names(extra)}, as tips of the tree are. Prune "
            "it, or correct the names."
        )
    if len(numbers) < 4:
        raise ShapeError(f"Only {len(numbers)} tips of the tree have a specimen; 4 are the least.")
    return numbers
