"""A warp from the pixels of an image to the pixels of a frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array
from defgpa.images._frame import Frame
from defgpa.warps import Invertible


@dataclass(frozen=True, eq=False)
class PixelWarp:
    """``warp``, read in the pixels of ``source`` and written in the pixels of ``frame``."""

    warp: Invertible
    source: Frame
    frame: Frame

    def __call__(self, points: ArrayLike) -> Array:
        """(p, 2): source column and row to the column and the row in the frame."""
        return self.frame.pixels(self.warp(self.source.points(points)))

    def jacobian(self, points: ArrayLike) -> Array:
        """(p, 2, 2): frame pixels per source pixel."""
        slopes = self.warp.jacobian(self.source.points(points))
        return slopes * self.source.step / np.asarray(self.frame.step)[:, None]
