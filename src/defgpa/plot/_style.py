"""Style of all plots: colours for the colour-blind, equal axes, few labels.

The colours are those of Okabe and Ito: what was observed is blue, the reference and what is made
of it vermillion. Colour never carries a meaning alone, a marker or a line style goes with it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from textwrap import fill, wrap
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.text import Annotation, Text
from scipy.spatial import ConvexHull, QhullError

from defgpa.arrays import Array, Index, Mask
from defgpa.decimation import decimate_surface
from defgpa.errors import ShapeError
from defgpa.palette import assign_looks
from defgpa.plot._space import SpaceAxes, project_box

if TYPE_CHECKING:
    from matplotlib.colorbar import Colorbar
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

BLUE, GREEN, VERMILLION, SKY = "#0072B2", "#009E73", "#D55E00", "#56B4E9"
BLACK, GREY = "#000000", "#8c8c8c"
OBSERVED, REFERENCE, MISSING = BLUE, VERMILLION, "#d9d9d9"
SURFACE = "#c9ced4"

MAX_ARROWS = 600
MAX_SURFACE_VERTICES = 2_500  # of one mesh: matplotlib sorts and shades every triangle
MIN_RASTERIZED = 5_000  # points from which a vector file would become unwieldy
_MIN_SIDE = 0.2  # of the longest: a side of a 3-D box that is seen shorter has no room for ticks
LEGEND_ROW = 0.21  # inches
LARGELY_ESTIMATED = 1 / 3  # share of missing landmarks from which a specimen is drawn hollow

# light to dark, so that a large error stands out on white paper and in grey print
ERRORS: Colormap = LinearSegmentedColormap.from_list(
    "defgpa_errors", ["#bcd7ea", "#56B4E9", "#0072B2", "#5b2a86", "#3a0a3a"]
)


AnyAxes = Any  # plane or 3-D: matplotlib has no type for what both can do


class Artists(SimpleNamespace):
    """What a plot drew, under the names that its function lists."""


class Surface(NamedTuple):
    """The vertices of a mesh that are drawn, and the triangles between them."""

    vertices: Index  # (k,)
    faces: Index  # (t, 3), numbered within ``vertices``
    n_vertices: int  # of the mesh itself

    @property
    def note(self) -> str:
        """``surface of 2,500 of 20,000 vertices``, or nothing where all are drawn."""
        drawn = len(self.vertices)
        if drawn == self.n_vertices:
            return ""
        return f"surface drawn with {drawn:,} of {self.n_vertices:,} vertices"


# Axes


def prepare_axes(
    ax: Axes | None, n_dims: int, points: Array | None = None, height: float | None = None
) -> AnyAxes:
    """Return the axes given, if they have the right dimension, or new ones in a new figure.

    A new figure is as high (in inches) as asked for, or as the points (…, n_dims) that it is to
    show need at a width of 6.4, so that little of it stays empty.
    """
    if ax is None:
        from matplotlib import pyplot

        size = (6.4, height or choose_height(6.4, n_dims, points))
        projection = {"projection": "defgpa"} if n_dims == 3 else {}
        return pyplot.subplots(figsize=size, subplot_kw=projection, layout="constrained")[1]
    if n_dims == 3 and not hasattr(ax, "zaxis"):
        raise ShapeError("3-D shapes need 3-D axes: plt.subplots(subplot_kw={'projection': '3d'}).")
    return ax


def divide_axes(ax: AnyAxes, count: int) -> tuple[AnyAxes, ...]:
    """Divide the place of axes into panels side by side, of which the axes are the first.

    Axes that were placed by hand get the others on their right.
    """
    spec = ax.get_subplotspec()
    if spec is None:
        others = [ax.inset_axes((1.2 * k, 0.0, 1.0, 1.0)) for k in range(1, count)]
        return (ax, *others)
    cells = spec.subgridspec(1, count)
    ax.set_subplotspec(cells[0])
    return (ax, *(ax.figure.add_subplot(cells[k]) for k in range(1, count)))


def choose_height(width: float, n_dims: int, points: Array | None) -> float:
    """Return how high (in inches) a plot of points to equal scales is, with labels and legend."""
    if points is None or n_dims == 3:
        return (0.75 if n_dims == 2 else 0.85) * width
    across, up = np.ptp(select_finite_points(points), axis=0)
    return float(np.clip((width - 0.8) * up / (across or 1.0) + 1.1, 0.35 * width, 1.25 * width))


def set_equal_scales(ax: AnyAxes, n_dims: int, unit: str | None) -> None:
    """Set equal scales on all axes, and label them with what they measure."""
    ax.set(**{f"{axis}label": add_unit(axis, unit) for axis in "xyz"[:n_dims]})
    if n_dims == 2:
        ax.set_aspect("equal", adjustable="box")
        ax.autoscale_view()
    else:
        _fit_box(ax)


def name_principal_axes(ax: AnyAxes, unit: str | None) -> None:
    """Label those 3-D axes that have numbers as the principal axes of a shape."""
    for k, axis in enumerate((ax.xaxis, ax.yaxis, ax.zaxis), start=1):
        if axis.get_label_text():
            axis.set_label_text(add_unit(f"axis {k}", unit))


def _fit_box(ax: AnyAxes) -> None:
    """Make the 3-D box as long, wide and high as the limits, and let it fill the picture."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    lengths = np.array([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim()), np.ptp(ax.get_zlim())])
    ax.set_box_aspect(lengths)
    corners = project_box(ax)
    ax.set_box_aspect(lengths, zoom=0.8 * float(ax.viewLim.width / 2 / np.abs(corners).max()))
    if isinstance(ax, SpaceAxes):
        ax.fit_figure()
    # sides as they are seen, in shares of the longest
    sides = np.linalg.norm(corners[[1, 2, 4]] - corners[0], axis=1)
    for axis, share in zip((ax.xaxis, ax.yaxis, ax.zaxis), sides / sides.max(), strict=True):
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        # matplotlib measures the pad by the sides of the box: beside a thin one it vanishes
        axis.labelpad = float(np.clip(4.0 * lengths.max() / np.median(lengths), 9.0, 40.0))
        if share < _MIN_SIDE:
            axis.set_major_locator(NullLocator())
            axis.set_label_text("")
        else:
            axis.set_major_locator(MaxNLocator(max(1, round(4 * share)), min_n_ticks=1))


