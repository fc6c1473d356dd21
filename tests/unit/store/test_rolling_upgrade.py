"""Programs of the version before go on while the database is upgraded under them: what they insert and change, with the
columns that they know, works on the tables as they are now."""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from models.page import Route
from models.tables import PageState
from pipeline.store import Store
from tests.unit.store.booking import cpu_entry
from tests.unit.store.pool_parts import Pool

DOCUMENT_ID: Final = "ab" * 32

BEFORE: Final = (
    """INSERT INTO documents (document_id, media_type, byte_count, page_count, attachments, created_at_s)
    VALUES (:document_id, 'application/pdf', 10, 2, '[]', 1.5)""",
    """INSERT INTO submissions (out_dir, cost_centre, submitter, fingerprint, created_at_s, finished_at_s)
    VALUES ('out', 'harbour', 'ada', 'f', 1.5, NULL)""",
    """INSERT INTO readings (document_id, fingerprint, cpu_fingerprint, state, created_at_s, completed_at_s)
    VALUES (:document_id, 'f', 'c', 'open', 1.5, NULL)""",
    """INSERT INTO pages (reading_id, page_number, state, attempts, lease_owner, lease_expires_at_s, route,
    elapsed_s, error_code, error_message, degraded_code, summary, result)
    VALUES (1, 1, 'pending', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (1, 2, 'pending', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
    """INSERT INTO sources (submission_id, name, output_stem, reading_id, error_code, error_message, written_at_s)
    VALUES (1, 'a.pdf', 'a.pdf', 1, NULL, NULL, NULL)""",
    """UPDATE pages SET state = 'running', lease_owner = 'before', lease_expires_at_s = 4e9
    WHERE reading_id = 1 AND page_number = 1 AND state = 'pending'""",
    """UPDATE pages SET state = 'done', attempts = attempts + 1, lease_owner = NULL, lease_expires_at_s = NULL,
    route = 'ocr', elapsed_s = 1.5, summary = '{}', result = '{}'
    WHERE reading_id = 1 AND page_number = 1 AND state = 'running' AND lease_owner = 'before'""",
    "UPDATE sources SET written_at_s = 2.5 WHERE source_id = 1",
)
"""What the version that made the tables of 0004 says to the database."""


def run_as_before(store: Store) -> None:
    for statement in BEFORE:
        with store.database.write() as session:
            session.execute(text(statement), {"document_id": DOCUMENT_ID} if ":d" in statement else {})


def test_what_the_version_before_writes_is_read_and_gone_on_with(store: Store) -> None:
    run_as_before(store)
    assert [page.state for page in store.pages.stream_pages(1)] == [PageState.DONE, PageState.PENDING]
    assert store.pages.claim_pages(1, [1, 2], owner="me", lease_s=60) == (2,)
    assert store.pages.finish_page(
        1, 2, owner="me", page={}, summary={}, route=Route.OCR, elapsed_s=1.0, entry=cpu_entry(1, 2)
    )
    assert store.pages.complete_reading(1)
    [source] = store.submissions.sources(1)
    assert source.is_written


def test_the_pool_leaves_what_the_version_before_writes_alone(store: Store) -> None:
    run_as_before(store)
    pool = Pool(store)
    assert pool.claim() is None
    assert pool.claim_source() is None
    assert store.pool.submissions(limit=10) == ()
    repaired = store.pool.repair()
    assert (repaired.completed_readings, repaired.finished_submissions) == (0, 0)
    assert store.pool.dead_pages() == ()
