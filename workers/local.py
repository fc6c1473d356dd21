"""The embedded executor: one machine and a pool of processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from models.document import Document, MediaType
from models.errors import PageNotFound, SettingsError
from pipeline.blobs import BlobStore
from pipeline.chargeback.entries import Account
from pipeline.planning.configured import load_plan
from pipeline.planning.serving_plan import ServingPlan
from pipeline.policy import Policy, load_policy
from pipeline.publish import prepare_folder
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from workers.accounts import open_account
from workers.bootstrap import build_engines, vlm_endpoint
from workers.events import Event, IngestReport, IngestRequest, PageFinished
from workers.logs import log_event, set_up_logs
from workers.messages import EngineBuilder, TranscriberSetup, WorkerSetup
from workers.owner import is_alive
from workers.pool import WorkerPool
from workers.references import document_id_of
from workers.report import RunTotals, finish_run
from workers.run import IngestRun, identify_engines
from workers.run_state import RunOptions
from workers.scratch import remove_abandoned_scratch
from workers.sources import RUN_FILES, Source, find_sources
from workers.vlm_desk import VlmDesk

__all__ = ["IngestReport", "IngestRequest", "StoredPage", "find_page", "ingest"]

CGROUP_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


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
    ``EngineUnavailable`` for a missing
    engine or language, ``StoreUnavailable`` when the state folder or the database cannot be used.
    Call it from a module that can be imported anew (worker processes are spawned), on the main thread.
    """
    started_s = time.monotonic()
    set_up_logs(settings.log_level)
    policy = policy or load_policy(settings.triage.policy_file)
    plan = load_plan(settings.vlm)
    if settings.vlm.is_configured:
        _ = vlm_endpoint(settings.vlm, plan)
    account = open_account(request.cost_centre, settings.chargeback, plan)
    home = settings.home.absolute()
    settings = settings.model_copy(update={"home": home})
    request = replace(request, out_dir=request.out_dir.absolute())
    _refuse_state_folder(request.paths, home)
    prepare_folder(request.out_dir, RUN_FILES)
    sources = tuple(find_sources(request.paths, left_out=(request.out_dir, home)))
    with contextlib.closing(open_store(home, settings.database_url)) as store:
        BlobStore(home).remove_abandoned()
        store.pages.reclaim_leases(is_alive)
        store.transcriptions.close_abandoned(account.price_book)
        try:
            counter = _Counter(on_event)
            return _Ingest(request, settings, policy, plan, account, store, counter, started_s).run(
                sources, engine_builder
            )
        finally:
            remove_abandoned_scratch(home)


def _refuse_state_folder(paths: Sequence[Path], home: Path) -> None:
    """Our own database and copies are no documents."""
    state = os.path.realpath(home)
    for path in paths:
        if os.path.realpath(path) == state:
            raise SettingsError(
                f"{path}: is the state folder too; set DOCTRIAGE_HOME to a folder without documents"
            )


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
            source=store.submissions.newest_source_name(document_id) or reference,
            document_id=document_id,
            media_type=document.media_type,
            page_number=page_number,
            page=page,
            blob_path=BlobStore(home).path(document_id),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A finished page as the database keeps it: ``page`` is one entry of the JSON's ``pages``,
    ``blob_path`` our copy of the document's bytes."""

    source: str
    document_id: str
    media_type: MediaType
    page_number: int
    page: Mapping[str, object]
    blob_path: Path


