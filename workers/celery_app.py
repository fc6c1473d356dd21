"""The Celery application of the pool: four queues, four tasks, and messages that say only "there is work".

Whoever imports this imports Celery; `doctriage --help` must not.
"""

from __future__ import annotations

from celery import Celery
from kombu import Exchange
from kombu import Queue as BrokerQueue
from kombu.transport import TRANSPORT_ALIASES

from models.pool import Queue
from pipeline.settings import Settings
from workers.broker import ANSWER_LIMIT_S, broker_url, is_rabbitmq
from workers.task_limits import ENGINE_LOAD_S, task_limits, visibility_timeout_s

TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "workers.redis_transport:TicketTransport"))


def task_name(queue: Queue) -> str:
    return f"doctriage.{queue}"


def celery_app(settings: Settings) -> Celery:
    """For workers and for whoever sends tickets; nothing is connected yet. Raises SettingsError without a broker, for
    an address that is none, and for a visibility timeout below the longest task."""
    url = broker_url(settings.pool.broker_url)
    app = Celery("doctriage", broker=url, set_as_current=False)
    app.conf.update(
        **_message_options(settings),
        **_worker_options(settings),
        **_redis_options(visibility_timeout_s(settings)) if not is_rabbitmq(url) else _rabbitmq_options(),
    )
    return app


def _message_options(settings: Settings) -> dict[str, object]:
    return {
        "accept_content": ["json"],
        "task_serializer": "json",
        "event_serializer": "json",
        "task_default_queue": str(Queue.INTAKE),
        "task_create_missing_queues": False,
        "task_routes": {task_name(queue): {"queue": str(queue)} for queue in Queue},
        "task_ignore_result": True,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_annotations": {
            task_name(queue): {"time_limit": limit.longest_s}
            for queue, limit in task_limits(settings).items()
        },
        "task_send_sent_event": True,
    }


def _worker_options(settings: Settings) -> dict[str, object]:
    """A lost connection is no reason to break off a page. What is prefetched is not lessened after one: quorum queues
    would never get back what they lost. A broker that refuses, as one without memory left does, is waited for like one
    that is away."""
    executor = settings.executor
    return {
        "broker_channel_error_retry": True,
        "broker_connection_timeout": ANSWER_LIMIT_S,
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_consumer": "workers.pool_consumer:TicketConsumer",
        "worker_enable_prefetch_count_reduction": False,
        "worker_hijack_root_logger": False,
        "worker_max_memory_per_child": executor.max_bytes_per_worker // 1024,
        "worker_max_tasks_per_child": executor.max_pages_per_worker,
        "worker_prefetch_multiplier": 1,
        "worker_proc_alive_timeout": ENGINE_LOAD_S,
        "worker_redirect_stdouts": False,
        "worker_send_task_events": True,
    }


def _redis_options(visibility_timeout_s: float) -> dict[str, object]:
    return {
        "task_queues": [_queue(queue, {}) for queue in Queue],
        "broker_transport_options": {
            "visibility_timeout": visibility_timeout_s,
            "socket_connect_timeout": ANSWER_LIMIT_S,
            "socket_timeout": ANSWER_LIMIT_S,
            "socket_keepalive": True,
        },
    }


def _rabbitmq_options() -> dict[str, object]:
    return {
        "task_queues": [_queue(queue, {"x-queue-type": "quorum"}) for queue in Queue],
        "broker_transport_options": {
            "confirm_publish": True,
            "read_timeout": ANSWER_LIMIT_S,
            "write_timeout": ANSWER_LIMIT_S,
        },
    }


def _queue(queue: Queue, arguments: dict[str, str]) -> BrokerQueue:
    return BrokerQueue(
        str(queue),
        Exchange("doctriage", type="direct"),
        routing_key=str(queue),
        queue_arguments=arguments,
    )
