"""Whoever looks after a pool delivers its callbacks, beside that."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog

from models.errors import StoreUnavailable
from pipeline.chargeback.cost_centres import team_of
from pipeline.settings import ApiSettings
from pipeline.store.callbacks import CallbackStore, DueCallback
from workers.callbacks.sending import MOST_S, Answer, send
from workers.callbacks.signing import signed_headers
from workers.retry import CALLBACK_MOST_TURNS, callback_retry_decision

AT_A_TIME: Final = 8
OF_A_TEAM: Final = 3
"""At a time, so that receivers who answer slowly do not keep those of others waiting."""

LEASE_S: Final = 6 * MOST_S
RECENT_S: Final = 2 * 86_400.0
"""Documents that were sent within this time are looked at every time, all others now and then."""
ALL_LOOKED_AT_EVERY_S: Final = 3_600.0

USER_AGENT: Final = "doctriage-callbacks"

log = structlog.get_logger()

Document = Mapping[str, object]
DocumentOf = Callable[[str], Document | None]
"""From an upload's id to what the API shows of it; None for one that was erased."""

Send = Callable[..., Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    body: bytes
    headers: Mapping[str, str]


class CallbackDesk:
    """Any number of them may work on one database. ``look`` does not wait for deliveries, which threads of its own
    make; ``close`` waits for those under way, for a while."""

    def __init__(
        self, store: CallbackStore, settings: ApiSettings, document_of: DocumentOf, *, sender: Send = send
    ) -> None:
        self._store = store
        self._settings = settings
        self._document_of = document_of
        self._send = sender
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._under_way: Counter[str] = Counter()
        self._is_closed = False
        self._all_from_s = 0.0

    def look(self) -> None:
        """Enter what is to be told, and begin to tell it. Raises ``StoreUnavailable``."""
        if self._settings.callback_secret is None:
            return
        now_s = time.time()
        looks_at_all = now_s >= self._all_from_s
        self._store.enter_missing(uploaded_since_s=None if looks_at_all else now_s - RECENT_S)
        if looks_at_all:
            self._all_from_s = now_s + ALL_LOOKED_AT_EVERY_S
        self._begin()

    def wait(self, patience_s: float = threading.TIMEOUT_MAX) -> None:
        """Until nothing is due any more."""
        until_s = time.monotonic() + patience_s
        while (threads := self._at_work()) and time.monotonic() < until_s:
            threads[0].join(max(0.0, until_s - time.monotonic()))

    def close(self, *, patience_s: float) -> None:
        """What was not begun is left to the next who looks, as is what is under way for longer."""
        with self._lock:
            self._is_closed = True
        self.wait(patience_s)

    def deliver_due(self) -> int:
        """Until nothing is due any more that may be delivered now; how many deliveries were tried. Raises
        ``StoreUnavailable``."""
        tried = 0
        while (taken := self._taken()) is not None:
            try:
                self._deliver(taken)
            finally:
                with self._lock:
                    self._under_way[team_of(taken.cost_centre)] -= 1
            tried += 1
        return tried

    def _at_work(self) -> tuple[threading.Thread, ...]:
        with self._lock:
            return tuple(self._threads)

    def _begin(self) -> None:
        """One thread at a look; each that found something to do calls another, up to ``AT_A_TIME``."""
        with self._lock:
            if self._is_closed or len(self._threads) >= AT_A_TIME:
                return
            thread = threading.Thread(target=self._work, name="callbacks", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _work(self) -> None:
        try:
            self.deliver_due()
        except StoreUnavailable as error:
            log.warning("callbacks_not_delivered", code=error.code, reason=str(error))
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _taken(self) -> DueCallback | None:
        with self._lock:
            if self._is_closed:
                return None
            busy = [name for name, count in self._under_way.items() if count >= OF_A_TEAM]
            taken = self._store.take_due(lease_s=LEASE_S, except_of_teams=busy)
            if taken is None:
                return None
            self._under_way[team_of(taken.cost_centre)] += 1
        if threading.current_thread() in self._at_work():
            self._begin()
        return taken

    def _deliver(self, taken: DueCallback) -> None:
        if taken.attempts > CALLBACK_MOST_TURNS:
            self._give_up(
                taken, "nobody came to an end with it; look at the log of whoever delivers callbacks"
            )
            return
        document = self._document_of(taken.upload_id)
        if document is None:
            self._give_up(taken, "the document was erased")
            return
        message = self._message(taken, document)
        answer = self._send(taken.url, body=message.body, headers=message.headers, settings=self._settings)
        self._note(taken, answer)

    def _give_up(self, taken: DueCallback, reason: str) -> None:
        self._store.failed(taken, status=None, error=reason, next_attempt_at_s=None)

    def _message(self, taken: DueCallback, document: Document) -> Message:
        """In ASCII, so that what is no text in the sender's own words can be sent too."""
        now = datetime.now(UTC)
        body = json.dumps(
            {"type": taken.event, "timestamp": now.isoformat().replace("+00:00", "Z"), "data": document},
            separators=(",", ":"),
        )
        signed = signed_headers(
            self._settings, taken.cost_centre, message_id=taken.message_id, body=body, now=now
        )
        headers = {**signed, "content-type": "application/json", "user-agent": USER_AGENT}
        return Message(body=body.encode(), headers=headers)

    def _note(self, taken: DueCallback, answer: Answer) -> None:
        fields = {
            "upload_id": taken.upload_id,
            "callback_event": taken.event,
            "attempt": taken.attempts,
            "status": answer.status,
        }
        if answer.status is not None and answer.is_taken:
            self._store.delivered(taken, status=answer.status)
            log.info("callback_delivered", **fields)
            return
        now_s = time.time()
        again = callback_retry_decision(
            taken.attempts,
            status=answer.status,
            age_s=now_s - taken.created_at_s,
            retry_after_s=answer.retry_after_s,
        )
        self._store.failed(
            taken,
            status=answer.status,
            error=answer.error or "it was not taken",
            next_attempt_at_s=None if again is None else now_s + again.delay_s,
        )
        log.info("callback_failed", **fields, reason=answer.error, is_given_up=again is None)
