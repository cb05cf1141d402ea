"""All shapes over each other: as they came, on the reference (Figures 3 and 4), and their spread.

In 2-D the aligned shapes lie over the reference. In 3-D that would hide more than it shows: the
error of each landmark is drawn instead, as the size and the colour of its marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.errors import ShapeError
from defgpa.plot import _style as style

if TYPE_CHECKING:
    from defgpa.model_selection import CrossValidation

_MANY: Colormap = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.88, 256)))  # no pale end
_FEW: Colormap = ListedColormap(
    [style.BLUE, style.VERMILLION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY, style.BLACK]
)


def aligned(
    alignment: Alignment, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """The reference with the warped shapes over it.

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
        ``reference`` and ``wireframe``; in 2-D ``shapes``, in 3-D a ``colorbar``, else None.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> artists = aligned(a, Figure().subplots(), unit="mm")
    >>> len(artists.shapes.get_xdata())
    1014
    """
    return _overlay(alignment, alignment.aligned, "warped shapes", ax, unit)


def cross_validated(
    cross_validation: CrossValidation, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """The reference with every landmark predicted by alignments that have not seen it.

    Parameters and result as in ``aligned``.
    """
    alignment, predicted = cross_validation.alignment, cross_validation.predicted
    return _overlay(alignment, predicted, "predicted shapes", ax, unit)


def _overlay(
    alignment: Alignment, points: Array, label: str, ax: Axes | None, unit: str | None
) -> style.Artists:
    dim, reference = alignment.shapes.n_dims, alignment.reference
    axes = style.axes_for(ax, dim)
    look = {"colors": style.GREY, "linewidths": 0.7, "zorder": 1}
    wires = style.wireframe(axes, reference, alignment.shapes.links, **look)
    shapes = bar = None
    if dim == 2:
        shapes, marks = _over_each_other(axes, reference, points, label)
    else:
        marks, bar = _with_errors(axes, reference, points)
        bar.set_label(style.with_unit(f"RMS error of the {label}", unit))
    style.as_map(axes, dim, unit)
    return style.Artists(reference=marks, shapes=shapes, wireframe=wires, colorbar=bar)


def _over_each_other(ax: Any, reference: Array, points: Array, label: str) -> tuple[Any, Any]:
    """The shapes as dots, and the reference as crosses."""
    size = style.marker_size(len(reference))
    look = {"markersize": 0.6 * size, "markeredgewidth": 0, "alpha": style.opacity(len(points))}
    shapes = style.dots(ax, style.known(points), label, "o", style.OBSERVED, **look)
    cross = {"markersize": size, "markeredgewidth": 0.18 * size}
    marks = style.dots(ax, reference, "reference", "+", style.REFERENCE, **cross)
    style.legend(ax)
    return shapes, marks


def _with_errors(ax: Any, reference: Array, points: Array) -> tuple[Any, Any]:
    """The reference with markers whose area grows with the error, and their colour bar."""
    errors = np.sqrt(np.nanmean(((points - reference) ** 2).sum(axis=2), axis=0))
    drawn = np.argsort(errors)[style.thinned(len(errors))]  # the largest on top
    crowd = min(1.0, (60 / len(drawn)) ** 0.5)
    share = errors[drawn] / (errors.max() or 1.0)
    scatter = ax.scatter(
        *reference[drawn].T,
        s=crowd * (6.0 + 154.0 * share) + 1.0,  # points²; the least one can still be seen
        c=errors[drawn],
        cmap=style.ERRORS,
        vmin=0.0,
        depthshade=False,
        linewidths=0,
        rasterized=len(drawn) > style.RASTER_FROM,
    )
    return scatter, ax.figure.colorbar(scatter, ax=ax, shrink=0.6, pad=0.1)


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
    dim = alignment.shapes.n_dims
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


def landmark_ellipses(
    alignment: Alignment,
    ax: Axes | None = None,
    *,
    space: str = "superimposed",
    deviations: float = 2.0,
    unit: str | None = None,
) -> style.Artists:
    """Every landmark of every shape, and an ellipse of so many standard deviations around each.

    Parameters
    ----------
    alignment : Alignment
        Any; landmarks not seen are left out.
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
    dim = points.shape[2]
    axes = style.axes_for(ax, dim)
    means = np.nanmean(points, axis=0)
    opacity = max(0.3, style.opacity(len(points)))
    look = {"markersize": 2.5, "markeredgewidth": 0, "alpha": opacity}
    cloud = style.dots(axes, style.known(points), "specimens", "o", style.OBSERVED, **look)
    lines = np.concatenate(
        [
            style.ellipses(points[:, j], deviations, 60)
            for j in style.thinned(len(means), style.MOST_ARROWS)
        ]
    )
    drawn = style.polylines(axes, lines, colors=style.REFERENCE, linewidths=1, zorder=3)
    drawn.set_label(f"{deviations:g} standard deviations")
    size = 0.5 * style.marker_size(len(means))
    dots = style.dots(axes, means, "mean", "o", style.BLACK, markersize=size, markeredgewidth=0)
    style.as_map(axes, dim, unit)
    style.legend(axes, [cloud, drawn, dots], ncols=3)
    return style.Artists(ellipses=drawn, specimens=cloud, means=dots)
