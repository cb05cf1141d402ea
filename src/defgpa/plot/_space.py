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
_MIN_ROOM, _MAX_ROOM = 0.2, 0.9
_CHARACTER = 0.09  # inches, in the font of the ticks
_GAP = 0.14  # inches from a number to the middle of the name of its axis
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
        scale = self._find_scale(corners, inches, np.full(2, _ROOM))
        scale = self._find_scale(corners, inches, self._place_labels(corners, inches, scale))
        self._place_labels(corners, inches, scale)
        middle, half = (low + high) / 2, scale * inches / 2
        self.viewLim.intervalx, self.viewLim.intervaly = np.transpose(
            [middle - half, middle + half]
        )

    @staticmethod
    def _find_scale(corners: Array, inches: Array, room: Array) -> float:
        """Return the units of the picture plane per inch that leave so much room."""
        return float(np.max(np.ptp(corners, axis=0) / np.maximum(inches - 2 * room, 0.1 * inches)))

    def _place_labels(self, corners: Array, inches: Array, scale: float) -> Array:
        """Put the names of the axes beside their numbers; return the inches (2,) that both take.

        matplotlib moves them off their axis by shares of the other two sides of the box, so far as
        those are seen, and for axes of a size it estimates.
        """
        sides = (corners[[1, 2, 4]] - corners[0]) / scale  # in inches
        per_point = 0.08 * 48.0 / (72.0 * float(inches.sum()))  # of a side
        room = np.full(2, _MIN_ROOM)
        for k, axis in enumerate((self.xaxis, self.yaxis, self.zaxis)):
            numbers = axis.get_major_formatter().format_ticks(axis.get_majorticklocs())
            length = float(np.linalg.norm(sides[k]))
            if not (axis.get_visible() and len(numbers) and length > 0):
                continue
            across = np.array([-sides[k, 1], sides[k, 0]]) / length
            shift = per_point * float(np.abs(np.delete(sides, k, axis=0) @ across).sum())
            width = _CHARACTER * max(map(len, numbers))
            half = (abs(across[0]) * width + abs(across[1]) * 0.14) / 2
            if shift > 0:
                label_at = 11.5 * shift + half + _GAP  # 8 points and the pad of the numbers
                axis.labelpad = label_at / shift - 21.0
                room = np.maximum(room, np.abs(across) * (label_at + 0.08))
        return np.minimum(room, _MAX_ROOM)

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
        figure.set_figheight(grid.nrows * float(np.clip(height, 0.36 * width, width)))


register_projection(SpaceAxes)
