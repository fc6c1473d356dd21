"""What a page becomes, and what is booked, for every way in which a VLM service can misbehave.

A document has one page for each fault of a group, so that a few runs show them all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from models.page import Route
from models.transcription import DegradedCode, Verdict
from tests.fakes.vlm_script import ChatRequest
from tests.fakes.vlm_server import FakeVlm, Fault
from tests.integration.vlm_runs import (
    LIMITS,
    PLAN,
    VlmBench,
    answer_on,
    assert_books_are_kept,
    attempt_of,
    by_page,
    ends_of,
    fake_vlm,
    nothing_left_behind,
    page_number_of,
)

BAD_ANSWERS = {
    Fault.TRUNCATED: Verdict.TRUNCATED,
    Fault.REPETITION: Verdict.REPETITION,
    Fault.LIE: Verdict.LOST_WORDS,
    Fault.EMPTY: Verdict.EMPTY,
    Fault.CONTENT_NONE: Verdict.EMPTY,
    Fault.REFUSAL: Verdict.REFUSAL,
    Fault.REFUSAL_APART: Verdict.REFUSAL,
    Fault.PROMPT_ECHO: Verdict.PROMPT_ECHO,
    Fault.WRONG_SCRIPT: Verdict.REPETITION,
    Fault.BROKEN_TABLE: Verdict.BROKEN_TABLE,
}
"""Another call may do better. The fake's foreign sentence comes three times over, which is found first."""

REFUSED = {
    Fault.UNAUTHORISED: Verdict.UNAUTHORISED,
    Fault.FORBIDDEN: Verdict.UNAUTHORISED,
    Fault.MODEL_NOT_FOUND: Verdict.MODEL_NOT_FOUND,
    Fault.UNKNOWN_PARAMETER: Verdict.REQUEST_REFUSED,
    Fault.TOO_MANY_IMAGES: Verdict.REQUEST_REFUSED,
    Fault.TOO_NARROW: Verdict.REQUEST_REFUSED,
    Fault.TOO_LONG: Verdict.REQUEST_REFUSED,
    Fault.TOO_LARGE: Verdict.REQUEST_REFUSED,
    Fault.MOVED: Verdict.REQUEST_REFUSED,
    Fault.ECHO: Verdict.REQUEST_REFUSED,
}
"""No call like it will ever be taken."""

HARMLESS = (
    Fault.SLOW,
    Fault.CHAT,
    Fault.FENCE,
    Fault.CONTENT_PARTS,
    Fault.NO_USAGE,
    Fault.ZERO_USAGE,
    Fault.WRONG_BILL,
)

