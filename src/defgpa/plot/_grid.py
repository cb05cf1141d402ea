"""Deformation grids: a square grid, and its image under a warp.

In 3-D the grid lies in a plane through the landmarks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Mask
from defgpa.errors import ShapeError
from defgpa.plot import _style as style


def deformation_grid(
    warp: Callable[[ArrayLike], Array],
    points: ArrayLike,
    ax: Axes | None = None,
    *,
    cells: int = 16,
    normal: ArrayLike | None = None,
    unit: str | None = None,
) -> style.Artists:
    """Draw a square grid over the landmarks of a shape, bent by its warp.

    Parameters
    ----------
    warp : callable
        ``alignment.warps[i]``, its ``inverse()``, or any function from (p, d) to (p, d).
        Where it has a ``jacobian``, lines on which it folds over are marked.
    points : array (m, d)
        Landmarks that say where the grid has to be (``alignment.shapes[i]``; the reference for
        an inverse); NaN rows are left out.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    cells : int
        Along the longer side of the grid; cells are squares before the warp.
    normal : array (3,), optional
        Of the plane of the grid in 3-D; it goes through the centroid of the points. By default
        the plane of their two longest principal axes.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``lines``, ``landmarks``, and ``foldovers``: pieces of lines where the warp folds, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> artists = deformation_grid(lambda p: p + 0.1 * np.sin(3 * p), square, Figure().subplots())
    >>> len(artists.lines.get_segments())
    34
    """
    landmarks = style.select_finite_points(np.asarray(points, dtype=np.float64))
    dim = landmarks.shape[1]
    lines = _make_grid(landmarks, normal, cells)
    flat = lines.reshape(-1, dim)
    images = np.asarray(warp(flat)).reshape(lines.shape)
    axes = style.prepare_axes(ax, dim, images)
    folds_at = getattr(warp, "foldovers", None)  # of a warp that knows them
    folded = np.zeros(len(flat), dtype=bool) if folds_at is None else np.asarray(folds_at(flat))
    drawn = style.draw_lines(axes, images, colors=style.GREY, linewidths=0.7, zorder=1)
    moved, size = np.asarray(warp(landmarks)), 0.7 * style.choose_marker_size(len(landmarks))
    marks = style.draw_dots(
        axes, moved, "landmarks", "o", style.OBSERVED, markersize=size, markeredgewidth=0
    )
    if dim == 3:
        style.look_at_broadside(axes, images)
    folds = _mark_folds(axes, _select_pieces(images, folded.reshape(lines.shape[:2])))
    style.set_equal_scales(axes, dim, unit)
    return style.Artists(lines=drawn, landmarks=marks, foldovers=folds)


def _mark_folds(ax: style.AnyAxes, pieces: Array) -> Artist | None:
    """Draw the folded pieces of the grid, with a legend; None where there are none."""
    if not len(pieces):
        return None
    folds = style.draw_lines(ax, pieces, colors=style.VERMILLION, linewidths=1.8, zorder=2)
    folds.set_label("the warp folds")
    style.add_legend(ax, [folds])
    return folds


def _make_grid(points: Array, normal: ArrayLike | None, cells: int) -> Array:
    """Return lines (n_lines, n_points, d) of a square grid over the points, those along first."""
    centre = points.mean(axis=0)
    directions = np.eye(2) if points.shape[1] == 2 else _choose_directions(points - centre, normal)
    local = (points - centre) @ directions.T
    low, high = local.min(axis=0), local.max(axis=0)
    margin = 0.08 * (high - low).max()
    extent = high - low + 2 * margin
    size = extent.max() / cells or 1.0  # of points in one place
    counts = np.maximum(np.rint(extent / size), 1).astype(int)
    ticks = [
        middle + size * np.linspace(-0.5, 0.5, count + 1) * count
        for middle, count in zip((low + high) / 2, counts, strict=True)
    ]
    n_points = 6 * int(counts.max()) + 1  # of a line: six between two crossings
    u, v = (np.linspace(tick[0], tick[-1], n_points) for tick in ticks)
    along = np.stack([np.broadcast_arrays(u, level) for level in ticks[1]])
    across = np.stack([np.broadcast_arrays(level, v) for level in ticks[0]])
    lines = np.swapaxes(np.concatenate([along, across]), 1, 2)
    return np.asarray(centre + lines @ directions)


def _choose_directions(centred: Array, normal: ArrayLike | None) -> Array:
    """Return orthonormal directions (2, 3) of the slice, the longer extent of the points first."""
    if normal is None:
        return np.asarray(np.linalg.svd(centred, full_matrices=False)[2][:2])
    across = np.asarray(normal, dtype=np.float64)
    if across.shape != (3,) or not (np.isfinite(across).all() and across.any()):
        raise ShapeError(f"The 'normal' of a slice must be a vector (3,). Got {normal!r}.")
    across = across / np.linalg.norm(across)
    flattened = centred - np.outer(centred @ across, across)
    return np.asarray(np.linalg.svd(flattened, full_matrices=False)[2][:2])


def _select_pieces(lines: Array, chosen: Mask) -> Array:
    """Return pieces (k, 2, d) of lines (n, p, d) both ends of which are chosen (n, p)."""
    pieces = np.stack([lines[:, :-1], lines[:, 1:]], axis=2)
    return np.asarray(pieces[chosen[:, :-1] & chosen[:, 1:]])
