"""The process that talks to the VLM: it takes escalated pages, many at a time, and brings each to its end.

Results go from here to the database; the executor only hears about them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

import structlog

from models.errors import (
    BudgetSpent,
    BudgetUnusable,
    DoctriageError,
    EngineUnavailable,
    PageFailed,
    PageNotRendered,
    PlanImpossible,
)
from pipeline.blobs import BlobStore
from pipeline.chargeback.call_estimate import call_estimate
from pipeline.escalated_page import (
    Json,
    answer_room_tokens,
    draw_upright,
    page_evidence,
    sent_part,
    tier_of,
    visual_tokens_of,
)
from pipeline.fit import Tier, fit_page
from pipeline.letters import find_letters
from pipeline.ports import VlmEngine
from pipeline.store import EscalatedPage, Store, connect_store
from workers.adaptive_limit import AdaptiveLimit
from workers.bootstrap import build_pdf_engine, build_vlm_engine
from workers.budget_room import BudgetRoom, degradation_of
from workers.child_process import begin_child
from workers.circuit_breaker import CircuitBreaker
from workers.messages import (
    Hello,
    PageNotOurs,
    PageTranscribed,
    RunImpossible,
    TranscriberReply,
    TranscriberSetup,
    TranscribeTask,
)
from workers.owner import current_owner
from workers.retry import VlmRetryLimits
from workers.transcription import DrawnPage, PageOnItsWay, PageTranscription, Transcribed
from workers.vllm_metrics import VllmMetricsReader
from workers.vlm_admission import VlmAdmission, watch
from workers.vlm_settlement import settle_page

PAGES_AHEAD: Final = 8
"""Pages drawn and fitted beyond those that are being answered, so that the next ones are ready when several answers
come at once. Each takes about half a megabyte."""

DRAWING_THREADS: Final = max(1, min(8, len(os.sched_getaffinity(0))))
"""Poppler draws in processes of its own, Pillow and OpenCV let other threads run, and pdfium has its lock. A page
takes 0.4 s of a core, and while it is drawn up to 200 MB."""

LEASE_S: Final = 86_400.0
"""A page's calls, pauses and turns together; a process that is gone gives its pages back at once."""

log = structlog.get_logger()


def talk_to_vlm(connection: Connection, setup: TranscriberSetup) -> None:
    """The whole life of the process; it is killed when it is not needed any more, or its parent is gone."""
    begin_child(setup.settings)
    owner = current_owner()
    with contextlib.closing(connect_store(setup.settings.home, setup.settings.database_url)) as store:
        connection.send(Hello(owner=owner))
        try:
            asyncio.run(Transcriber(connection, setup, store, owner).run())
        except* DoctriageError as group:
            connection.send(RunImpossible(error=_first_of(group)))
        except* (BrokenPipeError, ConnectionResetError):
            pass  # the executor is gone, and with it whoever wants an answer


