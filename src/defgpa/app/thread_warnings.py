"""Collect the warnings of the package, those of each thread apart."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from defgpa.errors import DefgpaWarning

_lock = threading.Lock()
_notes: dict[int, list[list[str]]] = {}  # of each thread, the lists it collects into
_previous: list[warnings.catch_warnings[None]] = []


@contextmanager
def collect_notes() -> Iterator[list[str]]:
    """Collect the warnings of the package that this thread meets, each once; show none.

    The filters of Python are those of the whole process: the first thread that comes sets them,
    the last one that leaves puts back what was there.
    """
    notes: list[str] = []
    with _lock:
        if not _notes:
            context = warnings.catch_warnings()
            context.__enter__()
            _previous.append(context)
            warnings.simplefilter("always")
            warnings.showwarning = _keep_note
        _notes.setdefault(threading.get_ident(), []).append(notes)
    try:
        yield notes
    finally:
        with _lock:
            lists = _notes[threading.get_ident()]
            lists.pop()  # contexts of a thread end in the reverse order of their beginning
            if not lists:
                del _notes[threading.get_ident()]
            if not _notes:
                _previous.pop().__exit__(None, None, None)


def _keep_note(message: Warning | str, *_: object, **__: object) -> None:
    lists = _notes.get(threading.get_ident())
    if lists and isinstance(message, DefgpaWarning) and str(message) not in lists[-1]:
        lists[-1].append(str(message))
