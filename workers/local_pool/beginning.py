"""How a process of the embedded pool begins, and how it learns that it is to end."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from types import FrameType
from typing import Final

from workers.child_process import begin_child
from workers.cluster.metrics import share_between_processes
from workers.local_pool.roles import PoolSetup
from workers.logs import set_up_service_logs
from workers.scratch import remove_abandoned_scratch

SLICE_S: Final = 0.2


@dataclass(slots=True)
class StopFlag:
    """Set by SIGTERM. A plain flag: an event's lock may be held by the very thread that the signal interrupts."""

    is_set: bool = False

    def set_by_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.is_set = True

    def read(self) -> bool:
        return self.is_set

    def wait(self, timeout_s: float) -> bool:
        """Until it is set, or for so long; whether it is."""
        deadline_s = time.monotonic() + timeout_s
        while not self.is_set and (left_s := deadline_s - time.monotonic()) > 0:
            time.sleep(min(SLICE_S, left_s))
        return self.is_set


def begin(setup: PoolSetup, place: str) -> StopFlag:
    """``place`` tells this process from the others of the pool in what they count. A process that was killed cannot
    tidy up: whoever takes its place does."""
    stop = StopFlag()
    signal.signal(signal.SIGTERM, stop.set_by_signal)
    settings = setup.deployment.settings
    remove_abandoned_scratch(settings.home)
    begin_child(settings)
    set_up_service_logs(settings)
    share_between_processes(setup.metrics_folder, lambda: place)
    return stop
