"""A worker of the pool, from its checks to its end. Whoever imports this imports Celery."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Final

import structlog
from celery import Celery, signals

from pipeline.settings import Settings
from workers.broker import broker_url, is_rabbitmq, require_broker
from workers.celery_app import celery_app
from workers.cluster.connection import require_pool
from workers.cluster.start_checks import check_parts
from workers.cluster.worker_plan import PoolKind, WorkerPlan
from workers.cpus import ONE_THREAD
from workers.logs import set_up_service_logs
from workers.task_limits import consumer_timeout_note

LOG_LEVELS: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR"}

log = structlog.get_logger()


def run_worker(settings: Settings, plan: WorkerPlan) -> int:
    """Its exit code, once it was told to stop. Raises what ``check_parts`` raises, SettingsError without a broker or a
    database, for a visibility timeout that is too short or a port that is taken, and ``BrokerUnavailable``."""
    set_up_service_logs(settings)
    require_pool(settings)
    app = celery_app(settings)
    require_broker(app)
    check_parts(settings, plan)
    say_what_the_broker_needs(settings)
    if plan.kind is PoolKind.PROCESSES:
        os.environ.update({name: value for name, value in ONE_THREAD.items() if name not in os.environ})
    with _metrics(settings, plan):
        _register(app, settings)
        return serve(app, plan, log_level=settings.log_level)


def serve(app: Celery, plan: WorkerPlan, *, log_level: str) -> int:
    """Take tickets until told to stop. SIGTERM and the first Ctrl-C let running tasks end; the second Ctrl-C, or
    SIGQUIT, does not. Once connected it tries to reach its broker again for as long as that takes."""
    signals.setup_logging.connect(_leave_logs_alone)
    logging.captureWarnings(True)
    worker = app.Worker(
        hostname=plan.node,
        queues=[str(queue) for queue in plan.queues],
        concurrency=plan.concurrency,
        pool=str(plan.kind),
        loglevel=LOG_LEVELS[log_level],
        quiet=True,
        without_gossip=True,
        without_mingle=True,
    )
    log.info("worker_started", node=plan.node, queues=[*plan.queues], concurrency=plan.concurrency)
    worker.start()
    return int(worker.exitcode or 0)


def _register(app: Celery, settings: Settings) -> None:
    from workers.celery_tickets import CeleryTickets
    from workers.cluster.deployment import load_deployment
    from workers.cluster.tasks import register

    register(app, load_deployment(settings), CeleryTickets(app))


@contextlib.contextmanager
def _metrics(settings: Settings, plan: WorkerPlan) -> Iterator[None]:
    port = settings.pool.metrics_port
    if port is None:
        yield
        return
    from workers.cluster.metrics_server import serving_worker_metrics

    has_children = plan.kind is PoolKind.PROCESSES
    with serving_worker_metrics(port, home=settings.home.absolute(), has_children=has_children):
        yield


def say_what_the_broker_needs(settings: Settings) -> None:
    """A broker does not tell its clients what it has."""
    note = consumer_timeout_note(settings)
    if note is not None and is_rabbitmq(broker_url(settings.pool.broker_url)):
        log.info("consumer_timeout_needed", advice=note)


def _leave_logs_alone(**_: object) -> None:
    """To be connected is all that it takes: Celery sets up no logs of its own then."""
