"""One page and the VLM: call, judge, book, and call again as ``workers.retry`` decides, until the page has its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from models.errors import BudgetSpent, BudgetUnusable, PageFailed, VlmError, VlmWaitedOut
from models.transcription import (
    Degradation,
    DegradedCode,
    FittedImage,
    Judgement,
    PageAnswer,
    Verdict,
    VlmReply,
    VlmRequest,
)
from pipeline.answers.judge import PageEvidence, judge_answer
from pipeline.answers.parse import parse_answer
from pipeline.answers.prompt import estimated_prompt_tokens
from pipeline.chargeback.entries import Account, Json
from pipeline.planning.serving_plan import ServingPlan
from pipeline.ports import VlmEngine
from pipeline.store import Call, CallOutcome, TranscriptionStore
from workers.budget_room import BudgetRoom, degradation_of
from workers.call_outcomes import closed_call, outcome_of_error, outcome_of_reply, outcome_of_unjudged
from workers.retry import NextCall, VlmRetry, VlmRetryLimits, verdict_of, vlm_retry_decision
from workers.vlm_admission import VlmAdmission

REFUSED: Final = frozenset({Verdict.REQUEST_REFUSED, Verdict.UNAUTHORISED, Verdict.MODEL_NOT_FOUND})

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPage:
    """The page as it is sent, and how much of the whole page, margins and all, is inked."""

    images: tuple[FittedImage, ...]
    ink_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOnItsWay:
    """What is known of the page beforehand. ``draw`` draws it, turned by a further clockwise quarter turn and fitted
    to the tier with this number, and raises ``PageFailed``. ``first_tier`` is the one that triage counted with,
    ``tier_tokens`` the visual tokens that the page takes in each: as many in two of them is the same image.
    ``reasons`` are those of its triage, as its JSON has them.
    ``evidence`` is complete but for the ink, which is measured on the drawing, and the tokens of a call."""

    reading_id: int
    page_number: int
    document_id: str
    calls_before: int
    evidence: PageEvidence
    reasons: Sequence[Json]
    first_tier: int
    tier_tokens: tuple[int, ...]
    first_max_tokens: int
    draw: Callable[[int, int], Awaitable[DrawnPage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How a call is made: rung of the ladder."""

    tier: int
    max_tokens: int
    temperature: float
    turn_deg: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcribed:
    """The end of a page: an ``answer``, or why there is none. ``last`` is the last call, still to be closed with
    the page itself."""

    answer: PageAnswer | None
    degradation: Degradation | None
    last: tuple[Call, CallOutcome] | None


class PageTaken(Exception):
    """Another process answers for the page now."""


