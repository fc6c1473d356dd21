"""What is no ticket costs a worker of the pool nothing: it is thrown away, and the next ticket is worked off."""

from __future__ import annotations

import json
import pickle
from contextlib import closing
from pathlib import Path

import pytest
import redis
from kombu import Connection

from models.pool import Queue
from pipeline.settings import load_settings
from tests.integration.pool.traced_worker import drained, tickets_over, traced_worker
from tests.server_parts import Broker
from workers.celery_app import celery_app

pytestmark = pytest.mark.slow

JSON = "application/json"
TICKET = b"[[], {}, {}]"

OTHERS: dict[str, tuple[bytes, str, dict[str, object]]] = {
    "not JSON": (b"{junk", JSON, {}),
    "a number": (b"5", JSON, {}),
    "too short": (b"[1]", JSON, {}),
    "too long": (b"[1, 2, 3, 4, 5]", JSON, {}),
    "nothing": (b"", JSON, {}),
    "nested too deeply": (b"[" * 100_000, JSON, {}),
    "with arguments": (b'[[1], {"a": 1}, {}]', JSON, {}),
    "with a callback": (b'[[], {}, {"chain": [{"task": "other"}]}]', JSON, {}),
    "no type": (TICKET, "text/x-nothing", {}),
    "pickled": (pickle.dumps([[], {}, {}]), "application/x-python-serialize", {}),
    "no headers": (TICKET, JSON, {"task": None, "id": None}),
    "another task": (TICKET, JSON, {"task": "other.task"}),
    "one of Celery's own": (TICKET, JSON, {"task": "celery.backend_cleanup"}),
    "a list of tasks": (TICKET, JSON, {"task": ["doctriage.ocr"]}),
    "for later": (TICKET, JSON, {"eta": "2999-01-01T00:00:00+00:00"}),
    "limits that are none": (TICKET, JSON, {"timelimit": ["x", "y"]}),
    "one limit": (TICKET, JSON, {"timelimit": 1}),
}

UNREADABLE = ["junk{", b"\xff\xfe", "", "5", "null", "[]", "{}", json.dumps({"properties": None})]
UNREADABLE.append(json.dumps({"body": "eA==", "headers": {}, "properties": {"body_encoding": "base64"}}))
UNREADABLE.append(
    json.dumps(
        {
            "body": "eA==",
            "headers": {},
            "properties": {"body_encoding": "rot13", "delivery_tag": ["x"], "delivery_info": {}},
        }
    )
)


def test_messages_that_are_no_tickets_are_thrown_away(broker: Broker, tmp_path: Path) -> None:
    tickets = tickets_over(broker)
    with traced_worker(broker, tmp_path) as worker:
        for body, content_type, headers in OTHERS.values():
            put(broker, body, content_type, {"task": "doctriage.ocr", "id": "1", **headers})
        worker.await_word("message_thrown_away", times=len(OTHERS))
        tickets.send(Queue.OCR)
        worker.await_ended(1)

        assert worker.process.poll() is None
        assert len(worker.begun) == 1
        worker.wait_until(lambda: drained(tickets, Queue.OCR))


def test_entries_of_redis_that_are_no_messages_are_thrown_away(redis_broker: Broker, tmp_path: Path) -> None:
    tickets = tickets_over(redis_broker)
    with traced_worker(redis_broker, tmp_path) as worker:
        with closing(redis.Redis.from_url(redis_broker.url.get_secret_value())) as client:
            client.lpush("ocr", *UNREADABLE)
        worker.await_word("message_thrown_away", times=len(UNREADABLE))
        tickets.send(Queue.OCR)
        worker.await_ended(1)

        assert worker.process.poll() is None
        worker.wait_until(lambda: drained(tickets, Queue.OCR))


def put(broker: Broker, body: bytes, content_type: str, headers: dict[str, object]) -> None:
    with connection_to(broker) as connection, connection.Producer() as producer:
        producer.publish(
            body,
            routing_key="ocr",
            content_type=content_type,
            content_encoding="utf-8" if content_type == JSON else "binary",
            headers={name: value for name, value in headers.items() if value is not None},
        )


def connection_to(broker: Broker) -> Connection:
    return celery_app(load_settings({"pool": {"broker_url": broker.url}})).connection_for_write()
