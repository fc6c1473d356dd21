"""The process that calls the VLM for the pool: many tasks on threads, one event loop, one client and one admission."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import Future
from functools import partial
from typing import Final

from models.pool import Queue
from pipeline.store import EscalatedPage, PageToTranscribe
from workers.adaptive_limit import AdaptiveLimit
from workers.bootstrap import build_vlm_engine
from workers.circuit_breaker import CircuitBreaker
from workers.cluster.host import Host
from workers.cluster.metrics import worker_metrics
from workers.cluster.observed import Work, nothing_found, observed_work
from workers.cluster.observed_engine import ObservedVlmEngine
from workers.cluster.ocr_stage import password_of
from workers.messages import PageNotOurs, PageTranscribed, TranscribeTask
from workers.shared_places import DatabasePlaces
from workers.vllm_metrics import VllmMetricsReader
from workers.vlm_admission import VlmAdmission, watch
from workers.vlm_pages import VlmPages

START_LIMIT_S: Final = 60.0


class VlmHost:
    """``transcribe`` is called from many threads; the calls themselves are made on the loop's own."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vlm", daemon=True)
        self._thread.start()
        started: Future[VlmPages] = asyncio.run_coroutine_threadsafe(self._start(), self._loop)
        self._pages = started.result(START_LIMIT_S)

    def transcribe(self) -> Counter[Queue]:
        """One page, and the tickets that follow; none where none waits. Raises ``EngineUnavailable``,
        ``PlanImpossible`` and ``StoreUnavailable``, and the page is given back."""
        host = self._host
        pool = host.deployment.settings.pool
        work = host.store.pool.claim_escalated(owner=host.owner, lease_s=host.lease_s, weights=pool.weights)
        if work is None:
            return nothing_found(Queue.VLM)
        with observed_work(
            Queue.VLM,
            host.owner,
            work.terms,
            document_id=work.document.document_id,
            reading_id=work.reading_id,
            page_numbers=(work.page_number,),
        ) as seen:
            return self._ended(work, seen)

    def _ended(self, work: PageToTranscribe, seen: Work) -> Counter[Queue]:
        host, give_back = self._host, partial(self._give_back, work)
        with host.broken_off(give_back, partial(self._lose, work)):
            seen.page_ended(self._bring_to_end(work))
        given_back = host.given_back(give_back)
        return Counter(
            {Queue.VLM: int(given_back), Queue.ASSEMBLE: host.store.pool.sources_read(work.reading_id)}
        )

    def _give_back(self, work: PageToTranscribe) -> bool:
        return self._host.store.pool.give_back_page(work.reading_id, work.page_number, owner=self._host.owner)

    def _lose(self, work: PageToTranscribe) -> None:
        deployment = self._host.deployment
        self._host.store.pool.lose_page(
            work.reading_id,
            work.page_number,
            owner=self._host.owner,
            max_losses=deployment.settings.pool.max_losses,
            price_book=deployment.price_book,
        )

    def _bring_to_end(self, work: PageToTranscribe) -> PageTranscribed | PageNotOurs:
        host = self._host
        task = TranscribeTask(
            reading_id=work.reading_id,
            document=work.document,
            page_number=work.page_number,
            password=password_of(host, work.document, work.terms),
        )
        escalated = EscalatedPage(page=work.page, calls_before=work.calls_before)
        ending = self._pages.bring_to_end(task, escalated, host.account_of(work.terms))
        return asyncio.run_coroutine_threadsafe(ending, self._loop).result()

    def close(self) -> None:
        """When no call is under way any more."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(START_LIMIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_LIMIT_S)
        self._loop.close()

    async def _end(self) -> None:
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._reader.close()
        await self._engine.close()

    async def _start(self) -> VlmPages:
        host, plan = self._host, self._host.deployment.plan
        vlm = host.deployment.settings.vlm
        places = DatabasePlaces(
            host.store.slots,
            service=f"{plan.model_id} {vlm.url}"[:200],
            capacity=plan.concurrency,
            owner=host.owner,
            lease_s=host.lease_s,
        )
        self._admission = VlmAdmission(AdaptiveLimit(plan.concurrency), CircuitBreaker(), places=places)
        worker_metrics().watch(self._admission)
        self._engine = build_vlm_engine(vlm, plan)
        self._reader = VllmMetricsReader(str(vlm.url))
        self._watching = asyncio.create_task(watch(self._reader, self._admission))
        return VlmPages(
            settings=host.deployment.settings,
            plan=plan,
            store=host.store,
            blobs=host.blobs,
            owner=host.owner,
            engine=ObservedVlmEngine(self._engine, str(vlm.url), worker_metrics()),
            admission=self._admission,
        )