@dataclass(slots=True, eq=False)
class PageTranscription:
    """``run`` brings one page, which ``owner`` holds, to its end. Every call is booked before it is made, at the most
    that it may cost: without room for that in the budget it is not made. ``room`` is where pages wait that have none
    for as long as other calls are under way.

    ``_lost_s`` is what the page has lost to an ailing service: calls without an answer, the pauses between, and the
    time that it waited for its turn while the service was ill. Waiting behind other calls is no loss.
    """

    page: PageOnItsWay
    plan: ServingPlan
    engine: VlmEngine
    admission: VlmAdmission
    store: TranscriptionStore
    limits: VlmRetryLimits
    account: Account
    owner: str
    room: BudgetRoom
    _verdicts: list[Verdict] = field(default_factory=list)
    _lost_s: float = 0.0
    _call: Call | None = None
    _call_started_s: float = 0.0
    _last: tuple[Call, CallOutcome] | None = None

    async def run(self) -> Transcribed:
        step = Step(
            tier=self.page.first_tier,
            max_tokens=self.page.first_max_tokens,
            temperature=self.limits.temperatures[0],
        )
        drawn: DrawnPage | None = None
        while True:
            try:
                drawn = drawn or await self.page.draw(step.tier, step.turn_deg)
                self._require_few(drawn.images)
            except PageFailed as failure:
                return self._degraded(DegradedCode.PAGE_NOT_SENT, str(failure))
            try:
                answer, judgement, retry_after_s = await self._ask(step, drawn)
            except VlmWaitedOut as error:
                return self._degraded(DegradedCode.VLM_UNAVAILABLE, str(error))
            except (BudgetSpent, BudgetUnusable) as error:
                return Transcribed(answer=None, degradation=degradation_of(error), last=None)
            except PageTaken:
                return self._degraded(DegradedCode.AWAITING_VLM, "another process answers for the page")
            if answer is not None and judgement.verdict is Verdict.ACCEPTED:
                return Transcribed(answer=answer, degradation=None, last=self._last)
            retry = self._retry(step, retry_after_s)
            if retry is None:
                return self._given_up()
            await self._pause(retry.delay_s)
            following = _next_step(step, retry, answer, self.plan)
            if (following.tier, following.turn_deg) != (step.tier, step.turn_deg):
                drawn = None
            step = following

    async def _ask(self, step: Step, drawn: DrawnPage) -> tuple[PageAnswer | None, Judgement, float | None]:
        """Make one call; its answer where one came, its verdict, and the seconds the server asked us to wait."""
        self._book_last()
        try:
            reply = await self._once_there_is_room(step, drawn.images)
        except VlmWaitedOut:
            raise
        except VlmError as error:
            elapsed_s = time.monotonic() - self._call_started_s
            self._lost_s += elapsed_s
            self._note(outcome_of_error(self._opened, error, elapsed_s))
            return None, Judgement(verdict=verdict_of(error)), error.retry_after_s
        evidence = replace(self.page.evidence, max_tokens=step.max_tokens, ink_share=drawn.ink_share)
        try:
            answer, judgement = await asyncio.to_thread(_judged, reply, evidence)
        except Exception as error:  # an answer nobody foresaw is no reason to lose the others
            log.warning("answer_not_judged", request_id=self._opened.request_id, exc_info=True)
            self._note(outcome_of_unjudged(self._opened, reply, error))
            return None, Judgement(verdict=Verdict.BAD_RESPONSE), None
        self._note(outcome_of_reply(self._opened, reply, judgement))
        return answer, judgement, None

    async def _once_there_is_room(self, step: Step, images: tuple[FittedImage, ...]) -> VlmReply:
        """Calls under way reserve more than they cost in the end: while the budget changes, the page waits for them.
        Raises ``BudgetSpent`` where no end of theirs makes room, or nothing has changed for as long as a call takes."""
        clock = asyncio.get_running_loop().time
        stood, since_s = None, clock()
        while True:
            try:
                return await self._admitted(step, images)
            except BudgetSpent as error:
                if error.budget != stood:
                    stood, since_s = error.budget, clock()
                is_stuck = clock() - since_s >= self.limits.call_s
                if is_stuck or not error.fits_once_calls_end:
                    raise
            await self.room.wait()

    async def _admitted(self, step: Step, images: tuple[FittedImage, ...]) -> VlmReply:
        """Waits for its turn, and with what is left of the page's patience while the service is ill."""
        left_s = max(0.0, self.limits.wait_s - self._lost_s)
        ill_before_s = self.admission.ill_s()
        async with self.admission.slot(wait_s=left_s):
            self._lost_s += self.admission.ill_s() - ill_before_s
            self._open(self._new_call(step, images))
            request = VlmRequest(
                request_id=self._opened.request_id,
                images=images,
                temperature=step.temperature,
                max_tokens=step.max_tokens,
            )
            return await self.engine.transcribe(request)

    async def _pause(self, delay_s: float) -> None:
        self._lost_s += delay_s
        if delay_s:
            await asyncio.sleep(delay_s)

    # Booking

    def _new_call(self, step: Step, images: tuple[FittedImage, ...]) -> Call:
        attempt = self.page.calls_before + len(self._verdicts) + 1
        first, payer = images[0], self.account.payer
        visual_tokens = sum(image.visual_tokens for image in images)
        started_at_s = time.time()
        reservation = self.account.reservation(
            self.engine.model_id,
            prompt_tokens=visual_tokens + self.plan.text_tokens,
            answer_tokens=step.max_tokens,
            at_s=started_at_s,
        )
        return Call(
            reading_id=self.page.reading_id,
            page_number=self.page.page_number,
            attempt=attempt,
            submission_id=payer.submission_id,
            cost_centre=payer.cost_centre,
            request_id=f"{self.page.document_id[:16]}/{self.page.reading_id}/{self.page.page_number}/{attempt}",
            model_id=self.engine.model_id,
            tier=first.tier,
            width_px=first.width_px,
            height_px=first.height_px,
            predicted_visual_tokens=visual_tokens,
            predicted_prompt_tokens=visual_tokens + self._text_tokens(len(images)),
            temperature=step.temperature,
            started_at_s=started_at_s,
            reserved_tokens=reservation.most.tokens,
            reserved_micro=reservation.most.micro,
        )

    def _open(self, call: Call) -> None:
        if not self.store.open_call(call, owner=self.owner, currency=self.account.price_book.currency):
            raise PageTaken
        self._call = call
        self._call_started_s = time.monotonic()

    @property
    def _opened(self) -> Call:
        assert self._call is not None
        return self._call

    def _note(self, outcome: CallOutcome) -> None:
        call = self._opened
        self._verdicts.append(outcome.verdict)
        self._last = (call, outcome)
        log.info(
            "vlm_call",
            document_id=self.page.document_id,
            page_number=self.page.page_number,
            attempt=call.attempt,
            verdict=str(outcome.verdict),
            predicted_visual_tokens=call.predicted_visual_tokens,
            prompt_tokens=outcome.usage.prompt_tokens,
            elapsed_s=round(outcome.elapsed_s, 3),
        )

    def _book_last(self) -> None:
        """Close the call before the next one is made; the last of all is closed with the page."""
        if self._last is not None:
            call, outcome = self._last
            self.store.close_call(
                closed_call(
                    self.account,
                    call,
                    outcome,
                    document_id=self.page.document_id,
                    reasons=self.page.reasons,
                    route=None,
                )
            )
            self._last = None
            self.room.freed()

    def _text_tokens(self, image_count: int) -> int:
        return min(self.plan.text_tokens, estimated_prompt_tokens(image_count))

    # Deciding

    def _require_few(self, images: tuple[FittedImage, ...]) -> None:
        most = self.plan.max_images_per_prompt
        if len(images) > most:
            raise PageFailed(
                f"page {self.page.page_number}: so long and narrow that it takes {len(images)} images, and the plan "
                f"allows {most} a prompt; plan with --pages-per-prompt {len(images)}"
            )

    def _retry(self, step: Step, retry_after_s: float | None) -> VlmRetry | None:
        can_enlarge = max(self.page.tier_tokens) > self.page.tier_tokens[step.tier]
        if self._verdicts[-1] is Verdict.TRUNCATED:
            can_enlarge = can_enlarge or step.max_tokens < self.plan.max_output_tokens
        return vlm_retry_decision(
            self._verdicts,
            self.limits,
            retry_after_s=retry_after_s,
            waited_s=self._lost_s,
            can_enlarge=can_enlarge,
        )

    def _given_up(self) -> Transcribed:
        assert self._last is not None
        outcome = self._last[1]
        told = ", ".join(str(verdict) for verdict in self._verdicts)
        if outcome.verdict in REFUSED:
            return self._degraded(DegradedCode.VLM_REFUSED, outcome.message or told)
        if outcome.message is not None:
            return self._degraded(DegradedCode.VLM_UNAVAILABLE, f"{outcome.message} (calls: {told})")
        return self._degraded(
            DegradedCode.ANSWERS_REFUSED, f"no answer was a transcript of the page (calls: {told})"
        )

    def _degraded(self, code: DegradedCode, message: str) -> Transcribed:
        return Transcribed(answer=None, degradation=Degradation(code=code, message=message), last=self._last)


def _judged(reply: VlmReply, evidence: PageEvidence) -> tuple[PageAnswer, Judgement]:
    """Off the event loop: a long answer takes a while."""
    answer = parse_answer(reply.text)
    return answer, judge_answer(reply, answer, evidence)


def _next_step(step: Step, retry: VlmRetry, answer: PageAnswer | None, plan: ServingPlan) -> Step:
    changed = replace(step, temperature=retry.temperature)
    match retry.change:
        case NextCall.LARGER:
            return replace(
                changed,
                tier=min(step.tier + 1, len(plan.tiers) - 1),
                max_tokens=min(2 * step.max_tokens, plan.max_output_tokens),
            )
        case NextCall.UPRIGHT:
            turn_deg = 0 if answer is None or answer.rotation_deg is None else answer.rotation_deg
            return replace(changed, turn_deg=(step.turn_deg + turn_deg) % 360)
        case NextCall.WARMER | NextCall.SAME:
            return changed
