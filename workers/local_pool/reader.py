"""A reading process: it assembles, takes in and reads whatever waits, until it is told to stop or has read enough."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

import psutil
import structlog

from models.errors import StoreUnavailable
from models.pool import Queue
from workers.cluster.assemble_stage import assemble
from workers.cluster.host import Host
from workers.cluster.intake_stage import take_in
from workers.cluster.ocr_stage import read_pages
from workers.cluster.tracing import end_tracing
from workers.cluster.turn import PAUSE_S, Turn, take_turn
from workers.local_pool.beginning import StopFlag, begin
from workers.local_pool.roles import PoolSetup, Ready, TurnBegun, TurnEnded, Worn
from workers.local_pool.wakening import LOOK_EVERY_S

STAGES: Final[Mapping[Queue, Callable[[Host], Counter[Queue]]]] = {
    Queue.ASSEMBLE: assemble,
    Queue.INTAKE: take_in,
    Queue.OCR: read_pages,
}
"""In the order in which they are served: what is nearly ready first, then what nobody has looked at."""

YIELDING: Final = 10
"""What is added to the niceness of a reading process, of 19 at most."""

log = structlog.get_logger()


def read(connection: Connection, setup: PoolSetup, place: str) -> None:
    """The whole life of a reader. Whoever asks the server is answered first: reading takes the time that is left."""
    stop = begin(setup, place)
    os.nice(YIELDING)
    with closing(Host(setup.deployment, is_stopping=stop.read)) as host:
        try:
            Reader(connection, setup, host, stop).run()
        except (BrokenPipeError, ConnectionResetError):
            return  # the server is gone
        finally:
            end_tracing()


class Reader:
    def __init__(self, connection: Connection, setup: PoolSetup, host: Host, stop: StopFlag) -> None:
        self._connection = connection
        self._tickets = setup.tickets
        self._host = host
        self._stop = stop
        self._executor = setup.deployment.settings.executor
        self._numbers = itertools.count(1)

    def run(self) -> None:
        self._connection.send(Ready(owner=self._host.owner))
        while not self._stop.is_set:
            match self._turn():
                case Turn.NOTHING:
                    self._tickets.wait(Queue.OCR, LOOK_EVERY_S)
                case Turn.PUT_OFF:
                    self._stop.wait(PAUSE_S)
                case Turn.DONE if self._is_worn():
                    self._connection.send(Worn())
                    return

    def _turn(self) -> Turn:
        try:
            queue = next((queue for queue in STAGES if self._host.store.pool.has_waiting(queue)), None)
        except StoreUnavailable as error:
            log.warning("no_look_for_work", code=error.code, reason=str(error))
            return Turn.PUT_OFF
        return Turn.NOTHING if queue is None else self._taken(queue)

    def _taken(self, queue: Queue) -> Turn:
        number = next(self._numbers)
        self._connection.send(TurnBegun(number=number, queue=queue))
        turn = take_turn(partial(STAGES[queue], self._host), queue, self._tickets)
        self._connection.send(TurnEnded(number=number))
        return turn

    def _is_worn(self) -> bool:
        return (
            self._host.pace.pages_read >= self._executor.max_pages_per_worker
            or psutil.Process().memory_info().rss > self._executor.max_bytes_per_worker
        )
