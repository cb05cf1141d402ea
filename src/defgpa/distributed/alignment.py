"""The whole solve with the shapes on a cluster; the driver holds no more than references.

Sets with few enough landmarks are looked at here as a fit on one machine looks at its input:
exchanged and misplaced landmarks, other sizes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.diagnostics.findings import Finding, warn_about
from defgpa.diagnostics.screening import add_input_findings
from defgpa.diagnostics.solution import SpectralDiagnostics
from defgpa.distributed import work
from defgpa.distributed.cluster import Cluster
from defgpa.distributed.cost import build_cluster_cost
from defgpa.distributed.shapes import ClusterSet
from defgpa.errors import DefgpaError
from defgpa.estimators import DefGPA
from defgpa.io import read_shapes
from defgpa.lone_landmarks import extend_reference, report_lone_landmarks
from defgpa.shapes import Shapes
from defgpa.solvers.deformable import DeformableFit, fit_deformable
from defgpa.solvers.registration import RidgeRegistration
from defgpa.warps import Warp, WarpModel


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
    fit : DeformableFit
        The fit on the landmarks that at least two shapes share.
    findings : tuple of Finding
        What a user should be told, as values; ``align`` has warned of them.
    """

    reference: Array
    warps: tuple[Warp, ...]
    eigenvalues: Array
    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    fit: DeformableFit
    findings: tuple[Finding, ...]
    model: WarpModel
    shapes: ClusterSet

    @property
    def diagnostics(self) -> SpectralDiagnostics:
        """Facts about the solve."""
        return self.fit.diagnostics

    @cached_property
    def rmse_reference(self) -> float:
        """RMSE_r, over the landmarks that at least two shapes have."""
        common_reference = np.full(self.reference.shape, np.nan)
        common, cluster = self.shapes.common, self.shapes.cluster
        common_reference[common] = self.reference[common]
        tasks = [
            cluster.submit(work.sum_square_errors, part, warps, common_reference)
            for part, warps in self._iter_parts()
        ]
        total, count = (sum(terms) for terms in zip(*cluster.gather(tasks), strict=True))
        return float(np.sqrt(total / count))

    def aligned(self) -> Any:
        """Return the aligned shapes as a lazy Dask array (n, m, d)."""
        import dask
        import dask.array as da

        apply_warps = dask.delayed(work.apply_part_warps)  # type: ignore[attr-defined]
        shape = self.reference.shape
        pieces = [
            da.from_delayed(apply_warps(part, warps), (len(warps), *shape), np.float64)
            for part, warps in self._iter_parts()
        ]
        return da.concatenate(pieces)

    def gather(self) -> Alignment:
        """Bring the result to this machine as an ``Alignment``, for sets that fit into it."""
        shapes = self.shapes.gather()
        warps = [
            Warp(warp.basis, warp.coefficients, landmarks=shape[self.shapes.common])
            for warp, shape in zip(self.warps, shapes.points, strict=True)
        ]
        return Alignment(
            shapes,
            np.array(self.reference),
            tuple(warps),
            self.fit.eigenvalues,
            self.fit.diagnostics,
            RidgeRegistration(self.model),
            np.eye(shapes.n_dims),
            self.findings,
        )

    def _iter_parts(self) -> Iterator[tuple[Any, tuple[Warp, ...]]]:
        """Iterate over the parts of the shapes, each with the warps of its shapes."""
        sizes = self.shapes.sizes
        for part, size, stop in zip(self.shapes.parts, sizes, np.cumsum(sizes), strict=True):
            yield part, self.warps[stop - size : stop]


