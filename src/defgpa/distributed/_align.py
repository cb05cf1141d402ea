"""The whole solve with the shapes on a cluster; the driver holds no more than references."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa._threads import blocks
from defgpa.alignment import Alignment
from defgpa.checks.cohesion import cohesion
from defgpa.distributed import _work as work
from defgpa.distributed._cluster import Cluster
from defgpa.distributed._cost import DistributedCost, distributed_cost
from defgpa.distributed._pattern import Pattern
from defgpa.distributed._prior import completed_extents
from defgpa.errors import DefgpaError, DefgpaWarning, DegenerateShapeError, listed
from defgpa.estimators import DefGPA, assembled
from defgpa.shapes import Shapes
from defgpa.solve.deformable.cost import DENSE_LANDMARKS
from defgpa.solve.deformable.factors import streamed_factor
from defgpa.solve.deformable.pipeline import Solution
from defgpa.solve.eigen.preconditioner import LowRankInverse, inverse_from_one
from defgpa.solve.eigen.signs import TIE, turned_ties, with_settled_signs
from defgpa.solve.eigen.solvers import Dense, Iterative, Spectrum
from defgpa.solve.handedness import Sides
from defgpa.solve.prior.covariance import common_eigenvalues
from defgpa.warps import Warp, WarpModel
from defgpa.worries import with_lone_landmarks, with_worries

LANDMARKS_PER_BLOCK = 100_000


@dataclass(frozen=True, eq=False)
class DistributedAlignment:
    """An alignment whose shapes stay on the cluster.

    Attributes
    ----------
    reference : array (m, d)
        The reference shape.
    warps : tuple of n Warp
        One callable per shape; they are small, and here.
    eigenvalues : array (d,)
        Λ, the eigenvalues of the reference covariance.
    names, landmarks : tuple of str
        Of the shapes and of the landmarks.
    solution : Solution
        Spectrum, votes, conditioning: the facts of the solve.
    """

    reference: Array
    warps: tuple[Warp, ...]
    eigenvalues: Array
    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    solution: Solution
    shared: Index  # the landmarks that at least two shapes see
    model: WarpModel
    cluster: Cluster
    parts: tuple[Any, ...]  # futures of (b, m, d)
    sizes: tuple[int, ...]  # shapes of each part

    @cached_property
    def rmse_reference(self) -> float:
        """RMSE_r, over the landmarks that at least two shapes see."""
        counted = np.full(self.reference.shape, np.nan)
        counted[self.shared] = self.reference[self.shared]
        tasks = [
            self.cluster.submit(work.squared_error, part, own, counted)
            for part, own in zip(self.parts, self._split(self.warps), strict=True)
        ]
        total, count = (sum(own) for own in zip(*self.cluster.results(tasks), strict=True))
        return float(np.sqrt(total / count))

    def aligned(self) -> Any:
        """The aligned shapes as a lazy Dask array (n, m, d)."""
        import dask
        import dask.array as da

        moved = dask.delayed(work.aligned_of)  # type: ignore[attr-defined]
        pieces = [
            da.from_delayed(moved(part, own), (len(own), *self.reference.shape), np.float64)
            for part, own in zip(self.parts, self._split(self.warps), strict=True)
        ]
        return da.concatenate(pieces)

    def gather(self) -> Alignment:
        """The same as an ``Alignment`` on this machine, for sets that fit."""
        points = np.concatenate(self.cluster.results(self.parts))
        shapes = Shapes.specimens(points, names=self.names, landmarks=self.landmarks)
        lone = np.setdiff1d(np.arange(shapes.n_landmarks), self.shared)
        core = assembled(shapes.without(lone), self.solution, self.eigenvalues, self.model)
        return with_worries(with_lone_landmarks(core, shapes, self.shared))

    def _split(self, items: tuple[Warp, ...]) -> list[tuple[Warp, ...]]:
        stops = np.cumsum(self.sizes)
        return [items[stop - size : stop] for stop, size in zip(stops, self.sizes, strict=True)]


def align(source: Any, estimator: DefGPA | None = None, client: Any = None) -> DistributedAlignment:
    """Align shapes that live on a Dask cluster.

    Parameters
    ----------
    source : Dask array (n, m, d), zarr array or path, list of landmark files, or Shapes
        NaN for a landmark not seen. Files and arrays are read by the workers; what is
        lost with a worker is read again. All files must have the same landmarks in one order.
    estimator : DefGPA, optional
        What to fit; the default model otherwise.
    client : dask.distributed.Client, optional
        The current one by default.

    Returns
    -------
    DistributedAlignment
        The same reference and warps as ``estimator.fit`` gives on one machine.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> import defgpa
    >>> points = np.random.default_rng(0).normal(size=(30, 2)) * [3, 2] + np.zeros((6, 1, 1))
    >>> points += 0.1 * np.random.default_rng(1).normal(size=points.shape)
    >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    ...     there = defgpa.distributed.align(da.from_array(points, chunks=(2, 30, 2)))
    >>> here = defgpa.DefGPA().fit(points)
    >>> bool(np.allclose(there.reference, here.reference_))
    True
    """
    chosen = DefGPA() if estimator is None else estimator
    cluster = Cluster(client)
    parts = parts_of(cluster, source)
    pattern = Pattern.of(cluster.results([cluster.submit(work.facts_of, p) for p in parts]))
    pattern.require_alignable()
    kept = None if len(pattern.shared) == pattern.n_landmarks else pattern.shared
    core = [cluster.submit(work.kept_landmarks, part, kept) for part in parts]
    extents = _checked_extents(cluster, core, pattern)
    rows = blocks(len(pattern.shared), LANDMARKS_PER_BLOCK)
    eigenvalues = _eigenvalues(cluster, core, pattern, rows, chosen, extents)
    solution = _solution(cluster, core, pattern, rows, chosen, eigenvalues)
    for message in _worries(pattern, solution):
        warnings.warn(message, DefgpaWarning, stacklevel=2)
    warps = tuple(map(Warp, solution.bases, solution.weights))
    return DistributedAlignment(
        _with_lone(cluster, parts, pattern, solution.reference, warps),
        warps,
        eigenvalues,
        pattern.names,
        pattern.landmarks,
        solution,
        pattern.shared,
        chosen.model,
        cluster,
        tuple(cluster.submit(work.kept_landmarks, part, None) for part in parts),
        pattern.sizes,
    )


def parts_of(cluster: Cluster, source: Any) -> list[Any]:
    """Futures of parts of the shapes, each made by a recipe that can be followed again."""
    if isinstance(source, Shapes):
        groups = np.array_split(np.arange(source.n_shapes), min(source.n_shapes, 8))
        return [cluster.submit(_same, source.take(group)) for group in groups]
    if isinstance(source, (list, tuple)) and all(isinstance(s, (str, os.PathLike)) for s in source):
        return [cluster.submit(work.read_part, str(path)) for path in source]
    array = _dask_array(source)
    if array.ndim != 3:
        raise DefgpaError(
            f"The array must be (shapes, landmarks, coordinates); got {array.ndim} dimensions."
        )
    pieces = array.rechunk({1: -1, 2: -1}).to_delayed().ravel()
    return list(cluster.client.compute(list(pieces), optimize_graph=False))


def _dask_array(source: Any) -> Any:
    import dask.array as da

    if isinstance(source, da.Array):
        return source
    if isinstance(source, (str, os.PathLike)):
        return da.from_zarr(str(source))
    if hasattr(source, "chunks") and hasattr(source, "shape"):
        return da.from_zarr(source)
    raise DefgpaError(
        "The source must be a Dask array, a zarr array or path, a list of landmark files, or "
        f"Shapes; got {type(source).__name__}."
    )


def _same(part: Any) -> Any:
    return part


def _checked_extents(cluster: Cluster, core: list[Any], pattern: Pattern) -> Array:
    """(n, d): singular values of what each shape shows; an error where that is a line."""
    found = cluster.results([cluster.submit(work.extents_of, part) for part in core])
    thin = np.concatenate([line for _, line, _ in found])
    if thin.any():
        culprits = [pattern.names[i] for i in np.flatnonzero(thin)]
        raise DegenerateShapeError(
            f"The visible landmarks of shape {listed(culprits)} are all collinear or coincident. "
            "Check the coordinates, or drop such shapes."
        )
    return np.concatenate([extents for extents, _, _ in found])


def _eigenvalues(
    cluster: Cluster,
    core: list[Any],
    pattern: Pattern,
    rows: list[slice],
    estimator: DefGPA,
    extents: Array,
) -> Array:
    given = estimator.given_eigenvalues(extents.shape[1])
    if given is not None:
        return given
    if not pattern.visible[:, pattern.shared].all():
        extents = completed_extents(cluster, core, list(pattern.sizes), rows)
        if np.isnan(extents).any():
            raise DegenerateShapeError(
                "Some missing landmarks cannot be estimated: their shapes share only collinear "
                "landmarks with the others. State the proportions: DefGPA(warp, scale=[...])."
            )
    return common_eigenvalues(extents)


def _solution(
    cluster: Cluster,
    core: list[Any],
    pattern: Pattern,
    rows: list[slice],
    estimator: DefGPA,
    eigenvalues: Array,
) -> Solution:
    visible = pattern.visible[:, pattern.shared]
    views = visible.sum(axis=0).astype(np.float64)
    n, model = pattern.n_shapes, estimator.model
    lead = _most_complete_shape(cluster, core, pattern)
    keep = _columns_fit(lead, n, model, estimator.memory_budget, cluster)
    cost = distributed_cost(cluster, core, views, n, model, rows, keep)
    spectrum = _spectrum(cost, lead, estimator)
    axes = with_settled_signs(_untied(cluster, core, spectrum, n))
    sides = _sides(cluster, core, axes * np.sqrt(eigenvalues))
    axes[:, 0] *= sides.majority
    reference = axes * np.sqrt(eigenvalues)
    warps = cluster.steadily(lambda: _warps(cluster, cost, reference))
    return Solution(
        axes,
        reference,
        tuple(warp.basis for warp in warps),
        tuple(warp.weights for warp in warps),
        sides.votes * sides.majority,
        spectrum,
        float(np.linalg.norm(cost.multiply(np.ones((len(views), 1))))),
        cost.condition,
        cost.dropped,
        "distributed",
        cohesion(axes, spectrum.beyond, visible),
    )


def _most_complete_shape(cluster: Cluster, core: list[Any], pattern: Pattern) -> Array:
    """(m, d): the shape that stands for all in the preconditioner, brought to the driver."""
    part, number = pattern.place_of(int(pattern.visible[:, pattern.shared].sum(axis=1).argmax()))
    return np.asarray(cluster.results([cluster.submit(work.one_shape, core[part], number)])[0])


def _columns_fit(lead: Array, n: int, model: WarpModel, budget: int, cluster: Cluster) -> bool:
    """Whether the columns of all shapes fit into the budget of every worker together."""
    size = work.batches_of(lead[None], model)[0].bases.penalty().shape[-1]
    workers = max(1, len(cluster.client.scheduler_info(n_workers=-1)["workers"]))
    return 8 * n * len(lead) * size <= budget * workers


def _spectrum(cost: DistributedCost, lead: Array, estimator: DefGPA) -> Spectrum:
    solver = estimator.solver
    if solver is None:
        solver = Dense() if cost.n_landmarks <= DENSE_LANDMARKS else Iterative()

    def idea() -> LowRankInverse:
        batch = work.batches_of(lead[None], estimator.model)[0]
        return inverse_from_one(streamed_factor(batch), cost.views, cost.n_shapes)

    return solver.axes(estimator.chosen_centering.applied(cost), idea, lead.shape[1])


def _untied(cluster: Cluster, core: list[Any], spectrum: Spectrum, n: int) -> Array:
    values = spectrum.values[: spectrum.axes.shape[1]]
    if np.diff(values).min(initial=np.inf) > TIE * n:
        return spectrum.axes
    tasks = [cluster.submit(work.in_axes_of, part, spectrum.axes) for part in core]
    return turned_ties(spectrum.axes, values, np.concatenate(cluster.results(tasks)))


def _sides(cluster: Cluster, core: list[Any], reference: Array) -> Sides:
    found = cluster.results([cluster.submit(work.sides_of, part, reference) for part in core])
    return Sides(
        np.concatenate([own.preferred for own in found]),
        np.concatenate([own.clear for own in found]),
    )


def _warps(cluster: Cluster, cost: DistributedCost, reference: Array) -> tuple[Warp, ...]:
    mixed = cost.coefficients(reference)
    tasks = [
        cluster.submit(work.warps_of, own, weights)
        for own, weights in zip(cost.batches, mixed, strict=True)
    ]
    return tuple(warp for own in cluster.results(tasks) for warp in own)


def _with_lone(
    cluster: Cluster,
    parts: list[Any],
    pattern: Pattern,
    core: Array,
    warps: Sequence[Warp],
) -> Array:
    """The reference of all landmarks; one seen once stands where its shape's warp puts it."""
    if len(core) == pattern.n_landmarks:
        return core
    reference = np.empty((pattern.n_landmarks, core.shape[1]))
    reference[pattern.shared] = core
    lone = np.setdiff1d(np.arange(pattern.n_landmarks), pattern.shared)
    seers = pattern.visible[:, lone].argmax(axis=0)
    for seer in np.unique(seers):
        part, number = pattern.place_of(int(seer))
        whole = cluster.submit(work.kept_landmarks, parts[part], None)
        own = cluster.results([cluster.submit(work.one_shape, whole, number)])[0]
        chosen = lone[seers == seer]
        reference[chosen] = warps[seer](own[chosen])
    return reference


def _worries(pattern: Pattern, solution: Solution) -> list[str]:
    said = []
    if len(pattern.shared) < pattern.n_landmarks:
        lone = np.setdiff1d(np.arange(pattern.n_landmarks), pattern.shared)
        names = listed(pattern.landmarks[j] for j in lone)
        said.append(f"Seen in one shape only: landmark {names}. It was left out of the solve.")
    mirrored = [pattern.names[i] for i in np.flatnonzero(solution.votes < 0)]
    if mirrored:
        said.append(f"Mirrored against the majority of the shapes: {listed(mirrored)}.")
    if not solution.spectrum.settled:
        said.append(
            f"The iterative solver stopped after {solution.spectrum.products} products with a "
            f"residual of {solution.spectrum.residuals.max():.3g}: the reference may be inaccurate."
        )
    return said
