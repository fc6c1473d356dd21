"""Any order of claims, ends, losses and cancellations brings every page to one end and every submission to its own."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import func, select

from models.document import Document
from models.page import Route
from models.pool import SourceState, SubmissionState
from models.tables import LedgerKind, LedgerRow, PageRow, PageState, SourceRow, SubmissionRow
from pipeline.store import PagesToRead, PageToTranscribe, connect_store, open_store
from pipeline.store.database import DATABASE_NAME
from tests.unit.store.booking import BOOK
from tests.unit.store.pool_parts import Pool, Submitted, entry_of
from tests.unit.store.test_pool_repair import page_json

OWNERS = ("ada", "ben", "cyd")
MAX_LOSSES = 2
HELD = (PageState.RUNNING, PageState.TRANSCRIBING)

owners = st.sampled_from(OWNERS)


class PoolMachine(RuleBasedStateMachine):
    """Three workers and a few documents, some submitted twice. ``template`` has a database with nothing in it."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        shutil.copy(self.template / DATABASE_NAME, self.folder.name)
        self.pool = Pool(connect_store(Path(self.folder.name)))
        self.attempts = 0
        self.submitted: list[Submitted] = []
        self.read: dict[str, list[tuple[PagesToRead, int]]] = {owner: [] for owner in OWNERS}
        self.sent: dict[str, list[PageToTranscribe]] = {owner: [] for owner in OWNERS}

    @rule(
        pages=st.integers(1, 3), priority=st.integers(4, 6), cost_centre=st.sampled_from(["mill", "harbour"])
    )
    def submit(self, pages: int, priority: int, cost_centre: str) -> None:
        if len(self.submitted) < 4:
            self.submitted.append(self.pool.submit(pages, cost_centre, priority=priority))

    @rule(number=st.integers(0, 3))
    def submit_again(self, number: int) -> None:
        if number < len(self.submitted) < 5:
            document: Document = self.submitted[number].document
            self.submitted.append(self.pool.submit(0, document=document))

    @rule(owner=owners, max_pages=st.integers(1, 3))
    def claim(self, owner: str, max_pages: int) -> None:
        work = self.pool.claim(owner, max_pages=max_pages)
        if work is not None:
            claimed = {(work.reading_id, number) for number in work.page_numbers}
            assert not claimed & self.held()
            assert len(claimed) == 1 or work.losses == 0
            self.read[owner] += [(work, number) for number in work.page_numbers]

    @rule(owner=owners)
    def claim_escalated(self, owner: str) -> None:
        page = self.pool.store.pool.claim_escalated(owner=owner, lease_s=600, weights={})
        if page is not None:
            assert (page.reading_id, page.page_number) not in self.held()
            self.sent[owner].append(page)

    @rule(owner=owners, awaits_vlm=st.booleans())
    def read_page(self, owner: str, awaits_vlm: bool) -> None:
        if self.read[owner]:
            work, number = self.read[owner].pop(0)
            self.pool.finish(work, owner, awaits_vlm=awaits_vlm, only=[number], page=page_json(number))
            self.attempts += 1

    @rule(owner=owners, is_final=st.booleans())
    def fail_page(self, owner: str, is_final: bool) -> None:
        if self.read[owner]:
            work, number = self.read[owner].pop(0)
            pages = self.pool.store.pages
            settle = pages.fail_page if is_final else pages.return_page
            entry = entry_of(work.reading_id, number, work.document.document_id, work.terms.submission_id)
            assert settle(
                work.reading_id, number, owner=owner, code="engine_failed", message="no", entry=entry
            )
            self.attempts += 1
            self.complete(work.reading_id)

    @rule(owner=owners)
    def transcribe_page(self, owner: str) -> None:
        if self.sent[owner]:
            page = self.sent[owner].pop(0)
            assert self.pool.store.transcriptions.finish_page(
                page.reading_id,
                page.page_number,
                owner=owner,
                page=page.page,
                summary={},
                route=Route.VLM,
                degraded_code=None,
                elapsed_s=1.0,
                last_call=None,
            )
            self.complete(page.reading_id)

    @rule(owner=owners)
    def lose(self, owner: str) -> None:
        """The worker ends without a word; others are alive. It was reading a page of each reading that it had."""
        self.attempts += len({work.reading_id for work, _ in self.read[owner]})
        self.read[owner], self.sent[owner] = [], []
        self.pool.store.pool.reclaim(lambda name: name != owner, max_losses=MAX_LOSSES, price_book=BOOK)

    @rule(owner=owners)
    def give_back(self, owner: str) -> None:
        self.read[owner], self.sent[owner] = [], []
        self.pool.store.pool.give_back(owner)

    @rule(number=st.integers(0, 4))
    def cancel(self, number: int) -> None:
        if number < len(self.submitted):
            self.pool.store.pool.cancel(self.submitted[number].submission_id)

    @rule()
    def write(self) -> None:
        self.pool.write()

    @rule()
    def repair(self) -> None:
        self.pool.store.pool.repair()

    @invariant()
    def pages_are_held_by_whoever_claimed_them(self) -> None:
        with self.pool.store.database.read() as session:
            rows = session.execute(
                select(PageRow.reading_id, PageRow.page_number, PageRow.state, PageRow.lease_owner)
            ).all()
        assert {(row[0], row[1]) for row in rows if row.state in HELD} == self.held()
        assert all((row.lease_owner is not None) is (row.state in HELD) for row in rows)

    @invariant()
    def every_attempt_is_booked_once(self) -> None:
        booked = select(func.count()).where(LedgerRow.kind == LedgerKind.CPU_PAGE)
        with self.pool.store.database.read() as session:
            assert session.scalar(booked) == self.attempts

    @invariant()
    def pages_that_are_settled_have_one_end(self) -> None:
        with self.pool.store.database.read() as session:
            for page in session.scalars(select(PageRow)):
                if page.state is PageState.DONE:
                    assert page.result is not None
                    assert page.settled_at_s is not None
                if page.state is PageState.FAILED:
                    assert page.result is None
                    assert page.error_code is not None

    @invariant()
    def a_submission_that_is_over_has_nothing_unsettled(self) -> None:
        over = (
            select(func.count())
            .select_from(SourceRow)
            .join(SubmissionRow, SubmissionRow.submission_id == SourceRow.submission_id)
            .where(SubmissionRow.state != SubmissionState.OPEN, SourceRow.state != SourceState.SETTLED)
        )
        with self.pool.store.database.read() as session:
            assert session.scalar(over) == 0

    def teardown(self) -> None:
        """Whoever is left works until nothing is left to do: then all that was not cancelled is finished."""
        for owner in OWNERS:
            while self.read[owner]:
                self.read_page(owner, False)
            while self.sent[owner]:
                self.transcribe_page(owner)
        for _ in itertools.takewhile(lambda _: self.work_on(), itertools.count()):
            pass
        states = {one.state for one in self.pool.store.pool.submissions(limit=100)}
        assert states <= {SubmissionState.FINISHED, SubmissionState.CANCELLED}
        self.pool.store.close()
        self.folder.cleanup()

    def work_on(self) -> bool:
        """Whether anything was left to do."""
        owner = OWNERS[0]
        self.claim(owner, 3)
        self.claim_escalated(owner)
        has_pages = bool(self.read[owner] or self.sent[owner])
        while self.read[owner]:
            self.read_page(owner, False)
        while self.sent[owner]:
            self.transcribe_page(owner)
        self.pool.store.pool.repair()
        return self.pool.write() is not None or has_pages

    def held(self) -> set[tuple[int, int]]:
        read = {(work.reading_id, number) for works in self.read.values() for work, number in works}
        sent = {(page.reading_id, page.page_number) for pages in self.sent.values() for page in pages}
        return read | sent

    def complete(self, reading_id: int) -> None:
        if self.pool.store.pages.complete_reading(reading_id):
            self.pool.store.pool.sources_read(reading_id)


def test_any_order_of_claims_ends_and_losses_brings_all_to_one_end(tmp_path: Path) -> None:
    open_store(tmp_path).close()

    class Machine(PoolMachine):
        template = tmp_path

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
