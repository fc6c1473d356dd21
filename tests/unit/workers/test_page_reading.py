"""Pages that this process has claimed: what is said of each, what is stored, and what is left to the caller."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from models.document import Document, MediaType
from models.errors import EngineUnavailable
from models.page import Route
from models.tables import PageState
from pipeline.blobs import BlobStore
from pipeline.chargeback.entries import Account, Payer
from pipeline.planning.configured import load_plan
from pipeline.policy import load_policy
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from tests.fakes.engines import FakeEngines, FakeOcr, Fault
from tests.fakes.pages import tiff_of_widths
from tests.unit.store.booking import ACCOUNT
from workers.messages import PageAttemptFailed, PageDone, PageEscalated
from workers.page_reading import PageRead, PageReader

WIDTHS_PX = (500, 501, 502)
PAGES = (1, 2, 3)


@dataclass(slots=True)
class Desk:
    """A document of three pages that "me" holds, and a reader of that name."""

    folder: Path
    store: Store
    document: Document
    reading_id: int
    reader: PageReader

    def read(self, account: Account = ACCOUNT, **options: Any) -> Generator[PageRead, None, None]:
        return self.reader.read_claimed(self.reading_id, self.document, PAGES, account, None, **options)

    def change(self, settings: dict[str, Any] | None = None, **ocr: Any) -> None:
        changed = Settings(home=self.folder / "home", **(settings or {}))
        engines = FakeEngines(ocr=FakeOcr(folder=self.folder, **ocr))(changed)
        self.reader = replace(self.reader, settings=changed, engines=engines)

    def states(self) -> list[PageState]:
        return [record.state for record in self.store.pages.stream_pages(self.reading_id)]

    def widths_read(self) -> list[int]:
        return [int(line.split()[0]) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    settings = Settings(home=tmp_path / "home")
    blobs = BlobStore(settings.home)
    snapshot = blobs.take(tiff_of_widths(tmp_path / "a.tif", WIDTHS_PX), max_bytes=2**20)
    blobs.keep(snapshot)
    document = Document(
        document_id=snapshot.document_id, media_type=MediaType.TIFF, byte_count=1, page_count=len(PAGES)
    )
    with contextlib.closing(open_store(settings.home)) as store:
        store.pages.save_document(document)
        reading_id = store.pages.open_reading(document, "f" * 64, force=False).reading_id
        assert store.pages.claim_pages(reading_id, PAGES, owner="me", lease_s=60) == PAGES
        reader = PageReader(
            settings=settings,
            policy=load_policy(),
            plan=load_plan(settings.vlm),
            store=store,
            blobs=blobs,
            engines=FakeEngines(ocr=FakeOcr(folder=tmp_path))(settings),
            owner="me",
        )
        yield Desk(folder=tmp_path, store=store, document=document, reading_id=reading_id, reader=reader)


def test_each_page_is_stored_before_it_is_told_and_the_last_completes_the_reading(desk: Desk) -> None:
    told: list[tuple[int, int]] = []
    for end in desk.read():
        assert isinstance(end, PageDone)
        assert end.route is Route.OCR
        told.append((end.page_number, desk.states().count(PageState.DONE)))
        assert desk.store.pages.is_complete(desk.reading_id) is (end.page_number == 3)
    assert told == [(1, 1), (2, 2), (3, 3)]


def test_whoever_is_named_in_the_call_pays(desk: Desk) -> None:
    payer = Payer(cost_centre="customs", submitter="grace", submission_id=None)
    list(desk.read(replace(ACCOUNT, payer=payer)))
    booked = desk.store.ledger.entries_of_page(desk.document.document_id, 2)
    assert [one.entry.payer for one in booked] == [payer]


def test_who_stops_after_a_page_keeps_the_pages_that_were_not_begun(desk: Desk) -> None:
    ends: list[PageRead] = []
    for end in desk.read(stop_after=lambda: len(ends) == 2):
        ends.append(end)
    assert [end.page_number for end in ends] == [1, 2]
    assert desk.widths_read() == [500, 501]
    assert desk.states() == [PageState.DONE, PageState.DONE, PageState.RUNNING]
    assert desk.store.pages.release_leases("me") == 1


def test_who_closes_the_generator_keeps_the_pages_that_were_not_begun(desk: Desk) -> None:
    ends = desk.read()
    assert next(ends).page_number == 1
    ends.close()
    assert desk.widths_read() == [500]
    assert desk.states() == [PageState.DONE, PageState.RUNNING, PageState.RUNNING]


def test_what_a_page_does_fails_that_page_alone(desk: Desk) -> None:
    desk.change(faults={501: Fault.RAISE})
    first, failed, last = desk.read()
    assert isinstance(first, PageDone)
    assert isinstance(last, PageDone)
    assert isinstance(failed, PageAttemptFailed)
    assert (failed.page_number, failed.attempt, failed.code, failed.gave_up) == (2, 1, "engine_failed", False)
    assert desk.states() == [PageState.DONE, PageState.PENDING, PageState.DONE]
    assert not desk.store.pages.is_complete(desk.reading_id)


def test_a_page_at_its_last_attempt_is_given_up(desk: Desk) -> None:
    desk.change({"executor": {"max_attempts": 1}}, faults={501: Fault.LIE})
    gave_up = [end.gave_up for end in desk.read() if isinstance(end, PageAttemptFailed)]
    assert gave_up == [True]
    assert desk.states() == [PageState.DONE, PageState.FAILED, PageState.DONE]
    assert desk.store.pages.is_complete(desk.reading_id)


def test_what_no_page_can_do_without_is_raised_and_charged_to_none(desk: Desk) -> None:
    desk.change(faults={501: Fault.UNAVAILABLE})
    ends = desk.read()
    assert next(ends).page_number == 1
    with pytest.raises(EngineUnavailable):
        next(ends)
    assert desk.states() == [PageState.DONE, PageState.RUNNING, PageState.RUNNING]
    assert desk.store.pages.attempts(desk.reading_id, 2) == 0


def test_of_a_page_that_somebody_else_holds_by_now_nothing_is_said_or_stored(desk: Desk) -> None:
    desk.store.pages.release_leases("me")
    assert desk.store.pages.claim_pages(desk.reading_id, (2,), owner="another", lease_s=60) == (2,)
    assert desk.store.pages.claim_pages(desk.reading_id, PAGES, owner="me", lease_s=60) == (1, 3)
    assert [end.page_number for end in desk.read()] == [1, 3]
    assert desk.states() == [PageState.DONE, PageState.RUNNING, PageState.DONE]
    assert not desk.store.ledger.entries_of_page(desk.document.document_id, 2)


def test_pages_that_need_the_vlm_wait_for_it_and_the_reading_is_not_complete(desk: Desk) -> None:
    desk.change({"vlm": {"url": "http://localhost:1/v1"}, "route": "vlm"})
    assert list(desk.read()) == [PageEscalated(page_number=number) for number in PAGES]
    assert desk.states() == [PageState.AWAITING_VLM] * 3
    assert not desk.store.pages.is_complete(desk.reading_id)
