"""A set of shapes on a cluster: its points on the workers, its visibility on the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from defgpa.arrays import Array, Index, Mask, join_stacks
from defgpa.diagnostics.checks import refuse_degenerate_shapes, require_linkage
from defgpa.distributed import work
from defgpa.distributed.cluster import Cluster
from defgpa.errors import ShapeError
from defgpa.geometry import Geometry, Moments
from defgpa.shapes import Shapes, number_labels
from defgpa.solvers.covariance_prior import compute_prior_of_complete, estimate_prior
from defgpa.threads import split_range


@dataclass(frozen=True, eq=False)
class ClusterSet:
    """A set of shapes on the workers, in parts; their visibility and weights on the driver."""

    cluster: Cluster
    parts: Sequence[Any]  # futures of Part
    sizes: Sequence[int]  # shapes of each part
    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    visible: Mask  # (n, m)
    n_dims: int
    weight_unit: float | None  # of the weights, as given; None where all landmarks count the same
    rows: Sequence[slice] = (slice(None),)  # blocks of landmarks

    @classmethod
    def from_sources(cls, cluster: Cluster, sources: Sequence[Any]) -> ClusterSet:
        """Describe shapes (futures of arrays or Shapes), as the workers see them."""
        facts = cluster.gather([cluster.submit(work.describe_part, source) for source in sources])
        masks, dims, names, labels, ranges, sums = zip(*facts, strict=True)
        widths = {mask.shape[1] for mask in masks}
        landmarks = {part_labels for part_labels in labels if part_labels is not None}
        if len(widths) > 1 or len(set(dims)) > 1 or len(landmarks) > 1:
            raise ShapeError(
                "All parts must have the same landmarks in the same order; got "
                f"{sorted(widths)} landmarks in {sorted(set(dims))} dimensions"
                + (" and different labels." if len(landmarks) > 1 else ".")
            )
        visible = np.concatenate(masks)
        n, m = visible.shape
        weight_unit = None
        if len(frozenset[float]().union(*ranges)) > 1:  # the mean of the weights
            totals = [
                max(ends, default=0.0) * total for ends, total in zip(ranges, sums, strict=True)
            ]
            weight_unit = sum(totals) / visible.sum()
        all_names = tuple(name for part_names in names for name in part_names or ())
        return cls(
            cluster,
            [cluster.submit(work.make_part, source, weight_unit) for source in sources],
            [len(mask) for mask in masks],
            all_names if len(set(all_names)) == len(all_names) == n else number_labels("shape_", n),
            tuple(landmarks.pop() if landmarks else number_labels("", m)),
            visible,
            dims[0],
            weight_unit,
        )

    @cached_property
    def common(self) -> Index:
        """The numbers of the landmarks that at least two shapes have."""
        return np.flatnonzero(self.visible.sum(axis=0) >= 2)

    def require_alignable(self) -> None:
        """Raise a ShapeError if these shapes cannot be aligned."""
        if len(self.names) < 2:
            raise ShapeError(f"At least 2 shapes are needed to align; got {len(self.names)}.")
        require_linkage(self.visible[:, self.common], self.names, self.n_dims)

    def drop_lone_landmarks(self, landmarks_per_block: int) -> ClusterSet:
        """Restrict the shapes to the landmarks that two of them have, in blocks of these."""
        parts, common = self.parts, self.common
        if len(common) < len(self.landmarks):
            parts = [self.cluster.submit(work.take_landmarks, part, common) for part in parts]
        return replace(
            self,
            parts=parts,
            landmarks=tuple(self.landmarks[j] for j in common),
            visible=self.visible[:, common],
            rows=split_range(len(common), landmarks_per_block),
        )

    def fetch_shape(self, number: int) -> work.Part:
        """Bring one shape to the driver."""
        stops = np.cumsum(self.sizes)
        part_number = int(np.searchsorted(stops, number, side="right"))
        place = number - int(stops[part_number] - self.sizes[part_number])
        task = self.cluster.submit(work.take_shape, self.parts[part_number], place)
        (shape,) = self.cluster.gather([task])
        assert isinstance(shape, work.Part)
        return shape

    def gather(self) -> Shapes:
        """Bring all shapes to the driver."""
        points, weights = zip(*self.cluster.gather(self.parts), strict=True)
        unit, names, labels = self.weight_unit, self.names, self.landmarks
        given = None if unit is None else unit * np.concatenate(weights)
        return Shapes.specimens(
            np.concatenate(points), names=names, landmarks=labels, weights=given
        )

    @cached_property
    def total_weights(self) -> Array:
        """(m,): of each landmark; the number of shapes that have it where all count the same."""
        return np.asarray(sum(self._each(work.sum_weights)))

    @cached_property
    def _extents(self) -> Geometry:
        """The geometry of all shapes, without their points."""
        extents: Geometry = join_stacks(self._each(work.measure_extents))
        return extents

    @cached_property
    def rank(self) -> int:
        """The dimension d, or less where all shapes are flat; an error where one is a line."""
        refuse_degenerate_shapes(self._extents, self.names)
        return int(self._extents.ranks.max())

    def moments(self, axes: Array) -> Moments:
        """Compute the moments of the shapes with axes (m, k)."""
        sent = self.cluster.send(axes)
        moments: list[Moments] = self.cluster.retry(
            lambda: self._each(work.compute_part_moments, sent)
        )
        return join_stacks(moments)

    def prior(self) -> Array:
        """Estimate Λ (d,) by Algorithm 1 of the paper, largest first."""
        if self.visible.all():
            return compute_prior_of_complete(self._extents)

        def by_landmarks() -> ClusterParts:
            futures = [self.cluster.submit(work.join_landmarks, r, *self.parts) for r in self.rows]
            return ClusterParts(self.cluster, futures)

        def by_shapes() -> ClusterParts:
            return ClusterParts(self.cluster, self.parts).map(work.get_points)

        return estimate_prior(by_landmarks, by_shapes, self.names, self._extents.mean_weights)

    def _each(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        return ClusterParts(self.cluster, self.parts).results(function, *shared)


@dataclass(frozen=True, eq=False)
class ClusterParts:
    """Parts of shapes on the workers."""

    cluster: Cluster
    parts: Sequence[Any]

    def map(self, function: Callable[..., Any], *shared: Any) -> ClusterParts:
        """Apply a function to each part, and leave the results on the workers."""
        futures = [self.cluster.submit(function, part, *shared) for part in self.parts]
        return ClusterParts(self.cluster, futures)

    def results(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Apply a function to each part, and return the results."""
        return self.cluster.gather(self.map(function, *shared).parts)
