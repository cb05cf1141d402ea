"""Draw tests on mean shapes: which landmarks differ, are asymmetric, change with size, err.

A 2-D shape is drawn as it is, a 3-D one as it is seen along its shortest principal axis.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from defgpa.arrays import Array
from defgpa.plot import _style as style
from defgpa.plot._axis_ends import ShapeAxis, draw_ends
from defgpa.plot._views import (
    Links,
    choose_magnification,
    choose_view,
    draw_circles,
    draw_mean,
    prepare_map_axes,
    state_magnification,
)
from defgpa.statistics import Allometry, LandmarkDifferences, Repeatability, Symmetry

_ARROW = {"width": 0.004, "zorder": 3}
_MAX_LABELS = 60  # landmarks: more labels than that would hide the circles
_N_WORST = 15  # of so many landmarks are labelled


def landmark_differences(
    differences: LandmarkDifferences,
    ax: Axes | None = None,
    *,
    level: float = 0.05,
    magnify: float | None = None,
    links: Links = (),
) -> style.Artists:
    """Draw which landmarks differ between two groups: arrows from the first mean to the second.

    Landmarks that differ at this rate of false discoveries are filled and named.

    Parameters
    ----------
    differences : LandmarkDifferences
        Two groups compared landmark by landmark.
    ax : Axes, optional
        Where to draw; a new figure by default.
    level : float
        The rate of false discoveries up to which landmarks differ.
    magnify : float, optional
        The factor of all changes; by default one that makes them visible.
    links : sequence of (int, int)
        Pairs of landmarks to join by lines.

    Returns
    -------
    Artists
        ``mean`` (landmarks that differ), ``arrows``, and ``labels`` beside the former.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import landmark_differences as compare
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(12, 2)) + 0.01 * rng.normal(size=(20, 12, 2))
    >>> x[10:, 3] += 0.2
    >>> found = compare(x, ["a"] * 10 + ["b"] * 10)
    >>> drawn = landmark_differences(found, Figure().subplots())
    >>> bool(len(drawn.labels) >= 1)
    True
    """
    view = choose_view(differences.mean, differences.difference)
    axes = prepare_map_axes(ax, view(differences.mean))
    mean, vectors = view(differences.mean), view(differences.difference)
    factor = choose_magnification(np.linalg.norm(vectors, axis=1), mean, magnify)
    draw_mean(axes, mean, links)
    significant = differences.significant(level)
    arrows = style.draw_arrows(axes, mean, factor * vectors, style.OBSERVED, **_ARROW)
    others = style.draw_dots(
        axes, mean[~significant], "not significant", "o", style.GREY, markerfacecolor="white"
    )
    marks = style.draw_dots(axes, mean[significant], f"q ≤ {level:g}", "o", style.REFERENCE)
    words = f"{differences.groups[0]} to {differences.groups[1]}{state_magnification(factor)}"
    handle = style.make_handle(">", style.OBSERVED, words, markersize=5, linestyle="none")
    style.add_legend(axes, [marks, others, handle], may_grow=ax is None)
    labels = [style.shorten(differences.landmarks[j], 10) for j in np.flatnonzero(significant)]
    return style.Artists(
        mean=marks,
        arrows=arrows,
        circles=None,
        labels=_label(axes, mean[significant], labels, mean, factor * vectors),
    )


def symmetry(
    symmetry: Symmetry,
    ax: Axes | None = None,
    *,
    magnify: float | None = None,
    links: Links = (),
) -> style.Artists:
    """Draw the symmetric mean, directional asymmetry as arrows, fluctuating as circles.

    The radius of a circle is the RMS of a landmark's fluctuating asymmetry, magnified like the
    arrows; paired landmarks are joined.

    Parameters
    ----------
    symmetry : Symmetry
        The asymmetry of shapes.
    ax : Axes, optional
        Where to draw; a new figure by default.
    magnify : float, optional
        The factor of all changes; by default one that makes them visible.
    links : sequence of (int, int)
        Pairs of landmarks to join by lines.

    Returns
    -------
    Artists
        ``mean``, ``arrows`` (directional) and ``circles`` (fluctuating).

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import symmetry as analyse
    >>> moth = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0]])
    >>> x = moth + 0.02 * np.random.default_rng(0).normal(size=(10, 6, 2))
    >>> symmetry(analyse(x, n_permutations=9), Figure().subplots()).arrows.N
    6
    """
    view = choose_view(symmetry.mean, symmetry.directional)
    axes = prepare_map_axes(ax, view(symmetry.mean))
    mean, vectors = view(symmetry.mean), view(symmetry.directional)
    radii = np.sqrt((symmetry.fluctuating**2).sum(axis=2).mean(axis=0))
    lengths = np.concatenate([np.linalg.norm(vectors, axis=1), radii])
    factor = choose_magnification(lengths, mean, magnify)
    draw_mean(axes, mean, links)
    draw_mean(axes, mean, symmetry.pairs, linestyle=":", color=style.GREY, linewidth=0.8)
    look = {"facecolor": style.SKY, "alpha": 0.35, "edgecolor": style.BLUE}
    circles = draw_circles(axes, mean, factor * radii, **look)
    arrows = style.draw_arrows(axes, mean, factor * vectors, style.VERMILLION, **_ARROW)
    marks = style.draw_dots(axes, mean, "symmetric mean", "o", style.BLACK, markersize=3)
    words = f"directional asymmetry{state_magnification(factor)}"
    arrow = style.make_handle(">", style.VERMILLION, words, markersize=5, linestyle="none")
    words = "fluctuating asymmetry (RMS)"
    circle = style.make_handle("o", style.SKY, words, linestyle="none", markersize=9)
    style.add_legend(axes, [marks, arrow, circle])
    return style.Artists(mean=marks, arrows=arrows, circles=circles, labels=())


def repeatability(
    repeatability: Repeatability,
    ax: Axes | None = None,
    *,
    magnify: float | None = None,
    links: Links = (),
) -> style.Artists:
    """Draw the measurement error as circles, darker where less is repeatable.

    Of many landmarks those with the largest errors are labelled.

    Parameters
    ----------
    repeatability : Repeatability
        The error and the repeatability of every landmark.
    ax : Axes, optional
        Where to draw; a new figure by default.
    magnify : float, optional
        The factor of all changes; by default one that makes them visible.
    links : sequence of (int, int)
        Pairs of landmarks to join by lines.

    Returns
    -------
    Artists
        ``mean``, ``circles`` and ``labels``.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import repeatability as measure
    >>> rng = np.random.default_rng(0)
    >>> who = np.repeat(np.arange(8), 2)
    >>> wings = rng.normal(size=(6, 2)) + 0.1 * rng.normal(size=(8, 6, 2))
    >>> found = measure(wings[who] + 0.01 * rng.normal(size=(16, 6, 2)), who)
    >>> len(repeatability(found, Figure().subplots()).labels)
    6
    """
    mean = choose_view(repeatability.mean)(repeatability.mean)
    axes = prepare_map_axes(ax, mean)
    factor = choose_magnification(repeatability.error, mean, magnify)
    draw_mean(axes, mean, links)
    look = {"cmap": style.ERRORS.reversed(), "alpha": 0.8, "edgecolor": "none"}
    circles = draw_circles(axes, mean, factor * repeatability.error, **look)
    circles.set_array(repeatability.per_landmark)
    circles.set_clim(min(float(repeatability.per_landmark.min()), 0.999), 1.0)
    marks = style.draw_dots(axes, mean, "mean", "o", style.BLACK, markersize=2.5)
    axes.figure.colorbar(circles, ax=axes, label="repeatability", shrink=0.9)
    words = f"measurement error (SD){state_magnification(factor)}"
    circle = style.make_handle("o", style.BLUE, words, linestyle="none", markersize=9)
    title = f"repeatability {repeatability.overall:.3f} over all landmarks"
    style.add_legend(axes, [marks, circle], title=title, alignment="left")
    labelled = np.argsort(-repeatability.error, kind="stable")
    if len(labelled) > _MAX_LABELS:
        labelled = labelled[:_N_WORST]
    texts = [style.shorten(repeatability.landmarks[j], 10) for j in labelled]
    return style.Artists(
        mean=marks,
        arrows=None,
        circles=circles,
        labels=_label(axes, mean[labelled], texts, mean, 0.0 * mean),
    )


def _label(
    axes: style.AnyAxes, points: Array, labels: Sequence[str], tails: Array, vectors: Array
) -> tuple[object, ...]:
    """Write landmark labels beside their points, as many as find room beside the arrows.

    Parameters
    ----------
    points, tails, vectors : array (p, 2)
        Where the labels belong, and the arrows to avoid.
    """
    axes.apply_aspect()
    points_along = tails + np.linspace(0.0, 1.0, 9)[:, None, None] * vectors
    avoid = points_along.reshape(-1, 2)
    outline = [withStroke(linewidth=2, foreground="white")]  # to be read on dark circles, too
    return tuple(
        style.label_points(
            axes, points, labels, avoid=avoid, color="#444444", zorder=4, path_effects=outline
        )
    )


def allometry(
    allometry: Allometry,
    ax: Axes | None = None,
    *,
    groups: Sequence[Hashable] | None = None,
    links: Links = (),
    unit: str | None = None,
    magnify: float | None = None,
) -> style.Artists:
    """Draw regression scores over size, and below them the shapes expected at both ends.

    Parameters
    ----------
    allometry : Allometry
        Of `defgpa.statistics.allometry`.
    ax : Axes, optional
        Where to draw; a new figure by default.
    groups : sequence of n labels, optional
        For markers and colours, the same in all plots.
    links : iterable of (int, int)
        Landmarks to join by lines.
    unit : str, optional
        Of the sizes, for the label.
    magnify : float, optional
        The factor of the changes from the mean; by default one that makes them visible.

    Returns
    -------
    Artists
        ``scores`` (one artist a group), ``line``, and ``ends``, the axes of the shapes expected of
        the smallest and of the largest specimen.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import allometry as regress
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(10, 8, 2))
    >>> drawn = allometry(regress(x, n_permutations=99), Figure().subplots())
    >>> len(drawn.scores[0].get_xdata())
    10
    """
    axes = style.prepare_axes(ax, 2, height=3.8)
    places = np.column_stack([allometry.sizes, allometry.scores])
    scores = style.draw_groups(axes, places, groups)
    ends = np.array([allometry.sizes.min(), allometry.sizes.max()])
    between = np.geomspace(ends[0], ends[1], 50)
    row = allometry.anova["log(size)"]
    line = axes.plot(
        between,
        allometry.predict_scores(between),
        color=style.BLACK,
        label="regression",
    )[0]
    size = "centroid size" if allometry.anova.has_centroid_size else "size"
    axes.set(xscale="log", xlabel=style.add_unit(size, unit), ylabel="regression score")
    _set_plain_ticks(axes, ends)
    handles = [line] if groups is None else [*scores.values(), line]
    words = f"R² = {row.r_squared:.3f}, P = {row.p:.3g}"
    style.add_legend(axes, handles, may_grow=ax is None, title=words, alignment="left")
    mean = allometry.anova.tangents.mean(axis=0)
    titles = ("expected of the smallest", "expected of the largest")
    axis = ShapeAxis(mean, allometry.predict(ends) - mean, titles)
    shapes, _ = draw_ends(axes, axis, None, list(links), magnify=magnify)
    return style.Artists(scores=tuple(scores.values()), line=line, ends=shapes)


def _set_plain_ticks(axes: style.AnyAxes, ends: Array) -> None:
    """Write at most five sizes in plain numbers: a narrow logarithmic axis has no decades."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

    is_narrow = ends[1] < 4.0 * ends[0]
    ticks = MaxNLocator(4) if is_narrow else LogLocator(subs=(1.0, 2.0, 5.0))
    places = [place for place in ticks.tick_values(*ends) if ends[0] <= place <= ends[1]]
    stride = max(1, -(-len(places) // 5))
    axes.xaxis.set_major_locator(FixedLocator(places[::stride]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    margin = (ends[1] / ends[0]) ** 0.05 if ends[1] > ends[0] else 1.03
    axes.set_xlim(ends[0] / margin, ends[1] * margin)
