"""What pages come to before they are sent: tokens, costs with their two ends, and the other ways to read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from models.page import Route
from pipeline.chargeback.call_estimate import Estimate, call_estimate, largest_call, mean_call
from pipeline.chargeback.price_book import UnitPrices
from pipeline.chargeback.quote import Quote, QuotedDocument, QuoteTerms, make_quote, over_all_pages
from pipeline.chargeback.quote_pages import Way, quoted_page, unread_page
from pipeline.planning.configured import load_plan
from pipeline.settings import VlmSettings
from tests.unit.chargeback.quoted import PRICES, call, document, page

PLAN = load_plan(VlmSettings())
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def page_json(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "page_number": 3,
        "route": "ocr_degraded",
        "text": "x" * 900,
        "width_px": 1654,
        "height_px": 2339,
        "rotation_deg": 0,
        "skew_deg": 0.0,
        "signals": [],
    }
    return values | changes


def quoted(*documents: QuotedDocument, prices: UnitPrices = PRICES) -> Quote:
    terms = QuoteTerms(cost_centre="team", model_id="model", prices=prices, begun_at=NOON, when=NOON)
    return make_quote(documents, (), terms, spread_over=over_all_pages(documents))


def test_a_call_s_image_is_exact_its_text_a_range_and_its_answer_ends_where_its_room_does() -> None:
    estimate = call_estimate(page_json(), PLAN)
    assert estimate is not None
    assert estimate.visual_tokens == 2_240
    assert estimate.completion_tokens == Estimate(low=150, about=300, high=1_536)
    assert estimate.text_tokens.low < estimate.text_tokens.about < estimate.text_tokens.high
    assert estimate.text_tokens.high == PLAN.text_tokens
    assert estimate.prompt_tokens.high == 2_240 + PLAN.text_tokens


@pytest.mark.parametrize(("characters", "room"), [(0, 1_536), (4_000, 3_000), (50_000, 4_096)])
def test_no_answer_is_expected_to_outgrow_its_room(characters: int, room: int) -> None:
    estimate = call_estimate(page_json(text="x" * characters), PLAN)
    assert estimate is not None
    assert estimate.completion_tokens.high == room
    assert estimate.completion_tokens.low <= estimate.completion_tokens.about <= room
    assert room <= estimate.again_completion_tokens <= PLAN.max_output_tokens


def test_a_second_call_may_send_a_larger_image() -> None:
    signals = [{"name": "text_height_px", "measured": 60.0}]
    estimate = call_estimate(page_json(signals=signals), PLAN)
    assert estimate is not None
    assert estimate.visual_tokens <= 640
    assert 640 < estimate.again_prompt_tokens - PLAN.text_tokens <= 1_024


@pytest.mark.parametrize("nothing", [{"route": "blank"}, {"width_px": 20, "height_px": 9_000}])
def test_a_blank_page_and_one_too_long_for_a_prompt_take_no_call(nothing: dict[str, Any]) -> None:
    assert call_estimate(page_json(**nothing), PLAN) is None


def test_the_mean_of_calls_has_their_mean_numbers() -> None:
    mean = mean_call([call(1_000), call(1_001), call(1_005)])
    assert mean == replace(call(), visual_tokens=1_002)
    assert largest_call(PLAN).visual_tokens == PLAN.tiers[-1].visual_tokens


def test_a_page_that_waits_for_the_vlm_is_due_and_one_that_came_to_its_end_is_not() -> None:
    due = quoted_page(page_json(), PLAN, is_final=False, was_read=True)
    assert (due.route, due.is_due, due.was_read) == (Route.VLM, True, True)
    refused = quoted_page(page_json(), PLAN, is_final=True, was_read=True)
    assert (refused.route, refused.is_due) == (Route.OCR_DEGRADED, False)
    endless = quoted_page(page_json(width_px=20, height_px=9_000), PLAN, is_final=False, was_read=False)
    assert (endless.route, endless.is_due) == (Route.OCR_DEGRADED, False)


def test_a_page_costs_what_its_call_takes_and_the_upper_end_calls_one_in_ten_again() -> None:
    triaged = quoted(document("a", page(1))).ways[Way.TRIAGED]
    assert triaged.visual_tokens == Estimate.exactly(1_000)
    assert triaged.prompt_tokens == Estimate(low=1_200, about=1_300, high=1_500 + 250)
    assert triaged.completion_tokens == Estimate(low=100, about=200, high=1_500 + 300)
    low = 1_000 + 200 // 2 + 4 * 100
    high = 1_500 + 4 * 1_500 + (2_500 + 4 * 3_000) // 10
    assert triaged.vlm_micro == Estimate(low=low, about=1_300 + 800, high=high)
    assert triaged.cpu_micro == Estimate.exactly(30)
    assert triaged.total_micro == Estimate(low=low + 30, about=2_130, high=high + 30)


def test_each_way_of_reading_has_its_price() -> None:
    pages = [page(1), page(2, Route.OCR), page(3, Route.TEXT_LAYER), page(4, Route.BLANK), unread_page(5)]
    quote = quoted(document("a", *pages))
    calls = {way: totals.calls.about for way, totals in quote.ways.items()}
    assert calls == {Way.TRIAGED: 1, Way.ALL_VLM: 3, Way.ALL_CPU: 0}
    cpu = {totals.cpu_micro for totals in quote.ways.values()}
    assert cpu == {Estimate.exactly(5 * 30)}
    assert quote.ways[Way.ALL_CPU].total_micro == Estimate.exactly(5 * 30)
    counts = {name: estimate.about for name, estimate in quote.pages_by_route.items() if estimate.about}
    assert counts == {"vlm": 1, "ocr": 1, "text_layer": 1, "blank": 1, "failed": 1}


def test_what_an_earlier_run_paid_for_costs_nothing_again() -> None:
    seen = page(1, Route.VLM, is_due=False, was_read=True)
    waiting = page(2, Route.VLM, was_read=True)
    read = page(3, Route.OCR, was_read=True)
    ways = quoted(document("a", seen, waiting, read)).ways
    assert {totals.cpu_pages.about for totals in ways.values()} == {0}
    assert (ways[Way.TRIAGED].calls.about, ways[Way.ALL_VLM].calls.about) == (1, 2)
    assert quoted(document("a", seen)).ways[Way.ALL_VLM].total_micro == Estimate.exactly(0)


def test_equal_numbers_of_pages_add_up() -> None:
    one = quoted(document("a", page(1)), document("b", page(1), page(2, Route.OCR)))
    assert one.page_count == 3
    assert one.ways[Way.TRIAGED].visual_tokens == Estimate.exactly(2_000)


@pytest.mark.parametrize("missing", ["prompt_micro_per_million", "completion_micro_per_million"])
def test_a_model_without_a_price_is_unpriced_and_not_free(missing: str) -> None:
    prices = replace(PRICES, **{missing: None})
    ways = quoted(document("a", page(1), page(2, Route.OCR)), prices=prices).ways
    assert (ways[Way.TRIAGED].vlm_micro, ways[Way.TRIAGED].total_micro) == (None, None)
    assert ways[Way.TRIAGED].cpu_micro == Estimate.exactly(60)
    assert ways[Way.TRIAGED].visual_tokens == Estimate.exactly(1_000)
    assert ways[Way.ALL_CPU].total_micro == Estimate.exactly(60)
    without_need = quoted(document("a", page(1, Route.OCR)), prices=prices).ways
    assert without_need[Way.TRIAGED].total_micro == Estimate.exactly(30)


def test_cpu_pages_without_a_price_are_unpriced() -> None:
    ways = quoted(document("a", page(1)), prices=replace(PRICES, cpu_page_micro_per_million=None)).ways
    assert (ways[Way.TRIAGED].cpu_micro, ways[Way.TRIAGED].total_micro) == (None, None)
    assert ways[Way.TRIAGED].vlm_micro is not None


def test_nothing_costs_nothing() -> None:
    quote = quoted()
    assert quote.page_count == 0
    assert quote.ways[Way.TRIAGED].total_micro == Estimate.exactly(0)
