"""All shapes over each other: before, on the reference (Figures 3 and 4), and their spread.

In 2-D the aligned shapes lie over the reference. In 3-D that would hide more than it shows: the
error of each landmark is drawn instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.errors import ShapeError
from defgpa.palette import GROUP_COLOURS
from defgpa.plot import _style as style

if TYPE_CHECKING:
    from matplotlib.collections import Collection
    from matplotlib.colorbar import Colorbar
    from matplotlib.lines import Line2D

    from defgpa.model_selection import CrossValidation

_SEQUENTIAL: Colormap = ListedColormap(
    colormaps["viridis"](np.linspace(0.0, 0.88, 256))
)  # no pale end
_MAX_SURFACES = 12  # over each other: more would be a blur
_CATEGORICAL: Colormap = ListedColormap(list(GROUP_COLOURS))


def overlay(
    alignment: Alignment, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """Draw the reference with the warped shapes over it.

    In 3-D the error of each landmark is drawn: the colour of the surface of a mesh, else the size
    and the colour of a marker.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``reference`` and ``links``; in 2-D ``shapes``, in 3-D a ``colorbar``, else None.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> artists = overlay(a, Figure().subplots(), unit="mm")
    >>> len(artists.shapes.get_xdata())
    1014
    """
    return _draw_overlay(alignment, alignment.aligned, "warped shapes", ax, unit)


def predictions(
    cross_validation: CrossValidation, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """Draw the reference with every landmark predicted by alignments that were fitted without it.

    Parameters
    ----------
    cross_validation : CrossValidation
        The predictions of the landmarks left out.
    ax : Axes, optional
        Where to draw; a new figure by default.
    unit : str, optional
        The unit of the coordinates, for the labels.

    Returns
    -------
    Artists
        As of ``overlay``.
    """
    alignment, predicted = cross_validation.alignment, cross_validation.predicted
    return _draw_overlay(alignment, predicted, "predicted shapes", ax, unit)


def _draw_overlay(
    alignment: Alignment, points: Array, label: str, ax: Axes | None, unit: str | None
) -> style.Artists:
    n_dims, reference = alignment.shapes.n_dims, alignment.reference
    axes = style.prepare_axes(ax, n_dims, points)
    look = {"colors": style.GREY, "linewidths": 0.7, "zorder": 1}
    links = style.draw_links(axes, reference, alignment.shapes.links, **look)
    shapes = bar = None
    marks: Line2D | Collection
    if n_dims == 2:
        shapes, marks = _draw_over_reference(axes, reference, points, label)
    else:
        marks, bar = _draw_errors(axes, alignment, points)
        style.look_at_broadside(axes, reference)
    style.set_equal_scales(axes, n_dims, unit)
    if bar is not None:
        words = style.add_unit(f"RMS error of the {label}", unit)
        style.label_colorbar(bar, words, 0.6 * axes.figure.get_figheight())
    return style.Artists(reference=marks, shapes=shapes, links=links, colorbar=bar)


def _draw_over_reference(
    ax: style.AnyAxes, reference: Array, points: Array, label: str
) -> tuple[Line2D, Line2D]:
    """Draw the shapes as dots, and the reference as crosses over them."""
    size = style.choose_marker_size(len(reference))
    opacity = style.choose_opacity(len(points))
    look = {"markersize": 0.6 * size, "markeredgewidth": 0, "alpha": opacity}
    shapes = style.draw_dots(
        ax, style.select_finite_points(points), label, "o", style.OBSERVED, **look
    )
    cross = {"markersize": size, "markeredgewidth": 0.18 * size}
    marks = style.draw_dots(ax, reference, "reference", "+", style.REFERENCE, **cross)
    style.add_legend(ax)
    return shapes, marks


def _draw_errors(
    ax: style.AnyAxes, alignment: Alignment, points: Array
) -> tuple[Collection, Colorbar]:
    """Draw the error of every landmark: colours of the surface of a mesh, else of markers.

    The area of a marker grows with the error as well. The colour bar is returned, too.
    """
    reference = alignment.reference
    errors = np.sqrt(np.nanmean(((points - reference) ** 2).sum(axis=2), axis=0))
    surface = style.choose_surface(reference, alignment.shapes.faces)
    if surface is not None:
        drawn = style.draw_surface(ax, reference, surface, errors)
        style.add_note(ax, surface.note)
        return drawn, ax.figure.colorbar(drawn, ax=ax, shrink=0.6, pad=0.1)
    order = np.argsort(errors)[style.choose_evenly(len(errors))]  # the largest on top
    opacity = min(1.0, (60 / len(order)) ** 0.5)
    share = errors[order] / (errors.max() or 1.0)
    drawn = ax.scatter(
        *reference[order].T,
        s=opacity * (6.0 + 154.0 * share) + 1.0,  # points²; the least one can still be seen
        c=errors[order],
        cmap=style.ERRORS,
        vmin=0.0,
        depthshade=False,
        linewidths=0,
        rasterized=len(order) > style.MIN_RASTERIZED,
    )
    return drawn, ax.figure.colorbar(drawn, ax=ax, shrink=0.6, pad=0.1)


def before_and_after(
    alignment: Alignment,
    axes: Sequence[Axes] | None = None,
    *,
    before: str = "superimposed",
    unit: str | None = None,
) -> style.Artists:
    """Draw two plots to one scale: the shapes before, and after their warps.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    axes : two Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    before : {"superimposed", "measured"}
        The shapes moved, turned and scaled onto the reference, or as they were measured.
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
    if before not in ("superimposed", "measured"):
        raise ValueError(f"'before' must be 'superimposed' or 'measured'. Got {before!r} instead.")
    n_dims = alignment.shapes.n_dims
    stacks = [
        alignment.superimposed if before == "superimposed" else alignment.shapes.points,
        alignment.aligned,
    ]
    clouds = [style.select_finite_points(points) for points in stacks]
    pair = _prepare_pair(axes, n_dims, max(clouds, key=lambda cloud: np.ptp(cloud, axis=0).max()))
    span = np.max([np.ptp(cloud, axis=0) for cloud in clouds], axis=0) * 1.08
    span[span == 0] = span.max() or 1.0  # flat shapes in space
    how = "moved, turned and scaled" if before == "superimposed" else "as measured"
    surface = style.choose_surface(alignment.reference, alignment.shapes.faces)
    drawn = []
    for ax, points, cloud, title in zip(
        pair, stacks, clouds, (f"before: {how}", "after: warped"), strict=True
    ):
        drawn.append(_draw_cloud(ax, points, surface))
        ax.set_title(title, fontsize="medium")
        middle = (cloud.min(axis=0) + cloud.max(axis=0)) / 2
        for axis, low, high in zip("xyz", middle - span / 2, middle + span / 2, strict=False):
            getattr(ax, f"set_{axis}lim")(low, high)
        if n_dims == 3:
            style.look_at_broadside(ax, alignment.reference)
        style.set_equal_scales(ax, n_dims, unit)
    if surface is not None:
        style.add_note(pair[0], surface.note)
    return style.Artists(before=drawn[0], after=drawn[1])


