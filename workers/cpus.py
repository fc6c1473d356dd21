"""CPUs that a process may use, and threads that it had better not start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CGROUP_CPU_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")

ONE_THREAD: Final = dict.fromkeys(
    ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""One process a CPU reads fastest when none of them starts threads of its own. Libraries look at these variables when
they are imported."""


def usable_cpus() -> int:
    """CPUs that this process may run on, within its container's quota."""
    cpus = len(os.sched_getaffinity(0))
    try:
        quota, period = CGROUP_CPU_QUOTA.read_text(encoding="ascii").split()
        return max(1, min(cpus, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or the quota is "max"
        return cpus
