"""A quote beside entries of the ledger: what is told of each page, and of all together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from models.page import Route
from pipeline.chargeback.call_estimate import Estimate
from pipeline.chargeback.quote import QuotedDocument, QuoteTerms, make_quote, over_all_pages
from pipeline.chargeback.quote_comparison import Compared, Comparison, DifferingPage, compare
from pipeline.chargeback.quote_file import saved
from pipeline.chargeback.quote_pages import unread_page
from pipeline.chargeback.saved_quote import SavedQuote
from tests.unit.chargeback.quoted import NAME, PRICES, called, document, page, read

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def quote_of(*documents: QuotedDocument) -> SavedQuote:
    terms = QuoteTerms(cost_centre="team", model_id="seven", prices=PRICES, begun_at=NOON, when=NOON)
    return saved(make_quote(documents, (), terms, spread_over=over_all_pages(documents)))


QUOTE = quote_of(document(NAME, page(1), page(2), page(3, Route.OCR), page(4, Route.BLANK), unread_page(5)))


CPU = (read(1), read(2), read(3, "ocr"), read(4, "blank"), read(5, is_wasted=True))


def billed(comparison: Comparison) -> dict[str, int | None]:
    rows = {**comparison.pages, **comparison.tokens, **comparison.costs}
    return {name: row.billed for name, row in rows.items() if row.billed != 0}


def test_a_run_that_went_as_quoted_differs_nowhere() -> None:
    comparison = compare(QUOTE, (*CPU, called(1), called(2)))
    assert (comparison.differing, comparison.waiting) == ((), ())
    assert billed(comparison) == {
        "ocr": 1,
        "blank": 1,
        "vlm": 2,
        "failed": 1,
        "cpu_pages": 5,
        "calls": 2,
        "visual_tokens": 2_000,
        "prompt_tokens": 2_600,
        "completion_tokens": 400,
        "cpu_micro": 150,
        "vlm_micro": 4_200,
        "total_micro": 4_350,
    }
    rows = (*comparison.pages.values(), *comparison.tokens.values(), *comparison.costs.values())
    assert all(row.is_within for row in rows)
    assert {row.difference for row in rows} == {Decimal(0), None}


def test_a_page_of_another_size_and_one_that_was_not_quoted_are_named() -> None:
    comparison = compare(QUOTE, (*CPU, called(1, tokens=640), called(2), called(3)))
    assert comparison.differing == (
        DifferingPage(source=f"{NAME}.pdf", page_number=1, quoted_tokens=1_000, billed_tokens=640),
        DifferingPage(source=f"{NAME}.pdf", page_number=3, quoted_tokens=None, billed_tokens=1_000),
    )


def test_only_a_page_s_first_call_is_held_against_the_quote() -> None:
    again = called(1, tokens=2_240)
    comparison = compare(QUOTE, (*CPU, called(1, route=None), again, called(2)))
    assert comparison.differing == ()
    assert (comparison.calls, comparison.pages["calls"].billed) == (3, 2)
    assert comparison.tokens["visual_tokens"].billed == 2_000
    assert comparison.tokens["prompt_tokens"].billed == 2 * 1_300 + 2_540


def test_pages_without_a_call_are_said_to_wait() -> None:
    comparison = compare(QUOTE, (*CPU, called(1)))
    assert [page.page_number for page in comparison.waiting] == [2]
    assert comparison.differing == ()
    assert comparison.pages["ocr_degraded"].billed == 1


def test_what_has_no_price_makes_a_cost_unpriced_and_another_currency_stays_out() -> None:
    comparison = compare(QUOTE, (*CPU, called(1, cost_micro=None), called(2, currency="EUR")))
    assert {name: cost.billed for name, cost in comparison.costs.items()} == {
        "cpu_micro": 150,
        "vlm_micro": None,
        "total_micro": None,
    }
    assert (comparison.unpriced, comparison.elsewhere) == (1, 1)


def test_what_is_taken_back_counts_no_more() -> None:
    call = called(2)
    reversal = replace(
        call, is_reversal=True, prompt_tokens=-1_300, completion_tokens=-200, cost_micro=-2_100
    )
    comparison = compare(QUOTE, (*CPU, called(1), call, reversal))
    assert comparison.costs["vlm_micro"].billed == 2_100
    assert comparison.calls == 2


def test_pages_that_an_earlier_run_paid_for_are_in_neither_column() -> None:
    seen = page(1, Route.VLM, is_due=False, was_read=True)
    waiting = page(2, Route.VLM, was_read=True)
    comparison = compare(quote_of(document(NAME, seen, waiting)), (called(2),))
    vlm = comparison.pages["vlm"]
    assert (vlm.quoted, vlm.billed) == (Estimate.exactly(1), 1)
    assert comparison.differing == ()


def test_nothing_billed_is_no_comparison() -> None:
    assert compare(QUOTE, ()).entries == 0


def test_a_difference_is_told_as_a_share_of_what_was_quoted() -> None:
    quoted = Estimate(low=90, about=100, high=120)
    assert Compared(quoted=quoted, billed=125).difference == Decimal("0.25")
    assert [Compared(quoted=quoted, billed=billed).is_within for billed in (89, 90, 120, 121)] == [
        False,
        True,
        True,
        False,
    ]
    assert Compared(quoted=None, billed=5).difference is None
    assert Compared(quoted=quoted, billed=None).is_within is None