def _prepare_pair(
    axes: Sequence[Axes] | None, n_dims: int, cloud: Array
) -> tuple[style.AnyAxes, style.AnyAxes]:
    """Return the two given axes, or new ones side by side, above each other for wide shapes."""
    if axes is None:
        from matplotlib import pyplot

        projected = cloud if n_dims == 2 else cloud @ style.find_principal_axes(cloud).T
        is_wide = np.ptp(projected[:, 0]) > 2.5 * np.ptp(projected[:, 1])
        height = style.choose_height(8.0 if is_wide else 5.0, n_dims, cloud)
        _, panels = pyplot.subplots(
            *((2, 1) if is_wide else (1, 2)),
            figsize=(8, 2 * height) if is_wide else (10, height),
            subplot_kw={"projection": "defgpa"} if n_dims == 3 else {},
            layout="constrained",
        )
        pair = list(panels)
    else:
        pair = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(pair) != 2:
        raise ShapeError(f"Before and after need two axes; got {len(pair)}.")
    return style.prepare_axes(pair[0], n_dims), style.prepare_axes(pair[1], n_dims)


def _draw_cloud(ax: style.AnyAxes, points: Array, surface: style.Surface | None) -> Artist:
    """Draw all landmarks of all shapes, coloured by shape; few meshes as translucent surfaces."""
    n, m, d = points.shape
    has_few = n <= _CATEGORICAL.N
    if surface is not None and n <= _MAX_SURFACES:
        for i, shape in enumerate(points):
            colour = _CATEGORICAL(i % _CATEGORICAL.N)
            drawn = style.draw_surface(ax, shape, surface, facecolors=colour, alpha=0.15)
        return drawn
    numbers = np.repeat(np.arange(n), m)
    flat = points.reshape(-1, d)
    visible = np.flatnonzero(~np.isnan(flat[:, 0]))
    # shuffled, so that no shape lies over all the others; the same every time
    order = np.random.default_rng(0).permutation(visible[style.choose_evenly(len(visible))])
    depth = {"depthshade": False} if d == 3 else {}
    return ax.scatter(
        *flat[order].T,
        c=numbers[order],
        cmap=_CATEGORICAL if has_few else _SEQUENTIAL,
        vmin=-0.5 if has_few else 0,
        vmax=_CATEGORICAL.N - 0.5 if has_few else n - 1,
        s=(0.6 * style.choose_marker_size(m)) ** 2,
        alpha=max(0.35, style.choose_opacity(n)),
        linewidths=0,
        rasterized=len(order) > style.MIN_RASTERIZED,
        **depth,
    )


