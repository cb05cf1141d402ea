"""Specimens ranked by their distance from the mean, with the fence beyond which they are odd."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from defgpa.plot import _style as style
from defgpa.statistics import Outliers


def ranked_distances(found: Outliers, ax: Axes | None = None) -> style.Artists:
    """Procrustes distances from the mean, the largest first.

    Parameters
    ----------
    found : Outliers
        Of ``defgpa.statistics.outliers``.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``usual`` dots, ``odd`` ones beyond the ``fence``, and ``names`` beside these.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.EuclideanGPA().fit(defgpa.datasets.load_wings()).alignment_
    >>> artists = ranked_distances(defgpa.statistics.outliers(a), Figure().subplots())
    >>> len(artists.usual.get_xdata()) + len(artists.odd.get_xdata())
    24
    """
    axes = style.axes_for(ax, 2)
    order = found.ranked
    places = np.arange(1, len(order) + 1)
    distances, odd = found.distances[order], found.flagged[order]
    look = {"linestyle": "none", "markersize": style.marker_size(len(order)), "clip_on": False}
    usual = axes.plot(
        places[~odd], distances[~odd], "o", color=style.OBSERVED, label="within the fence", **look
    )[0]
    beyond = axes.plot(
        places[odd], distances[odd], "X", color=style.VERMILLION, label="beyond it", **look
    )[0]
    grouped = len(set(found.groups)) > 1
    fence = axes.plot(
        places,
        found.fences[order],
        marker="_" if grouped else None,
        linestyle="none" if grouped else "--",
        color=style.GREY,
        label="fence of its group" if grouped else "fence, Q3 + 1.5 IQR",
        zorder=1,
    )[0]
    short = [style.shortened(found.names[i]) for i in order]
    names = tuple(
        style.beside(axes, short[k], (places[k], distances[k]), (7, 0), 8, va="center")
        for k in np.flatnonzero(odd)[:12]
    )
    axes.set_ylim(0, None)
    axes.set(xlabel="specimens, the farthest first", ylabel="Procrustes distance from the mean")
    style.legend(axes, ncols=3)
    return style.Artists(usual=usual, odd=beyond, fence=fence, names=names)
