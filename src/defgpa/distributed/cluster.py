"""A Dask cluster: named tasks, sums as trees, and another try when a worker is lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from defgpa.errors import DefgpaError

_T = TypeVar("_T")


class Cluster:
    """A Dask client, as this package uses it."""

    def __init__(self, client: Any = None) -> None:
        try:
            from distributed import Client, default_client
        except ImportError:
            raise DefgpaError('A cluster needs Dask: pip install "defgpa[dask]".') from None
        if client is None:
            try:
                client = default_client()
            except ValueError:
                raise DefgpaError(
                    "There is no Dask client: make one first, such as client = "
                    "dask.distributed.Client(), or give it as client=."
                ) from None
        if not isinstance(client, Client):
            raise DefgpaError(f"'client' must be a Dask Client; got {type(client).__name__}.")
        self.client = client
        self._number = itertools.count()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Submit a task whose name the dashboard shows."""
        key = f"defgpa-{function.__name__}-{id(self):x}-{next(self._number)}"
        return self.client.submit(function, *arguments, key=key, pure=False, retries=3)

    def send(self, array: Any) -> Any:
        """Send an array to the workers; if its worker is lost it is gone, hence `retry`."""
        return self.client.scatter(array, hash=False)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for the tasks, and return their results."""
        return list(self.client.gather(list(futures)))

    def sum(self, add: Callable[..., Any], futures: Sequence[Any]) -> Any:
        """Add results by a tree of sums, so that no worker has to hold all terms."""
        level = list(futures)
        while len(level) > 1:
            branches = [level[i : i + 8] for i in range(0, len(level), 8)]
            level = [
                branch[0] if len(branch) == 1 else self.submit(add, *branch) for branch in branches
            ]
        return level[0]

    def retry(self, work: Callable[[], _T]) -> _T:
        """Call ``work``, up to four times if a worker was lost with the arrays sent to it."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError, FuturesCancelledError

        lost_errors = (KilledWorker, FutureCancelledError, FuturesCancelledError, OSError, KeyError)
        for _ in range(3):
            try:
                return work()
            except lost_errors:
                continue
        return work()
