"""Table of specimens: size, missing landmarks, errors, bending energy and stretch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.errors import ShapeError
from defgpa.io.text.variables import get_variable_columns
from defgpa.tangent_space import measure_sizes, project_complete_shapes
from defgpa.warps import Warp


def specimens(
    alignment: Alignment, groups: Sequence[object] | None = None
) -> dict[str, Sequence[object]]:
    """Return what ``defgpa fit`` writes to ``specimens.csv``: column → values of the shapes.

    ``id``, ``group`` (given, or as the files said, or empty), ``centroid_size`` (missing
    landmarks from the reference projected back), ``landmarks_visible``, ``rmse_reference`` and
    ``rmse_datum`` (NaN where its landmarks are missing in all others), ``bending_energy`` (tr WᵀRW,
    what the warp was charged; 0 where its family charges nothing), ``stretch`` (largest over
    smallest stretch of the affine map that follows the warp best: 1 for a similarity), ``mirrored``
    and ``procrustes_distance`` (from the mean shape, in the classical tangent space); then the
    columns that the files have besides, such as identifiers, under their own heads.

    Parameters
    ----------
    alignment : Alignment
        Any.
    groups : sequence of n, optional
        One value a shape.

    Returns
    -------
    dict[str, Sequence[object]]

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(12, 2)) + 0.1 * rng.normal(size=(5, 12, 2))
    >>> table = specimens(defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_)
    >>> table["id"][:2], table["landmarks_visible"][:2], table["bending_energy"][:2]
    (['shape_1', 'shape_2'], [12, 12], [0.0, 0.0])
    """
    shapes = alignment.shapes
    filled = fill_from_reference(alignment)
    x = project_complete_shapes(filled)
    table: dict[str, Sequence[object]] = {
        "id": list(shapes.names),
        "group": list(label_groups(alignment, groups) or [""] * len(shapes)),
        "centroid_size": (measure_sizes(filled) / alignment.similarities.scale).tolist(),
        "landmarks_visible": shapes.visible.sum(axis=1).tolist(),
        "rmse_reference": rms_by_shape(alignment.residuals, alignment).tolist(),
        "rmse_datum": rms_by_shape(alignment.datum_residuals, alignment).tolist(),
        "bending_energy": [bending_energy(warp) for warp in alignment.warps],
        "stretch": [
            _measure_stretch(*pair) for pair in zip(shapes, alignment.aligned, strict=True)
        ],
        "mirrored": [name in set(alignment.mirrored) for name in shapes.names],
        "procrustes_distance": np.linalg.norm(x - x.mean(axis=0), axis=(1, 2)).tolist(),
    }
    identifiers = get_variable_columns(shapes).items()
    return table | {head: values for head, values in identifiers if head not in table}


def fill_from_reference(alignment: Alignment) -> Array:
    """Return superimposed shapes (n, m, d) with the reference projected back where missing.

    This needs no statistics of the other specimens, so it works for any alignment and at once.
    """
    visible = alignment.shapes.visible[..., None]
    if visible.all():
        return alignment.superimposed
    return np.where(visible, alignment.superimposed, alignment.back_projected)


def label_groups(alignment: Alignment, groups: Sequence[object] | None) -> Sequence[object] | None:
    """Return one group per shape, as given or as in the files; None where neither has any."""
    labels = alignment.shapes.metadata.get("groups") if groups is None else list(groups)
    if labels is not None and len(labels) != len(alignment.shapes):
        raise ShapeError(
            f"There must be one group a shape, {len(alignment.shapes)} in all; got {len(labels)}."
        )
    return None if labels is None else ["" if label is None else label for label in labels]


def bending_energy(warp: Warp) -> float:
    """Compute the bending energy tr(WᵀRW) of a warp, in squared units of the reference."""
    R, W = np.asarray(warp.basis.penalty()), warp.coefficients
    return float(np.sum(W * (R * W if R.ndim == 0 else R @ W)))


def rms_by_shape(residuals: Array, alignment: Alignment) -> Array:
    """Compute the RMS residual (n,) over the landmarks that count; NaN where a shape has none."""
    counted = alignment.counted
    squares = np.where(counted, residuals, 0.0) ** 2
    with np.errstate(invalid="ignore"):  # 0 / 0
        return np.sqrt(squares.sum(axis=1) / counted.sum(axis=1))


def _measure_stretch(shape: Array, image: Array) -> float:
    """Compute the condition number of A in image ≈ shape A + a."""
    visible = ~np.isnan(shape[:, 0])
    centred = shape[visible] - shape[visible].mean(axis=0)
    matrix, *_ = np.linalg.lstsq(centred, image[visible] - image[visible].mean(axis=0), rcond=None)
    return float(np.linalg.cond(matrix))
