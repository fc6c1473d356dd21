"""The end of an attempt to read a page on the CPU: what came of it, and what it costs, in the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from models.errors import PageFailed
from models.page import PageResult
from pipeline.chargeback.entries import Account, failed_page_entry, read_page_entry
from pipeline.outputs import page_json, page_row
from pipeline.store import PageStore
from workers.messages import PageAttemptFailed
from workers.retry import retry_decision


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuAttempt:
    """An attempt at a page that the owner holds. ``cpu_s`` is None where the process ended under it."""

    reading_id: int
    document_id: str
    page_number: int
    owner: str
    account: Account
    cpu_s: float | None


def finish_attempt(pages: PageStore, attempt: CpuAttempt, result: PageResult, *, awaits_vlm: bool) -> bool:
    """False when the owner does not hold the page any more."""
    page = page_json(result)
    return pages.finish_page(
        attempt.reading_id,
        attempt.page_number,
        owner=attempt.owner,
        page=page,
        summary=page_row("", attempt.document_id, page),
        route=result.route,
        elapsed_s=result.elapsed_s,
        degraded_code=None if result.degraded is None else str(result.degraded.code),
        awaits_vlm=awaits_vlm,
        entry=read_page_entry(
            attempt.account,
            page,
            document_id=attempt.document_id,
            reading_id=attempt.reading_id,
            is_final=not awaits_vlm,
            cpu_s=attempt.cpu_s,
            when=datetime.now(UTC),
        ),
    )


def charge_attempt(
    pages: PageStore, attempt: CpuAttempt, error: PageFailed, *, max_attempts: int
) -> PageAttemptFailed | None:
    """Book an attempt that failed, and free the page for another or give it up. None when the owner does not hold
    it."""
    number = pages.attempts(attempt.reading_id, attempt.page_number) + 1
    gave_up = retry_decision(error, number, max_attempts=max_attempts) is None
    settle = pages.fail_page if gave_up else pages.return_page
    is_ours = settle(
        attempt.reading_id,
        attempt.page_number,
        owner=attempt.owner,
        code=error.code,
        message=str(error),
        entry=failed_page_entry(
            attempt.account,
            document_id=attempt.document_id,
            reading_id=attempt.reading_id,
            page_number=attempt.page_number,
            code=error.code,
            is_final=gave_up,
            cpu_s=attempt.cpu_s,
            when=datetime.now(UTC),
        ),
    )
    if not is_ours:
        return None
    return PageAttemptFailed(
        page_number=attempt.page_number,
        attempt=number,
        code=error.code,
        message=str(error),
        gave_up=gave_up,
    )
