"""Draw images with their landmarks, and how far warped images agree (Figures 5 and 6)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from defgpa.alignment import Alignment
from defgpa.arrays import RawArray
from defgpa.errors import ShapeError
from defgpa.images import IntensityDeviation, Picture
from defgpa.images.photographs import read_photograph
from defgpa.plot import _style as style
from defgpa.shapes import Shapes


def picture(picture: Picture, ax: Axes | None = None, *, unit: str | None = None) -> style.Artists:
    """Draw a warped image in the coordinates of the reference, transparent where it is masked.

    Parameters
    ----------
    picture : Picture
        From ``defgpa.warp_image``.
    ax : Axes, optional
        Where to draw; a new figure by default.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``image``.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.images import Frame, Picture
    >>> grey = np.arange(12.0).reshape(3, 4)
    >>> shown = picture(Picture(grey, grey > 5, Frame((10, 20), (3, 4))), Figure().subplots())
    >>> shown.image.get_extent()
    [9.5, 13.5, 22.5, 19.5]
    """
    axes = style.prepare_axes(ax, 2)
    pixels = picture.pixels.reshape(*picture.mask.shape, -1)
    extent = picture.frame.extent
    if extent[0] == extent[1] or extent[2] == extent[3]:
        raise ShapeError("The picture has no extent: its pixels are too small for its coordinates.")
    if pixels.shape[2] in (3, 4):
        image = axes.imshow(_add_opacity(pixels, picture.mask), extent=extent)
    else:
        grey = np.ma.array(pixels[..., 0], mask=~picture.mask)
        image = axes.imshow(grey, cmap="gray", extent=extent)
    axes.set(xlabel=style.add_unit("x", unit), ylabel=style.add_unit("y", unit))
    return style.Artists(image=image, landmarks=None, reference=None, colorbar=None)


def picture_with_landmarks(
    shown: Picture,
    alignment: Alignment,
    shape: int | str,
    ax: Axes | None = None,
    *,
    unit: str | None = None,
) -> style.Artists:
    """Draw a warped image with its warped landmarks and those of the reference.

    Parameters
    ----------
    shown : Picture
        The image of a shape through ``alignment.warps[…]``.
    alignment : Alignment
        In the pose of the picture.
    shape : int or str
        Whose image it is, by number or name.
    ax, unit
        As in ``picture``.

    Returns
    -------
    Artists
        ``image``, ``landmarks`` as warped, and those of the ``reference``.
    """
    axes = style.prepare_axes(ax, 2)
    image = picture(shown, axes, unit=unit).image
    points = style.select_finite_points(alignment.aligned[alignment.shapes.index(shape)])
    size = style.choose_marker_size(len(points))
    ring = {"markeredgecolor": style.REFERENCE, "markersize": 1.3 * size}
    reference = style.draw_dots(
        axes, alignment.reference, "reference", "o", "none", markeredgewidth=0.3 * size, **ring
    )
    landmarks = style.draw_dots(
        axes, points, "warped landmarks", ".", style.OBSERVED, markersize=1.2 * size
    )
    axes.set(xlim=shown.frame.extent[:2], ylim=shown.frame.extent[2:])
    style.add_legend(axes)
    return style.Artists(image=image, landmarks=landmarks, reference=reference, colorbar=None)


def photograph(
    shapes: Shapes,
    shape: int | str,
    ax: Axes | None = None,
    *,
    links: Iterable[tuple[int, int]] | None = None,
    names: bool = False,
) -> style.Artists:
    """Draw the photograph of a shape, as its file names it, with the landmarks on it.

    Parameters
    ----------
    shapes : Shapes
        2-D, read from files that name images (``IMAGE=`` of a TPS file).
    shape : int or str
        Which one, by number or name.
    ax : Axes, optional
        Where to draw; a new figure by default.
    links : iterable of (int, int), optional
        Landmarks joined by lines; by default those of the shapes.
    names : bool
        Whether to write the landmarks' labels, as far as they do not collide.

    Returns
    -------
    Artists
        ``image``, ``landmarks`` and ``labels``.
    """
    pixels = read_photograph(shapes, shape)
    if pixels is None:
        name = shapes.names[shapes.index(shape)]
        raise ShapeError(
            f"There is no photograph of {name!r}: its file names no image, or the image is not "
            "beside the file. Put the images into the folder of the landmarks."
        )
    rows, columns = pixels.pixels.shape[:2]
    corners = np.array([[0.0, 0.0], [columns, rows]])
    axes = style.prepare_axes(ax, 2, corners)
    image = axes.imshow(
        np.squeeze(pixels.pixels), cmap="gray", extent=(-0.5, columns - 0.5, rows - 0.5, -0.5)
    )
    joined = shapes.links if links is None else links
    style.draw_links(axes, pixels.landmarks, joined, colors=style.SKY, linewidths=1.0)
    visible = ~np.isnan(pixels.landmarks[:, 0])
    points = pixels.landmarks[visible]
    size = 1.2 * style.choose_marker_size(len(points))
    look = {"markeredgecolor": "white", "markeredgewidth": 0.8, "markersize": size}
    dots = style.draw_dots(axes, points, "landmarks", "o", style.VERMILLION, **look)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    style.hide_frame(axes)
    labels = []
    if names:
        axes.apply_aspect()
        texts = [shapes.landmarks[j] for j in np.flatnonzero(visible)]
        outline = [withStroke(linewidth=2, foreground="black")]  # to be read on pale pictures, too
        labels = style.label_points(axes, points, texts, color="white", path_effects=outline)
    return style.Artists(image=image, landmarks=dots, labels=tuple(labels))


def deviation(
    spread: IntensityDeviation, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """Draw the intensity deviation of warped images, mean of their channels; bright is large.

    The scale ends at the 99.5th percentile, so that single pixels do not darken the others. The
    outline is the area that all shapes cover, over which the mean in the title is taken.

    Parameters
    ----------
    spread : IntensityDeviation
        From ``defgpa.intensity_deviation``.
    ax : Axes, optional
        Where to draw; a new figure by default.
    unit : str, optional
        Of the coordinates, for the labels.

    Returns
    -------
    Artists
        ``image`` and ``colorbar``.
    """
    axes = style.prepare_axes(ax, 2)
    levels = spread.deviation.reshape(*spread.coverage.shape, -1).mean(axis=2)
    finite = levels[np.isfinite(levels)]
    largest = float(np.percentile(finite, 99.5)) if finite.size else 1.0
    image = axes.imshow(
        np.ma.masked_invalid(levels),
        cmap=colormaps["magma"],
        vmin=0.0,
        vmax=largest or 1.0,
        extent=spread.frame.extent,
    )
    extend = "max" if (finite > largest).any() else "neither"
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, extend=extend)
    bar.set_label("standard deviation of the intensity")
    if spread.common.any():
        _draw_common_area(axes, spread)
    axes.set(xlabel=style.add_unit("x", unit), ylabel=style.add_unit("y", unit))
    return style.Artists(image=image, landmarks=None, reference=None, colorbar=bar)


def _draw_common_area(ax: style.AnyAxes, spread: IntensityDeviation) -> None:
    """Draw the area that all shapes cover, and write the mean over it."""
    rows, columns = spread.common.shape
    x, _ = spread.frame.points(np.column_stack([np.arange(columns), np.zeros(columns)])).T
    _, y = spread.frame.points(np.column_stack([np.zeros(rows), np.arange(rows)])).T
    if not spread.common.all():
        ax.contour(x, y, spread.common, levels=[0.5], colors="white", linewidths=0.8)
    ax.set_title(
        f"mean over the area all cover: {style.format_number(spread.mean, None)}", fontsize="medium"
    )


def _add_opacity(pixels: RawArray, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return colours (rows, columns, 4) from 0 to 1, with an opacity of 0 where masked."""
    top = np.iinfo(pixels.dtype).max if pixels.dtype.kind in "iu" else 1.0
    colours = np.clip(pixels.astype(np.float64) / top, 0.0, 1.0)
    opacity = colours[..., 3] if colours.shape[2] == 4 else 1.0
    return np.dstack([colours[..., :3], np.where(mask, opacity, 0.0)])
