"""Time several ways of doing a thing turn by turn, so that a busy machine slows all alike."""

from __future__ import annotations

import functools
import resource
import time
from collections.abc import Callable
from typing import Any

Work = Callable[[], object]

SECONDS = 3.0  # for each task, unless it takes longer to run MIN_RUNS times
MIN_RUNS = 3
MAX_RUNS = 400


def race(**tasks: Work) -> dict[str, float]:
    """Measure the best time of each task in seconds, and the peak memory of the first in bytes.

    The first runs once before the others have touched any memory (they are delayed). The tasks
    take turns until each has had its time.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    peak = 0
    for work in tasks.values():
        work()
        peak = peak or get_peak_bytes()
    running = dict(tasks)
    while running:
        for name, work in list(running.items()):
            times[name].append(measure_seconds(work))
            if _is_timed(times[name]):
                del running[name]
    return {name: min(values) for name, values in times.items()} | {"peak": peak}


def delay(make: Callable[..., Work]) -> Callable[..., Work]:
    """Make what a task needs, its library too, when it first runs: after ours, not before."""

    @functools.wraps(make)
    def prepare(*arguments: Any) -> Work:
        prepared: list[Work] = []

        def work() -> None:
            if not prepared:
                prepared.append(make(*arguments))
            prepared[0]()

        return work

    return prepare


def run_once(work: Work) -> dict[str, float]:
    """Measure the time of a single run, for what takes minutes."""
    return {"ours": measure_seconds(work), "peak": get_peak_bytes()}


def measure_seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def get_peak_bytes() -> int:
    """Return the most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _is_timed(times: list[float]) -> bool:
    return len(times) >= MIN_RUNS and (sum(times) >= SECONDS or len(times) >= MAX_RUNS)
