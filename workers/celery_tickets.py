"""Tickets as messages of Celery's broker. Whoever imports this imports Celery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from amqp.exceptions import ChannelError
from celery import Celery
from kombu import Connection
from kombu.exceptions import OperationalError

from models.pool import Queue
from workers.broker import connect_once, errors_translated
from workers.celery_app import task_name

Answer = TypeVar("Answer")

NOT_FOUND: Final = 404


class CeleryTickets:
    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, queue: Queue, count: int = 1) -> None:
        if count > 0:
            self._asked(lambda connection: self._send(connection, queue, count))

    def take(self, queue: Queue, count: int) -> None:
        self._asked(lambda connection: _take(connection, queue, count))

    def depth(self, queue: Queue) -> int:
        return self._asked(lambda connection: _depth(connection, queue))

    def _send(self, connection: Connection, queue: Queue, count: int) -> None:
        producer = self._app.amqp.Producer(connection, auto_declare=False)
        for _ in range(count):
            self._app.send_task(task_name(queue), queue=str(queue), producer=producer, retry=False)

    def _asked(self, ask: Callable[[Connection], Answer]) -> Answer:
        """A connection that was open before may have been closed by a broker that was restarted; then, and only then,
        it is worth a second try with a new one."""
        with self._app.pool.acquire(block=True) as connection, errors_translated(connection):
            if connection.connected:
                try:
                    return ask(connection)
                except (OperationalError, *connection.connection_errors):
                    connection.collect()
            connect_once(connection)
            return ask(connection)


def _take(connection: Connection, queue: Queue, count: int) -> None:
    with connection.channel() as channel:
        for _ in range(count):
            if channel.basic_get(str(queue), no_ack=True) is None:
                return


def _depth(connection: Connection, queue: Queue) -> int:
    """No such queue, and on Redis an empty one is none, has no tickets."""
    with connection.channel() as channel:
        try:
            declared = channel.queue_declare(str(queue), passive=True)
        except ChannelError as error:
            if int(error.reply_code) == NOT_FOUND:
                return 0
            raise
        return int(declared.message_count)
