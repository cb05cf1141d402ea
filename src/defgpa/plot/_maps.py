"""Tables of shapes × landmarks as pictures: what is off, and what was not seen.

With more landmarks than a screen has columns, a cell stands for several: for the largest of
their residuals, or for the share of them that was not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Patch

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.plot import _style as style
from defgpa.shapes import Shapes

_SEEN_TO_UNSEEN = LinearSegmentedColormap.from_list("defgpa_unseen", ["#e8f1f8", style.VERMILLION])


def residual_map(
    alignment: Alignment, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """The residual of every landmark of every shape: which specimen, which landmark is off.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    ax : Axes, optional
        Where to draw; a new figure by default.
    unit : str, optional
        Of the residuals, for the label.

    Returns
    -------
    Artists
        ``image`` holds the residuals, rows are shapes; ``worst``, a ring; ``colorbar``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> residual_map(a, Figure().subplots()).image.get_array().shape
    (24, 43)
    """
    axes = style.axes_for(ax, 2)
    shapes, residuals = alignment.shapes, alignment.residuals
    image, per = _table(axes, shapes, residuals, np.fmax.reduce)
    image.set_cmap(style.ERRORS.with_extremes(bad=style.UNSEEN))
    image.set_clim(0.0, float(np.nanmax(residuals)) or 1.0)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02)
    unseen = "" if shapes.visible.all() else "; grey: not seen"
    bar.set_label(style.with_unit("residual", unit) + unseen)
    return style.Artists(image=image, colorbar=bar, worst=_ring(axes, shapes, residuals, per, unit))


def missing_map(shapes: Shapes, ax: Axes | None = None) -> style.Artists:
    """Which shape does not see which landmark.

    Parameters
    ----------
    shapes : Shapes
        What to show; ``alignment.shapes`` for an alignment.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``image`` holds 1 where a landmark was not seen, 0 where it was.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> points = np.random.default_rng(0).normal(size=(3, 5, 2))
    >>> points[1, 4] = np.nan
    >>> artists = missing_map(defgpa.Shapes(points), Figure().subplots())
    >>> artists.image.get_array().sum()
    np.float64(1.0)
    """
    axes = style.axes_for(ax, 2)
    unseen = (~shapes.visible).astype(np.float64)
    image, _ = _table(axes, shapes, unseen, np.mean)
    image.set_cmap(_SEEN_TO_UNSEEN)
    image.set_clim(0.0, 1.0)
    share = unseen.mean()
    style.legend(
        axes,
        [
            Patch(color=_SEEN_TO_UNSEEN(0.0), label=f"seen ({1 - share:.1%})"),
            Patch(color=_SEEN_TO_UNSEEN(1.0), label=f"not seen ({share:.1%})"),
        ],
    )
    return style.Artists(image=image, colorbar=None, worst=None)


def _table(
    ax: Any, shapes: Shapes, figures: Array, reduce: Callable[..., Array]
) -> tuple[Any, int]:
    """A figure (n, m) of every landmark as an image, and how many are reduced to one cell."""
    n, m = figures.shape
    per = -(-m // 600)  # columns that can be told apart
    padded = np.pad(figures, ((0, 0), (0, -m % per)), mode="edge")
    cells = reduce(padded.reshape(n, -1, per), axis=2)
    image = ax.imshow(
        np.ma.masked_invalid(cells), aspect="auto", interpolation="nearest", origin="upper"
    )
    width, height = ax.get_position().size * ax.figure.get_size_inches()
    longest = max(len(style.shortened(name)) for name in shapes.landmarks)
    line, character = 0.155, 0.075  # inches of small print
    room = height - character * longest  # the labels below take it from the table
    style.named_ticks(ax.yaxis, shapes.names, int(room / line))
    style.named_ticks(ax.xaxis, shapes.landmarks, int(0.7 * width / line), per, rotation=90)
    per_column = "" if per == 1 else f" ({per} to a column)"
    ax.set(xlabel=f"landmark{per_column}", ylabel="shape")
    ax.tick_params(length=2, labelsize="small")
    return image, per


def _ring(ax: Any, shapes: Shapes, residuals: Array, per: int, unit: str | None) -> Any:
    """A ring around the largest residual, with its names above the table."""
    i, j = np.unravel_index(np.nanargmax(residuals), residuals.shape)
    look = {"markersize": 9, "fillstyle": "none", "markeredgewidth": 1.6, "clip_on": False}
    ring = style.dots(ax, np.array([[j // per, i]]), "_worst", "o", style.VERMILLION, **look)
    shape, landmark = style.shortened(shapes.names[i]), style.shortened(shapes.landmarks[j])
    ax.set_title(
        f"largest: {style.figure(residuals[i, j], unit)}, landmark {landmark} of {shape}",
        loc="left",
        fontsize="small",
        color=style.VERMILLION,
    )
    return ring
