"""The tasks: whoever gets a ticket takes the next piece of work, does it, and sends tickets for what follows."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from celery import Celery, signals

from models.pool import Queue
from workers.celery_app import task_name
from workers.child_process import begin_pool_process
from workers.cluster.assemble_stage import assemble
from workers.cluster.deployment import Deployment
from workers.cluster.host import Host
from workers.cluster.intake_stage import take_in
from workers.cluster.ocr_stage import read_pages
from workers.cluster.tracing import end_tracing
from workers.cluster.turn import PAUSE_S, Turn, take_turn
from workers.cluster.vlm_host import VlmHost
from workers.logs import set_up_service_logs
from workers.scratch import remove_abandoned_scratch
from workers.tickets import Tickets


def register(app: Celery, deployment: Deployment, tickets: Tickets) -> None:
    """Define the task of each queue on ``app``."""
    stages = Stages(deployment)
    for queue in Queue:
        app.task(_task(stages, queue, tickets), name=task_name(queue))


def _task(stages: Stages, queue: Queue, tickets: Tickets) -> Callable[[], None]:
    def work() -> None:
        serve(stages, queue, tickets)

    return work


def serve(stages: Stages, queue: Queue, tickets: Tickets) -> None:
    """To open what a stage needs is part of its turn: the database may be away by then."""
    if take_turn(lambda: stages.stage(queue)(), queue, tickets) is Turn.PUT_OFF:
        time.sleep(PAUSE_S)


class Stages:
    """What each queue's workers do. Nothing is opened before the first piece of work, so that a process can fork."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._stopping = multiprocessing.Event()
        self._lock = threading.Lock()
        self._host: Host | None = None
        self._vlm: VlmHost | None = None
        signals.worker_shutting_down.connect(self._stop, weak=False)
        signals.worker_process_init.connect(self._begin_process, weak=False)
        signals.worker_process_shutdown.connect(self._end_process, weak=False)
        signals.worker_shutdown.connect(self._end_process, weak=False)

    def stage(self, queue: Queue) -> Callable[[], Counter[Queue]]:
        with self._lock:
            self._host = self._host or Host(self._deployment, is_stopping=self._stopping.is_set)
            match queue:
                case Queue.INTAKE:
                    return partial(take_in, self._host)
                case Queue.OCR:
                    return partial(read_pages, self._host)
                case Queue.ASSEMBLE:
                    return partial(assemble, self._host)
                case Queue.VLM:
                    self._vlm = self._vlm or VlmHost(self._host)
                    return self._vlm.transcribe

    def _stop(self, **_: object) -> None:
        self._stopping.set()

    def _begin_process(self, **_: object) -> None:
        """A process that was killed cannot tidy up: whoever takes its place does."""
        remove_abandoned_scratch(self._deployment.settings.home)
        begin_pool_process(self._deployment.settings)
        set_up_service_logs(self._deployment.settings)

    def _end_process(self, **_: object) -> None:
        end_tracing()