def align(
    source: Any, estimator: DefGPA | None = None, client: Any = None, weights: Any = None
) -> DistributedAlignment:
    """Align shapes that live on a Dask cluster.

    Parameters
    ----------
    source : array (n, m, d) of Dask, zarr or NumPy, zarr path, list of files, or Shapes
        NaN for a missing landmark. Files and arrays are read by the workers; what is
        lost with a worker is read again. All files must have the same landmarks in one order.
        Files and Shapes have their landmark weights with them.
    estimator : DefGPA, optional
        What to fit, not robust; the default model otherwise.
    client : dask.distributed.Client, optional
        The current one by default.
    weights : array (n, m) of NumPy, Dask or zarr, optional
        Landmark weights of an array of points.

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
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     there = defgpa.distributed.align(da.from_array(points, chunks=(2, 30, 2)))
    >>> here = defgpa.DefGPA().fit(points)
    >>> bool(np.allclose(there.reference, here.reference_))
    True
    """
    chosen = DefGPA() if estimator is None else estimator
    if chosen.robust:
        raise DefgpaError(
            f"A cluster fits by least squares, with landmark weights. Got {chosen!r}: leave out "
            "'robust', or estimate the weights on one machine (align(shapes).weights) and give "
            "them here."
        )
    cluster = Cluster(client)
    cluster_set = ClusterSet.from_sources(cluster, submit_sources(cluster, source, weights))
    cluster_set.require_alignable()
    method, model, common = (
        chosen.make_method(cluster_set.n_dims),
        chosen.warp_model,
        cluster_set.common,
    )
    core = cluster_set.drop_lone_landmarks(method.tuning.landmarks_per_block)
    assert core.rank  # told before anything is solved: a shape that is a line
    fit = fit_deformable(core, build_cluster_cost(core, model, chosen.memory_budget), method)
    result = DistributedAlignment(
        extend_reference(
            fit.reference,
            fit.coefficients,
            common,
            cluster_set.visible,
            lambda shape: cluster_set.fetch_shape(shape).points[0],
        ),
        fit.coefficients,
        fit.eigenvalues,
        cluster_set.names,
        cluster_set.landmarks,
        fit,
        (*report_lone_landmarks(cluster_set.landmarks, common), *fit.findings),
        model,
        cluster_set,
    )
    if (
        cluster_set.visible.size <= method.tuning.screened_landmarks
    ):  # few enough to be looked at here
        gathered = result.gather()
        measure = partial(chosen.measure_influence, gathered, None)
        checked = add_input_findings(gathered, method.tuning, measure)
        result = replace(result, findings=checked.findings)
    warn_about(result.findings)
    return result


def submit_sources(cluster: Cluster, source: Any, weights: Any = None) -> list[Any]:
    """Return futures of arrays or Shapes, each made by a recipe that can be followed again."""
    is_array = not isinstance(source, (Shapes, list, tuple))
    if weights is not None and not is_array:
        raise DefgpaError(
            "'weights' are those of an array of points; give files and Shapes theirs by "
            "shapes.with_weights(weights), or in a column of the files."
        )
    if isinstance(source, Shapes):
        groups = np.array_split(np.arange(source.n_shapes), min(source.n_shapes, 8))
        return [cluster.submit(_pass_on, source.take(group)) for group in groups]
    if isinstance(source, (list, tuple)) and all(isinstance(s, (str, os.PathLike)) for s in source):
        return [cluster.submit(read_shapes, str(path)) for path in source]
    array = _make_dask_array(source)
    if array.ndim != 3:
        raise DefgpaError(
            f"The array must be (shapes, landmarks, coordinates); got {array.ndim} dimensions."
        )
    array = array.rechunk({1: -1, 2: -1})
    points = _compute_pieces(cluster, array)
    if weights is None:
        return points
    table = _make_dask_array(weights)
    if table.shape != array.shape[:2]:
        raise DefgpaError(
            f"'weights' must have one number per shape and landmark, {array.shape[:2]}; got size "
            f"{table.shape}."
        )
    rows = _compute_pieces(cluster, table.rechunk((array.chunks[0], -1)))
    firsts = np.cumsum([0, *array.chunks[0][:-1]]).tolist()
    return [
        cluster.submit(work.weigh_points, *piece)
        for piece in zip(points, rows, firsts, strict=True)
    ]


def _compute_pieces(cluster: Cluster, array: Any) -> list[Any]:
    """Return futures of the chunks of a Dask array."""
    return list(cluster.client.compute(list(array.to_delayed().ravel()), optimize_graph=False))


def _make_dask_array(source: Any) -> Any:
    """Return the source as a Dask array, or raise a DefgpaError."""
    import dask.array as da

    if isinstance(source, da.Array):
        return source
    if isinstance(source, np.ndarray):
        return da.from_array(source, chunks=(max(1, -(-len(source) // 8)), *source.shape[1:]))
    if isinstance(source, (str, os.PathLike)):
        return da.from_zarr(str(source))
    if hasattr(source, "chunks") and hasattr(source, "shape"):
        return da.from_zarr(source)
    raise DefgpaError(
        "Shapes on a cluster come from an array of Dask, zarr or NumPy, a zarr path, a list of "
        f"files, or Shapes, their weights from an array; got {type(source).__name__}."
    )


def _pass_on(part: Any) -> Any:
    return part
