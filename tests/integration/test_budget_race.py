"""Many sessions against one hard limit, with processes and connections that are lost on the way: nothing is spent that
the budget did not have, and no call is lost or counted twice."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from models.budget import Budget
from pipeline.chargeback.price_book import load_price_book
from pipeline.store import Store, open_store
from tests.fakes.budget_racer import ANSWER_TOKENS, CLOSED, MONTH, OPENED, PROMPT_TOKENS, REFUSED, Log, tries
from tests.unit.store.calls import Pages, counted, month_rows

ROOT = Path(__file__).parent.parent.parent
BOOK = load_price_book()
LEAST_TOKENS, MOST_TOKENS = PROMPT_TOKENS, PROMPT_TOKENS + ANSWER_TOKENS


@dataclass(slots=True)
class Race:
    """``processes`` of ``threads`` each, every thread with a page and a session of its own."""

    folder: Path
    url: SecretStr | None
    processes: int
    threads: int
    tries_a_page: int
    store: Store = field(init=False)
    pages: Pages = field(init=False)
    limit_tokens: int = 0

    def __post_init__(self) -> None:
        self.store = open_store(self.folder, self.url)
        self.pages = Pages(self.store, self.processes * self.threads)
        self.pages.take_all()
        for page in self.page_numbers:
            self.store.pages.release_leases(self.pages.owner_of(page))

    @property
    def page_numbers(self) -> range:
        return range(1, self.pages.count + 1)

    def log(self, page: int) -> Log:
        return Log(self.folder / str(page))

    def set_limit(self, tokens: int) -> None:
        """Of the team; one project has half of it."""
        self.limit_tokens = tokens
        for cost_centre, share in (("race", tokens), ("race/atlas", tokens // 2)):
            self.store.budgets.set_budget(Budget(cost_centre=cost_centre, limit_tokens=share), month=MONTH)

    def start(self, number: int, ends: dict[int, list[int]]) -> subprocess.Popen[bytes]:
        """The process ends itself at the next of its ``ends``, tries of its first page."""
        ends_at = ends[number].pop(0) if ends.get(number) else ""
        url = "" if self.url is None else self.url.get_secret_value()
        reading = (str(self.pages.reading_id), self.pages.document_id)
        first_page = 1 + number * self.threads
        counts = (first_page, self.threads, self.tries_a_page, ends_at)
        command = [sys.executable, "-m", "tests.fakes.budget_racer", self.folder, url, self.folder, *reading]
        return subprocess.Popen([*command, *map(str, counts)], cwd=ROOT)

    def clear_up_after(self, number: int) -> None:
        """As a new run does: pages of a process that is gone are given back, its open calls closed."""
        for page in range(1 + number * self.threads, 1 + (number + 1) * self.threads):
            self.store.pages.release_leases(self.pages.owner_of(page))
        self.store.transcriptions.close_abandoned(BOOK)

    def run(self, limits: Iterator[int]) -> None:
        """Until all have made their tries; the limit is raised when it is nearly reached. Two processes end twice on
        the way, between the two transactions of a call and in the middle of one, and each is followed by another."""
        ends = {0: [20, 61], 1: [41, 80]}
        running = {number: self.start(number, ends) for number in range(self.processes)}
        while running:
            if self.tokens_left() < 10 * MOST_TOKENS and (limit := next(limits, None)) is not None:
                self.set_limit(limit)
            for number, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[number]
                self.clear_up_after(number)
                assert process.returncode in (0, 1)
                if process.returncode:
                    running[number] = self.start(number, ends)
            time.sleep(0.1)
        assert ends == {0: [], 1: []}

    def tokens_left(self) -> int:
        """Of the team, and never less than nothing of any."""
        team, project = (budget.tokens for budget in self.store.budgets.in_month(MONTH))
        assert team is not None
        assert project is not None
        assert min(team.left, project.left) >= 0
        return team.left


def assert_every_call_counts_once(race: Race) -> None:
    """What was acknowledged is there, what is there was asked for, and the rows of the budgets are its sums."""
    with race.store.database.read() as session:
        calls = session.execute(
            text("SELECT page_number, attempt, verdict, prompt_tokens + completion_tokens FROM vlm_attempts")
        ).all()
        entries = session.execute(
            text("SELECT page_number, attempt, outcome, prompt_tokens + completion_tokens FROM ledger")
        ).all()
    assert sorted(calls) == sorted(entries)
    booked = {(page, attempt): (verdict, tokens) for page, attempt, verdict, tokens in calls}
    assert len(booked) == len(calls)
    told: Counter[str] = Counter()
    for page in race.page_numbers:
        attempts = sorted(attempt for one, attempt in booked if one == page)
        assert attempts == list(range(1, len(attempts) + 1))
        for word, numbers in race.log(page).lines():
            told[word] += 1
            if word == OPENED:
                assert (page, numbers[0]) in booked
            if word == CLOSED:
                assert booked[page, numbers[0]] == ("accepted", numbers[1])
    assert all(LEAST_TOKENS <= tokens <= MOST_TOKENS for _, tokens in booked.values())
    assert told[CLOSED] < told[OPENED] <= len(booked)
    assert told[REFUSED] > 0
    rows = month_rows(race.store, "race")
    held = {
        key: (row.reserved_micro, row.reserved_tokens, row.spent_micro, row.spent_tokens)
        for key, row in rows.items()
        if key[1] == MONTH
    }
    assert held == counted(race.store)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database", "processes", "threads", "tries_a_page"), [("postgresql", 4, 8, 313), ("sqlite", 4, 1, 400)]
)
def test_no_interleaving_spends_more_than_the_limit(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    database: str,
    processes: int,
    threads: int,
    tries_a_page: int,
) -> None:
    url = request.getfixturevalue("postgres_url") if database == "postgresql" else None
    race = Race(tmp_path, url, processes, threads, tries_a_page)
    asked = race.pages.count * tries_a_page * LEAST_TOKENS
    race.set_limit(asked // 20)
    race.run(iter([asked * step // 20 for step in range(2, 11)]))
    assert sum(tries(race.log(page)) for page in race.page_numbers) == race.pages.count * tries_a_page
    assert_every_call_counts_once(race)
    assert race.tokens_left() >= 0
    assert {row.reserved_tokens for row in month_rows(race.store, "race").values()} == {0}
    race.store.close()
