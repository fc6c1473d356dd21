"""How a process begins that works for an executor."""

from __future__ import annotations

import os
import resource
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait

from pipeline.settings import Settings
from workers.logs import set_up_logs
from workers.owner import current_owner
from workers.scratch import use_scratch


def begin_child(settings: Settings) -> None:
    """Lead a process group of its own, leave Ctrl-C to the parent and end with it, keep within the memory allowed,
    and put temporary files where the next run finds and removes them."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    begin_pool_process(settings)
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def begin_pool_process(settings: Settings) -> None:
    """Keep within the memory allowed, and put temporary files where the next run finds and removes them."""
    _bound_memory(settings.executor.memory_limit_bytes)
    set_up_logs(settings.log_level)
    use_scratch(settings.home, current_owner())


def _bound_memory(limit_bytes: int) -> None:
    """Let allocations beyond the limit fail, here and in the programs started from here: a document can make
    its reader ask for more than any machine has. A lower limit that is already set stays."""
    _, highest = resource.getrlimit(resource.RLIMIT_DATA)
    if highest == resource.RLIM_INFINITY or limit_bytes < highest:
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.killpg(os.getpgid(0), signal.SIGKILL)
