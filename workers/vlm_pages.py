"""An escalated page that this process has claimed, brought to its end with the VLM; the end goes to the database."""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import structlog
from PIL import Image

from models.errors import (
    BudgetSpent,
    BudgetUnusable,
    EngineUnavailable,
    PageFailed,
    PageNotRendered,
    PlanImpossible,
    StoreUnavailable,
)
from pipeline.blobs import BlobStore
from pipeline.chargeback.call_estimate import call_estimate
from pipeline.chargeback.entries import Account
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
from pipeline.planning.serving_plan import ServingPlan
from pipeline.ports import VlmEngine
from pipeline.settings import Settings, VlmSettings
from pipeline.store import EscalatedPage, Store
from workers.bootstrap import build_pdf_engine
from workers.budget_room import BudgetRoom, degradation_of
from workers.messages import PageNotOurs, PageTranscribed, TranscribeTask
from workers.retry import VlmRetryLimits
from workers.transcription import DrawnPage, PageOnItsWay, PageTranscription, Transcribed
from workers.vlm_admission import VlmAdmission
from workers.vlm_settlement import settle_page

DRAWING_THREADS: Final = max(1, min(8, len(os.sched_getaffinity(0))))
"""Poppler draws in processes of its own, Pillow and OpenCV let other threads run, and pdfium has its lock. A page
takes 0.4 s of a core, and while it is drawn up to 200 MB."""

log = structlog.get_logger()


class VlmPages:
    """For the pages of one event loop, as many at a time as the caller likes: ``admission`` bounds the calls.
    ``owner`` is the name that the leases of the pages bear."""

    def __init__(
        self,
        *,
        settings: Settings,
        plan: ServingPlan,
        store: Store,
        blobs: BlobStore,
        owner: str,
        engine: VlmEngine,
        admission: VlmAdmission,
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._store = store
        self._blobs = blobs
        self._owner = owner
        self._engine = engine
        self._admission = admission
        self._pdf = build_pdf_engine()
        self._drawing = ThreadPoolExecutor(DRAWING_THREADS, "draw")
        self._limits = _retry_limits(settings.vlm, plan)
        self._room = BudgetRoom()

    async def bring_to_end(
        self, task: TranscribeTask, escalated: EscalatedPage, account: Account
    ) -> PageTranscribed | PageNotOurs:
        """Take a page that ``owner`` holds to its final result, at the expense of ``account``, and complete its reading
        if it is the last. Raises what no page can do without: ``EngineUnavailable``, ``PlanImpossible`` and
        ``StoreUnavailable``."""
        started_s = time.monotonic()
        transcription = PageTranscription(
            page=self._on_its_way(task, escalated),
            plan=self._plan,
            engine=self._engine,
            admission=self._admission,
            store=self._store.transcriptions,
            limits=self._limits,
            account=account,
            owner=self._owner,
            room=self._room,
        )
        end = self._without_room(escalated.page, account) or await transcription.run()
        settled = settle_page(
            self._store,
            task,
            escalated.page,
            end,
            owner=self._owner,
            account=account,
            elapsed_s=time.monotonic() - started_s,
        )
        self._room.freed()
        return settled

    def _without_room(self, page: Json, account: Account) -> Transcribed | None:
        """The end of a page whose first call is beyond the budget: it is not even drawn."""
        call = call_estimate(page, self._plan)
        if call is None:
            return None
        reservation = account.reservation(
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

    def _upright(self, task: TranscribeTask, page: Json) -> Image.Image:
        with self._blobs.lent(task.document.document_id) as path:
            return draw_upright(
                path,
                task.document,
                page,
                pdf=self._pdf,
                settings=self._settings.rasterise,
                password=task.password,
            )

    def _drawn(self, task: TranscribeTask, page: Json, tier: Tier, turn_deg: int) -> DrawnPage:
        """On a drawing thread. Whatever goes wrong there is the page's own failure, but for what no page can do
        without: poppler, the document's bytes, and a tier that the server takes."""
        try:
            image = self._upright(task, page)
            sent = sent_part(image, page, further_turn_deg=turn_deg)
            return DrawnPage(
                images=fit_page(sent, self._plan.budget_of(tier), tier),
                ink_share=float(find_letters(image).ink.mean()),
            )
        except (PageFailed, EngineUnavailable, PlanImpossible, StoreUnavailable):
            raise
        except Exception as error:
            log.warning("page_not_drawn", document_id=task.document.document_id, exc_info=True)
            raise PageNotRendered(f"page {task.page_number}: {type(error).__name__}: {error}") from error


def _retry_limits(vlm: VlmSettings, plan: ServingPlan) -> VlmRetryLimits:
    defaults = VlmRetryLimits()
    return VlmRetryLimits(
        answers=vlm.max_answers,
        calls=vlm.max_calls,
        wait_s=vlm.wait_s,
        call_s=vlm.timeout_s,
        temperatures=(plan.sampling.temperature, *defaults.temperatures[1:]),
    )
