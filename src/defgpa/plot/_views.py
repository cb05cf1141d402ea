"""Show shapes and their changes in the plane: projection, magnification, small side pictures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection

from defgpa.arrays import Array
from defgpa.plot import _style as style
from defgpa.plot._grid import deformation_grid
from defgpa.warps import fit_interpolating_spline

Links = Iterable[tuple[int, int]]

_MAX_KNOTS = 300  # of the spline that draws a grid


class View(NamedTuple):
    """A rotation of shapes to the plane of the picture, its last axis towards the reader."""

    axes: Array  # (n_dims, n_dims), one column per axis

    def __call__(self, points: Array) -> Array:
        """Project points or displacements (…, n_dims) to the picture (…, 2)."""
        return np.asarray(points @ self.axes[:, :2])

    def turn(self, points: Array) -> Array:
        """Rotate points (…, n_dims) so that the picture shows their first two coordinates."""
        return np.asarray(points @ self.axes)


def choose_view(mean: Array, changes: Array | None = None) -> View:
    """Choose the projection of a shape (m, d) to the plane: the identity in 2-D.

    A 3-D shape is seen along the direction in which both the shape and its changes (…, m, d)
    extend least, its longest axis lying across.
    """
    if mean.shape[1] == 2:
        return View(np.eye(2))
    spread = _scatter(mean - mean.mean(axis=0))
    if changes is not None:
        spread = spread + _scatter(changes.reshape(-1, 3))
    vectors = np.linalg.eigh(spread)[1]
    plane = vectors[:, 1:]
    flat = (mean - mean.mean(axis=0)) @ plane
    is_single = len(flat) == 1  # no axis lies across, any does
    across = plane @ np.linalg.svd(flat, full_matrices=is_single)[2].T
    axes = np.column_stack([across, vectors[:, 0]])
    axes[:, :2] *= np.sign(axes[np.abs(axes[:, :2]).argmax(axis=0), [0, 1]])
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return View(axes)


def _scatter(vectors: Array) -> Array:
    """Return the matrix of second moments (3, 3), of trace 1 unless all vectors are zero."""
    moments = vectors.T @ vectors
    return np.asarray(moments / (np.trace(moments) or 1.0))


def choose_magnification(lengths: Array, mean: Array, magnify: float | None) -> float:
    """Return what is asked for, or 1, 2 or 5 times a power of ten that makes changes visible.

    The longest of the lengths (arrows, radii) becomes at most 0.15 of the extent of the mean, the
    geometric mean of its width and height.
    """
    if magnify is not None:
        return magnify
    longest = float(np.max(lengths, initial=0.0))
    if not longest > 0:
        return 1.0
    extents = np.ptp(mean, axis=0)
    extent = float(np.sqrt(extents.max() * max(extents.min(), 0.1 * extents.max())))
    factor = 0.15 * extent / longest
    if not factor > 0:  # of a single landmark
        return 1.0
    power = 10.0 ** np.floor(np.log10(factor))
    return float(max(step * power for step in (1.0, 2.0, 5.0) if step * power <= factor))


def state_magnification(magnify: float) -> str:
    """Return ``, magnified × 10``, or nothing."""
    return "" if magnify == 1.0 else f", magnified × {magnify:g}"


def prepare_map_axes(ax: Axes | None, points: Array | None = None) -> style.AnyAxes:
    """Return axes for a shape (m, 2) in units of centroid size: equal scales, no ticks."""
    axes = style.prepare_axes(ax, 2, points)
    axes.set_aspect("equal", adjustable="datalim")
    style.hide_frame(axes)
    return axes


def draw_mean(ax: style.AnyAxes, points: Array, links: Links, **look: Any) -> Artist | None:
    """Draw the links of a mean shape behind everything else, if there are any."""
    return style.draw_links(ax, points, links, **{"color": style.MISSING, "zorder": 0, **look})


def draw_change(
    ax: style.AnyAxes,
    mean: Array,
    shape: Array,
    view: View,
    links: Links,
    surface: style.Surface | None,
) -> None:
    """Draw how a shape (m, d) differs from the mean (m, d), on 2-D axes of its own.

    In 2-D a grid over three landmarks or more, bent to the shape; of a mesh the surface of the
    shape, darker the farther it is from the mean; otherwise lines from the mean to its dots.
    """
    flat_mean, flat_shape = view(mean), view(shape)
    if surface is not None:
        change = np.linalg.norm(shape - mean, axis=1)
        share = change / (float(change.max()) or 1.0)
        style.project_surface(ax, view.turn(shape), surface, share)
    elif mean.shape[1] == 2 and len(mean) > 2:  # fewer landmarks bend no grid
        knots = style.choose_evenly(len(mean), _MAX_KNOTS)
        extents = np.ptp(mean, axis=0)
        cells = int(np.clip(5.0 * extents.max() / max(extents.min(), 1e-12), 10, 30))
        warp = fit_interpolating_spline(mean[knots], shape[knots])
        # a plain function: folds of a magnified change would mean nothing
        deformation_grid(lambda points: warp(points), mean, ax, cells=cells)
    else:
        drawn = style.choose_evenly(len(mean), style.MAX_ARROWS)
        size = 0.5 * style.choose_marker_size(len(drawn))
        dots = {"markersize": size, "markeredgewidth": 0}
        style.draw_dots(ax, flat_mean[drawn], "mean", "o", style.GREY, **dots)
        lines = {"colors": style.SKY, "linewidths": 1.0, "zorder": 1}
        style.draw_segments(ax, flat_mean[drawn], flat_shape[drawn], **lines)
        # the dots say which end of a line is the shape
        style.draw_dots(ax, flat_shape[drawn], "shape", "o", style.OBSERVED, **dots)
    style.draw_links(ax, flat_shape, links, colors=style.OBSERVED, linewidths=0.9)
    ax.set_aspect("equal", adjustable="box")
    ax.set_axis_off()


def find_limits(view: View, shapes: Iterable[Array]) -> Array:
    """Return limits (2, 2) that hold all shapes (m, d) in the picture, with a tenth around."""
    points = np.concatenate([view(shape) for shape in shapes])
    low, high = points.min(axis=0), points.max(axis=0)
    padding = 0.1 * float((high - low).max())
    return np.stack([low - padding, high + padding], axis=1)


def draw_circles(ax: style.AnyAxes, centres: Array, radii: Array, **look: Any) -> EllipseCollection:
    """Draw circles in the units of the axes, which the view holds."""
    widths = 2.0 * radii
    placed = {"units": "xy", "offsets": centres, "transOffset": ax.transData}
    circles = ax.add_collection(EllipseCollection(widths, widths, 0.0 * widths, **placed, **look))
    for sign in (-1.0, 1.0):
        style.draw_dots(ax, centres + sign * radii[:, None], "_rims", "None")
    return circles
