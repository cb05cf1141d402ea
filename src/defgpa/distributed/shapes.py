"""A set of shapes on a cluster, as the pipeline wants it: who sees what is known on the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from defgpa.arrays import Array, Index, Mask, join_stacks
from defgpa.diagnostics.checks import refuse_degenerate_extents, require_linkage_by_pattern
from defgpa.distributed import work
from defgpa.distributed.cluster import Cluster
from defgpa.errors import ShapeError
from defgpa.shapes import number_labels
from defgpa.solvers.covariance_prior import prior_of_parts
from defgpa.solvers.proportions import Moments
from defgpa.threads import split_range


@dataclass(frozen=True, eq=False)
class ClusterSet:
    """One set of shapes: parts of it on the workers, who sees what on the driver."""

    cluster: Cluster
    parts: Sequence[Any]  # futures of (b, m, d)
    sizes: Sequence[int]  # shapes of each part
    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    visible: Mask  # (n, m)
    n_dims: int
    rows: Sequence[slice] = (slice(None),)  # blocks of landmarks

    @classmethod
    def of(cls, cluster: Cluster, parts: Sequence[Any]) -> ClusterSet:
        """The shapes of parts (futures of arrays or Shapes), by what the workers say of them."""
        facts = cluster.results([cluster.submit(work.facts_of, part) for part in parts])
        seen, dims, names, labels = zip(*facts, strict=True)
        widths, known = {own.shape[1] for own in seen}, {own for own in labels if own is not None}
        if len(widths) > 1 or len(set(dims)) > 1 or len(known) > 1:
            raise ShapeError(
                "All parts must have the same landmarks in the same order; got "
                f"{sorted(widths)} landmarks in {sorted(set(dims))} dimensions"
                + (" and different labels." if len(known) > 1 else ".")
            )
        visible = np.concatenate(seen)
        n, m = visible.shape
        given = tuple(name for own in names for name in own or ())
        return cls(
            cluster,
            [cluster.submit(work.points_of, part) for part in parts],
            [len(own) for own in seen],
            given if len(given) == n and len(set(given)) == n else number_labels("shape_", n),
            tuple(known.pop() if known else number_labels("", m)),
            visible,
            dims[0],
        )

    @cached_property
    def shared(self) -> Index:
        """The landmarks that at least two shapes see."""
        return np.flatnonzero(self.visible.sum(axis=0) >= 2)

    def require_alignable(self) -> None:
        """A ShapeError if these shapes cannot be aligned."""
        if len(self.names) < 2:
            raise ShapeError(f"At least 2 shapes are needed to align; got {len(self.names)}.")
        require_linkage_by_pattern(self.visible[:, self.shared], self.names, self.n_dims)

    def drop_lone_landmarks(self, landmarks_per_block: int) -> ClusterSet:
        """The shapes on the landmarks that at least two of them see, in blocks of these."""
        parts, kept = self.parts, self.shared
        if len(kept) < len(self.landmarks):
            parts = [self.cluster.submit(work.kept_landmarks, part, kept) for part in parts]
        return replace(
            self,
            parts=parts,
            landmarks=tuple(self.landmarks[j] for j in kept),
            visible=self.visible[:, kept],
            rows=split_range(len(kept), landmarks_per_block),
        )

    def shape(self, number: int) -> Array:
        """(m, d): one shape, brought to the driver."""
        stops = np.cumsum(self.sizes)
        part = int(np.searchsorted(stops, number, side="right"))
        place = number - int(stops[part] - self.sizes[part])
        task = self.cluster.submit(work.one_shape, self.parts[part], place)
        return np.asarray(self.cluster.results([task])[0])

    @cached_property
    def rank(self) -> int:
        """The dimension d, or less where all shapes are flat; an error where one is a line."""
        count, line, place, rank = zip(*self._each(work.extents_of), strict=True)
        whole = np.concatenate(count), np.concatenate(line), np.concatenate(place)
        refuse_degenerate_extents(*whole, self.names, self.n_dims)
        return max(rank)

    def moments(self, axes: Array) -> Moments:
        """Compute the moments of the shapes with axes (m, k)."""
        sent = self.cluster.send(axes)
        found: list[Moments] = self.cluster.steadily(lambda: self._each(work.moments_of, sent))
        return join_stacks(found)

    def prior(self) -> Array:
        """Estimate Λ (d,) by Algorithm 1 of the paper, largest first."""

        def by_landmarks() -> ClusterParts:
            made = [self.cluster.submit(work.landmark_block, r, *self.parts) for r in self.rows]
            return ClusterParts(self.cluster, made)

        def by_shapes() -> ClusterParts:
            return ClusterParts(self.cluster, self.parts)

        return prior_of_parts(by_landmarks, by_shapes, self.names)

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
