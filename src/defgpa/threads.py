"""Work on all cores: independent blocks on Python threads, and BLAS held to one thread.

Work that comes in independent blocks is spread over Python threads (numpy and scipy release the
GIL). BLAS is held to one thread meanwhile, and between the blocks too: the threads it starts for
one product go on spinning afterwards, and take the cores from ours. Small work stays on the thread
it is on: handing it over would cost more than it saves.

Whoever waits for long work may stop it: the work asks at each of its steps (`check_interruption`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import count, islice
from math import inf
from threading import Lock, local
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import LibController

_T = TypeVar("_T")
_R = TypeVar("_R")

USUAL_FEATURES = 64  # of a warp that bends
_SMALL_WORK = 2048 * USUAL_FEATURES  # numbers: landmarks of all shapes times features

_thread_state = local()


@cache
def _find_libraries() -> Sequence[LibController]:
    """Return the BLAS libraries of numpy and scipy."""
    import scipy.linalg  # noqa: F401 - loads its library; slow, and files are read without it
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(libraries: Iterable[tuple[LibController, int]]) -> None:
    """Let every library use its number of threads, from whichever thread it is set next."""
    release = None
    for library, threads in libraries:
        if library.num_threads != threads:
            library.set_num_threads(threads)
            release = getattr(library, "clear_controlling_thread", release)
    if release is not None:  # else no other thread could lift the limit until this one ends
        release()


class _Limit:
    """The number of threads that hold BLAS to one thread, and its earlier setting.

    BLAS has one limit for the whole process: holders on several threads must not restore what
    another of them had set.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.holders = 0
        self.before: Sequence[tuple[LibController, int]] = ()


_limit = _Limit()


@contextmanager
def use_threads(allowed: int | None = None, *, n_values: float = inf) -> Iterator[None]:
    """Hold BLAS to one thread, and use as many of our threads as it had, or as are allowed.

    Parameters
    ----------
    allowed : int, optional
        Number of threads that `map_blocks` may use in this context.
    n_values : int, optional
        How many numbers the work has; one thread is enough for few.
    """
    if n_values <= _SMALL_WORK:
        allowed = 1
    elif allowed is None:
        allowed = count_threads()
    outer, limit = getattr(_thread_state, "allowed", None), _limit
    with limit.lock:
        limit.holders += 1
        if limit.holders == 1:
            limit.before = [(library, library.num_threads) for library in _find_libraries()]
            _set_threads((library, 1) for library, _ in limit.before)
    _thread_state.allowed = allowed
    try:
        yield
    finally:
        _thread_state.allowed = outer
        with limit.lock:
            limit.holders -= 1
            if limit.holders == 0:
                _set_threads(limit.before)


def count_threads() -> int:
    """Return how many threads to use: those that BLAS may use, within outside limits."""
    allowed: int | None = getattr(_thread_state, "allowed", None)
    if allowed is not None:
        return allowed
    return max(1, min([*(library.num_threads for library in _find_libraries()), _count_cores()]))


@cache
def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split_range(size: int, block: int) -> list[slice]:
    """Split ``range(size)`` into slices of at most ``block`` entries."""
    return [slice(start, min(start + block, size)) for start in range(0, size, block)]


def map_blocks(work: Callable[[_T], _R], blocks: Sequence[_T] | Iterable[_T]) -> list[_R]:
    """Call ``work`` on every block, on the threads there are; return the results in order.

    This thread works too and the others help it: so it never waits for one that has not begun, and
    blocks within blocks cannot wait for each other.
    """
    blocks = list(blocks)
    workers = min(count_threads(), len(blocks)) if len(blocks) > 1 else 1
    if workers == 1:
        return [work(block) for block in blocks]
    results: dict[int, _R] = {}
    turn = count()

    def take_turns() -> None:
        try:
            while (number := next(turn)) < len(blocks):
                results[number] = work(blocks[number])
        except BaseException:
            deque(islice(turn, len(blocks)), maxlen=0)  # the others need not begin another
            raise

    with use_threads(1):
        helpers = [_get_helpers().submit(take_turns) for _ in range(workers - 1)]
        try:
            take_turns()
        finally:
            started = [helper for helper in helpers if not helper.cancel()]
            wait(started)
        for helper in started:
            helper.result()
    return [results[number] for number in range(len(blocks))]


@cache
def _get_helpers() -> ThreadPoolExecutor:
    """Return the pool of threads, kept because starting one takes as long as a small block."""
    return ThreadPoolExecutor(max(1, _count_cores() - 1), thread_name_prefix="defgpa")


def _reset_after_fork() -> None:
    """Forget the threads that helped, and those that held the limit or its lock."""
    global _limit
    _get_helpers.cache_clear()
    lost, _limit = _limit, _Limit()
    lost.lock = Lock()
    _set_threads(lost.before if lost.holders else ())


if hasattr(os, "register_at_fork"):  # a forked process has none of our threads
    os.register_at_fork(after_in_child=_reset_after_fork)


# Stopping long work


class InterruptedWork(BaseException):
    """Stops work that nobody waits for any more; no handler of ordinary errors must swallow it."""


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """Call a function at each step of the work in this thread; what it raises stops the work."""
    before = getattr(_thread_state, "check", None)
    _thread_state.check = check
    try:
        yield
    finally:
        _thread_state.check = before


def check_interruption() -> None:
    """Stop here if nobody waits for the work in this thread any more."""
    check = getattr(_thread_state, "check", None)
    if check is not None:
        check()
