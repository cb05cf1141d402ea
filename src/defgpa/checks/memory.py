"""The memory that a fit surely takes is asked for before it starts.

Within a limit (``ulimit -v``) that is too low BLAS does not fail: it ends the process, or waits
for memory that never comes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_WORKSPACE = 128 << 20  # bytes: buffers of BLAS (for numpy and for scipy) and stacks of threads
_LARGE = 256 << 20  # bytes: less is never looked for in the machine's memory


def require_memory(n_bytes: int) -> None:
    """A MemoryError in one sentence where so many bytes, and BLAS, cannot be had."""
    limit = _left_below_limit()
    if limit is not None and n_bytes + _WORKSPACE > limit:
        raise MemoryError(
            f"This fit takes at least {_megabytes(n_bytes + _WORKSPACE)}, and the limit of this "
            f"process leaves {_megabytes(limit)}. Raise it (ulimit -v), or take fewer shapes or "
            "landmarks."
        )
    free = _available() if n_bytes > _LARGE else None
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"This fit takes at least {_megabytes(n_bytes)}, and {_megabytes(free)} of memory are "
            "free. Free some, or take fewer shapes or landmarks."
        )


def _left_below_limit() -> int | None:
    """Bytes of address space that the process may still take; None: any, or not known."""
    if sys.platform == "win32":  # which knows no such limits
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None
    return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def _available() -> int | None:
    """Bytes of memory that are free, or would be on demand; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(own.split()[1]) << 10 for own in lines if own.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f} MB"
