"""A document that is erased leaves nothing of itself, and everything of what was paid for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from models.document import Document
from models.errors import DocumentInUse, StoreUnavailable
from models.migrations.versions.v0005_pool import KEPT_OF_CALLS
from models.page import Route
from models.pool import SourceState, SubmissionState
from models.tables import VlmAttemptRow
from models.transcription import Evidence, TokenUsage, Verdict
from pipeline.store import CallOutcome, Store
from tests.unit.store.booking import BOOK, closed, new_call, open_call
from tests.unit.store.pool_parts import Pool, Submitted, new_document
from tests.unit.store.upload_parts import enter_upload

MARKER = "Zwiebelfisch"
"""In everything that comes from the document."""

BILLED = TokenUsage(prompt_tokens=2_330, completion_tokens=410)


@pytest.fixture
def pool(store: Store) -> Pool:
    return Pool(store)


def alive(owner: str) -> bool:
    return True


def read_with_marker(pool: Pool, document: Document | None = None) -> Submitted:
    """Three pages: one read, one transcribed after a call, one failed. The outputs are written."""
    store = pool.store
    document = replace(document or new_document(3), attachments=(f"{MARKER}.xml",))
    submission_id = pool.open(sealed_passwords=MARKER)
    pool.add(submission_id, f"{MARKER}.pdf", blob_id=document.document_id)
    store.pool.seal(submission_id)
    submitted = pool.take_in(document)
    reading_id = submitted.reading_id
    work = pool.claim(max_pages=3)
    assert work is not None
    pool.finish(work, only=[1], page={"text": MARKER * 2_000})
    pool.finish(work, only=[2], page={"text": MARKER}, awaits_vlm=True)
    transcribe(store, reading_id)
    fail(store, reading_id, document)
    if store.pages.complete_reading(reading_id):
        store.pool.sources_read(reading_id)
    pool.write()
    return submitted


def transcribe(store: Store, reading_id: int) -> None:
    assert store.transcriptions.claim_page(reading_id, 2, owner="vlm", lease_s=60)
    call = replace(new_call(reading_id), page_number=2)
    open_call(store, call)
    outcome = CallOutcome(
        verdict=Verdict.ACCEPTED,
        usage=BILLED,
        evidence=(Evidence(name="word_agreement", measured=0.2, limit=0.3, sample=MARKER),),
        message=f"the server said {MARKER}",
        elapsed_s=1.0,
    )
    assert store.transcriptions.finish_page(
        reading_id,
        2,
        owner="vlm",
        page={"text": MARKER},
        summary={"reasons": [], "text": MARKER},
        route=Route.VLM,
        degraded_code=None,
        elapsed_s=1.0,
        last_call=closed(call, outcome, Route.VLM),
    )


def fail(store: Store, reading_id: int, document: Document) -> None:
    from tests.unit.store.pool_parts import entry_of

    assert store.pages.fail_page(
        reading_id,
        3,
        owner="me",
        code="engine_failed",
        message=f"cannot read {MARKER}",
        entry=entry_of(reading_id, 3, document.document_id, 1),
    )


def everything(store: Store) -> str:
    """Each value of each row of each table."""
    with store.database.read() as session:
        tables = inspect(session.connection()).get_table_names()
        return "\n".join(
            repr(tuple(row)) for table in tables for row in session.execute(text(f"SELECT * FROM {table}"))
        )


def query(store: Store, statement: str) -> list[tuple[Any, ...]]:
    with store.database.write() as session:
        result = session.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


def bills(store: Store) -> list[tuple[Any, ...]]:
    return query(store, "SELECT * FROM ledger ORDER BY entry_id")


def test_nothing_of_it_is_left_and_everything_that_was_paid(store: Store, pool: Pool) -> None:
    other = read_with_marker(pool)
    query(store, "UPDATE sources SET name = 'other.pdf'")
    submitted = read_with_marker(pool)
    store.watched.note(
        f"/in/{MARKER}",
        f"{MARKER}.pdf",
        byte_count=1,
        mtime_ns=1,
        outcome="read",
        submission_id=submitted.submission_id,
    )
    before = bills(store)
    held = store.purge.held(submitted.document.document_id, alive)
    assert store.purge.purge(submitted.document.document_id, alive) == held
    assert (held.names, held.sources, held.pages, held.calls) == ((f"{MARKER}.pdf",), 1, 3, 1)
    assert held.ledger_entries == len([row for row in before if submitted.document.document_id in row])
    assert held.watched == ((f"/in/{MARKER}", f"{MARKER}.pdf"),)
    assert store.purge.purge(other.document.document_id, alive).pages == 3
    assert bills(store) == before
    assert MARKER not in everything(store)
    assert (
        query(store, "SELECT verdict, prompt_tokens, evidence, message FROM vlm_attempts")
        == [("accepted", 2_330, None, None)] * 2
    )


def test_another_document_keeps_all_it_has(store: Store, pool: Pool) -> None:
    other, submitted = read_with_marker(pool), read_with_marker(pool)
    store.purge.purge(submitted.document.document_id, alive)
    assert store.pages.document(other.document.document_id) == other.document
    assert store.submissions.newest_page(other.document.document_id, 2) == {"text": MARKER}
    [attempt] = store.transcriptions.attempts(other.reading_id, 2)
    assert (attempt.evidence[0].sample, attempt.message) == (MARKER, f"the server said {MARKER}")


def test_it_is_not_found_any_more_by_any_way(store: Store, pool: Pool) -> None:
    submitted = read_with_marker(pool)
    document_id = submitted.document.document_id
    assert store.purge.documents_named(f"{MARKER}.pdf") == (document_id,)
    assert store.purge.documents_starting(document_id[:8]) == (document_id,)
    store.purge.purge(document_id, alive)
    assert store.pages.document(document_id) is None
    assert store.submissions.newest_page(document_id, 1) is None
    assert store.submissions.newest_failure(document_id, 3) is None
    assert store.submissions.documents_starting(document_id[:8]) == ()
    assert store.purge.documents_named(f"{MARKER}.pdf") == ()
    assert store.purge.documents_starting(document_id[:8]) == ()
    assert store.purge.documents_starting("purged-") == ()
    assert store.purge.unknown([document_id]) == (document_id,)
    assert store.pool.dead_pages() == ()
    assert list(store.pool.settled_pages(submitted.submission_id, since_s=0)) == []


def test_the_same_bytes_are_a_new_document_with_bills_of_their_own(store: Store, pool: Pool) -> None:
    first = read_with_marker(pool)
    store.purge.purge(first.document.document_id, alive)
    before = len(bills(store))
    again = read_with_marker(pool, first.document)
    assert again.reading_id != first.reading_id
    assert store.submissions.newest_page(first.document.document_id, 2) == {"text": MARKER}
    assert store.pages.document(first.document.document_id) == again.document
    assert len(bills(store)) == 2 * before


def test_one_that_waits_is_erased_and_its_submission_ends(store: Store, pool: Pool) -> None:
    submitted = pool.submit(3)
    received = pool.open()
    source_id = pool.add(received, "unread.pdf", blob_id="cd" * 32)
    store.pool.seal(received)
    store.purge.purge(submitted.document.document_id, alive)
    held = store.purge.purge("cd" * 32, alive)
    assert (held.names, held.pages, held.result_sources) == (("unread.pdf",), 0, (source_id,))
    store.pool.repair()
    for submission_id in (submitted.submission_id, received):
        progress = store.pool.progress(submission_id)
        assert progress.state is SubmissionState.FINISHED
        assert progress.sources == {SourceState.SETTLED: 1}
    assert pool.claim() is None
    assert pool.claim_source() is None


def test_one_that_is_being_read_is_refused_unless_its_owner_is_gone(store: Store, pool: Pool) -> None:
    submitted = pool.submit(2)
    work = pool.claim("worker")
    assert work is not None
    before = everything(store)
    with pytest.raises(DocumentInUse, match=f"cancel submission {submitted.submission_id} first"):
        store.purge.purge(submitted.document.document_id, alive)
    with pytest.raises(DocumentInUse, match="is being read"):
        store.purge.held(submitted.document.document_id, alive)
    assert everything(store) == before
    store.purge.purge(submitted.document.document_id, lambda owner: owner != "worker")


def test_one_that_is_taken_in_or_written_is_refused(store: Store, pool: Pool) -> None:
    submission_id = pool.open()
    pool.add(submission_id, "a.pdf", blob_id="cd" * 32)
    assert pool.claim_source("intake")
    with pytest.raises(DocumentInUse, match=f"cancel submission {submission_id} first"):
        store.purge.purge("cd" * 32, alive)


def test_passwords_stay_for_as_long_as_others_need_them(store: Store, pool: Pool) -> None:
    submission_id = pool.open(sealed_passwords="sealed")
    pool.add(submission_id, "a.pdf", blob_id="ab" * 32)
    pool.add(submission_id, "b.pdf", blob_id="cd" * 32)
    sealed = "SELECT sealed_passwords FROM submissions"
    store.purge.purge("ab" * 32, alive)
    assert query(store, sealed) == [("sealed",)]
    store.purge.purge("cd" * 32, alive)
    assert query(store, sealed) == [(None,)]


def test_a_call_that_nobody_closed_is_still_booked_after(store: Store, pool: Pool) -> None:
    submitted = pool.submit(2)
    work = pool.claim(max_pages=1)
    assert work is not None
    pool.finish(work, awaits_vlm=True)
    assert store.transcriptions.claim_page(submitted.reading_id, 1, owner="vlm", lease_s=60)
    open_call(store, new_call(submitted.reading_id))
    before = len(bills(store))
    store.purge.purge(submitted.document.document_id, lambda owner: False)
    assert store.transcriptions.close_abandoned(BOOK) == 1
    assert len(bills(store)) == before + 1


def test_a_document_nobody_knows_erases_nothing(store: Store, pool: Pool) -> None:
    read_with_marker(pool)
    before = everything(store)
    assert store.purge.purge("00" * 32, alive).sources == 0
    assert everything(store) == before


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_no_byte_of_it_is_left_in_the_files_of_sqlite(store: Store, pool: Pool, tmp_path: Path) -> None:
    submitted = read_with_marker(pool)
    keep = pool.submit(1)
    query(store, "UPDATE pages SET result = result")  # what was replaced is in the file too
    assert MARKER in files_of(tmp_path)
    store.purge.purge(submitted.document.document_id, alive)
    assert store.purge.empty_log()
    assert MARKER not in files_of(tmp_path)
    assert keep.document.document_id in files_of(tmp_path)


def files_of(home: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in home.glob("doctriage.sqlite3*"))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_log_that_another_program_reads_is_not_empty_yet(
    store: Store, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.store import connect_store

    monkeypatch.setattr("pipeline.store.sqlite.BUSY_TIMEOUT_S", 0.1)
    impatient, other = connect_store(tmp_path), connect_store(tmp_path)
    try:
        submitted = read_with_marker(pool)
        with other.database.read() as session:
            session.execute(text("SELECT 1 FROM pages"))
            store.purge.purge(submitted.document.document_id, alive)
            assert not impatient.purge.empty_log()
        assert impatient.purge.empty_log()
    finally:
        impatient.close()
        other.close()


ALLOWED = "UPDATE vlm_attempts SET evidence = NULL, message = NULL"
REFUSED = (
    "UPDATE vlm_attempts SET message = 'another'",
    "UPDATE vlm_attempts SET evidence = '[]', message = NULL",
    f"{ALLOWED}, cost_centre = 'another'",
    f"{ALLOWED}, month = NULL",
    f"{ALLOWED}, verdict = NULL",
    f"{ALLOWED}, reserved_micro = 0",
    f"{ALLOWED}, vlm_attempt_id = vlm_attempt_id + 1",
)


@pytest.mark.parametrize("statement", REFUSED)
def test_of_a_closed_call_words_may_be_erased_and_nothing_else(
    store: Store, pool: Pool, statement: str
) -> None:
    read_with_marker(pool)
    before = query(store, "SELECT * FROM vlm_attempts")
    with pytest.raises(StoreUnavailable, match="a call that is closed stays as it was booked"):
        query(store, statement)
    assert query(store, "SELECT * FROM vlm_attempts") == before
    query(store, ALLOWED)
    assert query(store, "SELECT evidence, message FROM vlm_attempts") == [(None, None)]


def test_every_column_of_a_call_is_kept_or_holds_words_of_the_page() -> None:
    columns: set[str] = {column.name for column in VlmAttemptRow.__table__.columns}
    assert columns - set(KEPT_OF_CALLS) == {"evidence", "message"}
    assert set(KEPT_OF_CALLS) <= columns


def test_nothing_of_the_senders_own_words_is_left_of_an_upload(pool: Pool) -> None:
    submitted, other = read_with_marker(pool), pool.submit(1)
    words: dict[str, Any] = {
        "details": {"case": MARKER},
        "callback_url": f"https://example.org/{MARKER}",
        "idempotency_key": MARKER,
    }
    erased, kept = (
        enter_upload(pool.store, submission_id, **{**words, "idempotency_key": f"{MARKER} {submission_id}"})
        for submission_id in (submitted.submission_id, other.submission_id)
    )
    pool.store.purge.purge(submitted.document.document_id, alive)
    record = pool.store.uploads.find(erased)
    assert record is not None
    assert record.erased_at_s is not None
    assert MARKER not in str(record)
    untouched = pool.store.uploads.find(kept)
    assert untouched is not None
    assert (untouched.erased_at_s, untouched.details) == (None, words["details"])
