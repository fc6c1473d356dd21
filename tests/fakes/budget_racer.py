"""A process whose threads make calls against a budget, each about a page of its own, and lose some of them on the way.

What was acknowledged is in a log a page, so that a process that ended goes on where it stopped.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.orm import Session

from models.budget import Charge, Reservation
from models.errors import BudgetSpent, StoreUnreachable
from models.tables import VlmAttemptRow
from models.transcription import Call, TokenUsage
from pipeline.store import Store, connect_store
from pipeline.store.budgets import reserve
from tests.unit.store.booking import BOOK
from tests.unit.store.calls import Pages

MONTH = "2026-11"
PROMPT_TOKENS, ANSWER_TOKENS = 50, 50
COST_CENTRES = ("race", "race/atlas", "race/borea")

OPENED, CLOSED, REFUSED = "opened", "closed", "refused"


@dataclass(frozen=True, slots=True)
class Log:
    """Lines of a word and, but for a refusal, the number of a call and its tokens."""

    path: Path

    def write(self, word: str, *numbers: int) -> None:
        line = " ".join([word, *map(str, numbers)]) + "\n"
        with self.path.open("ab", buffering=0) as file:
            file.write(line.encode())

    def lines(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        if self.path.exists():
            for line in self.path.read_text(encoding="ascii").splitlines():
                word, *numbers = line.split()
                yield word, tuple(map(int, numbers))


def tries(log: Log) -> int:
    """Reservations that were answered, by a yes or a no."""
    return sum(word in (OPENED, REFUSED) for word, _ in log.lines())


class Racer:
    """``run`` makes reservations until ``wanted`` have been answered. At the tries ``ends_at`` the whole process ends,
    in the middle of a transaction at an odd one, between a call's two at an even one; or two tries later, where there
    is no room for the call just then."""

    def __init__(self, store: Store, pages: Pages, page: int, log: Log, ends_at: frozenset[int]) -> None:
        self._store = store
        self._pages = pages
        self._page = page
        self._log = log
        self._ends_at = ends_at
        self._tries = tries(log)
        self._chance = random.Random(f"{page}/{self._tries}")
        taken = pages.take(page)
        assert taken is not None
        self._calls = taken

    def run(self, wanted: int) -> None:
        while self._tries < wanted:
            fate = self._chance.random()
            if fate < 0.01:
                self._lose_connection()
            self._try(is_lost=0.01 < fate < 0.03)
            if fate > 0.99:
                self._store.transcriptions.close_abandoned(BOOK)

    def _try(self, *, is_lost: bool) -> None:
        self._tries += 1
        must_end = any(self._tries >= end and (self._tries - end) % 2 == 0 for end in self._ends_at)
        if must_end and self._tries % 2:
            self._end_in_the_middle()
        call = self._next_call()
        if not self._is_opened(call):
            self._log.write(REFUSED)
            return
        self._calls += 1
        self._log.write(OPENED, call.attempt)
        if must_end:
            os._exit(1)
        if is_lost:
            self._start_anew()
        else:
            self._close(call)

    def _next_call(self) -> Call:
        return self._pages.call(
            self._page,
            self._calls + 1,
            cost_centre=COST_CENTRES[self._page % len(COST_CENTRES)],
            month=MONTH,
            prompt_tokens=PROMPT_TOKENS,
            answer_tokens=ANSWER_TOKENS,
        )

    def _is_opened(self, call: Call) -> bool:
        owner = self._pages.owner_of(self._page)
        try:
            assert self._store.transcriptions.open_call(call, owner=owner, currency=BOOK.currency)
        except BudgetSpent:
            return False
        return True

    def _close(self, call: Call) -> None:
        usage = TokenUsage(
            prompt_tokens=PROMPT_TOKENS, completion_tokens=self._chance.randint(0, ANSWER_TOKENS)
        )
        closed = self._pages.closed(call, usage)
        self._store.transcriptions.close_call(closed)
        self._log.write(CLOSED, call.attempt, usage.prompt_tokens + usage.completion_tokens)
        if self._chance.random() < 0.02:  # as one who has not heard that it went through
            self._store.transcriptions.close_call(closed)

    def _start_anew(self) -> None:
        """The call is left open, and the page goes to whoever takes it next."""
        self._store.pages.release_leases(self._pages.owner_of(self._page))
        assert self._pages.take(self._page) == self._calls

    def _lose_connection(self) -> None:
        """The reservation is made and the call is written when the database hears no more."""
        with (
            suppress(StoreUnreachable, BudgetSpent, ConnectionError),
            self._store.database.write() as session,
        ):
            self._half_opened(session)
            if session.get_bind().dialect.name == "postgresql":
                session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
            raise ConnectionError

    def _end_in_the_middle(self) -> None:
        with suppress(BudgetSpent), self._store.database.write() as session:
            self._half_opened(session)
            os._exit(1)
        os._exit(1)

    def _half_opened(self, session: Session) -> None:
        call = self._next_call()
        most = Charge(tokens=call.reserved_tokens, micro=call.reserved_micro)
        reservation = Reservation(
            cost_centre=call.cost_centre,
            month=MONTH,
            most=most,
            currency=BOOK.currency,
            model_id=call.model_id,
        )
        reserve(session, reservation)
        row = {
            name: getattr(call, name) for name in call.__dataclass_fields__ if hasattr(VlmAttemptRow, name)
        }
        session.add(VlmAttemptRow(**row, month=MONTH))
        session.flush()


def main(arguments: list[str]) -> None:
    """Home, address, folder of the logs, reading, document, first page, threads, tries a page, tries at which the
    process ends."""
    home, url, logs, reading_id, document_id, first_page, threads, wanted, ends_at = arguments
    failures: list[BaseException] = []

    def race(page: int) -> None:
        address = SecretStr(url) if url else None
        try:
            with closing(connect_store(Path(home), address)) as store:
                pages = Pages(store, 0, reading_id=int(reading_id), document_id=document_id)
                ends = (
                    frozenset(map(int, filter(None, ends_at.split(","))))
                    if page == int(first_page)
                    else frozenset()
                )
                Racer(store, pages, page, Log(Path(logs) / str(page)), ends).run(int(wanted))
        except BaseException as error:
            failures.append(error)
            raise

    racers = [
        threading.Thread(target=race, args=(page,))
        for page in range(int(first_page), int(first_page) + int(threads))
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    os._exit(2 if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
