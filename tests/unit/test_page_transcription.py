"""What counts against a page's patience: the time that an ailing service takes, and not the queue before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from models.budget import BudgetMonth, Level, WhenSpent
from models.errors import (
    BudgetSpent,
    BudgetUnusable,
    DoctriageError,
    VlmError,
    VlmServerError,
    VlmUnauthorised,
    VlmUnreachable,
)
from models.transcription import DegradedCode, FittedImage, TokenUsage, Verdict, VlmReply, VlmRequest
from pipeline.answers.judge import PageEvidence
from pipeline.planning.configured import load_plan
from pipeline.settings import ChargebackSettings, VlmSettings
from pipeline.store import TranscriptionStore
from tests.fakes.virtual_time import now_s, run_in_virtual_time
from workers.accounts import open_account
from workers.adaptive_limit import AdaptiveLimit
from workers.budget_room import LOOK_EVERY_S, BudgetRoom
from workers.circuit_breaker import BreakerLimits, CircuitBreaker
from workers.retry import VlmRetryLimits
from workers.transcription import DrawnPage, PageOnItsWay, PageTranscription, Transcribed
from workers.vlm_admission import VlmAdmission

REPLY = VlmReply(
    text="A page about the harbour.",
    finish_reason="stop",
    usage=TokenUsage(prompt_tokens=500, completion_tokens=6),
    model_id="fake",
    elapsed_s=0.1,
)
ACCOUNT = open_account("harbour", ChargebackSettings(), load_plan(VlmSettings()))
IMAGE = FittedImage(encoded=b"", width_px=280, height_px=280, visual_tokens=100, tier="small")


@dataclass(slots=True)
class Engine:
    """Fails with ``errors`` in turn, then answers; for ever where ``is_down``."""

    errors: list[VlmError] = field(default_factory=list)
    is_down: bool = False
    model_id: str = "fake"
    reply: VlmReply = REPLY

    async def transcribe(self, request: VlmRequest) -> VlmReply:
        if self.is_down:
            raise VlmUnreachable("no connection; start it")
        if self.errors:
            raise self.errors.pop(0)
        return self.reply

    async def close(self) -> None:
        pass


@dataclass(slots=True)
class Books:
    """``refusals`` are raised in turn before a call is opened; ``is_taken``: the page went to another."""

    opened: list[Any] = field(default_factory=list)
    closed: list[Any] = field(default_factory=list)
    refusals: list[DoctriageError] = field(default_factory=list)
    is_taken: bool = False

    def open_call(self, call: Any, *, owner: str, currency: str) -> bool:
        if self.refusals:
            raise self.refusals.pop(0)
        if not self.is_taken:
            self.opened.append(call)
        return not self.is_taken

    def close_call(self, closed: Any) -> None:
        self.closed.append(closed)


async def drawn(tier: int, turn_deg: int) -> DrawnPage:
    return DrawnPage(images=(IMAGE,), ink_share=0.1)


def transcription(
    engine: Engine,
    admission: VlmAdmission,
    books: Books,
    *,
    wait_s: float = 1.0,
    tier_tokens: tuple[int, ...] = (640, 1_000, 1_536, 2_240),
) -> PageTranscription:
    page = PageOnItsWay(
        reading_id=1,
        page_number=1,
        document_id="d" * 64,
        calls_before=0,
        evidence=PageEvidence(
            lines=(), ink_share=None, language=None, max_tokens=0, has_visual_elements=False
        ),
        reasons=(),
        first_tier=0,
        tier_tokens=tier_tokens,
        first_max_tokens=1_000,
        draw=drawn,
    )
    return PageTranscription(
        page=page,
        plan=load_plan(VlmSettings()),
        engine=engine,
        admission=admission,
        store=cast(TranscriptionStore, books),
        limits=VlmRetryLimits(wait_s=wait_s, first_backoff_s=0.01, longest_backoff_s=0.01),
        account=ACCOUNT,
        owner="vlm",
        room=BudgetRoom(),
    )


async def behind_another_call(engine: Engine, books: Books, *, busy_s: float, wait_s: float) -> Transcribed:
    admission = VlmAdmission(AdaptiveLimit(1), CircuitBreaker())
    async with admission.slot():
        page = asyncio.create_task(transcription(engine, admission, books, wait_s=wait_s).run())
        await asyncio.sleep(busy_s)
    return await page


def test_waiting_behind_other_calls_uses_up_no_patience_and_is_not_booked() -> None:
    books = Books()
    engine = Engine(errors=[VlmServerError("died; see its log")])
    end = asyncio.run(behind_another_call(engine, books, busy_s=2.0, wait_s=1.5))
    assert end.answer is not None
    assert end.last is not None
    [failed] = books.closed
    assert failed.outcome.verdict is Verdict.SERVER_ERROR
    assert failed.outcome.elapsed_s < 2.0
    assert (failed.entry.payer, failed.entry.is_wasted) == (ACCOUNT.payer, True)


def test_waiting_while_the_service_is_ill_uses_up_the_patience_of_all_calls_together() -> None:
    """The breaker opens for 5 s after five calls, then for 10 s: the sixth call is the last that 8 s allow."""
    books, ended_s = Books(), 0.0

    async def ask() -> Transcribed:
        nonlocal ended_s
        clock: Callable[[], float] = asyncio.get_running_loop().time
        breaker = CircuitBreaker(BreakerLimits(), clock=clock, jitter=lambda: 0.0)
        admission = VlmAdmission(AdaptiveLimit(1), breaker, clock=clock)
        end = await transcription(Engine(is_down=True), admission, books, wait_s=8.0).run()
        ended_s = now_s()
        return end

    end = run_in_virtual_time(ask())
    assert end.degradation is not None
    assert end.degradation.code is DegradedCode.VLM_UNAVAILABLE
    assert [closed.outcome.verdict for closed in books.closed] == [Verdict.UNREACHABLE] * 6
    assert len(books.opened) == 6
    assert ended_s <= 8.5


def test_an_answer_on_which_the_judging_fails_is_booked_and_costs_its_own_page_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("workers.transcription.judge_answer", fails)
    books = Books()
    admission = VlmAdmission(AdaptiveLimit(1), CircuitBreaker())
    end = asyncio.run(transcription(Engine(), admission, books, wait_s=1.0).run())
    assert end.answer is None
    assert end.degradation is not None
    assert "could not be judged (RecursionError: too deep)" in end.degradation.message
    outcomes = [*(closed.outcome for closed in books.closed), end.last[1]]
    assert {outcome.verdict for outcome in outcomes} == {Verdict.BAD_RESPONSE}
    assert {outcome.usage.prompt_tokens for outcome in outcomes} == {500}
    assert len(books.opened) == len(outcomes) == VlmRetryLimits().lost_calls


# Budgets


def no_room(
    spent: int = 0, reserved: int = 900, *, when_spent: WhenSpent = WhenSpent.DEGRADE, fits: bool = True
) -> BudgetSpent:
    budget = BudgetMonth(
        cost_centre="harbour",
        month="2026-11",
        money=None,
        currency=None,
        tokens=Level(limit=1_000, spent=spent, reserved=reserved),
        warn_percent=80,
        when_spent=when_spent,
    )
    return BudgetSpent("no room", budget, fits_once_calls_end=fits)


def asked_in_virtual_time(books: Books) -> tuple[Transcribed, float]:
    """How it ends with a service that refuses every call, and after how many seconds."""

    async def ask() -> tuple[Transcribed, float]:
        clock: Callable[[], float] = asyncio.get_running_loop().time
        admission = VlmAdmission(AdaptiveLimit(1), CircuitBreaker(clock=clock), clock=clock)
        engine = Engine(errors=[VlmUnauthorised("a wrong key")])
        end = await transcription(engine, admission, books).run()
        assert admission.in_flight == 0
        return end, now_s()

    return run_in_virtual_time(ask())


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (no_room(fits=False), DegradedCode.BUDGET_SPENT),
        (no_room(fits=False, when_spent=WhenSpent.REJECT), DegradedCode.BUDGET_SPENT),
        (no_room(fits=False, when_spent=WhenSpent.HOLD), DegradedCode.BUDGET_HELD),
        (BudgetUnusable("no price"), DegradedCode.BUDGET_HELD),
    ],
)
def test_a_page_without_room_in_the_budget_is_not_sent_and_says_why(
    refusal: BudgetSpent | BudgetUnusable, code: DegradedCode
) -> None:
    books = Books(refusals=[refusal])
    end, ended_s = asked_in_virtual_time(books)
    assert end.degradation is not None
    assert (end.degradation.code, end.degradation.message) == (code, str(refusal))
    assert (end.last, books.opened, ended_s) == (None, [], 0.0)


def test_a_page_waits_for_calls_under_way_as_long_as_the_budget_changes() -> None:
    """Each time that it looks, calls of others have cost a little more."""
    books = Books(refusals=[no_room(spent) for spent in range(200)])
    end, ended_s = asked_in_virtual_time(books)
    assert end.last is not None
    assert end.last[1].verdict is Verdict.UNAUTHORISED
    assert ended_s == 200 * LOOK_EVERY_S


def test_a_page_whose_budget_stands_still_waits_as_long_as_a_call_may_take() -> None:
    books = Books(refusals=[no_room() for _ in range(1_000)])
    end, ended_s = asked_in_virtual_time(books)
    assert end.degradation is not None
    assert end.degradation.code is DegradedCode.BUDGET_SPENT
    assert ended_s == VlmRetryLimits().call_s


def test_a_call_that_is_closed_lets_one_page_look_again_at_once() -> None:
    async def wait() -> list[float]:
        room = BudgetRoom()
        waiting = [asyncio.create_task(room.wait()) for _ in range(3)]
        await asyncio.sleep(1.0)
        room.freed()
        ended_s = []
        for task in waiting:
            await task
            ended_s.append(now_s())
        room.freed()
        return ended_s

    assert run_in_virtual_time(wait()) == [1.0, LOOK_EVERY_S, LOOK_EVERY_S]


def test_a_page_that_another_took_is_not_sent() -> None:
    books = Books(is_taken=True)
    end, _ = asked_in_virtual_time(books)
    assert end.answer is None
    assert (end.last, books.opened) == (None, [])


@pytest.mark.parametrize(("tier_tokens", "calls"), [((640, 700, 700, 700), 2), ((640, 640, 640, 640), 1)])
def test_a_page_that_the_model_cannot_read_is_sent_again_only_where_it_is_larger(
    tier_tokens: tuple[int, ...], calls: int
) -> None:
    illegible = replace(REPLY, text="[illegible] [illegible] of the [illegible]")
    books = Books()
    admission = VlmAdmission(AdaptiveLimit(1), CircuitBreaker())
    page = transcription(Engine(reply=illegible), admission, books, tier_tokens=tier_tokens)
    end = asyncio.run(page.run())
    assert end.degradation is not None
    assert end.degradation.code is DegradedCode.ANSWERS_REFUSED
    assert len(books.opened) == calls
