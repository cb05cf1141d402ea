"""Smooth variation of an alignment, which its warps follow, and what they leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa.alignment import Alignment
from defgpa.statistics.specimens import fill_from_reference
from defgpa.tangent_space import measure_sizes, project_complete_shapes


@dataclass(frozen=True)
class SumsOfSquares:
    """How much of the variation is smooth, at unit centroid size.

    Attributes
    ----------
    smooth : float
        Σ ‖ĝ_i − mean‖² in the tangent space of the reference projected back.
    residual : float
        Σ ‖D_i − ĝ_i‖² over the visible landmarks, by their relative weights: what the warps do not
        follow.
    """

    smooth: float
    residual: float


def sum_squares(alignment: Alignment) -> SumsOfSquares:
    """Compute the sums of squares of the smooth variation and of the residuals, at unit size."""
    x = project_complete_shapes(alignment.back_projected)
    smooth = float(((x - x.mean(axis=0)) ** 2).sum())
    sizes = measure_sizes(fill_from_reference(alignment))
    squares = (alignment.superimposed - alignment.back_projected) ** 2
    weights = alignment.shapes.unequal_weights
    if weights is not None:
        squares *= weights[..., None]
    return SumsOfSquares(smooth, float((np.nansum(squares, axis=(1, 2)) / sizes**2).sum()))
