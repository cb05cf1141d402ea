"""How all plots look: colours that colour-blind readers can tell apart, equal axes, few labels.

The colours are those of Okabe and Ito: what was observed is blue, the reference and what is made
of it vermillion. Colour never carries a meaning alone, a marker or a line style goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.lines import Line2D

from defgpa._arrays import Array, Index
from defgpa.errors import ShapeError

BLUE, GREEN, VERMILLION, SKY = "#0072B2", "#009E73", "#D55E00", "#56B4E9"
ORANGE, PURPLE, BLACK, GREY = "#E69F00", "#CC79A7", "#000000", "#8c8c8c"
OBSERVED, REFERENCE, UNSEEN = BLUE, VERMILLION, "#d9d9d9"

MOST_ARROWS = 600
RASTER_FROM = 5_000  # points from which a vector file would become unwieldy

# light to dark, so that a large error stands out on white paper and in grey print
ERRORS: Colormap = LinearSegmentedColormap.from_list(
    "defgpa_errors", ["#bcd7ea", "#56B4E9", "#0072B2", "#5b2a86", "#3a0a3a"]
)


class Artists(SimpleNamespace):
    """What a plot drew, under the names that its function lists."""


def axes_for(ax: Axes | None, dim: int) -> Any:
    """The axes given, if they have the right dimension, or new ones in a new figure."""
    if ax is None:
        from matplotlib import pyplot

        how = {"projection": "3d"} if dim == 3 else {}
        return pyplot.subplots(subplot_kw=how, layout="constrained")[1]
    if dim == 3 and not hasattr(ax, "zaxis"):
        raise ShapeError("3-D shapes need 3-D axes: plt.subplots(subplot_kw={'projection': '3d'}).")
    return ax


def as_map(ax: Any, dim: int, unit: str | None) -> None:
    """Equal scales on all axes, and what they measure."""
    ax.set(**{f"{axis}label": with_unit(axis, unit) for axis in "xyz"[:dim]})
    if dim == 2:
        ax.set_aspect("equal", adjustable="box")
        ax.autoscale_view()
    else:
        _as_space(ax)


def _as_space(ax: Any) -> None:
    """A box as long, wide and high as the limits, with ticks as far as there is room."""
    from matplotlib.ticker import MaxNLocator

    lengths = np.array([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim()), np.ptp(ax.get_zlim())])
    ax.set_box_aspect(lengths, zoom=0.8)
    shares = lengths / lengths.max()
    for axis, share in zip((ax.xaxis, ax.yaxis, ax.zaxis), shares, strict=True):
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.set_major_locator(MaxNLocator(max(1, round(4 * share)), min_n_ticks=1))
        axis.labelpad = 9


def legend(ax: Any, handles: Sequence[Any] | None = None, **where: Any) -> Any:
    """A legend above the axes, its markers large and opaque enough to be seen."""
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 2, "borderaxespad": 0.2}
    own = {} if handles is None else {"handles": handles}
    drawn = ax.legend(**own, frameon=False, **{**place, **where})
    for handle in drawn.legend_handles:
        handle.set_alpha(1.0)
        if hasattr(handle, "set_markersize"):
            handle.set_markersize(max(5.0, handle.get_markersize()))
            handle.set_markeredgewidth(max(1.0, handle.get_markeredgewidth()))
    return drawn


def figure(value: float, unit: str | None) -> str:
    """``7460 mm``: three digits, never an exponent that nobody reads."""
    digits = np.format_float_positional(value, precision=3, fractional=False, trim="-")
    return digits if unit is None else f"{digits} {unit}"


def with_unit(what: str, unit: str | None) -> str:
    """``residual (mm)``, or ``residual`` where no unit was given."""
    return what if unit is None else f"{what} ({unit})"


def thinned(count: int, most: int = 60_000) -> Index:
    """All of ``range(count)``, or every second, third, …: at most ``most``, evenly."""
    return np.arange(0, count, max(1, -(-count // most)))


def thinned_label(label: str, count: int, drawn: int) -> str:
    """The label, with a word on what was left out."""
    return label if drawn == count else f"{label} ({drawn:,} of {count:,} drawn)"


def known(points: Array) -> Array:
    """(p, d): the points of any stack that are not NaN."""
    flat = points.reshape(-1, points.shape[-1])
    return flat[~np.isnan(flat[:, 0])]


def ellipses(points: Array, deviations: float, corners: int) -> Array:
    """(d(d−1)/2, corners, d): around a cloud, an ellipse in every pair of its principal axes."""
    cloud = known(points)
    d = cloud.shape[1]
    covariance = np.cov(cloud.T) if len(cloud) > 1 else np.zeros((d, d))
    values, vectors = np.linalg.eigh(covariance)
    reach = deviations * np.sqrt(np.maximum(values, 0.0))
    angle = np.linspace(0.0, 2.0 * np.pi, corners)[:, None]
    rings = [
        np.cos(angle) * reach[a] * vectors[:, a] + np.sin(angle) * reach[b] * vectors[:, b]
        for a in range(d)
        for b in range(a + 1, d)
    ]
    return np.stack(rings) + cloud.mean(axis=0)


def dots(
    ax: Any, points: Array, label: str, marker: str, color: str | None = None, **look: Any
) -> Any:
    """A cloud of markers as one line artist, thinned if it is very large."""
    chosen = points[thinned(len(points))]
    return ax.plot(
        *chosen.T,
        linestyle="none",
        marker=marker,
        color=color,
        label=thinned_label(label, len(points), len(chosen)),
        rasterized=len(chosen) > RASTER_FROM,
        **look,
    )[0]


def segments(ax: Any, starts: Array, ends: Array, **look: Any) -> Any:
    """Straight lines between pairs of points, as one collection."""
    return polylines(ax, np.stack([starts, ends], axis=1), **look)


def polylines(ax: Any, lines: Array, **look: Any) -> Any:
    """Lines (k, p, d) as one collection that the limits of the axes count."""
    if lines.shape[-1] == 3:
        from mpl_toolkits.mplot3d.art3d import Line3DCollection

        ax.auto_scale_xyz(*lines.reshape(-1, 3).T)
        return ax.add_collection3d(Line3DCollection(list(lines), **look))
    from matplotlib.collections import LineCollection

    return ax.add_collection(LineCollection(list(lines), **look))


def arrows(ax: Any, tails: Array, vectors: Array, color: str, **look: Any) -> Any:
    """Arrows in the units of the axes, whose heads the view holds."""
    if tails.shape[1] == 2:
        look = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "headwidth": 4, **look}
    drawn = ax.quiver(*tails.T, *vectors.T, color=color, **look)
    dots(ax, tails + vectors, "_heads", "None")
    return drawn


def beside(
    ax: Any, text: str, point: Any, shift: tuple[float, float], size: Any = "small", **look: Any
) -> Any:
    """A text so many points to the right of a point, and above it."""
    place = {"xytext": shift, "textcoords": "offset points", "fontsize": size}
    return ax.annotate(text, point, **place, **look)


def in_cell(ax: Any, row: int, column: int, text: str, dark: bool, **look: Any) -> Any:
    """A text in the middle of a cell of an image, white where the cell is dark."""
    colour = "white" if dark else "black"
    return ax.text(column, row, text, ha="center", va="center", color=colour, **look)


def sign(marker: str, color: str, label: str, **look: Any) -> Line2D:
    """A marker for the legend."""
    return Line2D([], [], color=color, marker=marker, label=label, **look)


def wireframe(ax: Any, points: Array, edges: Iterable[tuple[int, int]], **look: Any) -> Any:
    """The lines between landmarks that the shapes come with, if any; None otherwise."""
    pairs = np.array(list(edges), dtype=np.intp).reshape(-1, 2)
    if not len(pairs):
        return None
    return segments(ax, points[pairs[:, 0]], points[pairs[:, 1]], **look)


def shortened(name: str, most: int = 22) -> str:
    """A name that fits beside an axis."""
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-most // 2 :]}"


def named_ticks(axis: Any, names: Sequence[str], most: int, per: int = 1, **look: Any) -> None:
    """At most so many names along an axis on which every cell holds ``per`` of them."""
    chosen = range(0, len(names), max(per, -(-len(names) // max(most, 1))))
    places = (np.array(chosen) + 0.5) / per - 0.5
    axis.set_ticks(places, [shortened(names[k]) for k in chosen], **look)


def marker_size(count: int) -> float:
    """Points: smaller the more there are."""
    return float(np.clip(60.0 / np.sqrt(max(count, 1)), 1.5, 7.0))


def opacity(layers: int) -> float:
    """So that many shapes over each other still let the densest places stand out."""
    return float(np.clip(8.0 / max(layers, 1), 0.08, 0.8))
