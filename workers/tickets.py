"""Tickets say that there is work in a queue. What the work is, its taker asks the database.

A ticket that is lost is replaced by the reconciler, and one too many finds nothing to do. So sending is worth a try
and no more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from models.errors import BrokerUnavailable
from models.pool import Queue

REST_S: Final = 30.0

log = structlog.get_logger()


class Tickets(Protocol):
    def send(self, queue: Queue, count: int = 1) -> None:
        """Raises ``BrokerUnavailable`` within seconds; some may have been sent then."""

    def take(self, queue: Queue, count: int) -> None:
        """Out of the queue, of those that nobody has yet: their work is done. Raises ``BrokerUnavailable`` within
        seconds."""

    def depth(self, queue: Queue) -> int:
        """Tickets that wait, without those that workers hold. Raises ``BrokerUnavailable`` within seconds."""


def send_if_possible(tickets: Tickets, queue: Queue, count: int = 1) -> bool:
    """For whoever has finished a piece of work and must not fail for want of a broker."""
    try:
        tickets.send(queue, count)
    except BrokerUnavailable as error:
        log.warning("tickets_not_sent", queue=str(queue), count=count, error=str(error))
        return False
    return True


def take_if_possible(tickets: Tickets, queue: Queue, count: int) -> None:
    """One that stays finds nothing to do."""
    try:
        tickets.take(queue, count)
    except BrokerUnavailable as error:
        log.warning("tickets_not_taken", queue=str(queue), count=count, error=str(error))


@dataclass(slots=True)
class SparingTickets:
    """For whoever sends many one by one: a broker that does not answer keeps the sender waiting once in ``REST_S``, and
    not each time."""

    tickets: Tickets
    _rests_until_s: float = 0.0

    def send_if_possible(self, queue: Queue) -> None:
        if time.monotonic() < self._rests_until_s:
            return
        if not send_if_possible(self.tickets, queue):
            self._rests_until_s = time.monotonic() + REST_S
