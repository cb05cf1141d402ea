"""P on a cluster: the same product, as a reduction over parts of shapes and of landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.distributed import work
from defgpa.distributed.cluster import Cluster
from defgpa.distributed.shapes import ClusterSet
from defgpa.solvers.columns import make_streamed_factor
from defgpa.solvers.cost import FittedWarps, ResidualCost
from defgpa.solvers.elimination import POOR_CONDITION
from defgpa.solvers.preconditioner import LowRankInverse, invert_from_one_shape
from defgpa.warps import Warp, WarpModel


@dataclass(frozen=True, eq=False)
class DistributedCost:
    """P = diag(totals) − Σ U Uᵀ with U on the workers, by parts of shapes, blocks of landmarks."""

    cluster: Cluster
    totals: Array  # (m,): shapes that see each landmark
    n_shapes: int
    landmarks: Sequence[slice]  # the blocks
    batches: list[Any]  # futures, per part
    blocks: list[list[Any]]  # futures, per part and block
    combine: list[Any]  # futures, per part
    condition: Array  # (n,)
    dropped: Index  # (n,)
    lead: Array  # (m, d): the most complete shape, which stands for all in the preconditioner
    model: WarpModel

    storage = "distributed"

    @property
    def n_landmarks(self) -> int:
        """m."""
        return len(self.totals)

    @property
    def norm(self) -> float:
        """A bound of the spectrum: the number of shapes."""
        return float(self.n_shapes)

    def multiply(self, block: Array) -> Array:
        """P X: project, combine, expand, add; the driver sends and receives rows of X."""
        image = self.cluster.steadily(lambda: self._explain(block))
        return np.asarray(self.totals[:, None] * block - image)

    def dense(self) -> Array:
        """P itself, from its product with the identity."""
        return self.multiply(np.eye(self.n_landmarks))

    def preconditioner(self) -> LowRankInverse:
        """An approximation of P⁻¹ made from one shape, on the driver."""
        factor = make_streamed_factor(work.batches_of(self.lead[None], self.model)[0])
        return invert_from_one_shape(ResidualCost(self.totals, (factor,), self.n_shapes))

    def fit_warps(self, reference: Array) -> FittedWarps:
        """Fit the warps of all shapes, and compute P1."""
        warps = self.cluster.steadily(lambda: self._warps(reference))
        return FittedWarps(warps, self.multiply(np.ones((len(self.totals), 1)))[:, 0])

    def _warps(self, reference: Array) -> tuple[Warp, ...]:
        both = zip(self.batches, self.coefficients(reference), strict=True)
        tasks = [self.cluster.submit(work.warps_of, own, weights) for own, weights in both]
        return tuple(warp for own in self.cluster.results(tasks) for warp in own)

    def coefficients(self, block: Array) -> list[Any]:
        """Futures, per part: the coefficients of the columns that best explain X."""
        cluster = self.cluster
        rows = [cluster.send(np.ascontiguousarray(block[part])) for part in self.landmarks]
        found = []
        for own, combine in zip(self.blocks, self.combine, strict=True):
            parts = [cluster.submit(work.project, b, x) for b, x in zip(own, rows, strict=True)]
            found.append(cluster.submit(work.coefficients, combine, *parts))
        return found

    def _explain(self, block: Array) -> Array:
        """Compute Σ U Uᵀ X."""
        mixed = self.coefficients(block)
        sums = []
        for q in range(len(self.landmarks)):
            images = [
                self.cluster.submit(work.expand, own[q], weights)
                for own, weights in zip(self.blocks, mixed, strict=True)
            ]
            sums.append(self.cluster.summed(work.sum_of, images))
        return np.concatenate(self.cluster.results(sums))


def build_distributed_cost(sets: ClusterSet, model: WarpModel, budget: int) -> DistributedCost:
    """The cost of shapes that live on the workers."""
    cluster, visible = sets.cluster, sets.visible
    lead = sets.shape(int(visible.sum(axis=1).argmax()))
    keep_columns = _columns_fit(cluster, lead, len(visible), model, budget)
    batches = [cluster.submit(work.batches_of, part, model) for part in sets.parts]
    blocks = [
        [cluster.submit(work.block_of, own, rows, keep_columns) for rows in sets.rows]
        for own in batches
    ]
    ridges = [
        cluster.submit(work.ridges_of, own, *[cluster.submit(work.gram_of, b) for b in cut])
        for own, cut in zip(batches, blocks, strict=True)
    ]
    quality = cluster.results([cluster.submit(work.quality_of, own) for own in ridges])
    for p, (condition, _) in enumerate(quality):
        if not (condition < POOR_CONDITION).all():
            triangles = [cluster.submit(work.triangle_of, b) for b in blocks[p]]
            ridges[p] = cluster.submit(work.sure_ridges_of, batches[p], *triangles)
            quality[p] = cluster.results([cluster.submit(work.quality_of, ridges[p])])[0]
    return DistributedCost(
        cluster,
        visible.sum(axis=0).astype(np.float64),
        len(visible),
        sets.rows,
        batches,
        blocks,
        [cluster.submit(work.combine_of, b, r) for b, r in zip(batches, ridges, strict=True)],
        np.concatenate([condition for condition, _ in quality]),
        np.concatenate([dropped for _, dropped in quality]),
        lead,
        model,
    )


def _columns_fit(cluster: Cluster, lead: Array, n: int, model: WarpModel, budget: int) -> bool:
    """Whether the columns of all shapes fit into the budget of every worker together."""
    size = work.batches_of(lead[None], model)[0].bases.penalty().shape[-1]
    workers = max(1, len(cluster.client.scheduler_info(n_workers=-1)["workers"]))
    return bool(8 * n * len(lead) * size <= budget * workers)
