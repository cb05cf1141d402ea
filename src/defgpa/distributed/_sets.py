"""A set of shapes on a cluster, as the pipeline wants it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from defgpa._arrays import Array, Mask
from defgpa.checks import require_extents
from defgpa.distributed import _work as work
from defgpa.distributed._cluster import Cluster
from defgpa.solve.deformable.proportions import Moments
from defgpa.solve.prior.covariance import prior_of_parts


@dataclass(frozen=True, eq=False)
class ClusterSet:
    """One set of shapes: parts of it on the workers, who sees what on the driver."""

    cluster: Cluster
    parts: Sequence[Any]  # futures of (b, m, d): the landmarks that at least two shapes see
    names: Sequence[str]
    landmarks: Array  # (1, m)
    visible: Mask  # (1, n, m)
    dim: int
    rows: Sequence[slice]  # blocks of landmarks

    @cached_property
    def rank(self) -> int:
        """The dimension d, or less where all shapes are flat; an error where one is a line."""
        count, line, place, rank = zip(*self._each(work.extents_of), strict=True)
        whole = np.concatenate(count), np.concatenate(line), np.concatenate(place)
        require_extents(*whole, self.names, self.dim)
        return max(rank)

    def moments(self, axes: Array) -> Moments:
        """What the shapes say about axes (1, m, k)."""
        sent = self.cluster.send(axes[0])
        found = self.cluster.steadily(lambda: self._each(work.moments_of, sent))
        return Moments(
            np.concatenate([own.axes for own in found])[None],
            np.concatenate([own.cross for own in found])[None],
            np.concatenate([own.square for own in found])[None],
        )

    def prior(self) -> Array:
        """(1, d): Λ by Algorithm 1 of the paper, largest first."""

        def blocks() -> ClusterParts:
            made = [self.cluster.submit(work.landmark_block, r, *self.parts) for r in self.rows]
            return ClusterParts(self.cluster, made)

        return prior_of_parts(blocks, lambda: ClusterParts(self.cluster, self.parts), self.names)[
            None
        ]

    def __getitem__(self, part: Any) -> ClusterSet:
        """The one set there is."""
        return self

    def _each(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        return ClusterParts(self.cluster, self.parts).results(function, *shared)


@dataclass(frozen=True, eq=False)
class ClusterParts:
    """Parts of shapes on the workers."""

    cluster: Cluster
    parts: Sequence[Any]

    def map(self, function: Callable[..., Any], *shared: Any) -> ClusterParts:
        """A function of each part, as parts again."""
        made = [self.cluster.submit(function, part, *shared) for part in self.parts]
        return ClusterParts(self.cluster, made)

    def results(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """What a function makes of each part."""
        return self.cluster.results(self.map(function, *shared).parts)