class Transcriber:
    """``run`` takes pages from the connection for as long as the process lives."""

    def __init__(self, connection: Connection, setup: TranscriberSetup, store: Store, owner: str) -> None:
        self._connection = connection
        self._setup = setup
        self._plan = setup.plan
        self._store = store
        self._owner = owner
        self._blobs = BlobStore(setup.settings.home)
        self._pdf = build_pdf_engine()
        self._drawing = ThreadPoolExecutor(DRAWING_THREADS, "draw")
        self._inbox: asyncio.Queue[TranscribeTask] = asyncio.Queue()
        self._limits = _retry_limits(setup)
        self._room = BudgetRoom()

    async def run(self) -> None:
        """Raises what makes going on impossible, in a group."""
        vlm = self._setup.settings.vlm
        engine = build_vlm_engine(vlm, self._plan)
        reader = VllmMetricsReader(str(vlm.url))
        admission = VlmAdmission(AdaptiveLimit(self._plan.concurrency), CircuitBreaker())
        threading.Thread(
            target=self._receive, args=(asyncio.get_running_loop(),), name="receive", daemon=True
        ).start()
        async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            stack.push_async_callback(engine.close)
            stack.push_async_callback(reader.close)
            group.create_task(watch(reader, admission))
            for _ in range(self._plan.concurrency + PAGES_AHEAD):
                group.create_task(self._serve(engine, admission))

    def _receive(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own, as a connection cannot be awaited."""
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                task: TranscribeTask = self._connection.recv()
                loop.call_soon_threadsafe(self._inbox.put_nowait, task)

    async def _serve(self, engine: VlmEngine, admission: VlmAdmission) -> None:
        while True:
            task = await self._inbox.get()
            escalated = self._store.transcriptions.claim_page(
                task.reading_id, task.page_number, owner=self._owner, lease_s=LEASE_S
            )
            if escalated is None:
                reply: TranscriberReply = PageNotOurs(
                    reading_id=task.reading_id, page_number=task.page_number
                )
            else:
                reply = await self._bring_to_end(task, escalated, engine, admission)
            self._connection.send(reply)

    async def _bring_to_end(
        self, task: TranscribeTask, escalated: EscalatedPage, engine: VlmEngine, admission: VlmAdmission
    ) -> PageTranscribed | PageNotOurs:
        started_s = time.monotonic()
        transcription = PageTranscription(
            page=self._on_its_way(task, escalated),
            plan=self._plan,
            engine=engine,
            admission=admission,
            store=self._store.transcriptions,
            limits=self._limits,
            account=self._setup.account,
            owner=self._owner,
            room=self._room,
        )
        end = self._without_room(escalated.page) or await transcription.run()
        settled = settle_page(
            self._store,
            task,
            escalated.page,
            end,
            owner=self._owner,
            account=self._setup.account,
            elapsed_s=time.monotonic() - started_s,
        )
        self._room.freed()
        return settled

    def _without_room(self, page: Json) -> Transcribed | None:
        """The end of a page whose first call is beyond the budget: it is not even drawn."""
        call = call_estimate(page, self._plan)
        if call is None:
            return None
        reservation = self._setup.account.reservation(
            self._plan.model_id,
            prompt_tokens=call.prompt_tokens.high,
            answer_tokens=call.completion_tokens.high,
            at_s=time.time(),
        )
        try:
            self._store.budgets.require_room(reservation)
        except (BudgetSpent, BudgetUnusable) as error:
            return Transcribed(answer=None, degradation=degradation_of(error), last=None)
        return None

    def _on_its_way(self, task: TranscribeTask, escalated: EscalatedPage) -> PageOnItsWay:
        page = escalated.page
        return PageOnItsWay(
            reading_id=task.reading_id,
            page_number=task.page_number,
            document_id=task.document.document_id,
            calls_before=escalated.calls_before,
            evidence=page_evidence(page),
            reasons=page["triage"]["reasons"],
            first_tier=self._plan.tiers.index(tier_of(page, self._plan)),
            tier_tokens=tuple(visual_tokens_of(page, self._plan, tier) for tier in self._plan.tiers),
            first_max_tokens=answer_room_tokens(page, self._plan),
            draw=partial(self._draw, task, page),
        )

    async def _draw(self, task: TranscribeTask, page: Json, tier: int, turn_deg: int) -> DrawnPage:
        drawn = partial(self._drawn, task, page, self._plan.tiers[tier], turn_deg)
        return await asyncio.get_running_loop().run_in_executor(self._drawing, drawn)

    def _drawn(self, task: TranscribeTask, page: Json, tier: Tier, turn_deg: int) -> DrawnPage:
        """On a drawing thread. Whatever goes wrong there is the page's own failure, but for what no page can do
        without: poppler, and a tier that the server takes."""
        try:
            image = draw_upright(
                self._blobs.path(task.document.document_id),
                task.document,
                page,
                pdf=self._pdf,
                settings=self._setup.settings.rasterise,
                password=task.password,
            )
            sent = sent_part(image, page, further_turn_deg=turn_deg)
            return DrawnPage(
                images=fit_page(sent, self._plan.budget_of(tier), tier),
                ink_share=float(find_letters(image).ink.mean()),
            )
        except (PageFailed, EngineUnavailable, PlanImpossible):
            raise
        except Exception as error:
            log.warning("page_not_drawn", document_id=task.document.document_id, exc_info=True)
            raise PageNotRendered(f"page {task.page_number}: {type(error).__name__}: {error}") from error


def _retry_limits(setup: TranscriberSetup) -> VlmRetryLimits:
    vlm = setup.settings.vlm
    defaults = VlmRetryLimits()
    return VlmRetryLimits(
        answers=vlm.max_answers,
        calls=vlm.max_calls,
        wait_s=vlm.wait_s,
        call_s=vlm.timeout_s,
        temperatures=(setup.plan.sampling.temperature, *defaults.temperatures[1:]),
    )


def _first_of(group: BaseExceptionGroup[DoctriageError]) -> DoctriageError:
    first = group.exceptions[0]
    return first if isinstance(first, DoctriageError) else _first_of(first)
