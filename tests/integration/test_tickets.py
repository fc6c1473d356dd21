"""Tickets over real brokers: sent, counted, lost, and not sent where there is no broker."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from models.errors import BrokerUnavailable
from models.pool import Queue
from pipeline.settings import load_settings
from tests.server_parts import Broker, free_port
from workers.broker import require_broker
from workers.celery_app import celery_app
from workers.celery_tickets import CeleryTickets
from workers.logs import set_up_logs
from workers.tickets import send_if_possible, take_if_possible


def test_tickets_are_counted_where_they_were_sent(broker: Broker) -> None:
    tickets = tickets_over(url_of(broker))

    tickets.send(Queue.OCR, 3)
    tickets.send(Queue.OCR)
    tickets.send(Queue.VLM, 2)
    tickets.send(Queue.ASSEMBLE, 0)

    assert {queue: tickets.depth(queue) for queue in Queue} == {
        Queue.INTAKE: 0,
        Queue.OCR: 4,
        Queue.VLM: 2,
        Queue.ASSEMBLE: 0,
    }


def test_tickets_are_taken_as_far_as_there_are_any(broker: Broker) -> None:
    tickets = tickets_over(url_of(broker))
    tickets.take(Queue.OCR, 1)
    tickets.send(Queue.OCR, 5)
    tickets.send(Queue.VLM)

    tickets.take(Queue.OCR, 3)
    assert tickets.depth(Queue.OCR) == 2
    tickets.take(Queue.OCR, 3)
    assert (tickets.depth(Queue.OCR), tickets.depth(Queue.VLM)) == (0, 1)


def test_a_restarted_broker_has_its_tickets_and_an_emptied_one_takes_new_ones(broker: Broker) -> None:
    tickets = tickets_over(url_of(broker))
    tickets.send(Queue.OCR, 2)

    broker.restart()
    tickets.send(Queue.OCR)
    assert tickets.depth(Queue.OCR) == 3

    broker.lose_everything()
    assert tickets.depth(Queue.OCR) == 0
    tickets.send(Queue.OCR)
    assert tickets.depth(Queue.OCR) == 1


def test_a_broker_that_is_away_is_said_and_found_again(broker: Broker) -> None:
    tickets = tickets_over(url_of(broker))
    tickets.send(Queue.OCR)

    broker.stop()
    asks = (
        lambda: tickets.send(Queue.OCR),
        lambda: tickets.take(Queue.OCR, 1),
        lambda: tickets.depth(Queue.OCR),
    )
    for ask in asks:
        with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:\d+: the broker does not answer"):
            ask()

    broker.start()
    tickets.send(Queue.OCR)
    assert tickets.depth(Queue.OCR) == 2


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_finished_work_does_not_fail_for_want_of_a_broker(
    scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs("warning")

    away = tickets_over(f"{scheme}://127.0.0.1:{free_port()}/0")
    send_if_possible(away, Queue.ASSEMBLE, 2)
    take_if_possible(away, Queue.OCR, 3)

    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["queue"], line["count"]) for line in said] == [
        ("tickets_not_sent", "assemble", 2),
        ("tickets_not_taken", "ocr", 3),
    ]


def test_a_wrong_password_is_refused_and_not_shown(broker: Broker) -> None:
    url = url_of(broker)
    account, _, host = url.partition("@")
    wrong = f"{account.rpartition(':')[0]}:sesam@{host}"

    with pytest.raises(BrokerUnavailable, match="or refuses") as refusal:
        require_broker(celery_app(load_settings({"pool": {"broker_url": wrong}})))

    assert "sesam" not in str(refusal.value)
    require_broker(celery_app(load_settings({"pool": {"broker_url": url}})))


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_server_that_accepts_and_says_nothing_is_not_waited_for(scheme: str, silent_port: int) -> None:
    tickets = tickets_over(f"{scheme}://user:sesam@127.0.0.1:{silent_port}/0")

    with pytest.raises(BrokerUnavailable, match=r"Timeout reading from socket|no answer within 4 s"):
        tickets.send(Queue.INTAKE)


@pytest.fixture
def silent_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def tickets_over(url: str) -> CeleryTickets:
    return CeleryTickets(celery_app(load_settings({"pool": {"broker_url": url}})))


def url_of(broker: Broker) -> str:
    return broker.url.get_secret_value()
