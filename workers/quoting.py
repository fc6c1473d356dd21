"""A quote: the ordinary run over the documents, up to the VLM, and what the pages that wait for it would cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from models.document import Document
from models.tables import PageState
from pipeline.chargeback.price_book import price_at
from pipeline.chargeback.quote import Quote, QuotedDocument, QuoteTerms, Refusal, make_quote, over_all_pages
from pipeline.chargeback.quote_pages import QuotedPage, quoted_page, unread_page
from pipeline.chargeback.sample import Stratum, draw_sample, over_sample, unseen_pages
from pipeline.chargeback.sample_size import SampleSize
from pipeline.planning.serving_plan import ServingPlan
from pipeline.policy import Policy
from pipeline.settings import Settings
from pipeline.store import Store
from workers.bootstrap import build_engines
from workers.events import DocumentRejectedEvent, Event, PageAwaitsVlm, PageFinished
from workers.local_run import (
    LocalRun,
    PageCounter,
    RunTask,
    RunTerms,
    opened_store,
    refuse_state_folder,
    run_terms,
)
from workers.messages import EngineBuilder
from workers.run_state import ReadingState
from workers.sources import find_sources

ASSUMED_VLM_URL: Final = "http://vlm.invalid/v1"
"""Nobody is asked. That there is a VLM decides where pages wait, so that a run with one goes on from here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteRequest:
    """``paths``, ``cost_centre`` and ``passwords`` are those of an ingest. Without a ``sample`` every page is read."""

    paths: tuple[Path, ...]
    cost_centre: str | None = None
    passwords: tuple[str, ...] = field(default=(), repr=False)
    sample: SampleSize | None = None


def quote(
    request: QuoteRequest,
    *,
    settings: Settings,
    on_event: Callable[[Event], None],
    engine_builder: EngineBuilder = build_engines,
    policy: Policy | None = None,
) -> Quote | None:
    """Read the pages on the CPU, as ``workers.local.ingest`` does, and keep them for it; nothing is written, and no VLM
    is asked. The CPU's work is booked. None where Ctrl-C stopped it. Raises what ``ingest`` raises, but for outputs and
    the VLM's address.
    """
    begun_at = datetime.now(UTC)
    terms = run_terms(_with_a_vlm(settings), request.cost_centre, policy)
    home = terms.settings.home
    refuse_state_folder(request.paths, home)
    sources = tuple(find_sources(request.paths, left_out=(home,)))
    heard = _Heard(PageCounter(on_event))
    choice = None if request.sample is None else _SampleChoice(request.sample)
    task = RunTask(sources=sources, passwords=request.passwords, selection=choice)
    with opened_store(terms) as store:
        end = LocalRun(terms, store, heard).run(task, engine_builder)
        if end.is_interrupted or end.submission_id is None:
            return None
        store.submissions.finish_submission(end.submission_id)
        readings = sorted(end.readings, key=lambda reading: reading.first.number)
        documents = [_document(store, reading, terms.plan, heard) for reading in readings]
    return _quote_of(documents, heard, terms, () if choice is None else choice.strata, begun_at)


def _with_a_vlm(settings: Settings) -> Settings:
    if settings.vlm.is_configured:
        return settings
    return settings.model_copy(update={"vlm": settings.vlm.model_copy(update={"url": ASSUMED_VLM_URL})})


@dataclass(slots=True)
class _Heard:
    """What the run's events tell: refused files, and pages that an earlier run had read, by source and number."""

    pass_on: Callable[[Event], None]
    refusals: list[Refusal] = field(default_factory=list)
    earlier: set[tuple[str, int]] = field(default_factory=set)

    def __call__(self, event: Event) -> None:
        match event:
            case DocumentRejectedEvent(source=source, code=code, message=message):
                self.refusals.append(Refusal(source=source, code=code, message=message))
            case PageFinished(from_earlier_run=True) | PageAwaitsVlm(from_earlier_run=True):
                self.earlier.add((event.source, event.page_number))
            case _:
                pass
        self.pass_on(event)


@dataclass(slots=True)
class _SampleChoice:
    """Draws the sample when all documents are known. Without ``strata`` every page is read."""

    size: SampleSize
    strata: tuple[Stratum, ...] = ()

    def __call__(self, documents: Sequence[Document]) -> Mapping[str, frozenset[int]]:
        page_counts = {document.document_id: document.page_count for document in documents}
        page_count = sum(page_counts.values())
        wanted = self.size.of(page_count)
        if wanted == page_count:
            return {name: frozenset(range(1, pages + 1)) for name, pages in page_counts.items()}
        self.strata = draw_sample(page_counts, wanted)
        chosen: dict[str, set[int]] = {name: set() for name in page_counts}
        for stratum in self.strata:
            for document_id, page_number in stratum.drawn:
                chosen[document_id].add(page_number)
        return {name: frozenset(numbers) for name, numbers in chosen.items()}


def _document(store: Store, reading: ReadingState, plan: ServingPlan, heard: _Heard) -> QuotedDocument:
    return QuotedDocument(
        document_id=reading.document.document_id,
        sources=tuple(source.name for source in sorted(reading.sources, key=lambda one: one.number)),
        page_count=reading.document.page_count,
        pages=tuple(_pages(store, reading, plan, heard)),
    )


def _pages(store: Store, reading: ReadingState, plan: ServingPlan, heard: _Heard) -> Iterator[QuotedPage]:
    for record in store.pages.stream_pages(reading.reading_id):
        if record.content is not None:
            yield quoted_page(
                record.content,
                plan,
                is_final=record.state is PageState.DONE,
                was_read=(reading.first.name, record.page_number) in heard.earlier,
            )
        elif record.state is PageState.FAILED or reading.wanted_of([record.page_number]):
            yield unread_page(record.page_number)


def _quote_of(
    documents: Sequence[QuotedDocument],
    heard: _Heard,
    terms: RunTerms,
    strata: Sequence[Stratum],
    begun_at: datetime,
) -> Quote:
    now = datetime.now(UTC)
    account = terms.account
    drawn = sum(len(stratum.drawn) for stratum in strata)
    return make_quote(
        documents,
        sorted(heard.refusals, key=lambda refusal: refusal.source),
        QuoteTerms(
            cost_centre=account.payer.cost_centre,
            model_id=terms.plan.model_id,
            prices=price_at(account.price_book, terms.plan.model_id, now),
            begun_at=begun_at,
            when=now,
        ),
        spread_over=(
            over_sample(documents, strata, unseen_pages(documents, terms.plan))
            if strata
            else over_all_pages(documents)
        ),
        sampled_pages=drawn or None,
    )
