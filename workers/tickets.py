"""Tickets say that there is work in a queue. What the work is, its taker asks the database.

A ticket that is lost is replaced by the reconciler, and one too many finds nothing to do. So sending is worth a try
and no more.
"""

from __future__ import annotations

from typing import Protocol

import structlog

from models.errors import BrokerUnavailable
from models.pool import Queue

log = structlog.get_logger()


class Tickets(Protocol):
    def send(self, queue: Queue, count: int = 1) -> None:
        """Raises ``BrokerUnavailable`` within seconds; some may have been sent then."""

    def depth(self, queue: Queue) -> int:
        """Tickets that wait, without those that workers hold. Raises ``BrokerUnavailable`` within seconds."""


def send_if_possible(tickets: Tickets, queue: Queue, count: int = 1) -> None:
    """For whoever has finished a piece of work and must not fail for want of a broker."""
    try:
        tickets.send(queue, count)
    except BrokerUnavailable as error:
        log.warning("tickets_not_sent", queue=str(queue), count=count, error=str(error))
