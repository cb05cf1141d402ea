"""How much every landmark varies: an ellipse around its mean, or a colour on the mesh."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.errors import ShapeError
from defgpa.meshes import Mesh
from defgpa.plot import _style as style


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
    space : {"superimposed", "carried", "aligned"}
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
        [_ellipses(points[:, j], deviations) for j in style.thinned(len(means), style.MOST_ARROWS)]
    )
    drawn = style.polylines(axes, lines, colors=style.REFERENCE, linewidths=1, zorder=3)
    drawn.set_label(f"{deviations:g} standard deviations")
    size = 0.5 * style.marker_size(len(means))
    dots = style.dots(axes, means, "mean", "o", style.BLACK, markersize=size, markeredgewidth=0)
    style.as_map(axes, dim, unit)
    style.legend(axes, [cloud, drawn, dots], ncols=3)
    return style.Artists(ellipses=drawn, specimens=cloud, means=dots)


def displacement_heat(start: Mesh, end: Mesh, ax: Axes | None = None, **look: Any) -> style.Artists:
    """The end of a deformation as a surface, coloured by how far each vertex moved from the start.

    Parameters
    ----------
    start, end : Mesh
        The same vertices and faces, such as two of ``defgpa.exports.component_meshes``.
    ax : Axes, optional
        3-D axes; a new figure by default.
    **look
        ``label``: what the colours measure.

    Returns
    -------
    Artists
        ``surface``, coloured, and its ``scale``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> corner = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> raised = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 1]], [[0, 1, 2]])
    >>> ax = Figure().add_subplot(projection="3d")
    >>> displacement_heat(corner, raised, ax).surface.get_array().round(3).tolist()
    [0.333]
    """
    if start.vertices.shape != end.vertices.shape or not len(end.faces):
        raise ShapeError(
            "A heat of displacement needs two meshes with the same vertices, and faces; got "
            f"{start!r} and {end!r}."
        )
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    axes = style.axes_for(ax, 3)
    moved = np.linalg.norm(end.vertices - start.vertices, axis=1)
    surface = Poly3DCollection(end.vertices[end.faces], cmap=style.ERRORS, linewidths=0)
    surface.set_array(moved[end.faces].mean(axis=1))
    surface.set_clim(0.0, float(moved.max()) or 1.0)
    axes.add_collection3d(surface)
    axes.auto_scale_xyz(*end.vertices.T)
    style.as_map(axes, 3, None)
    axes.set_axis_off()
    scale = axes.figure.colorbar(
        surface, ax=axes, shrink=0.6, label=look.get("label", "displacement")
    )
    return style.Artists(surface=surface, scale=scale)


def _ellipses(cloud: Array, deviations: float) -> Array:
    """(d(d−1)/2, p, d): ellipses in every pair of principal axes of the points of a landmark."""
    known = style.known(cloud)
    d = known.shape[1]
    covariance = np.cov(known.T) if len(known) > 1 else np.zeros((d, d))
    values, vectors = np.linalg.eigh(covariance)
    reach = deviations * np.sqrt(np.maximum(values, 0.0))
    angle = np.linspace(0.0, 2.0 * np.pi, 60)[:, None]
    rings = [
        np.cos(angle) * reach[a] * vectors[:, a] + np.sin(angle) * reach[b] * vectors[:, b]
        for a in range(d)
        for b in range(a + 1, d)
    ]
    return np.stack(rings) + known.mean(axis=0)