TOLD_AT_ONCE = {
    Fault.RATE_LIMITED: Verdict.RATE_LIMITED,
    Fault.RATE_LIMITED_IN_MS: Verdict.RATE_LIMITED,
    Fault.RATE_LIMITED_UNTIL: Verdict.RATE_LIMITED,
    Fault.RATE_LIMITED_SILENTLY: Verdict.RATE_LIMITED,
    Fault.OVERLOADED: Verdict.OVERLOADED,
    Fault.SERVER_ERROR: Verdict.SERVER_ERROR,
    Fault.BAD_GATEWAY: Verdict.SERVER_ERROR,
    Fault.RESET: Verdict.CONNECTION_LOST,
    Fault.RESET_IN_BODY: Verdict.CONNECTION_LOST,
    Fault.INVALID_JSON: Verdict.BAD_RESPONSE,
    Fault.WEB_PAGE: Verdict.BAD_RESPONSE,
    Fault.NO_CHOICES: Verdict.BAD_RESPONSE,
    Fault.ERROR_IN_SUCCESS: Verdict.BAD_RESPONSE,
}
TIMED_OUT = {Fault.HANG: Verdict.TIMED_OUT, Fault.DRIP: Verdict.TIMED_OUT}
"""These take as long as a call may take."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[VlmBench]:
    with nothing_left_behind():
        yield VlmBench(tmp_path / "bench")


def test_every_fault_that_the_fake_can_play_is_in_the_tables() -> None:
    tables = (BAD_ANSWERS, REFUSED, HARMLESS, TOLD_AT_ONCE, TIMED_OUT)
    shown = [fault for table in tables for fault in table]
    assert sorted([*shown, Fault.CONTENT_FILTERED, Fault.CRASH]) == sorted(Fault)


def test_an_answer_that_stays_bad_and_a_request_that_is_refused_leave_the_page_its_own_text(
    bench: VlmBench,
) -> None:
    faults = dict(enumerate((*BAD_ANSWERS, Fault.CONTENT_FILTERED, *REFUSED, *HARMLESS), 1))
    bench.document(len(faults))
    with fake_vlm(by_page(faults)) as fake:
        report = bench.run(fake.base_url)
    ends, verdicts = ends_of(bench.pages()), bench.verdicts()
    assert {fault: (ends[page], verdicts[page]) for page, fault in faults.items()} == {
        **{fault: ("answers_refused", [verdict] * LIMITS.answers) for fault, verdict in BAD_ANSWERS.items()},
        Fault.CONTENT_FILTERED: ("answers_refused", ["content_filtered"]),
        **{fault: ("vlm_refused", [verdict]) for fault, verdict in REFUSED.items()},
        **{fault: ("vlm", ["accepted"]) for fault in HARMLESS},
    }
    assert_books_are_kept(bench, fake, report, page_count=len(faults))
    assert report.pages_by_degradation == {"answers_refused": 11, "vlm_refused": 10}
    for page in bench.pages():
        if page["degraded"]:
            assert page["text"].startswith(page["lines"][0]["text"])


def test_a_fault_that_passes_costs_a_call_and_not_the_page(bench: VlmBench) -> None:
    passing = {**TOLD_AT_ONCE, **BAD_ANSWERS}
    faults = dict(enumerate(passing, 1))
    bench.document(len(faults))
    with fake_vlm(by_page(faults, calls=1)) as fake:
        report = bench.run(fake.base_url)
    told = bench.verdicts()
    assert {fault: told[page] for page, fault in faults.items()} == {
        fault: [verdict, "accepted"] for fault, verdict in passing.items()
    }
    assert set(ends_of(bench.pages()).values()) == {Route.VLM}
    assert all("# Seen" in page["markdown"] for page in bench.pages())
    assert_books_are_kept(bench, fake, report, page_count=len(faults))


def test_a_service_that_stays_ill_is_left_alone_and_the_pages_keep_their_text(bench: VlmBench) -> None:
    """How many calls a page makes depends on when the breaker opens; none makes more than it may."""
    lasting = {**TOLD_AT_ONCE, **TIMED_OUT}
    faults = dict(enumerate(lasting, 1))
    bench.document(len(faults))
    with fake_vlm(by_page(faults)) as fake:
        report = bench.run(fake.base_url, wait_s=1.5, timeout_s=1)
    verdicts = bench.verdicts()
    for page, fault in faults.items():
        assert set(verdicts.get(page, [])) <= {lasting[fault]}
        assert len(verdicts.get(page, [])) <= LIMITS.calls
    assert sum(map(len, verdicts.values())) >= LIMITS.lost_calls
    assert set(ends_of(bench.pages()).values()) == {DegradedCode.VLM_UNAVAILABLE}
    assert_books_are_kept(bench, fake, report, page_count=len(faults))


def test_a_service_that_hangs_or_dies_under_calls_is_asked_again(bench: VlmBench) -> None:
    faults = {1: Fault.HANG, 2: Fault.DRIP, 4: Fault.CRASH}
    bench.document(6)
    with fake_vlm(by_page(faults, calls=1), down_s=0.5) as fake:
        report = bench.run(fake.base_url, timeout_s=3)
    verdicts = bench.verdicts()
    assert set(ends_of(bench.pages()).values()) == {Route.VLM}
    assert all(told[-1] == "accepted" and told.count("accepted") == 1 for told in verdicts.values())
    assert verdicts[4][0] == Verdict.CONNECTION_LOST
    for page in (1, 2):  # the crash may take them along
        assert verdicts[page][0] in (Verdict.TIMED_OUT, Verdict.CONNECTION_LOST)
    assert_books_are_kept(bench, fake, report, page_count=6)


def odd_answer(request: ChatRequest) -> str:
    """Page 2 is found to lie on its side, as often as it is seen taller than wide; page 5 is full of words for which
    there is no ink."""
    width_px, height_px = request.sizes[0]
    if page_number_of(request) == 2 and height_px > width_px:
        return "---\nlanguage: en\nrotation: 90\nblank: false\n---\n\n[illegible]"
    if page_number_of(request) == 5:
        invented = (hashlib.sha256(bytes([number])).hexdigest()[:16] for number in range(250))
        return f"{answer_on()(request)} {' '.join(invented)}"
    return answer_on()(request)


def requests_about(fake: FakeVlm, page: int) -> list[tuple[tuple[int, int], int, float | None]]:
    """The image's size, the tokens allowed and the temperature of each call about the page, in order."""
    calls = sorted((seen for seen in fake.seen if page_number_of(seen) == page), key=attempt_of)
    return [(seen.sizes[0], seen.max_tokens, seen.temperature) for seen in calls]


def test_each_fault_changes_the_next_call_as_the_ladder_says(bench: VlmBench) -> None:
    faults = {1: Fault.TRUNCATED, 3: Fault.LIE, 4: Fault.WRONG_BILL}
    bench.document(5, height_px=1800)
    with fake_vlm(by_page(faults), answer=odd_answer, wrong_bill_tokens=77) as fake:
        report = bench.run(fake.base_url)
    assert_books_are_kept(bench, fake, report, page_count=5)
    first = PLAN.sampling.temperature

    cut = requests_about(fake, 1)
    assert all(a[0] * a[1] < b[0] * b[1] for (a, _, _), (b, _, _) in pairwise(cut))
    assert [tokens for _, tokens, _ in cut] == [1536, 3072, PLAN.max_output_tokens]
    assert [temperature for _, _, temperature in cut] == [first] * 3
    assert [call.tier for call in bench.booked()[:3]] == [tier.name for tier in PLAN.tiers[:3]]

    (upright, *_), (turned, *_) = requests_about(fake, 2)
    assert upright == turned[::-1]
    assert bench.verdicts()[2] == ["not_upright", "accepted"]

    lied = requests_about(fake, 3)
    assert [temperature for _, _, temperature in lied] == [first, *LIMITS.temperatures[1:]]
    assert len({(size, tokens) for size, tokens, _ in lied}) == 1

    [wrong] = [call for call in bench.booked() if call.page_number == 4]
    [billed] = [seen.billed for seen in fake.seen if page_number_of(seen) == 4]
    assert billed is not None
    assert wrong.prompt_tokens == billed.prompt_tokens + 77
    assert 0 < wrong.predicted_visual_tokens < billed.prompt_tokens

    assert bench.verdicts()[5] == ["invented_text"] * LIMITS.answers
