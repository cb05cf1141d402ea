"""Draw tables of shapes × landmarks: residuals, and missing landmarks.

With more landmarks or shapes than a picture has cells, a cell stands for several: for the largest
of their residuals, or for the share of them that is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Patch

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.plot import _style as style
from defgpa.shapes import Shapes

if TYPE_CHECKING:
    from matplotlib.image import AxesImage

_LINE, _CHARACTER = 0.155, 0.075  # inches of small print

_VISIBLE_TO_MISSING = LinearSegmentedColormap.from_list(
    "defgpa_missing", ["#e8f1f8", style.VERMILLION]
)


def residual_map(
    alignment: Alignment, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """Draw the residual of every landmark of every shape: which specimen, which landmark is off.

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
    axes = style.prepare_axes(ax, 2)
    shapes, residuals = alignment.shapes, alignment.residuals
    image, cell = _draw_table(axes, shapes, residuals, np.fmax.reduce)
    image.set_cmap(style.ERRORS.with_extremes(bad=style.MISSING))
    image.set_clim(0.0, float(np.nanmax(residuals)) or 1.0)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02)
    style.label_colorbar(
        bar,
        style.add_unit("distance from the reference", unit),
        _measure_height(axes, shapes),
        "" if shapes.visible.all() else "grey: missing",
    )
    worst = _mark_largest(axes, shapes, residuals, cell, unit)
    return style.Artists(image=image, colorbar=bar, worst=worst)


def missing_map(shapes: Shapes, ax: Axes | None = None) -> style.Artists:
    """Draw which landmark is missing in which shape.

    Parameters
    ----------
    shapes : Shapes
        What to show; ``alignment.shapes`` for an alignment.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``image`` holds 1 where a landmark is missing, 0 where it is visible.

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
    axes = style.prepare_axes(ax, 2)
    missing = (~shapes.visible).astype(np.float64)
    image, _ = _draw_table(axes, shapes, missing, np.nanmean)
    image.set_cmap(_VISIBLE_TO_MISSING)
    image.set_clim(0.0, 1.0)
    share = missing.mean()
    style.add_legend(
        axes,
        [
            Patch(color=_VISIBLE_TO_MISSING(0.0), label=f"visible ({100 * (1 - share):.1f} %)"),
            Patch(color=_VISIBLE_TO_MISSING(1.0), label=f"missing ({100 * share:.1f} %)"),
        ],
    )
    return style.Artists(image=image, colorbar=None, worst=None)


def _draw_table(
    ax: style.AnyAxes, shapes: Shapes, values: Array, reduce: Callable[..., Array]
) -> tuple[AxesImage, tuple[int, int]]:
    """Draw values (n_shapes, n_landmarks) as an image; return how many a cell is reduced from."""
    rows, columns = (-(-count // 600) for count in values.shape)  # 600 can be told apart
    padding = [(0, -count % per) for count, per in zip(values.shape, (rows, columns), strict=True)]
    padded = np.pad(values, padding, mode="edge")
    blocks = padded.reshape(len(padded) // rows, rows, -1, columns).swapaxes(1, 2)
    cells = reduce(blocks.reshape(*blocks.shape[:2], -1), axis=2)
    image = ax.imshow(
        np.ma.masked_invalid(cells), aspect="auto", interpolation="nearest", origin="upper"
    )
    width = 0.7 * ax.get_position().width * ax.figure.get_figwidth()
    max_rows = int(_measure_height(ax, shapes) / _LINE)
    style.label_ticks(ax.yaxis, shapes.names, max_rows, rows)
    has_room = len(shapes.landmarks) * _CHARACTER * (_find_longest(shapes) + 1) < width
    turn = 0 if has_room else 90
    style.label_ticks(ax.xaxis, shapes.landmarks, int(width / _LINE), columns, rotation=turn)
    axis_labels = [
        name if per == 1 else f"{name} ({per} to a cell)"
        for name, per in (("landmark", columns), ("specimen", rows))
    ]
    ax.set(xlabel=axis_labels[0], ylabel=axis_labels[1])
    ax.tick_params(length=2, labelsize="small")
    return image, (rows, columns)


def _measure_height(ax: style.AnyAxes, shapes: Shapes) -> float:
    """Estimate the inches that the names of the landmarks below a table leave to it."""
    height = ax.get_position().height * ax.figure.get_figheight()
    return float(height - _CHARACTER * _find_longest(shapes))


def _find_longest(shapes: Shapes) -> int:
    return max(len(style.shorten(name)) for name in shapes.landmarks)


def _mark_largest(
    ax: style.AnyAxes, shapes: Shapes, residuals: Array, cell: tuple[int, int], unit: str | None
) -> Artist:
    """Draw a ring around the largest residual, and write its names above the table."""
    i, j = np.unravel_index(np.nanargmax(residuals), residuals.shape)
    look = {"markersize": 9, "fillstyle": "none", "markeredgewidth": 1.6, "clip_on": False}
    place = np.array([[j // cell[1], i // cell[0]]])
    ring = style.draw_dots(ax, place, "_worst", "o", style.VERMILLION, **look)
    shape, landmark = style.shorten(shapes.names[i]), style.shorten(shapes.landmarks[j])
    ax.set_title(
        f"largest: {style.format_number(residuals[i, j], unit)}, landmark {landmark} of {shape}",
        loc="left" if len(shape) + len(landmark) < 24 else "right",  # long ones start further left
        fontsize="small",
        color=style.VERMILLION,
    )
    return ring
