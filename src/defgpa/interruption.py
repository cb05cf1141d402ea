"""Let whoever waits for long work stop it: the work asks at each of its steps.

A context of a thread, like those of `defgpa.threads`: work in a thread of its own is stopped by an
exception that the function of the one who waits raises, wherever that work is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local

_thread_state = local()


class InterruptedWork(BaseException):
    """Work that nobody waits for any more; no handler of ordinary errors must swallow it."""


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
    """Stop here if whoever waits for the work in this thread wants it no more."""
    check = getattr(_thread_state, "check", None)
    if check is not None:
        check()
