"""Draw how far landmarks, semilandmarks and meshes are from where they were.

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
from defgpa.plot._views import choose_magnification, state_magnification
from defgpa.semilandmarks import SlidShapes
from defgpa.shapes import Shapes


def displacements(
    alignment: Alignment,
    shape: int | str,
    ax: Axes | None = None,
    *,
    magnify: float | None = None,
    unit: str | None = None,
) -> style.Artists:
    """Draw arrows from the reference to a shape that is superimposed on it.

    Pose and size are taken out; the arrows are the deformation of the shape.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    shape : int or str
        Which shape, by number or name.
    ax : Axes, optional
        Where to draw, 3-D axes for 3-D shapes; a new figure by default.
    magnify : float, optional
        Length of the arrows, in true lengths; by default so that they can be seen.
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
    reference = alignment.reference
    axes = style.prepare_axes(ax, dim, reference)
    vectors = alignment.superimposed[i] - reference
    visible = np.flatnonzero(~np.isnan(vectors[:, 0]))
    lengths = np.linalg.norm(vectors[visible], axis=1)
    factor = max(1.0, choose_magnification(lengths, reference, None))
    factor = factor if magnify is None else magnify
    vectors = factor * vectors
    surface = style.choose_surface(reference, alignment.shapes.faces if dim == 3 else None)
    max_arrows = style.MAX_ARROWS if surface is None else 200  # a surface must remain visible
    drawn = visible[style.choose_evenly(len(visible), max_arrows)]
    label = style.shorten(alignment.shapes.names[i]) + state_magnification(factor)
    label = style.state_thinning(label, len(visible), len(drawn))
    look: dict[str, Any] = {"width": 0.003, "zorder": 2}
    if dim == 3:
        look = {"linewidth": 0.8, "arrow_length_ratio": 0.25}
    tails, colour = reference[drawn], style.OBSERVED
    arrows = style.draw_arrows(axes, tails, vectors[drawn], colour, label=label, **look)
    handle = style.make_handle(">", colour, label, markersize=5, linestyle="none")
    if surface is None:
        size = 0.7 * style.choose_marker_size(len(reference))
        dot = {"markersize": size, "markeredgewidth": 0}
        marks = style.draw_dots(axes, reference, "reference", "o", style.REFERENCE, **dot)
        style.add_legend(axes, [handle, marks])
    else:
        look = {"facecolors": style.SURFACE, "alpha": 0.4}
        marks = style.draw_surface(axes, reference, surface, **look)
        patch = style.make_handle("s", style.SURFACE, "reference", markersize=8, linestyle="none")
        style.add_legend(axes, [handle, patch])
        style.add_note(axes, surface.note)
    if dim == 3:
        style.look_at_broadside(axes, reference)
    style.set_equal_scales(axes, dim, unit)
    return style.Artists(arrows=arrows, reference=marks)


