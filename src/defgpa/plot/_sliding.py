"""Where semilandmarks were, and where they slid."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from defgpa.errors import ShapeError
from defgpa.plot import _style as style
from defgpa.semilandmarks import SlidShapes
from defgpa.shapes import Shapes


def sliding(
    before: Shapes,
    after: SlidShapes,
    shape: int | str,
    ax: Axes | None = None,
    *,
    unit: str | None = None,
) -> style.Artists:
    """One shape with its semilandmarks as digitised and as slid.

    Parameters
    ----------
    before : Shapes
        As given to `defgpa.slide`.
    after : SlidShapes
        As it returned them.
    shape : int or str
        Which one, by number or name.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        Points ``before`` and ``after``, the ``ways`` between, and ``fixed`` landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> import defgpa
    >>> turns = np.linspace(0, np.pi, 9) + 0.1 * np.sin(np.arange(36)).reshape(4, 9)
    >>> arcs = np.dstack([np.cos(turns), np.sin(turns), ])
    >>> shapes = defgpa.Shapes(np.concatenate([arcs, np.tile([[[0.0, -1.0]]], (4, 1, 1))], axis=1))
    >>> slid = defgpa.slide(shapes, curves=[range(9)])
    >>> len(sliding(shapes, slid, 0, Figure().subplots()).before.get_xdata())
    7
    """
    if before.points.shape != after.points.shape:
        raise ShapeError("The shapes before and after sliding are not the same ones.")
    i, axes = after.index(shape), style.axes_for(ax, after.dim)
    old, new = before.points[i], after.points[i]
    own = after.sliders[~np.isnan(new[after.sliders, 0])]
    rest = np.setdiff1d(np.flatnonzero(~np.isnan(new[:, 0])), own)
    ways = style.segments(axes, old[own], new[own], color=style.GREY, linewidth=0.9, zorder=1)
    size = style.marker_size(len(new))
    was = style.dots(
        axes, old[own], "as digitised", "o", style.GREY, markerfacecolor="white", markersize=size
    )
    now = style.dots(axes, new[own], "slid", "o", style.OBSERVED, markersize=size)
    fixed = style.dots(axes, new[rest], "fixed", "s", style.REFERENCE, markersize=size)
    style.legend(axes, ncols=3)
    style.as_map(axes, after.dim, unit)
    return style.Artists(before=was, after=now, ways=ways, fixed=fixed)
