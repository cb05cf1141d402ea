"""How one shape differs from the reference: an arrow at every landmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.plot import _style as style
from defgpa.procrustes import rigid


@dataclass(frozen=True, eq=False)
class DisplacementArtists:
    """The arrows and the landmarks of the reference they start from."""

    arrows: Any
    reference: Any


def displacements(
    alignment: Alignment,
    shape: int | str,
    ax: Axes | None = None,
    *,
    magnify: float = 1.0,
    unit: str | None = None,
) -> DisplacementArtists:
    """Arrows from the reference to a shape that was laid onto it rigidly.

    What rigid motion explains is taken out; the arrows are the deformation of the shape.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    shape : int or str
        Which shape, by number or name.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    magnify : float
        Length of the arrows, in true lengths.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    DisplacementArtists

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> shapes = np.random.default_rng(0).normal(size=(1, 30, 2)) * [3, 2]
    >>> shapes = shapes + 0.1 * np.sin(2 * shapes + np.arange(5)[:, None, None])
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_
    >>> displacements(a, "shape_3", Figure().subplots(), magnify=5).arrows.N
    30
    """
    i, dim = alignment.shapes.index(shape), alignment.shapes.dim
    axes = style.axes_for(ax, dim)
    reference, own = alignment.reference, alignment.shapes[i]
    vectors = magnify * (rigid(own, reference)(own) - reference)
    seen = np.flatnonzero(~np.isnan(vectors[:, 0]))
    drawn = seen[style.thinned(len(seen), style.MOST_ARROWS)]
    label = style.shortened(alignment.shapes.names[i]) + _times(magnify)
    arrows = _arrows(
        axes,
        reference[drawn],
        vectors[drawn],
        color=style.OBSERVED,
        label=style.thinned_label(label, len(seen), len(drawn)),
    )
    marks = style.dots(
        axes,
        reference,
        "reference",
        marker="o",
        color=style.REFERENCE,
        markersize=0.7 * style.marker_size(len(reference)),
        markeredgewidth=0,
    )
    # the view must hold the heads as well: arrows do not count for the limits
    style.dots(axes, (reference + vectors)[drawn], "_heads", marker="None")
    style.legend(axes, [_arrow_sign(arrows), marks])
    style.as_map(axes, dim, unit)
    return DisplacementArtists(arrows, marks)


def _times(magnify: float) -> str:
    return "" if magnify == 1.0 else f", {magnify:g} × as long"


def _arrow_sign(arrows: Any) -> Line2D:
    """An arrow for the legend."""
    return Line2D([], [], color=style.OBSERVED, marker=">", markersize=5, label=arrows.get_label())


def _arrows(ax: Any, tails: Array, vectors: Array, color: str, label: str) -> Any:
    if tails.shape[1] == 3:
        return ax.quiver(
            *tails.T, *vectors.T, color=color, label=label, linewidth=0.8, arrow_length_ratio=0.25
        )
    return ax.quiver(
        *tails.T,
        *vectors.T,
        color=color,
        label=label,
        angles="xy",
        scale_units="xy",
        scale=1.0,
        width=0.003,
        headwidth=4,
        zorder=2,
    )
