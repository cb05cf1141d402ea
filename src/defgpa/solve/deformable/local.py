"""A set of shapes in the memory of this machine, as the pipeline wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa._arrays import Array, Mask
from defgpa.frames import Frames
from defgpa.solve.deformable.proportions import Moments, moments
from defgpa.solve.prior.covariance import covariance_prior


@dataclass(frozen=True, eq=False)
class LocalSets:
    """A stack of g sets of n shapes each, on m landmarks; a single fit is a stack of one."""

    frames: Frames  # of all g n shapes
    names: Sequence[str]  # of the n shapes
    landmarks: Array  # (g, m): labels

    @property
    def visible(self) -> Mask:
        """(g, n, m)."""
        return self._by_set(self.frames.visible)

    @property
    def dim(self) -> int:
        """The dimension of space, d."""
        return int(self.frames.points.shape[-1])

    @property
    def rank(self) -> int:
        """The dimension d, or less where all shapes are flat."""
        return self.frames.rank

    def moments(self, axes: Array) -> Moments:
        """What the shapes say about axes (g, m, k)."""
        return moments(axes, self._by_set(self.frames.centred), self.visible)

    def prior(self) -> Array:
        """(g, d): Λ by Algorithm 1 of the paper, largest first."""
        n = len(self.names)
        sets = range(len(self.landmarks))
        return np.stack(
            [covariance_prior(self.frames[slice(s * n, (s + 1) * n)], self.names) for s in sets]
        )

    def __getitem__(self, part: Any) -> LocalSets:
        """Some of the sets."""
        chosen = np.zeros(len(self.landmarks), dtype=bool)
        chosen[part] = True
        own = self.frames[np.repeat(chosen, len(self.names))]
        return LocalSets(own, self.names, self.landmarks[part])

    def _by_set(self, stack: Any) -> Any:
        return stack.reshape(len(self.landmarks), len(self.names), *stack.shape[1:])
