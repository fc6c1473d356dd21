"""The process that calls the VLM for the pool: many tasks on threads, one event loop, one client and one admission."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import Future
from typing import Final

from models.pool import Queue
from pipeline.store import EscalatedPage, PageToTranscribe
from workers.adaptive_limit import AdaptiveLimit
from workers.bootstrap import build_vlm_engine
from workers.circuit_breaker import CircuitBreaker
from workers.cluster.host import Host
from workers.cluster.ocr_stage import password_of
from workers.messages import TranscribeTask
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
        threading.Thread(target=self._loop.run_forever, name="vlm", daemon=True).start()
        started: Future[VlmPages] = asyncio.run_coroutine_threadsafe(self._start(), self._loop)
        self._pages = started.result(START_LIMIT_S)

    def transcribe(self) -> Counter[Queue]:
        """One page, and the tickets that follow; none where none waits. Raises ``EngineUnavailable``,
        ``PlanImpossible`` and ``StoreUnavailable``, and the page is given back."""
        host = self._host
        pool = host.deployment.settings.pool
        work = host.store.pool.claim_escalated(owner=host.owner, lease_s=host.lease_s, weights=pool.weights)
        if work is None:
            return Counter()
        try:
            self._bring_to_end(work)
        finally:
            given_back = host.store.pool.give_back_page(work.reading_id, work.page_number, owner=host.owner)
        return Counter(
            {Queue.VLM: int(given_back), Queue.ASSEMBLE: host.store.pool.sources_read(work.reading_id)}
        )

    def _bring_to_end(self, work: PageToTranscribe) -> None:
        host = self._host
        task = TranscribeTask(
            reading_id=work.reading_id,
            document=work.document,
            page_number=work.page_number,
            password=password_of(host, work.document, work.terms),
        )
        escalated = EscalatedPage(page=work.page, calls_before=work.calls_before)
        ending = self._pages.bring_to_end(task, escalated, host.account_of(work.terms))
        asyncio.run_coroutine_threadsafe(ending, self._loop).result()

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
        self._watching = asyncio.create_task(watch(VllmMetricsReader(str(vlm.url)), self._admission))
        return VlmPages(
            settings=host.deployment.settings,
            plan=plan,
            store=host.store,
            blobs=host.blobs,
            owner=host.owner,
            engine=build_vlm_engine(vlm, plan),
            admission=self._admission,
        )
