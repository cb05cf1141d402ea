"""The reference as a generative model: one shape as observed and as generated (Figure 7)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from defgpa.alignment import Alignment
from defgpa.plot import _style as style


def generated(
    alignment: Alignment,
    shape: int | str | None = None,
    ax: Axes | None = None,
    *,
    unit: str | None = None,
) -> style.Artists:
    """A datum shape beside the one that the reference generates through the inverse warp.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    shape : int or str, optional
        Which shape, by number or name; by default the one that is generated worst.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``observed`` landmarks, ``generated`` ones, and the lines between them, ``errors``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> generated(a, ax=Figure().subplots()).generated.get_xydata().shape
    (43, 2)
    """
    errors = np.sqrt(np.nanmean(alignment.datum_residuals**2, axis=1))
    i = int(np.argmax(errors)) if shape is None else alignment.shapes.index(shape)
    dim = alignment.shapes.dim
    axes = style.axes_for(ax, dim)
    seen = alignment.shapes.visible[i]
    observed = alignment.shapes[i][seen]
    made = np.asarray(alignment.warps[i].inverse()(alignment.reference[seen]))
    lines = style.segments(axes, observed, made, colors=style.GREY, linewidths=0.9, zorder=1)
    size = style.marker_size(len(observed))
    ring = {"fillstyle": "none", "markersize": 1.2 * size, "markeredgewidth": 0.2 * size}
    words = f"{style.shortened(alignment.shapes.names[i])}, observed"
    rings = style.dots(axes, observed, words, "o", style.OBSERVED, **ring)
    cross = {"markersize": 1.3 * size, "markeredgewidth": 0.2 * size}
    words = f"generated, RMSE {style.figure(errors[i], unit)}"
    crosses = style.dots(axes, made, words, "+", style.REFERENCE, **cross)
    style.legend(axes)
    style.as_map(axes, dim, unit)
    return style.Artists(observed=rings, generated=crosses, errors=lines)
