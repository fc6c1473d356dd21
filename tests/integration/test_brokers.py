"""The throw-away brokers themselves."""

from __future__ import annotations

from amqp import ChannelError
from kombu import Connection

from tests.server_parts import Broker


def test_a_broker_keeps_a_message_over_a_crash_and_loses_it_when_told_to(broker: Broker) -> None:
    send(broker, "kept", "first")
    broker.restart()
    assert depth(broker, "kept") == 1

    broker.lose_everything()
    assert depth(broker, "kept") == 0


def send(broker: Broker, queue: str, text: str) -> None:
    with opened(broker) as connection, connection.SimpleQueue(queue) as simple:
        simple.put(text)


def depth(broker: Broker, queue: str) -> int:
    with opened(broker) as connection, connection.SimpleQueue(queue) as simple:
        try:
            return simple.qsize()
        except ChannelError:  # a list of Redis's is gone with its last message
            return 0


def opened(broker: Broker) -> Connection:
    return Connection(broker.url.get_secret_value(), transport_options={"confirm_publish": True})
