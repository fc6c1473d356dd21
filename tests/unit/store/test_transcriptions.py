"""Pages that wait for the VLM: who gets one, what is booked about it, and what outlives a crash."""

from __future__ import annotations

import pytest

from models.document import Document, MediaType
from models.page import Route
from models.tables import PageState
from models.transcription import DegradedCode, Evidence, TokenUsage, Verdict
from pipeline.store import CallOutcome, ClosedCall, OpenedReading, Store, TakeOver
from tests.unit.store.booking import BOOK, closed, cpu_entry, new_call, open_call

DOCUMENT = Document(document_id="ab" * 32, media_type=MediaType.PDF, byte_count=10, page_count=2)
FINGERPRINT = "f" * 64
BILLED = TokenUsage(prompt_tokens=2_330, completion_tokens=410, cached_tokens=90)


@pytest.fixture
def reading_id(store: Store) -> int:
    """A reading whose page 1 waits for the VLM and whose page 2 is done."""
    store.pages.save_document(DOCUMENT)
    opened = store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False)
    read(store, opened.reading_id, 1, awaits_vlm=True)
    read(store, opened.reading_id, 2)
    return opened.reading_id


def read(store: Store, reading_id: int, page_number: int, *, awaits_vlm: bool = False) -> None:
    assert store.pages.claim_pages(reading_id, [page_number], owner="cpu", lease_s=60)
    code = DegradedCode.AWAITING_VLM if awaits_vlm else None
    assert store.pages.finish_page(
        reading_id,
        page_number,
        owner="cpu",
        page={"page_number": page_number, "text": "by the CPU"},
        summary={"page_number": page_number},
        route=Route.OCR_DEGRADED if awaits_vlm else Route.OCR,
        elapsed_s=1.0,
        entry=cpu_entry(reading_id, page_number),
        degraded_code=code,
        awaits_vlm=awaits_vlm,
    )


def outcome(verdict: Verdict = Verdict.ACCEPTED, usage: TokenUsage = BILLED) -> CallOutcome:
    evidence = (Evidence(name="tail_repeats", measured=9.0, limit=4.0, sample="and so on"),)
    return CallOutcome(verdict=verdict, usage=usage, evidence=evidence, elapsed_s=3.5)


def finish(
    store: Store,
    reading_id: int,
    *,
    owner: str = "vlm",
    last_call: ClosedCall | None = None,
    degraded_code: DegradedCode | None = None,
) -> bool:
    return store.transcriptions.finish_page(
        reading_id,
        1,
        owner=owner,
        page={"page_number": 1, "text": "by the VLM"},
        summary={"page_number": 1},
        route=Route.VLM if degraded_code is None else Route.OCR_DEGRADED,
        degraded_code=degraded_code,
        elapsed_s=5.0,
        last_call=last_call,
    )


def state(store: Store, reading_id: int) -> PageState:
    return next(store.pages.stream_pages(reading_id)).state


def claim(store: Store, reading_id: int, owner: str = "vlm", lease_s: float = 60) -> bool:
    return store.transcriptions.claim_page(reading_id, 1, owner=owner, lease_s=lease_s) is not None


def test_a_page_that_waits_for_the_vlm_keeps_its_reading_open(store: Store, reading_id: int) -> None:
    assert not store.pages.complete_reading(reading_id)
    assert claim(store, reading_id)
    assert not store.pages.complete_reading(reading_id)
    assert finish(store, reading_id)
    assert store.pages.complete_reading(reading_id)


def test_of_two_who_claim_it_one_gets_it_with_what_the_cpu_read(store: Store, reading_id: int) -> None:
    page = store.transcriptions.claim_page(reading_id, 1, owner="a", lease_s=60)
    assert page is not None
    assert page.page["text"] == "by the CPU"
    assert not claim(store, reading_id, owner="b")
    assert not claim(store, reading_id, owner="a")


def test_a_page_that_does_not_wait_is_not_given_out(store: Store, reading_id: int) -> None:
    assert store.transcriptions.claim_page(reading_id, 2, owner="a", lease_s=60) is None


def test_only_its_owner_can_settle_it(store: Store, reading_id: int) -> None:
    assert not finish(store, reading_id)
    assert claim(store, reading_id, owner="vlm")
    assert not finish(store, reading_id, owner="other")
    assert finish(store, reading_id)
    assert not finish(store, reading_id)


def test_every_call_is_booked_with_what_came_of_it(store: Store, reading_id: int) -> None:
    assert claim(store, reading_id)
    open_call(store, new_call(reading_id, 1))
    store.transcriptions.close_call(closed(new_call(reading_id, 1), outcome(Verdict.REPETITION)))
    open_call(store, new_call(reading_id, 2))
    assert finish(store, reading_id, last_call=closed(new_call(reading_id, 2), outcome()))
    first, second = store.transcriptions.attempts(reading_id, 1)
    assert (first.attempt, first.verdict, first.usage) == (1, Verdict.REPETITION, BILLED)
    assert first.evidence == outcome().evidence
    assert (second.attempt, second.verdict) == (2, Verdict.ACCEPTED)


def test_the_last_call_is_booked_though_the_page_went_to_another(store: Store, reading_id: int) -> None:
    assert claim(store, reading_id, owner="slow", lease_s=-1)
    open_call(store, new_call(reading_id), "slow")
    assert store.pages.reclaim_leases(lambda owner: True) == 1
    assert not finish(store, reading_id, owner="slow", last_call=closed(new_call(reading_id), outcome()))
    assert [one.usage for one in store.transcriptions.attempts(reading_id, 1)] == [BILLED]


