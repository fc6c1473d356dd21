"""A client of the API: documents are sent, followed and fetched. ``docs/client.md`` has examples."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, Unpack, overload
from urllib.parse import quote as quoted

from models.budget import BudgetMonth
from models.document_state import DocumentState
from models.errors import NotReady, ServerError, ServerUnreachable, TooManyAtOnce
from pipeline.whole_files import written_whole
from workers.client.connection import (
    SILENCE_LIMIT_S,
    Asked,
    Connection,
    OnWait,
    RequestFailed,
    ServerSentEvent,
    Waiting,
    json_of,
    retry_after_of,
)
from workers.client.records import (
    Document,
    DocumentChanged,
    DocumentEnded,
    DocumentEvent,
    Json,
    PageSummary,
    budgets_of,
    document_of,
    page_settled_of,
    page_summary_of,
    parsed,
)
from workers.client.uploads import SubmitOptions, form_of, new_key

PATIENCE_S: Final = 600.0
STREAM_PATIENCE_S: Final = 30.0
"""After so long without events a document is asked after instead."""
ASK_EVERY_S: Final = 5.0
"""Where the server does not say."""
QUOTE_LIMIT_S: Final = 960.0
LISTED_AT_ONCE: Final = 200
PAGES_AT_ONCE: Final = 500
DOCUMENTS: Final = "/v1/documents"

ENDED: Final = "end"
EVENTS: Final[Mapping[str, Callable[[Json], DocumentEvent]]] = {
    "document": lambda content: DocumentChanged(document=document_of(content)),
    "page": page_settled_of,
    ENDED: lambda content: DocumentEnded(document=document_of(content)),
}


class Client:
    """Of the server at ``url``, by one of its API's keys. A request that is safe to make again is made again after
    lost connections, 429 and 503, as the server's Retry-After says, and ``on_wait`` is told of each pause. Their sum is
    ``patience_s`` at most; with ``waits_for_room`` those until a full server has room do not count. Threads may share
    a client.

    Errors are those of ``models.errors``: the class of the problem that the server answers with, ``ServerUnreachable``,
    and ``ServerError`` for all that this program does not know. SettingsError for an address or a key that is none.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        patience_s: float = PATIENCE_S,
        waits_for_room: bool = False,
        on_wait: OnWait | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = Connection(
            url, key, patience_s=patience_s, waits_for_room=waits_for_room, on_wait=on_wait, sleep=sleep
        )
        self._patience_s = patience_s
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def submit(
        self,
        file: Path | str | BinaryIO,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Document:
        """Send a document: a path, or a stream of bytes, which is never in memory as a whole. However often it has to
        be sent, one document comes of it; with an ``idempotency_key`` of your own also over several calls. Raises
        ``SourceUnreadable``, ``TooManyBytes``, ``RequestInvalid``, ``PoolBusy`` and ``TooManyOpenDocuments``."""
        answer = self._connection.ask(
            Asked(
                method="POST",
                path=DOCUMENTS,
                headers={"idempotency-key": idempotency_key or new_key()},
                form=form_of(file, options),
            )
        )
        document = parsed(document_of, json_of(answer))
        return replace(document, is_replayed=answer.headers.get("idempotency-replayed") == "true")

    def document(self, document_id: str) -> Document:
        """Raises ``DocumentNotFound`` and ``DocumentErased``."""
        return parsed(document_of, self._json(_path(document_id)))

    def documents(
        self,
        *,
        state: DocumentState | str | None = None,
        cost_centre: str | None = None,
        name: str | None = None,
    ) -> Iterator[Document]:
        """The newest first, asked for in parts as they are needed. ``name`` is a part of the document's name."""
        wanted = {"state": state, "cost_centre": cost_centre, "name": name}
        params: dict[str, str | int] = {key: str(value) for key, value in wanted.items() if value is not None}
        params["limit"] = LISTED_AT_ONCE
        while True:
            content = self._json(DOCUMENTS, **params)
            yield from parsed(lambda listed: [document_of(one) for one in listed["documents"]], content)
            if content.get("next_cursor") is None:
                return
            params["cursor"] = str(content["next_cursor"])

    def events(self, document_id: str) -> Iterator[DocumentEvent]:
        """What happens to a document, from the beginning to its end, once each: a connection that is lost is made
        again and goes on where it stopped. Raises ``TooManyAtOnce`` where the server follows as many already."""
        return self._events(document_id, self._patience_s)

    def wait(
        self,
        document_id: str,
        *,
        timeout_s: float | None = None,
        on_event: Callable[[DocumentEvent], None] | None = None,
    ) -> Document:
        """The document once it is over, whatever became of it. Where the server's events cannot be had it is asked
        after, as often as Retry-After says, and so it is with a ``timeout_s``: ``NotReady`` is raised after that."""
        if timeout_s is not None:
            return self._asked_until(document_id, time.monotonic() + timeout_s)
        try:
            for event in self._events(document_id, min(STREAM_PATIENCE_S, self._patience_s)):
                if on_event is not None:
                    on_event(event)
                if isinstance(event, DocumentEnded):
                    return event.document
        except (TooManyAtOnce, ServerUnreachable, ServerError):
            pass  # asked after, which says it better where the server is away
        return self._asked_until(document_id, None)

    @overload
    def result(self, document_id: str, output: str = ..., *, to: None = None) -> bytes: ...

    @overload
    def result(self, document_id: str, output: str = ..., *, to: Path | str) -> Path: ...

    def result(
        self, document_id: str, output: str = "markdown", *, to: Path | str | None = None
    ) -> bytes | Path:
        """The document in any format, such as ``markdown`` or ``json``, asked for before or not: its bytes, or the file
        ``to`` that they are written to as they come, whole or not at all. Raises ``NotReady``, ``DocumentFailed``,
        ``OutputImpossible``, ``DocumentEncrypted``, ``BlobMissing`` and ``OutputNotWritable``."""
        asked = Asked(method="GET", path=f"{_path(document_id)}/result", params={"format": output})
        if to is None:
            return self._connection.ask(asked).content
        path = Path(to)
        self._connection.taken(asked, lambda chunks: _write(path, chunks))
        return path

    def pages(self, document_id: str) -> Iterator[PageSummary]:
        """In order, also those that are not done, asked for in parts."""
        after = 0
        while True:
            content = self._json(f"{_path(document_id)}/pages", after=after, limit=PAGES_AT_ONCE)
            yield from parsed(lambda listed: [page_summary_of(one) for one in listed["pages"]], content)
            if content.get("next_after") is None:
                return
            after = int(content["next_after"])

    def page(self, document_id: str, page_number: int) -> Json:
        """All that is known of a page, as ``docs/output.md`` describes it, with what is booked about it. Raises
        ``PageNotFound``."""
        return self._json(f"{_path(document_id)}/pages/{page_number}")

    def cost(self, document_id: str) -> Json:
        """The statement of what the document has cost so far, by model, in the form of ``chargeback``."""
        return self._json(f"{_path(document_id)}/cost")

    def cancel(self, document_id: str) -> Document:
        """One that is open. Raises ``SubmissionNotOpen``."""
        asked = Asked(method="DELETE", path=_path(document_id), is_idempotent=False)
        return parsed(document_of, self._connection.ask_json(asked))

    def erase(self, document_id: str) -> None:
        """One that is over, everywhere but for what was paid for it. Raises ``SubmissionNotOpen`` and
        ``DocumentErased``."""
        asked = Asked(method="DELETE", path=_path(document_id), params={"erase": "true"}, is_idempotent=False)
        self._connection.ask(asked)

    def quote(
        self, file: Path | str | BinaryIO, *, sample: str | None = None, **options: Unpack[SubmitOptions]
    ) -> Json:
        """What a document would cost, as `doctriage quote --json` prints it; with a ``sample`` (``20``, ``10%``) of
        some of its pages alone. The server reads it for that, which takes a while."""
        asked = Asked(
            method="POST",
            path="/v1/quotes",
            form=form_of(file, options, sample=sample),
            is_idempotent=False,
            answer_limit_s=QUOTE_LIMIT_S,
        )
        return self._connection.ask_json(asked)

    def chargeback(
        self, *, first_day: date | None = None, end_day: date | None = None, by: str = "cost-centre"
    ) -> Json:
        """The statement of the days from the first up to, not including, the end, as `doctriage chargeback --format
        json` prints it."""
        days = {"from": first_day, "to": end_day}
        return self._json(
            "/v1/chargeback",
            by=by,
            **{name: day.isoformat() for name, day in days.items() if day is not None},
        )

    def budgets(self, month: str | None = None) -> tuple[BudgetMonth, ...]:
        """Those that hold for the key, in a month such as ``2026-11``, or in this one."""
        return parsed(budgets_of, self._json("/v1/budgets", **({} if month is None else {"month": month})))

    def models(self) -> Json:
        """The model that pages are escalated to, and the profiles that the server has."""
        return self._json("/v1/models")

    def _json(self, path: str, **params: str | int) -> Json:
        return self._connection.ask_json(Asked(method="GET", path=path, params=params))

    def _events(self, document_id: str, patience_s: float) -> Iterator[DocumentEvent]:
        path, last_id = f"{_path(document_id)}/events", ""
        waiting = Waiting(self._connection, patience_s)
        while True:
            headers: Mapping[str, str] = {"last-event-id": last_id} if last_id else {}
            asked = Asked(method="GET", path=path, headers=headers, answer_limit_s=SILENCE_LIMIT_S)
            try:
                with self._connection.events(asked) as told:
                    for event in told:
                        last_id = event.id or last_id
                        waiting.forget()
                        yield from _known(event)
                        if event.event == ENDED:
                            return
                failed = _ended_too_soon()
            except RequestFailed as error:
                failed = error
            waiting.pause(failed)

    def _asked_until(self, document_id: str, deadline_s: float | None) -> Document:
        while True:
            answer = self._connection.ask(Asked(method="GET", path=_path(document_id)))
            document = parsed(document_of, json_of(answer))
            if not document.state.is_open:
                return document
            pause_s = retry_after_of(answer) or ASK_EVERY_S
            if deadline_s is not None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise NotReady(
                        f"document {document_id} is {document.state} still; wait longer",
                        retry_after_s=round(pause_s),
                    )
                pause_s = min(pause_s, left_s)
            self._sleep(pause_s)


def _path(document_id: str) -> str:
    return f"{DOCUMENTS}/{quoted(document_id, safe='')}"


def _write(path: Path, chunks: Iterator[bytes]) -> None:
    with written_whole(path) as stream:
        for chunk in chunks:
            stream.buffer.write(chunk)


def _known(event: ServerSentEvent) -> Iterator[DocumentEvent]:
    """Nothing for a kind that a newer server tells."""
    make = EVENTS.get(event.event)
    if make is not None:
        yield parsed(lambda text: make(json.loads(text)), event.data)


def _ended_too_soon() -> RequestFailed:
    """The server stops, or the document is gone, which is said when it is asked again."""
    return RequestFailed(
        ServerUnreachable("the server ended the stream of events too soon; try again"), is_passing=True
    )
