"""Both cores, never more: blocks on threads, BLAS on one thread inside them.

Two-thread BLAS beside a busy core can be slower than one thread, so work that comes in
independent blocks is spread over Python threads (numpy and scipy release the GIL) with BLAS held
to one; work that is one large product is left to BLAS. Small work stays on the thread it is on:
handing it over would cost more than it saves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

_T = TypeVar("_T")
_R = TypeVar("_R")

USUAL_FEATURES = 64  # of a warp that bends
_LITTLE = 8192 * USUAL_FEATURES  # numbers: landmarks of all shapes times features


@cache
def _libraries() -> Sequence[Any]:
    """The BLAS libraries that numpy and scipy have loaded."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(libraries: Iterable[tuple[Any, int]]) -> None:
    for library, threads in libraries:
        if library.num_threads != threads:
            library.set_num_threads(threads)


def n_threads() -> int:
    """Threads to use: those BLAS may use here, so that limits set from outside hold for us too."""
    return max(1, min([*(library.num_threads for library in _libraries()), _cores()]))


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _OneBlasThread(ContextDecorator):
    """A limit that is set when the first holder comes and lifted when the last one leaves.

    BLAS has one limit for the whole process: holders on several threads must not restore what
    another of them had set.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._before = [(library, library.num_threads) for library in _libraries()]
                _set_threads((library, 1) for library, _ in self._before)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                _set_threads(self._before)


one_blas_thread = _OneBlasThread()


def threads_for(features: int) -> AbstractContextManager[None]:
    """One thread for work on few features of all shapes together, as many as there are else."""
    return one_blas_thread if features <= _LITTLE else nullcontext()


def blocks(size: int, block: int) -> list[slice]:
    """Slices of at most ``block`` entries that cover ``range(size)``."""
    return [slice(start, min(start + block, size)) for start in range(0, size, block)]


def in_blocks(work: Callable[[_T], _R], parts: Sequence[_T] | Iterable[_T]) -> list[_R]:
    """``work`` on every part, in order, on the threads there are."""
    parts = list(parts)
    workers = min(n_threads(), len(parts)) if len(parts) > 1 else 1
    if workers == 1:
        return [work(part) for part in parts]
    with one_blas_thread, ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, parts))
