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
from contextlib import closing
from typing import Any, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from defgpa.errors import DefgpaWarning
from defgpa.threads import count_threads, use_threads

_R = TypeVar("_R")


def run_in_parallel(
    work: Callable[..., _R],
    arguments: Sequence[tuple[Any, ...]],
    n_jobs: int | None,
    done: Callable[[_R], None],
) -> list[_R]:
    """Return ``work(*values)`` for all values, in order, calling ``done`` with each result."""
    backend, configured = get_active_backend(prefer="threads")
    if n_jobs is None:
        n_jobs = configured if (configured or 1) != 1 else count_threads()
    if min(backend.effective_n_jobs(n_jobs), len(arguments)) > 1:
        results_in_order = _run_with_joblib(work, arguments, n_jobs)
    else:
        results_in_order = (work(*values) for values in arguments)
    results = []
    with (
        warnings.catch_warnings(record=True) as caught,
        use_threads(1),
        closing(results_in_order),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DefgpaWarning)
        for result in results_in_order:
            results.append(result)
            done(result)
    for warning in {(w.category, str(w.message)): w for w in caught}.values():
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return results


def _run_task(work: Callable[..., _R], values: tuple[Any, ...], parent_pid: int) -> _R:
    """Run one task, warnings and threads set again, as it may run in another process.

    Filters of warnings are those of the whole process: only its main thread may change them.
    """
    if os.getpid() == parent_pid:
        return work(*values)
    if threading.current_thread() is not threading.main_thread():
        with use_threads(1):
            return work(*values)
    # what the package says about a fit is in its diagnostics too
    with use_threads(1), warnings.catch_warnings(action="ignore", category=DefgpaWarning):
        return work(*values)


def _run_with_joblib(
    work: Callable[..., _R], arguments: Sequence[tuple[Any, ...]], n_jobs: int
) -> Generator[_R]:
    try:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", batch_size=1, return_as="generator")
    except ValueError:  # a backend that can only return everything at once
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", batch_size=1)
    yield from parallel(delayed(_run_task)(work, values, os.getpid()) for values in arguments)
