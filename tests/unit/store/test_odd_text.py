"""What pages, names and messages may hold: whatever it is, both databases keep it, and the same of it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from models.document import Document, MediaType
from models.page import Route
from models.transcription import DegradedCode, Evidence, TokenUsage, Verdict
from pipeline.store import CallOutcome, Store
from tests.unit.store.booking import closed, cpu_entry, new_call, open_call
from workers.sources import MAX_SOURCE_BYTES

ODD = "a\0b\ud800c\udfffd \U0001f600 \\u0000 é"
KEPT = "a\ufffdb\ufffdc\ufffdd \U0001f600 \\u0000 é"
LONG = "x" * 5_000
MOST_TOKENS = 2**31 - 1
"""The largest count that a server's answer is believed."""


@pytest.fixture
def reading_id(store: Store) -> int:
    document = Document(
        document_id="ab" * 32, media_type=MediaType.PDF, byte_count=2**40, page_count=1, attachments=(ODD,)
    )
    store.pages.save_document(document)
    return store.pages.open_reading(document, "f" * 64, force=False).reading_id


def claimed(store: Store, reading_id: int) -> dict[str, Any]:
    assert store.pages.claim_pages(reading_id, [1], owner=LONG, lease_s=60) == (1,)
    return {"reading_id": reading_id, "page_number": 1, "owner": LONG}


def test_a_page_and_its_summary(store: Store, reading_id: int) -> None:
    page = {"text": ODD, "lines": [{"text": ODD}], ODD: None}
    assert store.pages.finish_page(
        **claimed(store, reading_id),
        page=page,
        summary={"error": ODD},
        route=Route.OCR,
        elapsed_s=1,
        entry=cpu_entry(reading_id),
    )
    kept = {"text": KEPT, "lines": [{"text": KEPT}], KEPT: None}
    assert [record.content for record in store.pages.stream_pages(reading_id)] == [kept]
    assert [record.content for record in store.pages.stream_summaries(reading_id)] == [{"error": KEPT}]


def test_an_attachment_s_name(store: Store, reading_id: int) -> None:
    document = store.pages.document("ab" * 32)
    assert document is not None
    assert (document.attachments, document.byte_count) == ((KEPT,), 2**40)


def test_the_message_of_a_page_that_failed(store: Store, reading_id: int) -> None:
    assert store.pages.fail_page(
        **claimed(store, reading_id), code="engine_failed", message=ODD + LONG, entry=cpu_entry(reading_id)
    )
    assert store.pages.failure_of_all_pages(reading_id) == KEPT + LONG


def test_the_name_and_the_message_of_a_source(store: Store, reading_id: int) -> None:
    submission_id = store.submissions.start_submission(
        out_dir=ODD + LONG, cost_centre=ODD + LONG, submitter=ODD, fingerprint="f" * 64
    )
    store.submissions.add_source(
        submission_id, name=ODD, output_stem=ODD, reading_id=reading_id, error_code="x", error_message=ODD
    )
    [source] = store.submissions.sources(submission_id)
    assert (source.name, source.error_message) == (KEPT, KEPT)
    assert store.submissions.documents_named(ODD) == store.submissions.documents_named(KEPT) == ("ab" * 32,)


def test_a_call_with_names_and_counts_of_any_length(store: Store, reading_id: int) -> None:
    held = claimed(store, reading_id)
    assert store.pages.finish_page(
        **held,
        page={"text": ""},
        summary={},
        route=Route.OCR_DEGRADED,
        elapsed_s=1,
        entry=cpu_entry(reading_id),
        degraded_code=DegradedCode.AWAITING_VLM,
        awaits_vlm=True,
    )
    assert store.transcriptions.claim_page(reading_id, 1, owner="vlm", lease_s=60)
    call = new_call(reading_id, request_id=LONG, model_id=LONG + ODD, tier=LONG)
    open_call(store, call)
    usage = TokenUsage(
        prompt_tokens=MOST_TOKENS,
        completion_tokens=MOST_TOKENS,
        cached_tokens=MOST_TOKENS,
        reasoning_tokens=MOST_TOKENS,
    )
    evidence = (Evidence(name="tail_repeats", measured=9.0, limit=4.0, sample=ODD),)
    outcome = CallOutcome(
        verdict=Verdict.REPETITION, usage=usage, evidence=evidence, message=ODD + LONG, elapsed_s=1
    )
    store.transcriptions.close_call(closed(call, outcome))
    [attempt] = store.transcriptions.attempts(reading_id, 1)
    assert (attempt.model_id, attempt.message, attempt.usage) == (LONG + KEPT, KEPT + LONG, usage)
    assert [one.sample for one in attempt.evidence] == [KEPT]


def test_a_value_too_large_is_the_value_s_fault_and_not_the_database_s(store: Store, reading_id: int) -> None:
    held = claimed(store, reading_id)
    with pytest.raises((ValueError, OverflowError)):
        store.pages.finish_page(
            **held | {"page_number": 2**70},
            page={},
            summary={},
            route=Route.OCR,
            elapsed_s=1,
            entry=cpu_entry(reading_id),
        )
    assert store.pages.finish_page(
        **held, page={}, summary={}, route=Route.OCR, elapsed_s=1, entry=cpu_entry(reading_id)
    )


def test_a_source_s_name_as_long_as_a_run_gives_one(store: Store, reading_id: int) -> None:
    chance = random.Random(5)
    name = "".join(chance.choice("äöüßéèêø") for _ in range(MAX_SOURCE_BYTES // 2))
    submission_id = store.submissions.start_submission(
        out_dir="out", cost_centre="a", submitter=None, fingerprint="f" * 64
    )
    store.submissions.add_source(submission_id, name=name, output_stem=name, reading_id=reading_id)
    assert store.submissions.documents_named(name) == ("ab" * 32,)


def test_sources_come_in_the_order_of_their_bytes(store: Store, reading_id: int) -> None:
    submission_id = store.submissions.start_submission(
        out_dir="out", cost_centre="a", submitter=None, fingerprint="f" * 64
    )
    names = ["b.pdf", "B.pdf", "a b.pdf", "a-b.pdf", "ab.pdf", "é.pdf", "Z.pdf", "_.pdf", "10.pdf", "9.pdf"]
    for name in names:
        store.submissions.add_source(submission_id, name=name, output_stem=name)
    found = [source.name for source in store.submissions.sources(submission_id)]
    assert found == sorted(names, key=str.encode)
