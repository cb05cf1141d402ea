"""Import modules when they are first needed, in one thread at a time.

The page opens before scipy and scikit-learn are loaded. Threads that import them at the same time
can meet a module half initialised, since their modules import each other in circles. So requests
import what answers them here, before it is called; functions may then import from it anywhere.
"""

from __future__ import annotations

import threading
from importlib import import_module

_lock = threading.Lock()
_imported: set[str] = set()

FOR_READING = ("defgpa.app.study",)
FOR_COMPUTING = (*FOR_READING, "defgpa.app.analyses", "defgpa.app.queue", "defgpa.app.job_kinds")


def import_modules(*names: str) -> None:
    """Import modules unless they are there already; threads that need any of them wait."""
    if _imported.issuperset(names):
        return
    with _lock:
        for name in names:
            import_module(name)
        _imported.update(names)
