"""The shapes as they came, and as they are aligned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.errors import ShapeError
from defgpa.plot import _style as style

_MANY: Colormap = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.88, 256)))  # no pale end
_FEW: Colormap = ListedColormap(
    [style.BLUE, style.VERMILLION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY, style.BLACK]
)


def before_and_after(
    alignment: Alignment, axes: Sequence[Axes] | None = None, *, unit: str | None = None
) -> style.Artists:
    """Two plots: the shapes as they came, and warped onto each other.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    axes : two Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``before`` and ``after``: one cloud each, in which every shape keeps its colour.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> artists = before_and_after(a, Figure().subplots(1, 2))
    >>> len(artists.before.get_offsets()), len(artists.after.get_offsets())
    (1014, 1014)
    """
    dim = alignment.shapes.dim
    left, right = _two(axes, dim)
    clouds = []
    for ax, points, title in (
        (left, alignment.shapes.points, "before"),
        (right, alignment.aligned, "after"),
    ):
        clouds.append(_cloud(ax, points))
        ax.set_title(title, fontsize="medium")
        style.as_map(ax, dim, unit)
    return style.Artists(before=clouds[0], after=clouds[1])


def _two(axes: Sequence[Axes] | None, dim: int) -> tuple[Any, Any]:
    if axes is None:
        from matplotlib import pyplot

        how = {"projection": "3d"} if dim == 3 else {}
        _, pair = pyplot.subplots(1, 2, figsize=(10, 4.8), subplot_kw=how, layout="constrained")
    else:
        pair = np.ravel(np.asarray(axes, dtype=object))
    if len(pair) != 2:
        raise ShapeError(f"Before and after need two axes; got {len(pair)}.")
    return style.axes_for(pair[0], dim), style.axes_for(pair[1], dim)


def _cloud(ax: Any, points: Array) -> Any:
    """All landmarks of all shapes, coloured by shape."""
    n, m, d = points.shape
    shape = np.repeat(np.arange(n), m)
    flat = points.reshape(-1, d)
    drawn = np.flatnonzero(~np.isnan(flat[:, 0]))
    # shuffled, so that no shape lies over all the others; the same every time
    drawn = np.random.default_rng(0).permutation(drawn[style.thinned(len(drawn))])
    few = n <= _FEW.N
    depth = {"depthshade": False} if d == 3 else {}
    return ax.scatter(
        *flat[drawn].T,
        c=shape[drawn],
        cmap=_FEW if few else _MANY,
        vmin=-0.5 if few else 0,
        vmax=_FEW.N - 0.5 if few else n - 1,
        s=(0.6 * style.marker_size(m)) ** 2,
        alpha=max(0.35, style.opacity(n)),
        linewidths=0,
        rasterized=len(drawn) > style.RASTER_FROM,
        **depth,
    )
