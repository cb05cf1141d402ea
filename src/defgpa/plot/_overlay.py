"""The reference with the shapes brought onto it (the paper's Figures 3 and 4).

In 2-D the shapes lie over the reference. In 3-D that would hide more than it shows: the error of
each landmark is drawn instead, as the size and the colour of its marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.plot import _style as style

if TYPE_CHECKING:
    from defgpa.evaluate import CrossValidation

_SMALLEST, _LARGEST = 6.0, 160.0  # marker areas in 3-D, points², for a few dozen landmarks


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
    dim = alignment.shapes.dim
    axes = style.axes_for(ax, dim)
    draw = _over_each_other if dim == 2 else _with_errors
    artists = draw(axes, alignment, points, label, unit)
    style.as_map(axes, dim, unit)
    return artists


def _over_each_other(
    ax: Any, alignment: Alignment, points: Array, label: str, unit: str | None
) -> style.Artists:
    reference, size = alignment.reference, style.marker_size(len(alignment.reference))
    look = {"markersize": 0.6 * size, "markeredgewidth": 0, "alpha": style.opacity(len(points))}
    shapes = style.dots(ax, style.known(points), label, "o", style.OBSERVED, **look)
    wires = _wires(ax, alignment)
    cross = {"markersize": size, "markeredgewidth": 0.18 * size}
    marks = style.dots(ax, reference, "reference", "+", style.REFERENCE, **cross)
    style.legend(ax)
    return style.Artists(reference=marks, shapes=shapes, wireframe=wires, colorbar=None)


def _with_errors(
    ax: Any, alignment: Alignment, points: Array, label: str, unit: str | None
) -> style.Artists:
    distances = np.linalg.norm(points - alignment.reference, axis=2)
    errors = np.sqrt(np.nanmean(distances**2, axis=0))
    wires = _wires(ax, alignment)
    drawn = np.argsort(errors)[style.thinned(len(errors))]  # the largest on top
    scatter = ax.scatter(
        *alignment.reference[drawn].T,
        s=_areas(errors[drawn]),
        c=errors[drawn],
        cmap=style.ERRORS,
        vmin=0.0,
        depthshade=False,
        linewidths=0,
        rasterized=len(drawn) > style.RASTER_FROM,
    )
    bar = ax.figure.colorbar(scatter, ax=ax, shrink=0.6, pad=0.1)
    bar.set_label(style.with_unit(f"RMS error of the {label}", unit))
    return style.Artists(reference=scatter, shapes=None, wireframe=wires, colorbar=bar)


def _areas(errors: Array) -> Array:
    """Marker areas proportional to the error, over a least area at which a marker is seen."""
    crowd = min(1.0, (60 / len(errors)) ** 0.5)
    share = errors / (errors.max() or 1.0)
    return np.asarray(crowd * (_SMALLEST + (_LARGEST - _SMALLEST) * share) + 1.0)


def _wires(ax: Any, alignment: Alignment) -> Any:
    look = {"colors": style.GREY, "linewidths": 0.7, "zorder": 1}
    return style.wireframe(ax, alignment.reference, alignment.shapes.links, **look)
