"""Requests to the API, made again where that is safe. httpx2 makes them; this is the only file that imports it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, BinaryIO, Final, TypeVar

import httpx2

from models.errors import (
    DoctriageError,
    PoolBusy,
    ServerError,
    ServerUnreachable,
    TooManyAtOnce,
    TooManyRequests,
)
from workers.client.address import checked_url, credentials
from workers.client.problems import error_of, problem_of, unknown_answer
from workers.client.records import Json
from workers.retry import request_retry_decision

CONNECT_LIMIT_S: Final = 10.0
SEND_LIMIT_S: Final = 60.0
ANSWER_LIMIT_S: Final = 300.0
"""What the server may take to answer, and not to send all of it."""
SILENCE_LIMIT_S: Final = 45.0
"""Of a stream of events; the server says something every 15 s."""
MOST_AT_ONCE: Final = 200
LONGEST_RETRY_AFTER_S: Final = 3_600.0

PASSING: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
NEVER_BEGUN: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""The server has not begun with a request that it answers so."""

FULL: Final = (PoolBusy, TooManyAtOnce, TooManyRequests)
"""There will be room."""

Answer = TypeVar("Answer")
ServerSentEvent = httpx2.ServerSentEvent
OnWait = Callable[[DoctriageError, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """multipart/form-data. ``opened`` gives the file from its beginning each time; without ``is_repeatable`` only
    once."""

    fields: Mapping[str, str]
    name: str
    opened: Callable[[], AbstractContextManager[BinaryIO]]
    is_repeatable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request. ``is_idempotent``: made twice it does what it does once. ``answer_limit_s`` is how long the server
    may say nothing."""

    method: str
    path: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    form: Form | None = None
    is_idempotent: bool = True
    answer_limit_s: float = ANSWER_LIMIT_S


class RequestFailed(Exception):
    """``error`` is what it means. ``is_passing``: the same may go through later, and is safe to ask again."""

    def __init__(
        self, error: DoctriageError, *, is_passing: bool, retry_after_s: float | None = None
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.is_passing = is_passing
        self.retry_after_s = retry_after_s


class Connection:
    """To one server. ``patience_s`` is the most that the pauses before one request may sum to; with ``waits_for_room``
    those count not that are made because the server is full. ``on_wait`` is told why, and how long, before each pause,
    which ``sleep`` makes. Threads may share it."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        patience_s: float,
        waits_for_room: bool = False,
        on_wait: OnWait | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = checked_url(url)
        self._patience_s = patience_s
        self._waits_for_room = waits_for_room
        self._on_wait = on_wait
        self._sleep = sleep
        self._client = httpx2.Client(
            base_url=self.url,
            headers=credentials(key),
            timeout=_timeout(ANSWER_LIMIT_S),
            limits=httpx2.Limits(max_connections=MOST_AT_ONCE, max_keepalive_connections=20),
        )

    def close(self) -> None:
        self._client.close()

    def ask(self, asked: Asked) -> httpx2.Response:
        """The whole answer. Raises the error of a problem, ServerUnreachable and ServerError."""

        def read() -> httpx2.Response:
            with self._opened(asked) as answer:
                answer.read()
                return answer

        return self.patiently(read)

    def ask_json(self, asked: Asked) -> Json:
        return json_of(self.ask(asked))

    def taken(self, asked: Asked, take: Callable[[Iterator[bytes]], Answer]) -> Answer:
        """What ``take`` makes of the answer's bytes as they come; it is called again from the beginning where the
        connection is lost."""

        def read() -> Answer:
            with self._opened(asked) as answer:
                return take(_chunks(answer))

        return self.patiently(read)

    @contextmanager
    def events(self, asked: Asked) -> Iterator[Iterator[httpx2.ServerSentEvent]]:
        """Of one connection, until it ends. Raises RequestFailed."""
        with self._opened(asked) as answer:
            if answer.status_code == HTTPStatus.NO_CONTENT:
                yield iter(())
                return
            yield _events(answer)

    def patiently(self, ask: Callable[[], Answer]) -> Answer:
        """``ask`` until it goes through, or it makes no sense to ask again. It raises RequestFailed."""
        waiting = Waiting(self, self._patience_s, waits_for_room=self._waits_for_room)
        while True:
            try:
                return ask()
            except RequestFailed as failed:
                waiting.pause(failed)

    def pause(self, error: DoctriageError, delay_s: float) -> None:
        if self._on_wait is not None:
            self._on_wait(error, delay_s)
        self._sleep(delay_s)

    @contextmanager
    def _opened(self, asked: Asked) -> Iterator[httpx2.Response]:
        """Raises RequestFailed, also for what goes wrong within the block."""
        form = asked.form
        opened: AbstractContextManager[BinaryIO | None] = nullcontext() if form is None else form.opened()
        try:
            with (
                opened as file,
                self._client.stream(
                    asked.method,
                    asked.path,
                    params=dict(asked.params),
                    headers=dict(asked.headers),
                    timeout=_timeout(asked.answer_limit_s),
                    **_body(form, file),
                ) as answer,
            ):
                self._require_success(asked, answer)
                yield answer
        except httpx2.TransportError as error:
            raise self._lost(asked, error) from error
        except httpx2.DecodingError as error:
            raise RequestFailed(unknown_answer(HTTPStatus.BAD_GATEWAY), is_passing=False) from error

    def _require_success(self, asked: Asked, answer: httpx2.Response) -> None:
        if answer.is_success:
            return
        answer.read()
        status, retry_after_s = answer.status_code, retry_after_of(answer)
        problem = problem_of(status, _content(answer), retry_after_s)
        error = unknown_answer(status) if problem is None else error_of(problem)
        passing = PASSING if asked.is_idempotent else NEVER_BEGUN
        is_passing = status in passing and _can_be_sent_again(asked)
        raise RequestFailed(error, is_passing=is_passing, retry_after_s=retry_after_s)

    def _lost(self, asked: Asked, error: httpx2.TransportError) -> RequestFailed:
        was_sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        is_passing = (asked.is_idempotent and _can_be_sent_again(asked)) or not was_sent
        if was_sent:
            said = f"the connection to {self.url} was lost ({_words(error)}); try again"
        else:
            said = f"no server answers at {self.url} ({_words(error)}); check the address, and that it runs"
        return RequestFailed(ServerUnreachable(said), is_passing=is_passing)


@dataclass(slots=True)
class Waiting:
    """The pauses before one request, or within one stream of events."""

    connection: Connection
    patience_s: float
    waits_for_room: bool = False
    attempt: int = 1
    waited_s: float = 0.0

    def pause(self, failed: RequestFailed) -> None:
        """Raises the error of one that is not asked again."""
        decision = (
            request_retry_decision(
                self.attempt,
                waited_s=self.waited_s,
                patience_s=self.patience_s,
                retry_after_s=failed.retry_after_s,
            )
            if failed.is_passing
            else None
        )
        if decision is None:
            raise failed.error from failed
        self.connection.pause(failed.error, decision.delay_s)
        self.attempt = decision.next_attempt
        if not (self.waits_for_room and isinstance(failed.error, FULL)):
            self.waited_s += decision.delay_s

    def forget(self) -> None:
        """It went well for a while."""
        self.attempt, self.waited_s = 1, 0.0


def json_of(answer: httpx2.Response) -> Json:
    content = _content(answer)
    if not isinstance(content, Mapping):
        raise ServerError(
            "the answer is no JSON object; check that the address is that of a doctriage server",
            status=answer.status_code,
        )
    return content


def retry_after_of(answer: httpx2.Response) -> float | None:
    """In seconds; the API sends no dates."""
    try:
        seconds = float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(seconds, LONGEST_RETRY_AFTER_S) if seconds >= 0 else None


def _timeout(answer_limit_s: float) -> httpx2.Timeout:
    return httpx2.Timeout(answer_limit_s, connect=CONNECT_LIMIT_S, write=SEND_LIMIT_S)


def _body(form: Form | None, file: BinaryIO | None) -> dict[str, Any]:
    if form is None:
        return {}
    return {"data": dict(form.fields), "files": {"file": (form.name, file, "application/octet-stream")}}


def _can_be_sent_again(asked: Asked) -> bool:
    return asked.form is None or asked.form.is_repeatable


def _content(answer: httpx2.Response) -> object:
    try:
        content: object = json.loads(answer.read())
    except ValueError:
        return None
    return content


def _chunks(answer: httpx2.Response) -> Iterator[bytes]:
    yield from answer.iter_bytes()


def _events(answer: httpx2.Response) -> Iterator[httpx2.ServerSentEvent]:
    yield from httpx2.EventSource(answer)


def _words(error: httpx2.TransportError) -> str:
    return str(error) or type(error).__name__
