"""What stands still goes on: work of lost workers, work whose tickets were lost, and submissions nobody ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog

from models.errors import BrokerUnavailable
from models.pool import Queue
from pipeline.store import Reclaimed, Repaired, Store
from workers.cluster.deployment import Deployment
from workers.owner import is_alive
from workers.tickets import Tickets

MOST_TICKETS: Final = 2_000
"""Sent to a queue at once; the rest follows when those are used up."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """``tickets`` were sent, for each queue; ``is_broker_away``: none could be."""

    reclaimed: Reclaimed
    repaired: Repaired
    tickets: dict[Queue, int]
    is_broker_away: bool


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Works on the database and the broker directly: a message of its own would wait behind those it looks after, and
    be lost with them. Any number of them may run."""

    deployment: Deployment
    store: Store
    tickets: Tickets

    def reconcile(self) -> Reconciled:
        """Raises ``StoreUnavailable``."""
        pool = self.deployment.settings.pool
        reclaimed = self.store.pool.reclaim(
            is_alive, max_losses=pool.max_losses, price_book=self.deployment.price_book
        )
        repaired = self.store.pool.repair()
        sent, is_broker_away = self._top_up()
        done = Reconciled(reclaimed=reclaimed, repaired=repaired, tickets=sent, is_broker_away=is_broker_away)
        log.info("reconciled", **_plain(done))
        return done

    def _top_up(self) -> tuple[dict[Queue, int], bool]:
        """Whatever waits has a ticket in its queue, however many were lost."""
        backlog = self.store.pool.backlog()
        sent: dict[Queue, int] = {}
        try:
            for queue in Queue:
                waiting = backlog.waiting(queue)
                short = min(MOST_TICKETS, waiting - self.tickets.depth(queue)) if waiting else 0
                if short > 0:
                    self.tickets.send(queue, short)
                    sent[queue] = short
        except BrokerUnavailable as error:
            log.warning("broker_unavailable", reason=str(error))
            return sent, True
        return sent, False


def _plain(done: Reconciled) -> dict[str, object]:
    from dataclasses import asdict

    counts = {**asdict(done.reclaimed), **asdict(done.repaired)}
    numbers = {name: value for name, value in counts.items() if isinstance(value, int) and value}
    return {**numbers, "tickets": {str(queue): count for queue, count in done.tickets.items()}}
