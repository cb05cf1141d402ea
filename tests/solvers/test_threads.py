"""Blocks on several threads: in order, nested, interrupted, forked."""

import multiprocessing
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from defgpa import DefGPA, ThinPlateSpline, threads
from defgpa.threads import count_threads, map_blocks, use_threads
from support import smooth_family


@pytest.fixture
def two_threads():
    """As if BLAS were allowed two threads, whatever this machine has."""
    with use_threads(2):
        yield


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_results_come_in_the_order_of_the_parts(two_threads):
    def work(part):
        time.sleep(0.001 * (part % 3))
        return part, threading.get_ident()

    actual = map_blocks(work, range(40))
    assert [part for part, _ in actual] == list(range(40))
    assert len({thread for _, thread in actual}) == 2
    assert threading.get_ident() in {thread for _, thread in actual}


def test_blas_is_held_to_one_thread_and_nothing_nests(two_threads):
    def work(part):
        return count_threads(), map_blocks(lambda inner: inner, range(3)), blas_threads()

    for allowed, inner, blas in map_blocks(work, range(8)):
        assert allowed == 1
        assert inner == [0, 1, 2]
        assert blas == {1}
    assert count_threads() == 2


def test_a_failure_reaches_the_caller_and_stops_the_rest(two_threads):
    begun = []

    def work(part):
        begun.append(part)
        time.sleep(0.002)
        if part == 3:
            raise ValueError("part 3")

    with pytest.raises(ValueError, match="part 3"):
        map_blocks(work, range(200))
    assert len(begun) < 20
    assert count_threads() == 2
    assert map_blocks(lambda part: part, range(5)) == list(range(5))


def test_busy_helpers_are_not_waited_for(two_threads):
    """The helpers do something else: the calling thread does it all."""
    release = threading.Event()
    busy = [threads._get_helpers().submit(release.wait) for _ in range(16)]
    try:
        actual = map_blocks(lambda part: threading.get_ident(), range(10))
    finally:
        release.set()
    assert set(actual) == {threading.get_ident()}
    assert all(helper.result() for helper in busy)


def test_allowances_are_restored():
    before = count_threads()
    with use_threads(3):
        assert count_threads() == 3
        with use_threads(2), use_threads(1):
            assert count_threads() == 1
        assert count_threads() == 3
    assert count_threads() == before


def test_another_thread_has_its_own_allowance(two_threads):
    assert in_another_thread(count_threads) == 1  # BLAS is held to one


def in_another_thread(work):
    actual = []
    thread = threading.Thread(target=lambda: actual.append(work()))
    thread.start()
    thread.join()
    return actual[0]


def held_to():
    with use_threads(1):
        return blas_threads()


def test_the_limit_holds_whichever_thread_sets_it():
    assert held_to() == {1}
    assert in_another_thread(held_to) == {1}
    assert held_to() == {1}


def test_the_limit_is_lifted_whichever_thread_leaves_last():
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with use_threads(1):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    with use_threads(1):
        thread.start()
        entered.wait()
    assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before


def test_a_fit_on_another_thread_has_the_same_digits():
    points = smooth_family(seed=4, n=10, m=900, d=3)

    def fit():
        alignment = DefGPA(ThinPlateSpline(3)).fit(points).alignment_
        return alignment.reference, alignment.datum_residuals

    for first, two in zip(fit(), in_another_thread(fit), strict=True):
        np.testing.assert_array_equal(first, two)


def test_a_forked_process_is_not_held_by_the_threads_it_lost():
    before = blas_threads()
    lost = use_threads(1)
    lost.__enter__()
    threads._limit.lock.acquire()  # as if another thread had been about to leave
    threads._reset_after_fork()
    assert blas_threads() == before
    with use_threads(1):
        assert blas_threads() == {1}
        del lost
    assert blas_threads() == before


def _sum_in_child(queue):
    with use_threads(2):
        queue.put(sum(map_blocks(lambda part: part, range(10))))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own(two_threads):
    map_blocks(lambda part: part, range(10))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_sum_in_child, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert queue.get() == 45


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_threads_change_no_digit(missing):
    points = smooth_family(seed=3, n=1100, m=40, missing=missing)
    fits = []
    for n_threads in (1, 2):
        with use_threads(n_threads):
            fits.append(DefGPA(ThinPlateSpline(3)).fit(points).alignment_)
    first, two = fits
    np.testing.assert_array_equal(first.reference, two.reference)
    np.testing.assert_array_equal(first.aligned, two.aligned)
