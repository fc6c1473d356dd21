"""CPU seconds of this process and of the programs that it has waited for."""

from __future__ import annotations

import resource


def cpu_seconds() -> float:
    """User and system time, of all threads, since the start."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
