"""P on a cluster: the same product, as a reduction over parts of shapes and of landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa.arrays import Array
from defgpa.distributed import work
from defgpa.distributed.cluster import Cluster
from defgpa.distributed.shapes import ClusterSet
from defgpa.solvers.columns import stream_factor
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.eigen import WarpCost
from defgpa.solvers.elimination import POOR_CONDITION
from defgpa.solvers.preconditioner import LowRankInverse, invert_from_one_shape
from defgpa.warps import Warp, WarpModel


@dataclass(frozen=True, eq=False)
class DistributedCost(WarpCost):
    """P = diag(totals) − Σ U Uᵀ with U on the workers, by parts of shapes, blocks of landmarks."""

    cluster: Cluster
    landmarks: Sequence[slice]  # the blocks
    batches: list[Any]  # futures, per part
    blocks: list[list[Any]]  # futures, per part and block
    combine: list[Any]  # futures, per part
    lead: work.Part  # the most complete shape, which stands for all in the preconditioner
    model: WarpModel

    def multiply(self, block: Array) -> Array:
        """Compute P X: project, combine, expand, add; the driver sends and receives rows of X."""
        image = self.cluster.retry(lambda: self._explain(block))
        return np.asarray(self.totals[:, None] * block - image)

    def preconditioner(self) -> LowRankInverse:
        """Return an approximation of P⁻¹ made from one shape, on the driver."""
        factor = stream_factor(work.make_part_batches(self.lead, self.model)[0])
        alone = ResidualCost(
            self.totals,
            self.n_shapes,
            self.condition,
            self.rank_deficiency,
            self.storage,
            (factor,),
        )
        return invert_from_one_shape(alone)

    def fit_warps(self, reference: Array) -> tuple[Warp, ...]:
        """Fit the warps of all shapes."""
        return self.cluster.retry(lambda: self._fit_warps(reference))

    def _fit_warps(self, reference: Array) -> tuple[Warp, ...]:
        pairs = zip(self.batches, self.fit_coefficients(reference), strict=True)
        tasks = [
            self.cluster.submit(work.make_part_warps, batch, values) for batch, values in pairs
        ]
        return tuple(warp for warps in self.cluster.gather(tasks) for warp in warps)

    def fit_coefficients(self, block: Array) -> list[Any]:
        """Return futures, per part, of the coefficients of the columns that best explain X."""
        cluster = self.cluster
        rows = [cluster.send(np.ascontiguousarray(block[number])) for number in self.landmarks]
        futures = []
        for blocks, combine in zip(self.blocks, self.combine, strict=True):
            pairs = zip(blocks, rows, strict=True)
            projections = [cluster.submit(work.project, b, x) for b, x in pairs]
            futures.append(cluster.submit(work.combine_projections, combine, *projections))
        return futures

    def _explain(self, block: Array) -> Array:
        """Compute Σ U Uᵀ X, the part of X that the warps explain."""
        coefficients = self.fit_coefficients(block)
        sums = []
        for q in range(len(self.landmarks)):
            images = [
                self.cluster.submit(work.expand, blocks[q], values)
                for blocks, values in zip(self.blocks, coefficients, strict=True)
            ]
            sums.append(self.cluster.sum(work.add_arrays, images))
        return np.concatenate(self.cluster.gather(sums))


def build_cluster_cost(sets: ClusterSet, model: WarpModel, budget: int) -> DistributedCost:
    """Eliminate the warps of shapes that live on the workers."""
    cluster, visible = sets.cluster, sets.visible
    fullest = sets.fetch_shape(int(visible.sum(axis=1).argmax()))
    keep_columns = _columns_fit(cluster, fullest, len(visible), model, budget)
    batches = [cluster.submit(work.make_part_batches, part, model) for part in sets.parts]
    blocks = [
        [cluster.submit(work.make_blocks, batch, rows, keep_columns) for rows in sets.rows]
        for batch in batches
    ]
    ridges = [
        cluster.submit(
            work.fit_ridges, batch, *[cluster.submit(work.compute_grams, b) for b in cut]
        )
        for batch, cut in zip(batches, blocks, strict=True)
    ]
    quality = cluster.gather([cluster.submit(work.get_quality, ridge) for ridge in ridges])
    for p, (condition, _) in enumerate(quality):
        if not (condition < POOR_CONDITION).all():
            triangles = [cluster.submit(work.compute_triangles, b) for b in blocks[p]]
            ridges[p] = cluster.submit(work.fit_ridges_accurately, batches[p], *triangles)
            quality[p] = cluster.gather([cluster.submit(work.get_quality, ridges[p])])[0]
    return DistributedCost(
        sets.total_weights,
        len(visible),
        np.concatenate([condition for condition, _ in quality]),
        np.concatenate([deficiency for _, deficiency in quality]),
        "distributed",
        cluster,
        sets.rows,
        batches,
        blocks,
        [cluster.submit(work.mix_ridges, b, r) for b, r in zip(batches, ridges, strict=True)],
        fullest,
        model,
    )


def _columns_fit(
    cluster: Cluster, fullest: work.Part, n: int, model: WarpModel, budget: int
) -> bool:
    """Return whether the columns of all shapes fit into the budget of all workers."""
    (batch,) = work.make_part_batches(fullest, model)
    size = batch.bases.penalty().shape[-1]
    workers = max(1, len(cluster.client.scheduler_info(n_workers=-1)["workers"]))
    return bool(8 * n * batch.n_landmarks * size <= budget * workers)
