"""Symmetry: variation between individuals, directional and fluctuating asymmetry.

Object symmetry: one configuration has both sides. It is mirrored, the landmarks of its pairs change
places, and all configurations are aligned with all mirror images. Matching symmetry: the sides are
configurations of their own, those of one side mirrored. Either way every individual has two sides
a, b in one tangent space, and

    Sym = (a + b) / 2,    Asym = (a − b) / 2.

The mean of Asym is directional asymmetry, what is left of it fluctuating asymmetry. In the two-way
table individuals and sides are measured against their interaction, that against the replicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from defgpa.arrays import Array, Progress
from defgpa.dataframes import import_pandas
from defgpa.errors import DefgpaError, ShapeError, format_names
from defgpa.io.text.table import format_csv
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.mirror_pairs import MirrorPairs, exchange_pairs, find_pairs, parse_pairs
from defgpa.statistics.permutation import Permutations
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, Sample, build_sample
from defgpa.statistics.table import EffectRows, EffectTable, Row, Table
from defgpa.statistics.two_sides import (
    decompose,
    make_flip,
    mirror_second_side,
    require_once,
)
from defgpa.tangent_space import project_complete_shapes

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("individual", "asymmetry", "signed", "fluctuating")


@dataclass(frozen=True, eq=False, repr=False)
class Symmetry(EffectRows):
    """Symmetric and asymmetric parts of shape; prints its two-way table.

    Attributes
    ----------
    kind : {"object", "matching"}
        Whether a configuration has both sides, or is one.
    table : EffectTable
        Individual, side (directional asymmetry), individual × side (fluctuating asymmetry), and
        replicates as residuals. For object symmetry a shape counts once, not with its image.
    individuals : tuple of k str
        Their names.
    symmetric : array (k, m, d)
        Sym of every individual.
    asymmetric : array (k, m, d)
        Asym of every individual: first side minus Sym.
    pairs : tuple of (int, int)
        Paired landmarks, for object symmetry.
    mirror_pairs : MirrorPairs or None
        The pairs with their plane and error, where they were found and not given.
    mirrored_side : str or None
        The side that was mirrored, for matching symmetry.
    provenance : Provenance
        Which coordinates were analysed.
    n_permutations : int
        Behind P.
    size_table : EffectTable or None
        The same two-way table of log centroid size, for matching symmetry.
    """

    kind: str
    table: EffectTable
    individuals: tuple[str, ...]
    symmetric: Array
    asymmetric: Array
    pairs: tuple[tuple[int, int], ...]
    mirror_pairs: MirrorPairs | None
    mirrored_side: str | None
    provenance: Provenance
    n_permutations: int
    size_table: EffectTable | None = None

    def __str__(self) -> str:
        head = f"{self.kind.capitalize()} symmetry, {len(self.individuals)} individuals"
        da, fa = self.directional_index, self.fluctuating_index
        indices = f"Directional asymmetry {da:.5g}, fluctuating {fa:.5g} (RMS of individuals)"
        chance = f"{self.n_permutations} permutations; for side, individuals turned around"
        text = f"{head}\n{self.provenance}\n{chance}\n\n{self.table}\n\n{indices}"
        if self.size_table is None:
            return text
        return f"{text}\n\nAsymmetry of size (log centroid size)\n{self.size_table}"

    @property
    def mean(self) -> Array:
        """(m, d): the mean symmetric shape."""
        return np.asarray(self.symmetric.mean(axis=0))

    @property
    def directional(self) -> Array:
        """(m, d): the mean of Asym, how the first side differs from the symmetric mean."""
        return np.asarray(self.asymmetric.mean(axis=0))

    @property
    def fluctuating(self) -> Array:
        """(k, m, d): Asym of every individual without the mean of Asym."""
        return self.asymmetric - self.directional

    @property
    def directional_index(self) -> float:
        """‖mean Asym‖."""
        return float(np.linalg.norm(self.directional))

    @property
    def fluctuating_index(self) -> float:
        """RMS over the individuals of ‖Asym − mean Asym‖."""
        return float(np.sqrt((self.fluctuating**2).sum(axis=(1, 2)).mean()))

    @property
    def index(self) -> Array:
        """(k,): ‖Asym‖, how asymmetric each individual is."""
        return np.asarray(np.linalg.norm(self.asymmetric, axis=(1, 2)))

    @property
    def signed_index(self) -> Array:
        """(k,): Asym along the mean of Asym; 0 for all where that is 0."""
        length = max(self.directional_index, np.finfo(np.float64).tiny)
        return np.asarray(np.tensordot(self.asymmetric, self.directional, axes=2) / length)

    def further_tables(self) -> dict[str, Table]:
        """Return the mean directional and fluctuating asymmetry, as a table by name."""
        figures = (self.directional_index, self.fluctuating_index)
        return {"indices": (("directional", "fluctuating"), [figures])}

    def indices_to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame with the asymmetry of every individual."""
        return import_pandas().DataFrame(self._list_indices(), columns=list(_COLUMNS))

    def indices_to_csv(self) -> str:
        """Return the asymmetry of every individual as comma-separated text."""
        return format_csv(_COLUMNS, self._list_indices())

    def _list_indices(self) -> list[Row]:
        fluctuating = np.linalg.norm(self.fluctuating, axis=(1, 2))
        columns = (self.index.tolist(), self.signed_index.tolist(), fluctuating.tolist())
        return list(zip(self.individuals, *columns, strict=True))


