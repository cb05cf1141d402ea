"""Several ways of doing one thing, timed turn by turn, so that a busy machine slows all alike."""

from __future__ import annotations

import functools
import resource
import time
from collections.abc import Callable
from typing import Any

Work = Callable[[], object]

SECONDS = 3.0  # for each way, unless it takes longer to run LEAST times
LEAST = 3
MOST = 400


def race(**ways: Work) -> dict[str, float]:
    """The best time of each way in seconds, and the peak memory of the first one in bytes.

    The first runs once before the others have touched any memory (they are ``prepared``). The
    ways take turns until each has had its time.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    peak = 0
    for work in ways.values():
        work()
        peak = peak or peak_bytes()
    running = dict(ways)
    while running:
        for name, work in list(running.items()):
            times[name].append(seconds(work))
            if _had_its_time(times[name]):
                del running[name]
    return {name: min(taken) for name, taken in times.items()} | {"peak": peak}


def prepared(make: Callable[..., Work]) -> Callable[..., Work]:
    """What a way needs, its library too, is made when it first runs: after ours, not before."""

    @functools.wraps(make)
    def way(*given: Any) -> Work:
        made: list[Work] = []

        def work() -> None:
            if not made:
                made.append(make(*given))
            made[0]()

        return work

    return way


def once(work: Work) -> dict[str, float]:
    """The time of a single run, for what takes minutes."""
    taken = seconds(work)
    return {"ours": taken, "peak": peak_bytes()}


def seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_bytes() -> int:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _had_its_time(taken: list[float]) -> bool:
    return len(taken) >= LEAST and (sum(taken) >= SECONDS or len(taken) >= MOST)
