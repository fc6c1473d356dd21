"""The pool's broker: its address, whether it answers, and its many errors as one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

from celery import Celery
from kombu import Connection
from kombu.exceptions import OperationalError
from pydantic import SecretStr

from models.errors import BrokerUnavailable, SettingsError

RABBITMQ_SCHEMES: Final = ("amqp", "amqps")
SCHEMES: Final = ("redis", "rediss", *RABBITMQ_SCHEMES)

ANSWER_LIMIT_S: Final = 4.0
"""How long a broker may take to accept a connection, and to answer."""

CERTIFICATE: Final = "ssl_cert_reqs"

HOW_TO_WRITE: Final = (
    "DOCTRIAGE_POOL__BROKER_URL: write it as redis://:password@host:6379/0 or amqp://user:password@host:5672/vhost, "
    "with @ : / ? # % in a password spelled %40 %3A %2F %3F %23 %25"
)


def broker_url(url: SecretStr | None) -> str:
    """With its password. Raises SettingsError for none, or one in which a part of the password could be taken for
    something else, and be shown in a message. Redis behind TLS is asked for its certificate, which Kombu alone would
    not do, unless the address says otherwise."""
    if url is None:
        raise SettingsError(
            "the pool of workers needs a broker; set DOCTRIAGE_POOL__BROKER_URL to redis://:password@host:6379/0 or "
            "amqp://user:password@host:5672/vhost"
        )
    text = url.get_secret_value()
    if not _is_plain(text):
        raise SettingsError(HOW_TO_WRITE)
    parts = urlsplit(text)
    if parts.scheme == "rediss" and CERTIFICATE not in parse_qs(parts.query):
        asked = "&".join(part for part in (parts.query, f"{CERTIFICATE}=required") if part)
        return parts._replace(query=asked).geturl()
    return text


def is_rabbitmq(url: str) -> bool:
    return urlsplit(url).scheme in RABBITMQ_SCHEMES


def address(connection: Connection) -> str:
    """Scheme, host and port."""
    parts = urlsplit(connection.as_uri(include_password=False))
    return f"{parts.scheme}://{parts.hostname}:{parts.port}"


def require_broker(app: Celery) -> None:
    """Raises ``BrokerUnavailable`` where it does not answer, or not to this user, within about five seconds."""
    with app.connection_for_write() as connection, errors_translated(connection):
        connect_once(connection)
        connection.default_channel  # noqa: B018 — Redis is not spoken to before


def connect_once(connection: Connection) -> None:
    """Where it has no connection. One attempt: whoever sends rather goes on without than waits for a broker."""
    connection.ensure_connection(max_retries=0)


@contextmanager
def errors_translated(connection: Connection) -> Iterator[None]:
    """Raises ``BrokerUnavailable``, which names the address and never the password."""
    try:
        yield
    except (OperationalError, *connection.connection_errors, *connection.channel_errors) as error:
        raise BrokerUnavailable(
            f"{address(connection)}: the broker does not answer, or refuses ({_in_words(error)}); start it, or correct "
            "DOCTRIAGE_POOL__BROKER_URL"
        ) from error


def _in_words(error: BaseException) -> str:
    if isinstance(error.__cause__ or error, TimeoutError):
        return f"no answer within {ANSWER_LIMIT_S:g} s"
    return " ".join(str(error).split()) or type(error).__name__


def _is_plain(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return (
        url.isprintable()
        and ";" not in url
        and parts.scheme in SCHEMES
        and bool(parts.hostname)
        and parts.netloc.count("@") <= 1
        and "@" not in parts.path + parts.query
        and not parts.fragment
    )