def back_projection(
    alignment: Alignment,
    shape: int | str | None = None,
    ax: Axes | None = None,
    *,
    unit: str | None = None,
) -> style.Artists:
    """Draw a shape beside the reference projected back into it by the inverse warp.

    In 3-D both are turned about the centroid of the shape to its principal axes, so that a shape
    that lies askew fills the picture.

    Parameters
    ----------
    alignment : Alignment
        What to show.
    shape : int or str, optional
        Which shape, by number or name; by default the one that fits worst.
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
    >>> back_projection(a, ax=Figure().subplots()).generated.get_xydata().shape
    (43, 2)
    """
    errors = np.sqrt(np.nanmean(alignment.datum_residuals**2, axis=1))
    i = int(np.argmax(errors)) if shape is None else alignment.shapes.index(shape)
    dim = alignment.shapes.n_dims
    visible = alignment.shapes.visible[i]
    observed = alignment.shapes[i][visible]
    axes = style.prepare_axes(ax, dim, observed)
    drawn = np.asarray(alignment.warps[i].inverse()(alignment.reference[visible]))
    if dim == 3:
        centre, turned = observed.mean(axis=0), style.find_principal_axes(observed).T
        observed, drawn = (observed - centre) @ turned, (drawn - centre) @ turned
    lines = style.draw_segments(axes, observed, drawn, colors=style.GREY, linewidths=0.9, zorder=1)
    size = style.choose_marker_size(len(observed))
    ring = {"fillstyle": "none", "markersize": 1.2 * size, "markeredgewidth": 0.2 * size}
    words = f"{style.shorten(alignment.shapes.names[i])}, observed"
    rings = style.draw_dots(axes, observed, words, "o", style.OBSERVED, **ring)
    cross = {"markersize": 1.3 * size, "markeredgewidth": 0.2 * size}
    words = f"reference, projected back; RMSE {style.format_number(errors[i], unit)}"
    crosses = style.draw_dots(axes, drawn, words, "+", style.REFERENCE, **cross)
    style.add_legend(axes)
    if dim == 3:
        style.look_at_broadside(axes, observed)
    style.set_equal_scales(axes, dim, unit)
    if dim == 3:
        style.name_principal_axes(axes, unit)
    return style.Artists(observed=rings, generated=crosses, errors=lines)


def sliding(
    before: Shapes,
    after: SlidShapes,
    shape: int | str,
    ax: Axes | None = None,
    *,
    unit: str | None = None,
) -> style.Artists:
    """Draw one shape with its semilandmarks as digitised and as slid.

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
    i = after.index(shape)
    old, new = before.points[i], after.points[i]
    axes = style.prepare_axes(ax, after.n_dims, new)
    sliders = after.sliders[~np.isnan(new[after.sliders, 0])]
    others = np.setdiff1d(np.flatnonzero(~np.isnan(new[:, 0])), sliders)
    look = {"color": style.GREY, "linewidth": 0.9, "zorder": 1}
    paths = style.draw_segments(axes, old[sliders], new[sliders], **look)
    size = style.choose_marker_size(len(new))
    before_dots = style.draw_dots(
        axes,
        old[sliders],
        "as digitised",
        "o",
        style.GREY,
        markerfacecolor="white",
        markersize=size,
    )
    after_dots = style.draw_dots(axes, new[sliders], "slid", "o", style.OBSERVED, markersize=size)
    fixed = style.draw_dots(axes, new[others], "fixed", "s", style.REFERENCE, markersize=size)
    style.add_legend(axes)
    if after.n_dims == 3:
        style.look_at_broadside(axes, new)
    style.set_equal_scales(axes, after.n_dims, unit)
    return style.Artists(before=before_dots, after=after_dots, ways=paths, fixed=fixed)


def displacement_heat(
    start: Mesh, end: Mesh, ax: Axes | None = None, *, label: str = "displacement"
) -> style.Artists:
    """Draw the end of a deformation as a surface, coloured by how far each vertex moved.

    Its longest axis lies across the picture, whatever the pose of the meshes.

    Parameters
    ----------
    start, end : Mesh
        The same vertices and faces, such as two of ``defgpa.exports.build_component_meshes``.
    ax : Axes, optional
        3-D axes; a new figure by default.
    label : str
        What the colours measure, with its unit.

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
    axes = style.prepare_axes(ax, 3)
    distances = np.linalg.norm(end.vertices - start.vertices, axis=1)
    drawn = style.choose_surface(end.vertices, end.faces)
    assert drawn is not None  # there are faces
    turned = end.vertices @ style.find_principal_axes(style.select_finite_points(end.vertices)).T
    surface = style.draw_surface(axes, turned, drawn, distances)
    style.look_at_broadside(axes, turned)
    style.set_equal_scales(axes, 3, None)
    axes.set_axis_off()
    style.add_note(axes, drawn.note)
    scale = axes.figure.colorbar(surface, ax=axes, shrink=0.6, label=label)
    return style.Artists(surface=surface, scale=scale)
