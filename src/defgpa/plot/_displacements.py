"""How one shape differs from the reference: an arrow at every landmark."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from defgpa.alignment import Alignment
from defgpa.plot import _style as style
from defgpa.procrustes import rigid


def displacements(
    alignment: Alignment,
    shape: int | str,
    ax: Axes | None = None,
    *,
    magnify: float = 1.0,
    unit: str | None = None,
) -> style.Artists:
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
    Artists
        ``arrows``, and the landmarks of the ``reference`` they start from.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> displacements(a, "apis_02", Figure().subplots(), magnify=5).arrows.N
    43
    """
    i, dim = alignment.shapes.index(shape), alignment.shapes.dim
    axes = style.axes_for(ax, dim)
    reference, own = alignment.reference, alignment.shapes[i]
    vectors = magnify * (rigid(own, reference)(own) - reference)
    seen = np.flatnonzero(~np.isnan(vectors[:, 0]))
    drawn = seen[style.thinned(len(seen), style.MOST_ARROWS)]
    times = "" if magnify == 1.0 else f", {magnify:g} × as long"
    label = style.shortened(alignment.shapes.names[i]) + times
    label = style.thinned_label(label, len(seen), len(drawn))
    look: dict[str, Any] = {"width": 0.003, "zorder": 2}
    if dim == 3:
        look = {"linewidth": 0.8, "arrow_length_ratio": 0.25}
    tails, colour = reference[drawn], style.OBSERVED
    arrows = style.arrows(axes, tails, vectors[drawn], colour, label=label, **look)
    size = 0.7 * style.marker_size(len(reference))
    marks = style.dots(
        axes, reference, "reference", "o", style.REFERENCE, markersize=size, markeredgewidth=0
    )
    style.legend(axes, [style.sign(">", colour, label, markersize=5), marks])
    style.as_map(axes, dim, unit)
    return style.Artists(arrows=arrows, reference=marks)
