"""Shape space: specimens along components, shapes at their ends, outliers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.errors import DefgpaError, ShapeError
from defgpa.palette import assign_looks
from defgpa.plot import _style as style
from defgpa.plot._axis_ends import ShapeAxis, draw_ends
from defgpa.shapes import Shapes
from defgpa.statistics import EigenvalueVariance, Outliers, ShapePCA


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
        words = f"hollow: {100 * style.LARGELY_ESTIMATED:.0f} % or more estimated"
        face = {"markerfacecolor": "white", "linestyle": "none"}
        handles.append(style.make_handle("o", style.GREY, words, **face))
    faces = None if shapes is None or shapes.n_dims == 2 else shapes.faces
    surface = style.choose_surface(pca.mean_, faces)
    joined = list(shapes.links if links is None and shapes is not None else links or ())
    horizontal, vertical = _describe_axes(pca, which, scores)
    ends, factor = draw_ends(axes, horizontal, vertical, joined, surface, magnify)
    if handles:
        style.add_legend(axes, handles, may_grow=ax is None)
    if surface is not None:
        style.add_note(axes, surface.note)
    return style.Artists(
        dots=tuple(dots.values()),
        outlines=tuple(drawn for drawn in outlines if drawn is not None),
        ends=ends,
        magnify=factor,
    )


def _select_scores(pca: ShapePCA, which: tuple[int, int]) -> Array:
    """Return the scores (n, 2) on two components, or raise an error if they do not exist."""
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
) -> list[object]:
    labels = style.name_groups(groups, len(scores), "")
    looks = assign_looks(labels)
    return [
        style.draw_outline(ax, scores[[label == name for label in labels]], look.colour, outline)
        for name, look in looks.items()
    ]


def _label_components(ax: style.AnyAxes, pca: ShapePCA, which: tuple[int, int]) -> None:
    names, shares = pca.get_feature_names_out(), 100 * pca.explained_variance_ratio_
    xlabel, ylabel = (f"{names[k - 1]} ({shares[k - 1]:.1f} % of the variance)" for k in which)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.locator_params(nbins=6)
    ax.axhline(0, color=style.MISSING, linewidth=0.8, zorder=0)
    ax.axvline(0, color=style.MISSING, linewidth=0.8, zorder=0)


def _describe_axes(
    pca: ShapePCA, which: tuple[int, int], scores: Array
) -> tuple[ShapeAxis, ShapeAxis]:
    """Return both components with the shapes at the observed ends of each."""
    axes = []
    for side, k in enumerate(which):
        ends = np.array([scores[:, side].min(), scores[:, side].max()])
        deviations = ends / np.sqrt(pca.explained_variance_[k - 1])
        titles = tuple(f"PC{k} {deviation:+.1f} SD" for deviation in deviations)
        changes = ends[:, None, None] * pca.components_[k - 1]
        axes.append(ShapeAxis(pca.mean_, changes, (titles[0], titles[1])))
    return axes[0], axes[1]


def scree(
    pca: ShapePCA | EigenvalueVariance, ax: Axes | None = None, *, max_components: int = 12
) -> style.Artists:
    """Draw the shares of the variance, component by component, and their cumulative sum.

    Parameters
    ----------
    pca : ShapePCA or EigenvalueVariance
        Fitted to shapes.
    ax : Axes, optional
        Where to draw; a new figure by default.
    max_components : int
        How many components to draw.

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
    ratios = pca.explained_variance_ratio_ if isinstance(pca, ShapePCA) else pca.shares
    shares = 100 * ratios[:max_components]
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
        ``dots`` of the groups, rings around ``odd`` ones beyond the ``limit``, and their ``names``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.EuclideanGPA().fit(defgpa.datasets.load_wings()).alignment_
    >>> artists = outliers(defgpa.statistics.outliers(a), Figure().subplots())
    >>> len(artists.dots[0].get_xdata())
    24
    """
    axes = style.prepare_axes(ax, 2)
    order = ranking.order
    numbers, odd = np.arange(1, len(order) + 1), ranking.flagged[order]
    places = np.column_stack([numbers, ranking.distances[order]])
    grouped = len(set(ranking.groups)) > 1
    groups = [ranking.groups[i] for i in order] if grouped else None
    dots = style.draw_groups(axes, places, groups)
    ring = {"markerfacecolor": "none", "markeredgecolor": "black", "markeredgewidth": 1.5}
    ring["markersize"] = 1.8 * style.choose_marker_size(len(order))
    label = "outlier" if odd.any() else "_outlier"
    rings = axes.plot(*places[odd].T, "o", label=label, **ring)[0]
    rule = "upper quartile + 1.5 IQR"
    limit = axes.plot(
        numbers,
        ranking.limits[order],
        marker="_" if grouped else None,
        linestyle="none" if grouped else "--",
        color=style.GREY,
        label=f"{rule} of its group" if grouped else rule,
        zorder=1,
    )[0]
    farthest = float(max(ranking.distances.max(), ranking.limits.max()))
    axes.set_ylim(0, 1.15 * farthest or 1.0)
    axes.set(xlabel="specimens, the farthest first", ylabel="Procrustes distance from the mean")
    axes.xaxis.get_major_locator().set_params(integer=True)
    named = np.flatnonzero(odd)[:12]
    texts = [style.shorten(ranking.names[order[k]]) for k in named]
    names = tuple(style.label_points(axes, places[named], texts))
    style.add_legend(axes, may_grow=ax is None)
    return style.Artists(dots=tuple(dots.values()), odd=rings, limit=limit, names=names)