def landmark_ellipses(
    alignment: Alignment,
    ax: Axes | None = None,
    *,
    space: str = "superimposed",
    deviations: float = 2.0,
    unit: str | None = None,
) -> style.Artists:
    """Draw every landmark of every shape, and an ellipse of its standard deviations.

    Parameters
    ----------
    alignment : Alignment
        Any; missing landmarks are left out.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    space : {"superimposed", "back_projected", "aligned"}
        Deformation kept, its smooth part, or removed.
    deviations : float
        Half axes of the ellipses, in standard deviations.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``ellipses`` (in 3-D three around each landmark), ``specimens`` and ``means``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.EuclideanGPA().fit(defgpa.datasets.load_wings()).alignment_
    >>> len(landmark_ellipses(a, Figure().subplots()).ellipses.get_segments())
    43
    """
    points = np.asarray(getattr(alignment, space))
    n_dims = points.shape[2]
    axes = style.prepare_axes(ax, n_dims, points)
    means = np.nanmean(points, axis=0)
    opacity = max(0.3, style.choose_opacity(len(points)))
    style.draw_links(axes, means, alignment.shapes.links, colors=style.MISSING, zorder=0)
    look = {"markersize": 2.5, "markeredgewidth": 0, "alpha": opacity}
    cloud = style.draw_dots(
        axes, style.select_finite_points(points), "specimens", "o", style.OBSERVED, **look
    )
    lines = np.concatenate(
        [
            style.compute_ellipses(points[:, j], deviations, 60)
            for j in style.choose_evenly(len(means), style.MAX_ARROWS)
        ]
    )
    drawn = style.draw_lines(axes, lines, colors=style.REFERENCE, linewidths=1, zorder=3)
    drawn.set_label(f"{deviations:g} standard deviations")
    size = 0.5 * style.choose_marker_size(len(means))
    dots = style.draw_dots(
        axes, means, "mean", "o", style.BLACK, markersize=size, markeredgewidth=0
    )
    if n_dims == 3:
        style.look_at_broadside(axes, means)
    style.set_equal_scales(axes, n_dims, unit)
    style.add_legend(axes, [cloud, drawn, dots])
    return style.Artists(ellipses=drawn, specimens=cloud, means=dots)
