"""Independent tasks on several workers, BLAS held to one thread: never more than the cores.

By default the workers are threads (numpy releases the lock, and nothing is copied); under
``joblib.parallel_config(backend=...)`` they are whatever it says: processes, Dask, Ray.
BLAS keeps to one thread however many workers there are, so their number changes no digit.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import starmap
from typing import Any, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

from defgpa._arrays import n_threads, one_blas_thread
from defgpa.errors import DefgpaWarning

_R = TypeVar("_R")


def in_parallel(
    work: Callable[..., _R],
    arguments: Sequence[tuple[Any, ...]],
    n_jobs: int | None,
    done: Callable[[_R], None],
) -> list[_R]:
    """``work(*own)`` of all arguments, in order; ``done`` is told each result as it comes."""
    results = []
    made = _made(work, arguments, n_jobs)
    with closing(made), one_blas_thread, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DefgpaWarning)
        for result in made:
            results.append(result)
            done(result)
    for once in {(w.category, str(w.message)): w for w in heard}.values():
        warnings.warn_explicit(once.message, once.category, once.filename, once.lineno)
    return results


def _task(work: Callable[..., _R], own: tuple[Any, ...], home: int) -> _R:
    """One task, with the precautions taken anew where it runs in a process of its own.

    Filters of warnings are those of the whole process: only its main thread may change them.
    """
    if os.getpid() == home:
        return work(*own)
    if threading.current_thread() is not threading.main_thread():
        with one_blas_thread:
            return work(*own)
    # what the package says about a fit is in its diagnostics too
    with one_blas_thread, warnings.catch_warnings(action="ignore", category=DefgpaWarning):
        return work(*own)


def _made(
    work: Callable[..., _R], arguments: Sequence[tuple[Any, ...]], n_jobs: int | None
) -> Generator[_R]:
    """The results in order, as they come."""
    backend, configured = get_active_backend(prefer="threads")
    if n_jobs is None:
        n_jobs = configured if (configured or 1) != 1 else n_threads()
    if isinstance(backend, (ThreadingBackend, SequentialBackend)):
        return _on_threads(work, arguments, backend.effective_n_jobs(n_jobs))
    return _through_joblib(work, arguments, n_jobs)


def _on_threads(
    work: Callable[..., _R], arguments: Sequence[tuple[Any, ...]], workers: int
) -> Generator[_R]:
    """On threads of our own: joblib looks for results every 10 ms, as long as small tasks take."""
    if min(workers, len(arguments)) <= 1:
        yield from starmap(work, arguments)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        yield from pool.map(lambda own: work(*own), arguments)
    finally:
        pool.shutdown(cancel_futures=True)


def _through_joblib(
    work: Callable[..., _R], arguments: Sequence[tuple[Any, ...]], n_jobs: int
) -> Generator[_R]:
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # a backend that can only return everything at once
        parallel = Parallel(n_jobs=n_jobs)
    yield from parallel(delayed(_task)(work, own, os.getpid()) for own in arguments)
