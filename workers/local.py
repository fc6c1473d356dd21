"""The embedded executor: one machine and a pool of processes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from models.budget import BudgetMonth
from models.document import Document, MediaType
from models.errors import PageNotFound
from pipeline.blobs import BlobStore
from pipeline.policy import Policy
from pipeline.publish import prepare_folder
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from workers.bootstrap import build_engines, vlm_endpoint
from workers.events import Event, IngestReport, IngestRequest
from workers.local_run import (
    LocalRun,
    PageCounter,
    RunEnd,
    RunTask,
    RunTerms,
    opened_store,
    refuse_state_folder,
    run_terms,
)
from workers.messages import EngineBuilder
from workers.pool import WorkerPool
from workers.references import document_id_of
from workers.report import RunTotals, finish_run
from workers.run_budgets import budgets_to_warn_of, require_budget
from workers.sources import RUN_FILES, Source, find_sources

__all__ = ["IngestReport", "IngestRequest", "StoredPage", "find_page", "ingest", "ingest_sources", "run_task"]


def ingest(
    request: IngestRequest,
    *,
    settings: Settings,
    on_event: Callable[[Event], None],
    engine_builder: EngineBuilder = build_engines,
    policy: Policy | None = None,
) -> IngestReport:
    """Read every document under ``request.paths`` and write its files into ``request.out_dir``.

    A rejected document or a failed page is in the report, not an exception. Ctrl-C (KeyboardInterrupt) is
    caught: the report says ``is_interrupted``. ``on_event`` is called on the caller's thread.
    ``policy`` is that of the settings unless one is given.
    Raises ``OutputNotWritable``, ``PriceBookInvalid`` and ``SettingsError`` (a policy or plan file that is none, an
    address of the VLM that is none, nobody who pays, a path that is the state folder) before anything is read,
    ``BudgetSpent`` and ``BudgetUnusable`` likewise (``workers.run_budgets``), ``EngineUnavailable`` for a missing
    engine or language, ``StoreUnavailable`` when the state folder or the database cannot be used.
    Call it from a module that can be imported anew (worker processes are spawned), on the main thread.
    """
    terms = run_terms(settings, request.cost_centre, policy)
    if settings.vlm.is_configured:
        _ = vlm_endpoint(settings.vlm, terms.plan)
    home = terms.settings.home
    request = replace(request, out_dir=request.out_dir.absolute())
    refuse_state_folder(request.paths, home)
    prepare_folder(request.out_dir, RUN_FILES)
    sources = tuple(find_sources(request.paths, left_out=(request.out_dir, home)))
    return ingest_sources(sources, request, terms, on_event=on_event, engine_builder=engine_builder)


def ingest_sources(
    sources: Sequence[Source],
    request: IngestRequest,
    terms: RunTerms,
    *,
    on_event: Callable[[Event], None],
    engine_builder: EngineBuilder = build_engines,
    rows_dir: Path | None = None,
    workers: WorkerPool | None = None,
) -> IngestReport:
    """``ingest`` of sources that were found before, whatever the request's paths. ``pages.jsonl`` and
    ``failures.jsonl`` are written into ``rows_dir`` where one is given, instead of ``request.out_dir``, which is
    there and absolute. ``workers`` are kept, as ``LocalRun.run`` says."""
    started_s = time.monotonic()
    task = run_task(sources, request)
    counter = PageCounter(on_event)
    with opened_store(terms) as store:
        require_budget(store.budgets, terms.settings, terms.account, terms.plan)
        end = LocalRun(terms, store, counter).run(task, engine_builder, workers)
        budgets = budgets_to_warn_of(store.budgets, terms.account.payer.cost_centre)
        elapsed_s = time.monotonic() - started_s
        return _report(store, rows_dir or request.out_dir, end, counter, budgets=budgets, elapsed_s=elapsed_s)


def run_task(sources: Sequence[Source], request: IngestRequest) -> RunTask:
    return RunTask(
        sources=sources,
        passwords=request.passwords,
        out_dir=request.out_dir,
        formats=request.formats,
        force=request.force,
    )


def _report(
    store: Store,
    out_dir: Path,
    end: RunEnd,
    counter: PageCounter,
    *,
    budgets: tuple[BudgetMonth, ...],
    elapsed_s: float,
) -> IngestReport:
    report = finish_run(
        store,
        end.submission_id,
        out_dir,
        totals=RunTotals(
            pages_read=counter.pages_read,
            pages_from_earlier_run=counter.pages_from_earlier_run,
            elapsed_s=elapsed_s,
            is_interrupted=end.is_interrupted,
            budgets=budgets,
        ),
        first_sources={reading.reading_id: reading.first.name for reading in end.readings},
    )
    if end.submission_id is not None and not end.is_interrupted:
        store.submissions.finish_submission(end.submission_id)
    return report


def find_page(reference: str, page_number: int, *, settings: Settings) -> StoredPage:
    """The newest finished reading of a page. ``reference`` is a source name, a path to a file with the same
    bytes, or at least eight digits of the document id. Raises ``PageNotFound``."""
    home = settings.home.absolute()
    with contextlib.closing(open_store(home, settings.database_url)) as store:
        document_id = document_id_of(store, reference)
        document = store.pages.document(document_id)
        page = store.submissions.newest_page(document_id, page_number)
        if document is None or page is None:
            raise PageNotFound(f"{reference}: {_why_no_page(store, document, document_id, page_number)}")
        return StoredPage(
            source=store.submissions.newest_source_name(document_id, name=reference) or reference,
            document_id=document_id,
            media_type=document.media_type,
            page_number=page_number,
            page=page,
            blobs=BlobStore(home, settings.blobs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A finished page as the database keeps it: ``page`` is one entry of the JSON's ``pages``."""

    source: str
    document_id: str
    media_type: MediaType
    page_number: int
    page: Mapping[str, object]
    blobs: BlobStore

    @property
    def blob_path(self) -> Path:
        """Our copy of the document's bytes. Raises ``BlobMissing``, ``BlobDamaged`` and ``StoreUnavailable``."""
        return self.blobs.local_path(self.document_id)


def _why_no_page(store: Store, document: Document | None, document_id: str, page_number: int) -> str:
    if document is not None and page_number > document.page_count:
        return f"no page {page_number}; it has {document.page_count}"
    failure = store.submissions.newest_failure(document_id, page_number)
    if failure is None:
        return f"page {page_number} is not read yet; ingest it first"
    code, message = failure
    return f"page {page_number} could not be read ({code}): {message}"
