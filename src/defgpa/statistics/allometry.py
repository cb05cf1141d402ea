"""How shape changes with size.

The regression of tangent coordinates on log centroid size has one vector b. The regression score of
a shape is its position along it, (x − mean)·b / ‖b‖, and b predicts the shape of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Progress
from defgpa.errors import DefgpaError, ShapeError
from defgpa.statistics.anova import procrustes_anova
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample
from defgpa.statistics.shape_model import ProcrustesAnova
from defgpa.statistics.table import Rows, Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Allometry(Rows):
    """Shape regressed on log size.

    Attributes
    ----------
    anova : ProcrustesAnova
        The model ``shape ~ log(size)`` with its table.
    names : tuple of n str
        The shapes.
    sizes : array (n,)
        The sizes it was made with.
    scores : array (n,)
        Regression score of every shape.
    vector : array (m, d)
        b, the change of shape per unit of log size.
    """

    _columns = ("name", "size", "score")
    _attributes = ("names", "sizes", "scores")

    anova: ProcrustesAnova
    names: tuple[str, ...]
    sizes: Array
    scores: Array
    vector: Array

    def __str__(self) -> str:
        return str(self.anova)

    @property
    def provenance(self) -> Provenance:
        """Which coordinates were analysed."""
        return self.anova.provenance

    def predict(self, sizes: ArrayLike) -> Array:
        """Predict the shapes (k, m, d) of these sizes."""
        chosen = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
        _require_positive(chosen)
        steps = np.log(chosen) - np.log(self.sizes).mean()
        return self.anova.tangents.mean(axis=0) + steps[:, None, None] * self.vector

    def predict_scores(self, sizes: ArrayLike) -> Array:
        """Predict the regression scores (k,) of these sizes: the line through the scores."""
        centred = self.predict(sizes) - self.anova.tangents.mean(axis=0)
        return np.asarray(np.tensordot(centred, self.vector, axes=2) / np.linalg.norm(self.vector))

    def further_tables(self) -> dict[str, Table]:
        """Return the analysis of variance, as a table by name."""
        return {"anova": (self.anova.table.columns, self.anova.table.to_rows())}

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame: name, size and score of every shape."""
        return super().to_pandas().set_index("name").rename_axis(None)


def allometry(
    x: Analysed,
    sizes: Sequence[float] | Array | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    space: str = "superimposed",
    superimpose: bool = True,
    n_imputations: int = 0,
    progress: Progress | None = None,
) -> Allometry:
    """Regress shape on log size.

    Parameters
    ----------
    x : Alignment, Shapes or array (n, m, d)
        As in `procrustes_anova`.
    sizes : array (n,), optional
        Positive; centroid sizes by default.
    n_permutations, seed, space, superimpose, n_imputations, progress
        As in `procrustes_anova`.

    Returns
    -------
    Allometry
        Shape regressed on log size.

    Examples
    --------
    >>> import numpy as np
    >>> size = np.linspace(1.0, 3.0, 9)
    >>> square = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]])
    >>> longer = 1 + 0.1 * np.log(size)[:, None, None] * [[1, 0]]
    >>> found = allometry(size[:, None, None] * longer * square)
    >>> bool(found.anova["log(size)"].r_squared > 0.999), found.predict([1.0, 5.0]).shape
    (True, (2, 4, 2))
    """
    sample = build_sample(x, space=space, superimpose=superimpose)
    n = sample.shapes.n_shapes
    size = sample.sizes if sizes is None else np.asarray(sizes, dtype=np.float64)
    if size.shape != (n,):
        raise ShapeError(f"There must be one size per shape, {n}; got {size.shape}.")
    _require_positive(size)
    if np.ptp(size) <= 1e-12 * size.max():
        raise ShapeError("All shapes have the same size: there is no allometry to see.")
    anova = procrustes_anova(
        "shape ~ log(size)",
        sample,
        {"size": size},
        n_permutations,
        seed,
        n_imputations=n_imputations,
        progress=progress,
    )
    vector = anova.coefficients[1]
    centred = anova.tangents - anova.tangents.mean(axis=0)
    length = np.linalg.norm(vector)
    if not length > 0:
        raise ShapeError("All shapes are the same: there is no allometry to see.")
    scores = np.tensordot(centred, vector, axes=2) / length
    return Allometry(anova, sample.shapes.names, size, np.asarray(scores), vector)


def _require_positive(sizes: Array) -> None:
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        raise DefgpaError(
            f"Sizes must be positive numbers; got {sizes[~(sizes > 0)][:1].tolist()}."
        )
