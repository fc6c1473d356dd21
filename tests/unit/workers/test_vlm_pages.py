"""Escalated pages that this process has claimed: each is brought to its end at the expense of whoever pays for it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from models.budget import Budget
from models.document import Document, MediaType
from models.errors import EngineUnavailable
from models.page import Route
from models.transcription import DegradedCode, TokenUsage, Verdict, VlmReply, VlmRequest
from pipeline.blobs import BlobStore
from pipeline.chargeback.entries import Account, Payer
from pipeline.chargeback.months import month_of
from pipeline.planning.configured import load_plan
from pipeline.policy import load_policy
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from tests.fakes.pages import tiff_of_widths
from tests.fakes.wordy_ocr import WordyEngines, WordyOcr, words_on
from tests.unit.store.booking import ACCOUNT
from workers.adaptive_limit import AdaptiveLimit
from workers.circuit_breaker import CircuitBreaker
from workers.messages import PageEscalated, PageNotOurs, PageTranscribed, TranscribeTask
from workers.page_reading import PageReader
from workers.vlm_admission import VlmAdmission
from workers.vlm_pages import VlmPages

WIDTHS_PX = (500, 501)
PAGES = (1, 2)


@dataclass(slots=True)
class HonestVlm:
    """Says of each page what stands on it, and notes which it was asked about."""

    model_id: str = "qwen2.5-vl-7b-fp8"
    asked: list[int] = field(default_factory=list)

    async def transcribe(self, request: VlmRequest) -> VlmReply:
        page_number = int(request.request_id.split("/")[2])
        self.asked.append(page_number)
        words = " ".join(words_on(WIDTHS_PX[page_number - 1]))
        return VlmReply(
            text=f"---\nlanguage: en\nrotation: 0\nblank: false\n---\n\n# Seen\n\n{words}.",
            finish_reason="stop",
            usage=TokenUsage(prompt_tokens=500, completion_tokens=60),
            model_id=self.model_id,
            elapsed_s=0.1,
        )

    async def close(self) -> None:
        pass


@dataclass(slots=True)
class Desk:
    """A document of two pages, both read on the CPU and waiting for the VLM."""

    settings: Settings
    store: Store
    document: Document
    reading_id: int
    vlm: HonestVlm = field(default_factory=HonestVlm)

    async def bring_to_end(self, page_number: int, account: Account) -> PageTranscribed | PageNotOurs:
        escalated = self.store.transcriptions.claim_page(self.reading_id, page_number, owner="me", lease_s=60)
        assert escalated is not None
        return await self.pages().bring_to_end(self.task(page_number), escalated, account)

    def pages(self) -> VlmPages:
        return VlmPages(
            settings=self.settings,
            plan=load_plan(self.settings.vlm),
            store=self.store,
            blobs=BlobStore(self.settings.home),
            owner="me",
            engine=self.vlm,
            admission=VlmAdmission(AdaptiveLimit(2), CircuitBreaker()),
        )

    def task(self, page_number: int) -> TranscribeTask:
        return TranscribeTask(
            reading_id=self.reading_id, document=self.document, page_number=page_number, password=None
        )

    def calls_booked(self, page_number: int) -> list[tuple[str, Route | None, str]]:
        """Who paid for each, the route it gave the page, and its outcome."""
        booked = self.store.ledger.entries_of_page(self.document.document_id, page_number)
        calls = [one.entry for one in booked if one.entry.model_id is not None]
        return [(entry.payer.cost_centre, entry.route, entry.outcome) for entry in calls]

    def degraded_code(self, page_number: int) -> str | None:
        page = self.store.submissions.newest_page(self.document.document_id, page_number)
        assert page is not None
        code: str | None = page["degraded"]["code"] if page["degraded"] else None
        return code


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    settings = Settings(home=tmp_path / "home", vlm={"url": "http://localhost:1/v1"}, route="vlm")
    blobs = BlobStore(settings.home)
    snapshot = blobs.take(tiff_of_widths(tmp_path / "a.tif", WIDTHS_PX), max_bytes=2**20)
    blobs.keep(snapshot)
    document = Document(
        document_id=snapshot.document_id, media_type=MediaType.TIFF, byte_count=1, page_count=len(PAGES)
    )
    with contextlib.closing(open_store(settings.home)) as store:
        store.pages.save_document(document)
        reading_id = store.pages.open_reading(document, "f" * 64, force=False).reading_id
        reader = PageReader(
            settings=settings,
            policy=load_policy(),
            plan=load_plan(settings.vlm),
            store=store,
            blobs=blobs,
            engines=WordyEngines(ocr=WordyOcr(folder=tmp_path))(settings),
            owner="cpu",
        )
        store.pages.claim_pages(reading_id, PAGES, owner="cpu", lease_s=60)
        read = list(reader.read_claimed(reading_id, document, PAGES, ACCOUNT, None))
        assert read == [PageEscalated(page_number=number) for number in PAGES]
        yield Desk(settings=settings, store=store, document=document, reading_id=reading_id)


def account_of(cost_centre: str) -> Account:
    return replace(ACCOUNT, payer=Payer(cost_centre=cost_centre, submitter=None, submission_id=None))


def test_each_page_is_paid_for_by_its_own_account_and_the_last_completes_the_reading(desk: Desk) -> None:
    for page_number, cost_centre in zip(PAGES, ("customs", "ferries"), strict=True):
        assert not desk.store.pages.is_complete(desk.reading_id)
        end = asyncio.run(desk.bring_to_end(page_number, account_of(cost_centre)))
        assert isinstance(end, PageTranscribed)
        assert (end.reading_id, end.page_number, end.route) == (desk.reading_id, page_number, Route.VLM)
        assert desk.calls_booked(page_number) == [(cost_centre, Route.VLM, Verdict.ACCEPTED)]
    assert desk.store.pages.is_complete(desk.reading_id)


def test_a_budget_bounds_the_pages_of_its_cost_centre_alone(desk: Desk) -> None:
    desk.store.budgets.set_budget(Budget(cost_centre="customs", limit_tokens=1), month=month_of(time.time()))
    without_room = asyncio.run(desk.bring_to_end(1, account_of("customs")))
    with_room = asyncio.run(desk.bring_to_end(2, account_of("ferries")))
    assert isinstance(without_room, PageTranscribed)
    assert isinstance(with_room, PageTranscribed)
    assert (without_room.route, with_room.route) == (Route.OCR_DEGRADED, Route.VLM)
    assert (desk.degraded_code(1), desk.degraded_code(2)) == (DegradedCode.BUDGET_SPENT, None)
    assert desk.vlm.asked == [2]


def test_about_a_page_that_somebody_else_holds_by_now_no_call_is_made(desk: Desk) -> None:
    pages = desk.store.transcriptions
    escalated = pages.claim_page(desk.reading_id, 1, owner="me", lease_s=60)
    assert escalated is not None
    desk.store.pages.release_leases("me")
    assert pages.claim_page(desk.reading_id, 1, owner="another", lease_s=60) is not None
    end = asyncio.run(desk.pages().bring_to_end(desk.task(1), escalated, ACCOUNT))
    assert end == PageNotOurs(reading_id=desk.reading_id, page_number=1)
    assert desk.vlm.asked == []
    assert pages.held_pages("another") == ((desk.reading_id, 1),)


def test_a_page_that_cannot_be_drawn_keeps_the_cpus_text_and_says_why(desk: Desk) -> None:
    BlobStore(desk.settings.home).local_path(desk.document.document_id).write_bytes(b"not what it was")
    end = asyncio.run(desk.bring_to_end(1, ACCOUNT))
    assert isinstance(end, PageTranscribed)
    assert end.route is Route.OCR_DEGRADED
    assert desk.degraded_code(1) == DegradedCode.PAGE_NOT_SENT
    assert desk.vlm.asked == []


def test_what_no_page_can_do_without_is_raised_and_the_page_stays_claimed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_poppler(*_: object, **__: object) -> None:
        raise EngineUnavailable("pdftoppm is missing; install poppler-utils")

    monkeypatch.setattr("workers.vlm_pages.draw_upright", without_poppler)
    with pytest.raises(EngineUnavailable):
        asyncio.run(desk.bring_to_end(1, ACCOUNT))
    assert desk.store.transcriptions.held_pages("me") == ((desk.reading_id, 1),)
