"""Shape space: where the specimens lie, what the ends of components look like, who is odd."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.errors import DefgpaError, ShapeError
from defgpa.palette import assign_looks
from defgpa.plot import _style as style
from defgpa.plot._views import choose_magnification, choose_view, draw_change, find_limits
from defgpa.shapes import Shapes
from defgpa.statistics import Outliers, ShapePCA

_ENDS = ((0, 0), (0, 1), (1, 0), (1, 1))  # which of the two components, its low or high end


def components(
    pca: ShapePCA | Alignment,
    ax: Axes | None = None,
    *,
    groups: Sequence[Hashable] | None = None,
    which: tuple[int, int] = (1, 2),
    outline: str = "hull",
    magnify: float | None = None,
    links: Iterable[tuple[int, int]] | None = None,
    shapes: Shapes | None = None,
) -> style.Artists:
    """Draw the scores of two components, with the shapes at the ends of each.

    The ends are the observed ones, their difference from the mean magnified. 2-D shapes are drawn
    as grids, bent from the mean to the end; meshes as surfaces, darker where they change; other
    3-D shapes as lines from the mean. 3-D shapes are seen from where the change shows best.

    Parameters
    ----------
    pca : ShapePCA or Alignment
        Fitted components; those of an alignment are computed, and its groups, links and triangles
        are used.
    ax : Axes, optional
        Where to draw; a new figure by default. The ends stand below and to the right of it.
    groups : sequence of n, optional
        One value a shape: a colour and a marker each, the same in all plots, and an outline.
    which : pair of int
        The components, counted from 1.
    outline : {"hull", "ellipse"}
        Around each group: its convex hull, or 95 % of a normal distribution.
    magnify : float, optional
        By how much the change at the ends is magnified; by default so that it can be seen.
    links : iterable of (int, int), optional
        Landmarks joined by a line in the shapes at the ends; by default those of ``shapes``.
    shapes : Shapes, optional
        The specimens of the analysis, for their links and triangles; a specimen of which a third
        of the landmarks or more is missing is drawn hollow.

    Returns
    -------
    Artists
        ``dots`` and ``outlines`` of the groups, ``ends``: the axes with the shapes there,
        ``magnify``: by how much the change is magnified in them.

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
    if isinstance(pca, Alignment):
        shapes = pca.shapes if shapes is None else shapes
        groups = shapes.metadata.get("groups") if groups is None else groups
        pca = ShapePCA().fit(pca)
    scores = _select_scores(pca, which)
    hollow = None
    if shapes is not None:
        hollow = 1.0 - shapes.visible.mean(axis=1) >= style.LARGELY_ESTIMATED
    axes = _make_axes() if ax is None else ax
    dots = style.draw_groups(axes, scores, groups, hollow=hollow)
    outlines = [] if groups is None else _draw_outlines(axes, scores, groups, outline)
    _label_components(axes, pca, which)
    handles = [] if groups is None else list(dots.values())
    if hollow is not None and hollow.any():
        words = f"hollow: {style.LARGELY_ESTIMATED:.0%} or more estimated"
        face = {"markerfacecolor": "white", "linestyle": "none"}
        handles.append(style.make_handle("o", style.GREY, words, **face))
    if handles:
        style.add_legend(axes, handles, ncols=min(4, len(handles)))
    faces = None if shapes is None or shapes.n_dims == 2 else shapes.faces
    surface = style.choose_surface(pca.mean_, faces)
    joined = list(shapes.links if links is None and shapes is not None else links or ())
    ends, factor = _draw_ends(axes, pca, which, scores, magnify, joined, surface)
    if surface is not None:
        style.add_note(axes, surface.note)
    return style.Artists(
        dots=tuple(dots.values()),
        outlines=tuple(drawn for drawn in outlines if drawn is not None),
        ends=ends,
        magnify=factor,
    )


