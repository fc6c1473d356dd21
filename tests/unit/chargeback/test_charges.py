"""What entries are made of, and what was billed shared out among it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from models.transcription import TokenUsage
from pipeline.chargeback.amounts import MILLION
from pipeline.chargeback.charges import Charge, ChargeKind, Quantities, charges_of, shared_cost
from pipeline.chargeback.price_book import cost_of
from tests.fakes.ledger import DOLLARS, NOTHING

NONE_USED = Quantities(cpu_pages=0, cached_pages=0, prompt_tokens=0, cached_tokens=0, completion_tokens=0)
CALL = replace(NONE_USED, prompt_tokens=2_330, cached_tokens=90, completion_tokens=410)


def test_a_call_is_charged_by_kind_of_token_and_what_was_not_used_is_left_out() -> None:
    told = [(one.kind, one.quantity, one.micro_per_million) for one in charges_of(CALL, DOLLARS)]
    assert told == [
        (ChargeKind.PROMPT_TOKENS, 2_240, 125_718),
        (ChargeKind.CACHED_PROMPT_TOKENS, 90, 62_859),
        (ChargeKind.COMPLETION_TOKENS, 410, 502_874),
    ]
    assert charges_of(NONE_USED, DOLLARS) == ()


def test_the_charges_of_one_entry_are_its_cost_before_rounding() -> None:
    exact = sum(one.exact_cost or 0 for one in charges_of(CALL, DOLLARS))
    usage = TokenUsage(prompt_tokens=2_330, cached_tokens=90, completion_tokens=410)
    assert round(exact / MILLION) == cost_of(DOLLARS, usage) == 493


def test_what_has_no_price_has_no_cost_and_pages_of_an_earlier_run_cost_nothing() -> None:
    assert [one.exact_cost for one in charges_of(CALL, NOTHING)] == [None, None, None]
    [cached] = charges_of(replace(NONE_USED, cached_pages=12), NOTHING)
    assert (cached.kind, cached.exact_cost) == (ChargeKind.CACHED_PAGES, 0)


CHARGES = st.lists(
    st.builds(
        Charge,
        kind=st.sampled_from(ChargeKind),
        quantity=st.integers(1, 10**9),
        micro_per_million=st.integers(0, 10**12),
    ),
    min_size=1,
    max_size=5,
)


@given(charges=CHARGES, off=st.integers(-1_000, 1_000), sign=st.sampled_from([1, -1]))
def test_shares_add_up_to_what_was_billed_and_follow_the_exact_costs(
    charges: list[Charge], off: int, sign: int
) -> None:
    """``off``: rounding each call by itself moves the sum of many from the exact one."""
    charges = [replace(one, quantity=sign * one.quantity) for one in charges]
    exact = sum(one.exact_cost or 0 for one in charges)
    billed = sign * max(0, abs(exact) // MILLION + off) if exact else 0
    shares = shared_cost(charges, billed)
    assert sum(shares) == billed
    assert all(share * sign >= 0 for share in shares)
    for charge, share in zip(charges, shares, strict=True):
        if exact:
            assert abs(share - billed * (charge.exact_cost or 0) / exact) <= 1 + 1e-6 * abs(share)


def test_a_bill_for_what_costs_nothing_is_not_lost() -> None:
    free = [Charge(kind=ChargeKind.CPU_PAGES, quantity=2, micro_per_million=0)] * 2
    assert shared_cost(free, 7) == (7, 0)
