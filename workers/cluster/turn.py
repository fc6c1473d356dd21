"""One piece of work from its claim to the tickets that follow, whoever carries tickets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import structlog

from models.errors import EngineUnavailable, PlanImpossible, SettingsError, StoreUnavailable
from models.pool import Queue
from pipeline.publish import DiskFull
from workers.cluster.metrics import worker_metrics
from workers.cluster.observed import NothingFound
from workers.tickets import Tickets, send_if_possible, take_if_possible

IMPOSSIBLE: Final = (StoreUnavailable, EngineUnavailable, PlanImpossible, SettingsError, DiskFull)
"""No fault of the work: it goes back, now or when its lease runs out, and the reconciler sends a ticket for it."""

PAUSE_S: Final = 5.0
"""Before a worker that its machine or the database fails looks for work again."""

log = structlog.get_logger()


class Turn(StrEnum):
    """``put_off``: the machine or a service failed it; it is worth a pause."""

    DONE = "done"
    NOTHING = "nothing"
    PUT_OFF = "put_off"


def take_turn(work: Callable[[], Counter[Queue]], queue: Queue, tickets: Tickets) -> Turn:
    """Claim and do one piece of the queue's work, send the tickets that follow, and take those that it has used up."""
    try:
        follow = work()
    except IMPOSSIBLE as error:
        log.warning("work_put_off", queue=str(queue), code=error.code, reason=str(error))
        worker_metrics().work_put_off(queue, error.code)
        return Turn.PUT_OFF
    for following, count in follow.items():
        if count > 0:
            send_if_possible(tickets, following, count)
        elif count < 0:
            take_if_possible(tickets, following, -count)
    return Turn.NOTHING if isinstance(follow, NothingFound) else Turn.DONE
