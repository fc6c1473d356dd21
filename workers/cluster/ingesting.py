"""``doctriage ingest`` with the pool: submit, follow, and bring the outputs home."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from models.errors import PoolBusy
from models.pool import DEFAULT_PRIORITY
from pipeline.blobs import BlobStore
from pipeline.publish import prepare_folder
from pipeline.settings import Settings
from pipeline.store import open_store
from workers.accounts import login_name, paying_cost_centre
from workers.cluster.clocks import require_clock_for_submitting
from workers.cluster.connection import pool_tickets, require_pool_broker
from workers.cluster.following import Follower
from workers.cluster.sealed_passwords import sealed
from workers.cluster.submitting import SubmissionOrder, Submitter
from workers.cluster.tracing import submission_span
from workers.cluster.wishes import Wishes
from workers.events import Event, IngestReport, IngestRequest, SourcesFound
from workers.local_run import PageCounter, refuse_state_folder
from workers.logs import set_up_logs
from workers.report import RunTotals, finish_run
from workers.run_budgets import budgets_to_warn_of
from workers.sources import RUN_FILES, Source, find_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRequest:
    """``request.formats`` and ``request.force`` are part of the ``wishes`` too."""

    request: IngestRequest
    wishes: Wishes
    priority: int = DEFAULT_PRIORITY


def _tell_nobody(submission_id: int) -> None:
    """Where nobody asks for it before all is sent."""


def submit(
    asked: PoolRequest,
    *,
    settings: Settings,
    on_event: Callable[[Event], None],
    on_busy: Callable[[PoolBusy], None],
    on_opened: Callable[[int], None] = _tell_nobody,
) -> int:
    """The submission's number, once all its sources are with the pool; ``on_opened`` is told it before the first is
    sent. Raises ``PoolBusy`` where it takes on no more,
    ``BrokerUnavailable``, ``StoreUnavailable``, ``SettingsError`` and ``OutputNotWritable``."""
    set_up_logs(settings.log_level)
    require_pool_broker(settings)
    request, home = asked.request, settings.home.absolute()
    refuse_state_folder(request.paths, home)
    prepare_folder(request.out_dir, RUN_FILES)
    sources = tuple(find_sources(request.paths, left_out=(request.out_dir.absolute(), home)))
    return submit_sources(
        sources, asked, settings=settings, on_event=on_event, on_busy=on_busy, on_opened=on_opened
    )


def submit_sources(
    sources: Sequence[Source],
    asked: PoolRequest,
    *,
    settings: Settings,
    on_event: Callable[[Event], None],
    on_busy: Callable[[PoolBusy], None],
    on_opened: Callable[[int], None] = _tell_nobody,
) -> int:
    """``submit`` of sources that were found before, whatever the request's paths."""
    request, home = asked.request, settings.home.absolute()
    order = SubmissionOrder(
        cost_centre=paying_cost_centre(request.cost_centre, settings.chargeback),
        submitter=login_name(),
        priority=asked.priority,
        wishes=asked.wishes,
        sealed_passwords=sealed(request.passwords, settings.pool.secret_key),
    )
    blobs = BlobStore(home, settings.blobs)
    blobs.require()
    on_event(SourcesFound(count=len(sources)))
    with closing(open_store(home, settings.database_url)) as store:
        require_clock_for_submitting(store.pool)
        submitter = Submitter(
            settings=settings,
            pool=store.pool,
            uploads=store.uploads,
            blobs=blobs,
            tickets=pool_tickets(settings),
            on_busy=on_busy,
        )
        with submission_span(
            {"doctriage.cost_centre": order.cost_centre, "doctriage.sources": len(sources)}
        ) as traceparent:
            submission_id = submitter.open(replace(order, traceparent=traceparent))
            on_opened(submission_id)
            submitter.send(submission_id, sources)
    return submission_id


def fetch(
    submission_id: int,
    out_dir: Path,
    *,
    settings: Settings,
    formats: tuple[str, ...],
    on_event: Callable[[Event], None],
    rows_dir: Path | None = None,
) -> IngestReport:
    """Follow the submission and write its outputs, and the run's own files, into ``out_dir``; the latter into
    ``rows_dir`` where one is given. With Ctrl-C (KeyboardInterrupt) the report says ``is_interrupted``, and the pool
    goes on."""
    set_up_logs(settings.log_level)
    home = settings.home.absolute()
    out_dir = out_dir.absolute()
    prepare_folder(out_dir, RUN_FILES)
    counter = PageCounter(on_event)
    blobs = BlobStore(home, settings.blobs)
    blobs.require_readable()
    with closing(open_store(home, settings.database_url)) as store:
        follower = Follower(
            store=store,
            blobs=blobs,
            submission_id=submission_id,
            out_dir=out_dir,
            formats=formats,
            on_event=counter,
        )
        is_interrupted = False
        try:
            follower.follow()
        except KeyboardInterrupt:
            is_interrupted = True
        return finish_run(
            store,
            submission_id,
            rows_dir or out_dir,
            totals=RunTotals(
                pages_read=counter.pages_read,
                pages_from_earlier_run=counter.pages_from_earlier_run,
                elapsed_s=store.pool.progress(submission_id).open_s(time.time()),
                is_interrupted=is_interrupted,
                budgets=budgets_to_warn_of(store.budgets, follower.cost_centre),
            ),
            first_sources=follower.first_sources,
            not_fetched=follower.not_fetched,
        )
