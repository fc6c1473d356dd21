"""Addresses of brokers, and what is shown of them."""

from __future__ import annotations

import pytest
from kombu import Connection
from pydantic import SecretStr

from models.errors import BrokerUnavailable, SettingsError
from workers.broker import address, broker_url, errors_translated, is_rabbitmq


@pytest.mark.parametrize(
    ("url", "rabbitmq", "shown"),
    [
        ("redis://:sesam@cache:6379/0", False, "redis://cache:6379"),
        ("redis://cache", False, "redis://cache:6379"),
        ("rediss://user:se%40sam@cache:6380/3?ssl_cert_reqs=required", False, "rediss://cache:6380"),
        ("amqp://user:sesam@rabbit//", True, "amqp://rabbit:5672"),
        ("amqps://user:se%2Fsam@rabbit:5671/documents", True, "amqps://rabbit:5671"),
    ],
)
def test_an_address_is_shown_without_the_account(url: str, rabbitmq: bool, shown: str) -> None:
    assert broker_url(SecretStr(url)) == url
    assert is_rabbitmq(url) is rabbitmq
    assert address(Connection(url)) == shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cache:6379",
        "memory://",
        "sqs://user:sesam@queue",
        "redis://",
        "redis://:ses@m@cache:6379/0",
        "redis://:12/sesam@cache:6379/0",
        "redis://user:12?sesam@cache:6379/0",
        "redis://user:12#sesam@cache:6379/0",
        "redis://:sesam@cache:port/0",
        "redis://:sesam@cache;redis://:sesam@other",
        "redis://:ses\nam@cache",
    ],
)
def test_what_is_no_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^DOCTRIAGE_POOL__BROKER_URL: write it as redis://") as refusal:
        broker_url(SecretStr(url))

    assert "sesam" not in str(refusal.value)


def test_no_broker_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"^the pool of workers needs a broker; set DOCTRIAGE_POOL__BROKER_URL"
    ):
        broker_url(None)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError("[Errno 111] Connection\n refused"), r"\[Errno 111\] Connection refused"),
        (TimeoutError(), "no answer within 4 s"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_an_error_says_what_happened_and_where(error: Exception, words: str) -> None:
    said = rf"^redis://cache:6379: the broker does not answer, or refuses \({words}\); start it, or correct"
    with pytest.raises(BrokerUnavailable, match=said), errors_translated(Connection("redis://:sesam@cache")):
        raise error


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("rediss://:secret@redis:6380/0", "rediss://:secret@redis:6380/0?ssl_cert_reqs=required"),
        ("rediss://redis:6380/0?db=1", "rediss://redis:6380/0?db=1&ssl_cert_reqs=required"),
        ("rediss://redis/0?ssl_cert_reqs=none", "rediss://redis/0?ssl_cert_reqs=none"),
        ("redis://redis:6379/0", "redis://redis:6379/0"),
    ],
)
def test_redis_behind_tls_shows_its_certificate_unless_told_otherwise(given: str, asked: str) -> None:
    assert broker_url(SecretStr(given)) == asked
