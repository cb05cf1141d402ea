"""Shape space: where the specimens lie, what the ends of components look like, who is odd."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.spatial import ConvexHull, QhullError

from defgpa._arrays import Array
from defgpa.errors import ShapeError
from defgpa.plot import _style as style
from defgpa.plot._grid import deformation_grid
from defgpa.statistics import Outliers, ShapePCA
from defgpa.warps import interpolating_spline

_COLOURS = (
    *(style.BLUE, style.VERMILLION, style.GREEN, style.PURPLE),
    *(style.ORANGE, style.SKY, style.BLACK, style.GREY),
)
_MARKERS = "osD^vP*X"
_INSETS = {  # left and right end of the first component below, those of the second on the right
    (0, 0): (0.0, -0.62, 0.46, 0.4),
    (0, 1): (0.54, -0.62, 0.46, 0.4),
    (1, 0): (1.04, 0.0, 0.46, 0.4),
    (1, 1): (1.04, 0.58, 0.46, 0.4),
}


def components(
    pca: ShapePCA,
    ax: Axes | None = None,
    *,
    groups: Sequence[Any] | None = None,
    which: tuple[int, int] = (1, 2),
    outline: str = "hull",
    links: Iterable[tuple[int, int]] = (),
) -> style.Artists:
    """Scores of two components, with the shapes at the ends of each.

    The ends are the observed ones. In 2-D they are drawn as grids, warped from the mean to the
    end; in 3-D as lollipops, the mean the head.

    Parameters
    ----------
    pca : ShapePCA
        Fitted.
    ax : Axes, optional
        Where to draw; a new figure by default. The ends stand below and to the right of it.
    groups : sequence of n, optional
        One value a shape: a colour and a marker each, and an outline.
    which : pair of int
        The components, counted from 1.
    outline : {"hull", "ellipse"}
        Around each group: its convex hull, or 95 % of a normal distribution.
    links : iterable of (int, int)
        Landmarks joined by a line, in the shapes at the ends.

    Returns
    -------
    Artists
        ``dots`` and ``outlines`` of the groups, ``ends``: the axes with the shapes there.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> wings = defgpa.datasets.load_wings()
    >>> pca, groups = ShapePCA().fit(wings), wings.metadata["groups"]
    >>> artists = components(pca, Figure().subplots(), groups=groups)
    >>> len(artists.dots), len(artists.ends)
    (2, 4)
    """
    if outline not in ("hull", "ellipse"):
        raise ValueError(f"The 'outline' must be 'hull' or 'ellipse'. Got {outline!r} instead.")
    axes = _roomy() if ax is None else ax
    scores = pca.scores_[:, [k - 1 for k in which]]
    n = len(scores)
    owners = ["specimens"] * n if groups is None else list(groups)
    if len(owners) != n:
        raise ShapeError(f"There must be one group a shape, {n} in all; got {len(owners)}.")
    dots, outlines = [], []
    for k, group in enumerate(dict.fromkeys(owners)):
        own = scores[[owner == group for owner in owners]]
        colour, marker = _COLOURS[k % len(_COLOURS)], _MARKERS[k % len(_MARKERS)]
        look = {"markersize": 0.9 * style.marker_size(len(scores)), "markeredgewidth": 0}
        dots.append(style.dots(axes, own, str(group), marker, colour, alpha=0.85, **look))
        if groups is not None:
            outlines.append(_outlined(axes, own, colour, outline))
    _name_axes(axes, pca, which)
    pairs = list(links)  # an iterator would be over after the first end
    ends = tuple(
        _end(axes, pca, which[side], scores[:, side], high, place, pairs)
        for (side, high), place in _INSETS.items()
    )
    if groups is not None:
        style.legend(axes, list(dots), ncols=min(4, len(dots)))
    return style.Artists(
        dots=tuple(dots), outlines=tuple(o for o in outlines if o is not None), ends=ends
    )


def scree(pca: ShapePCA, ax: Axes | None = None, *, most: int = 12) -> style.Artists:
    """Shares of the variance, component by component, and their sum.

    Returns
    -------
    Artists
        ``bars`` of the shares and the line of their ``total``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> pca = ShapePCA().fit(defgpa.datasets.load_wings())
    >>> len(scree(pca, Figure().subplots(), most=5).bars)
    5
    """
    axes = style.axes_for(ax, 2)
    shares = 100 * pca.explained_variance_ratio_[:most]
    numbers = np.arange(1, len(shares) + 1)
    bars = axes.bar(numbers, shares, color=style.SKY, label="share")
    total = axes.plot(
        numbers, np.cumsum(shares), "o-", color=style.BLUE, markersize=4, label="sum so far"
    )[0]
    axes.set(xticks=numbers, ylim=(0, 105), xlabel="principal component", ylabel="variance (%)")
    style.legend(axes)
    return style.Artists(bars=bars, total=total)


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
    numbers, odd = np.arange(1, len(order) + 1), found.flagged[order]
    places = np.column_stack([numbers, found.distances[order]])
    look = {"markersize": style.marker_size(len(order)), "clip_on": False}
    usual = style.dots(axes, places[~odd], "within the fence", "o", style.OBSERVED, **look)
    beyond = style.dots(axes, places[odd], "beyond it", "X", style.VERMILLION, **look)
    grouped = len(set(found.groups)) > 1
    fence = axes.plot(
        numbers,
        found.fences[order],
        marker="_" if grouped else None,
        linestyle="none" if grouped else "--",
        color=style.GREY,
        label="fence of its group" if grouped else "fence, Q3 + 1.5 IQR",
        zorder=1,
    )[0]
    short = [style.shortened(found.names[i]) for i in order]
    names = tuple(
        style.beside(axes, short[k], places[k], (7, 0), 8, va="center")
        for k in np.flatnonzero(odd)[:12]
    )
    axes.set_ylim(0, None)
    axes.set(xlabel="specimens, the farthest first", ylabel="Procrustes distance from the mean")
    style.legend(axes, ncols=3)
    return style.Artists(usual=usual, odd=beyond, fence=fence, names=names)


def _roomy() -> Any:
    """New axes with room for the ends below and on the right."""
    from matplotlib import pyplot

    return pyplot.figure(figsize=(8.0, 7.0)).add_axes((0.13, 0.37, 0.56, 0.54))


def _outlined(ax: Any, own: Array, colour: str, outline: str) -> Any:
    """A closed line around the dots of a group; None where they are too few."""
    if len(own) < 3:
        return None
    # an ellipse of √5.991 standard deviations holds 95 % of a normal distribution in the plane
    corners = _hull(own) if outline == "hull" else style.ellipses(own, np.sqrt(5.991), 100)[0]
    return ax.fill(*corners.T, facecolor=colour, edgecolor=colour, alpha=0.12, linewidth=1)[0]


def _hull(own: Array) -> Array:
    try:
        return np.asarray(own[ConvexHull(own).vertices])
    except QhullError:  # all on a line
        return own


def _name_axes(ax: Any, pca: ShapePCA, which: tuple[int, int]) -> None:
    names, shares = pca.get_feature_names_out(), 100 * pca.explained_variance_ratio_
    across, up = (f"{names[k - 1]} ({shares[k - 1]:.1f} %)" for k in which)
    ax.set(xlabel=across, ylabel=up)
    ax.locator_params(nbins=5)
    ax.axhline(0, color=style.UNSEEN, linewidth=0.8, zorder=0)
    ax.axvline(0, color=style.UNSEEN, linewidth=0.8, zorder=0)


def _end(
    ax: Any,
    pca: ShapePCA,
    number: int,
    scores: Array,
    high: int,
    place: tuple[float, float, float, float],
    links: Sequence[tuple[int, int]],
) -> Any:
    """The shape at one end of a component, in a small frame of its own."""
    score = float(scores.max() if high else scores.min())
    shape = pca.mean_ + score * pca.components_[number - 1]
    dim = shape.shape[1]
    inset = ax.inset_axes(place, **({"projection": "3d"} if dim == 3 else {}))
    if dim == 2:
        knots = style.thinned(len(shape), 300)
        warp = interpolating_spline(pca.mean_[knots], shape[knots])
        deformation_grid(warp, pca.mean_, inset, cells=10)
        inset.set_axis_off()
    else:
        shape = _lollipops(inset, pca.mean_, shape)
    style.wireframe(inset, shape, links, colors=style.OBSERVED, linewidths=1)
    deviations = score / np.sqrt(pca.explained_variance_[number - 1])
    inset.set_title(f"PC{number} {deviations:+.1f} SD", fontsize=8, pad=2)
    return inset


def _lollipops(ax: Any, mean: Array, shape: Array) -> Array:
    """From the mean, a dot, to the end of a line, seen along the shortest axis of the mean.

    The shape turned to the principal axes of the mean is given back.
    """
    axes = np.linalg.svd(mean - mean.mean(axis=0), full_matrices=False)[2].T
    axes[:, 2] *= np.linalg.det(axes)  # turned, not mirrored
    chosen = style.thinned(len(mean), style.MOST_ARROWS)
    start, end = (mean @ axes)[chosen], (shape @ axes)[chosen]
    size = 0.35 * style.marker_size(len(chosen))
    style.dots(ax, start, "mean", "o", style.GREY, markersize=size, markeredgewidth=0)
    style.segments(ax, start, end, colors=style.OBSERVED, linewidths=1.2)
    lengths = np.ptp(np.concatenate([start, end]), axis=0)
    ax.set_box_aspect(np.maximum(lengths, 0.05 * lengths.max()), zoom=1.7)
    ax.view_init(elev=90, azim=-90)
    ax.set_axis_off()
    return np.asarray(shape @ axes)