def look_at_broadside(ax: AnyAxes, points: Array) -> None:
    """Turn 3-D axes so that the broadest side of the points is seen, a little from above."""
    axes = find_principal_axes(select_finite_points(points))
    eye = np.array([0.25, -0.5, 1.0]) @ axes
    eye /= np.linalg.norm(eye)
    azimuth, elevation = np.arctan2(eye[1], eye[0]), np.arcsin(np.clip(eye[2], -1.0, 1.0))
    # where matplotlib would put the z axis, and by how much the second axis is turned from there
    up = np.array([-np.cos(azimuth), -np.sin(azimuth), 0.0]) * np.sin(elevation)
    up[2] = np.cos(elevation)
    roll = np.arctan2(axes[1] @ np.cross(up, eye), axes[1] @ up)
    ax.view_init(*np.rad2deg([elevation, azimuth, roll]))


def find_principal_axes(points: Array) -> Array:
    """Return the principal axes (n_dims, n_dims) of points as rows, a right-handed system."""
    axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    axes = axes * np.where(signs == 0, 1.0, signs)[:, None]
    if len(axes) == 3 and np.linalg.det(axes) < 0:
        axes[2] *= -1
    return np.asarray(axes)


def hide_frame(ax: AnyAxes) -> None:
    """Remove ticks and spines, for axes that show a shape without coordinates."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)


def add_legend(
    ax: AnyAxes,
    handles: Sequence[Artist] | None = None,
    width: float | None = None,
    *,
    may_grow: bool = False,
    **options: object,
) -> Artist:
    """Add a legend above the axes, its markers large and opaque enough to be seen.

    It has as many columns, up to four, as fit into the width in inches: by default, of the axes.
    A figure that may grow becomes higher by the rows of the legend but the first.
    """
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 4}
    place |= {"borderaxespad": 0.2}
    place |= options
    shown = ax.get_legend_handles_labels()[0] if handles is None else handles
    place["ncols"] = count_legend_columns(ax, shown, place["ncols"], width)
    legend = ax.legend(handles=shown, frameon=False, **place)
    if may_grow:
        n_rows = -(-len(shown) // place["ncols"])
        ax.figure.set_figheight(ax.figure.get_figheight() + LEGEND_ROW * (n_rows - 1))
    for handle in legend.legend_handles:
        handle.set_alpha(1.0)
        if hasattr(handle, "set_markersize"):
            handle.set_markersize(max(5.0, handle.get_markersize()))
            handle.set_markeredgewidth(max(1.0, handle.get_markeredgewidth()))
    return legend


def count_legend_columns(
    ax: AnyAxes, handles: Sequence[Artist], max_columns: int, width: float | None = None
) -> int:
    """Count the columns of a legend that fit into the width in inches: by default, of the axes.

    A layout would widen the place of axes that are narrower than their legend, at the cost of
    others beside them.
    """
    if width is None:
        spec, margins = ax.get_subplotspec(), ax.figure.subplotpars
        cells = 1.0 if spec is None else spec.get_position(ax.figure).width
        share = 1.0 if spec is None else cells / (margins.right - margins.left)
        width = 0.9 * share * ax.figure.get_figwidth()
    needed = np.array([0.5 + 0.085 * len(str(handle.get_label())) for handle in handles])
    for n_columns in range(min(max_columns, len(needed)), 1, -1):
        columns = np.array_split(needed, n_columns)  # as matplotlib fills them
        if sum(column.max() for column in columns) <= width:
            return n_columns
    return 1


def make_handle(marker: str, color: str, label: str, **look: Any) -> Line2D:
    """Return a marker for the legend."""
    return Line2D([], [], color=color, marker=marker, label=label, **look)


def add_note(ax: AnyAxes, text: str) -> Text | None:
    """Write a small note above plane axes or into the corner of 3-D ones; nothing if empty."""
    if not text:
        return None
    look = {"fontsize": "x-small", "color": "#555555", "va": "bottom", "ha": "right"}
    if hasattr(ax, "zaxis"):
        return ax.text2D(1.0, -0.02, text, transform=ax.transAxes, **look)
    return ax.text(1.0, 1.01, text, transform=ax.transAxes, **look)


# Words and numbers


def format_number(value: float, unit: str | None) -> str:
    """Return ``7460 mm``: three digits, never an exponent that nobody reads."""
    digits = np.format_float_positional(value, precision=3, fractional=False, trim="-")
    return digits if unit is None else f"{digits} {unit}"


def add_unit(quantity: str, unit: str | None) -> str:
    """Return ``residual (mm)``, or ``residual`` where no unit was given."""
    return quantity if unit is None else f"{quantity} ({unit})"


def shorten(name: str, max_length: int = 22) -> str:
    """Return a name that fits beside an axis: its beginning and its end."""
    if len(name) <= max_length:
        return name
    return f"{name[: max_length // 2 - 1]}…{name[-max_length // 2 :]}"


def break_name(name: str, max_length: int = 22, max_lines: int = 2) -> str:
    """Return a name in lines that fit beside an axis, the last of them shortened if need be."""
    lines = wrap(name, max_length, break_long_words=False, break_on_hyphens=False) or [name]
    merged = [*lines[: max_lines - 1], " ".join(lines[max_lines - 1 :])]
    return "\n".join(shorten(line, max_length) for line in merged if line)


def label_colorbar(bar: Colorbar, text: str, inches: float, note: str = "") -> None:
    """Write beside a colour bar what it measures, in lines that are no longer than it is."""
    max_length = max(12, int(inches / 0.085))
    words = f"{text}; {note}" if note else text
    if note and len(words) > max_length:
        words = f"{fill(text, max_length)}\n{note}"
    bar.set_label(words if "\n" in words else fill(words, max_length))


def label_ticks(
    axis: Axis, names: Sequence[str], max_names: int, per_cell: int = 1, **look: Any
) -> None:
    """Label at most so many cells along an axis, which has ``per_cell`` labels a cell."""
    chosen = range(0, len(names), max(per_cell, -(-len(names) // max(max_names, 1))))
    places = (np.array(chosen) + 0.5) / per_cell - 0.5
    axis.set_ticks(list(places), [shorten(names[k]) for k in chosen], **look)


def annotate_point(
    ax: AnyAxes,
    text: str,
    point: Sequence[object] | Array,
    shift: tuple[float, float],
    size: str | float = "small",
    **look: object,
) -> Annotation:
    """Write a text so many points to the right of a point, and above it."""
    place = {"xytext": shift, "textcoords": "offset points", "fontsize": size}
    return ax.annotate(text, point, **place, **look)


def label_points(
    ax: AnyAxes,
    points: Array,
    texts: Sequence[str],
    avoid: Array | None = None,
    **look: object,
) -> list[Annotation]:
    """Write texts beside points so that none lies over another or over a point.

    Further points (n, 2) to keep free are those to ``avoid``.

    Eight places around each point are tried in turn; a text that fits nowhere is left out, also
    where only the numbers beside the axes have room. The limits of the axes must be final: what is
    free depends on them.
    """
    ax.autoscale_view()  # matplotlib would wait until it draws
    pixels = ax.transData.transform(points)
    per_point = ax.figure.dpi / 72.0
    height, width = 1.25 * _LABEL_SIZE * per_point, 0.6 * _LABEL_SIZE * per_point
    max_distance = 4.0 * per_point
    markers = np.column_stack([pixels - 2.0 * per_point, pixels + 2.0 * per_point])
    free = ax.transData.transform(np.empty((0, 2)) if avoid is None else avoid)
    written = [*np.column_stack([free, free])]
    has_numbers = len(ax.get_xticks()) > 0
    left, right = ax.bbox.intervalx if has_numbers else (-np.inf, np.inf)
    labels = []
    for k, text in enumerate(texts):
        taken = np.array([*np.delete(markers, k, axis=0), *written]).reshape(-1, 4)
        for across, up in _LABEL_PLACES:
            low = pixels[k] + [
                across * max_distance + (across - 1) / 2 * width * len(text),
                up * max_distance + (up - 1) / 2 * height,
            ]
            box = np.concatenate([low, low + np.array([width * len(text), height])])
            is_free = (box[2:] < taken[:, :2]).any(axis=1) | (taken[:, 2:] < box[:2]).any(axis=1)
            if is_free.all() and left <= box[0] and box[2] <= right:
                written.append(box)
                aligned = {
                    "ha": {-1: "right", 0: "center", 1: "left"}[across],
                    "va": {-1: "top", 0: "center", 1: "bottom"}[up],
                }
                shift = (4.0 * across, 4.0 * up)
                labels.append(
                    annotate_point(ax, text, points[k], shift, _LABEL_SIZE, **aligned, **look)
                )
                break
    return labels


_LABEL_SIZE = 8.0  # points, of the letters beside points
_LABEL_PLACES = ((1, 1), (1, 0), (1, -1), (-1, 1), (-1, 0), (-1, -1), (0, 1), (0, -1))


def write_in_cell(
    ax: AnyAxes, row: int, column: int, text: str, dark: bool, **look: object
) -> Text:
    """Write a text in the middle of a cell of an image, white where the cell is dark."""
    colour = "white" if dark else "black"
    return ax.text(column, row, text, ha="center", va="center", color=colour, **look)


# What is drawn of very much


def choose_evenly(count: int, max_count: int = 60_000) -> Index:
    """Return all of ``range(count)``, or every second, third, …: at most ``max_count``, evenly."""
    return np.arange(0, count, max(1, -(-count // max_count)))


def state_thinning(label: str, count: int, drawn: int) -> str:
    """Return the label, with a note on what was left out."""
    return label if drawn == count else f"{label} ({drawn:,} of {count:,} drawn)"


def select_finite_points(points: Array) -> Array:
    """Return the points (n_points, n_dims) of any stack that are not NaN."""
    flat = points.reshape(-1, points.shape[-1])
    return flat[~np.isnan(flat[:, 0])]


def choose_marker_size(count: int) -> float:
    """Return a marker size in points: smaller the more markers there are."""
    return float(np.clip(60.0 / np.sqrt(max(count, 1)), 1.5, 7.0))


def choose_opacity(n_layers: int) -> float:
    """Return an opacity at which the densest places of many layers still stand out."""
    return float(np.clip(8.0 / max(n_layers, 1), 0.08, 0.8))


# Points, lines, groups and surfaces


def draw_dots(
    ax: AnyAxes, points: Array, label: str, marker: str, color: str | None = None, **look: object
) -> Line2D:
    """Draw a cloud of markers as one line artist, thinned if it is very large."""
    chosen = points[choose_evenly(len(points))]
    return ax.plot(
        *chosen.T,
        linestyle="none",
        marker=marker,
        color=color,
        label=state_thinning(label, len(points), len(chosen)),
        rasterized=len(chosen) > MIN_RASTERIZED,
        **look,
    )[0]


def draw_groups(
    ax: AnyAxes,
    points: Array,
    groups: Sequence[Hashable] | None,
    *,
    hollow: Mask | None = None,
) -> dict[str, Line2D]:
    """Draw specimens (n, 2) with the colour and marker of their group; every specimen is drawn.

    Hollow ones are drawn as outlines of the same markers.
    """
    labels = name_groups(groups, len(points), "specimens")
    size = 0.9 * choose_marker_size(len(points))
    drawn = {}
    for name, (colour, marker) in assign_looks(labels).items():
        members = np.array([label == name for label in labels])
        outlined = members & (np.zeros(len(points), dtype=bool) if hollow is None else hollow)
        look: dict[str, Any] = {"linestyle": "none", "marker": marker, "alpha": 0.85}
        look |= {"rasterized": bool(members.sum() > MIN_RASTERIZED), "markersize": size}
        solid = points[members & ~outlined]
        drawn[name] = ax.plot(*solid.T, color=colour, label=name, markeredgewidth=0, **look)[0]
        if outlined.any():
            edge = {"markerfacecolor": "white", "markeredgecolor": colour, "markeredgewidth": 1}
            ax.plot(*points[outlined].T, label="_estimated", **edge, **look)
    return drawn


def name_groups(groups: Sequence[Hashable] | None, n_shapes: int, label: str) -> list[str]:
    """Return one group name per specimen; the same label for all where no groups are given."""
    if groups is None:
        return [label] * n_shapes
    names = ["not stated" if g is None or g != g else str(g) for g in groups]
    if len(names) != n_shapes:
        raise ShapeError(f"There must be one group a shape, {n_shapes} in all; got {len(names)}.")
    return names


def draw_outline(ax: AnyAxes, points: Array, colour: str, kind: str) -> Polygon | None:
    """Draw the hull of points (n, 2) or the ellipse of 95 % of a normal distribution.

    None is drawn around fewer than three points.
    """
    if len(points) < 3:
        return None
    # an ellipse of √5.991 standard deviations holds 95 % of a normal distribution in the plane
    corners = (
        compute_ellipses(points, np.sqrt(5.991), 100)[0]
        if kind == "ellipse"
        else _find_hull(points)
    )
    return ax.fill(*corners.T, facecolor=colour, edgecolor=colour, alpha=0.12, linewidth=1)[0]


def _find_hull(points: Array) -> Array:
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:  # all on a line
        return points


def compute_ellipses(points: Array, n_deviations: float, n_corners: int) -> Array:
    """Compute ellipses around a cloud, one in every pair of its principal axes.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_dims)
        NaN rows are left out.

    Returns
    -------
    ndarray of shape (n_dims (n_dims − 1) / 2, n_corners, n_dims)
    """
    cloud = select_finite_points(points)
    d = cloud.shape[1]
    covariance = np.cov(cloud.T) if len(cloud) > 1 else np.zeros((d, d))
    values, vectors = np.linalg.eigh(covariance)
    radii = n_deviations * np.sqrt(np.maximum(values, 0.0))
    angle = np.linspace(0.0, 2.0 * np.pi, n_corners)[:, None]
    rings = [
        np.cos(angle) * radii[a] * vectors[:, a] + np.sin(angle) * radii[b] * vectors[:, b]
        for a in range(d)
        for b in range(a + 1, d)
    ]
    return np.stack(rings) + cloud.mean(axis=0)


def draw_segments(ax: AnyAxes, starts: Array, ends: Array, **look: Any) -> Artist:
    """Draw straight lines between pairs of points, as one collection."""
    return draw_lines(ax, np.stack([starts, ends], axis=1), **look)


def draw_lines(ax: AnyAxes, lines: Array, **look: Any) -> Artist:
    """Draw lines (n_lines, n_points, n_dims) as one collection that the limits count."""
    if lines.shape[-1] == 3:
        from mpl_toolkits.mplot3d.art3d import Line3DCollection

        ax.auto_scale_xyz(*lines.reshape(-1, 3).T)
        return ax.add_collection3d(Line3DCollection(list(lines), **look))
    from matplotlib.collections import LineCollection

    return ax.add_collection(LineCollection(list(lines), **look))


def draw_links(
    ax: AnyAxes, points: Array, links: Iterable[tuple[int, int]], **look: Any
) -> Artist | None:
    """Draw the lines between landmarks that the shapes come with, if any; None otherwise."""
    pairs = np.array(list(links), dtype=np.intp).reshape(-1, 2)
    if not len(pairs):
        return None
    return draw_segments(ax, points[pairs[:, 0]], points[pairs[:, 1]], **look)


def draw_arrows(ax: AnyAxes, tails: Array, vectors: Array, color: str, **look: object) -> Artist:
    """Draw arrows in the units of the axes, whose heads the view holds."""
    if tails.shape[1] == 2:
        look = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "headwidth": 4, **look}
    arrows = ax.quiver(*tails.T, *vectors.T, color=color, **look)
    draw_dots(ax, tails + vectors, "_heads", "None")
    return arrows


def choose_surface(points: Array, faces: Index | None) -> Surface | None:
    """Return the surface to draw of landmarks with triangles; None without triangles.

    ``points`` (n_landmarks, n_dims) decide where vertices are dense.
    """
    if faces is None or not len(faces):
        return None
    return Surface(*decimate_surface(points, faces, MAX_SURFACE_VERTICES), len(points))


def draw_surface(
    ax: AnyAxes, points: Array, surface: Surface, values: Array | None = None, **look: Any
) -> Poly3DCollection:
    """Draw landmarks (n_landmarks, 3) as a shaded surface, coloured by values (n_landmarks,)."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    corners = points[surface.vertices][surface.faces]
    complete = ~np.isnan(corners).any(axis=(1, 2))
    look = {"linewidths": 0, "rasterized": True, **look}
    drawn = Poly3DCollection(corners[complete], shade=values is None, **look)
    if values is not None:
        drawn.set_array(values[surface.vertices][surface.faces].mean(axis=1)[complete])
        drawn.set_cmap(ERRORS)
        drawn.set_clim(0.0, float(np.nanmax(values)) or 1.0)
    ax.add_collection3d(drawn)
    ax.auto_scale_xyz(*select_finite_points(points).T)
    return drawn


def project_surface(ax: AnyAxes, points: Array, surface: Surface, values: Array) -> Artist:
    """Draw a surface on 2-D axes as seen along the last axis of points (n_landmarks, 3).

    The triangles are painted from the farthest to the nearest, coloured by values (n_landmarks,)
    from 0 to 1 and shaded.
    """
    from matplotlib.collections import PolyCollection

    corners = points[surface.vertices][surface.faces]
    order = np.argsort(corners[:, :, 2].mean(axis=1))
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    facing = np.abs(normals @ [-0.3, 0.4, 0.87]) / np.where(lengths > 0, lengths, 1.0)
    base = np.asarray(to_rgb(SURFACE))
    share = np.clip(values[surface.vertices][surface.faces].mean(axis=1), 0.0, 1.0)[:, None]
    tint = ERRORS(share[:, 0])[:, :3]
    colours = (0.45 + 0.55 * facing[:, None]) * ((1.0 - share) * base + share * tint)
    look = {"facecolors": colours[order], "edgecolors": "face", "linewidths": 0.2}
    return ax.add_collection(PolyCollection(list(corners[order, :, :2]), rasterized=True, **look))
