"""What every run of the embedded executor needs: its state, its workers, and the documents it is about."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from models.errors import SettingsError
from pipeline.blobs import BlobStore
from pipeline.chargeback.entries import Account
from pipeline.planning.configured import load_plan
from pipeline.planning.serving_plan import ServingPlan
from pipeline.policy import Policy, load_policy
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from workers.accounts import open_account
from workers.cpus import usable_cpus
from workers.events import Event, PageAwaitsVlm, PageFinished
from workers.logs import log_event, set_up_logs
from workers.messages import EngineBuilder, TranscriberSetup, WorkerSetup
from workers.owner import is_alive
from workers.pool import WorkerPool
from workers.purging import drop_purged_copies
from workers.run import IngestRun, PageSelection, identify_engines
from workers.run_state import ReadingState, RunOptions
from workers.scratch import remove_abandoned_scratch
from workers.sources import Source
from workers.vlm_desk import VlmDesk

LAST_WORDS_S = 5.0
"""How long a worker may take to say that its task has ended, after what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTerms:
    """What is known of a run before anything is opened. The home of the settings is an absolute path."""

    settings: Settings
    policy: Policy
    plan: ServingPlan
    account: Account


def run_terms(settings: Settings, cost_centre: str | None, policy: Policy | None) -> RunTerms:
    """``policy`` is that of the settings unless one is given. Raises SettingsError and PriceBookInvalid."""
    set_up_logs(settings.log_level)
    policy = policy or load_policy(settings.triage.policy_file)
    plan = load_plan(settings.vlm)
    return RunTerms(
        settings=settings.model_copy(update={"home": settings.home.absolute()}),
        policy=policy,
        plan=plan,
        account=open_account(cost_centre, settings.chargeback, plan),
    )


def refuse_state_folder(paths: Sequence[Path], home: Path) -> None:
    """Our own database and copies are no documents."""
    state = os.path.realpath(home)
    for path in paths:
        if os.path.realpath(path) == state:
            raise SettingsError(
                f"{path}: is the state folder too; set DOCTRIAGE_HOME to a folder without documents"
            )


@contextlib.contextmanager
def opened_store(terms: RunTerms) -> Iterator[Store]:
    """With what runs that died have left cleared away, before and after."""
    home = terms.settings.home
    with contextlib.closing(open_store(home, terms.settings.database_url)) as store:
        blobs = BlobStore(home, terms.settings.blobs)
        blobs.remove_abandoned()
        drop_purged_copies(store, blobs)
        store.pages.reclaim_leases(is_alive)
        store.transcriptions.close_abandoned(terms.account.price_book)
        try:
            yield store
        finally:
            remove_abandoned_scratch(home)


@dataclass(slots=True)
class PageCounter:
    """Logs events, passes them on and counts the pages in them."""

    on_event: Callable[[Event], None]
    pages_read: int = field(default=0, init=False)
    pages_from_earlier_run: int = field(default=0, init=False)

    def __call__(self, event: Event) -> None:
        log_event(event)
        if isinstance(event, PageFinished | PageAwaitsVlm):
            self.pages_from_earlier_run += event.from_earlier_run
            self.pages_read += not event.from_earlier_run
        self.on_event(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    """Without an ``out_dir`` nothing is written, and no page is sent to the VLM. ``selection`` is ``IngestRun``'s."""

    sources: Sequence[Source]
    passwords: tuple[str, ...] = field(repr=False)
    out_dir: Path | None = None
    formats: tuple[str, ...] = ()
    force: bool = False
    selection: PageSelection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """``submission_id`` is None for a run that was stopped before it began."""

    submission_id: int | None
    readings: Collection[ReadingState]
    is_interrupted: bool


@dataclass(frozen=True, slots=True)
class LocalRun:
    terms: RunTerms
    store: Store
    on_event: Callable[[Event], None]

    def run(self, task: RunTask, engine_builder: EngineBuilder, workers: WorkerPool | None = None) -> RunEnd:
        """Ctrl-C (KeyboardInterrupt) is caught: the end says ``is_interrupted``. ``workers`` that are given, made for
        such a task, are idle at the end where all went well, and gone where it did not; others are gone."""
        pool = workers or new_workers(self.terms, task, engine_builder)
        submission_id, run, is_interrupted = None, None, False
        try:
            with _ended(pool, self.store, keeps_idle=workers is not None):
                options = self._begin(pool, task)
                submission_id = options.submission_id
                with self._vlm_desk(task, options.account) as vlm:
                    run = IngestRun(
                        pool=pool,
                        store=self.store,
                        settings=self.terms.settings,
                        options=options,
                        on_event=self.on_event,
                        vlm=vlm,
                        selection=task.selection,
                    )
                    run.run(task.sources)
        except KeyboardInterrupt:
            is_interrupted = True
        readings = () if run is None else tuple(run.readings)
        return RunEnd(submission_id=submission_id, readings=readings, is_interrupted=is_interrupted)

    def _begin(self, pool: WorkerPool, task: RunTask) -> RunOptions:
        terms, payer = self.terms, self.terms.account.payer
        fingerprint = identify_engines(pool, terms.settings, terms.policy, terms.plan, payer.cost_centre)
        out_dir = b"" if task.out_dir is None else os.fsencode(task.out_dir)
        submission_id = self.store.submissions.start_submission(
            out_dir=out_dir.decode("utf-8", "backslashreplace"),
            cost_centre=payer.cost_centre,
            submitter=payer.submitter,
            fingerprint=fingerprint.whole,
        )
        return RunOptions(
            submission_id=submission_id,
            account=terms.account.of_submission(submission_id),
            fingerprint=fingerprint,
            force=task.force,
            jobs=jobs_of(terms.settings),
            publishes=task.out_dir is not None,
        )

    @contextlib.contextmanager
    def _vlm_desk(self, task: RunTask, account: Account) -> Iterator[VlmDesk | None]:
        if task.out_dir is None:
            yield None
            return
        setup = TranscriberSetup(settings=self.terms.settings, plan=self.terms.plan, account=account)
        with contextlib.closing(VlmDesk(setup, self.store)) as desk:
            yield desk


def jobs_of(settings: Settings) -> int:
    return settings.executor.jobs or usable_cpus()


def new_workers(terms: RunTerms, task: RunTask, engine_builder: EngineBuilder) -> WorkerPool:
    """For tasks with the same ``out_dir``, ``formats`` and ``passwords``. No process is started yet."""
    setup = WorkerSetup(
        settings=terms.settings,
        policy=terms.policy,
        plan=terms.plan,
        price_book=terms.account.price_book,
        out_dir=task.out_dir,
        formats=task.formats,
        passwords=task.passwords,
        build_engines=engine_builder,
    )
    return WorkerPool(setup, size=jobs_of(terms.settings))


@contextlib.contextmanager
def _ended(pool: WorkerPool, store: Store, *, keeps_idle: bool) -> Iterator[None]:
    """End the workers with the block, and give back what they hold when an exception leaves it."""
    is_over = False
    try:
        yield
        is_over = True
    finally:
        if not (is_over and keeps_idle and _falls_idle(pool)):
            for owner in pool.kill():
                store.pages.release_leases(owner)


def _falls_idle(pool: WorkerPool) -> bool:
    """Whether all workers say soon that they have ended their tasks; all that was asked of them is done."""
    deadline_s = time.monotonic() + LAST_WORDS_S
    while pool.is_busy and time.monotonic() < deadline_s:
        for _ in pool.wait(LAST_WORDS_S):
            pass
    return not pool.is_busy
