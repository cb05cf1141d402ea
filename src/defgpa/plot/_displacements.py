"""From one place to another: how far landmarks, semilandmarks and meshes are from where they were.

Arrows lead from the reference to a shape, lines from observed landmarks to generated ones
(Figure 7) and from digitised points to slid ones; a mesh has colours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from defgpa.alignment import Alignment
from defgpa.errors import ShapeError
from defgpa.meshes import Mesh
from defgpa.plot import _style as style
from defgpa.procrustes import rigid
from defgpa.semilandmarks import SlidShapes
from defgpa.shapes import Shapes


def displacements(
    alignment: Alignment,
    shape: int | str,
    ax: Axes | None = None,
    *,
    magnify: float = 1.0,
    unit: str | None = None,
) -> style.Artists:
    """Arrows from the reference to a shape that was laid onto it rigidly.

    What rigid motion explains is taken out; the arrows are the deformation of the shape.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    shape : int or str
        Which shape, by number or name.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    magnify : float
        Length of the arrows, in true lengths.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``arrows``, and the landmarks of the ``reference`` they start from.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> displacements(a, "apis_02", Figure().subplots(), magnify=5).arrows.N
    43
    """
    i, dim = alignment.shapes.index(shape), alignment.shapes.n_dims
    axes = style.axes_for(ax, dim)
    reference, own = alignment.reference, alignment.shapes[i]
    vectors = magnify * (rigid(own, reference)(own) - reference)
    seen = np.flatnonzero(~np.isnan(vectors[:, 0]))
    drawn = seen[style.thinned(len(seen), style.MOST_ARROWS)]
    times = "" if magnify == 1.0 else f", {magnify:g} × as long"
    label = style.shortened(alignment.shapes.names[i]) + times
    label = style.thinned_label(label, len(seen), len(drawn))
    look: dict[str, Any] = {"width": 0.003, "zorder": 2}
    if dim == 3:
        look = {"linewidth": 0.8, "arrow_length_ratio": 0.25}
    tails, colour = reference[drawn], style.OBSERVED
    arrows = style.arrows(axes, tails, vectors[drawn], colour, label=label, **look)
    size = 0.7 * style.marker_size(len(reference))
    marks = style.dots(
        axes, reference, "reference", "o", style.REFERENCE, markersize=size, markeredgewidth=0
    )
    style.legend(axes, [style.sign(">", colour, label, markersize=5), marks])
    style.as_map(axes, dim, unit)
    return style.Artists(arrows=arrows, reference=marks)


def generated(
    alignment: Alignment,
    shape: int | str | None = None,
    ax: Axes | None = None,
    *,
    unit: str | None = None,
) -> style.Artists:
    """A datum shape beside the one that the reference generates through the inverse warp.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    shape : int or str, optional
        Which shape, by number or name; by default the one that is generated worst.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``observed`` landmarks, ``generated`` ones, and the lines between them, ``errors``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> generated(a, ax=Figure().subplots()).generated.get_xydata().shape
    (43, 2)
    """
    errors = np.sqrt(np.nanmean(alignment.datum_residuals**2, axis=1))
    i = int(np.argmax(errors)) if shape is None else alignment.shapes.index(shape)
    dim = alignment.shapes.n_dims
    axes = style.axes_for(ax, dim)
    seen = alignment.shapes.visible[i]
    observed = alignment.shapes[i][seen]
    made = np.asarray(alignment.warps[i].inverse()(alignment.reference[seen]))
    lines = style.segments(axes, observed, made, colors=style.GREY, linewidths=0.9, zorder=1)
    size = style.marker_size(len(observed))
    ring = {"fillstyle": "none", "markersize": 1.2 * size, "markeredgewidth": 0.2 * size}
    words = f"{style.shortened(alignment.shapes.names[i])}, observed"
    rings = style.dots(axes, observed, words, "o", style.OBSERVED, **ring)
    cross = {"markersize": 1.3 * size, "markeredgewidth": 0.2 * size}
    words = f"generated, RMSE {style.figure(errors[i], unit)}"
    crosses = style.dots(axes, made, words, "+", style.REFERENCE, **cross)
    style.legend(axes)
    style.as_map(axes, dim, unit)
    return style.Artists(observed=rings, generated=crosses, errors=lines)


def sliding(
    before: Shapes,
    after: SlidShapes,
    shape: int | str,
    ax: Axes | None = None,
    *,
    unit: str | None = None,
) -> style.Artists:
    """One shape with its semilandmarks as digitised and as slid.

    Parameters
    ----------
    before : Shapes
        As given to `defgpa.slide`.
    after : SlidShapes
        As it returned them.
    shape : int or str
        Which one, by number or name.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        Points ``before`` and ``after``, the ``ways`` between, and ``fixed`` landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> import defgpa
    >>> turns = np.linspace(0, np.pi, 9) + 0.1 * np.sin(np.arange(36)).reshape(4, 9)
    >>> arcs = np.dstack([np.cos(turns), np.sin(turns), ])
    >>> shapes = defgpa.Shapes(np.concatenate([arcs, np.tile([[[0.0, -1.0]]], (4, 1, 1))], axis=1))
    >>> slid = defgpa.slide(shapes, curves=[range(9)])
    >>> len(sliding(shapes, slid, 0, Figure().subplots()).before.get_xdata())
    7
    """
    if before.points.shape != after.points.shape:
        raise ShapeError("The shapes before and after sliding are not the same ones.")
    i, axes = after.index(shape), style.axes_for(ax, after.n_dims)
    old, new = before.points[i], after.points[i]
    own = after.sliders[~np.isnan(new[after.sliders, 0])]
    rest = np.setdiff1d(np.flatnonzero(~np.isnan(new[:, 0])), own)
    ways = style.segments(axes, old[own], new[own], color=style.GREY, linewidth=0.9, zorder=1)
    size = style.marker_size(len(new))
    was = style.dots(
        axes, old[own], "as digitised", "o", style.GREY, markerfacecolor="white", markersize=size
    )
    now = style.dots(axes, new[own], "slid", "o", style.OBSERVED, markersize=size)
    fixed = style.dots(axes, new[rest], "fixed", "s", style.REFERENCE, markersize=size)
    style.legend(axes, ncols=3)
    style.as_map(axes, after.n_dims, unit)
    return style.Artists(before=was, after=now, ways=ways, fixed=fixed)


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