def symmetry(
    shapes: Analysed,
    pairs: Sequence[Sequence[int | str]] | None = None,
    individual: Sequence[object] | None = None,
    side: Sequence[object] | None = None,
    replicate: Sequence[object] | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    space: str = "superimposed",
    progress: Progress | None = None,
) -> Symmetry:
    """Separate symmetric and asymmetric components of shape, as geomorph's ``bilat.symmetry``.

    Parameters
    ----------
    shapes : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    pairs : sequence of pairs, optional
        Landmarks that mirror each other, by number (from 0) or label; all others are on the
        midline. Without pairs and sides, they are found from the mean shape's own mirror plane.
    individual : sequence of n labels, optional
        Individual of each shape; by default every shape is of another one.
    side : sequence of n labels, optional
        Left or right, where every shape is one side (matching symmetry).
    replicate : sequence of n labels, optional
        Number of the measurement; several shapes of one individual and side are replicates anyway.
    n_permutations, seed, space, progress
        As in `procrustes_anova`.

    Returns
    -------
    Symmetry
        Symmetric and asymmetric parts of shape; prints its two-way table.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> moth = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0]])
    >>> result = symmetry(moth + 0.02 * rng.normal(size=(10, 6, 2)))
    >>> result.pairs
    ((2, 3), (4, 5))
    >>> [row.term for row in result.table]
    ['individual', 'side', 'individual:side', 'Total']
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(shapes, space=space)
    if side is None:
        return _analyse_object(sample, pairs, individual, replicate, permutations)
    if pairs is not None:
        raise DefgpaError(
            "Give pairs (each shape has both sides) or sides (each is one), not both."
        )
    if individual is None:
        raise DefgpaError("With sides, 'individual' must say which two sides belong together.")
    return _analyse_matching(sample, individual, side, replicate, permutations)


def _analyse_object(
    sample: Sample,
    pairs: Sequence[Sequence[int | str]] | None,
    individual: Sequence[object] | None,
    replicate: Sequence[object] | None,
    permutations: Permutations,
) -> Symmetry:
    """Analyse shapes that have both sides, with their mirror images."""
    shapes = sample.shapes
    n, m = shapes.n_shapes, shapes.n_landmarks
    names, codes = encode_groups(
        shapes.names if individual is None else individual, n, "individual"
    )
    require_once(names, codes, np.zeros(n, dtype=np.intp), ("",), replicate)
    sample.warn_of_findings()
    mirror = None
    if pairs is None:
        mirror = find_pairs(sample.tangents)
        pairs = mirror.pairs
    chosen = parse_pairs(pairs, shapes.landmarks)
    if not chosen:
        raise ShapeError("There is no pair: without pairs a shape is its own mirror image.")
    mirrored = (shapes.points * make_flip(shapes.n_dims))[:, exchange_pairs(chosen, m)]
    x = project_complete_shapes(np.concatenate([shapes.points, mirrored]))
    sides = np.repeat([0, 1], n)
    table, sym, asym = decompose(x, np.tile(codes, 2), sides, permutations, copies=2)
    return Symmetry(
        *("object", table, names, sym, asym, chosen, mirror, None, sample.provenance),
        permutations.count,
    )


def _analyse_matching(
    sample: Sample,
    individual: Sequence[object],
    side: Sequence[object],
    replicate: Sequence[object] | None,
    permutations: Permutations,
) -> Symmetry:
    """Analyse shapes of one side each, two sides of every individual."""
    shapes = sample.shapes
    n = shapes.n_shapes
    names, codes = encode_groups(individual, n, "individual")
    words, sides = encode_groups(side, n, "side")
    if len(words) != 2:
        raise ShapeError(f"There must be 2 sides; got {len(words)}: {format_names(words)}.")
    require_once(names, codes, sides, words, replicate)
    for k, word in enumerate(words):
        lacking = np.setdiff1d(codes, codes[sides == k])
        if len(lacking):
            culprits = format_names(names[code] for code in lacking)
            raise ShapeError(f"Individual {culprits} has no shape of side {word!r}. Leave it out.")
    points, mirrored = mirror_second_side(shapes, sides)
    table, sym, asym = decompose(
        project_complete_shapes(points), codes, sides, permutations, copies=1
    )
    flipped = words[1] if mirrored else None
    log_sizes = np.log(sample.sizes)[:, None, None]
    by_size, *_ = decompose(log_sizes, codes, sides, permutations, copies=1)
    return Symmetry(
        *("matching", table, names, sym, asym, (), None, flipped, sample.provenance),
        *(permutations.count, by_size),
    )