def test_a_call_is_closed_once(store: Store, reading_id: int) -> None:
    assert claim(store, reading_id)
    open_call(store, new_call(reading_id))
    store.transcriptions.close_call(closed(new_call(reading_id), outcome()))
    store.transcriptions.close_call(
        closed(new_call(reading_id), outcome(Verdict.EMPTY, TokenUsage(prompt_tokens=1, completion_tokens=1)))
    )
    assert [one.usage for one in store.transcriptions.attempts(reading_id, 1)] == [BILLED]


def test_a_lost_owner_gives_its_page_back_to_wait_and_its_call_is_booked_as_abandoned(
    store: Store, reading_id: int
) -> None:
    assert claim(store, reading_id, owner="dead")
    open_call(store, new_call(reading_id), "dead")
    assert store.transcriptions.close_abandoned(BOOK) == 0
    assert store.pages.release_leases("dead") == 1
    assert state(store, reading_id) is PageState.AWAITING_VLM
    assert store.transcriptions.close_abandoned(BOOK) == 1
    (booked,) = store.transcriptions.attempts(reading_id, 1)
    assert booked.verdict is Verdict.ABANDONED
    assert (booked.usage.prompt_tokens, booked.usage.is_estimated) == (2_455, True)
    again = store.transcriptions.claim_page(reading_id, 1, owner="vlm", lease_s=60)
    assert again is not None
    assert again.calls_before == 1


@pytest.mark.parametrize(
    ("code", "waits_again"),
    [
        (DegradedCode.VLM_UNAVAILABLE, True),
        (DegradedCode.WORKER_LOST, True),
        (DegradedCode.VLM_REFUSED, True),
        (DegradedCode.ANSWERS_REFUSED, False),
        (DegradedCode.PAGE_NOT_SENT, False),
    ],
)
def test_a_later_run_tries_again_where_the_service_was_at_fault(
    store: Store, reading_id: int, code: DegradedCode, waits_again: bool
) -> None:
    assert claim(store, reading_id)
    assert finish(store, reading_id, degraded_code=code)
    assert store.pages.complete_reading(reading_id)
    opened = store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False)
    assert opened.awaiting_vlm == ((1,) if waits_again else ())
    assert opened.is_complete is not waits_again
    assert opened.pending == ()


def test_a_page_that_still_waits_is_found_by_the_next_run(store: Store, reading_id: int) -> None:
    opened = store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False)
    assert (opened.pending, opened.awaiting_vlm) == ((), (1,))
    assert [page.page_number for page in opened.finished] == [2]


def test_a_forced_run_reads_it_anew_and_an_unforced_one_does_not_take_half_a_result_for_whole(
    store: Store, reading_id: int
) -> None:
    assert store.pages.open_reading(DOCUMENT, FINGERPRINT, force=True).pending == (1, 2)
    after = store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False)
    assert after.pending == (1,)
    assert [page.page_number for page in after.finished] == [2]


def opened_with(
    store: Store, fingerprint: str, *, has_vlm: bool, cpu: str = "c" * 64, force: bool = False
) -> OpenedReading:
    takes_over = TakeOver(cpu_fingerprint=cpu, has_vlm=has_vlm)
    return store.pages.open_reading(DOCUMENT, fingerprint, force=force, takes_over=takes_over)


def without_vlm(store: Store) -> int:
    """A reading by the CPU alone: page 1 would need the VLM, page 2 does not."""
    store.pages.save_document(DOCUMENT)
    reading_id = opened_with(store, "1" * 64, has_vlm=False).reading_id
    for number, code in ((1, DegradedCode.NO_VLM), (2, None)):
        assert store.pages.claim_pages(reading_id, [number], owner="cpu", lease_s=60)
        assert store.pages.finish_page(
            reading_id,
            number,
            owner="cpu",
            page={"page_number": number, "text": "by the CPU"},
            summary={"page_number": number},
            route=Route.OCR if code is None else Route.OCR_DEGRADED,
            elapsed_s=1.0,
            entry=cpu_entry(reading_id, number),
            degraded_code=code,
        )
    assert store.pages.complete_reading(reading_id)
    return reading_id


def test_a_vlm_that_comes_later_is_sent_the_pages_that_need_it_and_nothing_is_read_again(
    store: Store,
) -> None:
    first = without_vlm(store)
    opened = opened_with(store, "2" * 64, has_vlm=True)
    assert opened.reading_id != first
    assert (opened.pending, opened.awaiting_vlm) == ((), (1,))
    assert [page.page_number for page in opened.finished] == [2]
    page = store.transcriptions.claim_page(opened.reading_id, 1, owner="vlm", lease_s=60)
    assert page is not None
    assert (page.page["text"], page.calls_before) == ("by the CPU", 0)


def test_what_another_vlm_transcribed_is_read_again_and_what_none_saw_is_taken_over(store: Store) -> None:
    without_vlm(store)
    second = opened_with(store, "2" * 64, has_vlm=True).reading_id
    assert claim(store, second)
    assert finish(store, second)
    third = opened_with(store, "3" * 64, has_vlm=True)
    assert (third.pending, third.awaiting_vlm) == ((1,), ())
    back = opened_with(store, "4" * 64, has_vlm=False)
    assert [page.page_number for page in back.finished] == [2]


def test_nothing_is_taken_over_by_force_or_from_other_settings(store: Store) -> None:
    without_vlm(store)
    assert opened_with(store, "2" * 64, has_vlm=True, force=True).pending == (1, 2)
    assert opened_with(store, "3" * 64, has_vlm=True, cpu="d" * 64).pending == (1, 2)