def _select_scores(pca: ShapePCA, which: tuple[int, int]) -> Array:
    """Return the scores (n, 2) of the two components, or a sentence that they are not there."""
    if not hasattr(pca, "scores_"):
        raise DefgpaError("The components are not computed yet: call ShapePCA().fit(shapes) first.")
    available = pca.scores_.shape[1]
    if available < 2:
        raise ShapeError(
            f"Two components are drawn, and these {len(pca.scores_)} shapes have "
            f"{available or 'none'}. Give at least 3 shapes that differ, and n_components of at "
            "least 2."
        )
    numbers = list(which)
    if len(numbers) != 2 or not all(k in range(1, available + 1) for k in numbers):
        raise ShapeError(
            f"The 'which' parameter of components must name two components from 1 to {available}. "
            f"Got {which!r} instead."
        )
    return np.asarray(pca.scores_[:, [k - 1 for k in numbers]])


def _make_axes() -> style.AnyAxes:
    """Return new axes in a figure that makes room for the ends beside them."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(8.0, 6.4), layout="constrained")[1]


def _draw_outlines(
    ax: style.AnyAxes, scores: Array, groups: Sequence[Hashable], outline: str
) -> list[Any]:
    labels = style.name_groups(groups, len(scores), "")
    looks = assign_looks(labels)
    return [
        style.draw_outline(ax, scores[[label == name for label in labels]], look.colour, outline)
        for name, look in looks.items()
    ]


def _label_components(ax: style.AnyAxes, pca: ShapePCA, which: tuple[int, int]) -> None:
    names, shares = pca.get_feature_names_out(), 100 * pca.explained_variance_ratio_
    across, up = (f"{names[k - 1]} ({shares[k - 1]:.1f} % of the variance)" for k in which)
    ax.set(xlabel=across, ylabel=up)
    ax.locator_params(nbins=6)
    ax.axhline(0, color=style.MISSING, linewidth=0.8, zorder=0)
    ax.axvline(0, color=style.MISSING, linewidth=0.8, zorder=0)


def _draw_ends(
    ax: style.AnyAxes,
    pca: ShapePCA,
    which: tuple[int, int],
    scores: Array,
    magnify: float | None,
    links: Sequence[tuple[int, int]],
    surface: style.Surface | None,
) -> tuple[tuple[Any, ...], float]:
    """Draw the shapes at both ends of two components around the axes, all to one scale."""
    extremes = np.array([scores.min(axis=0), scores.max(axis=0)])  # (end, component)
    directions = pca.components_[[k - 1 for k in which]]
    changes = np.array([extremes[high, side] * directions[side] for side, high in _ENDS])
    view = choose_view(pca.mean_, changes)
    lengths = np.linalg.norm(view(changes), axis=2)
    factor = max(1.0, choose_magnification(lengths, view(pca.mean_), None))
    factor = factor if magnify is None else magnify
    shapes = pca.mean_ + factor * changes
    limits = find_limits(view, [pca.mean_, *shapes])
    ends = _make_end_axes(ax, limits)
    deviations = np.sqrt(pca.explained_variance_[[k - 1 for k in which]])
    magnified = "" if factor == 1.0 else f", change × {factor:g}"
    for (side, high), shape, end in zip(_ENDS, shapes, ends, strict=True):
        draw_change(end, pca.mean_, shape, view, links, surface)
        end.set(xlim=limits[0], ylim=limits[1])
        deviation = extremes[high, side] / deviations[side]
        end.set_title(f"PC{which[side]} {deviation:+.1f} SD{magnified}", fontsize=8, pad=2)
    return ends, float(factor)


def _make_end_axes(ax: style.AnyAxes, limits: Array) -> tuple[style.AnyAxes, ...]:
    """Divide the place of the axes: two small axes below it, two on its right (low end first).

    They are as high and wide as shapes within the limits need. Axes that were placed by hand have
    nothing to divide; the small ones are put outside of them.
    """
    aspect = float(np.divide(*np.ptp(limits, axis=1)[::-1]))  # of a shape, height over width
    spec = ax.get_subplotspec()
    if spec is None:
        low, high = -0.2 - 0.4 * min(aspect, 1.0), 0.4 * min(aspect, 1.0)
        places = [(0.0, low, 0.48, high), (0.52, low, 0.48, high)]
        places += [(1.04, 0.0, 0.46, 0.45), (1.04, 0.5, 0.46, 0.45)]
        return tuple(ax.inset_axes(place) for place in places)
    figure = ax.figure
    width, height = spec.get_position(figure).size * figure.get_size_inches()
    title = 0.25 / height
    below = np.clip(0.36 * width / height * aspect + title, 0.12, 0.36)
    beside = np.clip(0.36 * height / width / aspect, 0.16, 0.34)
    heights = (1 - below - 0.04, 0.04, below)  # a gap for the titles of the ends below
    parts = spec.subgridspec(3, 2, width_ratios=(1 - beside, beside), height_ratios=heights)
    ax.set_subplotspec(parts[0, 0])
    row, column = parts[2, 0].subgridspec(1, 2), parts[0, 1].subgridspec(2, 1)
    cells = (row[0], row[1], column[1], column[0])
    return tuple(figure.add_subplot(cell) for cell in cells)


def scree(pca: ShapePCA, ax: Axes | None = None, *, max_components: int = 12) -> style.Artists:
    """Draw the shares of the variance, component by component, and their cumulative sum.

    Returns
    -------
    Artists
        ``bars`` of the shares and the line of their ``total``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> pca = ShapePCA().fit(defgpa.datasets.load_wings())
    >>> len(scree(pca, Figure().subplots(), max_components=5).bars)
    5
    """
    axes = style.prepare_axes(ax, 2)
    shares = 100 * pca.explained_variance_ratio_[:max_components]
    numbers = np.arange(1, len(shares) + 1)
    bars = axes.bar(numbers, shares, color=style.SKY, label="share")
    total = axes.plot(
        numbers, np.cumsum(shares), "o-", color=style.BLUE, markersize=4, label="cumulative"
    )[0]
    axes.set(xticks=numbers, ylim=(0, 105), xlabel="principal component", ylabel="variance (%)")
    style.add_legend(axes)
    return style.Artists(bars=bars, total=total)


def outliers(ranking: Outliers, ax: Axes | None = None) -> style.Artists:
    """Draw the Procrustes distances of all specimens from the mean, the largest first.

    Parameters
    ----------
    ranking : Outliers
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
    >>> artists = outliers(defgpa.statistics.outliers(a), Figure().subplots())
    >>> len(artists.usual.get_xdata()) + len(artists.odd.get_xdata())
    24
    """
    axes = style.prepare_axes(ax, 2)
    order = ranking.ranked
    numbers, odd = np.arange(1, len(order) + 1), ranking.flagged[order]
    places = np.column_stack([numbers, ranking.distances[order]])
    look = {"markersize": style.choose_marker_size(len(order)), "clip_on": False}
    usual = style.draw_dots(axes, places[~odd], "usual", "o", style.OBSERVED, **look)
    beyond = style.draw_dots(axes, places[odd], "outlier", "X", style.VERMILLION, **look)
    grouped = len(set(ranking.groups)) > 1
    rule = "1.5 × IQR above the upper quartile"
    fence = axes.plot(
        numbers,
        ranking.fences[order],
        marker="_" if grouped else None,
        linestyle="none" if grouped else "--",
        color=style.GREY,
        label=f"{rule} of its group" if grouped else rule,
        zorder=1,
    )[0]
    axes.set_ylim(0, 1.06 * float(ranking.distances.max()))
    axes.set(xlabel="specimens, the farthest first", ylabel="Procrustes distance from the mean")
    named = np.flatnonzero(odd)[:12]
    texts = [style.shorten(ranking.names[order[k]]) for k in named]
    names = tuple(style.label_points(axes, places[named], texts))
    style.add_legend(axes)
    return style.Artists(usual=usual, odd=beyond, fence=fence, names=names)
