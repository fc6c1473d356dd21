"""How the pool's Celery is set up, for both brokers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from celery import Celery
from celery.worker.consumer import Consumer
from kombu.utils.imports import symbol_by_name

from models.errors import SettingsError
from models.pool import Queue
from pipeline.settings import load_settings
from workers.celery_app import celery_app, task_name

REDIS = "redis://:sesam@cache:6379/0"
RABBITMQ = "amqp://user:sesam@rabbit:5672//"


@pytest.mark.parametrize(("url", "arguments"), [(REDIS, {}), (RABBITMQ, {"x-queue-type": "quorum"})])
def test_there_are_four_queues_and_on_rabbitmq_they_are_quorum_queues(
    url: str, arguments: dict[str, str]
) -> None:
    queues = app_on(url).amqp.queues

    assert {name: queue.queue_arguments for name, queue in queues.items()} == {
        "intake": arguments,
        "ocr": arguments,
        "vlm": arguments,
        "assemble": arguments,
    }


@pytest.mark.parametrize("url", [REDIS, RABBITMQ])
def test_a_task_is_acknowledged_when_it_is_done_and_given_away_when_its_process_dies(url: str) -> None:
    conf = app_on(url).conf

    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.worker_prefetch_multiplier == 1
    assert conf.task_ignore_result
    assert conf.accept_content == ["json"]


def test_each_task_goes_to_its_queue_and_has_its_limit() -> None:
    app = app_on(REDIS)

    assert [app.amqp.router.route({}, task_name(queue))["queue"].name for queue in Queue] == list(Queue)
    assert {name: limits["time_limit"] for name, limits in app.conf.task_annotations.items()} == {
        "doctriage.intake": 600,
        "doctriage.ocr": 601,
        "doctriage.vlm": 1_500,
        "doctriage.assemble": 1_200,
    }


def test_redis_waits_for_the_longest_task() -> None:
    assert app_on(REDIS).conf.broker_transport_options["visibility_timeout"] == 1_560
    assert (
        app_on(REDIS, visibility_timeout_s=7_200).conf.broker_transport_options["visibility_timeout"] == 7_200
    )

    with pytest.raises(SettingsError, match="VISIBILITY_TIMEOUT_S=20 is below the longest task, 1,500 s"):
        app_on(REDIS, visibility_timeout_s=20)


def test_processes_are_replaced_as_the_executors_are() -> None:
    conf = app_on(REDIS, executor={"max_pages_per_worker": 301, "max_bytes_per_worker": 2**30}).conf

    assert conf.worker_max_tasks_per_child == 301
    assert conf.worker_max_memory_per_child == 2**20


def test_a_worker_declares_no_queues_for_tasks_that_start_later() -> None:
    consumer = symbol_by_name(app_on(RABBITMQ).conf.worker_consumer)
    steps, all_steps = consumer.Blueprint.default_steps, Consumer.Blueprint.default_steps

    assert set(all_steps) - set(steps) == {"celery.worker.consumer.delayed_delivery:DelayedDelivery"}


def test_without_a_broker_there_is_no_pool() -> None:
    with pytest.raises(SettingsError, match="DOCTRIAGE_POOL__BROKER_URL"):
        celery_app(load_settings())


def test_the_command_line_does_not_load_celery() -> None:
    loaded = (
        "import sys, workers.cli; print([name for name in sys.modules if name.split('.')[0] == 'celery'])"
    )
    said = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout

    assert said.strip() == "[]"


def app_on(url: str, *, executor: dict[str, Any] | None = None, **pool: object) -> Celery:
    return celery_app(load_settings({"pool": {"broker_url": url, **pool}, "executor": executor or {}}))
