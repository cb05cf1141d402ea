"""A cluster gives the same answer as one machine, whatever happens to its workers."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from joblib import parallel_config

import defgpa
from defgpa.solvers import Iterative
from defgpa.tuning import Tuning
from support import PARITY, cluster, smooth_family

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

# issue: the distributed answer is the local one to 1e-8
SAME = {"rtol": 1e-8, "atol": 1e-8}

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*large graph.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    with cluster(n_workers=2) as made:
        yield made


def chunked(points, size=2):
    return da.from_array(points, chunks=(size, -1, -1))


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["full", "partial"])
@pytest.mark.parametrize("d", [2, 3])
def test_a_cluster_gives_the_answer_of_one_machine(client, d, missing):
    points = smooth_family(seed=d, n=7, m=45, d=d, missing=missing)
    expected = defgpa.DefGPA().fit(points).alignment_
    on_cluster = defgpa.distributed.align(chunked(points), defgpa.DefGPA(), client)
    np.testing.assert_allclose(on_cluster.reference, expected.reference, **SAME)
    np.testing.assert_allclose(on_cluster.eigenvalues, expected.eigenvalues, **SAME)
    np.testing.assert_allclose(on_cluster.rmse_reference, expected.rmse_reference, **SAME)
    np.testing.assert_allclose(on_cluster.aligned().compute(), expected.aligned, **SAME)


def test_many_partial_shapes_go_through_one_shape_here_as_there(client):
    points = smooth_family(seed=6, n=140, m=20, d=2, missing=0.15)
    expected = defgpa.DefGPA(defgpa.Affine()).fit(points).alignment_
    on_cluster = defgpa.distributed.align(
        chunked(points, 50), defgpa.DefGPA(defgpa.Affine()), client
    )
    np.testing.assert_allclose(on_cluster.eigenvalues, expected.eigenvalues, **SAME)
    np.testing.assert_allclose(on_cluster.reference, expected.reference, **SAME)


def test_files_and_zarr_are_read_by_the_workers(client, tmp_path):
    zarr = pytest.importorskip("zarr")
    points = smooth_family(seed=8, n=4, m=30, d=2, missing=0.1)
    expected = defgpa.DefGPA(defgpa.Affine()).fit(points).alignment_
    files = []
    for k in range(2):
        files.append(tmp_path / f"part_{k}.tps")
        piece = defgpa.Shapes.specimens(points[2 * k : 2 * k + 2], names=[f"a{k}", f"b{k}"])
        defgpa.write_shapes(piece, files[-1])
    stored = zarr.open_array(
        str(tmp_path / "set.zarr"), mode="w", shape=points.shape, chunks=(1, 30, 2), dtype="f8"
    )
    stored[:] = points
    for source in (files, str(tmp_path / "set.zarr")):
        on_cluster = defgpa.distributed.align(source, defgpa.DefGPA(defgpa.Affine()), client)
        np.testing.assert_allclose(on_cluster.reference, expected.reference, **SAME)
    named = defgpa.distributed.align(files, defgpa.DefGPA(defgpa.Affine()), client)
    assert named.names == ("a0", "b0", "a1", "b1")


def test_a_lone_landmark_is_placed_and_the_whole_can_be_gathered(client):
    points = smooth_family(seed=9, n=5, m=30, d=2)
    points[1:, 7] = np.nan
    with pytest.warns(defgpa.DefgpaWarning, match="one shape only"):
        expected = defgpa.DefGPA(defgpa.Affine()).fit(points).alignment_
    with pytest.warns(defgpa.DefgpaWarning, match="one shape only"):
        on_cluster = defgpa.distributed.align(
            chunked(points), defgpa.DefGPA(defgpa.Affine()), client
        )
    gathered = on_cluster.gather()
    np.testing.assert_allclose(gathered.reference, expected.reference, **SAME)
    np.testing.assert_allclose(gathered.rmse_datum, expected.rmse_datum, **SAME)
    assert gathered.lone_landmarks == expected.lone_landmarks


@pytest.fixture(params=[0.0, 0.2], ids=["full", "partial"])
def weighted(request):
    """Shapes the first four of which have one weight each, so that it is equal within a part."""
    points = smooth_family(seed=13, n=7, m=45, d=2, missing=request.param)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, size=points.shape[:2])
    weights[:4] = [[0.1], [0.1], [2.0], [2.0]]
    return defgpa.Shapes(points, weights=weights)


@pytest.mark.parametrize(
    "estimator",
    [
        defgpa.DefGPA(),
        defgpa.DefGPA(proportions="prior"),
        defgpa.DefGPA(memory_budget=0),
        defgpa.DefGPA(defgpa.ThinPlateSpline(7, smoothing=1e-8)),  # in poor condition
    ],
    ids=["stored", "prior", "streamed", "accurate"],
)
def test_landmark_weights_count_there_as_here(client, weighted, estimator):
    expected = estimator.align(weighted)
    on_cluster = defgpa.distributed.align(
        chunked(weighted.points), estimator, client, weights=weighted.weights
    )
    tolerance = PARITY if estimator.warp else SAME
    assert not estimator.warp or on_cluster.diagnostics.condition.max() > 1e7
    np.testing.assert_allclose(on_cluster.reference, expected.reference, **tolerance)
    np.testing.assert_allclose(on_cluster.rmse_reference, expected.rmse_reference, **tolerance)
    assert list(map(str, on_cluster.findings)) == list(map(str, expected.findings))
    gathered = on_cluster.gather()
    np.testing.assert_allclose(gathered.rmse_datum, expected.rmse_datum, **tolerance)
    np.testing.assert_allclose(gathered.shapes.weights, weighted.weights, **SAME)


@pytest.mark.parametrize("is_weighted", [False, True], ids=["alike", "weighted"])
def test_blocks_of_landmarks_and_iterations_give_the_same_answer(client, is_weighted):
    points = smooth_family(seed=4, n=5, m=170, d=3, missing=0.15)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, size=points.shape[:2])
    shapes = defgpa.Shapes(points, weights=weights if is_weighted else None)
    few = Tuning(landmarks_per_block=50)
    exact = defgpa.DefGPA(solver=Iterative(accuracy=1e-12), tuning=few)
    on_cluster = defgpa.distributed.align(shapes, exact, client)
    assert on_cluster.diagnostics.method == "iterative"
    np.testing.assert_allclose(
        on_cluster.reference, defgpa.DefGPA().align(shapes).reference, **SAME
    )


def test_weights_come_with_shapes_and_files_and_equal_ones_change_nothing(client, tmp_path):
    points = smooth_family(seed=8, n=4, m=30, d=2)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, size=points.shape[:2])
    shapes, files = defgpa.Shapes(points, weights=weights), []
    for k in range(2):
        files.append(tmp_path / f"part_{k}.csv")
        defgpa.write_shapes(shapes.take(np.arange(2 * k, 2 * k + 2)), files[-1], format="csv-long")
    expected = defgpa.DefGPA().align(shapes).reference
    for source in (shapes, files):
        on_cluster = defgpa.distributed.align(source, client=client)
        np.testing.assert_allclose(on_cluster.reference, expected, **SAME)
    equal = defgpa.distributed.align(shapes.with_weights(np.full((4, 30), 3.0)), client=client)
    np.testing.assert_allclose(equal.reference, defgpa.DefGPA().align(points).reference, **SAME)


def test_what_a_cluster_cannot_weigh_is_refused_with_a_remedy(client):
    points = chunked(smooth_family(seed=4, n=4, m=20, d=2))
    with pytest.raises(defgpa.DefgpaError, match=r"least squares.*one machine"):
        defgpa.distributed.align(points, defgpa.DefGPA(robust=True), client)
    with pytest.raises(defgpa.DefgpaError, match=r"\(4, 20\); got size \(20, 4\)"):
        defgpa.distributed.align(points, None, client, weights=np.ones((20, 4)))
    weights = np.ones((4, 20))
    weights[2, 6] = -1.0
    with pytest.raises(defgpa.ShapeError, match=r"landmark '7' of shape 'shape_3' is -1"):
        defgpa.distributed.align(points, None, client, weights=weights)
    with pytest.raises(defgpa.DefgpaError, match=r"with_weights"):
        defgpa.distributed.align(defgpa.Shapes(points.compute()), None, client, weights=weights)


def test_shapes_that_fall_apart_are_refused_by_name(client):
    points = smooth_family(seed=10, n=4, m=20, d=2)
    points[:2, :10] = np.nan
    points[2:, 10:] = np.nan
    with pytest.raises(defgpa.ShapeError, match="2 groups"):
        defgpa.distributed.align(chunked(points), defgpa.DefGPA(), client)


def test_without_a_client_it_says_how_to_make_one(monkeypatch):
    def nobody():
        raise ValueError

    monkeypatch.setattr("distributed.default_client", nobody)
    with pytest.raises(defgpa.DefgpaError, match="no Dask client"):
        defgpa.distributed.align(chunked(smooth_family()))


def test_a_killed_worker_does_not_lose_the_run(monkeypatch):
    """One of two worker processes is killed for good in the middle of the iterations."""
    points = smooth_family(seed=11, n=6, m=150, d=2, missing=0.1)
    expected = defgpa.DefGPA().fit(points).alignment_
    from defgpa.distributed.cost import DistributedCost

    products = []
    explain = DistributedCost._explain
    with cluster(n_workers=2, processes=True) as client:
        pids = list(client.run(os.getpid).values())

        def kills_at_the_second_product(self, block):
            products.append(block.shape[1])
            if len(products) == 2:
                os.kill(pids[0], signal.SIGKILL)
            return explain(self, block)

        monkeypatch.setattr(DistributedCost, "_explain", kills_at_the_second_product)
        on_cluster = defgpa.distributed.align(
            chunked(points), defgpa.DefGPA(solver=Iterative(accuracy=1e-12)), client
        )
        alive = list(client.run(os.getpid).values())
    assert pids[0] not in alive
    assert len(products) > 2
    np.testing.assert_allclose(on_cluster.reference, expected.reference, **SAME)


def test_folds_run_on_a_cluster_with_the_same_digits(client):
    points = smooth_family(seed=12, n=4, m=12, d=2)
    estimator = defgpa.EuclideanGPA()
    expected = defgpa.cross_validate(estimator, points, fold_size=3)
    with parallel_config(backend="dask", wait_for_workers_timeout=30):
        on_cluster = defgpa.cross_validate(estimator, points, fold_size=3, n_jobs=2)
    assert on_cluster.error == expected.error
