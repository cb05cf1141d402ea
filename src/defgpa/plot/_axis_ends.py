"""Draw the shapes at both ends of axes of shape around a scatter plot."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array
from defgpa.plot import _style as style
from defgpa.plot._views import (
    View,
    choose_magnification,
    choose_view,
    draw_change,
    find_limits,
)

Links = Sequence[tuple[int, int]]


class ShapeAxis(NamedTuple):
    """An axis of shape: the mean (m, d), its change (2, m, d) to the low and high end, titles."""

    mean: Array
    changes: Array
    titles: tuple[str, str]


def draw_ends(
    ax: style.AnyAxes,
    horizontal: ShapeAxis | None,
    vertical: ShapeAxis | None,
    links: Links = (),
    surface: style.Surface | None = None,
    magnify: float | None = None,
) -> tuple[tuple[style.AnyAxes, ...], float]:
    """Draw shapes at both ends of the horizontal axis below a plot, of the vertical beside it.

    Axes of the same mean are seen from the same side, to one scale, with one magnification.

    Returns
    -------
    axes : tuple of Axes
        Of the shapes: low and high end of the horizontal axis, then of the vertical one.
    magnify : float
        By how much the changes are magnified, the largest where they differ.
    """
    sides = [axis for axis in (horizontal, vertical) if axis is not None]
    is_shared = len(sides) == 2 and sides[0].mean is sides[1].mean
    displays = (
        [_look_at(sides, magnify)] * 2 if is_shared else [_look_at([s], magnify) for s in sides]
    )
    inches = ax.figure.get_figwidth()
    places = _make_end_axes(ax, [display.limits for display in displays], horizontal, vertical)
    for k, (axis, display) in enumerate(zip(sides, displays, strict=False)):
        # kept together by no-break spaces
        magnified = "" if display.magnify == 1.0 else f", change\xa0×\xa0{display.magnify:g}"
        for place, change, title in zip(
            places[2 * k : 2 * k + 2], axis.changes, axis.titles, strict=True
        ):
            shape = axis.mean + display.magnify * change
            draw_change(place, axis.mean, shape, display.view, links, surface)
            place.set(xlim=display.limits[0], ylim=display.limits[1])
            spec = place.get_subplotspec()
            width = 2.2 if spec is None else spec.get_position(ax.figure).width * inches
            words = fill(f"{title}{magnified}", max(12, int(width / 0.062)))
            place.set_title(words, fontsize=8, pad=2)
    return places, max(display.magnify for display in displays)


class _Display(NamedTuple):
    view: View
    magnify: float
    limits: Array


def _look_at(axes: Sequence[ShapeAxis], magnify: float | None) -> _Display:
    """Choose view, magnification and limits for axes of the same mean."""
    mean, changes = axes[0].mean, np.concatenate([axis.changes for axis in axes])
    view = choose_view(mean, changes)
    lengths = np.linalg.norm(view(changes), axis=2)
    factor = max(1.0, choose_magnification(lengths, view(mean), None))
    factor = float(factor if magnify is None else magnify)
    return _Display(view, factor, find_limits(view, [mean, *(mean + factor * changes)]))


def _make_end_axes(
    ax: style.AnyAxes,
    limits: Sequence[Array],
    horizontal: ShapeAxis | None,
    vertical: ShapeAxis | None,
) -> tuple[style.AnyAxes, ...]:
    """Divide the place of the axes: two small axes below it, two on its right (low end first).

    They are as high and wide as shapes within the limits need. Axes that were placed by hand have
    nothing to divide; the small ones are put outside of them.
    """
    ratios = [float(np.divide(*np.ptp(limit, axis=1)[::-1])) for limit in limits]
    spec = ax.get_subplotspec()
    if spec is None:
        low, high = -0.2 - 0.4 * min(ratios[0], 1.0), 0.4 * min(ratios[0], 1.0)
        below = [(0.0, low, 0.48, high), (0.52, low, 0.48, high)] if horizontal else []
        beside = [(1.04, 0.0, 0.46, 0.45), (1.04, 0.5, 0.46, 0.45)] if vertical else []
        return tuple(ax.inset_axes(place) for place in (*below, *beside))
    figure = ax.figure
    width, height = spec.get_position(figure).size * figure.get_size_inches()
    title = 0.25 / height
    depth = np.clip(0.36 * width / height * ratios[0] + title, 0.12, 0.36) if horizontal else 0.0
    breadth = np.clip(0.36 * height / width / ratios[-1], 0.16, 0.34) if vertical else 0.0
    heights = (1 - depth - 0.04, 0.04, depth) if horizontal else (1.0,)  # a gap for the titles
    widths = (1 - breadth, breadth) if vertical else (1.0,)
    parts = spec.subgridspec(len(heights), len(widths), width_ratios=widths, height_ratios=heights)
    ax.set_subplotspec(parts[0, 0])
    row = parts[2, 0].subgridspec(1, 2) if horizontal else []
    column = parts[0, 1].subgridspec(2, 1) if vertical else []
    cells = [*(row[k] for k in (0, 1) if horizontal), *(column[k] for k in (1, 0) if vertical)]
    return tuple(figure.add_subplot(cell) for cell in cells)