def usable_cpus() -> int:
    """CPUs that this process may run on, within its container's quota."""
    cpus = len(os.sched_getaffinity(0))
    try:
        quota, period = CGROUP_CPU_QUOTA.read_text(encoding="ascii").split()
        return max(1, min(cpus, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or the quota is "max"
        return cpus


@dataclass(slots=True)
class _Counter:
    """Logs events, passes them on and counts the pages in them."""

    on_event: Callable[[Event], None]
    pages_read: int = field(default=0, init=False)
    pages_from_earlier_run: int = field(default=0, init=False)

    def __call__(self, event: Event) -> None:
        log_event(event)
        if isinstance(event, PageFinished):
            self.pages_from_earlier_run += event.from_earlier_run
            self.pages_read += not event.from_earlier_run
        self.on_event(event)


@dataclass(frozen=True, slots=True)
class _Ingest:
    request: IngestRequest
    settings: Settings
    policy: Policy
    plan: ServingPlan
    account: Account
    store: Store
    counter: _Counter
    started_s: float

    def run(self, sources: Sequence[Source], engine_builder: EngineBuilder) -> IngestReport:
        setup = WorkerSetup(
            settings=self.settings,
            policy=self.policy,
            plan=self.plan,
            price_book=self.account.price_book,
            out_dir=self.request.out_dir,
            formats=self.request.formats,
            passwords=self.request.passwords,
            build_engines=engine_builder,
        )
        jobs = self.settings.executor.jobs or usable_cpus()
        pool = WorkerPool(setup, size=jobs)
        submission_id, run, is_interrupted = None, None, False
        try:
            with _ended(pool, self.store):
                fingerprint = identify_engines(
                    pool, self.settings, self.policy, self.plan, self.account.payer.cost_centre
                )
                submission_id = self._start_submission(fingerprint.whole)
                account = self.account.of_submission(submission_id)
                options = RunOptions(
                    submission_id=submission_id,
                    account=account,
                    fingerprint=fingerprint,
                    force=self.request.force,
                    jobs=jobs,
                )
                with contextlib.closing(self._vlm_desk(account)) as vlm:
                    run = IngestRun(
                        pool=pool,
                        store=self.store,
                        settings=self.settings,
                        options=options,
                        on_event=self.counter,
                        vlm=vlm,
                    )
                    run.run(sources)
        except KeyboardInterrupt:
            is_interrupted = True
        first_sources = {} if run is None else run.first_sources
        return self._report(submission_id, first_sources, is_interrupted=is_interrupted)

    def _vlm_desk(self, account: Account) -> VlmDesk:
        setup = TranscriberSetup(settings=self.settings, plan=self.plan, account=account)
        return VlmDesk(setup, self.store)

    def _start_submission(self, fingerprint: str) -> int:
        return self.store.submissions.start_submission(
            out_dir=os.fsencode(self.request.out_dir).decode("utf-8", "backslashreplace"),
            cost_centre=self.account.payer.cost_centre,
            submitter=self.account.payer.submitter,
            fingerprint=fingerprint,
        )

    def _report(
        self, submission_id: int | None, first_sources: Mapping[int, str], *, is_interrupted: bool
    ) -> IngestReport:
        report = finish_run(
            self.store,
            submission_id,
            self.request.out_dir,
            totals=RunTotals(
                pages_read=self.counter.pages_read,
                pages_from_earlier_run=self.counter.pages_from_earlier_run,
                elapsed_s=time.monotonic() - self.started_s,
                is_interrupted=is_interrupted,
            ),
            first_sources=first_sources,
        )
        if submission_id is not None and not is_interrupted:
            self.store.submissions.finish_submission(submission_id)
        return report


@contextlib.contextmanager
def _ended(pool: WorkerPool, store: Store) -> Iterator[None]:
    """End the workers with the block, and give back what they hold when an exception leaves it."""
    try:
        yield
    finally:
        for owner in pool.kill():
            store.pages.release_leases(owner)


def _why_no_page(store: Store, document: Document | None, document_id: str, page_number: int) -> str:
    if document is not None and page_number > document.page_count:
        return f"no page {page_number}; it has {document.page_count}"
    failure = store.submissions.newest_failure(document_id, page_number)
    if failure is None:
        return f"page {page_number} is not read yet; ingest it first"
    code, message = failure
    return f"page {page_number} could not be read ({code}): {message}"
