"""The process that calls the VLM for the embedded pool, many pages at a time."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection

import structlog

from models.errors import StoreUnavailable
from models.pool import Queue
from workers.cluster.host import Host
from workers.cluster.tracing import end_tracing
from workers.cluster.turn import PAUSE_S, Turn, take_turn
from workers.cluster.vlm_host import VlmHost
from workers.local_pool.beginning import StopFlag, begin
from workers.local_pool.roles import PoolSetup, Ready, TurnBegun, TurnEnded
from workers.local_pool.wakening import LOOK_EVERY_S
from workers.transcriber import PAGES_AHEAD

log = structlog.get_logger()


def transcribe(connection: Connection, setup: PoolSetup, place: str) -> None:
    """The whole life of the transcriber."""
    stop = begin(setup, place)
    with closing(Host(setup.deployment, is_stopping=stop.read)) as host:
        try:
            Transcriber(connection, setup, host, stop).run()
        except (BrokenPipeError, ConnectionResetError):
            return  # the server is gone
        finally:
            end_tracing()


class Transcriber:
    """One thread looks for pages; as many others as the plan allows calls, and a few more to draw, bring them to their
    end."""

    def __init__(self, connection: Connection, setup: PoolSetup, host: Host, stop: StopFlag) -> None:
        self._connection = connection
        self._tickets = setup.tickets
        self._host = host
        self._stop = stop
        self._at_once = setup.deployment.plan.concurrency + PAGES_AHEAD
        self._free = threading.BoundedSemaphore(self._at_once)
        self._speaking = threading.Lock()
        self._numbers = itertools.count(1)

    def run(self) -> None:
        """Once told to stop, until the pages under way have ended."""
        vlm = VlmHost(self._host)
        self._connection.send(Ready(owner=self._host.owner))
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="page") as threads:
            while not self._stop.is_set:
                if not self._free.acquire(timeout=LOOK_EVERY_S):
                    continue
                if self._has_waiting():
                    threads.submit(self._turn, vlm)
                else:
                    self._free.release()
                    self._tickets.wait(Queue.VLM, LOOK_EVERY_S)
        vlm.close()

    def _has_waiting(self) -> bool:
        try:
            return self._host.store.pool.has_waiting(Queue.VLM)
        except StoreUnavailable as error:
            log.warning("no_look_for_work", code=error.code, reason=str(error))
            return False

    def _turn(self, vlm: VlmHost) -> None:
        number = next(self._numbers)
        try:
            self._say(TurnBegun(number=number, queue=Queue.VLM))
            if take_turn(vlm.transcribe, Queue.VLM, self._tickets) is Turn.PUT_OFF:
                self._stop.wait(PAUSE_S)
        except Exception:
            log.exception("transcriber_failed")
        finally:
            self._free.release()
            self._say(TurnEnded(number=number))

    def _say(self, word: TurnBegun | TurnEnded) -> None:
        with self._speaking:
            self._connection.send(word)
