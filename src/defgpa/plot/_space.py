"""3-D axes that fill the place they have, where those of matplotlib keep to a square within it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.projections import register_projection
from matplotlib.transforms import Bbox
from mpl_toolkits.mplot3d import Axes3D, proj3d

from defgpa.arrays import Array

_ROOM = 0.42  # inches on every side, for ticks and their labels
_BAR = 1.0  # inches that a colour bar takes


def project_box(ax: Any) -> Array:
    """Return the corners (8, 2) of the box of 3-D axes as they are seen."""
    ends = np.array([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])
    corners = ends[[0, 1, 2], np.array(np.unravel_index(np.arange(8), (2, 2, 2))).T[:, ::-1]]
    return np.column_stack(proj3d.proj_transform(*corners.T, ax.get_proj())[:2])


class SpaceAxes(Axes3D):  # type: ignore[misc]  # matplotlib is not typed
    """Show the box of the limits as large as the place of the axes allows."""

    name = "defgpa"

    def apply_aspect(self, position: Bbox | None = None) -> None:
        """Place the axes, and choose the part of the picture plane that they show."""
        place = self.get_position(original=True) if position is None else position
        self._set_position(place, "active")
        inches = self.bbox.size / self.get_figure().dpi
        corners = project_box(self)
        low, high = corners.min(axis=0), corners.max(axis=0)
        scale = np.max((high - low) / np.maximum(inches - 2 * _ROOM, 0.1 * inches))
        middle, half = (low + high) / 2, scale * inches / 2
        self.viewLim.intervalx, self.viewLim.intervaly = np.transpose(
            [middle - half, middle + half]
        )

    def fit_figure(self) -> None:
        """Make the figure as high as the box needs, unless other plots stand in it."""
        figure, spec = self.get_figure(), self.get_subplotspec()
        bars = [ax for ax in figure.axes if hasattr(ax, "_colorbar")]
        others = [ax for ax in figure.axes if ax.name != self.name and ax not in bars]
        if others or spec is None or not isinstance(figure, Figure):
            return
        grid = spec.get_gridspec()
        across, up = np.ptp(project_box(self), axis=0)
        width = (figure.get_figwidth() - _BAR * len(bars)) / grid.ncols
        height = (width - 2 * _ROOM) * up / across + 2 * _ROOM
        figure.set_figheight(grid.nrows * float(np.clip(height, 0.45 * width, width)))


register_projection(SpaceAxes)
