"""What a worker of the pool does otherwise than Celery. Named in the configuration, so imported by Celery."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog
from celery.utils.log import get_logger
from celery.worker.consumer import Consumer
from kombu.exceptions import ContentDisallowed, DecodeError
from kombu.message import Message

from models.pool import Queue
from workers.celery_app import task_name

DELAYED_DELIVERY = "celery.worker.consumer.delayed_delivery:DelayedDelivery"

REFUSED_PAUSE_S: Final = 2.0
"""Before a broker that refuses is asked again."""

TASK_NAMES: Final = frozenset(task_name(queue) for queue in Queue)

REFUSED: Final = (
    "give the broker memory or disk, and the pool a database of Redis or a virtual host of its own; the broker's log "
    "may say more"
)

log = structlog.get_logger()
celery_log = get_logger(__name__)


class TicketConsumer(Consumer):  # type: ignore[misc]
    """Without the twenty-eight queues that Celery declares beside quorum queues, for tasks that are to start later:
    no ticket is. What is no ticket is thrown away: Celery ends with many a message that it cannot read, and puts it
    back for the next worker to end with."""

    class Blueprint(Consumer.Blueprint):  # type: ignore[misc]
        default_steps = tuple(step for step in Consumer.Blueprint.default_steps if step != DELAYED_DELIVERY)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Of a broker that answers and refuses Celery would ask again at once, with a page of log each time."""
        if isinstance(exc, self.connection_errors):
            super().on_connection_error_after_connected(exc)
            return
        log.warning("broker_refuses", reason=" ".join(str(exc).split()), advice=REFUSED)
        with suppress(*self.connection_errors, *self.channel_errors):
            self.connection.collect()
        time.sleep(REFUSED_PAUSE_S)

    def create_task_handler(self, *arguments: object, **options: object) -> Callable[[Message], None]:
        take = super().create_task_handler(*arguments, **options)

        def on_message(message: Message) -> None:
            if is_ticket(message):
                take(message)
                return
            log.warning(
                "message_thrown_away", reason="it is no ticket; only workers and submitters may write here"
            )
            message.reject_log_error(celery_log, self.connection_errors)

        return on_message


def is_ticket(message: Message) -> bool:
    """Whether a task of the pool is asked for as ``workers.celery_tickets`` does: now, with nothing besides."""
    headers = message.headers
    if not isinstance(headers, dict) or message.content_type != "application/json":
        return False
    task, ticket_id = headers.get("task"), headers.get("id")
    if not isinstance(task, str) or task not in TASK_NAMES or not isinstance(ticket_id, str):
        return False
    if headers.get("eta") or headers.get("expires") or headers.get("timelimit") not in (None, [None, None]):
        return False
    return isinstance(message.content_encoding, str) and _asks_for_nothing_more(message)


def _asks_for_nothing_more(message: Message) -> bool:
    try:
        body = message.payload
    except (ContentDisallowed, DecodeError):
        return False
    match body:
        case [[], {**arguments}, {**follow}]:
            return not arguments and not any(follow.values())
        case _:
            return False
