"""Shapes drawn flat: 2-D ones as they are, 3-D ones seen along their shortest principal axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from defgpa._arrays import Array
from defgpa.plot import _style as style

Links = Iterable[tuple[int, int]]


def view_of(mean: Array) -> Callable[[Array], Array]:
    """From points or displacements (…, d) to what is drawn (…, 2).

    A plane shape as it is; of others the plane of the two longest principal axes.
    """
    matrix = np.eye(2)
    if mean.shape[1] == 3:
        matrix = np.linalg.svd(mean - mean.mean(axis=0), full_matrices=False)[2][:2].T
    return lambda points: np.asarray(points @ matrix)


def map_axes(ax: Axes | None) -> Any:
    """Axes for a shape in units of centroid size: equal scales, no ticks."""
    axes = style.axes_for(ax, 2)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def magnifier(lengths: Array, mean: Array, given: float | None) -> float:
    """As given, or 1, 2 or 5 times a power of ten, so that the longest can be seen but not more."""
    if given is not None:
        return given
    longest = float(np.max(lengths, initial=0.0))
    if not longest > 0:
        return 1.0
    wanted = 0.15 * float(np.ptp(mean, axis=0).max()) / longest  # for the longest arrow or circle
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(max(step * power for step in (1.0, 2.0, 5.0) if step * power <= wanted))


def times(magnify: float) -> str:
    """``, 10 × as large``, or nothing."""
    return "" if magnify == 1.0 else f", {magnify:g} × as large"


def skeleton(ax: Any, drawn: Array, links: Links, **look: Any) -> Any:
    """Lines between landmarks, if there are any."""
    return style.wireframe(ax, drawn, links, **{"color": style.UNSEEN, "zorder": 0, **look})


def circles(ax: Any, centres: Array, radii: Array, **look: Any) -> Any:
    """Circles in the units of the axes, which the view holds."""
    from matplotlib.collections import EllipseCollection

    wide = 2.0 * radii
    drawn = EllipseCollection(
        wide,
        wide,
        np.zeros_like(wide),
        units="xy",
        offsets=centres,
        transOffset=ax.transData,
        **look,
    )
    ax.add_collection(drawn)
    for sign in (-1.0, 1.0):
        style.dots(ax, centres + sign * radii[:, None], "_rims", "None")
    return drawn


def names(ax: Any, drawn: Array, labels: Sequence[str]) -> list[Any]:
    """Landmark labels beside their points."""
    return [
        style.beside(ax, style.shortened(label, 10), point, (4, 4), color="#444444", zorder=4)
        for label, point in zip(labels, drawn, strict=True)
    ]
