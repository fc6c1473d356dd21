"""Reports of an ingest, as short as a test wants them."""

from __future__ import annotations

from collections.abc import Mapping

from models.budget import BudgetMonth
from models.page import Route
from pipeline.chargeback.bills import SubmissionBill
from workers.events import DocumentReport, FailureReport, IngestReport


def document_report(
    source: str = "a.pdf",
    routes: Mapping[Route, int] | None = None,
    *,
    failed_pages: int = 0,
    same_bytes_as: str | None = None,
    is_written: bool = True,
) -> DocumentReport:
    pages = dict(routes or {Route.OCR: 1})
    return DocumentReport(
        source=source,
        document_id="ab" * 32,
        page_count=sum(pages.values()) + failed_pages,
        pages_by_route=pages,
        failed_pages=failed_pages,
        elapsed_s=1.5,
        is_written=is_written,
        same_bytes_as=same_bytes_as,
    )


def ingest_report(
    *documents: DocumentReport,
    failures: tuple[FailureReport, ...] = (),
    pages_by_reason: Mapping[str, int] | None = None,
    visual_tokens_if_all: int = 0,
    visual_tokens_triaged: int = 0,
    pages_by_degradation: Mapping[str, int] | None = None,
    vlm_calls: int = 0,
    bills: tuple[SubmissionBill, ...] = (),
    budgets: tuple[BudgetMonth, ...] = (),
    pages_from_earlier_run: int = 0,
    is_interrupted: bool = False,
) -> IngestReport:
    return IngestReport(
        documents=documents,
        failures=failures,
        pages_by_reason=pages_by_reason or {},
        visual_tokens_if_all=visual_tokens_if_all,
        visual_tokens_triaged=visual_tokens_triaged,
        pages_by_degradation=pages_by_degradation or {},
        vlm_calls=vlm_calls,
        vlm_prompt_tokens=1_000 * vlm_calls,
        vlm_completion_tokens=100 * vlm_calls,
        bills=bills,
        budgets=budgets,
        pages_read=sum(document.page_count for document in documents) - pages_from_earlier_run,
        pages_from_earlier_run=pages_from_earlier_run,
        failed_pages=sum(document.failed_pages for document in documents),
        elapsed_s=2.0,
        is_interrupted=is_interrupted,
    )
